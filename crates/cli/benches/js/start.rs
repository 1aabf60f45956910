//! The time to the first answer: creates a pool, starts a sandboxed worker and makes one call.

use std::time::Instant;

use crate::{
    Effort,
    measure::{RatioGoal, Times, heading, millis},
    ours::{BenchTool, WorkerPool},
    work::BenchBody,
};

pub fn run(effort: Effort) {
    let tool = BenchTool::new(&BenchBody::new(&["a"], "return a + 1", r#"{"a":41}"#, "42"));
    let times: Times = (0..effort.rounds(50))
        .map(|_| {
            let begin = Instant::now();
            let gateway = WorkerPool::of_one_worker();
            assert_eq!(gateway.value(&tool).1, "42");
            begin.elapsed()
        })
        .collect();
    heading("Cold start: from nothing to the first answer, in ms");
    println!(
        "  p50 {:.1}, p99 {:.1}, min {:.1}",
        millis(times.p50()),
        millis(times.p99()),
        millis(times.min())
    );
    RatioGoal::AtMost(50.0).report("cold start", millis(times.p50()), " ms");
}
