//! Blocks files that are blocked under another name.
//!
//! A hard link has no path to the other names of its file. When a hard-linked file is opened, the blocked files are
//! collected once per call and compared by inode. Blocked files below the granted directories and the gateway's own
//! files are searched completely; otherwise all hard-linked files are denied. Blocked directories elsewhere may be as
//! large as `/usr`, so only their first entries are checked.

use std::{
    collections::BTreeSet,
    fs::{self, Metadata},
    io::{self, ErrorKind},
    path::PathBuf,
};

use super::{
    Files,
    error::{FileFault, FileReason, quoted},
};
use crate::hard_links::{FileNumber, SearchCoverage, file_number, is_hard_linked};

/// The blocked files that have another name.
#[derive(Debug)]
pub(super) enum BlockedLinks {
    Known(BTreeSet<FileNumber>),
    /// The search was incomplete.
    Unknown,
}

impl Files {
    /// Rejects a file that also has a blocked name.
    pub(super) fn check_hard_link(&self, about: &Metadata, asked: &str) -> Result<(), FileFault> {
        if !is_hard_linked(about) {
            return Ok(());
        }
        let blocked_links = if let Some(known) = self.blocked_links.get() {
            known
        } else {
            let searched = self.search_blocked_links()?;
            self.blocked_links.get_or_init(|| searched)
        };
        let why = match blocked_links {
            BlockedLinks::Known(blocked) if !blocked.contains(&file_number(about)) => return Ok(()),
            BlockedLinks::Known(_) => "is a hard link to a file that is blocked for this tool",
            BlockedLinks::Unknown => {
                "is a hard link, and there are too many files to check whether it is blocked; use a copy, or grant less"
            }
        };
        Err(FileFault::new(FileReason::PathBlocked, format!("{} {why}", quoted(asked))))
    }

    fn search_blocked_links(&self) -> Result<BlockedLinks, FileFault> {
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
        let whole = self.search_below(within, MOST_WITHIN, &mut blocked)?;
        for start in elsewhere {
            self.search_below(BTreeSet::from([start]), MOST_ELSEWHERE, &mut blocked)?;
        }
        Ok(match whole {
            SearchCoverage::Complete => BlockedLinks::Known(blocked),
            SearchCoverage::Partial => BlockedLinks::Unknown,
        })
    }

    /// Does not follow symlinks: their targets have their own path.
    fn search_below(
        &self,
        starts: BTreeSet<PathBuf>,
        most: usize,
        blocked: &mut BTreeSet<FileNumber>,
    ) -> Result<SearchCoverage, FileFault> {
        let mut waiting: Vec<PathBuf> = starts.into_iter().collect();
        let mut seen = waiting.len();
        let mut looked = SearchCoverage::Complete;
        while let Some(path) = waiting.pop() {
            self.check_deadline()?;
            let about = match fs::symlink_metadata(&path) {
                Ok(about) => about,
                Err(error) => {
                    looked = after(looked, &error);
                    continue;
                }
            };
            if !about.is_dir() {
                if is_hard_linked(&about) && self.judge.blocks(&path.to_string_lossy(), &self.roots) {
                    blocked.insert(file_number(&about));
                }
                continue;
            }
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) => {
                    looked = after(looked, &error);
                    continue;
                }
            };
            for entry in entries {
                seen += 1;
                if seen > most {
                    // Entries already queued are still checked.
                    looked = SearchCoverage::Partial;
                    break;
                }
                match entry {
                    Ok(entry) => waiting.push(entry.path()),
                    Err(error) => looked = after(looked, &error),
                }
            }
        }
        Ok(looked)
    }
}

/// A path that does not exist or that the gateway may not open hides nothing.
fn after(coverage: SearchCoverage, error: &io::Error) -> SearchCoverage {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => coverage,
        _ => SearchCoverage::Partial,
    }
}

const MOST_WITHIN: usize = 200_000;
const MOST_ELSEWHERE: usize = 2_000;
