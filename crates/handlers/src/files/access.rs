//! May this path be used, and what is really there?

use std::{
    fs::{File, Metadata},
    io,
};

use rustix::io::Errno;

use super::{
    Files,
    error::{Fault, Reason, quoted},
    kernel,
    place::{Place, below, escapes, join, outside_workspace},
};

/// Something that exists and that the policy grants, held by a handle.
#[derive(Debug)]
pub(super) struct Found {
    pub handle: File,
    pub metadata: Metadata,
    /// Where it was asked for: absolute, clean, below a root.
    pub path: String,
    /// Where it is.
    pub real: String,
}

/// A folder of the workspace, held open, and the name in it that a write is about.
#[derive(Debug)]
pub(super) struct Target {
    pub folder: File,
    /// Where the folder is.
    folder_path: String,
    pub name: String,
    /// Where the file was asked for: absolute, clean, below the workspace.
    pub path: String,
}

impl Target {
    /// Where the file is, or would be.
    pub fn real(&self) -> String {
        join(&self.folder_path, &self.name)
    }

    /// Called once the name has changed: a power cut must not bring the old one back.
    pub fn keep_name(&self, asked: &str) -> Result<(), Fault> {
        self.folder.sync_all().map_err(|_| {
            let message =
                format!("{} has changed, but a power cut may bring the old one back", quoted(asked));
            Fault::new(Reason::Io, message)
        })
    }
}

#[derive(Clone, Copy)]
pub(super) enum Parents {
    Create,
    MustExist,
}

impl Files {
    /// `None` where nothing is there.
    pub(super) fn look(&self, asked: &str) -> Result<Option<Found>, Fault> {
        let place = self.roots.readable(asked)?;
        self.judge.check(&place.path, &self.roots, asked)?;
        self.admit(&place.path, asked, escapes, &|| kernel::handle(&place.root.dir, place.inside()))
    }

    pub(super) fn must_look(&self, asked: &str) -> Result<Found, Fault> {
        self.look(asked)?.ok_or_else(|| Fault::io(asked, &Errno::NOENT.into()))
    }

    /// Opens, and judges what was opened by the path that it has now.
    pub(super) fn admit(
        &self,
        path: &str,
        asked: &str,
        escape: fn(&str) -> Fault,
        open: &dyn Fn() -> io::Result<File>,
    ) -> Result<Option<Found>, Fault> {
        for _ in 0..MOST_TRIES {
            let handle = match open() {
                Ok(handle) => handle,
                Err(error) if is_absent(&error) => return Ok(None),
                Err(error) => return Err(opening(asked, &error, escape)),
            };
            // Replaced since it was opened, as every write does: the name leads to another file by now.
            let Some(real) = kernel::real_path(&handle, asked)? else { continue };
            if self.roots.iter().all(|root| below(&real, &root.real).is_none()) {
                return Err(escape(asked));
            }
            self.judge.check(&real, &self.roots, asked)?;
            let metadata = kernel::metadata(&handle, asked)?;
            // A link that is held itself leads nowhere; whoever would write to it is told so.
            if !metadata.is_symlink() {
                self.check_judged(path, &real, asked)?;
            }
            self.check_other_names(&metadata, asked)?;
            return Ok(Some(Found { handle, metadata, path: path.into(), real }));
        }
        Err(Fault::new(Reason::Io, format!("{} is replaced faster than it can be opened", quoted(asked))))
    }

    pub(super) fn writable(&self, asked: &str) -> Result<Place<'_>, Fault> {
        let place = self.roots.writable(asked)?;
        self.judge.check(&place.path, &self.roots, asked)?;
        Ok(place)
    }

    /// `None` where the folder does not exist and is not to be made.
    pub(super) fn target(
        &self,
        place: &Place<'_>,
        parents: Parents,
        asked: &str,
    ) -> Result<Option<Target>, Fault> {
        let (parent, name) = place.inside().rsplit_once('/').unwrap_or((".", place.inside()));
        if matches!(name, "" | "." | "..") {
            return Err(kernel::not_a_file(asked));
        }
        let opened = match (kernel::folder(&place.root.dir, parent), parents) {
            (Err(error), Parents::Create) if is_absent(&error) => self.make_folders(place, parent, asked)?,
            (Err(error), Parents::MustExist) if is_absent(&error) => return Ok(None),
            (opened, _) => opened.map_err(|error| opening(asked, &error, outside_workspace))?,
        };
        let folder_path = self.folder_path(&opened, asked)?;
        let target = Target { folder: opened, folder_path, name: name.into(), path: place.path.clone() };
        self.judge.check(&target.real(), &self.roots, asked)?;
        Ok(Some(target))
    }

    /// What a target is now. A link is refused, for a write would change something else than the path that was named.
    pub(super) fn at(&self, target: &Target, asked: &str) -> Result<Option<Found>, Fault> {
        let open = || kernel::child(&target.folder, target.name.as_ref());
        let found = self.admit(&target.path, asked, outside_workspace, &open)?;
        if found.is_none() {
            self.check_judged(&target.path, &target.real(), asked)?;
        }
        if found.as_ref().is_some_and(|found| found.metadata.is_symlink()) {
            let message = format!("{} is a symbolic link; write to the file itself", quoted(asked));
            return Err(Fault::new(Reason::WriteThroughSymlink, message));
        }
        Ok(found)
    }

    /// Makes what is missing of a folder, one name after the other, each beneath the workspace and judged before it is
    /// made.
    fn make_folders(&self, place: &Place<'_>, inside: &str, asked: &str) -> Result<File, Fault> {
        let failed = |error: io::Error| opening(asked, &error, outside_workspace);
        let workspace = &self.roots.workspace.dir;
        let mut reached = kernel::folder(workspace, ".").map_err(failed)?;
        let mut length = 0;
        for name in inside.split('/') {
            length += name.len();
            let so_far = inside.get(..length).unwrap_or(inside);
            reached = match kernel::folder(workspace, so_far) {
                Err(error) if is_absent(&error) => {
                    let path = join(&self.folder_path(&reached, asked)?, name);
                    self.judge.check(&path, &self.roots, asked)?;
                    self.check_way(&place.path, &path, asked)?;
                    match rustix::fs::mkdirat(&reached, name, FOLDER_MODE.into()) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(Fault::io(asked, &error.into())),
                    }
                    kernel::folder(workspace, so_far).map_err(failed)?
                }
                opened => opened.map_err(failed)?,
            };
            length += 1;
        }
        Ok(reached)
    }

    fn folder_path(&self, folder: &File, asked: &str) -> Result<String, Fault> {
        let path = kernel::real_path(folder, asked)?;
        let path = path.ok_or_else(|| Fault::io(asked, &Errno::NOENT.into()))?;
        match below(&path, &self.roots.workspace.real) {
            Some(_) => Ok(path),
            None => Err(outside_workspace(asked)),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn opening(asked: &str, error: &io::Error, escape: fn(&str) -> Fault) -> Fault {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        // EXDEV: the path left the root. ELOOP: a chain of links without end, or a magic link of `/proc`.
        Some(Errno::XDEV | Errno::LOOP) => escape(asked),
        Some(Errno::NAMETOOLONG) => kernel::too_long(asked),
        _ => kernel::unsupported(error).unwrap_or_else(|| Fault::io(asked, error)),
    }
}

const MOST_TRIES: usize = 100;
const FOLDER_MODE: u32 = 0o755;
