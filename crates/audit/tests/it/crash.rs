//! Kills a process while four threads append: no acknowledged record may be missing.

use std::{
    collections::HashMap,
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;
use toolgate_audit::{Journal, Key, RecordDigest, TimeRange, read};

use crate::support::{TestJournal, options, system_clock};

#[test]
fn kill_loses_no_acknowledged_record() {
    if let Some(folder) = env::var_os(FOLDER) {
        return append_for_ever(Path::new(&folder));
    }
    let place = TestJournal::new();
    place.key();
    let mut acknowledged: HashMap<u64, RecordDigest> = HashMap::new();
    for round in 0..ROUNDS {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "crash::kill_loses_no_acknowledged_record"])
            .env(FOLDER, place.folder())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let mut left = round * 97 % 611 + 1;
        while output.read_line(&mut line).unwrap() > 0 {
            // Output from before the kill counts too, if the line is complete.
            if let Some(words) = line.strip_prefix("ack ").and_then(|rest| rest.strip_suffix('\n')) {
                let (seq, hash) = words.split_once(' ').unwrap();
                assert!(acknowledged.insert(seq.parse().unwrap(), hash.parse().unwrap()).is_none());
                left = left.saturating_sub(1);
                if left == 0 {
                    child.kill().unwrap();
                }
            }
            line.clear();
        }
        assert!(!child.wait().unwrap().success(), "it does not end by itself");

        place.open().close().unwrap();
        let report = place.assert_clean();
        let found: HashMap<u64, RecordDigest> = read(&place.folder(), TimeRange::default())
            .unwrap()
            .map(|record| record.unwrap().position)
            .map(|position| (position.seq, position.hash))
            .collect();
        assert_eq!(found.len() as u64, report.records);
        for (seq, hash) in &acknowledged {
            assert_eq!(found.get(seq), Some(hash), "record {seq} in round {round}");
        }
    }
    assert!(acknowledged.len() as u64 > ROUNDS * 20);
}

/// The code of the process that is killed.
fn append_for_ever(folder: &Path) {
    let key = Key::open_or_create(&folder.with_file_name("key")).unwrap();
    let journal = Journal::open(folder, key, options(64), system_clock()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                for number in 0.. {
                    // Some records are longer than a page, so a write can be interrupted.
                    let text = "x".repeat(number * 131 % 9000);
                    let position = journal.append(&json!({"thread": thread, "text": text})).unwrap();
                    println!("ack {} {}", position.seq, position.hash);
                }
            });
        }
    });
}

const FOLDER: &str = "TOOLGATE_TEST_JOURNAL";
const ROUNDS: u64 = 20;
