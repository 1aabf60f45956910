//! How much memory do the processes of a command hold together?
//!
//! Limits of the kernel are for one process each; a control group bounds them all, where the host lets us have one.
//! Elsewhere the supervisor looks now and then.

use std::{collections::BTreeSet, fs, path::Path};

use rustix::process::Pid;

/// Whether the descendants of `top`, and `top` itself, hold more than `limit` bytes.
pub(crate) fn exceeds(top: Pid, limit: u64) -> bool {
    let processes = family(Path::new("/proc"), top.as_raw_nonzero().get());
    let total = |measure: fn(&Path, i32) -> Option<u64>| {
        processes
            .iter()
            .filter_map(|process| measure(Path::new("/proc"), *process))
            .fold(0, u64::saturating_add)
    };
    // What several share is counted several times by the first, which is quick, and once by the second, which is not.
    total(resident) > limit && total(proportional) > limit
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

fn resident(proc: &Path, process: i32) -> Option<u64> {
    let status = fs::read_to_string(proc.join(format!("{process}/status"))).ok()?;
    Some(kilobytes(&status, "RssAnon:")? + kilobytes(&status, "RssShmem:")?)
}

/// A process that cannot be looked at this closely counts with all that it holds.
fn proportional(proc: &Path, process: i32) -> Option<u64> {
    let closely = fs::read_to_string(proc.join(format!("{process}/smaps_rollup"))).ok();
    let share =
        closely.and_then(|text| Some(kilobytes(&text, "Pss_Anon:")? + kilobytes(&text, "Pss_Shmem:")?));
    share.or_else(|| resident(proc, process))
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
    fn this_process_holds_something() {
        let own = rustix::process::getpid();
        assert!(exceeds(own, 4096));
        assert!(!exceeds(own, 1 << 50));
    }
}
