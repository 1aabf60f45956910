//! How does a program that embeds the gateway say what its commands are? In code, by elements that say what they are.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};
use toolgate_policy::EffectivePolicy;
use toolgate_spec::model::{CommandOutput, ToolSpec};

use super::{
    arg::Arg,
    tool::{CliTool, CommandBody, CommandHost},
};

type Elements = dyn Fn(&Map<String, Value>) -> Vec<Arg> + Send + Sync;

/// A fixed command whose elements are made from the arguments of a call by code. Every element is checked as those of a
/// manifest are; arguments that name paths arrive as the paths that were found and opened.
///
/// ```
/// use toolgate_handlers::{Arg, CliCommand};
///
/// CliCommand::new("git").args(|input| {
///     vec![Arg::literal("log"), Arg::option_value("--max-count=", input.get("count"))]
/// });
/// ```
#[derive(Clone)]
pub struct CliCommand {
    command: String,
    elements: Arc<Elements>,
    cwd: Option<String>,
    timeout_ms: Option<u64>,
    output: CommandOutput,
}

impl CliCommand {
    /// An absolute path, or a bare name that is found once.
    pub fn new(command: &'static str) -> Self {
        Self {
            command: command.to_owned(),
            elements: Arc::new(|_| Vec::new()),
            cwd: None,
            timeout_ms: None,
            output: CommandOutput::Text,
        }
    }

    #[must_use]
    pub fn args(mut self, make: impl Fn(&Map<String, Value>) -> Vec<Arg> + Send + Sync + 'static) -> Self {
        self.elements = Arc::new(make);
        self
    }

    /// Absolute, or below `$WORKSPACE` or `$HOME`.
    #[must_use]
    pub fn cwd(mut self, folder: &'static str) -> Self {
        self.cwd = Some(folder.to_owned());
        self
    }

    #[must_use]
    pub fn timeout_ms(mut self, timeout: u64) -> Self {
        self.timeout_ms = Some(timeout);
        self
    }

    #[must_use]
    pub fn output(mut self, output: CommandOutput) -> Self {
        self.output = output;
        self
    }

    /// Makes it the body of a tool whose document says the rest: arguments, capability, output.
    pub fn into_tool(
        self,
        spec: Arc<ToolSpec>,
        policy: &EffectivePolicy,
        host: &CommandHost,
    ) -> Result<CliTool, String> {
        CliTool::of(spec, CommandBody::Code(self), policy, host)
    }

    pub(super) fn command(&self) -> &str {
        &self.command
    }

    pub(super) fn elements(&self, arguments: &Map<String, Value>) -> Vec<Arg> {
        (self.elements)(arguments)
    }

    pub(super) fn folder(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    pub(super) const fn time(&self) -> Option<u64> {
        self.timeout_ms
    }

    pub(super) const fn reads(&self) -> &CommandOutput {
        &self.output
    }
}

impl fmt::Debug for CliCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CliCommand").field("command", &self.command).finish_non_exhaustive()
    }
}
