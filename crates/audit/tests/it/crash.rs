//! A process that is killed while four threads append: nothing that was acknowledged may be missing.

use std::{
    collections::HashMap,
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;
use toolgate_audit::{Digest, Journal, Key, Span, read};

use crate::support::{Place, options, system_clock};

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost() {
    if let Some(folder) = env::var_os(FOLDER) {
        return append_for_ever(Path::new(&folder));
    }
    let place = Place::new();
    place.key();
    let mut acknowledged: HashMap<u64, Digest> = HashMap::new();
    for round in 0..ROUNDS {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "crash::killed_at_any_moment_nothing_acknowledged_is_lost"])
            .env(FOLDER, place.folder())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let mut left = round * 97 % 611 + 1;
        while output.read_line(&mut line).unwrap() > 0 {
            // What was printed when the process died counts too, as long as the line is whole.
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
        let found: HashMap<u64, Digest> = read(&place.folder(), Span::default())
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

/// What the test does in the process that it starts to kill.
fn append_for_ever(folder: &Path) {
    let key = Key::open_or_create(&folder.with_file_name("key")).unwrap();
    let journal = Journal::open(folder, key, options(64), system_clock()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                for number in 0.. {
                    // Some are longer than a page, so that a write can be cut in the middle.
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
