//! Joint memory and process limits of a command, through a delegated control group (cgroup version 2).
//!
//! The kernel allows processes in leaf groups only, so our own group cannot contain another one. Its parent must be
//! delegated to us, as with `Delegate=yes` and `DelegateSubgroup=` of systemd. Otherwise there is no control group.

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

/// The control group of one command. Dropping it kills the processes in it and removes it.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folder: PathBuf,
    /// Its lock marks a group in use. Process ids could not: ids of another PID namespace mean nothing here.
    _held: OwnedFd,
}

impl ControlGroup {
    /// `None` if no group is delegated to us.
    pub(crate) fn make(limits: &CommandLimits) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::make_below(&delegated(Path::new("/"), &own)?, limits).ok()
    }

    fn make_below(above: &Path, limits: &CommandLimits) -> io::Result<Self> {
        let make = |turn| Self::make_in(above, &format!("{PREFIX}{}-{turn}", std::process::id()), limits);
        // A supervisor in another PID namespace may use the same name.
        (1..NAMES).fold(make(0), |made, turn| made.or_else(|_| make(turn)))
    }

    pub(super) fn make_in(above: &Path, name: &str, limits: &CommandLimits) -> io::Result<Self> {
        fs::write(above.join("cgroup.subtree_control"), "+memory +pids")?;
        let folder = above.join(name);
        match fs::create_dir(&folder) {
            // Left by a killed supervisor whose process id we have now; its processes are orphans.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                drop(Self::hold(folder.clone())?);
                fs::create_dir(&folder)?;
            }
            made => made?,
        }
        let group = Self::hold(folder)?;
        group.set("memory.max", &limits.memory_bytes.to_string())?;
        // Otherwise a command would push its own pages, and those of others, to swap.
        let _ = group.set("memory.swap.max", "0");
        group.set("memory.oom.group", "1")?;
        // Includes the first process of the jail.
        group.set("pids.max", &limits.processes.saturating_add(1).to_string())?;
        Ok(group)
    }

    /// Fails if another process holds the lock.
    fn hold(folder: PathBuf) -> io::Result<Self> {
        let held = rustix::fs::open(
            &folder,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive)?;
        // The previous holder may have removed it, and another process created one of the same name.
        let (ours, named) = (rustix::fs::fstat(&held)?, fs::symlink_metadata(&folder)?);
        if (ours.st_dev, ours.st_ino) != (named.dev(), named.ino()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { folder, _held: held })
    }

    pub(crate) fn take_in(&self, process: Pid) -> io::Result<()> {
        self.set("cgroup.procs", &process.as_raw_nonzero().to_string())
    }

    /// Whether the kernel killed a process of the group because memory ran out.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.and_then(|count| count.trim().parse::<u64>().ok()).is_some_and(|count| count > 0)
    }

    pub(crate) fn kill(&self) {
        // Only if the kernel provides this file; never creates it.
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
        // Killed processes leave the group a little later.
        for _ in 0..TRIES {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(PAUSE),
                _ => return,
            }
        }
    }
}

/// Creates a group like for a command, and removes it.
pub(crate) fn try_out(above: &Path) -> io::Result<()> {
    let limits =
        CommandLimits { memory_bytes: 1 << 20, cpu_seconds: 1, processes: 1, open_files: 1, file_bytes: 1 };
    ControlGroup::make_below(above, &limits).map(drop)
}

/// Removes the groups of killed supervisors, with the processes in them.
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

/// Strict, because an operator may use a similar name, for example for the gateway's own group.
fn is_one_of_ours(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, turn)| process.parse::<u32>().is_ok() && turn.parse::<u32>().is_ok())
}

/// The parent of our group, if we may create groups in it and it can limit memory and processes.
pub(crate) fn delegated(host: &Path, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // The root of the hierarchy cannot be delegated.
    let above = Path::new(own).parent().filter(|above| !above.as_os_str().is_empty())?;
    let above = host.join("sys/fs/cgroup").join(above);
    let controllers = fs::read_to_string(above.join("cgroup.controllers")).ok()?;
    let has = |wanted| controllers.split_ascii_whitespace().any(|controller| controller == wanted);
    let may = rustix::fs::access(&above, rustix::fs::Access::WRITE_OK).is_ok()
        && rustix::fs::access(above.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok();
    (has("memory") && has("pids") && may && is_given_away(&above, host)).then_some(above)
}

/// Write access alone does not prove delegation: root may write to every group, and a user to the groups of their
/// other services. systemd marks delegated groups. Without systemd, a group that another user made ours counts as
/// delegated.
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
/// Number of names tried before a command runs without a group.
const NAMES: u32 = 4;
/// The second one can be read without privileges, and set manually: `setfattr -n user.delegate -v 1`.
const MARKS: [&str; 2] = ["trusted.delegate", "user.delegate"];
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// Marks a group like systemd does.
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
    fn only_a_delegated_parent_group_is_used() {
        let host = tempfile::tempdir().unwrap();
        let above = host.path().join("sys/fs/cgroup/service");
        fs::create_dir_all(above.join("gateway")).unwrap();
        let found = |own: &str| delegated(host.path(), own);
        assert_eq!(found("0::/service/gateway\n"), None, "no controllers");
        fs::write(above.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert_eq!(found("0::/service/gateway\n"), None, "we may not move processes into it");
        fs::write(above.join("cgroup.procs"), "").unwrap();
        if rustix::process::geteuid().is_root() {
            assert_eq!(found("0::/service/gateway\n"), None, "root may write everywhere");
        }
        mark(&above);
        assert_eq!(found("0::/service/gateway\n"), Some(above.clone()));
        assert_eq!(found("0::/service\n"), None, "its parent is the root group");
        assert_eq!(found("0::/\n"), None);
        assert_eq!(found("4:memory:/service/gateway\n"), None, "version 1");
        fs::write(above.join("cgroup.controllers"), "cpu\n").unwrap();
        assert_eq!(found("0::/service/gateway\n"), None, "without memory");
    }

    /// systemd marks the groups it delegates, and not those of a user's other services.
    #[test]
    fn under_systemd_only_marked_groups_count_as_delegated() {
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
    fn limits_are_written_and_oom_kills_are_read() {
        let above = tempfile::tempdir().unwrap();
        let group = ControlGroup::make_in(above.path(), "one", &limits()).unwrap();
        let read = |file: &str| fs::read_to_string(above.path().join("one").join(file)).unwrap();
        assert_eq!((read("memory.max"), read("pids.max")), ("1048576".into(), "8".into()));
        assert!(!group.ran_out_of_memory());
        fs::write(above.path().join("one/memory.events"), "low 0\noom 1\noom_kill 1\n").unwrap();
        assert!(group.ran_out_of_memory());
    }

    /// If the parent group holds processes, the kernel refuses limits for its children.
    #[test]
    fn group_that_cannot_be_created_is_an_error() {
        let above = tempfile::tempdir().unwrap();
        try_out(above.path()).unwrap();
        fs::remove_file(above.path().join("cgroup.subtree_control")).unwrap();
        fs::create_dir(above.path().join("cgroup.subtree_control")).unwrap();
        assert!(try_out(above.path()).is_err());
    }

    #[test]
    fn group_left_by_a_killed_supervisor_is_replaced() {
        let above = tempfile::tempdir().unwrap();
        fs::create_dir(above.path().join("one")).unwrap();
        let group = ControlGroup::make_in(above.path(), "one", &limits()).unwrap();
        assert!(group.folder.join("memory.max").exists());
    }

    /// A supervisor in another PID namespace may have the same process id.
    #[test]
    fn group_in_use_is_left_alone() {
        let above = tempfile::tempdir().unwrap();
        let _group = ControlGroup::make_in(above.path(), "one", &limits()).unwrap();
        let switch = above.path().join("one/cgroup.kill");
        fs::write(&switch, "").unwrap();
        assert!(ControlGroup::make_in(above.path(), "one", &limits()).is_err());
        assert_eq!(fs::read_to_string(switch).unwrap(), "");
    }

    #[test]
    fn processes_left_by_a_killed_supervisor_are_killed() {
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
        assert!(!above.path().join("toolgate-command-9-0").exists(), "it was empty");
    }
}
