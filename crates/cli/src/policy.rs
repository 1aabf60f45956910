//! Which policy is everything resolved against? What we ship, or the operator's own files; a mistake in them is told, never guessed around.

use std::path::Path;

use toolgate_policy::{PolicyError, PolicySet, UserOverrides};
use toolgate_spec::Format;

use crate::{
    Failure,
    args::PolicyArgs,
    check_file::{Filter, Rules},
    load::{self, ReadError},
    terminal::visible,
};

impl PolicyArgs {
    /// Rules that let every warning through.
    pub fn rules(&self) -> Result<Rules, Failure> {
        Ok(Rules {
            filter: Filter::AllExcept(Vec::new()),
            stdin_format: Format::Json,
            set: self.set()?,
            overrides: self.overrides.as_deref().map(overrides).transpose()?,
        })
    }

    fn set(&self) -> Result<PolicySet, Failure> {
        let baseline = match &self.baseline {
            Some(path) => text(path)?,
            None => PolicySet::SHIPPED_BASELINE.to_owned(),
        };
        let profiles = match &self.profiles {
            Some(folder) => profiles(folder)?,
            None => {
                PolicySet::SHIPPED_PROFILES.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec()
            }
        };
        PolicySet::new(&baseline, profiles).map_err(|errors| refused(&self.sources(), &errors))
    }

    /// The files that the mistakes must be in, for what is shipped has none.
    fn sources(&self) -> String {
        let given = [&self.baseline, &self.profiles].into_iter().flatten();
        given.map(|path| path.to_string_lossy()).collect::<Vec<_>>().join("`, `")
    }
}

fn overrides(path: &Path) -> Result<UserOverrides, Failure> {
    UserOverrides::parse(&text(path)?, load::format_of(path))
        .map_err(|errors| refused(&path.to_string_lossy(), &errors))
}

/// Every document of the folder, named as its file; nothing in it is passed over in silence.
fn profiles(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    if !folder.is_dir() {
        return Err(Failure::at(folder, "this is no folder"));
    }
    let mut profiles = Vec::new();
    for found in toolgate_store::walk([folder.to_owned()], &load::has_known_extension) {
        let path = found.map_err(|error| Failure::new(visible(&error.to_string())))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        profiles.push((name, text(&path)?));
    }
    Ok(profiles)
}

fn text(path: &Path) -> Result<String, Failure> {
    let bytes = load::read_file(path).map_err(|error| match error {
        ReadError::TooLarge => Failure::at(path, "this file is too large"),
        ReadError::Failed(problem) => Failure::new(visible(&problem)),
    })?;
    String::from_utf8(bytes).map_err(|_| Failure::at(path, "this file is not UTF-8"))
}

fn refused(what: &str, errors: &[PolicyError]) -> Failure {
    let told: Vec<String> = errors.iter().map(|error| visible(&error.to_string()).into_owned()).collect();
    Failure::new(format!("`{}` cannot be used: {}", visible(what), told.join("; ")))
}
