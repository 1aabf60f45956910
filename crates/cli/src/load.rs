//! Which files are meant, and what do they hold? Paths in, bytes out, in an order that does not depend on the disk.

use std::{
    collections::HashSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use toolgate_spec::{Format, MAX_FILE_BYTES};

/// Something to read.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Input {
    Stdin,
    File { path: PathBuf, chosen: Chosen },
}

/// Who picked the file decides whether a file without a tool is worth a word.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Chosen {
    ByName,
    ByWalking,
}

/// A path that could not be read, and a sentence that says which and why; both still untrusted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unreadable {
    pub file: String,
    pub problem: String,
}

#[derive(Debug, Default)]
pub struct Gathered {
    pub inputs: Vec<Input>,
    pub unreadable: Vec<Unreadable>,
}

/// Why there are no bytes: the file is refused for its size, or cannot be read at all; says which file.
#[derive(Debug)]
pub enum ReadError {
    TooLarge,
    Failed(String),
}

impl Input {
    /// A path from the command line; `-` is standard input.
    pub fn named(path: &Path) -> Self {
        if path.as_os_str() == "-" {
            return Self::Stdin;
        }
        Self::File { path: path.to_owned(), chosen: Chosen::ByName }
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

    /// The content, or why there is none. Never more than a document may have, and never waits for a pipe.
    pub fn read(&self) -> Result<Vec<u8>, ReadError> {
        match self {
            Self::Stdin => read_stdin(),
            Self::File { path, .. } => read_file(path),
        }
    }
}

/// Every file behind the paths, each once, sorted. Folders are walked.
pub fn gather(paths: &[PathBuf]) -> Gathered {
    let mut gathered = Gathered::default();
    for path in paths {
        if path.as_os_str() == "-" {
            gathered.inputs.push(Input::Stdin);
            continue;
        }
        for found in toolgate_store::walk([path.clone()], &has_known_extension) {
            match found {
                Ok(found) => {
                    let chosen = if found == *path { Chosen::ByName } else { Chosen::ByWalking };
                    gathered.inputs.push(Input::File { path: plain(found), chosen });
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

/// One file, bounded, and only if it is a file: a pipe or device would keep us waiting or never end.
pub fn read_file(path: &Path) -> Result<Vec<u8>, ReadError> {
    toolgate_store::read_bounded(path, MAX_FILE_BYTES as u64).map_err(|error| match error {
        toolgate_store::ReadError::TooLarge { .. } => ReadError::TooLarge,
        other => ReadError::Failed(other.to_string()),
    })
}

fn read_stdin() -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ReadError::Failed(format!("standard input cannot be read: {error}")))?;
    if bytes.len() > MAX_FILE_BYTES { Err(ReadError::TooLarge) } else { Ok(bytes) }
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

/// Two names of one file are one file, or every link would be reported as a duplicate tool.
fn identity(input: &Input) -> PathBuf {
    match input {
        Input::Stdin => PathBuf::from("-"),
        Input::File { path, .. } => fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
    }
}
