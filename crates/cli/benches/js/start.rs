//! How long until the first answer? A pool made, a worker started and jailed, one call.

use std::time::Instant;

use crate::{
    Effort,
    measure::{Goal, Times, heading, millis},
    ours::{Gateway, Tool},
    work::Work,
};

pub fn run(effort: Effort) {
    let tool = Tool::new(&Work::new(&["a"], "return a + 1", r#"{"a":41}"#, "42"));
    let times: Times = (0..effort.rounds(50))
        .map(|_| {
            let begin = Instant::now();
            let gateway = Gateway::of_one_worker();
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
    Goal::AtMost(50.0).report("cold start", millis(times.p50()), " ms");
}
