//! Memory and processes of a command bounded together, by a control group (version 2) that was delegated to us.
//!
//! The kernel wants processes in leaves only, so that the group we are in cannot hold another one; the one above it must
//! be ours, as with `Delegate=yes` and `DelegateSubgroup=` of systemd. Where it is not, there is no group.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Pid;

use super::CommandLimits;

/// A group for one command. Dropping it kills who is left in it and removes it.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// `None` where nothing was delegated to us.
    pub(crate) fn make(limits: &CommandLimits) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let above = delegated(Path::new("/sys/fs/cgroup"), &own)?;
        let name = format!("{PREFIX}{}", std::process::id());
        Self::make_in(&above, &name, limits).ok()
    }

    pub(super) fn make_in(above: &Path, name: &str, limits: &CommandLimits) -> io::Result<Self> {
        fs::write(above.join("cgroup.subtree_control"), "+memory +pids")?;
        let folder = above.join(name);
        match fs::create_dir(&folder) {
            // Left by a supervisor that was killed, whose number is ours now: whoever is in it is nobody's.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                drop(Self { folder: folder.clone() });
                fs::create_dir(&folder)?;
            }
            made => made?,
        }
        let group = Self { folder };
        group.set("memory.max", &limits.memory_bytes.to_string())?;
        // Without this a command would push its own pages, and those of others, out to the disk.
        let _ = group.set("memory.swap.max", "0");
        group.set("memory.oom.group", "1")?;
        // The first process of the jail is one of them.
        group.set("pids.max", &limits.processes.saturating_add(1).to_string())?;
        Ok(group)
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

/// Ends the groups of supervisors that were killed before they could, with whoever is left in them.
pub(crate) fn sweep() {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if let Some(above) = delegated(Path::new("/sys/fs/cgroup"), &own) {
        sweep_in(&above);
    }
}

fn sweep_in(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        let supervisor = number.and_then(|number| Pid::from_raw(i32::try_from(number).ok()?));
        if supervisor.is_some_and(is_gone) {
            drop(ControlGroup { folder: entry.path() });
        }
    }
}

/// Asked of the kernel: `/proc` may be told to hide processes.
fn is_gone(process: Pid) -> bool {
    rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH)
}

/// The group above ours, if we may make groups in it and it bounds memory and processes.
pub(crate) fn delegated(mount: &Path, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let above = mount.join(Path::new(own).parent()?);
    let controllers = fs::read_to_string(above.join("cgroup.controllers")).ok()?;
    let has = |wanted| controllers.split_ascii_whitespace().any(|controller| controller == wanted);
    let may = rustix::fs::access(&above, rustix::fs::Access::WRITE_OK).is_ok()
        && rustix::fs::access(above.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok();
    // The top of the hierarchy is nobody's to delegate.
    (has("memory") && has("pids") && may && !own.is_empty()).then_some(above)
}

const PREFIX: &str = "toolgate-";
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> CommandLimits {
        CommandLimits { memory_bytes: 1 << 20, cpu_seconds: 1, processes: 7, open_files: 1, file_bytes: 1 }
    }

    #[test]
    fn only_a_group_above_us_that_is_ours_will_do() {
        let mount = tempfile::tempdir().unwrap();
        let above = mount.path().join("service");
        fs::create_dir_all(above.join("gateway")).unwrap();
        assert_eq!(delegated(mount.path(), "0::/service/gateway\n"), None, "no controllers");
        fs::write(above.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        assert_eq!(delegated(mount.path(), "0::/service/gateway\n"), None, "not ours to move processes into");
        fs::write(above.join("cgroup.procs"), "").unwrap();
        assert_eq!(delegated(mount.path(), "0::/service/gateway\n"), Some(above.clone()));
        assert_eq!(delegated(mount.path(), "4:memory:/service/gateway\n"), None, "version 1");
        fs::write(above.join("cgroup.controllers"), "cpu\n").unwrap();
        assert_eq!(delegated(mount.path(), "0::/service/gateway\n"), None, "without memory");
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
        assert!(
            ControlGroup::make_in(above.path(), "one", &limits()).is_err(),
            "a group of that name exists, and cannot be removed"
        );
    }

    #[test]
    fn what_a_killed_supervisor_left_is_in_nobodys_way() {
        let above = tempfile::tempdir().unwrap();
        fs::create_dir(above.path().join("toolgate-7")).unwrap();
        let group = ControlGroup::make_in(above.path(), "toolgate-7", &limits()).unwrap();
        assert!(group.folder.join("memory.max").exists());
    }

    #[test]
    fn whoever_is_left_by_a_killed_supervisor_is_killed() {
        let above = tempfile::tempdir().unwrap();
        let alive = format!("{PREFIX}{}", std::process::id());
        // No process has a number as high.
        let (empty, inhabited) = ("toolgate-4194305", "toolgate-4194306");
        let kept = [alive.as_str(), "toolgate-", "toolgate-0", "toolgate--1", "other-4194305"];
        for name in kept.into_iter().chain([empty, inhabited]) {
            fs::create_dir(above.path().join(name)).unwrap();
        }
        let switch = |name: &str| above.path().join(name).join("cgroup.kill");
        for name in [alive.as_str(), inhabited] {
            fs::write(switch(name), "").unwrap();
        }
        sweep_in(above.path());
        assert!(!above.path().join(empty).exists());
        assert_eq!(fs::read_to_string(switch(inhabited)).unwrap(), "1");
        assert_eq!(fs::read_to_string(switch(&alive)).unwrap(), "", "its supervisor lives");
        for name in kept {
            assert!(above.path().join(name).exists(), "{name}");
        }
    }
}
