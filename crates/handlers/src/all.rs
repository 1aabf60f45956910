//! Which handler runs this tool? A closed union and a match.

use std::{path::PathBuf, sync::Arc};

use toolgate_gate::{Handlers, Runnable};
use toolgate_policy::{EffectivePolicy, SecretSource};
use toolgate_spec::model::{Body, Handler, ToolSpec};

use crate::{cli::CliHandlers, js::JsHandlers, own::OwnVariables, rust::RustHandlers};

/// Every kind of tool that this gateway runs.
#[derive(Clone, Debug)]
pub struct ToolHandlers {
    pub js: JsHandlers,
    pub cli: CliHandlers,
    pub rust: RustHandlers,
}

impl ToolHandlers {
    /// Replaces the gateway's own files and variables, and the source of secrets.
    #[must_use]
    pub fn guarding(
        mut self,
        files: Vec<PathBuf>,
        own: OwnVariables,
        secrets: Arc<dyn SecretSource>,
    ) -> Self {
        self.js.secrets = secrets;
        self.cli.secrets = Arc::clone(&self.js.secrets);
        self.cli.host.environment.withhold(own);
        self.js.places.guarded.clone_from(&files);
        self.rust.places.guarded.clone_from(&files);
        self.cli.host.places.guarded = files;
        self
    }
}

impl Handlers for ToolHandlers {
    fn prepare(&self, spec: &Arc<ToolSpec>, policy: &EffectivePolicy) -> Result<Arc<dyn Runnable>, String> {
        if self.cli.commands.contains_key(&spec.name) {
            return self.cli.prepare(spec, policy);
        }
        match &spec.body {
            Body::JavaScript { .. } => self.js.prepare(spec, policy),
            Body::Handler(Handler::Cli(_)) => self.cli.prepare(spec, policy),
            Body::Handler(Handler::Rust) => self.rust.prepare(spec, policy),
            Body::Handler(handler @ (Handler::Http(_) | Handler::Grpc(_) | Handler::Mcp(_))) => {
                Err(format!("`{}` tools cannot be run by this gateway yet", handler.name()))
            }
        }
    }
}
