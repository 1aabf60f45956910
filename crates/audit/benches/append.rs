//! Measures records per second of the journal, compared with bare `write(2)` of the same bytes.
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
use toolgate_audit::{Durability, Journal, JournalOptions, Key, read, verify};

fn main() {
    let rounds: Vec<[Rate; 4]> = (0..ROUNDS).map(|_| round()).collect();
    let median = |column: usize, pick: fn(&Rate) -> f64| {
        let mut rates: Vec<f64> = rounds.iter().filter_map(|rates| rates.get(column).map(pick)).collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or_default()
    };
    println!("{RECORDS} records, lines of {} bytes, median of {ROUNDS} rounds", line().len());
    println!("{:24}{:>14}{:>22}{:>20}", "", "records/s", "of bare write(2)", "a CPU second");
    for (column, name) in NAMES.into_iter().enumerate() {
        let (rate, bare) = (median(column, |rate| rate.wall), median(0, |rate| rate.wall));
        let cpu = median(column, |rate| rate.cpu);
        println!("{name:24}{rate:>14.0}{:>22.2}{cpu:>20.0}", rate / bare);
    }
}

/// Records per second of wall time and of CPU time.
struct Rate {
    wall: f64,
    cpu: f64,
}

/// Runs all variants in turn, so a slow moment of the machine affects all of them.
fn round() -> [Rate; 4] {
    let folder = tempfile::tempdir().expect("a folder");
    let bare = bare(folder.path());
    let (one, _) = journal(1);
    let (four, written) = journal(4);
    let verified = rate(|| {
        let report = verify(&written.path().join("journal"), None, None);
        assert!(report.is_clean() && report.records >= RECORDS, "{report:?}");
    });
    [bare, one, four, verified]
}

fn bare(folder: &Path) -> Rate {
    let line = line();
    let mut file = File::create(folder.join("bare")).expect("a file");
    rate(|| (0..RECORDS).for_each(|_| file.write_all(&line).expect("written")))
}

fn journal(threads: u64) -> (Rate, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let key = Key::open_or_create(&folder.path().join("key")).expect("a key");
    let journal = open(folder.path(), key);
    let rate = rate(|| {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for number in 0..RECORDS / threads {
                        journal.append(&SampleEntry::new(number)).expect("appended");
                    }
                });
            }
        });
    });
    journal.close().expect("closed");
    (rate, folder)
}

fn open(folder: &Path, key: Key) -> Journal {
    let options = JournalOptions { sync: Durability::Write, ..JournalOptions::default() };
    Journal::open(&folder.join("journal"), key, options, Arc::new(SystemTime::now)).expect("a journal")
}

/// One line as the journal writes it.
fn line() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let key = Key::open_or_create(&folder.path().join("key")).expect("a key");
    let journal = open(folder.path(), key);
    journal.append(&SampleEntry::new(123_456)).expect("appended");
    assert_eq!(
        read(&folder.path().join("journal"), toolgate_audit::TimeRange::default()).expect("read").count(),
        1
    );
    let day = std::fs::read_dir(folder.path().join("journal")).expect("a folder").flatten();
    let mut files = day.filter(|file| file.path().extension().is_some_and(|ending| ending == "jsonl"));
    std::fs::read(files.next().expect("a day").path()).expect("a line")
}

fn rate(run: impl FnOnce()) -> Rate {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    run();
    let records = f64::from(u32::try_from(RECORDS).unwrap_or(u32::MAX));
    Rate { wall: records / start.elapsed().as_secs_f64(), cpu: records / (cpu_seconds() - cpu) }
}

/// The CPU time of all threads of this process, in units of the kernel's clock tick.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<f64>().expect("ticks"));
    ticks.sum::<f64>() / 100.0
}

/// About the size of a call's record.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampleEntry {
    kind: &'static str,
    call_id: String,
    trace_id: &'static str,
    caller: SampleCaller,
    tool: Tool,
    args_digest: &'static str,
    decision: &'static str,
    stage: &'static str,
    labels: [&'static str; 2],
    duration_micros: u64,
    policy_version: u64,
}

#[derive(Serialize)]
struct SampleCaller {
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

impl SampleEntry {
    fn new(number: u64) -> Self {
        Self {
            kind: "call.closed",
            call_id: format!("call-{number:012}"),
            trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
            caller: SampleCaller {
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

const NAMES: [&str; 4] = ["bare write(2)", "append, 1 thread", "append, 4 threads", "verify"];
const RECORDS: u64 = 200_000;
const ROUNDS: usize = 5;
