//! The commands around a running gateway: its workspace, tools, callers, approvals and journal.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum, ValueHint, builder::PossibleValuesParser};
use toolgate_gate::{AUTH, Stage};

use super::{OutputFormat, help};

/// Which configuration is meant.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// The configuration file; without it `$TOOLGATE_CONFIG`, or `toolgate.yaml` here
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

/// Make a folder ready: a configuration, a folder for tools, and one tool to begin with
#[derive(Debug, ClapArgs)]
#[command(after_help = help::INIT)]
pub struct InitArgs {
    /// The folder
    #[arg(default_value = ".", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Shipped tools to begin with
    #[arg(long, value_name = "PRESET", default_value = "starter")]
    pub preset: String,
}

/// Serve the published tools over the Model Context Protocol
#[derive(Debug, ClapArgs)]
#[command(after_help = help::SERVE)]
pub struct ServeArgs {
    /// Speak over standard input and output instead of HTTP, as the caller of `auth.local`
    #[arg(long)]
    pub stdio: bool,

    /// For agents that nobody sits behind: who comes without a token is the caller of `auth.local`, over HTTP only on a
    /// loopback address, and questions go to the queue only, whatever `approvals.client_may_answer` says
    #[arg(long)]
    pub autonomous: bool,

    /// For clients without a person: questions go to the queue only, whatever `approvals.client_may_answer` says
    #[arg(long)]
    pub unattended: bool,

    /// Where to listen, instead of `server.listen`
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// What clients call, instead of `server.public_url`
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// How much to say: error, warn, info or debug
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,

    /// How to say it: text or json
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

/// Test tools, and let those that pass be served
#[derive(Debug, ClapArgs)]
#[command(after_help = help::PUBLISH)]
pub struct PublishArgs {
    /// The tools, by name; when absent, all that are not published and that nobody took back
    #[arg(value_name = "TOOL")]
    pub tools: Vec<String>,

    /// Do not ask before a tool above L3, or one that now asks a person less often, is tested and published
    #[arg(long, short)]
    pub yes: bool,

    /// Publish although `check` finds this code in the document's texts; can be repeated
    #[arg(long, value_name = "CODE")]
    pub accept: Vec<String>,

    /// Let test runs change the workspace itself and whatever else the tools reach
    #[arg(long)]
    pub for_real: bool,

    /// How to print the outcome
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Take tools back, so that they are not served any more
#[derive(Debug, ClapArgs)]
#[command(after_help = help::UNPUBLISH)]
pub struct UnpublishArgs {
    /// The tools, by name or `toolId`
    #[arg(required = true, value_name = "TOOL")]
    pub tools: Vec<String>,

    /// How to print the outcome
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Call a published tool through all stages, as the caller of `auth.local`
#[derive(Debug, ClapArgs)]
#[command(after_help = help::CALL)]
pub struct CallArgs {
    /// The tool, by name
    #[arg(value_name = "TOOL")]
    pub tool: String,

    /// Arguments: `name=value` in the parameter's type, or `name:=JSON`
    #[arg(value_name = "ARG")]
    pub arguments: Vec<String>,

    /// Nobody is there to be asked: a question goes to the queue
    #[arg(long)]
    pub autonomous: bool,

    /// How to print the outcome
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Answer calls that wait for a person
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
    /// Show what waits
    List {
        /// Show what was answered or has expired, too
        #[arg(long)]
        all: bool,

        /// How many at most: of what waits those that expire next, with --all the newest
        #[arg(long, value_name = "COUNT", default_value_t = 200)]
        limit: usize,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Show one question with everything that it is bound to
    Show {
        /// As listed
        id: String,

        /// Also show the arguments that the question hides; recorded, and needed before it can be approved
        #[arg(long)]
        reveal: bool,
    },
    /// Let the call run once
    Approve {
        /// As listed
        id: String,

        /// A word for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Do not let it run
    Deny {
        /// As listed
        id: String,

        /// A word for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Show questions as they come, until interrupted
    Watch,
}

/// Make and take back tokens that callers prove themselves with
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
    /// Make a token; it is shown once
    Create {
        /// What you will recognise it by
        name: String,

        /// Who the caller is; the token's name when absent
        #[arg(long, value_name = "NAME")]
        subject: Option<String>,

        /// A permission of the caller; may be repeated
        #[arg(long = "permission", value_name = "NAME")]
        permissions: Vec<String>,

        /// For how long, such as `30d` or `12h`; forever when absent
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,

        /// May use the admin interface
        #[arg(long)]
        admin: bool,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Show all tokens, without what proves them
    List {
        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
    /// Take a token back, at once
    Revoke {
        /// Its name or id
        token: String,

        /// How to print it
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: OutputFormat,
    },
}

/// Read the journal, prove what it says, and find what was changed
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
    /// Look for everything that was changed, taken away or added
    Verify {
        /// A record that must be there, from a receipt or a copy: `SEQ` and its hash
        #[arg(long, value_name = "SEQ:HASH")]
        expect: Option<String>,

        /// The public key that must have signed, or its file; by default the key in the state folder
        #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath)]
        key: Option<String>,

        /// Fail also where records at the end are not signed yet: a gateway is running, or was killed
        #[arg(long)]
        sealed: bool,

        /// How to print what was found
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
    /// Show the records that fit
    Query {
        /// Only calls of this tool
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,

        /// Only of this caller
        #[arg(long, value_name = "NAME")]
        caller: Option<String>,

        /// Only with this decision: ALLOWED, DENIED or ERROR
        #[arg(long, value_name = "WORD")]
        decision: Option<String>,

        /// Only what came no further than this stage
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

        /// With --check: the public key that must have signed, or its file
        #[arg(long, value_name = "KEY", requires = "check", value_hint = ValueHint::FilePath)]
        key: Option<String>,

        /// With --check: how to print it
        #[arg(long, value_name = "FORMAT", default_value = "text", requires = "check")]
        format: OutputFormat,
    },
}

impl ApprovalsCommand {
    /// `show` has no other format.
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

impl AuditCommand {
    /// Receipts and exports are documents.
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

/// Both vocabularies of stages that the journal has, each in the order of a call.
fn stage_words() -> Vec<&'static str> {
    let denying = std::iter::once(AUTH).chain(Stage::ALL.into_iter().map(Stage::audit_name));
    let mut words: Vec<&'static str> = Stage::ALL.into_iter().map(Stage::name).chain(denying).collect();
    words.dedup();
    words
}

/// Show the configuration in force
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

/// Write this gateway into a client's configuration, with a backup
#[derive(Debug, ClapArgs)]
#[command(after_help = help::CONNECT)]
pub struct ConnectArgs {
    /// The client
    pub client: ClientKind,

    /// Whose file: the user's or this project's; the project's by default, for claude-desktop, codex and windsurf the user's
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<ScopeKind>,

    /// How the client reaches the gateway
    #[arg(long, value_name = "KIND", default_value = "stdio")]
    pub transport: TransportKind,

    /// A person sits before this client and answers its questions
    #[arg(long, conflicts_with = "unattended")]
    pub attended: bool,

    /// No person sits before this client; its questions go to the queue. Chosen where there is no terminal to ask on
    #[arg(long)]
    pub unattended: bool,

    /// Print what would be written, and write nothing
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

    /// Whose file: the user's or this project's; the one that `connect` writes by default
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
    /// The user's, for all folders
    User,
    /// The project's, in this folder; a team may share it
    Project,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TransportKind {
    /// The client starts the gateway
    Stdio,
    /// The client calls a gateway that runs, with a token
    Http,
}

/// Show what this machine enforces, and what is missing
#[derive(Debug, ClapArgs)]
#[command(after_help = help::DOCTOR)]
pub struct DoctorArgs {
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub config: ConfigArgs,
}
