//! How much memory do the processes of a command hold together?
//!
//! Limits of the kernel are for one process each; a control group bounds them all, where the host lets us have one.
//! Elsewhere the supervisor looks now and then.

use std::{collections::BTreeSet, fs, path::Path};

use rustix::process::Pid;

/// What the descendants of `top`, which is ours and none of the command's, hold together: exactly where it may be more than `limit`,
/// and not less than that elsewhere.
pub(crate) fn held(top: Pid, limit: u64) -> u64 {
    let top = top.as_raw_nonzero().get();
    let mut processes = family(Path::new("/proc"), top);
    processes.remove(&top);
    let total = |measure: fn(&Path, i32) -> Option<u64>| {
        processes
            .iter()
            .filter_map(|process| measure(Path::new("/proc"), *process))
            .fold(0, u64::saturating_add)
    };
    // What several share is counted several times by the first, which is quick, and once by the second, which is not.
    let quick = total(resident);
    if quick > limit { total(proportional) } else { quick }
}

/// A process and everybody it started, as far as they still live.
fn family(proc: &Path, top: i32) -> BTreeSet<i32> {
    let mut known = BTreeSet::from([top]);
    let mut unasked = vec![top];
    while let Some(process) = unasked.pop() {
        if known.len() > MOST {
            break;
        }
        // Each thread has its own children.
        let threads = fs::read_dir(proc.join(format!("{process}/task"))).into_iter().flatten().flatten();
        for thread in threads.take(MOST) {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
            unasked.extend(children.filter(|child| known.insert(*child)));
        }
    }
    known
}

/// Read from the first thread that still has the memory: whoever ends its first thread alone keeps the rest of it.
fn measured<T>(proc: &Path, process: i32, measure: impl Fn(&Path) -> Option<T>) -> Option<T> {
    let folder = proc.join(process.to_string());
    measure(&folder).or_else(|| {
        let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
        threads.take(MOST).find_map(|thread| measure(&thread.path()))
    })
}

fn resident(proc: &Path, process: i32) -> Option<u64> {
    measured(proc, process, |thread| {
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let pages = kilobytes(&status, "RssAnon:")?.saturating_add(kilobytes(&status, "RssShmem:")?);
        Some(
            pages
                .saturating_add(unshared(&status))
                .saturating_add(kilobytes(&status, "VmSwap:").unwrap_or(0)),
        )
    })
}

/// A process that cannot be looked at this closely counts with all that it holds.
fn proportional(proc: &Path, process: i32) -> Option<u64> {
    let share = measured(proc, process, |thread| {
        let closely = fs::read_to_string(thread.join("smaps_rollup")).ok()?;
        let status = fs::read_to_string(thread.join("status")).ok()?;
        let pages = kilobytes(&closely, "Pss_Anon:")?.saturating_add(kilobytes(&closely, "Pss_Shmem:")?);
        Some(
            pages
                .saturating_add(unshared(&status))
                .saturating_add(kilobytes(&closely, "SwapPss:").unwrap_or(0)),
        )
    });
    share.or_else(|| resident(proc, process))
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

const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_counted_once() {
        let proc = tempfile::tempdir().unwrap();
        for (process, children, held) in
            [(1, "2 3", 10), (2, "4", 20), (3, "", 30), (4, "2", 40), (9, "", 999)]
        {
            let folder = proc.path().join(format!("{process}/task/{process}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("children"), children).unwrap();
            let status = format!("Name:\tx\nRssAnon:\t {held} kB\nRssShmem:\t 1 kB\n");
            fs::write(proc.path().join(format!("{process}/status")), status).unwrap();
        }
        let found = family(proc.path(), 1);
        assert_eq!(found, BTreeSet::from([1, 2, 3, 4]));
        let held: u64 = found.iter().filter_map(|process| proportional(proc.path(), *process)).sum();
        assert_eq!(held, (10 + 20 + 30 + 40 + 4) * 1024);
    }

    #[test]
    fn what_is_no_resident_page_counts_too() {
        let proc = tempfile::tempdir().unwrap();
        let (thread, leader) = (proc.path().join("7/task/8"), proc.path().join("7"));
        fs::create_dir_all(&thread).unwrap();
        fs::write(leader.join("status"), "Name:\tx\nState:\tZ (zombie)\n").unwrap();
        assert_eq!(resident(proc.path(), 7), None, "nobody has it");
        let status =
            "RssAnon:\t 1 kB\nRssShmem:\t 2 kB\nVmPTE:\t 4 kB\nVmSwap:\t 8 kB\nHugetlbPages:\t 16 kB\n";
        fs::write(thread.join("status"), status).unwrap();
        assert_eq!(resident(proc.path(), 7), Some(31 * 1024), "of a thread whose leader has ended");
        fs::write(thread.join("smaps_rollup"), "Pss_Anon: 32 kB\nPss_Shmem: 64 kB\nSwapPss: 128 kB\n")
            .unwrap();
        assert_eq!(proportional(proc.path(), 7), Some((32 + 64 + 128 + 4 + 16) * 1024));
    }

    #[test]
    fn a_child_holds_something() {
        let own = rustix::process::getpid();
        let mut child = std::process::Command::new("/bin/sleep").arg("60").spawn().unwrap();
        assert!(held(own, 4096) > 4096);
        assert!((1..1 << 30).contains(&held(own, 1 << 50)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
