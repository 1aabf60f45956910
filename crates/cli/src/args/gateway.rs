//! Flags of the commands around a gateway: workspace, tools, callers, approvals and journal.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum, ValueHint, builder::PossibleValuesParser};
use toolgate_gate::{AUTH, CallStage};

use super::{OutputFormat, help};

/// The configuration file.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// The configuration file; if absent, `$TOOLGATE_CONFIG` or `./toolgate.yaml`
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

/// Set up a directory with a configuration and a first tool
#[derive(Debug, ClapArgs)]
#[command(after_help = help::INIT)]
pub struct InitArgs {
    /// The directory
    #[arg(default_value = ".", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// The set of shipped tools to enable
    #[arg(long, value_name = "PRESET", default_value = "starter")]
    pub preset: String,
}

/// Serve the published tools over the Model Context Protocol
#[derive(Debug, ClapArgs)]
#[command(after_help = help::SERVE)]
pub struct ServeArgs {
    /// Serve over standard input and output instead of HTTP, as the caller `auth.local`
    #[arg(long)]
    pub stdio: bool,

    /// For agents without a user: treat callers without a token as `auth.local` (HTTP on loopback only) and send all
    /// approval questions to the queue, whatever `approvals.client_may_answer` says
    #[arg(long)]
    pub autonomous: bool,

    /// For clients without a user: send all approval questions to the queue, whatever `approvals.client_may_answer` says
    #[arg(long)]
    pub unattended: bool,

    /// Listen on this address instead of `server.listen`
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// The URL that clients use, instead of `server.public_url`
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// Log level: error, warn, info or debug
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,

    /// Log format: text or json
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Show every tool with its state, level and last test run
#[derive(Debug, ClapArgs)]
#[command(after_help = help::LIST)]
pub struct ListArgs {
    /// How to print the tools
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Test tools and publish those that pass
#[derive(Debug, ClapArgs)]
#[command(after_help = help::PUBLISH)]
pub struct PublishArgs {
    /// Tool names; if absent, all unpublished tools except those that were unpublished by hand
    #[arg(value_name = "TOOL")]
    pub tools: Vec<String>,

    /// Do not ask before testing and publishing a tool above L3, or one that now asks for approval less often
    #[arg(long, short)]
    pub yes: bool,

    /// Publish even if `check` finds this code in the document's texts; may be repeated
    #[arg(long, value_name = "CODE")]
    pub accept: Vec<String>,

    /// Let test runs change the real workspace and everything else the tools reach
    #[arg(long)]
    pub for_real: bool,

    /// How to print the outcome
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Stop serving tools
#[derive(Debug, ClapArgs)]
#[command(after_help = help::UNPUBLISH)]
pub struct UnpublishArgs {
    /// Tool names or `toolId`s
    #[arg(required = true, value_name = "TOOL")]
    pub tools: Vec<String>,

    /// How to print the outcome
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Call a published tool through all stages, as the caller `auth.local`
#[derive(Debug, ClapArgs)]
#[command(after_help = help::CALL)]
pub struct CallArgs {
    /// The tool's name
    #[arg(value_name = "TOOL")]
    pub tool: String,

    /// Arguments: `name=value` in the parameter's type, or `name:=JSON`
    #[arg(value_name = "ARG")]
    pub arguments: Vec<String>,

    /// Never ask on the terminal: send approval questions to the queue
    #[arg(long)]
    pub autonomous: bool,

    /// How to print the outcome
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Approve or deny calls that wait for a person
#[derive(Debug, ClapArgs)]
#[command(after_help = help::APPROVALS)]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    pub command: ApprovalsCommand,

    #[command(flatten)]
    pub config: ConfigArgs,
}

#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// Show pending questions
    List {
        /// Also show answered and expired questions
        #[arg(long)]
        all: bool,

        /// Show at most this many: pending ones that expire first, with --all the newest
        #[arg(long, value_name = "COUNT", default_value_t = 200)]
        limit: usize,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Show one question with everything that the approval is bound to
    Show {
        /// The id from `list`
        id: String,

        /// Also show hidden arguments; this is recorded, and required before approval
        #[arg(long)]
        reveal: bool,
    },
    /// Let the call run once
    Approve {
        /// The id from `list`
        id: String,

        /// A note for the journal
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Reject the call
    Deny {
        /// The id from `list`
        id: String,

        /// A note for the journal
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Show questions as they arrive, until interrupted
    Watch,
}

/// Create, list and revoke access tokens
#[derive(Debug, ClapArgs)]
#[command(after_help = help::TOKEN)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,

    #[command(flatten)]
    pub config: ConfigArgs,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token; it is shown once
    Create {
        /// A name for the token
        name: String,

        /// The caller's name; the token's name if absent
        #[arg(long, value_name = "NAME")]
        subject: Option<String>,

        /// A permission of the caller; may be repeated
        #[arg(long = "permission", value_name = "NAME")]
        permissions: Vec<String>,

        /// How long the token is valid, such as `30d` or `12h`; forever if absent
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,

        /// Also allow the admin API
        #[arg(long)]
        admin: bool,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Show all tokens, without their secrets
    List {
        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Revoke a token at once
    Revoke {
        /// The token's name or id
        token: String,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
}

/// Store the secrets of tools encrypted, instead of in the environment
#[derive(Debug, ClapArgs)]
#[command(after_help = help::SECRET)]
pub struct SecretArgs {
    #[command(subcommand)]
    pub command: SecretCommand,

    #[command(flatten)]
    pub config: ConfigArgs,
}

#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Set a secret; the value is read from standard input or a hidden prompt
    Set {
        /// The name in `${NAME}`
        name: String,

        /// Give it to this tool only; may be repeated
        #[arg(long = "tool", value_name = "TOOL")]
        tools: Vec<String>,

        /// Give it to this upstream server only; may be repeated
        #[arg(long = "upstream", value_name = "UPSTREAM")]
        upstreams: Vec<String>,
    },
    /// Show the names of all secrets, never their values
    List {
        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Remove a secret
    Remove {
        /// Its name
        name: String,
    },
    /// Encrypt all secrets with a new key, and delete the old key
    Rotate,
    /// Copy variables of this environment into the store
    ImportEnv {
        /// Names of variables
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

/// Read the journal, verify it and create receipts
#[derive(Debug, ClapArgs)]
#[command(after_help = help::AUDIT)]
pub struct AuditArgs {
    #[command(subcommand)]
    pub command: AuditCommand,

    #[command(flatten)]
    pub config: ConfigArgs,
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check the journal for changed, removed or added records
    Verify {
        /// A record that must exist, from a receipt or a copy: `SEQ` and its hash
        #[arg(long, value_name = "SEQ:HASH")]
        expect: Option<String>,

        /// The trusted public key, or its file; by default the key in the state directory
        #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath)]
        key: Option<String>,

        /// Also fail if the last records are not signed yet (a gateway is running, or was killed)
        #[arg(long)]
        sealed: bool,

        /// How to print the findings
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Show the newest records
    Tail {
        /// How many
        #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
        lines: usize,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Show matching records
    Query {
        /// Only calls of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,

        /// Only calls of this caller
        #[arg(long, value_name = "NAME")]
        caller: Option<String>,

        /// Only with this decision: ALLOWED, DENIED or ERROR
        #[arg(long, value_name = "WORD")]
        decision: Option<String>,

        /// Only calls that ended in this stage
        #[arg(long, value_name = "STAGE", value_parser = PossibleValuesParser::new(stage_words()))]
        stage: Option<String>,

        /// Only with this reason, such as `decide.policy_forbids`
        #[arg(long, value_name = "CODE")]
        reason: Option<String>,

        /// Only this call
        #[arg(long, value_name = "ID")]
        call: Option<String>,

        /// From this day on: YYYY-MM-DD
        #[arg(long, value_name = "DAY")]
        from: Option<String>,

        /// Up to this day
        #[arg(long, value_name = "DAY")]
        to: Option<String>,

        /// How to print them
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Write all records as JSON lines
    Export {
        /// From this day on: YYYY-MM-DD
        #[arg(long, value_name = "DAY")]
        from: Option<String>,

        /// Up to this day
        #[arg(long, value_name = "DAY")]
        to: Option<String>,
    },
    /// Write a receipt for one call, or check one
    Receipt {
        /// The call's id, or a receipt's file with --check
        #[arg(value_name = "CALL")]
        call: String,

        /// Check the receipt in this file instead
        #[arg(long)]
        check: bool,

        /// With --check: the trusted public key, or its file
        #[arg(long, value_name = "KEY", requires = "check", value_hint = ValueHint::FilePath)]
        key: Option<String>,

        /// With --check: how to print it
        #[arg(long, value_name = "FORMAT", default_value = "text", requires = "check")]
        format: OutputFormat,
    },
}

impl ApprovalsCommand {
    /// `show` always prints JSON.
    pub const fn format(&self) -> Option<OutputFormat> {
        match self {
            Self::List { format, .. } | Self::Approve { format, .. } | Self::Deny { format, .. } => {
                Some(*format)
            }
            Self::Show { .. } => Some(OutputFormat::Json),
            Self::Watch => None,
        }
    }
}

impl TokenCommand {
    pub const fn format(&self) -> OutputFormat {
        match self {
            Self::Create { format, .. } | Self::List { format } | Self::Revoke { format, .. } => *format,
        }
    }
}

impl SecretCommand {
    pub const fn format(&self) -> Option<OutputFormat> {
        match self {
            Self::List { format } => Some(*format),
            Self::Set { .. } | Self::Remove { .. } | Self::Rotate | Self::ImportEnv { .. } => None,
        }
    }
}

impl AuditCommand {
    /// `None` for receipts and exports, which have their own format.
    pub const fn format(&self) -> Option<OutputFormat> {
        match self {
            Self::Verify { format, .. } | Self::Tail { format, .. } | Self::Query { format, .. } => {
                Some(*format)
            }
            Self::Receipt { check: true, format, .. } => Some(*format),
            Self::Receipt { .. } | Self::Export { .. } => None,
        }
    }
}

/// The stage names of `stage` and of `denial.stage` in the journal, each in call order.
fn stage_words() -> Vec<&'static str> {
    let denying = std::iter::once(AUTH).chain(CallStage::ALL.into_iter().map(CallStage::audit_name));
    let mut words: Vec<&'static str> =
        CallStage::ALL.into_iter().map(CallStage::name).chain(denying).collect();
    words.dedup();
    words
}

/// Show the effective configuration
#[derive(Debug, ClapArgs)]
#[command(after_help = help::CONFIG)]
pub struct ConfigCommandArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,

    #[command(flatten)]
    pub config: ConfigArgs,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show every key with its value
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
}

/// Add this gateway to a client's configuration, with a backup
#[derive(Debug, ClapArgs)]
#[command(after_help = help::CONNECT)]
pub struct ConnectArgs {
    /// The client
    pub client: ClientKind,

    /// The user's file or this project's; default: project, but user for claude-desktop, codex and windsurf
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<ScopeKind>,

    /// How the client reaches the gateway
    #[arg(long, value_name = "KIND", default_value = "stdio")]
    pub transport: TransportKind,

    /// A person uses this client and can answer its questions
    #[arg(long, conflicts_with = "unattended")]
    pub attended: bool,

    /// No person uses this client: send its questions to the queue. The default without a terminal
    #[arg(long)]
    pub unattended: bool,

    /// Print the result without writing it
    #[arg(long)]
    pub print: bool,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Remove this gateway from a client's configuration, with a backup, and revoke the client's token
#[derive(Debug, ClapArgs)]
#[command(after_help = help::DISCONNECT)]
pub struct DisconnectArgs {
    /// The client
    pub client: ClientKind,

    /// The user's file or this project's; the default of `connect` if absent
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<ScopeKind>,

    #[command(flatten)]
    pub config: ConfigArgs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ClientKind {
    /// Claude Code: `.mcp.json` here, or `~/.claude.json`
    Claude,
    /// Claude Desktop: `claude_desktop_config.json` of the user
    ClaudeDesktop,
    /// Cursor: `.cursor/mcp.json` here, or of the user
    Cursor,
    /// VS Code: `.vscode/mcp.json` here, or `mcp.json` of the user's profile
    Vscode,
    /// Codex: `config.toml` in its home, or `.codex/config.toml` here
    Codex,
    /// Gemini CLI: `.gemini/settings.json` here, or of the user
    Gemini,
    /// Windsurf: `mcp_config.json` of the user
    Windsurf,
    /// Zed: `.zed/settings.json` here, or of the user
    Zed,
}

/// The owner of a client's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ScopeKind {
    /// The user's, for all directories
    User,
    /// The project's, in this directory; a team may share it
    Project,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TransportKind {
    /// The client starts the gateway
    Stdio,
    /// The client calls a running gateway, with a token
    Http,
}

/// Show which isolation this machine enforces, and what is missing
#[derive(Debug, ClapArgs)]
#[command(after_help = help::DOCTOR)]
pub struct DoctorArgs {
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}
