//! Inspects a created container through the kernel, before its command starts.

use std::{
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
    masks::FileId,
    plan::{ContainerMount, Plan},
};
use crate::{Layer, LayerSet};

/// The observations. All defaults if the runtime does not reveal the first process of a container.
#[derive(Debug, Default)]
pub(super) struct Observation {
    pub(super) files: FileComparison,
    /// Isolation layers that are missing, whatever the runtime reports.
    pub(super) absent: LayerSet,
    pub(super) handle: Option<OwnedFd>,
    pub(super) events: CgroupEvents,
}

/// Comparison of the files at the bind targets and masks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum FileComparison {
    /// Each is the planned file.
    Same,
    /// A file was replaced since it was checked.
    Other,
    #[default]
    NotSeen,
}

impl Observation {
    /// Inspects the first process of a container.
    pub(super) fn take(pid: i32, id: &str, plan: &Plan) -> Self {
        let Some(process) = Pid::from_raw(pid) else { return Self::default() };
        let Ok(handle) = rustix::process::pidfd_open(process, PidfdFlags::empty()) else {
            return Self::default();
        };
        // It cannot have ended since, because it waits for the go-ahead. But it must be the right one, because we
        // will kill it.
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let is_it = groups.contains(id);
        Self {
            files: if is_it || !plan.has_latch() {
                compare_files(pid, plan)
            } else {
                FileComparison::NotSeen
            },
            absent: absent_layers(pid, is_it && plan.has_latch()),
            handle: is_it.then_some(handle),
            events: if is_it { CgroupEvents::open(&groups) } else { CgroupEvents::default() },
        }
    }
}

/// The kernel's counters of denied memory and processes of a control group.
#[derive(Debug, Default)]
pub(super) struct CgroupEvents {
    memory: Option<File>,
    processes: Option<File>,
}

impl CgroupEvents {
    fn open(groups: &str) -> Self {
        Self {
            memory: counter(groups, "memory", ["memory.events", "memory.oom_control"]),
            processes: counter(groups, "pids", ["pids.events", "pids.events"]),
        }
    }

    /// The limits that were hit. Call it before the runtime removes the control group.
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

/// The counter file of the group in cgroup version 2, or its counterpart in the controller's own tree in version 1.
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

/// Isolation layers that are missing according to the kernel. A process held by the latch already has every
/// restriction of its command; without a latch the low-level runtime is still applying them.
fn absent_layers(pid: i32, is_latched: bool) -> LayerSet {
    let shared = NAMESPACES.iter().filter(|(name, _)| is_shared(pid, name)).map(|(_, layer)| *layer);
    let mut absent: LayerSet = shared.collect();
    if let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status"))
        && is_latched
    {
        absent = absent.union(absent_by_status(&status).collect());
    }
    absent
}

fn absent_by_status(status: &str) -> impl Iterator<Item = Layer> {
    let is = |line: &str, holds: &dyn Fn(&str) -> bool| {
        let mut lines = status.lines().filter_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
        lines.next().is_some_and(|values| values.split_whitespace().all(holds))
    };
    let is_nothing = |value: &str| value.bytes().all(|digit| digit == b'0');
    let capabilities = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let rows = [
        (Layer::NoCapabilities, capabilities.iter().all(|line| is(line, &is_nothing))),
        (Layer::NoNewPrivileges, is("NoNewPrivs", &|value| value == "1")),
        (Layer::RuntimeSeccomp, is("Seccomp", &|value| value == "2")),
        (Layer::UnprivilegedUser, is("Uid", &|value| value != "0") && is("Gid", &|value| value != "0")),
    ];
    rows.into_iter().filter(|(_, holds)| !holds).map(|(layer, _)| layer)
}

fn is_shared(pid: i32, name: &str) -> bool {
    let theirs = fs::read_link(format!("/proc/{pid}/ns/{name}"));
    theirs.is_ok_and(|theirs| fs::read_link(format!("/proc/self/ns/{name}")).is_ok_and(|ours| ours == theirs))
}

fn compare_files(pid: i32, plan: &Plan) -> FileComparison {
    if plan.mounts.is_empty() {
        return FileComparison::Same;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root) = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty()) else {
        return FileComparison::NotSeen;
    };
    let is_same =
        |mount: &ContainerMount| seen_at(&root, &mount.target, links_of(mount, plan)) == Some(mount.id);
    if plan.mounts.iter().all(is_same) { FileComparison::Same } else { FileComparison::Other }
}

/// Symlinks of the image lead to paths of the image. Inside a bind, someone else may have created a symlink to
/// redirect a bind or mask.
fn links_of(mount: &ContainerMount, plan: &Plan) -> ResolveFlags {
    if mount.is_in_one_of(&plan.mounts) {
        ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS
    } else {
        ResolveFlags::IN_ROOT
    }
}

fn seen_at(root: &OwnedFd, target: &str, links: ResolveFlags) -> Option<FileId> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let open = rustix::fs::openat2(root, target, flags, Mode::empty(), links).ok()?;
    let about = rustix::fs::fstat(&open).ok()?;
    Some((about.st_dev, about.st_ino))
}

/// Named as in `/proc`.
const NAMESPACES: [(&str, Layer); 4] = [
    ("ipc", Layer::IpcNamespace),
    ("net", Layer::NetworkNone),
    ("pid", Layer::PidNamespace),
    ("uts", Layer::UtsNamespace),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_isolation_layers_are_detected() {
        let isolated = "Uid:\t1000\t1000\t1000\t1000\nGid:\t7\t7\t7\t7\nCapInh:\t0000\nCapPrm:\t0000\nCapEff:\t0000\n\
                      CapBnd:\t0000\nCapAmb:\t0000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        let absent = |status: &str| absent_by_status(status).collect::<Vec<_>>();
        assert_eq!(absent(isolated), []);
        let rows = [
            ("CapBnd:\t0000", "CapBnd:\t0001", Layer::NoCapabilities),
            ("CapAmb:\t0000\n", "", Layer::NoCapabilities),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", Layer::NoNewPrivileges),
            ("Seccomp:\t2", "Seccomp:\t0", Layer::RuntimeSeccomp),
            ("Uid:\t1000\t1000", "Uid:\t1000\t0", Layer::UnprivilegedUser),
            ("Gid:\t7", "Gid:\t0", Layer::UnprivilegedUser),
        ];
        for (from, to, layer) in rows {
            assert_eq!(absent(&isolated.replace(from, to)), [layer], "{to}");
        }
        assert_eq!(absent("").len(), 4);
    }

    #[test]
    fn kernel_counters_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(dir.path().join(name), text).unwrap();
            File::open(dir.path().join(name)).ok()
        };
        let check = |memory: &str, processes: &str, expect: &[Shortage]| {
            let events = CgroupEvents { memory: file("memory", memory), processes: file("pids", processes) };
            assert_eq!(events.shortages(), expect, "{memory} {processes}");
        };
        check("low 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n", "max 0\n", &[]);
        check("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "", &[Shortage::Memory]);
        check("", "max 12\n", &[Shortage::Processes]);
        check("oom_kill 1\n", "max 1\n", &[Shortage::Memory, Shortage::Processes]);
        assert_eq!(CgroupEvents::default().shortages(), []);
        assert_eq!(CgroupEvents::open("12:memory:/no/such/group\n0::/no/such/group\n").shortages(), []);
    }
}
