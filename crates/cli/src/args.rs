//! The command line: commands, flags and their help texts.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ColorChoice, Parser, Subcommand, ValueEnum, ValueHint};

pub use self::gateway::{
    ApprovalsArgs, ApprovalsCommand, AuditArgs, AuditCommand, CallArgs, ClientKind, ConfigArgs,
    ConfigCommand, ConfigCommandArgs, ConnectArgs, DisconnectArgs, DoctorArgs, InitArgs, ListArgs,
    PublishArgs, ScopeKind, SecretArgs, SecretCommand, ServeArgs, TokenArgs, TokenCommand, TransportKind,
    UnpublishArgs,
};
pub use self::upstream::{UpstreamAdd, UpstreamArgs, UpstreamCommand};

/// A governed tool gateway and sandbox for AI agents
///
/// Toolgate checks tool documents, resolves what they may touch, rates their risk and tests them in a sandbox. It serves
/// the tools that passed over the Model Context Protocol and records every call in a tamper-evident journal.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, propagate_version = false, after_help = help::TOOLGATE)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    /// Colour the output; `auto` respects NO_COLOR and turns colour off in pipes
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Init(InitArgs),
    Serve(ServeArgs),
    List(ListArgs),
    Publish(PublishArgs),
    Unpublish(UnpublishArgs),
    Call(CallArgs),
    Upstream(UpstreamArgs),
    Approvals(ApprovalsArgs),
    Token(TokenArgs),
    Secret(SecretArgs),
    Audit(AuditArgs),
    Connect(ConnectArgs),
    Disconnect(DisconnectArgs),
    Config(ConfigCommandArgs),
    Doctor(DoctorArgs),
    Check(CheckArgs),
    Resolve(ResolveArgs),
    Diff(DiffArgs),
    Run(RunArgs),
    Test(TestArgs),
    New(NewArgs),
    Import(ImportArgs),
    Export(ExportArgs),
    Schema(SchemaArgs),
    Explain(ExplainArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Check documents and report every finding with its location
#[derive(Debug, ClapArgs)]
#[command(after_help = help::CHECK)]
pub struct CheckArgs {
    /// Files, directories or bundles; `-` reads standard input
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// How to print the findings
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,

    /// Exit with 1 on warnings, as on errors
    #[arg(long)]
    pub deny_warnings: bool,

    /// Do not report this warning; may be repeated
    #[arg(long, value_name = "CODE")]
    pub allow: Vec<String>,

    /// Report only this warning, besides errors; may be repeated
    #[arg(long, value_name = "CODE", conflicts_with = "allow")]
    pub only: Vec<String>,

    /// Print findings only: no progress, no summary
    #[arg(long, short)]
    pub quiet: bool,

    /// The format of standard input
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub stdin_format: DocumentFormat,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Show the effective policy of a tool, where each setting comes from, and the risk level
#[derive(Debug, ClapArgs)]
#[command(after_help = help::RESOLVE)]
pub struct ResolveArgs {
    /// A file, or FILE#NAME for one tool of a bundle
    #[arg(value_name = "TOOL", value_hint = ValueHint::FilePath)]
    pub tool: PathBuf,

    /// The tool of the bundle that is meant
    #[arg(long = "tool", value_name = "NAME")]
    pub name: Option<String>,

    /// How to print the policy
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    /// Write the resolved policy into the document's `toolSafety`
    #[arg(long)]
    pub write_safety: bool,

    #[command(flatten)]
    pub policy: PolicyArgs,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Compare the reach and risk of two versions of a tool
#[derive(Debug, ClapArgs)]
#[command(after_help = help::DIFF)]
pub struct DiffArgs {
    /// The old version: a file, a bundle, or FILE#NAME
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,

    /// The new version
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,

    /// How to print the changes
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    /// Profiles of the old version, if they differ from `--profiles`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub before_profiles: Option<PathBuf>,

    /// The baseline of the old version, if it differs from `--baseline`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub before_baseline: Option<PathBuf>,

    /// The overrides of the old version, if they differ from `--overrides`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub before_overrides: Option<PathBuf>,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Run a tool once in its sandbox and show everything it did
#[derive(Debug, ClapArgs)]
#[command(after_help = help::RUN)]
pub struct RunArgs {
    /// A file, or FILE#NAME for one tool of a bundle
    #[arg(value_name = "TOOL", value_hint = ValueHint::FilePath)]
    pub tool: PathBuf,

    /// Arguments: `name=value` in the parameter's type, or `name:=JSON`; test values if absent
    #[arg(value_name = "ARG")]
    pub arguments: Vec<String>,

    /// The tool of the bundle that is meant
    #[arg(long = "tool", value_name = "NAME")]
    pub name: Option<String>,

    /// How to print the run
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub sandbox: SandboxArgs,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Run tools once with their test values (the Local Pass)
#[derive(Debug, ClapArgs)]
#[command(after_help = help::TEST)]
pub struct TestArgs {
    /// Files, directories or bundles; if absent, the tools of the workspace, whose results are stored
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Remove grants that the run did not use from each document that passes
    #[arg(long)]
    pub tighten: bool,

    /// Let test runs change the real workspace and everything else the tools reach
    #[arg(long)]
    pub for_real: bool,

    /// How to print the results
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub sandbox: SandboxArgs,

    #[command(flatten)]
    pub policy: PolicyArgs,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// The sandbox that tools run in.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Sandbox")]
pub struct SandboxArgs {
    /// The directory that file tools see, as `$WORKSPACE`; the current directory if absent
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,

    /// Refuse to run if namespaces, Landlock or an unprivileged user are missing
    #[arg(long)]
    pub hardened: bool,
}

impl SandboxArgs {
    pub fn workspace(&self) -> &Path {
        self.workspace.as_deref().unwrap_or(Path::new("."))
    }
}

/// The policy files; the shipped policy if absent.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Policy")]
pub struct PolicyArgs {
    /// Your own profiles instead of the shipped ones: *.yaml or *.json, named after their files
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub profiles: Option<PathBuf>,

    /// Your own baseline instead of the shipped one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub baseline: Option<PathBuf>,

    /// Your settings for single tools; they win over documents and profiles
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub overrides: Option<PathBuf>,
}

/// Write a starting document that passes every check
#[derive(Debug, ClapArgs)]
#[command(after_help = help::NEW)]
pub struct NewArgs {
    /// The name that models use: a lower-case slug such as `word-count`
    pub name: String,

    /// How the tool runs
    #[arg(long, value_name = "KIND", default_value = "js")]
    pub kind: ToolKind,

    /// The format of the document; only JavaScript tools can be JSON
    #[arg(long, value_name = "FORMAT", default_value = "yaml")]
    pub format: DocumentFormat,

    /// The directory to write it to
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

/// Import documents as drafts, one file per tool
#[derive(Debug, ClapArgs)]
#[command(after_help = help::IMPORT)]
pub struct ImportArgs {
    /// Bundles and single documents
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    /// The directory to write the files to
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub into: PathBuf,

    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,

    /// Import valid documents even if others have errors
    #[arg(long)]
    pub keep_going: bool,

    /// How to print the imported tools
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Combine documents into one bundle, or print the declarations that models and clients see
#[derive(Debug, ClapArgs)]
#[command(after_help = help::EXPORT)]
pub struct ExportArgs {
    /// Files, directories or bundles
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// The format of the bundle
    #[arg(long, value_name = "FORMAT", default_value = "json", conflicts_with = "wire")]
    pub format: DocumentFormat,

    /// Print the tools' declarations for this protocol or API, as a JSON array, instead of a bundle
    #[arg(long = "as", value_name = "READER")]
    pub wire: Option<Wire>,

    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    pub force: bool,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Print a published JSON Schema
#[derive(Debug, ClapArgs)]
#[command(after_help = help::SCHEMA)]
pub struct SchemaArgs {
    /// The schema's name
    #[arg(default_value = "safe-tool-spec")]
    pub name: String,

    /// List the schemas instead
    #[arg(long)]
    pub list: bool,

    /// How to print the list
    #[arg(long, value_name = "FORMAT", default_value = "text", requires = "list")]
    pub format: OutputFormat,
}

/// Explain the code of a finding, a call or a refused request, and what to do about it
#[derive(Debug, ClapArgs)]
#[command(after_help = help::EXPLAIN)]
pub struct ExplainArgs {
    /// A code such as `SPEC_PARSE` or `decide.policy_forbids`; if absent, lists all codes
    pub code: Option<String>,

    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,
}

/// Print a completion script for a shell
#[derive(Debug, ClapArgs)]
#[command(after_help = help::COMPLETIONS)]
pub struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

/// Print the manual page, or write the manual pages of all commands
#[derive(Debug, ClapArgs)]
#[command(after_help = help::MAN)]
pub struct ManArgs {
    /// Write one page for each command into this directory
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

impl Command {
    /// Whether the command prints exactly one JSON object, also when it fails.
    pub fn wants_json(&self) -> bool {
        let format = match self {
            Self::List(args) => Some(args.format),
            Self::Publish(args) => Some(args.format),
            Self::Unpublish(args) => Some(args.format),
            Self::Call(args) => Some(args.format),
            Self::Approvals(args) => args.command.format(),
            Self::Token(args) => Some(args.command.format()),
            Self::Upstream(args) => Some(args.format),
            Self::Secret(args) => args.command.format(),
            Self::Audit(args) => args.command.format(),
            Self::Config(ConfigCommandArgs { command: ConfigCommand::Show { format, .. }, .. }) => {
                Some(*format)
            }
            Self::Doctor(args) => Some(args.format),
            Self::Resolve(args) => Some(args.format),
            Self::Diff(args) => Some(args.format),
            Self::Run(args) => Some(args.format),
            Self::Test(args) => Some(args.format),
            Self::Import(args) => Some(args.format),
            Self::Schema(args) => args.list.then_some(args.format),
            Self::Explain(args) => Some(args.format),
            // `check` streams its own report.
            Self::Check(_)
            | Self::Init(_)
            | Self::Serve(_)
            | Self::Connect(_)
            | Self::Disconnect(_)
            | Self::New(_)
            | Self::Export(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        };
        format == Some(OutputFormat::Json)
    }

    /// Whether the output is a document, code or a tool's result, which must not be wrapped.
    pub fn prints_documents(&self) -> bool {
        match self {
            Self::Check(args) => args.format != ReportFormat::Text,
            Self::Audit(args) => matches!(
                args.command,
                AuditCommand::Export { .. } | AuditCommand::Receipt { check: false, .. }
            ),
            Self::Export(_) | Self::Schema(_) | Self::Completions(_) | Self::Man(_) | Self::Call(_) => true,
            Self::Connect(args) => args.print,
            _ => false,
        }
    }
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
pub enum Wire {
    /// `tools/list` of the Model Context Protocol
    Mcp,
    /// Function calling
    Openai,
    /// Tool use
    Anthropic,
    /// Function declarations
    Google,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ToolKind {
    /// JavaScript in the sandbox
    Js,
    /// A fixed command with typed arguments
    Cli,
    /// One HTTP call; does not run yet
    #[value(hide = true)]
    Http,
    /// One unary gRPC call; does not run yet
    #[value(hide = true)]
    Grpc,
    /// A tool of another MCP server; does not run yet
    #[value(hide = true)]
    Mcp,
}

mod gateway;
mod help;
mod upstream;
