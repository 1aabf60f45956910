//! How a manifest's tool is carried out. A closed union: what is not here cannot be asked for.

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
    /// May it start other processes?
    pub child_processes: bool,
    pub output: CommandOutput,
}

/// The list of `each` that the gateway fills in: its own files below `cwd`, relative to it. Tools cannot read these.
pub const GATEWAY_FILES: &str = "$GATEWAY_FILES";

#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentGroup {
    One(Argument),
    /// Present only when the parameter was given; a BOOLEAN must also be true.
    When {
        param: String,
        args: Vec<Argument>,
    },
    /// Once for each element of an ARRAY parameter, which the templates call `item`.
    Each {
        param: String,
        args: Vec<Argument>,
    },
}

/// One element of argv.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Argument {
    pub template: ArgTemplate,
    /// A value that begins with `-` is refused unless the template says that one is meant.
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
    /// An entry that is one optional parameter and nothing else is left out when the parameter is.
    pub query: Vec<NamedTemplate>,
    pub headers: Vec<NamedTemplate>,
    /// JSON whose strings are templates; one that is `{x}` and nothing else becomes the value of `x`, of any type.
    pub body: Option<Value>,
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GrpcHandler {
    pub endpoint: String,
    pub service: String,
    pub method: String,
    /// A compiled descriptor set or `.proto` file; server reflection where absent.
    pub descriptor: Option<String>,
    pub message: Option<Value>,
    pub metadata: Vec<NamedTemplate>,
    pub timeout_ms: Option<u64>,
}

/// One tool of an upstream MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpHandler {
    pub tool: String,
    pub upstream: McpUpstream,
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum McpUpstream {
    Stdio { command: String, args: Vec<String>, env: Vec<NamedTemplate> },
    Http { url: String, headers: Vec<NamedTemplate> },
}
