//! What does this host enforce, why not more, and what would help?
//!
//! Looks, and tries nothing that leaves a trace. What a worker really got is in its own `Strength`; this page is for people.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use crate::sys;

/// What was found, a row for each feature.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostStrength {
    /// As the kernel names itself; empty when it does not.
    pub kernel: String,
    pub rows: Vec<HostRow>,
}

/// One feature of the host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostRow {
    pub name: &'static str,
    pub state: HostState,
    /// What was seen.
    pub why: String,
    /// What to do about it; empty when there is nothing to do.
    pub remedy: &'static str,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostState {
    Enforced,
    Missing,
    Unknown,
}

/// Looks at the running host.
pub fn probe() -> HostStrength {
    let host = Host { root: PathBuf::from("/") };
    let kernel = host.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let rows = vec![
        landlock(sys::landlock_abi()),
        host.seccomp(),
        host.user_namespaces(),
        host.network_namespaces(),
        host.cgroups(),
        guarded_paths(opens_with_openat2()),
    ];
    HostStrength { kernel, rows }
}

/// The files of a host, below a folder so that tests can bring their own.
struct Host {
    root: PathBuf,
}

impl Host {
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

    fn user_namespaces(&self) -> HostRow {
        let row = |state, why: &str, remedy| HostRow {
            name: "user namespaces",
            state,
            why: why.to_owned(),
            remedy,
        };
        if !self.exists("proc/self/ns/user") {
            return row(HostState::Missing, "the kernel was built without them", USER_NAMESPACE_KERNEL);
        }
        if self.text("proc/sys/user/max_user_namespaces").as_deref() == Some("0") {
            return row(
                HostState::Missing,
                "`user.max_user_namespaces` is 0",
                "sysctl user.max_user_namespaces=15000",
            );
        }
        if self.text("proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0") {
            let why = "`kernel.unprivileged_userns_clone` is 0: only root may make them";
            return row(HostState::Missing, why, "sysctl kernel.unprivileged_userns_clone=1");
        }
        if self.text("proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1") {
            let why = "AppArmor takes the rights inside them from programs without a profile";
            return row(HostState::Unknown, why, APPARMOR_PROFILE);
        }
        // Whether a container's own filter refuses them cannot be read anywhere.
        row(HostState::Unknown, "nothing forbids them; a worker tells whether it got one", "")
    }

    fn network_namespaces(&self) -> HostRow {
        let row = |state, why: &str, remedy| HostRow {
            name: "network namespaces",
            state,
            why: why.to_owned(),
            remedy,
        };
        if !self.exists("proc/self/ns/net") {
            return row(HostState::Missing, "the kernel was built without them", NETWORK_NAMESPACE_KERNEL);
        }
        if self.text("proc/sys/user/max_net_namespaces").as_deref() == Some("0") {
            return row(
                HostState::Missing,
                "`user.max_net_namespaces` is 0",
                "sysctl user.max_net_namespaces=15000",
            );
        }
        row(HostState::Unknown, "nothing forbids them; a worker tells whether it got one", "")
    }

    fn cgroups(&self) -> HostRow {
        let row = |state, why: String, remedy| HostRow { name: "cgroups v2", state, why, remedy };
        match self.text("sys/fs/cgroup/cgroup.controllers") {
            Some(controllers) => row(HostState::Enforced, format!("controllers: {controllers}"), ""),
            None => row(HostState::Missing, "`/sys/fs/cgroup` is not of version 2".to_owned(), CGROUP_MOUNT),
        }
    }

    fn exists(&self, path: impl AsRef<Path>) -> bool {
        // Not `exists`: the entry is a link whose target is no path.
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim().to_owned())
    }
}

fn landlock(abi: Option<u8>) -> HostRow {
    let row = |state, why, remedy| HostRow { name: "landlock", state, why, remedy };
    match abi {
        Some(abi @ ..4) => row(HostState::Enforced, format!("version {abi}: files, not ports"), NEWER_KERNEL),
        Some(abi @ 4..6) => row(HostState::Enforced, format!("version {abi}: files and ports"), ""),
        Some(abi) => row(HostState::Enforced, format!("version {abi}: files, ports and signals"), ""),
        None => row(HostState::Missing, "the kernel has it not or not switched on".to_owned(), LANDLOCK_BOOT),
    }
}

fn guarded_paths(works: bool) -> HostRow {
    let row = |state, why: &str, remedy| HostRow { name: "openat2", state, why: why.to_owned(), remedy };
    if works {
        row(HostState::Enforced, "paths can be kept below a folder", "")
    } else {
        row(HostState::Missing, "refused by the kernel or by a container's filter", NEWER_KERNEL)
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
const CGROUP_MOUNT: &str = "boot with systemd.unified_cgroup_hierarchy=1";
const LANDLOCK_BOOT: &str = "use Linux 5.13 or later and add `landlock` to the boot parameter `lsm=`";

#[cfg(test)]
mod tests;
