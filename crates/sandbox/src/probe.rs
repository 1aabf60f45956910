//! Report of the isolation features of this host, with reasons and remedies.
//!
//! Only inspects the host, or tries in a child process what a command's jail would do. The report is for people; a
//! worker's own `LayerSet` says what it really got.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    mount::{MountFlags, MountPropagationFlags},
    process::WaitOptions,
    thread::UnshareFlags,
};

use crate::{
    command::{self, control_group},
    sys::{
        self,
        process::{self, Split},
    },
};

/// The findings, one row per feature.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostStrength {
    /// The kernel's release string; empty if unknown.
    pub kernel: String,
    pub rows: Vec<HostRow>,
}

/// One feature of the host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostRow {
    pub name: &'static str,
    pub state: HostState,
    /// What was found.
    pub why: String,
    /// Suggested fix; empty if there is none.
    pub remedy: &'static str,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostState {
    Enforced,
    /// Only a part; `why` says what is missing.
    Partly,
    Missing,
}

/// Inspects the running host.
pub fn probe() -> HostStrength {
    let host = HostFiles { root: PathBuf::from("/") };
    let kernel = host.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let user_namespaces = process::try_in_child(try_user_namespace);
    let jail = process::try_in_child(try_command_jail);
    let rows = vec![
        landlock(sys::landlock_abi()),
        host.seccomp(),
        host.user_namespaces(&user_namespaces),
        host.network_namespaces(&process::try_in_child(try_network_namespace)),
        host.cgroups(),
        guarded_paths(opens_with_openat2()),
        crate::container::container_row(&crate::container::probe_runtime()),
        host.jail_for_commands(&jail),
        host.process_limit(&user_namespaces, &jail),
        host.memory_limit(&jail, &process::try_in_child(try_all_processes)),
        host.control_group(),
        signals(sys::landlock_abi()),
        host.reports(),
    ];
    HostStrength { kernel, rows }
}

/// Only the layers that isolate a tool from files, processes, network and system calls. Cheaper than [`probe`],
/// which checks everything.
pub fn probe_layers() -> Vec<HostRow> {
    let host = HostFiles { root: PathBuf::from("/") };
    vec![
        landlock(sys::landlock_abi()),
        host.seccomp(),
        host.network_namespaces(&process::try_in_child(try_network_namespace)),
        host.jail_for_commands(&process::try_in_child(try_command_jail)),
    ]
}

/// The host's files, below a root directory that tests replace.
struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    fn seccomp(&self) -> HostRow {
        let row = |state, why: &str, remedy| HostRow { name: "seccomp", state, why: why.to_owned(), remedy };
        match self.text("proc/sys/kernel/seccomp/actions_avail") {
            Some(actions) if actions.split_whitespace().any(|action| action == "kill_process") => {
                row(HostState::Enforced, "filters can kill a process", "")
            }
            Some(_) => row(HostState::Missing, "filters cannot kill a process", NEWER_KERNEL),
            None => row(HostState::Missing, "the kernel lists no filter actions", SECCOMP_KERNEL),
        }
    }

    /// Tried, because no file says what a container's seccomp filter refuses. The files explain why it failed.
    fn user_namespaces(&self, tried: &io::Result<()>) -> HostRow {
        let row = |state, why, remedy| HostRow { name: "user namespaces", state, why, remedy };
        if !self.exists("proc/self/ns/user") {
            let why = "the kernel was built without them".to_owned();
            return row(HostState::Missing, why, USER_NAMESPACE_KERNEL);
        }
        let Err(error) = tried else {
            return row(HostState::Enforced, "tried: works, with capabilities inside".to_owned(), "");
        };
        let filtered = || {
            (
                format!("refused, perhaps by a container's seccomp filter: {error}"),
                self.namespaces_in_container(),
            )
        };
        let switch = self.switch_against_namespaces().map(|(why, remedy)| (why.to_owned(), remedy));
        let (why, remedy) = switch.unwrap_or_else(filtered);
        row(HostState::Missing, why, remedy)
    }

    /// The setting that forbids user namespaces to ordinary users, if any, with its remedy.
    fn switch_against_namespaces(&self) -> Option<(&'static str, &'static str)> {
        let is = |file: &str, value: &str| self.text(file).as_deref() == Some(value);
        if is("proc/sys/user/max_user_namespaces", "0") {
            Some(("`user.max_user_namespaces` is 0", MORE_NAMESPACES))
        } else if is("proc/sys/kernel/unprivileged_userns_clone", "0") {
            Some((
                "`kernel.unprivileged_userns_clone` is 0: only root may create user namespaces",
                ALLOW_NAMESPACES,
            ))
        } else if is("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
            let why = "AppArmor removes capabilities inside user namespaces from programs without a profile";
            Some((why, APPARMOR_PROFILE))
        } else {
            None
        }
    }

    fn network_namespaces(&self, tried: &io::Result<()>) -> HostRow {
        let row = |state, why, remedy| HostRow { name: "network namespaces", state, why, remedy };
        if !self.exists("proc/self/ns/net") {
            let why = "the kernel was built without them".to_owned();
            return row(HostState::Missing, why, NETWORK_NAMESPACE_KERNEL);
        }
        let Err(error) = tried else {
            return row(HostState::Enforced, "tried: works".to_owned(), "");
        };
        if self.text("proc/sys/user/max_net_namespaces").as_deref() == Some("0") {
            let why = "`user.max_net_namespaces` is 0".to_owned();
            return row(HostState::Missing, why, "sysctl user.max_net_namespaces=15000");
        }
        // Ordinary users need a user namespace for this.
        if let Some((why, remedy)) = self.switch_against_namespaces() {
            return row(HostState::Missing, format!("requires a user namespace: {why}"), remedy);
        }
        let why = format!("refused, with and without a user namespace: {error}");
        row(HostState::Missing, why, self.namespaces_in_container())
    }

    fn namespaces_in_container(&self) -> &'static str {
        if self.is_root() { NAMESPACES_OF_ROOT } else { NAMESPACES_IN_CONTAINER }
    }

    fn cgroups(&self) -> HostRow {
        let row = |state, why: String, remedy| HostRow { name: "cgroups v2", state, why, remedy };
        match self.text("sys/fs/cgroup/cgroup.controllers") {
            Some(controllers) => row(HostState::Enforced, format!("controllers: {controllers}"), ""),
            None => {
                row(HostState::Missing, "`/sys/fs/cgroup` is not cgroup version 2".to_owned(), CGROUP_MOUNT)
            }
        }
    }

    /// Tried in a short-lived process, because no file says what a host or container forbids.
    fn jail_for_commands(&self, tried: &io::Result<()>) -> HostRow {
        let row = |state, why, remedy| HostRow { name: "jail for commands", state, why, remedy };
        let Err(error) = tried else {
            return row(HostState::Enforced, "tried: mount, PID and network namespaces work".to_owned(), "");
        };
        let why = format!(
            "the kernel refused mount, PID and network namespaces: {error}; commands are confined by Landlock and seccomp only"
        );
        let remedy = match self.text("proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() {
            Some("1") => APPARMOR_TEXT,
            _ if self.text("proc/sys/user/max_user_namespaces").as_deref() == Some("0") => MORE_NAMESPACES,
            _ if self.text("proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0") => {
                ALLOW_NAMESPACES
            }
            _ => self.namespaces_in_container(),
        };
        row(HostState::Missing, why, remedy)
    }

    fn process_limit(&self, user_namespaces: &io::Result<()>, jail: &io::Result<()>) -> HostRow {
        let row =
            |state, why: &str, remedy| HostRow { name: "process limit", state, why: why.to_owned(), remedy };
        if self.has_group() {
            return row(HostState::Enforced, "enforced by the control group of each command", "");
        }
        let release = self.text("proc/sys/kernel/osrelease").unwrap_or_default();
        if !self.is_root() {
            if user_namespaces.is_ok() && jail.is_ok() {
                let why = "counted per command, in a user namespace for each command";
                return row(HostState::Enforced, why, "");
            }
            let refused = if user_namespaces.is_err() {
                self.user_namespaces(user_namespaces)
            } else {
                self.jail_for_commands(jail)
            };
            let remedy = refused.remedy;
            let why = "counted for this user across all its processes, not per command";
            return row(HostState::Partly, why, remedy);
        }
        if jail.is_err() {
            let why = "the kernel does not limit processes of root, and PID namespaces are unavailable";
            return row(HostState::Missing, why, DELEGATE);
        }
        if command::has_own_process_numbers(&release) {
            return row(
                HostState::Enforced,
                "each PID namespace has its own highest process number, at least 301",
                "",
            );
        }
        row(HostState::Missing, "the kernel does not limit processes of root", PROCESS_LIMIT)
    }

    /// A command does not run if its processes cannot all be seen.
    fn memory_limit(&self, jail: &io::Result<()>, seen: &io::Result<()>) -> HostRow {
        let row =
            |state, why: &str, remedy| HostRow { name: "memory limit", state, why: why.to_owned(), remedy };
        if self.has_group() {
            return row(HostState::Enforced, "enforced by the control group of each command", "");
        }
        if jail.is_ok() && seen.is_ok() {
            let why = "tried: measured by polling the `/proc` of each command";
            return row(HostState::Enforced, why, "");
        }
        if !self.exists("proc/thread-self/children") {
            let why = "the kernel does not list child processes; commands do not run";
            return row(HostState::Missing, why, CHILDREN_KERNEL);
        }
        // Without namespaces only children of the gateway's own user are visible.
        if jail.is_ok() && self.hides_processes() && !self.is_root() {
            let why = "`/proc` hides processes (`hidepid`) and cannot be mounted again; commands do not run";
            return row(HostState::Missing, why, UNHIDDEN_PROC);
        }
        row(HostState::Enforced, "measured by polling the host's `/proc`", "")
    }

    fn hides_processes(&self) -> bool {
        let mounts = self.text("proc/self/mountinfo").unwrap_or_default();
        let proc = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some("/proc"));
        proc.is_some_and(|line| line.rsplit([' ', ',']).any(|option| option.starts_with("hidepid=")))
    }

    fn control_group(&self) -> HostRow {
        let row = |state, why, remedy| HostRow { name: "control group for commands", state, why, remedy };
        match self.delegated_group() {
            Some((group, Ok(()))) => {
                row(HostState::Enforced, format!("`{}` is delegated to the gateway", group.display()), "")
            }
            Some((group, Err(error))) => {
                let why = format!(
                    "`{}` is delegated, but creating a group in it fails: {error}; {BY_POLLING}",
                    group.display()
                );
                row(HostState::Missing, why, DELEGATE)
            }
            None => {
                let why = format!("no control group is delegated to the gateway; {BY_POLLING}");
                row(HostState::Missing, why, DELEGATE)
            }
        }
    }

    fn has_group(&self) -> bool {
        matches!(self.delegated_group(), Some((_, Ok(()))))
    }

    /// The parent of our control group if it is delegated to us, and whether a group can be created in it. That is
    /// tried only on the running host: the kernel refuses if the parent holds processes itself.
    fn delegated_group(&self) -> Option<(PathBuf, io::Result<()>)> {
        let own = self.text("proc/self/cgroup").unwrap_or_default();
        let group = control_group::delegated(&self.root, &own)?;
        let is_running = self.root == Path::new("/");
        let tried = if is_running { control_group::try_out(&group) } else { Ok(()) };
        Some((group, tried))
    }

    fn reports(&self) -> HostRow {
        let row =
            |state, why: &str, remedy| HostRow { name: "denial reports", state, why: why.to_owned(), remedy };
        match self.text("proc/sys/kernel/seccomp/actions_avail") {
            Some(actions) if actions.split_whitespace().any(|action| action == "user_notif") => {
                row(HostState::Enforced, "filters can notify a supervisor", "")
            }
            _ => row(
                HostState::Missing,
                "filters cannot notify a supervisor; commands do not run",
                NEWER_KERNEL,
            ),
        }
    }

    fn is_root(&self) -> bool {
        let status = self.text("proc/self/status").unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
        ids.split_whitespace().nth(1) == Some("0")
    }

    fn exists(&self, path: impl AsRef<Path>) -> bool {
        // Not `exists`: the entry is a symlink whose target is not a path.
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim().to_owned())
    }
}

fn landlock(abi: Option<u8>) -> HostRow {
    let row = |state, why, remedy| HostRow { name: "landlock", state, why, remedy };
    match abi {
        Some(abi @ ..4) => row(HostState::Partly, format!("version {abi}: files, not ports"), NEWER_KERNEL),
        Some(abi @ 4..6) => row(HostState::Enforced, format!("version {abi}: files and ports"), ""),
        Some(abi) => row(HostState::Enforced, format!("version {abi}: files, ports and signals"), ""),
        None => row(HostState::Missing, "not in this kernel, or not enabled".to_owned(), LANDLOCK_BOOT),
    }
}

fn signals(abi: Option<u8>) -> HostRow {
    let row =
        |state, why: &str, remedy| HostRow { name: "signal isolation", state, why: why.to_owned(), remedy };
    match abi {
        Some(6..) => row(HostState::Enforced, "restricted by Landlock, even without namespaces", ""),
        _ => row(
            HostState::Missing,
            "restricted by PID namespaces only; without them commands do not run",
            SIGNALS_KERNEL,
        ),
    }
}

/// Some hosts let everyone create a user namespace but remove the capabilities in it. The second namespace needs
/// them. Runs between fork and exec, where it must not allocate.
fn try_user_namespace() -> io::Result<()> {
    sys::unshare(UnshareFlags::NEWUSER)?;
    sys::unshare(UnshareFlags::NEWUTS)
}

/// A worker gets its network namespace the same way. Runs between fork and exec, where it must not allocate.
fn try_network_namespace() -> io::Result<()> {
    if sys::unshare(UnshareFlags::NEWNET).is_err() {
        sys::unshare(UnshareFlags::NEWNET | UnshareFlags::NEWUSER)?;
    }
    Ok(())
}

/// The steps of a command's jail. Runs between fork and exec, where it must not allocate.
fn try_command_jail() -> io::Result<()> {
    let others = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    if sys::unshare(others).is_err() {
        sys::unshare(others | UnshareFlags::NEWUSER)?;
    }
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change(c"/", private)?;
    rustix::mount::mount(c"none", c"/proc", c"tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)?;
    Ok(())
}

/// Mounts `/proc` like the first process of a jail does for the memory watch. Runs between fork and exec, where it
/// must not allocate.
fn try_all_processes() -> io::Result<()> {
    let namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    let split =
        process::fork_into(namespaces).or_else(|_| process::fork_into(namespaces | libc::CLONE_NEWUSER))?;
    let (Split::Parent(first), _) = split else {
        sys::leave(u8::from(command::all_processes().is_err()));
    };
    match rustix::process::waitpid(Some(first), WaitOptions::empty())? {
        Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}

fn guarded_paths(works: bool) -> HostRow {
    let row = |state, why: &str, remedy| HostRow { name: "openat2", state, why: why.to_owned(), remedy };
    if works {
        row(HostState::Enforced, "path lookups can be confined to a directory", "")
    } else {
        row(HostState::Missing, "refused by the kernel or by a container's seccomp filter", NEWER_KERNEL)
    }
}

fn opens_with_openat2() -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH).is_ok()
}

const NEWER_KERNEL: &str = "use Linux 6.7 or later";
const SECCOMP_KERNEL: &str = "use a kernel built with CONFIG_SECCOMP_FILTER, and mount /proc";
const USER_NAMESPACE_KERNEL: &str = "use a kernel built with CONFIG_USER_NS";
const NETWORK_NAMESPACE_KERNEL: &str = "use a kernel built with CONFIG_NET_NS";
const APPARMOR_PROFILE: &str = "give toolgate an AppArmor profile with `userns,`, or run the gateway as root";
const APPARMOR_TEXT: &str = "write `abi <abi/4.0>, profile toolgate /path/to/toolgate flags=(unconfined) { userns, }` \
    to /etc/apparmor.d/toolgate and run `apparmor_parser -r /etc/apparmor.d/toolgate`, or run the gateway as root";
const MORE_NAMESPACES: &str = "sysctl user.max_user_namespaces=15000";
const ALLOW_NAMESPACES: &str = "sysctl kernel.unprivileged_userns_clone=1";
const NAMESPACES_IN_CONTAINER: &str = "in a container, start it with a seccomp profile that allows unshare, clone and \
    mount, and with an unmasked /proc; elsewhere run the gateway as root";
const NAMESPACES_OF_ROOT: &str = "in a container, start it with CAP_SYS_ADMIN, with a seccomp profile that allows unshare, clone \
    and mount, and with an unmasked /proc";
const PROCESS_LIMIT: &str =
    "run the gateway as an ordinary user, delegate a control group, or use Linux 6.14 or later";
const CHILDREN_KERNEL: &str = "delegate a control group, or use a kernel built with CONFIG_PROC_CHILDREN";
const UNHIDDEN_PROC: &str =
    "delegate a control group, mount /proc without `hidepid`, or unmask it in the container";
const DELEGATE: &str =
    "in the gateway's systemd unit set `Delegate=yes` and `DelegateSubgroup=gateway` (systemd 254)";
const BY_POLLING: &str = "memory is measured by polling, which misses most kernel memory";
const SIGNALS_KERNEL: &str = "use Linux 6.12 or later";
const CGROUP_MOUNT: &str = "boot with systemd.unified_cgroup_hierarchy=1";
const LANDLOCK_BOOT: &str = "use Linux 5.13 or later and add `landlock` to the boot parameter `lsm=`";

#[cfg(test)]
mod tests;
