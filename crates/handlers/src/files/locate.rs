//! What does a path lead to, before anything is done with it?

use std::fs::File;

use super::{
    Files,
    access::Found,
    error::{Fault, FileError, Reason, quoted},
    kernel,
    place::{Place, below, join, outside_workspace},
};

/// What is to be done with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wanted {
    Read,
    Write,
}

/// Where a granted path leads. What was judged is what is held.
#[derive(Debug)]
pub struct Located {
    /// Absolute, without links.
    pub real: String,
    /// `None` where nothing is there. Of something to be written that does not exist: the deepest folder above it that does.
    pub held: Option<Held>,
}

#[derive(Debug)]
pub struct Held {
    pub handle: File,
    pub path: String,
    pub is_folder: bool,
}

impl Files {
    /// Judges a path as reading or writing it would, and holds what is there.
    pub fn locate(&self, path: &str, wanted: Wanted) -> Result<Located, FileError> {
        match wanted {
            Wanted::Read => self.reading("path", || {
                self.go_on()?;
                let place = self.roots.readable(path)?;
                Ok(match self.look(path)? {
                    Some(found) => Located { real: found.real.clone(), held: Some(held(found)) },
                    None => Located { real: would_be(&place, path), held: None },
                })
            }),
            Wanted::Write => self.writing("path", || self.locate_for_writing(path)),
        }
    }

    fn locate_for_writing(&self, asked: &str) -> Result<Located, Fault> {
        self.go_on()?;
        let place = self.writable(asked)?;
        let mut inside = place.inside().to_owned();
        loop {
            let open = || kernel::handle(&place.root.dir, &inside);
            let found = self.admit(&place.path, asked, outside_workspace, &open);
            if let Some(found) = found.map_err(|fault| about_its_folder(fault, &place, &inside, asked))? {
                let held = held(found);
                // What is yet to be made lies below the real name of the folder that is there.
                let missing = below(place.inside(), &inside).filter(|rest| !rest.is_empty());
                let real = match missing {
                    Some(rest) if inside != "." => format!("{}/{rest}", held.path),
                    _ if inside == "." && place.inside() != "." => {
                        format!("{}/{}", held.path, place.inside())
                    }
                    _ => held.path.clone(),
                };
                self.judge.check(&real, &self.roots, asked)?;
                return Ok(Located { real, held: Some(held) });
            }
            match inside.rsplit_once('/') {
                Some((above, _)) => inside = above.to_owned(),
                None if inside == "." => return Err(outside_workspace(asked)),
                None => ".".clone_into(&mut inside),
            }
        }
    }
}

/// The path itself passed. Where the folder does not that is held in its place, that is what has to be told.
fn about_its_folder(fault: Fault, place: &Place<'_>, held: &str, asked: &str) -> Fault {
    if fault.reason != Reason::PathNotAllowed || held == place.inside() {
        return fault;
    }
    let path = quoted(asked);
    let own = place.inside().rsplit_once('/').map_or(".", |(folder, _)| folder);
    let message = if held == own {
        format!(
            "{path} is not there, and to make it its folder has to be among the paths allowed to this tool, too"
        )
    } else {
        format!("{path} cannot be made: its folder is missing; create the folder first")
    };
    Fault::new(Reason::PathNotAllowed, message)
}

/// Where something that is not there would be read, once links in the folders above it are followed.
fn would_be(place: &Place<'_>, asked: &str) -> String {
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

fn held(found: Found) -> Held {
    Held { is_folder: found.metadata.is_dir(), handle: found.handle, path: found.real }
}
