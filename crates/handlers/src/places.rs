//! Where does this gateway keep things?

use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Places {
    /// What `$WORKSPACE` stands for.
    pub workspace: PathBuf,
    /// What `$HOME` stands for.
    pub home: Option<PathBuf>,
    /// The gateway's own files: state, configuration, policies, documents. No tool sees them, whatever it is granted.
    pub guarded: Vec<PathBuf>,
}
