//! Attacks on memory that no process limit counts, because the kernel holds it and no process owns it.

use std::{fs::File, io, path::Path, time::Duration};

use toolgate_sandbox::Ending;

use super::{
    Attack, Hole, Verdict,
    call::{Fork, NONE, call, descriptor, fork, leave, of, signed},
    row,
};
use crate::raw;

pub fn table() -> Vec<Attack> {
    vec![
        is_ended(row(
            "page_tables",
            "page tables of addresses that are only read take memory",
            "control group, or the supervisor, which counts page tables",
            |_| page_tables(),
        )),
        is_ended(row(
            "memory_without_a_leader",
            "memory of processes whose first thread has ended is not counted",
            "control group, or the supervisor, which reads the other threads",
            |_| without_a_leader(),
        )),
        is_ended(row(
            "memory_under_no_text",
            "memory of processes whose name is not UTF-8 is not counted",
            "control group, or the supervisor, which reads any name",
            |_| under_no_text(),
        )),
        row(
            "dropped_shared_memory",
            "shared memory is written and unmapped, and stays allocated",
            "Landlock: `/dev/zero` cannot be opened for writing; seccomp",
            |_| dropped_shared_memory(),
        )
        .changed(|order, _| order.limits.memory_bytes = LITTLE)
        .unjailed(),
        row("growing_memory", "memory that grows like a stack escapes the process limit", "seccomp", |_| {
            growing_memory()
        })
        .changed(|order, _| order.limits.memory_bytes = LITTLE)
        .unjailed(),
        row(
            "moved_memory",
            "a moved stack page grows outside the process limit",
            "seccomp: no `mremap`",
            |_| moved_memory(),
        )
        .unjailed(),
        row("many_locks", "file locks take kernel memory", "seccomp: the supervisor counts them", |inside| {
            many_locks(&inside.work().join("free"))
        })
        .changed(|order, _| order.limits.memory_bytes = LITTLE)
        .hole(Hole::Cut(|order, _| order.limits.memory_bytes = 4 << 30)),
    ]
}

/// Killed with all its descendants when it exceeds the limit.
fn is_ended(attack: Attack) -> Attack {
    attack
        .anyhow()
        .changed(|order, _| order.limits.memory_bytes = LITTLE)
        .harms(|_, report| (report.ending != Ending::OutOfMemory).then(|| "it was not ended".into()))
        .hole(Hole::Cut(|order, _| order.limits.memory_bytes = 4 << 30))
}

/// Reads one byte of every two megabytes: each costs a page table of 4 KiB, and all map the same zero page.
fn page_tables() -> Verdict {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let bytes = MUCH / 4096 * ONE_TABLE;
    let place = match call(libc::SYS_mmap, &[0, bytes, signed(libc::PROT_READ), signed(flags), NONE, 0]) {
        Ok(place) => place,
        Err(error) => return Verdict::Held(error.to_string()),
    };
    for table in (0..bytes).step_by(ONE_TABLE) {
        raw::read_byte(place + table);
    }
    until_somebody_looks();
    Verdict::Broke(format!("{MUCH} bytes of page tables"))
}

/// Each process stays below its limit; together they exceed it, and none has a first thread to inspect.
fn without_a_leader() -> Verdict {
    for _ in 0..6 {
        if let Ok(Fork::Child) = fork() {
            std::thread::spawn(|| {
                let held = vec![1_u8; 24 << 20];
                std::thread::sleep(Duration::from_secs(20));
                std::hint::black_box(held);
                leave();
            });
            loop {
                let _ = call(libc::SYS_exit, &[0]);
            }
        }
    }
    until_somebody_looks();
    Verdict::Broke("144 MiB are held".into())
}

/// The process name is in the same file as the memory usage.
fn under_no_text() -> Verdict {
    for _ in 0..6 {
        if let Ok(Fork::Child) = fork() {
            let mut name = *b"\xff\xfe\xc3(\0";
            let _ = call(libc::SYS_prctl, &[signed(libc::PR_SET_NAME), of(&mut name)]);
            let held = vec![1_u8; 24 << 20];
            std::thread::sleep(Duration::from_secs(20));
            std::hint::black_box(held);
            leave();
        }
    }
    until_somebody_looks();
    Verdict::Broke("144 MiB are held".into())
}

/// Dropped shared memory no longer belongs to the process, nor does unmapped memory except one page.
fn dropped_shared_memory() -> Verdict {
    let take = || -> io::Result<()> {
        let zero = File::options().read(true).write(true).open("/dev/zero")?;
        let dropped = raw::map_shared(&zero, MUCH / 2)?;
        call(libc::SYS_madvise, &[dropped, MUCH / 2, signed(libc::MADV_DONTNEED)])?;
        let cut = raw::map_shared(&zero, MUCH / 2)?;
        call(libc::SYS_munmap, &[cut + 4096, MUCH / 2 - 4096])?;
        Ok(())
    };
    match take() {
        Ok(()) => {
            until_somebody_looks();
            Verdict::Broke(format!("{MUCH} bytes are held"))
        }
        Err(error) => Verdict::Held(error.to_string()),
    }
}

fn growing_memory() -> Verdict {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_GROWSDOWN;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    super::must_fail(call(libc::SYS_mmap, &[0, MUCH, signed(protection), signed(flags), NONE, 0]))
}

/// Any page: a filter cannot distinguish stack pages.
fn moved_memory() -> Verdict {
    let mut page = vec![0_u8; 8192];
    let start = of(page.as_mut_slice()).next_multiple_of(4096);
    let moved = call(libc::SYS_mremap, &[start, 4096, 8192, signed(libc::MREMAP_MAYMOVE)]);
    // The moved page is missing at its old address, which must not be touched any more.
    std::mem::forget(page);
    super::must_fail(moved)
}

/// Locks of one byte with gaps, so none are merged; in many files, because the kernel searches the locks of each
/// file.
fn many_locks(folder: &Path) -> Verdict {
    super::none_works([
        ("of a process", lock_often(folder, libc::F_SETLK)),
        ("of an open file", lock_often(folder, libc::F_OFD_SETLK)),
    ])
}

fn lock_often(folder: &Path, owner: i32) -> io::Result<usize> {
    let mut files = Vec::new();
    for number in 0..FILES {
        let file = File::create(folder.join(number.to_string()))?;
        for place in 0..LOCKS_OF_A_FILE {
            let mut lock = [i64::from(libc::F_WRLCK), place * 2, 1, 0];
            call(libc::SYS_fcntl, &[descriptor(&file), signed(owner), of(&mut lock)])?;
        }
        files.push(file);
    }
    Ok(files.len())
}

fn until_somebody_looks() {
    std::thread::sleep(Duration::from_secs(3));
}

const LITTLE: u64 = 32 << 20;
const MUCH: usize = 128 << 20;
/// Memory covered by one page of a page table.
const ONE_TABLE: usize = 2 << 20;
const FILES: usize = 100;
const LOCKS_OF_A_FILE: i64 = 500;
