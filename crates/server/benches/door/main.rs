//! What does the gateway add to a call? Beside a bare server of the same SDK with the same tool that does nothing, over
//! loopback, in one process, taking turns. Ours has the front, a token that is looked up in its database, six stages and the
//! journal on disk. What it costs to run a tool is measured elsewhere: `crates/cli/benches/js`, and over the door by the soak.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and fails loudly"
)]

mod bare;
mod client;
mod ours;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use client::{BenchTarget, Form, call_message, list_message};
use ours::{ListedTools, Served};
use tokio::runtime::Runtime;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let scale = if quick { 10 } else { 1 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let bare = runtime.block_on(bare::serve());
    let few = runtime.block_on(Served::new(10, ListedTools::All));
    if let Some(form) = std::env::args().skip_while(|argument| argument != "--flood").nth(1) {
        return flood_for_a_profiler(&runtime, &few, &form);
    }
    // First of all: beside servers with many tools, or the sessions that a bare server keeps, a leak would look small.
    memory(&runtime, &few, scale);
    beside_a_bare_server(&runtime, bare, &few, scale);
    many_tools(&runtime, &few, scale);
    hidden_tools(&runtime, scale);
}

fn beside_a_bare_server(runtime: &Runtime, bare: SocketAddr, few: &Served, scale: usize) {
    for (form, what) in FORMS {
        println!("{what}\nOne connection, in µs");
        // The bare server looks at no token.
        let bare = BenchTarget {
            address: bare,
            token: few.token.clone(),
            message: call_message(&few.token, "noop", *form),
        };
        let calls = [bare, few.call("noop_0", *form)];
        let times = runtime.block_on(in_turn(&calls, 20_000 / scale));
        print("bare rmcp server", &times[0]);
        print("toolgate", &times[1]);
        let added = (p50(&times[1]).as_secs_f64() - p50(&times[0]).as_secs_f64()) * 1e3;
        goal("added to the median", added, "ms", Goal::AtMost(0.25));

        println!("64 connections, calls a second");
        let turns = rates(runtime, &calls, 30 / scale);
        let of = |server: usize| median(turns.iter().map(|turn| turn[server]).collect());
        println!("  bare rmcp server  {:>10.0}\n  toolgate          {:>10.0}", of(0), of(1));
        let ratio = median(turns.iter().map(|turn| turn[1] / turn[0]).collect());
        goal("of the bare server's", ratio, "×", Goal::AtLeast(0.75));
        println!();
    }
}

fn many_tools(runtime: &Runtime, few: &Served, scale: usize) {
    println!("10 tools and 10,000, in µs; a page has 10 tools");
    let many = runtime.block_on(Served::new(10_000, ListedTools::All));
    let pages = [few.page(None), many.page(None), many.page(Some("noop_9989"))];
    let times = runtime.block_on(in_turn(&pages, 4_000 / scale));
    print("the page of 10", &times[0]);
    print("the first page of 10,000", &times[1]);
    print("the last page of 10,000", &times[2]);
    goal("first page, 10,000 / 10", ratio(&times[1], &times[0]), "×", Goal::AtMost(1.2));
    goal("last page, 10,000 / 10", ratio(&times[2], &times[0]), "×", Goal::AtMost(1.2));
    let times = runtime.block_on(in_turn(
        &[few.call("noop_0", Form::Plain), many.call("noop_9999", Form::Plain)],
        4_000 / scale,
    ));
    print("a call, 10", &times[0]);
    print("a call, 10,000", &times[1]);
    goal("a call, 10,000 / 10", ratio(&times[1], &times[0]), "×", Goal::AtMost(1.2));
}

fn hidden_tools(runtime: &Runtime, scale: usize) {
    println!("\n10 tools and 10,000, of which policies show 5, in µs");
    let few = runtime.block_on(Served::new(10, ListedTools::Five));
    let many = runtime.block_on(Served::new(10_000, ListedTools::Five));
    let first = runtime.block_on(async {
        let target = many.page(None);
        let mut connection = target.open().await;
        let begin = Instant::now();
        connection.send(&target.message).await;
        begin.elapsed()
    });
    println!(
        "  the first page that this caller lists, with every tool asked about {:>10.0}",
        first.as_secs_f64() * 1e6
    );
    let times = runtime.block_on(in_turn(&[few.page(None), many.page(None)], 4_000 / scale));
    print("5 of 10", &times[0]);
    print("5 of 10,000", &times[1]);
    goal("a page, 10,000 / 10", ratio(&times[1], &times[0]), "×", Goal::AtMost(1.2));
}

fn memory(runtime: &Runtime, few: &Served, scale: usize) {
    println!("Resident memory of this process, client and both servers, in MiB");
    let call = [few.call("noop_0", Form::Plain)];
    let after = |calls: usize, label: &str| {
        runtime.block_on(in_turn(&call, calls / scale));
        let memory = resident();
        println!("  {label:<26} {memory:>8.1}");
        memory
    };
    let early = after(20_000, "after 20,000 more calls");
    let late = after(180_000, "after 200,000");
    goal("flat: after 200,000, beside after 20,000", late / early, "×", Goal::AtMost(1.1));
    println!();
}

impl Served {
    fn call(&self, tool: &str, form: Form) -> BenchTarget {
        self.target(call_message(&self.token, tool, form))
    }

    fn page(&self, after: Option<&str>) -> BenchTarget {
        self.target(list_message(&self.token, after))
    }

    fn target(&self, message: client::BenchMessage) -> BenchTarget {
        BenchTarget { address: self.address, token: self.token.clone(), message }
    }
}

/// Alternates between the servers, so a slow moment of the machine affects both.
async fn in_turn(servers: &[BenchTarget], rounds: usize) -> Vec<Vec<Duration>> {
    let mut connections = Vec::new();
    for target in servers {
        connections.push((target.open().await, &target.message));
    }
    let mut times = vec![Vec::with_capacity(rounds); servers.len()];
    for round in 0..rounds + WARM_UP {
        for (at, (connection, message)) in connections.iter_mut().enumerate() {
            let begin = Instant::now();
            connection.send(message).await;
            if round >= WARM_UP {
                times[at].push(begin.elapsed());
            }
        }
    }
    times
}

/// Calls a second of each, in many short turns: both halves of a turn find the machine alike, and the median of turns is what
/// it does when nobody else is at it. In the order a b b a, so neither server always runs second.
fn rates(runtime: &Runtime, servers: &[BenchTarget; 2], turns: usize) -> Vec<[f64; 2]> {
    let turn = |_| {
        let mut counts = [0_u32; 2];
        for at in [0, 1, 1, 0] {
            counts[at] += runtime.block_on(client::flood(&servers[at], 64, SPAN));
        }
        counts.map(|count| f64::from(count) / (2.0 * SPAN.as_secs_f64()))
    };
    (0..turns.max(3)).map(turn).collect()
}

fn flood_for_a_profiler(runtime: &Runtime, few: &Served, form: &str) {
    let known = FORMS.iter().find(|(known, _)| format!("{known:?}").eq_ignore_ascii_case(form));
    let (form, what) = known.unwrap_or_else(|| panic!("no form `{form}`: plain, withprogress or insession"));
    let span = Duration::from_secs(10);
    let calls = runtime.block_on(client::flood(&few.call("noop_0", *form), 64, span));
    println!("{what}: {:.0} calls a second", f64::from(calls) / span.as_secs_f64());
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(what: &str, times: &[Duration]) {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let micros = |at: usize| sorted[at.min(sorted.len() - 1)].as_secs_f64() * 1e6;
    println!(
        "  {what:<26} p50 {:>8.0}   p99 {:>8.0}   min {:>8.0}",
        micros(sorted.len() / 2),
        micros(sorted.len() * 99 / 100),
        micros(0)
    );
}

fn p50(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

fn ratio(ours: &[Duration], theirs: &[Duration]) -> f64 {
    p50(ours).as_secs_f64() / p50(theirs).as_secs_f64()
}

#[derive(Clone, Copy)]
enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

fn goal(what: &str, value: f64, unit: &str, goal: Goal) {
    let (is_met, sign, number) = match goal {
        Goal::AtMost(most) => (value <= most, '≤', most),
        Goal::AtLeast(least) => (value >= least, '≥', least),
    };
    let word = if is_met { "met" } else { "MISSED" };
    println!("  {what:<44} {value:>8.3} {unit} (goal {sign} {number}: {word})");
}

fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
}

const WARM_UP: usize = 200;
/// Half of a turn of one server.
const SPAN: Duration = Duration::from_millis(250);

/// A gateway may answer a plain call without much of the SDK, so the others are measured too.
const FORMS: &[(Form, &str)] = &[
    (Form::Plain, "A call of 2026-07-28"),
    (Form::WithProgress, "A call of 2026-07-28 with a progress token"),
    (Form::InSession, "A call of 2025-11-25, in a session"),
];
