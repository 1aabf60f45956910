//! The inputs of an assessment besides the document. A result is valid as long as they are equal.

use std::{path::PathBuf, sync::Arc};

use toolgate_config::{Config, OwnNames};
use toolgate_gate::Publisher;

/// Policies, overrides, secrets, and the gateway's own files and variables, which tools must not access.
pub(crate) struct Rules {
    pub publisher: Arc<Publisher>,
    pub own: OwnNames,
    /// The version of the secrets, which decide whether requirements are missing.
    pub secrets: u64,
    /// The gateway's own paths, each with its real path. A tool's blocked paths contain the real paths of its assessment.
    guarded: Vec<(PathBuf, PathBuf)>,
}

impl Rules {
    /// Call this before tools are assessed. A symlink that changes meanwhile then differs in the next load.
    pub fn now(publisher: Arc<Publisher>, config: &Config) -> Self {
        let with_real = |path: PathBuf| (path.clone(), path.canonicalize().unwrap_or(path));
        Self {
            secrets: publisher.secrets.version(),
            publisher,
            own: config.own_variables(),
            guarded: config.guarded_paths().into_iter().map(with_real).collect(),
        }
    }

    /// Whether both give the same result for every tool.
    pub fn are_same_as(&self, other: &Self) -> bool {
        self.publisher.policies == other.publisher.policies
            && self.publisher.overrides == other.publisher.overrides
            && self.own == other.own
            && self.secrets == other.secrets
            && self.guarded == other.guarded
    }
}
