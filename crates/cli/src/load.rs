//! Which files are meant, and what do they hold? Paths in, bytes out, in an order that does not depend on the disk.

use std::{
    collections::HashSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use toolgate_spec::{Format, MAX_FILE_BYTES};
use walkdir::WalkDir;

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

/// A path that could not be read, and why; both still untrusted.
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

/// Why there are no bytes: the file is refused for its size, or the system said no.
#[derive(Debug)]
pub enum ReadError {
    TooLarge,
    Io(io::Error),
}

impl Input {
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
            Self::Stdin => bounded(io::stdin().lock()),
            Self::File { path, .. } => read_file(path),
        }
    }
}

/// Every file behind the paths, each once, sorted. Folders are walked; links are followed, for a tool behind a
/// link is still a tool.
pub fn gather(paths: &[PathBuf]) -> Gathered {
    let mut gathered = Gathered::default();
    for path in paths {
        if path.as_os_str() == "-" {
            gathered.inputs.push(Input::Stdin);
        } else if path.is_dir() {
            walk(path, &mut gathered);
        } else {
            gathered.inputs.push(Input::File { path: path.clone(), chosen: Chosen::ByName });
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
    let metadata = fs::metadata(path).map_err(ReadError::Io)?;
    if metadata.is_dir() {
        return Err(ReadError::Io(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder")));
    }
    if !metadata.is_file() {
        return Err(ReadError::Io(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file")));
    }
    if metadata.len() > MAX_FILE_BYTES as u64 {
        return Err(ReadError::TooLarge);
    }
    bounded(fs::File::open(path).map_err(ReadError::Io)?)
}

fn bounded(source: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    source.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    if bytes.len() > MAX_FILE_BYTES { Err(ReadError::TooLarge) } else { Ok(bytes) }
}

fn walk(root: &Path, gathered: &mut Gathered) {
    let entries = WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter();
    for entry in entries.filter_entry(|entry| entry.file_name() != ".git") {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(entry) if has_known_extension(entry.path()) => {
                let path = entry.into_path();
                gathered.inputs.push(Input::File { path, chosen: Chosen::ByWalking });
            }
            Ok(_) => {}
            Err(error) if loses_nothing(&error) => {}
            Err(error) => {
                let file = error.path().unwrap_or(root).to_string_lossy().into_owned();
                let problem = error
                    .io_error()
                    .map_or_else(|| "the folder cannot be walked".to_owned(), ToString::to_string);
                gathered.unreadable.push(Unreadable { file, problem });
            }
        }
    }
}

/// A link back to a folder that we are in shows only what is read anyway; a link to nowhere that is not named
/// like a document holds none.
fn loses_nothing(error: &walkdir::Error) -> bool {
    if error.loop_ancestor().is_some() {
        return true;
    }
    let dangling = error
        .io_error()
        .is_some_and(|io| io.kind() == io::ErrorKind::NotFound || io.raw_os_error() == Some(ELOOP));
    dangling && error.depth() > 0 && !error.path().is_some_and(has_known_extension)
}

fn has_known_extension(path: &Path) -> bool {
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

/// Linux' number for a link that leads to itself; the standard library has no stable name for it.
const ELOOP: i32 = 40;
