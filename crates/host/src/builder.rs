//! How does a program put a gateway together? Step by step, with the same defaults as the configuration file has.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toolgate_config::{Config, Overrides, model::AskFrom};
use toolgate_gate::Observer;
use toolgate_handlers::CliCommand;
use toolgate_policy::ToolPolicy;

use crate::open::{Extras, OpenError, TestRuns, Toolgate};

/// What differs from the defaults.
#[derive(Debug, Default)]
pub struct Builder {
    folder: PathBuf,
    workspace: Option<PathBuf>,
    state: Option<PathBuf>,
    tools: Vec<PathBuf>,
    approvals: Option<AskFrom>,
    extras: Extras,
}

impl Builder {
    /// What relative paths are taken from, and where the state is kept unless `state` says otherwise.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// The folder that file tools see.
    #[must_use]
    pub fn workspace(mut self, workspace: impl Into<PathBuf>) -> Self {
        self.workspace = Some(workspace.into());
        self
    }

    /// Where journal, keys and approvals are kept.
    #[must_use]
    pub fn state(mut self, state: impl Into<PathBuf>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// A tool document, or a folder of them; may be repeated.
    #[must_use]
    pub fn tools(mut self, path: impl Into<PathBuf>) -> Self {
        self.tools.push(path.into());
        self
    }

    /// From which risk level a person is asked about tools that say nothing about approval.
    #[must_use]
    pub fn approvals(mut self, ask_from: AskFrom) -> Self {
        self.approvals = Some(ask_from);
        self
    }

    /// A policy in code; asked at every call, beside everything else, and about every tool that is listed.
    #[must_use]
    pub fn policy(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.extras.policy = Arc::new(policy);
        self
    }

    /// Somebody who is told of every call that has ended.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.extras.observer = Some(observer);
        self
    }

    /// The command of the tool of this name, with arguments that are made in code. Its document is among `tools`, names the same
    /// command, and says everything else: what the arguments of a call are, and what the command may do. May be repeated.
    #[must_use]
    pub fn command(mut self, tool: impl Into<String>, command: CliCommand) -> Self {
        self.extras.commands.insert(tool.into(), command);
        self
    }

    /// Lets test runs change the workspace itself and whatever else the tools reach. Otherwise a tool that writes is tested on a
    /// copy of the workspace, and one that could change more is not tested at all.
    #[must_use]
    pub const fn test_for_real(mut self) -> Self {
        self.extras.test_runs = TestRuns::ForReal;
        self
    }

    pub async fn build(self) -> Result<Toolgate, OpenError> {
        let given = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let folder = std::path::absolute(given)
            .map_err(|error| OpenError { part: "folder", problem: error.to_string() })?;
        let parsed = Config::parse("version: 1\n", &folder, &|_| None, &Overrides::default());
        let mut config = parsed.map_err(|errors| {
            let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
            OpenError { part: "configuration", problem: told.join("; ") }
        })?;
        if let Some(workspace) = self.workspace {
            config.workspace = folder.join(workspace);
        }
        if let Some(state) = self.state {
            config.state = folder.join(state);
        }
        config.tools = self.tools.into_iter().map(|path| folder.join(path)).collect();
        if let Some(ask_from) = self.approvals {
            config.approvals.ask_from = ask_from;
        }
        Toolgate::open(config, self.extras).await
    }
}
