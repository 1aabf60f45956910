//! The arguments of `toolgate upstream`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::{ConfigArgs, OutputFormat, help};

/// Put MCP servers behind this gateway: add them, review their tools, approve
#[derive(Debug, ClapArgs)]
#[command(after_help = help::UPSTREAM)]
pub struct UpstreamArgs {
    #[command(subcommand)]
    pub command: UpstreamCommand,

    /// How to print it
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}

#[derive(Debug, Subcommand)]
pub enum UpstreamCommand {
    /// Add a server to the configuration
    Add(UpstreamAdd),
    /// Show all servers and how many of their tools are approved
    List,
    /// Start a server and check that it answers
    Test { name: String },
    /// Show every tool of a server: definition, risk, findings and changes since its approval
    Review { name: String },
    /// Publish tools of a server; all new and changed ones if none is named
    Approve {
        name: String,

        /// Names of tools on the server
        tools: Vec<String>,

        /// Accept a finding that blocks publishing; may be repeated
        #[arg(long, value_name = "CODE")]
        accept: Vec<String>,

        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Unpublish tools of a server and do not offer them again until they change
    Reject {
        name: String,

        /// Names of tools on the server
        #[arg(required = true)]
        tools: Vec<String>,
    },
    /// Remove a server from the configuration and unpublish its tools
    Remove { name: String },
}

#[derive(Debug, ClapArgs)]
pub struct UpstreamAdd {
    /// A short name for the server
    pub name: String,

    /// A command line, in quotes
    pub source: String,

    /// An environment variable of the server, as NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,

    /// A path that the server can read; may be repeated
    #[arg(long, value_name = "PATH")]
    pub read: Vec<PathBuf>,

    /// A path in the workspace that the server can change; may be repeated
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,

    /// A host that the server can reach; may be repeated
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,

    /// Put before the names of its tools; NAME_ if absent
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
}
