//! How many records a second does the journal take, beside bare `write(2)` of the same bytes?
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a bench prints, and fails loudly")]

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Instant, SystemTime},
};

use serde::Serialize;
use tempfile::TempDir;
use toolgate_audit::{Journal, Key, Options, Sync, read, verify};

fn main() {
    let rounds: Vec<[f64; 5]> = (0..ROUNDS).map(|_| round()).collect();
    let median = |column: usize| {
        let mut rates: Vec<f64> = rounds.iter().filter_map(|rates| rates.get(column).copied()).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    };
    let bare = median(0);
    println!("{RECORDS} records of {} bytes with the chain, median of {ROUNDS} rounds", line().len());
    println!("{:<36}{bare:>12.0} records/s", "bare write(2)");
    for (column, name) in [
        (1, "journal, 1 thread"),
        (2, "journal, 4 threads"),
        (3, "journal, reopened after that"),
        (4, "verify"),
    ] {
        let rate = median(column);
        println!("{name:<36}{rate:>12.0} records/s   {:.2} of bare write(2)", rate / bare);
    }
}

/// All variants after one another, so that a slow moment of the machine meets all of them.
fn round() -> [f64; 5] {
    let folder = tempfile::tempdir().expect("a folder");
    let bare = bare(folder.path());
    let (one, _) = journal(1);
    let (four, written) = journal(4);
    let reopened = rate(|| {
        let key = Key::open_or_create(&written.path().join("key")).expect("a key");
        let journal = open(written.path(), key);
        journal.close().expect("closed");
    });
    let verified = rate(|| {
        let report = verify(&written.path().join("journal"), None, None);
        assert!(report.is_clean() && report.records >= RECORDS, "{report:?}");
    });
    [bare, one, four, reopened, verified]
}

fn bare(folder: &Path) -> f64 {
    let line = line();
    let mut file = File::create(folder.join("bare")).expect("a file");
    rate(|| (0..RECORDS).for_each(|_| file.write_all(&line).expect("written")))
}

fn journal(threads: u64) -> (f64, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let key = Key::open_or_create(&folder.path().join("key")).expect("a key");
    let journal = open(folder.path(), key);
    let rate = rate(|| {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for number in 0..RECORDS / threads {
                        journal.append(&Entry::new(number)).expect("appended");
                    }
                });
            }
        });
    });
    journal.close().expect("closed");
    (rate, folder)
}

fn open(folder: &Path, key: Key) -> Journal {
    let options = Options { sync: Sync::Write, ..Options::default() };
    Journal::open(&folder.join("journal"), key, options, Arc::new(SystemTime::now)).expect("a journal")
}

/// One line as the journal writes it.
fn line() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let key = Key::open_or_create(&folder.path().join("key")).expect("a key");
    let journal = open(folder.path(), key);
    journal.append(&Entry::new(123_456)).expect("appended");
    assert_eq!(
        read(&folder.path().join("journal"), toolgate_audit::Span::default()).expect("read").count(),
        1
    );
    let day = std::fs::read_dir(folder.path().join("journal")).expect("a folder").flatten();
    let mut files = day.filter(|file| file.path().extension().is_some_and(|ending| ending == "jsonl"));
    std::fs::read(files.next().expect("a day").path()).expect("a line")
}

fn rate(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    f64::from(u32::try_from(RECORDS).unwrap_or(u32::MAX)) / start.elapsed().as_secs_f64()
}

/// About what a call leaves behind.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    kind: &'static str,
    call_id: String,
    trace_id: &'static str,
    caller: Caller,
    tool: Tool,
    args_digest: &'static str,
    decision: &'static str,
    stage: &'static str,
    labels: [&'static str; 2],
    duration_micros: u64,
    policy_version: u64,
}

#[derive(Serialize)]
struct Caller {
    sub: &'static str,
    client: &'static str,
    permissions: [&'static str; 3],
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    digest: &'static str,
    classification: &'static str,
    risk: &'static str,
}

impl Entry {
    fn new(number: u64) -> Self {
        Self {
            kind: "call.closed",
            call_id: format!("call-{number:012}"),
            trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
            caller: Caller {
                sub: "ada@example.org",
                client: "inspector 1.0",
                permissions: ["files:read", "web:fetch", "crm:read"],
            },
            tool: Tool {
                name: "customer_lookup",
                digest: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                classification: "read",
                risk: "L1",
            },
            args_digest: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            decision: "ALLOWED",
            stage: "OUTPUT",
            labels: ["untrusted", "internal"],
            duration_micros: 1234,
            policy_version: number,
        }
    }
}

const RECORDS: u64 = 100_000;
const ROUNDS: usize = 5;
