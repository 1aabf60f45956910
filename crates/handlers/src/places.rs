//! Where does this gateway keep things?

use std::{env, ffi::OsString, path::PathBuf};

#[derive(Clone, Debug)]
pub struct Places {
    /// What `$WORKSPACE` stands for.
    pub workspace: PathBuf,
    /// What `$HOME` stands for.
    pub home: PathBuf,
    /// Where the gateway keeps its state. Among the guarded, unless it lies where no tool is granted anything.
    pub state: PathBuf,
    /// The gateway's own files: state, configuration, policies, documents. No tool sees them, whatever it is granted.
    pub guarded: Vec<PathBuf>,
}

/// The home folder of whoever runs this process. An error where nobody knows it: what holds credentials there could not be blocked.
pub fn home() -> Result<PathBuf, String> {
    judged(env::var_os("HOME"), env::home_dir)
}

fn judged(variable: Option<OsString>, known: impl FnOnce() -> Option<PathBuf>) -> Result<PathBuf, String> {
    let (home, source) = match variable {
        Some(home) => (PathBuf::from(home), "`HOME`"),
        None => (known().unwrap_or_default(), "`HOME` is not set, and the home folder in the list of users"),
    };
    if home.is_absolute() {
        return Ok(home);
    }
    Err(format!(
        "{source} is `{}`, which is no absolute path, so that what holds credentials in it could not be kept from tools; set `HOME`",
        home.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_that_nobody_knows_is_an_error() {
        let ann = || Some(PathBuf::from("/home/ann"));
        assert_eq!(judged(Some("/srv/ann".into()), ann), Ok("/srv/ann".into()));
        assert_eq!(judged(None, ann), Ok("/home/ann".into()));
        for (variable, known, told) in [
            (Some("".into()), ann(), "`HOME` is ``, which is no absolute path"),
            (Some("../ann".into()), ann(), "`HOME` is `../ann`, which is no absolute path"),
            (None, None, "`HOME` is not set, and the home folder in the list of users is ``"),
            (None, Some("ann".into()), "in the list of users is `ann`"),
        ] {
            let error = judged(variable, || known).unwrap_err();
            assert!(error.contains(told) && error.ends_with("set `HOME`"), "{error}");
        }
    }
}
