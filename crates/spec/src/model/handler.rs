//! The handler of a manifest: how the tool runs. A closed union.

use serde_json::Value;

use crate::arg_template::ArgTemplate;

#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    Cli(CliHandler),
    Http(HttpHandler),
    Grpc(GrpcHandler),
    Mcp(McpHandler),
    /// A function of the program that embeds the gateway. No file can name this kind; see `check_in_code`.
    Rust,
}

impl Handler {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Cli(_) => "cli",
            Self::Http(_) => "http",
            Self::Grpc(_) => "grpc",
            Self::Mcp(_) => "mcp",
            Self::Rust => "rust",
        }
    }
}

/// A fixed command with typed arguments; never a shell.
#[derive(Clone, Debug, PartialEq)]
pub struct CliHandler {
    pub command: String,
    pub args: Vec<ArgumentGroup>,
    pub stdin: Option<ArgTemplate>,
    pub cwd: Option<String>,
    pub env: Vec<NamedTemplate>,
    pub timeout_ms: Option<u64>,
    /// Whether the command may start other processes.
    pub child_processes: bool,
    pub output: CommandOutput,
}

/// The `each` list that the gateway fills with its own files below `cwd`, as relative paths. Tools cannot read these
/// files.
pub const GATEWAY_FILES: &str = "$GATEWAY_FILES";

#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentGroup {
    One(Argument),
    /// Present only if the parameter was given; a BOOLEAN must also be true.
    When {
        param: String,
        args: Vec<Argument>,
    },
    /// Repeated for each element of an ARRAY parameter; templates call the element `item`.
    Each {
        param: String,
        args: Vec<Argument>,
    },
}

/// One element of argv.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Argument {
    pub template: ArgTemplate,
    /// Whether a value may begin with `-`. Otherwise such values are rejected.
    pub may_be_option: bool,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum CommandOutput {
    #[default]
    Text,
    Json,
    JsonLines,
    /// A jq-like path into JSON output.
    Select(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct NamedTemplate {
    pub name: String,
    pub value: ArgTemplate,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HttpHandler {
    pub method: String,
    /// Scheme and host are literal; parameters fill path segments and query values and are percent-encoded.
    pub url: ArgTemplate,
    /// An entry that consists of one optional parameter is left out if the parameter is absent.
    pub query: Vec<NamedTemplate>,
    pub headers: Vec<NamedTemplate>,
    /// JSON whose strings are templates. A string that is exactly `{x}` becomes the value of `x`, of any type.
    pub body: Option<Value>,
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GrpcHandler {
    pub endpoint: String,
    pub service: String,
    pub method: String,
    /// A compiled descriptor set or `.proto` file; without it, server reflection is used.
    pub descriptor: Option<String>,
    pub message: Option<Value>,
    pub metadata: Vec<NamedTemplate>,
    pub timeout_ms: Option<u64>,
}

/// One tool of an upstream MCP server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct McpHandler {
    /// The name of the server in the operator's configuration.
    pub upstream: String,
    /// The name of the tool as the server lists it.
    pub tool: String,
    /// The digest of the tool's definition at its review. A call is refused if the server lists another definition.
    pub pin: String,
    pub timeout_ms: Option<u64>,
}
