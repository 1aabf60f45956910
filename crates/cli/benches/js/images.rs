//! What is a page image worth? A tool of a thousand lines whose pages the worker holds, against the same tool sent and
//! parsed at every call, and against native QuickJS that parses it in process.

use crate::{
    Effort, Variant as _,
    measure::{Goal, Times, heading, micros, ratio},
    native::Native,
    ours::{Gateway, Tool},
    work::thousand_lines,
};

pub fn run(effort: Effort) {
    let work = thousand_lines();
    let gateway = Gateway::of_one_worker();
    let mut native = Native::bare();
    let tool = Tool::new(&work);
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
    Goal::AtLeast(10.0).report("loaded at every call / page image", ratio(sent.p50(), held.p50()), "×");
}
