//! Resolves paths before they are used.

use std::fs::File;

use super::{
    Files,
    access::OpenEntry,
    error::{FileError, FileFault, FileReason, quoted},
    kernel,
    roots::{CleanPath, below, join, outside_workspace},
};

/// The intended access.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileAccess {
    Read,
    Write,
}

/// The real path of a granted path. The checked file stays open.
#[derive(Debug)]
pub struct LocatedPath {
    /// Absolute, without symlinks.
    pub real: String,
    /// `None` if nothing exists. For a file to be created: the deepest existing directory above it.
    pub held: Option<HeldPath>,
}

#[derive(Debug)]
pub struct HeldPath {
    pub handle: File,
    pub path: String,
    pub is_folder: bool,
}

impl Files {
    /// Checks a path as a read or write would, and keeps it open.
    pub fn locate(&self, path: &str, wanted: FileAccess) -> Result<LocatedPath, FileError> {
        match wanted {
            FileAccess::Read => self.reading("path", || {
                self.check_deadline()?;
                let place = self.roots.readable(path)?;
                Ok(match self.look(path)? {
                    Some(found) => LocatedPath { real: found.real.clone(), held: Some(held(found)) },
                    None => LocatedPath { real: would_be(&place, path), held: None },
                })
            }),
            FileAccess::Write => self.writing("path", || self.locate_for_writing(path)),
        }
    }

    fn locate_for_writing(&self, asked: &str) -> Result<LocatedPath, FileFault> {
        self.check_deadline()?;
        let place = self.writable(asked)?;
        let mut inside = place.inside().to_owned();
        loop {
            let open = || kernel::handle(&place.root.dir, &inside);
            let found = self.admit(&place.path, asked, outside_workspace, &open);
            if let Some(found) = found.map_err(|fault| about_its_folder(fault, &place, &inside, asked))? {
                let held = held(found);
                // The missing part lies below the real path of the existing directory.
                let missing = below(place.inside(), &inside).filter(|rest| !rest.is_empty());
                let real = match missing {
                    Some(rest) if inside != "." => format!("{}/{rest}", held.path),
                    _ if inside == "." && place.inside() != "." => {
                        format!("{}/{}", held.path, place.inside())
                    }
                    _ => held.path.clone(),
                };
                self.judge.check(&real, &self.roots, asked)?;
                return Ok(LocatedPath { real, held: Some(held) });
            }
            match inside.rsplit_once('/') {
                Some((above, _)) => inside = above.to_owned(),
                None if inside == "." => return Err(outside_workspace(asked)),
                None => ".".clone_into(&mut inside),
            }
        }
    }
}

/// The path itself is allowed, but the directory opened in its place is not, so the message is about the directory.
fn about_its_folder(fault: FileFault, place: &CleanPath<'_>, held: &str, asked: &str) -> FileFault {
    if fault.reason != FileReason::PathNotAllowed || held == place.inside() {
        return fault;
    }
    let path = quoted(asked);
    let own = place.inside().rsplit_once('/').map_or(".", |(folder, _)| folder);
    let message = if held == own {
        format!(
            "{path} does not exist; to create it, its folder must be among the paths allowed to this tool, too"
        )
    } else {
        format!("{path} cannot be created: its folder is missing; create the folder first")
    };
    FileFault::new(FileReason::PathNotAllowed, message)
}

/// The path that a missing file would be read from, with the symlinks of its directories resolved.
fn would_be(place: &CleanPath<'_>, asked: &str) -> String {
    let mut inside = place.inside();
    while let Some((above, _)) = inside.rsplit_once('/') {
        inside = above;
        let Ok(folder) = kernel::handle(&place.root.dir, above) else { continue };
        let rest = below(place.inside(), above).unwrap_or_default();
        if let Ok(Some(real)) = kernel::real_path(&folder, asked) {
            return join(&real, rest);
        }
    }
    place.path.clone()
}

fn held(found: OpenEntry) -> HeldPath {
    HeldPath { is_folder: found.metadata.is_dir(), handle: found.handle, path: found.real }
}
