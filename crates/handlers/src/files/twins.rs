//! Is this file blocked under another of its names?
//!
//! A hard link has no path back to the other names of its file, so what is blocked is looked for and compared by number,
//! once for each call and only when a file with several names is opened. What is blocked below the granted folders, and
//! the gateway's own files, are looked at to the last one, or everything with several names is refused. Blocked folders
//! elsewhere may be as large as `/usr`: of each only the first entries are looked at.

use std::{
    collections::BTreeSet,
    fs::{self, Metadata},
    io::{self, ErrorKind},
    path::PathBuf,
};

use super::{
    Files,
    error::{Fault, Reason, quoted},
};
use crate::several_names::{Id, has_several_names, id};

/// The blocked files that have another name somewhere.
#[derive(Debug)]
pub(super) enum Twins {
    Known(BTreeSet<Id>),
    /// There is too much to look at, or it cannot be looked at.
    Unknown,
}

impl Files {
    /// Refuses a file that has a blocked name as well.
    pub(super) fn check_other_names(&self, about: &Metadata, asked: &str) -> Result<(), Fault> {
        if !has_several_names(about) {
            return Ok(());
        }
        let twins = if let Some(known) = self.twins.get() {
            known
        } else {
            let searched = self.search_twins()?;
            self.twins.get_or_init(|| searched)
        };
        let why = match twins {
            Twins::Known(blocked) if !blocked.contains(&id(about)) => return Ok(()),
            Twins::Known(_) => "is another name of a file that is blocked for this tool",
            Twins::Unknown => {
                "is a hard link, and there is too much to tell whether its file is blocked; use a copy of it, or grant less"
            }
        };
        Err(Fault::new(Reason::PathBlocked, format!("{} {why}", quoted(asked))))
    }

    fn search_twins(&self) -> Result<Twins, Fault> {
        let mut blocked = BTreeSet::new();
        let mut within: BTreeSet<PathBuf> = self.own.iter().cloned().collect();
        let mut elsewhere = BTreeSet::new();
        for start in self.judge.blocked_starts() {
            let roots = || self.roots.iter().map(|root| PathBuf::from(&root.real));
            if roots().any(|root| start.starts_with(root)) {
                within.insert(start);
            } else if roots().any(|root| root.starts_with(&start)) {
                within.extend(roots().filter(|root| root.starts_with(&start)));
            } else {
                elsewhere.insert(start);
            }
        }
        let whole = self.look_below(within, MOST_WITHIN, &mut blocked)?;
        for start in elsewhere {
            self.look_below(BTreeSet::from([start]), MOST_ELSEWHERE, &mut blocked)?;
        }
        Ok(match whole {
            Looked::Everywhere => Twins::Known(blocked),
            Looked::InPart => Twins::Unknown,
        })
    }

    /// Links are not followed: what they lead to has a place of its own.
    fn look_below(
        &self,
        starts: BTreeSet<PathBuf>,
        most: usize,
        blocked: &mut BTreeSet<Id>,
    ) -> Result<Looked, Fault> {
        let mut waiting: Vec<PathBuf> = starts.into_iter().collect();
        let mut seen = waiting.len();
        let mut looked = Looked::Everywhere;
        while let Some(path) = waiting.pop() {
            self.go_on()?;
            let about = match fs::symlink_metadata(&path) {
                Ok(about) => about,
                Err(error) => {
                    looked = looked.after(&error);
                    continue;
                }
            };
            if !about.is_dir() {
                if has_several_names(&about) && self.judge.blocks(&path.to_string_lossy(), &self.roots) {
                    blocked.insert(id(&about));
                }
                continue;
            }
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) => {
                    looked = looked.after(&error);
                    continue;
                }
            };
            for entry in entries {
                seen += 1;
                if seen > most {
                    // What is waiting is looked at all the same.
                    looked = Looked::InPart;
                    break;
                }
                match entry {
                    Ok(entry) => waiting.push(entry.path()),
                    Err(error) => looked = looked.after(&error),
                }
            }
        }
        Ok(looked)
    }
}

#[derive(Clone, Copy)]
enum Looked {
    Everywhere,
    InPart,
}

impl Looked {
    /// Nothing is hidden by something that is not there, or that the gateway may not look into.
    fn after(self, error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => self,
            _ => Self::InPart,
        }
    }
}

const MOST_WITHIN: usize = 200_000;
const MOST_ELSEWHERE: usize = 2_000;
