//! Soak test: load on a gateway while workers are killed, clients disconnect, files change and it is stopped. `-- --seconds 600` runs longer.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and fails loudly"
)]

mod door;
mod edits;
#[path = "../shared/gateway.rs"]
mod gateway;
mod held;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use door::SoakClient;
use edits::Edits;
use gateway::{serve, toolgate};
use held::HeldResources;
use serde_json::Value;

fn main() {
    let seconds = std::env::args().skip_while(|argument| argument != "--seconds").nth(1);
    let span = Duration::from_secs(seconds.and_then(|text| text.parse().ok()).unwrap_or(30));
    let folder = tempfile::tempdir().unwrap();
    let (mut edits, token) = prepare(folder.path());
    let (mut gateway, address, log) = serve(folder.path());
    thread::spawn(move || log.for_each(drop));
    let (door, counts) = (Arc::new(SoakClient { address, token }), Arc::new(SoakCounts::default()));
    let process = gateway.id();
    alone(&door);
    let mut threads = Vec::new();
    for number in 0..CLIENTS {
        let (door, counts) = (Arc::clone(&door), Arc::clone(&counts));
        threads.push(thread::spawn(move || client(number, &door, &counts)));
    }
    let begin = Instant::now();
    let first = HeldResources::by(process);
    let killing = thread::spawn({
        let counts = Arc::clone(&counts);
        move || kill_workers(process, &counts)
    });
    let mut middle = None;
    while begin.elapsed() < span {
        edits.next(&door);
        thread::sleep(Duration::from_millis(200));
        if middle.is_none() && begin.elapsed() >= span / 2 {
            middle = Some(HeldResources::by(process));
        }
    }
    let last = HeldResources::by(process);
    // Clients are still calling: the shutdown must close all open calls.
    counts.is_stopping.store(true, Ordering::SeqCst);
    killing.join().expect("the killing ends well");
    Command::new("kill").args(["-TERM", &process.to_string()]).status().unwrap();
    assert!(gateway.wait().unwrap().success(), "the gateway stops in good order");
    for client in threads {
        client.join().expect("a client ends well");
    }
    println!("soak of {} s with {CLIENTS} clients", span.as_secs());
    edits.report();
    report(folder.path(), &counts, [first, middle.unwrap_or(first), last]);
}

#[derive(Default)]
struct SoakCounts {
    released: AtomicU64,
    busy: AtomicU64,
    /// Calls that failed because their worker was killed.
    died: AtomicU64,
    hung_up: AtomicU64,
    killed: AtomicU64,
    is_stopping: AtomicBool,
}

impl SoakCounts {
    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }
}

fn prepare(folder: &Path) -> (Edits, String) {
    toolgate(folder, &["init", ".", "--preset", "none"]);
    let edits = Edits::new(folder);
    toolgate(folder, &["publish"]);
    (edits, toolgate(folder, &["token", "create", "soak"]).trim().to_owned())
}

/// The latency of a JavaScript tool over HTTP without other load.
fn alone(door: &SoakClient) {
    let one_call = |number: usize| {
        let begin = Instant::now();
        let answer = door.call("word_count", &format!("call {number}")).expect("an answer");
        assert!(answer.contains("\"words\":2"), "{answer}");
        begin.elapsed().as_micros()
    };
    let mut times: Vec<u128> = (0..1_100).map(one_call).skip(100).collect();
    times.sort_unstable();
    println!(
        "one call after another, each on a connection of its own: p50 {} µs, p99 {} µs",
        times[500], times[990]
    );
}

/// Calls until the gateway is gone. Every tenth call is abandoned at some point.
fn client(number: usize, door: &SoakClient, counts: &SoakCounts) {
    let mut round = number;
    loop {
        round += 1;
        let text = format!("call {round}");
        let answer = if round.is_multiple_of(10) {
            door.begin("word_count", &text).map(|stream| {
                thread::sleep(Duration::from_millis(random(21) as u64));
                drop(stream);
                None
            })
        } else {
            door.call("word_count", &text).map(Some)
        };
        match answer {
            // Any answer is fine here; the journal shows whether it was correct.
            Ok(_) if counts.is_stopping() => {}
            Err(_) if counts.is_stopping() => return,
            Ok(None) => count(&counts.hung_up),
            Ok(Some(answer)) => judge(&answer, counts),
            Err(error) => panic!("no answer: {error}"),
        }
    }
}

/// Only a killed worker may make a call fail, whatever is edited meanwhile.
fn judge(answer: &str, counts: &SoakCounts) {
    // The journal shows the cause: the worker was killed during its start.
    let has_died =
        answer.contains("execute.worker_died") || answer.contains("the gateway could not carry out");
    if answer.contains("\"words\":2") {
        count(&counts.released);
    } else if has_died {
        count(&counts.died);
    } else {
        assert!(answer.contains("execute.busy"), "{answer}");
        count(&counts.busy);
    }
}

/// Kills any worker: idle, starting or running a call.
fn kill_workers(gateway: u32, counts: &SoakCounts) {
    while !counts.is_stopping() {
        let all: Vec<u32> = held::children(gateway).into_iter().collect();
        if !all.is_empty() {
            let worker = all[random(all.len())].to_string();
            // The worker may already be gone.
            if Command::new("kill").args(["-KILL", &worker]).stderr(Stdio::null()).status().unwrap().success()
            {
                count(&counts.killed);
            }
        }
        thread::sleep(Duration::from_millis(100 + random(800) as u64));
    }
}

fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

fn random(below: usize) -> usize {
    usize::try_from(RandomState::new().build_hasher().finish() % below as u64).unwrap()
}

fn report(folder: &Path, counts: &SoakCounts, [first, middle, last]: [HeldResources; 3]) {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (released, died, killed) = (of(&counts.released), of(&counts.died), of(&counts.killed));
    println!(
        "  released {released}, failed by a killed worker {died}, busy {}, given up {}, workers killed {killed}",
        of(&counts.busy),
        of(&counts.hung_up)
    );
    println!("  at the start {first}\n  half-way     {middle}\n  in the end   {last}");
    let (mut open, mut ends) = (BTreeSet::new(), BTreeMap::<String, u64>::new());
    let (mut opened, mut closed) = (0_u64, 0_u64);
    for entry in journal(folder) {
        let id = entry["callId"].as_str().map(str::to_owned);
        match (entry["kind"].as_str(), id) {
            (Some("call.opened"), Some(id)) => {
                opened += 1;
                assert!(open.insert(id), "opened twice");
            }
            (Some("call.closed"), Some(id)) => {
                closed += 1;
                assert!(open.remove(&id), "closed and not open: {id}");
                let reason = entry["reason"].as_str().unwrap_or("released");
                *ends.entry(reason.to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
    println!("  calls opened {opened}, closed {closed}, without a pair {}: {ends:?}", open.len());
    println!("  {}", toolgate(folder, &["audit", "verify"]).lines().next().unwrap_or_default());
    assert!(open.is_empty());
    let strange: Vec<&String> = ends.keys().filter(|reason| !EXPECTED.contains(&reason.as_str())).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(released > 0 && killed > 0);
    assert!(died <= killed, "a worker runs one call at a time, and takes no other one with it");
    last.assert_no_more_than(middle);
}

/// Streams the records, because ten minutes of them do not fit into memory.
fn journal(folder: &Path) -> impl Iterator<Item = Value> {
    let mut files: Vec<_> =
        fs::read_dir(folder.join(".toolgate/journal")).unwrap().flatten().map(|one| one.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let lines = files.into_iter().flat_map(|file| BufReader::new(fs::File::open(file).unwrap()).lines());
    lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["entry"].take())
}

const CLIENTS: usize = 8;

/// The expected reasons: normal ends, killed workers, disconnected clients, shutdown and edits.
const EXPECTED: [&str; 9] = [
    "released",
    "execute.busy",
    "execute.cancelled",
    "execute.worker_died",
    "execute.worker_unavailable",
    "admit.shutting_down",
    "admit.unknown_tool",
    "bind.too_large",
    "decide.policy_forbids",
];
