//! Tool documents of the workspace, kept between reloads.
//!
//! A file is parsed again only if its bytes differ: the digest of the bytes that were read decides, never the metadata.
//! After a change that the watcher reported by path, only that file is read.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest as _, Sha256};
use toolgate_config::Writable;
use toolgate_spec::{FileKind, Format, MAX_FILE_BYTES, ToolCheck, check};
use toolgate_store::{FileChanges, WalkError, Walked};

use crate::parallel::in_parallel;

/// One tool of a file.
#[derive(Clone, Debug)]
pub struct Document {
    pub file: Arc<Path>,
    pub check: ToolCheck,
}

/// A file or directory that cannot be used, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnreadFile {
    pub file: PathBuf,
    pub problem: String,
}

/// Every tool document of the configured paths, in a stable order.
#[derive(Debug, Default)]
pub struct Documents {
    roots: Vec<ToolRoot>,
    /// Files that were parsed by the last `read` or `update`.
    pub parsed: usize,
}

/// A configured file or directory.
#[derive(Debug)]
struct ToolRoot {
    path: PathBuf,
    /// Without symlinks, because the watcher reports real paths. `None`: it does not exist.
    real: Option<PathBuf>,
    files: BTreeMap<PathBuf, DocumentFile>,
    /// Symlinks and files with several hard links. They can change without a report about the path here.
    aliased: BTreeSet<PathBuf>,
}

/// The files whose tools an update may have changed.
#[derive(Debug)]
pub enum DocumentChanges {
    Everything,
    Files(Vec<TouchedFile>),
}

/// The tools of a file before and after an update.
#[derive(Debug)]
pub struct TouchedFile {
    /// The index of the configured path that contains it.
    pub root: usize,
    pub before: Arc<[Arc<Document>]>,
    pub after: Arc<[Arc<Document>]>,
    /// It cannot be used now.
    pub is_unread: bool,
}

#[derive(Clone, Debug)]
struct DocumentFile {
    /// The digest of the parsed bytes. `None`: they could not be read.
    digest: Option<[u8; 32]>,
    is_aliased: bool,
    documents: Arc<[Arc<Document>]>,
    unread: Option<UnreadFile>,
}

impl Documents {
    /// Reads the changed files. Reads everything if the configured paths changed, or if `changes` does not name all changes.
    pub fn update(&mut self, paths: &[PathBuf], changes: &FileChanges) -> DocumentChanges {
        let is_same = self.roots.iter().map(|root| &root.path).eq(paths);
        let files = match changes {
            FileChanges::Paths(named) if is_same => self.files_of(named),
            _ => None,
        };
        if let Some(files) = files {
            DocumentChanges::Files(self.read_again(files))
        } else {
            self.read_all(paths);
            DocumentChanges::Everything
        }
    }

    /// All tools in order, each with the index of its configured path and its index in the file.
    pub fn tools(&self) -> impl Iterator<Item = (usize, usize, &Arc<Document>)> {
        let files = self
            .roots
            .iter()
            .enumerate()
            .flat_map(|(at, root)| root.files.values().map(move |file| (at, file)));
        files.flat_map(|(at, file)| {
            file.documents.iter().enumerate().map(move |(index, document)| (at, index, document))
        })
    }

    pub fn unread(&self) -> impl Iterator<Item = &UnreadFile> {
        self.files().filter_map(|file| file.unread.as_ref())
    }

    fn files(&self) -> impl Iterator<Item = &DocumentFile> {
        self.roots.iter().flat_map(|root| root.files.values())
    }

    fn read_all(&mut self, paths: &[PathBuf]) {
        let mut old = std::mem::take(&mut self.roots);
        let (mut roots, mut found) = (Vec::new(), Vec::new());
        for (at, path) in paths.iter().enumerate() {
            let known = old.iter_mut().find(|root| root.path == *path);
            let mut known = known.map(|root| std::mem::take(&mut root.files)).unwrap_or_default();
            for one in toolgate_store::walk([path.clone()], &is_document) {
                let before = known.remove(path_of(&one));
                found.push((at, one, before));
            }
            let real = fs::canonicalize(path).ok();
            roots.push(ToolRoot {
                path: path.clone(),
                real,
                files: BTreeMap::new(),
                aliased: BTreeSet::new(),
            });
        }
        let read = in_parallel(&found, |(at, one, before)| {
            let is_named = paths.get(*at).is_some_and(|path| path == path_of(one));
            read_found(one, is_named, before.as_ref())
        });
        self.parsed = 0;
        for ((at, one, _), (file, is_parsed)) in found.iter().zip(read) {
            self.parsed += usize::from(is_parsed);
            if let (Some(root), Some(file)) = (roots.get_mut(*at), file) {
                root.insert(path_of(one).to_owned(), file);
            }
        }
        self.roots = roots;
    }

    /// The configured names of the changed files, by root. `None`: a directory changed, or a root was replaced.
    fn files_of(&self, changed: &BTreeSet<PathBuf>) -> Option<Vec<(usize, PathBuf)>> {
        let mut files = Vec::new();
        for (at, root) in self.roots.iter().enumerate() {
            let real = root.real.as_ref()?;
            if fs::canonicalize(&root.path).ok().as_ref() != Some(real) {
                return None;
            }
            for path in changed {
                if real != path && real.starts_with(path) {
                    return None;
                }
                let Ok(below) = path.strip_prefix(real) else { continue };
                let file = if below == Path::new("") { root.path.clone() } else { root.path.join(below) };
                // Known files below it show that it was a directory.
                let next = root
                    .files
                    .range::<Path, _>((std::ops::Bound::Excluded(file.as_path()), std::ops::Bound::Unbounded))
                    .next();
                if next.is_some_and(|(next, _)| next.starts_with(&file)) || file.is_dir() {
                    return None;
                }
                files.push((at, file));
            }
            files.extend(root.aliased.iter().map(|path| (at, path.clone())));
        }
        files.sort_unstable();
        files.dedup();
        Some(files)
    }

    fn read_again(&mut self, files: Vec<(usize, PathBuf)>) -> Vec<TouchedFile> {
        self.parsed = 0;
        let mut touched = Vec::new();
        for (at, file) in files {
            let Some(root) = self.roots.get_mut(at) else { continue };
            let is_named = file == root.path;
            let walked = if is_named {
                Walked::File(Ok(file.clone()))
            } else {
                toolgate_store::walk_one(&root.path, &file, &is_document)
            };
            let before = root.remove(&file);
            let (read, is_parsed) = match walked {
                Walked::File(found) => read_found(&found, is_named, before.as_ref()),
                // It is a directory now, and the watcher reports its files.
                Walked::Nothing | Walked::Directory => (None, false),
            };
            self.parsed += usize::from(is_parsed);
            touched.extend(TouchedFile::between(at, before.as_ref(), read.as_ref()));
            if let Some(read) = read {
                root.insert(file, read);
            }
        }
        touched
    }
}

impl TouchedFile {
    /// `None`: the file still has the same tools.
    fn between(root: usize, before: Option<&DocumentFile>, after: Option<&DocumentFile>) -> Option<Self> {
        if let (Some(before), Some(after)) = (before, after)
            && before.digest.is_some()
            && before.digest == after.digest
        {
            return None;
        }
        let documents = |file: Option<&DocumentFile>| file.map(|file| Arc::clone(&file.documents));
        Some(Self {
            root,
            before: documents(before).unwrap_or_default(),
            after: documents(after).unwrap_or_default(),
            is_unread: after.is_some_and(|file| file.unread.is_some()),
        })
    }
}

impl ToolRoot {
    fn insert(&mut self, path: PathBuf, file: DocumentFile) {
        if file.is_aliased {
            self.aliased.insert(path.clone());
        }
        self.files.insert(path, file);
    }

    fn remove(&mut self, path: &Path) -> Option<DocumentFile> {
        self.aliased.remove(path);
        self.files.remove(path)
    }
}

fn path_of(found: &Result<PathBuf, WalkError>) -> &Path {
    match found {
        Ok(path) => path,
        Err(error) => &error.path,
    }
}

/// The file, and whether it was parsed. `None`: it contains no tool.
fn read_found(
    found: &Result<PathBuf, WalkError>,
    is_named: bool,
    before: Option<&DocumentFile>,
) -> (Option<DocumentFile>, bool) {
    match found {
        Ok(file) => read_file(file, is_named, before),
        Err(error) => (Some(unusable(&error.path, error.to_string())), false),
    }
}

fn unusable(file: &Path, problem: String) -> DocumentFile {
    let unread = Some(UnreadFile { file: file.to_owned(), problem });
    DocumentFile { digest: None, is_aliased: false, documents: Arc::default(), unread }
}

fn read_file(file: &Path, is_named: bool, before: Option<&DocumentFile>) -> (Option<DocumentFile>, bool) {
    if let Some(open) = Writable::check(file).filter(Writable::is_refused) {
        return (Some(unusable(file, open.to_string())), false);
    }
    let is_aliased =
        fs::symlink_metadata(file).map_or(true, |metadata| metadata.is_symlink() || metadata.nlink() > 1);
    let bytes = match toolgate_store::read_bounded(file, MAX_FILE_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) => return (Some(unusable(file, error.to_string())), false),
    };
    let digest: [u8; 32] = Sha256::digest(&bytes).into();
    if let Some(before) = before.filter(|before| before.digest == Some(digest)) {
        return (Some(DocumentFile { is_aliased, ..before.clone() }), false);
    }
    let checked = check(&bytes, Format::of_file_name(&file.to_string_lossy()));
    if !is_named && !checked.holds_a_tool(&bytes) {
        return (None, true);
    }
    let is_unread =
        checked.kind == FileKind::Unreadable || checked.findings.iter().any(toolgate_spec::Finding::is_error);
    let unread = is_unread.then(|| {
        let problem =
            checked.findings.first().map_or_else(|| "no tool".to_owned(), |one| one.message.clone());
        UnreadFile { file: file.to_owned(), problem }
    });
    let shared: Arc<Path> = Arc::from(file);
    let document = |check| Arc::new(Document { file: Arc::clone(&shared), check });
    let documents = checked.tools.into_iter().map(document).collect();
    (Some(DocumentFile { digest: Some(digest), is_aliased, documents, unread }), true)
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["json", "yaml", "yml"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

#[cfg(test)]
mod tests;
