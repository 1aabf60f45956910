//! Which tool documents are there? Files and folders in, every tool of theirs out, in an order that does not change.

use std::path::{Path, PathBuf};

use toolgate_config::Writable;
use toolgate_spec::{FileKind, Format, MAX_FILE_BYTES, ToolCheck, check};

/// One tool of a file.
#[derive(Clone, Debug)]
pub struct Document {
    pub file: PathBuf,
    pub check: ToolCheck,
}

/// A file or folder that could not be used, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unread {
    pub file: PathBuf,
    pub problem: String,
}

/// Every tool behind the paths. What was found by walking and is no tool is passed over.
pub fn read(paths: &[PathBuf]) -> (Vec<Document>, Vec<Unread>) {
    let (mut documents, mut unread) = (Vec::new(), Vec::new());
    for path in paths {
        for found in toolgate_store::walk([path.clone()], &is_document) {
            match found {
                Ok(file) => read_file(&file, file == *path, &mut documents, &mut unread),
                Err(error) => unread.push(Unread { problem: error.to_string(), file: error.path }),
            }
        }
    }
    (documents, unread)
}

fn read_file(file: &Path, is_named: bool, documents: &mut Vec<Document>, unread: &mut Vec<Unread>) {
    if let Some(open) = Writable::check(file).filter(Writable::is_refused) {
        unread.push(Unread { file: file.to_owned(), problem: open.to_string() });
        return;
    }
    let bytes = match toolgate_store::read_bounded(file, MAX_FILE_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) => {
            unread.push(Unread { file: file.to_owned(), problem: error.to_string() });
            return;
        }
    };
    let checked = check(&bytes, Format::of_file_name(&file.to_string_lossy()));
    if !is_named && !checked.holds_a_tool(&bytes) {
        return;
    }
    if checked.kind == FileKind::Unreadable || checked.findings.iter().any(toolgate_spec::Finding::is_error) {
        let problem =
            checked.findings.first().map_or_else(|| "no tool".to_owned(), |one| one.message.clone());
        unread.push(Unread { file: file.to_owned(), problem });
    }
    documents.extend(checked.tools.into_iter().map(|check| Document { file: file.to_owned(), check }));
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["json", "yaml", "yml"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}
