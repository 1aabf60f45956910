//! What does the gateway add to a call? Beside a bare server of the same SDK with the same tool that does nothing, over
//! loopback, in one process, taking turns. Ours has everything on: the front, a token, six stages, the journal on disk.
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

use std::time::{Duration, Instant};

use client::{Connection, call_message, list_message};
use tokio::runtime::Runtime;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let bare = runtime.block_on(bare::serve());
    let few = runtime.block_on(ours::Served::new(10));
    let many = runtime.block_on(ours::Served::new(10_000));
    let scale = if quick { 10 } else { 1 };

    println!("One connection, tools/call, in µs");
    let calls = [(bare, call_message(None)), (few.address, call_message(Some("noop_0")))];
    let times = runtime.block_on(in_turn(&calls, 20_000 / scale));
    print("bare rmcp server", &times[0]);
    print("toolgate", &times[1]);
    let added = (p50(&times[1]).as_secs_f64() - p50(&times[0]).as_secs_f64()) * 1e3;
    goal("added to the median", added, "ms", Goal::AtMost(0.25));

    println!("\n64 connections, calls a second");
    let rates = rates(&runtime, &calls, Duration::from_secs(10 / scale as u64 + 1));
    println!("  bare rmcp server  {:>10.0}\n  toolgate          {:>10.0}", rates[0], rates[1]);
    goal("of the bare server's", rates[1] / rates[0], "×", Goal::AtLeast(0.6));

    println!("\n10 tools and 10,000, in µs");
    for (what, message, last) in [
        ("a page of 100", list_message(), list_message()),
        ("a call", call_message(Some("noop_0")), call_message(Some("noop_9999"))),
    ] {
        let both = [(few.address, message), (many.address, last)];
        let times = runtime.block_on(in_turn(&both, 4_000 / scale));
        print(&format!("{what}, 10"), &times[0]);
        print(&format!("{what}, 10,000"), &times[1]);
        if what == "a call" {
            goal(
                "10,000 / 10",
                p50(&times[1]).as_secs_f64() / p50(&times[0]).as_secs_f64(),
                "×",
                Goal::AtMost(1.2),
            );
        } else {
            // A page of ten tools is a tenth of a page of a hundred; a tool on a page is what can be compared.
            let of_ten = p50(&times[0]).as_secs_f64() / 10.0;
            goal(
                "10,000 / 10, a tool on the page",
                p50(&times[1]).as_secs_f64() / 100.0 / of_ten,
                "×",
                Goal::AtMost(1.2),
            );
        }
    }

    println!("\nResident memory of this process, client and both servers, in MiB");
    let message = call_message(Some("noop_0"));
    for (calls, label) in [(20_000, "after 20,000 more calls"), (180_000, "after 200,000")] {
        runtime.block_on(in_turn(&[(few.address, message.clone())], calls / scale));
        println!("  {label:<26} {:>8.1}", resident());
    }
}

/// Every server in turn, so that a slow moment of the machine hits both.
async fn in_turn(servers: &[(std::net::SocketAddr, client::Message)], rounds: usize) -> Vec<Vec<Duration>> {
    let mut connections = Vec::new();
    for (address, message) in servers {
        connections.push((Connection::open(*address).await, message));
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

/// Two spans each, in the order a b b a.
fn rates(
    runtime: &Runtime,
    servers: &[(std::net::SocketAddr, client::Message); 2],
    span: Duration,
) -> [f64; 2] {
    let mut counts = [0_u32; 2];
    for at in [0, 1, 1, 0] {
        let (address, message) = &servers[at];
        counts[at] += runtime.block_on(client::flood(*address, message, 64, span / 2));
    }
    counts.map(|count| f64::from(count) / span.as_secs_f64())
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
