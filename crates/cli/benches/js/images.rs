//! The benefit of cached memory images: a tool of 1,000 lines cached in the worker, compared with sending and parsing it at
//! every call, and with native QuickJS.

use crate::{
    Effort, EngineVariant as _,
    measure::{RatioGoal, Times, heading, micros, ratio},
    native::Native,
    ours::{BenchTool, WorkerPool},
    work::thousand_lines,
};

pub fn run(effort: Effort) {
    let work = thousand_lines();
    let gateway = WorkerPool::of_one_worker();
    let mut native = Native::bare();
    let tool = BenchTool::new(&work);
    let (mut held, mut sent, mut parsed) = (Times::default(), Times::default(), Times::default());
    for round in 0..effort.rounds(200) {
        let unknown = tool.clone().renamed(round as u64);
        for (times, (time, value)) in [
            (&mut held, gateway.value(&tool)),
            (&mut sent, gateway.value(&unknown)),
            (&mut parsed, native.call(&work)),
        ] {
            work.check(&value);
            times.add(time);
        }
    }
    heading("A tool of 1,000 lines: latency in µs");
    for (title, times) in [
        ("toolgate, page image held by the worker", &held),
        ("toolgate, sent and loaded at every call", &sent),
        ("native QuickJS in process, bare, parsed at every call", &parsed),
    ] {
        let (p50, p99, min) = (micros(times.p50()), micros(times.p99()), micros(times.min()));
        println!("  {title:<55} {p50:>10.0} {p99:>10.0} {min:>10.0}");
    }
    RatioGoal::AtLeast(10.0).report("loaded at every call / page image", ratio(sent.p50(), held.p50()), "×");
}
