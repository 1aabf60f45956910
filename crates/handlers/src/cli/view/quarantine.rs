//! Quarantines blocked paths that a command created. A path that does not exist cannot be hidden, so a command can
//! create it where it may write. New blocked paths are renamed after the run: nothing is lost, and no program takes
//! them for the real file. This is detection, not prevention: the path exists until the command ends.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{self, File, Permissions},
    io::{self, ErrorKind},
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd},
        unix::{
            ffi::{OsStrExt as _, OsStringExt as _},
            fs::PermissionsExt as _,
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::{
    fs::{FileType, Mode, OFlags, RenameFlags, ResolveFlags},
    io::Errno,
};
use tokio::time::{Instant, timeout_at};
use toolgate_gate::{DiskCheckPermits, NO_DISK_CHECK_PERMIT, StopFlag};
use toolgate_sandbox::{Access, Bind, Source};

use super::{
    blocked_paths::{BlockedFindings, BlockedPaths, TreeBefore},
    deferred_work::{DeferredQueue, DeferredTask},
};
use crate::cli::report::denial::Denial;

/// Searches again after a command ended, also if its call was cancelled.
#[derive(Debug)]
pub struct BlockedPathWatch {
    before: Option<TreeSnapshot>,
    has_begun: bool,
}

/// The tree when the command started.
#[derive(Debug)]
struct TreeSnapshot {
    blocked: Arc<BlockedPaths>,
    present: BTreeSet<PathBuf>,
    closed: BTreeSet<PathBuf>,
    /// Inodes of directories.
    folders: BTreeSet<u64>,
    /// Paths that the command may write to, with their open directories.
    roots: Vec<(PathBuf, File)>,
}

/// The result of the search after a run.
#[derive(Debug, Default)]
pub struct SweepResult {
    pub made: Vec<Denial>,
    /// Why the search is incomplete.
    pub trouble: Option<String>,
}

impl SweepResult {
    const fn trouble(why: String) -> Self {
        Self { made: Vec::new(), trouble: Some(why) }
    }
}

impl BlockedPathWatch {
    pub fn begin(
        blocked: &Arc<BlockedPaths>,
        binds: &[Bind],
        found: BlockedFindings,
    ) -> Result<Self, String> {
        let writable = binds.iter().filter(|bind| bind.access == Access::Write);
        let held = writable.map(|bind| {
            let held = match &bind.source {
                Source::Opened(held) => held.try_clone()?.into(),
                Source::Path(path) => File::open(path)?,
            };
            Ok((bind.at.clone(), held))
        });
        let roots: Vec<(PathBuf, File)> = held
            .collect::<io::Result<_>>()
            .map_err(|error| format!("a directory cannot be kept open: {}", error.kind()))?;
        if blocked.is_empty() || roots.is_empty() {
            return Ok(Self { before: None, has_begun: false });
        }
        if CANCELLED.is_full() {
            return Err("too many cancelled calls are still being cleaned up; try again".to_owned());
        }
        let present = found.present();
        let BlockedFindings { closed, folders, .. } = found;
        let before = TreeSnapshot { blocked: Arc::clone(blocked), present, closed, folders, roots };
        Ok(Self { before: Some(before), has_begun: false })
    }

    /// Must be called before the command starts. From then on the search is due.
    pub fn command_starts(&mut self) {
        self.has_begun = true;
    }

    /// Searches and quarantines. If that is not possible now, the queue for cancelled calls does it later.
    pub async fn end(mut self, disk_checks: &DiskCheckPermits, caller: &str) -> SweepResult {
        if self.before.is_none() {
            return SweepResult::default();
        }
        let due = Instant::now() + disk_checks.timeout();
        // Take the snapshot only with a permit; if dropped before, the queue still gets it.
        let place = disk_checks.enter(caller, due).await;
        let Some((place, before)) = place.and_then(|place| Some((place, self.before.take()?))) else {
            return SweepResult::trouble(NO_DISK_CHECK_PERMIT.to_owned());
        };
        // A disk that does not respond blocks the thread, but not the call.
        match timeout_at(due, place.spawn(move || before.sweep())).await {
            Ok(Ok(sweep)) => sweep,
            Ok(Err(error)) => SweepResult::trouble(error.to_string()),
            Err(_) => SweepResult::trouble(format!(
                "its directories did not respond within {:?}",
                disk_checks.timeout()
            )),
        }
    }

    /// The snapshot that still has to be searched.
    fn left_over(&mut self) -> Option<TreeSnapshot> {
        self.before.take().filter(|_| self.has_begun)
    }
}

impl Drop for BlockedPathWatch {
    /// A cancelled call must be cleaned up like a finished one. There is no caller left to inform.
    fn drop(&mut self) {
        if let Some(before) = self.left_over() {
            CANCELLED.put(before);
        }
    }
}

impl DeferredTask for TreeSnapshot {
    fn is_same_work(&self, other: &Self) -> bool {
        let paths = |one: &Self| one.roots.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        Arc::ptr_eq(&self.blocked, &other.blocked) && paths(self) == paths(other)
    }

    /// A path is new if either snapshot lacks it.
    fn join(&mut self, other: Self) {
        self.present.retain(|path| other.present.contains(path));
        self.closed.retain(|path| other.closed.contains(path));
        self.folders.retain(|number| other.folders.contains(number));
    }

    fn run(self) {
        drop(self.sweep());
    }
}

impl TreeSnapshot {
    fn sweep(&self) -> SweepResult {
        let places: Vec<PathBuf> = self.roots.iter().map(|(path, _)| path.clone()).collect();
        let reopen = |folder: &Path| self.reopen(folder);
        let after = TreeBefore { folders: &self.folders, closed: &self.closed, reopen: &reopen };
        // Not stopped by anyone: blocked paths must be quarantined.
        let found = self.blocked.look(&places, Some(&after), &StopFlag::default());
        let now = found.present();
        let new = now.difference(&self.present).filter(|path| !after.was_closed(path));
        // Outer paths come first and take their contents along.
        SweepResult { made: new.filter_map(|path| self.set_aside(path)).collect(), trouble: found.trouble }
    }

    /// Restores access to directories that a command closed, since it runs as the same user. Uses open handles and
    /// follows no symlinks.
    fn reopen(&self, path: &Path) {
        let around = self.roots.iter().filter(|(root, _)| path.starts_with(root));
        let Some((root, held)) = around.max_by_key(|(root, _)| root.components().count()) else { return };
        let (Ok(below), Ok(mut folder)) = (path.strip_prefix(root), held.try_clone()) else { return };
        // The next attempt shows whether it helped.
        let _ = grant_owner(folder.as_fd(), READ_AND_SEARCH);
        for name in below {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(next) = rustix::fs::openat(&folder, name, flags, Mode::empty()) else { return };
            folder = next.into();
            let _ = grant_owner(folder.as_fd(), READ_AND_SEARCH);
        }
    }

    /// `None` if it lies elsewhere or moved with an outer path.
    fn set_aside(&self, path: &Path) -> Option<Denial> {
        let around = self.roots.iter().filter(|(root, _)| path.starts_with(root) && path != root);
        let (root, folder) = around.max_by_key(|(root, _)| root.components().count())?;
        let aside = match rename(folder, path.strip_prefix(root).ok()?) {
            Ok(name) => Ok(path.with_file_name(name)),
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => Err(error.kind()),
        };
        Some(Denial::Created { path: path.to_owned(), aside })
    }
}

/// Resolved beneath an open directory without symlinks, because the command may have placed some.
fn rename(root: &File, path: &Path) -> io::Result<OsString> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let folder = rustix::fs::openat2(root, above, flags, Mode::empty(), how)?;
    let aside = new_name(name, getrandom::u32().map_err(io::Error::other)?);
    let give_name =
        || rustix::fs::renameat_with(&folder, name, &folder, aside.as_os_str(), RenameFlags::NOREPLACE);
    let mut given = give_name();
    // The command may have removed the permission, since it runs as the same user. The mode is restored afterwards.
    if given == Err(Errno::ACCESS) {
        let changed = grant_owner(folder.as_fd(), OWNERS)?;
        given = give_name();
        if let Some(mode) = changed {
            set_mode(folder.as_fd(), mode)?;
        }
    }
    given?;
    Ok(aside)
}

/// Gives the owner of an open directory all permissions if one of `needed` is missing. Returns the previous mode in
/// that case.
fn grant_owner(folder: BorrowedFd<'_>, needed: u32) -> io::Result<Option<u32>> {
    let about = rustix::fs::fstat(folder)?;
    let mode = about.st_mode & ALL_MODES;
    if mode & needed == needed || !FileType::from_raw_mode(about.st_mode).is_dir() {
        return Ok(None);
    }
    set_mode(folder, mode | OWNERS)?;
    Ok(Some(mode))
}

fn set_mode(folder: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    // This path leads to exactly the open directory.
    let itself = format!("/proc/self/fd/{}", folder.as_raw_fd());
    fs::set_permissions(itself, Permissions::from_mode(mode))
}

fn new_name(name: &OsStr, number: u32) -> OsString {
    let end = format!("{MARK}{number:08x}");
    // A name of maximal length is dropped, otherwise the file would stay in place.
    let start = if name.len() + end.len() > LONGEST_NAME { OsStr::new("") } else { name };
    OsString::from_vec([start.as_bytes(), end.as_bytes()].concat())
}

/// The path before it was quarantined, once or several times.
pub fn original(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.as_bytes();
    let mut start = name;
    while let Some(before) = without_mark(start) {
        start = before;
    }
    (start != name).then(|| path.with_file_name(OsStr::from_bytes(start)))
}

fn without_mark(name: &[u8]) -> Option<&[u8]> {
    split_mark(name).filter(|start| !start.is_empty())
}

/// The part before the quarantine suffix.
fn split_mark(name: &[u8]) -> Option<&[u8]> {
    let (rest, number) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
    let start = rest.strip_suffix(MARK.as_bytes())?;
    number.iter().all(u8::is_ascii_hexdigit).then_some(start)
}

/// Whether its name was too long to keep. It may be any blocked file.
pub fn has_lost_its_name(path: &Path) -> bool {
    let first = original(path);
    let name = first.as_deref().unwrap_or(path).file_name().map(OsStr::as_bytes);
    name.and_then(split_mark).is_some_and(<[u8]>::is_empty)
}

/// Files that were quarantined from this path, or may have been.
pub fn set_aside_from(path: &Path, stop: &StopFlag) -> Vec<PathBuf> {
    let entries = path.parent().and_then(|above| fs::read_dir(above).ok());
    let entries = entries.into_iter().flatten().take_while(|_| !stop.is_set());
    let beside = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let is_from_here = |one: &PathBuf| original(one).is_some_and(|original| original == path);
    beside.filter(|one| is_from_here(one) || has_lost_its_name(one)).collect()
}

const MARK: &str = ".refused-";
const DIGITS: usize = 8;
const LONGEST_NAME: usize = 255;
/// Permissions of a directory's owner: all, and those needed to list it.
const OWNERS: u32 = 0o700;
const READ_AND_SEARCH: u32 = 0o500;
const ALL_MODES: u32 = 0o7777;

/// How long the processes of a cancelled call may take to die.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// Beyond this number, no command that may write is started.
const MOST_CANCELLED: usize = 64;

/// The pending searches of cancelled calls.
static CANCELLED: DeferredQueue<TreeSnapshot> = DeferredQueue::new(EXIT_GRACE, MOST_CANCELLED);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarantined_name_is_recognised() {
        for name in [".env", "a b", "x.refused-1", "ä"] {
            let aside = Path::new("/w").join(new_name(OsStr::new(name), 0xab));
            assert_eq!(original(&aside), Some(Path::new("/w").join(name)), "{name}");
            let again = aside.with_file_name(new_name(aside.file_name().unwrap(), 0xcd));
            assert_eq!(original(&again), original(&aside), "{name}");
        }
        for path in ["/w/.env", "/w/.refused-00000000", "/w/x.refused-0000000", "/w/x.refused-0000000g", "/"]
        {
            assert_eq!(original(Path::new(path)), None, "{path}");
        }
        let long = "n".repeat(LONGEST_NAME);
        let lost = new_name(OsStr::new(&long), 1);
        assert_eq!(lost, ".refused-00000001");
        for name in [new_name(&lost, 2), lost] {
            assert!(has_lost_its_name(&Path::new("/w").join(&name)), "{}", name.display());
        }
        for path in ["/w/.env.refused-00000001", "/w/.refused-0000000", "/w/.refused-0000000g", "/"] {
            assert!(!has_lost_its_name(Path::new(path)), "{path}");
        }
    }

    fn before(present: &[&str]) -> TreeSnapshot {
        TreeSnapshot {
            blocked: Arc::new(BlockedPaths::new(None, &[]).unwrap()),
            present: present.iter().map(PathBuf::from).collect(),
            closed: BTreeSet::new(),
            folders: BTreeSet::new(),
            roots: Vec::new(),
        }
    }

    #[test]
    fn call_cancelled_before_the_run_needs_no_search() {
        for has_begun in [false, true] {
            let mut watch = BlockedPathWatch { before: Some(before(&[])), has_begun: false };
            if has_begun {
                watch.command_starts();
            }
            assert_eq!(watch.left_over().is_some(), has_begun);
        }
    }

    #[test]
    fn merged_snapshots_treat_paths_missing_in_either_as_new() {
        let mut one = before(&["/w/both", "/w/made-by-the-second"]);
        one.join(before(&["/w/both", "/w/made-by-the-first"]));
        assert_eq!(one.present, BTreeSet::from([PathBuf::from("/w/both")]));
        assert!(!one.is_same_work(&before(&[])), "another tool");
    }
}
