//! The private memory of a worker process, as reported by the kernel.

use std::{
    collections::BTreeSet,
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use toolgate_sandbox::wire::{RunLimits, ScriptEnding};

use crate::{
    measure::{RatioGoal, heading},
    ours::{BenchTool, WorkerPool, generous},
    work::{self, BenchBody},
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Length {
    /// 1,000 calls.
    Short,
    /// 100,000 calls, compared with the first thousand.
    Long,
}

pub fn run(length: Length) {
    heading("Private dirty memory of one worker, in MiB");
    let before = children();
    let gateway = WorkerPool::of_one_worker();
    let started: Vec<u32> = children().difference(&before).copied().collect();
    let [worker] = started[..] else {
        println!("  not measured: {} new processes instead of one worker", started.len());
        return;
    };
    let Some(idle) = private_dirty(worker) else {
        println!("  not measured: the kernel does not show /proc/PID/smaps_rollup of a worker to this user");
        return;
    };
    RatioGoal::AtMost(8.0).report("idle, after its start", idle, " MiB");
    // All bodies except the long loop, which uses no memory.
    let works: Vec<BenchBody> = work::all().into_iter().filter(|work| work.name != "w3").collect();
    let tools: Vec<BenchTool> = works.iter().map(BenchTool::new).collect();
    let after = |from: usize, to: usize| {
        for number in from..to {
            gateway.value(&tools[number % tools.len()]);
        }
        let memory = private_dirty(worker).expect("the worker is still the same");
        RatioGoal::AtMost(8.0).report(&format!("idle, after {to} calls"), memory, " MiB");
        memory
    };
    let early = after(0, 1_000);
    if length == Length::Long {
        let late = after(1_000, 100_000);
        RatioGoal::AtMost(1.1).report("flat: after 100,000 calls, beside after 1,000", late / early, " ×");
    }
    hog(&gateway, worker);
}

/// The worker's last call; it is not reused afterwards.
fn hog(gateway: &WorkerPool, worker: u32) {
    let body = "const kept = []; for (;;) kept.push(new Uint8Array(1 << 20).fill(1))";
    let tool = BenchTool::new(&BenchBody::new(&[], body, "{}", ""));
    let limits = RunLimits { memory_bytes: HOGS_CAP_MIB << 20, ..generous() };
    let before = private_dirty(worker).expect("the worker is still the same");
    let peak = peak_during(worker, || {
        let (_, report) = gateway.run(&tool, limits);
        assert_eq!(report.done.ending, ScriptEnding::Memory, "a hog is ended by its limit");
    });
    RatioGoal::AtMost(64.0).report("what a hog takes whose cap is 64 MiB", peak - before, " MiB");
}

/// The maximum while `work` runs and the process exists.
fn peak_during(process: u32, work: impl FnOnce()) -> f64 {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut peak = 0.0_f64;
            while let (false, Some(now)) = (is_over.load(Ordering::Relaxed), private_dirty(process)) {
                peak = peak.max(now);
            }
            peak
        });
        work();
        is_over.store(true, Ordering::Relaxed);
        watching.join().expect("watching goes on to the end")
    })
}

const HOGS_CAP_MIB: u64 = 64;

fn children() -> BTreeSet<u32> {
    let processes = fs::read_dir("/proc").expect("there is /proc").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent(*id) == Some(std::process::id())).collect()
}

/// The second field after the process name, which is in parentheses and may contain anything.
fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn private_dirty(process: u32) -> Option<f64> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Private_Dirty:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
