//! Total memory of the processes of a command.
//!
//! The kernel's limits apply to single processes; a control group limits them all, if the host provides one.
//! Otherwise the supervisor polls. It cannot count processes that it may not inspect, and then the command does not
//! run.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, Dir, Mode, OFlags},
    process::Pid,
};

use super::control_group::ControlGroup;

/// Total memory of all processes, and its enforcement.
#[derive(Debug)]
pub(crate) struct Memory {
    group: Option<ControlGroup>,
    watch: Option<Watch>,
    limit: u64,
    looked: Instant,
    /// Highest total measured.
    most: u64,
}

impl Memory {
    pub(crate) fn new(limit: u64, group: Option<ControlGroup>) -> Self {
        Self { group, watch: None, limit, looked: Instant::now(), most: 0 }
    }

    /// Starts counting the processes that `watch` shows, unless the kernel does. Fails if they cannot be counted.
    pub(crate) fn count(&mut self, watch: io::Result<Watch>) -> io::Result<()> {
        if self.group.is_none() {
            let watch = watch?;
            watch.held(self.limit)?;
            self.watch = Some(watch);
        }
        Ok(())
    }

    /// The next check is due one interval from here. While the jail waited for its order, nothing of the command ran.
    pub(crate) fn command_begins(&mut self) {
        self.looked = Instant::now();
    }

    /// Looks now and then; in a group the kernel does.
    pub(crate) fn is_out(&mut self) -> io::Result<bool> {
        if let Some(watch) = &self.watch
            && self.most <= self.limit
            && self.looked.elapsed() >= BETWEEN_LOOKS
        {
            self.most = self.most.max(watch.held(self.limit)?);
            self.looked = Instant::now();
        }
        Ok(self.most > self.limit)
    }

    pub(crate) fn was_out(&self) -> bool {
        self.most > self.limit || self.ran_out_in_group()
    }

    /// A control group that ran out of memory used all of its limit.
    pub(crate) fn most(&self) -> u64 {
        if self.ran_out_in_group() { self.most.max(self.limit) } else { self.most }
    }

    pub(crate) fn kill_group(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
    }

    fn ran_out_in_group(&self) -> bool {
        self.group.as_ref().is_some_and(ControlGroup::ran_out_of_memory)
    }
}

/// The `/proc` that shows the processes of a command. One of them is ours and is not counted.
#[derive(Debug)]
pub(crate) struct Watch {
    proc: OwnedFd,
    top: i32,
    whom: Whom,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Whom {
    /// All visible processes.
    All,
    /// Also shows the host's processes, and may hide some from us (`hidepid`).
    Descendants,
}

impl Watch {
    /// A `/proc` of the command's own PID namespace.
    pub(crate) fn all_in(proc: OwnedFd) -> Self {
        Self { proc, top: Pid::INIT.as_raw_nonzero().get(), whom: Whom::All }
    }

    /// All descendants of `top`, by the host's `/proc`.
    pub(crate) fn descendants_of(top: Pid) -> io::Result<Self> {
        let proc = rustix::fs::openat(CWD, "/proc", FOLDER, Mode::empty())?;
        let watch = Self { proc, top: top.as_raw_nonzero().get(), whom: Whom::Descendants };
        // Not every kernel lists children.
        watch.text(&format!("{top}/task/{top}/children", top = watch.top))?;
        Ok(watch)
    }

    /// Total memory: exact if it may exceed `limit`, otherwise an upper bound.
    fn held(&self, limit: u64) -> io::Result<u64> {
        let mut processes = match self.whom {
            Whom::All => self.numbers(".")?,
            Whom::Descendants => self.family()?,
        };
        processes.remove(&self.top);
        let total = |measure: fn(&Self, i32) -> io::Result<Option<u64>>| {
            let mut total = 0_u64;
            for process in &processes {
                total = total.saturating_add(measure(self, *process)?.unwrap_or(0));
            }
            io::Result::Ok(total)
        };
        // The first measure is quick and counts shared memory once per process. The second one is slow and counts
        // it once.
        let quick = total(Self::resident)?;
        if quick > limit { total(Self::proportional) } else { Ok(quick) }
    }

    /// A process and its living descendants.
    fn family(&self) -> io::Result<BTreeSet<i32>> {
        let mut known = BTreeSet::from([self.top]);
        let mut unasked = vec![self.top];
        while let Some(process) = unasked.pop() {
            let threads = self.numbers(&format!("{process}/task"));
            let Some(threads) = unless_gone(threads)? else {
                if is_alive(process) {
                    return Err(io::Error::other(format!("process {process} is hidden from the gateway")));
                }
                continue;
            };
            // Each thread has its own children.
            for thread in threads {
                let children = self.text(&format!("{process}/task/{thread}/children"));
                let children = unless_gone(children)?.unwrap_or_default();
                let children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
                unasked.extend(children.filter(|child| known.insert(*child)));
            }
            if known.len() > MOST {
                return Err(io::Error::other("too many processes to count"));
            }
        }
        Ok(known)
    }

    /// `None` if the process has ended.
    fn resident(&self, process: i32) -> io::Result<Option<u64>> {
        self.measured(process, |thread| {
            let Some(status) = unless_gone(self.text(&format!("{thread}/status")))? else { return Ok(None) };
            let pages = kilobytes(&status, "RssAnon:").zip(kilobytes(&status, "RssShmem:"));
            Ok(pages.map(|(own, shared)| {
                own.saturating_add(shared)
                    .saturating_add(unshared(&status))
                    .saturating_add(kilobytes(&status, "VmSwap:").unwrap_or(0))
            }))
        })
    }

    /// Falls back to the resident size if the detailed file cannot be read.
    fn proportional(&self, process: i32) -> io::Result<Option<u64>> {
        let share = self.measured(process, |thread| {
            let closely = self.text(&format!("{thread}/smaps_rollup")).unwrap_or_default();
            let Some(status) = unless_gone(self.text(&format!("{thread}/status")))? else { return Ok(None) };
            let pages = kilobytes(&closely, "Pss_Anon:").zip(kilobytes(&closely, "Pss_Shmem:"));
            Ok(pages.map(|(own, shared)| {
                own.saturating_add(shared)
                    .saturating_add(unshared(&status))
                    .saturating_add(kilobytes(&closely, "SwapPss:").unwrap_or(0))
            }))
        })?;
        if share.is_some() { Ok(share) } else { self.resident(process) }
    }

    /// Measures the first thread that still has memory: a process whose first thread ended keeps its memory.
    fn measured<T>(
        &self,
        process: i32,
        measure: impl Fn(&str) -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        if let Some(of_leader) = measure(&process.to_string())? {
            return Ok(Some(of_leader));
        }
        for thread in unless_gone(self.numbers(&format!("{process}/task")))?.unwrap_or_default() {
            if let Some(of_thread) = measure(&format!("{process}/task/{thread}"))? {
                return Ok(Some(of_thread));
            }
        }
        Ok(None)
    }

    fn text(&self, path: &str) -> io::Result<String> {
        let file = rustix::fs::openat(&self.proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::new();
        File::from(file).read_to_end(&mut bytes)?;
        // The file contains the process name, which need not be UTF-8.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The entries of a directory that are numbers.
    fn numbers(&self, path: &str) -> io::Result<BTreeSet<i32>> {
        let folder = rustix::fs::openat(&self.proc, path, FOLDER, Mode::empty())?;
        let mut numbers = BTreeSet::new();
        for entry in Dir::new(folder)? {
            numbers.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()));
        }
        Ok(numbers)
    }
}

/// `None` if the process is gone. Hidden processes look the same.
fn unless_gone<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => Ok(None),
        read => read.map(Some),
    }
}

fn is_alive(process: i32) -> bool {
    let process = Pid::from_raw(process.max(0));
    process.is_some_and(|process| rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH))
}

/// Memory besides ordinary pages: page tables, including those of pages only read, and huge pages.
fn unshared(status: &str) -> u64 {
    let held = ["VmPTE:", "HugetlbPages:"].map(|name| kilobytes(status, name).unwrap_or(0));
    held.into_iter().fold(0, u64::saturating_add)
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);
/// More than any command may have.
const MOST: usize = 1 << 16;

#[cfg(test)]
mod tests;
