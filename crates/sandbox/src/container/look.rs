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
    Shortage,
    masks::Id,
    plan::{Mount, Plan},
};

/// What was seen. A runtime that does not show the first process of a container lets us see nothing.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) files: Files,
    shared: BTreeSet<String>,
    pub(super) handle: Option<OwnedFd>,
    pub(super) events: Events,
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
            events: if is_it { Events::open(&groups) } else { Events::default() },
        }
    }

    pub(super) fn shares(&self, namespace: &str) -> bool {
        self.shared.contains(namespace)
    }
}

/// Where the kernel counts what a group wanted and did not get.
#[derive(Debug, Default)]
pub(super) struct Events {
    memory: Option<File>,
    processes: Option<File>,
}

impl Events {
    fn open(groups: &str) -> Self {
        Self {
            memory: counter(groups, "memory", ["memory.events", "memory.oom_control"]),
            processes: counter(groups, "pids", ["pids.events", "pids.events"]),
        }
    }

    /// What there was too little of. Must be asked before the runtime clears the group away.
    pub(super) fn shortages(&self) -> Vec<Shortage> {
        let counters =
            [(Shortage::Memory, &self.memory, "oom_kill "), (Shortage::Processes, &self.processes, "max ")];
        let is_short = |file: &File, word: &str| count(file, word).is_some_and(|count| count != "0");
        let short = counters.into_iter().filter_map(|(shortage, file, word)| {
            file.as_ref().is_some_and(|file| is_short(file, word)).then_some(shortage)
        });
        short.collect()
    }
}

/// The file of this name in the group's folder; another one where each controller has a tree of its own.
fn counter(groups: &str, controller: &str, names: [&str; 2]) -> Option<File> {
    let [together, alone] = names;
    groups.lines().find_map(|line| {
        let mut words = line.splitn(3, ':').skip(1);
        let (controllers, group) = (words.next()?, words.next()?.trim_start_matches('/'));
        let tree = Path::new("/sys/fs/cgroup");
        let path: PathBuf = if controllers.is_empty() {
            tree.join(group).join(together)
        } else if controllers == controller {
            tree.join(controller).join(group).join(alone)
        } else {
            return None;
        };
        File::open(path).ok()
    })
}

fn count(file: &File, word: &str) -> Option<String> {
    let mut bytes = [0; 1024];
    let got = file.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(bytes.get(..got)?).into_owned();
    text.lines().find_map(|line| line.strip_prefix(word)).map(|count| count.trim().to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_counts_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).unwrap();
            File::open(folder.path().join(name)).ok()
        };
        let check = |memory: &str, processes: &str, expect: &[Shortage]| {
            let events = Events { memory: file("memory", memory), processes: file("pids", processes) };
            assert_eq!(events.shortages(), expect, "{memory} {processes}");
        };
        check("low 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n", "max 0\n", &[]);
        check("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "", &[Shortage::Memory]);
        check("", "max 12\n", &[Shortage::Processes]);
        check("oom_kill 1\n", "max 1\n", &[Shortage::Memory, Shortage::Processes]);
        assert_eq!(Events::default().shortages(), []);
        assert_eq!(Events::open("12:memory:/no/such/group\n0::/no/such/group\n").shortages(), []);
    }
}
