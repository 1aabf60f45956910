//! How much memory do the processes of a command hold together?
//!
//! Limits of the kernel are for one process each; a control group bounds them all, where the host lets us have one.
//! Elsewhere the supervisor looks now and then. Whom it may not look at it cannot count, and then there is no command.

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

/// What all processes hold together, and who sees to it that it is not more than the limit.
#[derive(Debug)]
pub(crate) struct Memory {
    group: Option<ControlGroup>,
    watch: Option<Watch>,
    limit: u64,
    looked: Instant,
    /// That was seen at one look.
    most: u64,
}

impl Memory {
    pub(crate) fn new(limit: u64, group: Option<ControlGroup>) -> Self {
        Self { group, watch: None, limit, looked: Instant::now(), most: 0 }
    }

    /// From here on all are counted whom `watch` shows, unless the kernel does it. An error where they cannot be.
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

    /// A group that ran out of memory held all that it may.
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

/// Where the processes of a command are seen. One of those is ours, and is not counted.
#[derive(Debug)]
pub(crate) struct Watch {
    proc: OwnedFd,
    top: i32,
    whom: Whom,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Whom {
    /// Everybody who is shown.
    All,
    /// The host's processes are shown too, and may be hidden from us (`hidepid`).
    Descendants,
}

impl Watch {
    /// A `/proc` of the command's own process namespace.
    pub(crate) fn all_in(proc: OwnedFd) -> Self {
        Self { proc, top: Pid::INIT.as_raw_nonzero().get(), whom: Whom::All }
    }

    /// Everybody whom `top` and its children started, by the host's `/proc`.
    pub(crate) fn descendants_of(top: Pid) -> io::Result<Self> {
        let proc = rustix::fs::openat(CWD, "/proc", FOLDER, Mode::empty())?;
        let watch = Self { proc, top: top.as_raw_nonzero().get(), whom: Whom::Descendants };
        // Not every kernel lists children.
        watch.text(&format!("{top}/task/{top}/children", top = watch.top))?;
        Ok(watch)
    }

    /// What they hold together: exactly where it may be more than `limit`, and not less than that elsewhere.
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
        // What several share is counted several times by the first, which is quick, and once by the second, which is not.
        let quick = total(Self::resident)?;
        if quick > limit { total(Self::proportional) } else { Ok(quick) }
    }

    /// A process and everybody it started, as far as they still live.
    fn family(&self) -> io::Result<BTreeSet<i32>> {
        let mut known = BTreeSet::from([self.top]);
        let mut unasked = vec![self.top];
        while let Some(process) = unasked.pop() {
            let threads = self.numbers(&format!("{process}/task"));
            let Some(threads) = unless_gone(threads)? else {
                if is_alive(process) {
                    return Err(io::Error::other(format!("process {process} is hidden from us")));
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
                return Err(io::Error::other("there are too many processes to be counted"));
            }
        }
        Ok(known)
    }

    /// `None` of somebody who has ended.
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

    /// A process that cannot be looked at this closely counts with all that it holds.
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

    /// Read from the first thread that still has the memory: whoever ends its first thread alone keeps the rest of it.
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
        // The name of a process is in here, and need not be text.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The names in a folder that are numbers.
    fn numbers(&self, path: &str) -> io::Result<BTreeSet<i32>> {
        let folder = rustix::fs::openat(&self.proc, path, FOLDER, Mode::empty())?;
        let mut numbers = BTreeSet::new();
        for entry in Dir::new(folder)? {
            numbers.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<i32>().ok()));
        }
        Ok(numbers)
    }
}

/// `None` where nobody is there any more. Hidden ones look the same.
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

/// What is none of the ordinary pages: tables of pages, also of those that were only read, and huge pages.
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
