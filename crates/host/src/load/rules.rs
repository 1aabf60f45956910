//! The rules that tools are judged by. Results hold as long as the rules are equal.

use std::{path::PathBuf, sync::Arc};

use toolgate_config::{Config, OwnNames};
use toolgate_gate::Workshop;

/// Policies, overrides, secrets, and the gateway's own files and variables, from which tools are kept away.
pub(crate) struct Rules {
    pub workshop: Arc<Workshop>,
    pub own: OwnNames,
    /// The version of the secrets, which decide whether requirements are missing.
    pub secrets: u64,
    /// The gateway's own paths, each with its real path. A tool keeps away from the targets it was judged with.
    guarded: Vec<(PathBuf, PathBuf)>,
}

impl Rules {
    /// Build them before tools are judged: a symlink that is switched meanwhile differs in the next load.
    pub fn now(workshop: Arc<Workshop>, config: &Config) -> Self {
        let with_real = |path: PathBuf| (path.clone(), path.canonicalize().unwrap_or(path));
        Self {
            secrets: workshop.secrets.version(),
            workshop,
            own: config.own_variables(),
            guarded: config.guarded_paths().into_iter().map(with_real).collect(),
        }
    }

    /// Would both judge every tool alike?
    pub fn are_same_as(&self, other: &Self) -> bool {
        self.workshop.policies == other.workshop.policies
            && self.workshop.overrides == other.workshop.overrides
            && self.own == other.own
            && self.secrets == other.secrets
            && self.guarded == other.guarded
    }
}
