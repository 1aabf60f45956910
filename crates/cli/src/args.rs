//! What can be asked for? The help texts are part of the product.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ColorChoice, Parser, Subcommand, ValueEnum, ValueHint};

pub use self::gateway::{
    ApprovalsArgs, ApprovalsCommand, AuditArgs, AuditCommand, CallArgs, ClientKind, ConfigArgs,
    ConfigCommand, ConfigCommandArgs, ConnectArgs, DisconnectArgs, DoctorArgs, InitArgs, ListArgs,
    PublishArgs, ScopeKind, ServeArgs, TokenArgs, TokenCommand, TransportKind, UnpublishArgs,
};

/// The guarded door between AI agents and tools
///
/// Toolgate checks tool documents, works out what they may touch, rates their risk, tests them in a sandbox, serves those
/// that passed over the Model Context Protocol, and writes down what was enforced.
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
    Init(InitArgs),
    Serve(ServeArgs),
    List(ListArgs),
    Publish(PublishArgs),
    Unpublish(UnpublishArgs),
    Call(CallArgs),
    Approvals(ApprovalsArgs),
    Token(TokenArgs),
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

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Show the effective policy of a tool, who set what, and how risky it is
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

    /// Write what was resolved into the document's `toolSafety`
    #[arg(long)]
    pub write_safety: bool,

    #[command(flatten)]
    pub policy: PolicyArgs,

    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Compare what two versions of a tool may reach, and how risky they are
#[derive(Debug, ClapArgs)]
#[command(after_help = help::DIFF)]
pub struct DiffArgs {
    /// The version before: a file, a bundle, or FILE#NAME
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,

    /// The version after
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,

    /// How to print the changes
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    /// Profiles of the version before, if they differ from `--profiles`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub before_profiles: Option<PathBuf>,

    /// The baseline of the version before, if it differs from `--baseline`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub before_baseline: Option<PathBuf>,

    /// The overrides of the version before, if they differ from `--overrides`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub before_overrides: Option<PathBuf>,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Run a tool once, JavaScript or a command, in its sandbox, and show everything that happened
#[derive(Debug, ClapArgs)]
#[command(after_help = help::RUN)]
pub struct RunArgs {
    /// A file, or FILE#NAME for one tool of a bundle
    #[arg(value_name = "TOOL", value_hint = ValueHint::FilePath)]
    pub tool: PathBuf,

    /// Arguments: `name=value` in the parameter's type, or `name:=JSON`; without any, the test values
    #[arg(value_name = "ARG")]
    pub arguments: Vec<String>,

    /// The tool of the bundle that is meant
    #[arg(long = "tool", value_name = "NAME")]
    pub name: Option<String>,

    /// How to print what happened
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub sandbox: SandboxArgs,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Run tools with their test values: the Local Pass
#[derive(Debug, ClapArgs)]
#[command(after_help = help::TEST)]
pub struct TestArgs {
    /// Files, folders or bundles; without any, the tools of the workspace, and what came of it is remembered
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// Take away from each document that passes what its run did not use
    #[arg(long)]
    pub tighten: bool,

    /// Let test runs change the workspace itself and whatever else the tools reach
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

/// What tools are run in.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Sandbox")]
pub struct SandboxArgs {
    /// What `$WORKSPACE` stands for: the folder that file tools see; the current one where absent
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,

    /// Refuse to run where namespaces, Landlock or an unprivileged user are missing
    #[arg(long)]
    pub hardened: bool,
}

impl SandboxArgs {
    pub fn workspace(&self) -> &Path {
        self.workspace.as_deref().unwrap_or(Path::new("."))
    }
}

/// Where the policy comes from; what is shipped when absent.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Policy")]
pub struct PolicyArgs {
    /// Profiles of your own instead of the shipped ones: *.yaml or *.json, named by file
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub profiles: Option<PathBuf>,

    /// A baseline of your own instead of the shipped one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub baseline: Option<PathBuf>,

    /// What you say about single tools, above all else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub overrides: Option<PathBuf>,
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

    /// The format of the document; only JavaScript tools can be JSON
    #[arg(long, value_name = "FORMAT", default_value = "yaml")]
    pub format: DocumentFormat,

    /// Where to write it
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

/// Take documents in as files of one tool each, all as drafts
#[derive(Debug, ClapArgs)]
#[command(after_help = help::IMPORT)]
pub struct ImportArgs {
    /// Bundles and single documents
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,

    /// Where to write the files
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub into: PathBuf,

    /// Overwrite files that are there already
    #[arg(long)]
    pub force: bool,

    /// Import what is sound even if other documents have errors
    #[arg(long)]
    pub keep_going: bool,

    /// How to print what was imported
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,

    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// Put documents into one bundle, or print what models and clients see of them
#[derive(Debug, ClapArgs)]
#[command(after_help = help::EXPORT)]
pub struct ExportArgs {
    /// Files, folders or bundles
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,

    /// What the bundle is written in
    #[arg(long, value_name = "FORMAT", default_value = "json", conflicts_with = "wire")]
    pub format: DocumentFormat,

    /// Print the tools' declarations for this reader, as a JSON array, instead of a bundle
    #[arg(long = "as", value_name = "READER")]
    pub wire: Option<Wire>,

    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Overwrite the file if it is there already
    #[arg(long, requires = "output")]
    pub force: bool,

    #[command(flatten)]
    pub policy: PolicyArgs,
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

    /// How to print the list
    #[arg(long, value_name = "FORMAT", default_value = "text", requires = "list")]
    pub format: OutputFormat,
}

/// Say what the code of a finding, a call or a refused request means, and what to do about it
#[derive(Debug, ClapArgs)]
#[command(after_help = help::EXPLAIN)]
pub struct ExplainArgs {
    /// A code such as `SPEC_PARSE` or `decide.policy_forbids`; lists all codes when absent
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

impl Command {
    /// Prints one JSON object, whatever happens.
    pub fn wants_json(&self) -> bool {
        let format = match self {
            Self::List(args) => Some(args.format),
            Self::Publish(args) => Some(args.format),
            Self::Unpublish(args) => Some(args.format),
            Self::Call(args) => Some(args.format),
            Self::Approvals(args) => args.command.format(),
            Self::Token(args) => Some(args.command.format()),
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
            // `check` writes its findings as they come.
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

    /// Prints documents, code or results of tools, which must not be wrapped.
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
