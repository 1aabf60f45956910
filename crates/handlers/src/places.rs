//! The directories of this gateway.

use std::{env, ffi::OsString, path::PathBuf};

#[derive(Clone, Debug)]
pub struct Places {
    /// The value of `$WORKSPACE`.
    pub workspace: PathBuf,
    /// The value of `$HOME`.
    pub home: PathBuf,
    /// The state directory. It is among the guarded paths, unless it lies where no tool is granted anything.
    pub state: PathBuf,
    /// The gateway's own files: state, configuration, policies, documents. No tool sees them, whatever it is granted.
    pub guarded: Vec<PathBuf>,
}

/// The home directory of the current user. An unknown one is an error, because credentials in it could not be
/// blocked.
pub fn home() -> Result<PathBuf, String> {
    judged(env::var_os("HOME"), env::home_dir)
}

fn judged(variable: Option<OsString>, known: impl FnOnce() -> Option<PathBuf>) -> Result<PathBuf, String> {
    let (home, source) = match variable {
        Some(home) => (PathBuf::from(home), "`HOME`"),
        None => {
            (known().unwrap_or_default(), "`HOME` is not set, and the home directory in the user database")
        }
    };
    if home.is_absolute() {
        return Ok(home);
    }
    Err(format!(
        "{source} is `{}`, which is not an absolute path, so credentials in it cannot be blocked; set `HOME`",
        home.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_home_is_an_error() {
        let ann = || Some(PathBuf::from("/home/ann"));
        assert_eq!(judged(Some("/srv/ann".into()), ann), Ok("/srv/ann".into()));
        assert_eq!(judged(None, ann), Ok("/home/ann".into()));
        for (variable, known, told) in [
            (Some("".into()), ann(), "`HOME` is ``, which is not an absolute path"),
            (Some("../ann".into()), ann(), "`HOME` is `../ann`, which is not an absolute path"),
            (None, None, "`HOME` is not set, and the home directory in the user database is ``"),
            (None, Some("ann".into()), "in the user database is `ann`"),
        ] {
            let error = judged(variable, || known).unwrap_err();
            assert!(error.contains(told) && error.ends_with("set `HOME`"), "{error}");
        }
    }
}
