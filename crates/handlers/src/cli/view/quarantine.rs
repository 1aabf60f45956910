//! Did a command make something that is blocked? A path that is not there cannot be covered, so that a command can make it
//! where it may write: by opening, moving, linking, or as a folder. What is there after the run and was not before is set
//! aside: renamed where it lies, so that nobody takes it for what it pretends to be and nothing is lost. Detection, not
//! prevention: between the making and the end of the command it is there.

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
use toolgate_gate::{Looks, NO_PLACE};

use super::{
    blocked_paths::{After, Blocked, Found},
    budget::Stop,
    deferred_work::{Chore, Later},
};
use crate::cli::run::launch::{Access, Bind, Refused};

/// Looks again when a command has ended, also when its call was cancelled.
#[derive(Debug)]
pub struct Watch {
    before: Option<Before>,
    has_begun: bool,
}

/// What was there when the command started.
#[derive(Debug)]
struct Before {
    blocked: Arc<Blocked>,
    present: BTreeSet<PathBuf>,
    closed: BTreeSet<PathBuf>,
    /// The numbers of folders.
    folders: BTreeSet<u64>,
    /// Where the command may write: the path, and the folder itself.
    roots: Vec<(PathBuf, File)>,
}

/// What a look after a run found, and did.
#[derive(Debug, Default)]
pub struct Swept {
    pub made: Vec<Refused>,
    /// Why there may be more.
    pub trouble: Option<String>,
}

impl Swept {
    const fn trouble(why: String) -> Self {
        Self { made: Vec::new(), trouble: Some(why) }
    }
}

impl Watch {
    pub fn begin(blocked: &Arc<Blocked>, binds: &[Bind], found: Found) -> Result<Self, String> {
        let writable = binds.iter().filter(|bind| bind.access == Access::Write);
        let held = writable.map(|bind| bind.held.try_clone().map(|held| (bind.path.clone(), held)));
        let roots: Vec<(PathBuf, File)> = held
            .collect::<io::Result<_>>()
            .map_err(|error| format!("a folder cannot be held any longer: {}", error.kind()))?;
        if blocked.is_empty() || roots.is_empty() {
            return Ok(Self { before: None, has_begun: false });
        }
        if CANCELLED.is_full() {
            return Err("too many cancelled calls are still being cleared up after; try again".to_owned());
        }
        let present = found.present();
        let Found { closed, folders, .. } = found;
        let before = Before { blocked: Arc::clone(blocked), present, closed, folders, roots };
        Ok(Self { before: Some(before), has_begun: false })
    }

    /// To be said before anything is started: from here on somebody has to look.
    pub fn command_begins(&mut self) {
        self.has_begun = true;
    }

    /// Looks, and sets aside. What cannot be looked at now is left to whoever looks after cancelled calls.
    pub async fn end(mut self, looks: &Looks, caller: &str) -> Swept {
        if self.before.is_none() {
            return Swept::default();
        }
        let due = Instant::now() + looks.longest();
        // Nothing is taken before there is a place for it: dropped here, it is still looked at.
        let place = looks.enter(caller, due).await;
        let Some((place, before)) = place.and_then(|place| Some((place, self.before.take()?))) else {
            return Swept::trouble(NO_PLACE.to_owned());
        };
        // A disk that does not answer keeps the thread, and not the call.
        match timeout_at(due, place.spawn(move || before.sweep())).await {
            Ok(Ok(swept)) => swept,
            Ok(Err(error)) => Swept::trouble(error.to_string()),
            Err(_) => Swept::trouble(format!("its folders did not answer within {:?}", looks.longest())),
        }
    }

    /// What a call that ends like this leaves to be looked at.
    fn left_over(&mut self) -> Option<Before> {
        self.before.take().filter(|_| self.has_begun)
    }
}

impl Drop for Watch {
    /// A cancelled call must not leave what a finished one may not. Nobody is left to be told.
    fn drop(&mut self) {
        if let Some(before) = self.left_over() {
            CANCELLED.put(before);
        }
    }
}

impl Chore for Before {
    fn is_like(&self, other: &Self) -> bool {
        let paths = |one: &Self| one.roots.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        Arc::ptr_eq(&self.blocked, &other.blocked) && paths(self) == paths(other)
    }

    /// New is what was not there before the one or before the other.
    fn join(&mut self, other: Self) {
        self.present.retain(|path| other.present.contains(path));
        self.closed.retain(|path| other.closed.contains(path));
        self.folders.retain(|number| other.folders.contains(number));
    }

    fn run(self) {
        drop(self.sweep());
    }
}

impl Before {
    fn sweep(&self) -> Swept {
        let places: Vec<PathBuf> = self.roots.iter().map(|(path, _)| path.clone()).collect();
        let open_up = |folder: &Path| self.open_up(folder);
        let after = After { folders: &self.folders, closed: &self.closed, open_up: &open_up };
        // To the end, whoever waits: what was made has to be set aside.
        let found = self.blocked.look(&places, Some(&after), &Stop::default());
        let now = found.present();
        let new = now.difference(&self.present).filter(|path| !after.was_closed(path));
        // Outer ones come first, and take what lies in them along.
        Swept { made: new.filter_map(|path| self.set_aside(path)).collect(), trouble: found.trouble }
    }

    /// Opens a folder, and those above it, that a command, whose user is ours, has closed: by handle, and through no link.
    fn open_up(&self, path: &Path) {
        let around = self.roots.iter().filter(|(root, _)| path.starts_with(root));
        let Some((root, held)) = around.max_by_key(|(root, _)| root.components().count()) else { return };
        let (Ok(below), Ok(mut folder)) = (path.strip_prefix(root), held.try_clone()) else { return };
        // Whether it helped is seen by whoever tries again.
        let _ = let_owner_in(folder.as_fd(), READ_AND_PASS);
        for name in below {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(next) = rustix::fs::openat(&folder, name, flags, Mode::empty()) else { return };
            folder = next.into();
            let _ = let_owner_in(folder.as_fd(), READ_AND_PASS);
        }
    }

    /// `None` for what lies elsewhere, or went with something above it.
    fn set_aside(&self, path: &Path) -> Option<Refused> {
        let around = self.roots.iter().filter(|(root, _)| path.starts_with(root) && path != root);
        let (root, folder) = around.max_by_key(|(root, _)| root.components().count())?;
        let aside = match rename(folder, path.strip_prefix(root).ok()?) {
            Ok(name) => Ok(path.with_file_name(name)),
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => Err(error.kind()),
        };
        Some(Refused::Made { path: path.to_owned(), aside })
    }
}

/// Beneath a folder that is held, through no link: a command may have put links on the way.
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
    // A command, whose user is ours, may have forbidden it; or it is somebody's folder that is to stay as it is.
    if given == Err(Errno::ACCESS) {
        let changed = let_owner_in(folder.as_fd(), OWNERS)?;
        given = give_name();
        if let Some(mode) = changed {
            set_mode(folder.as_fd(), mode)?;
        }
    }
    given?;
    Ok(aside)
}

/// Gives an open folder's owner all rights where one of `needed` lacks; tells the mode that it had then.
fn let_owner_in(folder: BorrowedFd<'_>, needed: u32) -> io::Result<Option<u32>> {
    let about = rustix::fs::fstat(folder)?;
    let mode = about.st_mode & ALL_MODES;
    if mode & needed == needed || !FileType::from_raw_mode(about.st_mode).is_dir() {
        return Ok(None);
    }
    set_mode(folder, mode | OWNERS)?;
    Ok(Some(mode))
}

fn set_mode(folder: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    // The link leads to the very folder that is open.
    let itself = format!("/proc/self/fd/{}", folder.as_raw_fd());
    fs::set_permissions(itself, Permissions::from_mode(mode))
}

fn new_name(name: &OsStr, number: u32) -> OsString {
    let end = format!("{MARK}{number:08x}");
    // A name as long as names can be is lost rather than kept in place.
    let start = if name.len() + end.len() > LONGEST_NAME { OsStr::new("") } else { name };
    OsString::from_vec([start.as_bytes(), end.as_bytes()].concat())
}

/// The path that something had before it was set aside, if only once or again and again.
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

/// What stands before the mark.
fn split_mark(name: &[u8]) -> Option<&[u8]> {
    let (rest, number) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
    let start = rest.strip_suffix(MARK.as_bytes())?;
    number.iter().all(u8::is_ascii_hexdigit).then_some(start)
}

/// Was its name too long to be kept when it was set aside? Then nobody knows what it was, and it may be anything blocked.
pub fn has_lost_its_name(path: &Path) -> bool {
    let first = original(path);
    let name = first.as_deref().unwrap_or(path).file_name().map(OsStr::as_bytes);
    name.and_then(split_mark).is_some_and(<[u8]>::is_empty)
}

/// What once lay at this path, and what may have.
pub fn set_aside_from(path: &Path, stop: &Stop) -> Vec<PathBuf> {
    let entries = path.parent().and_then(|above| fs::read_dir(above).ok());
    let entries = entries.into_iter().flatten().take_while(|_| !stop.is_asked());
    let beside = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let is_from_here = |one: &PathBuf| original(one).is_some_and(|original| original == path);
    beside.filter(|one| is_from_here(one) || has_lost_its_name(one)).collect()
}

const MARK: &str = ".refused-";
const DIGITS: usize = 8;
const LONGEST_NAME: usize = 255;
/// Rights of a folder's owner: all, and those that looking into it needs.
const OWNERS: u32 = 0o700;
const READ_AND_PASS: u32 = 0o500;
const ALL_MODES: u32 = 0o7777;

/// How long what a cancelled call started may take to die.
const LAST_BREATH: Duration = Duration::from_secs(2);
/// Beyond so many no command that may write is started.
const MOST_CANCELLED: usize = 64;

/// Where nobody looked yet, after calls that were cancelled.
static CANCELLED: Later<Before> = Later::new(LAST_BREATH, MOST_CANCELLED);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_set_aside_is_known_again() {
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

    fn before(present: &[&str]) -> Before {
        Before {
            blocked: Arc::new(Blocked::new(None, &[]).unwrap()),
            present: present.iter().map(PathBuf::from).collect(),
            closed: BTreeSet::new(),
            folders: BTreeSet::new(),
            roots: Vec::new(),
        }
    }

    #[test]
    fn a_call_that_was_cancelled_before_anything_ran_leaves_nothing_to_be_looked_at() {
        for has_begun in [false, true] {
            let mut watch = Watch { before: Some(before(&[])), has_begun: false };
            if has_begun {
                watch.command_begins();
            }
            assert_eq!(watch.left_over().is_some(), has_begun);
        }
    }

    #[test]
    fn of_two_cancelled_calls_what_either_may_have_made_is_new() {
        let mut one = before(&["/w/both", "/w/made-by-the-second"]);
        one.join(before(&["/w/both", "/w/made-by-the-first"]));
        assert_eq!(one.present, BTreeSet::from([PathBuf::from("/w/both")]));
        assert!(!one.is_like(&before(&[])), "another tool");
    }
}
