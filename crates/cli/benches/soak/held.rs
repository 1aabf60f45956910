//! The gateway's memory, descriptors and child processes, as reported by the kernel.

use std::{collections::BTreeSet, fmt, fs, thread, time::Duration};

use crate::gateway::resident_kib;

#[derive(Clone, Copy, Debug)]
pub struct HeldResources {
    resident_kib: u64,
    descriptors: u64,
    children: u64,
}

impl HeldResources {
    /// The minimum within half a second, because resources of single calls are not leaks.
    pub fn by(process: u32) -> Self {
        let mut least = Self::now(process);
        for _ in 0..10 {
            thread::sleep(Duration::from_millis(50));
            let now = Self::now(process);
            least = Self {
                resident_kib: least.resident_kib.min(now.resident_kib),
                descriptors: least.descriptors.min(now.descriptors),
                children: least.children.min(now.children),
            };
        }
        least
    }

    fn now(process: u32) -> Self {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors").count();
        Self {
            resident_kib: resident_kib(process),
            descriptors: descriptors as u64,
            children: children(process).len() as u64,
        }
    }

    /// Allows 10 % more, plus a small constant.
    pub fn assert_no_more_than(self, before: Self) {
        for (what, then, now, spare) in [
            ("KiB of memory", before.resident_kib, self.resident_kib, 4 << 10),
            ("descriptors", before.descriptors, self.descriptors, 16),
            ("children", before.children, self.children, 2),
        ] {
            assert!(now <= then + then / 10 + spare, "{what}: {then} half-way, {now} in the end");
        }
    }
}

impl fmt::Display for HeldResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.resident_kib * 10 / 1024;
        let (whole, tenth) = (tenths / 10, tenths % 10);
        write!(f, "{whole}.{tenth} MiB, {} descriptors, {} children", self.descriptors, self.children)
    }
}

/// Of all threads.
pub fn children(process: u32) -> BTreeSet<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return BTreeSet::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}
