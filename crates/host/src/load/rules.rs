//! The rules that tools are judged by. Results hold as long as the rules are equal.

use std::{path::PathBuf, sync::Arc};

use toolgate_config::{Config, OwnNames};
use toolgate_gate::Publisher;

/// Policies, overrides, and the gateway's own files and variables, from which tools are kept away.
pub(crate) struct Rules {
    pub publisher: Arc<Publisher>,
    pub own: OwnNames,
    /// The gateway's own paths, each with its real path. A tool keeps away from the targets it was judged with.
    guarded: Vec<(PathBuf, PathBuf)>,
}

impl Rules {
    /// Build them before tools are judged: a symlink that is switched meanwhile differs in the next load.
    pub fn now(publisher: Arc<Publisher>, config: &Config) -> Self {
        let with_real = |path: PathBuf| (path.clone(), path.canonicalize().unwrap_or(path));
        Self {
            publisher,
            own: config.own_variables(),
            guarded: config.guarded_paths().into_iter().map(with_real).collect(),
        }
    }

    /// Would both judge every tool alike?
    pub fn are_same_as(&self, other: &Self) -> bool {
        self.publisher.policies == other.publisher.policies
            && self.publisher.overrides == other.publisher.overrides
            && self.own == other.own
            && self.guarded == other.guarded
    }
}
