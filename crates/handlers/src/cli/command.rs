//! How does a program that embeds the gateway say what its commands are? In code, by elements that say what they are.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};
use toolgate_policy::EffectivePolicy;
use toolgate_spec::{
    ArgTemplate,
    model::{Body, CliHandler, CommandOutput, Handler, NamedTemplate, ToolSpec},
};

use crate::cli::{
    line::arg::Arg,
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
    /// What a manifest would say, without the arguments.
    written: CliHandler,
    elements: Arc<Elements>,
    /// The first template that is none.
    broken: Option<String>,
}

impl CliCommand {
    /// An absolute path, or a bare name that is found once.
    pub fn new(command: &'static str) -> Self {
        let written = CliHandler {
            command: command.to_owned(),
            args: Vec::new(),
            stdin: None,
            cwd: None,
            env: Vec::new(),
            timeout_ms: None,
            child_processes: true,
            output: CommandOutput::Text,
        };
        Self { written, elements: Arc::new(|_| Vec::new()), broken: None }
    }

    #[must_use]
    pub fn args(mut self, make: impl Fn(&Map<String, Value>) -> Vec<Arg> + Send + Sync + 'static) -> Self {
        self.elements = Arc::new(make);
        self
    }

    /// Absolute, or below `$WORKSPACE` or `$HOME`.
    #[must_use]
    pub fn cwd(mut self, folder: &'static str) -> Self {
        self.written.cwd = Some(folder.to_owned());
        self
    }

    /// A variable and a template for it, as in a manifest: `{name}` stands for an argument or a static variable. Without the
    /// argument that is the whole of it, the variable is left out.
    #[must_use]
    pub fn env(mut self, name: &'static str, template: &'static str) -> Self {
        let value = self.template(template);
        self.written.env.push(NamedTemplate { name: name.to_owned(), value });
        self
    }

    /// A template for standard input.
    #[must_use]
    pub fn stdin(mut self, template: &'static str) -> Self {
        self.written.stdin = Some(self.template(template));
        self
    }

    #[must_use]
    pub fn timeout_ms(mut self, timeout: u64) -> Self {
        self.written.timeout_ms = Some(timeout);
        self
    }

    #[must_use]
    pub fn output(mut self, output: CommandOutput) -> Self {
        self.written.output = output;
        self
    }

    /// Makes it the body of a tool whose document says the rest: arguments, capability, output.
    pub fn into_tool(
        self,
        spec: Arc<ToolSpec>,
        policy: &EffectivePolicy,
        host: &CommandHost,
    ) -> Result<CliTool, String> {
        match &self.broken {
            Some(why) => Err(why.clone()),
            None => CliTool::of(spec, CommandBody::Code(self), policy, host),
        }
    }

    /// Stands in for the arguments of a document that names this very command: whoever reads the document knows what runs.
    pub(super) fn in_place_of_args(
        self,
        spec: Arc<ToolSpec>,
        policy: &EffectivePolicy,
        host: &CommandHost,
    ) -> Result<CliTool, String> {
        let command = &self.written.command;
        let is_named = matches!(&spec.body, Body::Handler(Handler::Cli(cli)) if cli.command == *command);
        if !is_named {
            return Err(format!(
                "the program runs `{command}` for it, and the document does not say so; write it as its `command`"
            ));
        }
        self.into_tool(spec, policy, host)
    }

    pub(super) const fn written(&self) -> &CliHandler {
        &self.written
    }

    pub(super) fn elements(&self, arguments: &Map<String, Value>) -> Vec<Arg> {
        (self.elements)(arguments)
    }

    fn template(&mut self, text: &str) -> ArgTemplate {
        ArgTemplate::parse(text).unwrap_or_else(|why| {
            self.broken.get_or_insert(format!("`{text}` is no template: {why}"));
            ArgTemplate::default()
        })
    }
}

impl fmt::Debug for CliCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CliCommand").field("command", &self.written.command).finish_non_exhaustive()
    }
}
