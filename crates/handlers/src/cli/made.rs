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
        fd::AsRawFd as _,
        unix::{
            ffi::{OsStrExt as _, OsStringExt as _},
            fs::PermissionsExt as _,
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, RenameFlags, ResolveFlags},
    io::Errno,
};

use super::{
    hidden::{Blocked, Found},
    launch::{Access, Bind, Refused},
};

/// Looks again when a command has ended, also when its call was cancelled.
#[derive(Debug)]
pub struct Watch(Option<Before>);

/// What was there when the command started.
#[derive(Debug)]
struct Before {
    blocked: Arc<Blocked>,
    present: BTreeSet<PathBuf>,
    /// Where the command may write: the path, and the folder itself.
    roots: Vec<(PathBuf, File)>,
}

impl Watch {
    pub fn begin(blocked: &Arc<Blocked>, binds: &[Bind], found: Found) -> Result<Self, String> {
        let writable = binds.iter().filter(|bind| bind.access == Access::Write);
        let held = writable.map(|bind| bind.held.try_clone().map(|held| (bind.path.clone(), held)));
        let roots: Vec<(PathBuf, File)> = held
            .collect::<io::Result<_>>()
            .map_err(|error| format!("a folder cannot be held any longer: {}", error.kind()))?;
        if blocked.is_empty() || roots.is_empty() {
            return Ok(Self(None));
        }
        Ok(Self(Some(Before { blocked: Arc::clone(blocked), present: found.present(), roots })))
    }

    /// What was made, or why that cannot be told.
    pub async fn end(mut self) -> Result<Vec<Refused>, String> {
        let Some(before) = self.0.take() else { return Ok(Vec::new()) };
        let looked = tokio::task::spawn_blocking(move || before.sweep());
        looked.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl Drop for Watch {
    /// A cancelled call must not leave what a finished one may not. Nobody is left to be told.
    fn drop(&mut self) {
        let Some(before) = self.0.take() else { return };
        let sweep = move || {
            thread::sleep(LAST_BREATH);
            let _ = before.sweep();
        };
        // Where no thread is to be had, the next call finds it there, hides it, and cannot know who made it.
        let _ = thread::Builder::new().name("blocked-paths".to_owned()).spawn(sweep);
    }
}

impl Before {
    fn sweep(&self) -> Result<Vec<Refused>, String> {
        let places: Vec<PathBuf> = self.roots.iter().map(|(path, _)| path.clone()).collect();
        let now = self.blocked.look(&places)?.present();
        // Outer ones come first, and take what lies in them along.
        Ok(now.difference(&self.present).filter_map(|path| self.set_aside(path)).collect())
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
    let given = give_name();
    if given == Err(Errno::ACCESS) {
        // A command, whose user is ours, may have forbidden it. The link leads to the very folder that is open.
        let itself = format!("/proc/self/fd/{}", folder.as_raw_fd());
        fs::set_permissions(itself, Permissions::from_mode(OWNERS))?;
        give_name()?;
    } else {
        given?;
    }
    Ok(aside)
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
    let (rest, number) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
    let start = rest.strip_suffix(MARK.as_bytes())?;
    (!start.is_empty() && number.iter().all(u8::is_ascii_hexdigit)).then_some(start)
}

/// What once lay at this path.
pub fn set_aside_from(path: &Path) -> Vec<PathBuf> {
    let entries = path.parent().and_then(|above| fs::read_dir(above).ok());
    let beside = entries.into_iter().flatten().filter_map(|entry| entry.ok().map(|entry| entry.path()));
    beside.filter(|one| original(one).is_some_and(|original| original == path)).collect()
}

const MARK: &str = ".refused-";
const DIGITS: usize = 8;
const LONGEST_NAME: usize = 255;
/// The mode of a folder that only its owner uses.
const OWNERS: u32 = 0o700;

/// How long what a cancelled call started may take to die.
const LAST_BREATH: Duration = Duration::from_secs(2);

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
        assert_eq!(new_name(OsStr::new(&long), 1), ".refused-00000001");
    }
}
