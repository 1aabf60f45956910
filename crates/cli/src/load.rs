//! Finds and reads the files behind command-line paths, in an order that does not depend on the disk.

use std::{
    collections::HashSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use toolgate_spec::{Format, MAX_FILE_BYTES};

/// Something to read.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum DocumentSource {
    Stdin,
    File { path: PathBuf, chosen: FileSelection },
}

/// How a file was selected. A named file without a tool is an error; one found in a directory is skipped.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FileSelection {
    ByName,
    ByWalking,
}

/// A path that could not be read, and why. Both texts are untrusted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unreadable {
    pub file: String,
    pub problem: String,
}

#[derive(Debug, Default)]
pub struct GatheredFiles {
    pub inputs: Vec<DocumentSource>,
    pub unreadable: Vec<Unreadable>,
}

/// Why a file has no content. The message names the file.
#[derive(Debug)]
pub enum DocumentReadError {
    TooLarge,
    Failed(String),
}

impl DocumentSource {
    /// A path from the command line; `-` is standard input.
    pub fn named(path: &Path) -> Self {
        if path.as_os_str() == "-" {
            return Self::Stdin;
        }
        Self::File { path: path.to_owned(), chosen: FileSelection::ByName }
    }

    /// The name that reports use.
    pub fn label(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".into(),
            Self::File { path, .. } => path.to_string_lossy().into_owned(),
        }
    }

    pub fn format(&self, stdin: Format) -> Format {
        match self {
            Self::Stdin => stdin,
            Self::File { path, .. } => format_of(path),
        }
    }

    /// Reads the content, bounded by the size limit of documents. Never waits for a pipe on disk.
    pub fn read(&self) -> Result<Vec<u8>, DocumentReadError> {
        match self {
            Self::Stdin => read_stdin(),
            Self::File { path, .. } => read_file(path),
        }
    }
}

/// Finds all files behind the paths, each once, sorted. Directories are walked.
pub fn gather(paths: &[PathBuf]) -> GatheredFiles {
    let mut gathered = GatheredFiles::default();
    for path in paths {
        if path.as_os_str() == "-" {
            gathered.inputs.push(DocumentSource::Stdin);
            continue;
        }
        for found in toolgate_store::walk([path.clone()], &has_known_extension) {
            match found {
                Ok(found) => {
                    let chosen =
                        if found == *path { FileSelection::ByName } else { FileSelection::ByWalking };
                    gathered.inputs.push(DocumentSource::File { path: plain(found), chosen });
                }
                Err(error) => gathered.unreadable.push(Unreadable {
                    file: error.path.to_string_lossy().into_owned(),
                    problem: error.to_string(),
                }),
            }
        }
    }
    gathered.inputs.sort();
    let mut seen = HashSet::new();
    gathered.inputs.retain(|input| seen.insert(identity(input)));
    gathered
}

pub fn format_of(path: &Path) -> Format {
    Format::of_file_name(&path.to_string_lossy())
}

/// Reads a regular file up to the size limit. Refuses pipes and devices, which could block or never end.
pub fn read_file(path: &Path) -> Result<Vec<u8>, DocumentReadError> {
    toolgate_store::read_bounded(path, MAX_FILE_BYTES as u64).map_err(|error| match error {
        toolgate_store::ReadError::TooLarge { .. } => DocumentReadError::TooLarge,
        other => DocumentReadError::Failed(other.to_string()),
    })
}

fn read_stdin() -> Result<Vec<u8>, DocumentReadError> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| DocumentReadError::Failed(format!("standard input cannot be read: {error}")))?;
    if bytes.len() > MAX_FILE_BYTES { Err(DocumentReadError::TooLarge) } else { Ok(bytes) }
}

/// Without the `./` that walking `.` puts in front.
fn plain(path: PathBuf) -> PathBuf {
    path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path)
}

pub fn has_known_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["json", "yaml", "yml"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// Resolves symlinks; otherwise each symlink would be reported as a duplicate tool.
fn identity(input: &DocumentSource) -> PathBuf {
    match input {
        DocumentSource::Stdin => PathBuf::from("-"),
        DocumentSource::File { path, .. } => fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
    }
}
