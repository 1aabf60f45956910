//! Reads the baseline and profiles: the operator's files, or the shipped ones.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use toolgate_policy::{PolicySet, UserOverrides};
use toolgate_spec::{Format, MAX_FILE_BYTES};

/// A policy file that cannot be used, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PolicyFilesError {
    pub file: PathBuf,
    pub problem: String,
}

impl fmt::Display for PolicyFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be used: {}", self.file.display(), self.problem)
    }
}

impl std::error::Error for PolicyFilesError {}

/// Reads the operator's baseline and directory of profiles. The shipped ones replace absent ones.
pub fn policies_from(
    baseline: Option<&Path>,
    profiles: Option<&Path>,
) -> Result<PolicySet, PolicyFilesError> {
    let text_of_baseline = match baseline {
        Some(path) => text(path)?,
        None => PolicySet::SHIPPED_BASELINE.to_owned(),
    };
    let named = match profiles {
        Some(folder) => profiles_of(folder)?,
        None => PolicySet::SHIPPED_PROFILES.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec(),
    };
    PolicySet::new(&text_of_baseline, named).map_err(|errors| {
        let problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let file = baseline.or(profiles).unwrap_or(Path::new("profiles")).to_owned();
        PolicyFilesError { file, problem: problems.join("; ") }
    })
}

pub fn overrides_from(path: &Path) -> Result<UserOverrides, PolicyFilesError> {
    let written = text(path)?;
    UserOverrides::parse(&written, Format::of_file_name(&path.to_string_lossy())).map_err(|errors| {
        let problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
        PolicyFilesError { file: path.to_owned(), problem: problems.join("; ") }
    })
}

/// Every document of the directory, named after its file. A file that cannot be read is an error.
fn profiles_of(folder: &Path) -> Result<Vec<(String, String)>, PolicyFilesError> {
    if !folder.is_dir() {
        return Err(PolicyFilesError { file: folder.to_owned(), problem: "not a directory".to_owned() });
    }
    let is_document = |path: &Path| {
        let known = |extension: &std::ffi::OsStr| ["json", "yaml", "yml"].iter().any(|one| extension == *one);
        path.extension().is_some_and(known)
    };
    let mut profiles = Vec::new();
    for found in toolgate_store::walk([folder.to_owned()], &is_document) {
        let path =
            found.map_err(|error| PolicyFilesError { problem: error.to_string(), file: error.path })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        profiles.push((name, text(&path)?));
    }
    Ok(profiles)
}

pub(crate) fn text(path: &Path) -> Result<String, PolicyFilesError> {
    let refused = |problem: String| PolicyFilesError { file: path.to_owned(), problem };
    let bytes = toolgate_store::read_bounded(path, MAX_FILE_BYTES as u64)
        .map_err(|error| refused(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| refused("this file is not UTF-8".to_owned()))
}
