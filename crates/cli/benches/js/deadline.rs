//! How late a runaway call is stopped, also inside built-ins, where the engine does not check the deadline.

use std::time::Duration;

use toolgate_sandbox::wire::{RunLimits, ScriptEnding};

use crate::{
    measure::{RatioGoal, Times, heading, millis},
    ours::{BenchTool, WorkerPool, generous},
    work::BenchBody,
};

pub fn run() {
    let gateway = WorkerPool::new();
    let after = BenchTool::new(&BenchBody::new(&["a"], "return a + 1", r#"{"a":41}"#, "42"));
    let limits = RunLimits { timeout_ms: LIMIT_MS, ..generous() };
    heading(&format!("Stopped at {LIMIT_MS} ms: how much later the caller knows, worst of {REPEATS}, in ms"));
    let (mut worst, mut all_reached) = (Duration::ZERO, true);
    for (title, body) in BODIES {
        let tool = BenchTool::new(&BenchBody::new(&[], body, "{}", ""));
        let (mut ending, mut reached) = (String::new(), true);
        let times: Times = (0..REPEATS)
            .map(|_| {
                let (time, report) = gateway.run(&tool, limits);
                if reached {
                    ending = describe(&report.done.ending, report.killed);
                    reached = matches!(report.done.ending, ScriptEnding::Timeout);
                }
                assert_eq!(gateway.value(&after).1, "42", "the next call is not disturbed");
                time
            })
            .collect();
        let late = times.max().saturating_sub(Duration::from_millis(u64::from(LIMIT_MS)));
        worst = worst.max(late);
        all_reached &= reached;
        let shown = if reached { format!("{:.1}", millis(late)) } else { "NOT REACHED".to_owned() };
        println!("  {title:<50} {shown:>11}   {ending}");
    }
    // Ignore a body that ends before its deadline, because it does not measure the delay.
    let latest = if all_reached { millis(worst) } else { f64::INFINITY };
    RatioGoal::AtMost(25.0).report("the latest of all", latest, " ms");
}

fn describe(ending: &ScriptEnding, killed: bool) -> String {
    match ending {
        ScriptEnding::Timeout if killed => "deadline, worker killed".to_owned(),
        ScriptEnding::Timeout => "deadline".to_owned(),
        ScriptEnding::Value(_) => "ended by itself".to_owned(),
        other => format!("{other:?}").chars().take(60).collect(),
    }
}

/// Plain loops, and bodies that hang or delay native QuickJS. Bodies that end are repeated.
const BODIES: &[(&str, &str)] = &[
    ("while (true)", "while (true);"),
    ("for await without end", "for (;;) await 0;"),
    ("try / finally that goes on", "for (;;) { try { throw 1 } catch { continue } finally { continue } }"),
    ("regular expression", "return /^(a+)+$/.test('a'.repeat(60) + 'b')"),
    ("Array.prototype.join", "return Array.prototype.join.call({ length: 2 ** 53 - 1 }, '').length"),
    ("Array.prototype.copyWithin", "Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1)"),
    ("Array.prototype.reverse", "Array.prototype.reverse.call({ length: 2 ** 53 - 1 })"),
    ("Array.prototype.shift", "Array.prototype.shift.call({ length: 2 ** 53 - 1 })"),
    ("sort of an empty array of 2³² - 1", "new Array(4294967295).sort()"),
    ("quadratic indexOf", "return 'a'.repeat(2e6).indexOf('a'.repeat(1e6) + 'b')"),
    ("normalize", "return ('a' + '\\u0316\\u0300'.repeat(2e5)).normalize('NFD').length"),
    ("BigInt power", "for (;;) String(3n ** 600000n)"),
    ("replaceAll", "for (;;) 'a'.repeat(4e6).replaceAll('a', 'bb')"),
    ("split and join", "for (;;) 'a'.repeat(5e5).split('').join('-')"),
];

const LIMIT_MS: u32 = 100;
const REPEATS: usize = 5;
