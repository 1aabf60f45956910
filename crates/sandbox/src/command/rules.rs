//! Validates the description of a jail before it is created.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use super::{CommandJail, Network, SpawnError, passing::MOST_DESCRIPTORS};

/// Rejects invalid descriptions.
pub(crate) fn check(jail: &CommandJail) -> Result<(), SpawnError> {
    plain("the program", &jail.program)?;
    plain("the working directory", &jail.cwd)?;
    if jail.argv.is_empty() {
        return invalid("`argv` is empty; its first element is the name of the program".to_owned());
    }
    let settings = jail.env.iter().flat_map(|(name, value)| [name, value]);
    for text in jail.argv.iter().chain(settings) {
        whole("an argument or variable", text)?;
    }
    if let Some((name, _)) =
        jail.env.iter().find(|(name, _)| name.is_empty() || name.as_bytes().contains(&b'='))
    {
        return invalid(format!("`{}` is not a valid variable name", name.display()));
    }
    if jail.view.binds.len() + STANDARD > MOST_DESCRIPTORS {
        return invalid(format!(
            "more than {} binds; bind a common parent directory instead",
            MOST_DESCRIPTORS - STANDARD
        ));
    }
    for bind in &jail.view.binds {
        plain("a bind", &bind.at)?;
        if let super::Source::Path(source) = &bind.source {
            plain("the source of a bind", source)?;
        }
        if let Some(taken) = TAKEN.iter().find(|taken| overlaps(&bind.at, taken)) {
            return invalid(format!(
                "a bind at `{}` would change `{taken}`, which the jail reserves",
                bind.at.display()
            ));
        }
    }
    for hidden in &jail.view.hidden {
        plain("a hidden path", hidden)?;
    }
    if jail.network == (Network::Proxied { http_port: 0 }) {
        return invalid("the proxy port is 0; give the port that the command uses".to_owned());
    }
    Ok(())
}

/// Checks that a path is absolute and normalised.
fn plain(what: &str, path: &Path) -> Result<(), SpawnError> {
    whole(what, path.as_os_str())?;
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    // `components` ignores single dots and doubled slashes.
    let is_canonical = path.components().as_path() == path;
    if path.is_absolute() && is_plain && is_canonical {
        Ok(())
    } else {
        invalid(format!("{what}, `{}`, must be absolute and without `.` or `..`", path.display()))
    }
}

fn whole(what: &str, text: &OsStr) -> Result<(), SpawnError> {
    if text.as_bytes().contains(&0) { invalid(format!("{what} contains a zero byte")) } else { Ok(()) }
}

/// Whether a bind at `at` would replace `taken` or something in it.
fn overlaps(at: &Path, taken: &str) -> bool {
    at.starts_with(taken) || Path::new(taken).starts_with(at)
}

fn invalid(why: String) -> Result<(), SpawnError> {
    Err(SpawnError::Invalid(why))
}

const STANDARD: usize = 3;

/// Directories that the jail provides itself; binds must not replace them.
const TAKEN: [&str; 3] = ["/proc", "/dev", "/sys"];
