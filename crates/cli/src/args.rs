//! What can be asked for? The help texts are part of the product.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ColorChoice, Parser, Subcommand, ValueEnum, ValueHint};

/// The guarded door between AI agents and tools
///
/// Toolgate checks tool documents, works out what they may touch, rates their risk and says why.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, propagate_version = false, after_help = help::TOOLGATE)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    /// Colour the output; `auto` heeds NO_COLOR and pipes
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Check(CheckArgs),
    New(NewArgs),
    Schema(SchemaArgs),
    Explain(ExplainArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Check documents and report every finding with its place
#[derive(Debug, ClapArgs)]
#[command(after_help = help::CHECK)]
pub struct CheckArgs {
    /// Files, folders or bundles; `-` reads standard input
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// How to print the findings
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,

    /// Let warnings decide the exit code as errors do
    #[arg(long)]
    pub deny_warnings: bool,

    /// Do not report this warning; may be repeated
    #[arg(long, value_name = "CODE")]
    pub allow: Vec<String>,

    /// Of the warnings, report only this one; may be repeated
    #[arg(long, value_name = "CODE", conflicts_with = "allow")]
    pub only: Vec<String>,

    /// Print findings only: no progress, no summary
    #[arg(long, short)]
    pub quiet: bool,

    /// What `-` is written in
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub stdin_format: DocumentFormat,
}

/// Write a starting document that passes every check
#[derive(Debug, ClapArgs)]
#[command(after_help = help::NEW)]
pub struct NewArgs {
    /// What models will call the tool by: a lower-case slug such as `word-count`
    pub name: String,

    /// How the tool is carried out
    #[arg(long, value_name = "KIND", default_value = "js")]
    pub kind: ToolKind,

    /// Where to write it
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

/// Print a published JSON Schema
#[derive(Debug, ClapArgs)]
#[command(after_help = help::SCHEMA)]
pub struct SchemaArgs {
    /// Which schema
    #[arg(default_value = "safe-tool-spec")]
    pub name: String,

    /// List the schemas instead
    #[arg(long)]
    pub list: bool,
}

/// Say what a finding's code means and what to do about it
#[derive(Debug, ClapArgs)]
#[command(after_help = help::EXPLAIN)]
pub struct ExplainArgs {
    /// A code such as `SPEC_PARSE`; lists all codes when absent
    pub code: Option<String>,
}

/// Print a completion script for a shell
#[derive(Debug, ClapArgs)]
#[command(after_help = help::COMPLETIONS)]
pub struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

/// Print the manual page, or write the pages of all commands
#[derive(Debug, ClapArgs)]
#[command(after_help = help::MAN)]
pub struct ManArgs {
    /// Write one page for each command into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ReportFormat {
    /// For people: excerpt, caret and remedy
    Text,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands that annotate a pull request
    Github,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum OutputFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum DocumentFormat {
    Json,
    Yaml,
}

impl From<DocumentFormat> for toolgate_spec::Format {
    fn from(format: DocumentFormat) -> Self {
        match format {
            DocumentFormat::Json => Self::Json,
            DocumentFormat::Yaml => Self::Yaml,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ToolKind {
    /// JavaScript in the sandbox
    Js,
    /// A fixed command with typed arguments
    Cli,
    /// One HTTP call
    Http,
    /// One unary gRPC call
    Grpc,
    /// A tool of another MCP server
    Mcp,
}

mod help;
