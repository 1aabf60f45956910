//! What does the kernel say of a container that is made and not yet started?

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::{fd::OwnedFd, unix::fs::FileExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags},
    process::{Pid, PidfdFlags},
};

use super::{
    masks::Id,
    plan::{Mount, Plan},
};

/// What was seen. A runtime that does not show the first process of a container lets us see nothing.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) files: Files,
    shared: BTreeSet<String>,
    pub(super) handle: Option<OwnedFd>,
    pub(super) memory: Option<MemoryEvents>,
}

/// What is at the places of the binds and covers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Files {
    /// Each is what was meant.
    Same,
    /// Something was exchanged since it was checked.
    Other,
    #[default]
    NotSeen,
}

impl Seen {
    /// Looks at the first process of a container.
    pub(super) fn look(pid: i32, id: &str, plan: &Plan) -> Self {
        let Some(process) = Pid::from_raw(pid) else { return Self::default() };
        let Ok(handle) = rustix::process::pidfd_open(process, PidfdFlags::empty()) else {
            return Self::default();
        };
        // It cannot have ended since, for it waits to be started; but it must be the right one, for it will be killed.
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let is_it = groups.contains(id);
        Self {
            files: compare_files(pid, plan),
            shared: ["ipc", "mnt", "net", "pid", "uts"]
                .into_iter()
                .filter(|name| is_shared(pid, name))
                .map(str::to_owned)
                .collect(),
            handle: is_it.then_some(handle),
            memory: is_it.then(|| MemoryEvents::open(&groups)).flatten(),
        }
    }

    pub(super) fn shares(&self, namespace: &str) -> bool {
        self.shared.contains(namespace)
    }
}

/// Where the kernel counts the processes that it killed for want of memory.
#[derive(Debug)]
pub(super) struct MemoryEvents(File);

impl MemoryEvents {
    fn open(groups: &str) -> Option<Self> {
        groups.lines().find_map(|line| {
            let mut words = line.splitn(3, ':').skip(1);
            let (controllers, group) = (words.next()?, words.next()?.trim_start_matches('/'));
            let path: PathBuf = match controllers {
                "" => Path::new("/sys/fs/cgroup").join(group).join("memory.events"),
                "memory" => Path::new("/sys/fs/cgroup/memory").join(group).join("memory.oom_control"),
                _ => return None,
            };
            File::open(path).ok().map(Self)
        })
    }

    /// Whether there was one. Must be asked before the runtime clears the group away.
    pub(super) fn tell_a_kill(&self) -> bool {
        let mut bytes = [0; 1024];
        let got = self.0.read_at(&mut bytes, 0).unwrap_or_default();
        let text = String::from_utf8_lossy(bytes.get(..got).unwrap_or_default()).into_owned();
        text.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
    }
}

fn is_shared(pid: i32, name: &str) -> bool {
    let theirs = fs::read_link(format!("/proc/{pid}/ns/{name}"));
    theirs.is_ok_and(|theirs| fs::read_link(format!("/proc/self/ns/{name}")).is_ok_and(|ours| ours == theirs))
}

fn compare_files(pid: i32, plan: &Plan) -> Files {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root) = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty()) else {
        return Files::NotSeen;
    };
    let is_same = |mount: &Mount| seen_at(&root, &mount.target, links_of(mount, plan)) == Some(mount.id);
    if plan.mounts.iter().all(is_same) { Files::Same } else { Files::Other }
}

/// Links of the image lead to places of the image. In a bind somebody else may have put them, to have a bind or a cover elsewhere
/// than where it belongs.
fn links_of(mount: &Mount, plan: &Plan) -> ResolveFlags {
    let target = Path::new(&mount.target);
    let is_in_a_bind =
        plan.mounts.iter().any(|other| other.target != mount.target && target.starts_with(&other.target));
    if is_in_a_bind { ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS } else { ResolveFlags::IN_ROOT }
}

fn seen_at(root: &OwnedFd, target: &str, links: ResolveFlags) -> Option<Id> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let open = rustix::fs::openat2(root, target, flags, Mode::empty(), links).ok()?;
    let about = rustix::fs::fstat(&open).ok()?;
    Some((about.st_dev, about.st_ino))
}
