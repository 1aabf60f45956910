//! Memory and processes of a command bounded together, by a control group (version 2) that was delegated to us.
//!
//! The kernel wants processes in leaves only, so that the group we are in cannot hold another one; the one above it must
//! be ours, as with `Delegate=yes` and `DelegateSubgroup=` of systemd. Where it is not, there is no group.

use std::{
    fs,
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags},
    process::Pid,
};

use super::CommandLimits;

/// A group for one command. Dropping it kills who is left in it and removes it.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folder: PathBuf,
    /// Its lock says that somebody answers for the group. Numbers of processes would not: those of another namespace of
    /// processes mean nothing here.
    _held: OwnedFd,
}

impl ControlGroup {
    /// `None` where nothing was delegated to us.
    pub(crate) fn make(limits: &CommandLimits) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::make_below(&delegated(Path::new("/"), &own)?, limits).ok()
    }

    fn make_below(above: &Path, limits: &CommandLimits) -> io::Result<Self> {
        let make = |turn| Self::make_in(above, &format!("{PREFIX}{}-{turn}", std::process::id()), limits);
        // A name may be held by a supervisor in another namespace of processes.
        (1..NAMES).fold(make(0), |made, turn| made.or_else(|_| make(turn)))
    }

    pub(super) fn make_in(above: &Path, name: &str, limits: &CommandLimits) -> io::Result<Self> {
        fs::write(above.join("cgroup.subtree_control"), "+memory +pids")?;
        let folder = above.join(name);
        match fs::create_dir(&folder) {
            // Left by a supervisor that was killed, whose number is ours now: whoever is in it is nobody's.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                drop(Self::hold(folder.clone())?);
                fs::create_dir(&folder)?;
            }
            made => made?,
        }
        let group = Self::hold(folder)?;
        group.set("memory.max", &limits.memory_bytes.to_string())?;
        // Without this a command would push its own pages, and those of others, out to the disk.
        let _ = group.set("memory.swap.max", "0");
        group.set("memory.oom.group", "1")?;
        // The first process of the jail is one of them.
        group.set("pids.max", &limits.processes.saturating_add(1).to_string())?;
        Ok(group)
    }

    /// An error where somebody else answers for it.
    fn hold(folder: PathBuf) -> io::Result<Self> {
        let held = rustix::fs::open(
            &folder,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive)?;
        // Whoever held it before may have removed it, and another made one of the same name.
        let (ours, named) = (rustix::fs::fstat(&held)?, fs::symlink_metadata(&folder)?);
        if (ours.st_dev, ours.st_ino) != (named.dev(), named.ino()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { folder, _held: held })
    }

    pub(crate) fn take_in(&self, process: Pid) -> io::Result<()> {
        self.set("cgroup.procs", &process.as_raw_nonzero().to_string())
    }

    /// Whether the kernel killed somebody in here for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|count| count.trim().parse::<u64>().ok()).is_some_and(|count| count > 0)
    }

    pub(crate) fn kill(&self) {
        // Only where the kernel has put such a file.
        if let Ok(mut file) = fs::File::options().write(true).open(self.folder.join("cgroup.kill")) {
            let _ = file.write_all(b"1");
        }
    }

    fn set(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.folder.join(file), text)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        self.kill();
        // Whoever was killed leaves the group a little later.
        for _ in 0..TRIES {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(PAUSE),
                _ => return,
            }
        }
    }
}

/// Makes a group as for a command, and removes it.
pub(crate) fn try_out(above: &Path) -> io::Result<()> {
    let limits =
        CommandLimits { memory_bytes: 1 << 20, cpu_seconds: 1, processes: 1, open_files: 1, file_bytes: 1 };
    ControlGroup::make_below(above, &limits).map(drop)
}

/// Ends the groups of supervisors that were killed before they could, with whoever is left in them.
pub(crate) fn sweep() {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if let Some(above) = delegated(Path::new("/"), &own) {
        sweep_in(&above);
    }
}

fn sweep_in(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_one_of_ours) {
            drop(ControlGroup::hold(entry.path()));
        }
    }
}

/// Strictly, for an operator may have called a group after us, such as the one that the gateway is in.
fn is_one_of_ours(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, turn)| process.parse::<u32>().is_ok() && turn.parse::<u32>().is_ok())
}

/// The group above ours, if we may make groups in it and it bounds memory and processes.
pub(crate) fn delegated(host: &Path, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // The top of the hierarchy is nobody's to delegate.
    let above = Path::new(own).parent().filter(|above| !above.as_os_str().is_empty())?;
    let above = host.join("sys/fs/cgroup").join(above);
    let controllers = fs::read_to_string(above.join("cgroup.controllers")).ok()?;
    let has = |wanted| controllers.split_ascii_whitespace().any(|controller| controller == wanted);
    let may = rustix::fs::access(&above, rustix::fs::Access::WRITE_OK).is_ok()
        && rustix::fs::access(above.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok();
    (has("memory") && has("pids") && may && is_given_away(&above, host)).then_some(above)
}

/// Who may write to a group may still find there those of others: root everywhere, a user among the services of the own session. What
/// is delegated is marked by systemd. Where there is none, it is a group that somebody else made our own.
fn is_given_away(group: &Path, host: &Path) -> bool {
    let is_marked = |mark: &&str| {
        let mut value = [0; 2];
        let length = rustix::fs::getxattr(group, *mark, &mut value).unwrap_or(0);
        value.get(..length) == Some(b"1")
    };
    let own = rustix::process::geteuid();
    let is_own = || fs::metadata(group).is_ok_and(|group| group.uid() == own.as_raw());
    let is_managed = || host.join("run/systemd/system").exists();
    MARKS.iter().any(is_marked) || (!own.is_root() && is_own() && !is_managed())
}

const PREFIX: &str = "toolgate-command-";
/// How many are tried before a command runs without a group.
const NAMES: u32 = 4;
/// The second can be read without privileges, and set by hand: `setfattr -n user.delegate -v 1`.
const MARKS: [&str; 2] = ["trusted.delegate", "user.delegate"];
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// As systemd does.
#[cfg(test)]
pub(crate) fn mark(group: &Path) {
    rustix::fs::setxattr(group, "user.delegate", b"1", rustix::fs::XattrFlags::empty()).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> CommandLimits {
        CommandLimits { memory_bytes: 1 << 20, cpu_seconds: 1, processes: 7, open_files: 1, file_bytes: 1 }
    }

    #[test]
    fn only_a_group_above_us_that_is_ours_will_do() {
        let host = tempfile::tempdir().unwrap();
        let above = host.path().join("sys/fs/cgroup/service");
        fs::create_dir_all(above.join("gateway")).unwrap();
        let found = |own: &str| delegated(host.path(), own);
        assert_eq!(found("0::/service/gateway\n"), None, "no controllers");
        fs::write(above.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert_eq!(found("0::/service/gateway\n"), None, "not ours to move processes into");
        fs::write(above.join("cgroup.procs"), "").unwrap();
        if rustix::process::geteuid().is_root() {
            assert_eq!(found("0::/service/gateway\n"), None, "root may write everywhere");
        }
        mark(&above);
        assert_eq!(found("0::/service/gateway\n"), Some(above.clone()));
        assert_eq!(found("0::/service\n"), None, "above it is the top");
        assert_eq!(found("0::/\n"), None);
        assert_eq!(found("4:memory:/service/gateway\n"), None, "version 1");
        fs::write(above.join("cgroup.controllers"), "cpu\n").unwrap();
        assert_eq!(found("0::/service/gateway\n"), None, "without memory");
    }

    /// Where systemd manages the groups, those that it delegates are marked, and those of a user's other services are not.
    #[test]
    fn what_is_delegated_is_marked_where_somebody_marks_it() {
        let host = tempfile::tempdir().unwrap();
        let group = host.path().join("group");
        fs::create_dir(&group).unwrap();
        assert_eq!(is_given_away(&group, host.path()), !rustix::process::geteuid().is_root());
        fs::create_dir_all(host.path().join("run/systemd/system")).unwrap();
        assert!(!is_given_away(&group, host.path()));
        mark(&group);
        assert!(is_given_away(&group, host.path()));
    }

    #[test]
    fn the_limits_are_written_and_the_kill_is_read() {
        let above = tempfile::tempdir().unwrap();
        let group = ControlGroup::make_in(above.path(), "one", &limits()).unwrap();
        let read = |file: &str| fs::read_to_string(above.path().join("one").join(file)).unwrap();
        assert_eq!((read("memory.max"), read("pids.max")), ("1048576".into(), "8".into()));
        assert!(!group.ran_out_of_memory());
        fs::write(above.path().join("one/memory.events"), "low 0\noom 1\noom_kill 1\n").unwrap();
        assert!(group.ran_out_of_memory());
    }

    /// As where the group above holds processes, and the kernel gives it no groups with limits.
    #[test]
    fn a_group_that_cannot_be_made_is_no_group() {
        let above = tempfile::tempdir().unwrap();
        try_out(above.path()).unwrap();
        fs::remove_file(above.path().join("cgroup.subtree_control")).unwrap();
        fs::create_dir(above.path().join("cgroup.subtree_control")).unwrap();
        assert!(try_out(above.path()).is_err());
    }

    #[test]
    fn what_a_killed_supervisor_left_is_in_nobodys_way() {
        let above = tempfile::tempdir().unwrap();
        fs::create_dir(above.path().join("one")).unwrap();
        let group = ControlGroup::make_in(above.path(), "one", &limits()).unwrap();
        assert!(group.folder.join("memory.max").exists());
    }

    /// As by a supervisor that has our number in another namespace of processes.
    #[test]
    fn a_group_that_somebody_answers_for_is_left_alone() {
        let above = tempfile::tempdir().unwrap();
        let _group = ControlGroup::make_in(above.path(), "one", &limits()).unwrap();
        let switch = above.path().join("one/cgroup.kill");
        fs::write(&switch, "").unwrap();
        assert!(ControlGroup::make_in(above.path(), "one", &limits()).is_err());
        assert_eq!(fs::read_to_string(switch).unwrap(), "");
    }

    #[test]
    fn whoever_is_left_by_a_killed_supervisor_is_killed() {
        let above = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            fs::create_dir(above.path().join(name)).unwrap();
            fs::write(above.path().join(name).join("cgroup.kill"), "").unwrap();
        };
        let (held, left) = ("toolgate-command-7-0", "toolgate-command-8-1");
        let others =
            ["toolgate-command-8", "toolgate-command-", "toolgate-8-1", "toolgate-command-8-x", "gateway"];
        others.into_iter().chain([held, left]).for_each(make);
        let _held = ControlGroup::hold(above.path().join(held)).unwrap();
        fs::create_dir(above.path().join("toolgate-command-9-0")).unwrap();
        sweep_in(above.path());
        let said = |name: &str| fs::read_to_string(above.path().join(name).join("cgroup.kill")).unwrap();
        assert_eq!(said(left), "1");
        for name in others.into_iter().chain([held]) {
            assert_eq!(said(name), "", "{name}");
        }
        assert!(!above.path().join("toolgate-command-9-0").exists(), "nobody was in it");
    }
}
