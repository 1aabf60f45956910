//! Where does this gateway keep things?

use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Places {
    /// What `$WORKSPACE` stands for.
    pub workspace: PathBuf,
    /// What `$HOME` stands for.
    pub home: Option<PathBuf>,
    /// Where the gateway keeps its state. Among the guarded, unless it lies where no tool is granted anything.
    pub state: PathBuf,
    /// The gateway's own files: state, configuration, policies, documents. No tool sees them, whatever it is granted.
    pub guarded: Vec<PathBuf>,
}
