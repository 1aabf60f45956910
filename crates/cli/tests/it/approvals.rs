//! The approval queue on the command line.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::mpsc,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use toolgate_gate::{ApprovalStore as _, Binding, HiddenArguments, NewApproval, RememberScope};
use toolgate_store::{ApprovalLimits, StateDb};

use crate::place::Place;

/// Opens the queue of a workspace with a high limit.
fn queue(place: &Place) -> StateDb {
    assert!(place.ok(&["approvals", "list"]).contains("no pending questions"));
    let limits = ApprovalLimits { max_pending: 1_000, max_pending_per_caller: 1_000 };
    StateDb::open(&place.path().join(".toolgate/state.db"), limits).unwrap()
}

/// Later questions expire later.
fn ask(state: &StateDb, number: u64) {
    state.open(question(number), SystemTime::now()).unwrap();
}

fn question(number: u64) -> NewApproval {
    let now = SystemTime::now();
    NewApproval {
        binding: Binding {
            caller: "ann".to_owned(),
            tool: "say".to_owned(),
            tool_digest: "sha256:1".to_owned(),
            arguments_digest: format!("sha256:{number}"),
            policy_digest: "sha256:2".to_owned(),
        },
        quota: "ann".to_owned(),
        prompt: format!("question {number}."),
        arguments: None,
        hidden: HiddenArguments::default(),
        remembers: None,
        because: Vec::new(),
        risk: "L1".to_owned(),
        created: now,
        expires: now + Duration::from_secs(3_600 + number),
    }
}

#[test]
fn hidden_arguments_must_be_revealed_before_approval() {
    let place = Place::new();
    let state = queue(&place);
    let whole = r#"{"text":"all of it"}"#.to_owned();
    let remembers = RememberScope { conversation: "one".to_owned(), until: SystemTime::now() };
    let asked = NewApproval {
        arguments: Some(r#"{"text":"***"}"#.to_owned()),
        hidden: HiddenArguments { bytes: 9, whole: Some(whole.clone()) },
        remembers: Some(remembers.clone()),
        ..question(1)
    };
    let id = state.open(asked, SystemTime::now()).unwrap().id.to_string();
    let listed = place.ok(&["approvals", "list"]);
    assert!(listed.contains("    hidden 9 bytes of the arguments (secrets, or too long); see"), "{listed}");
    assert!(listed.contains(&format!("    if approved, {remembers}\n")), "{listed}");
    let refused = place.fails(&["approvals", "approve", &id], 1);
    assert!(refused.contains(&format!("`toolgate approvals show {id} --reveal`")), "{refused}");
    assert!(!place.ok(&["approvals", "show", &id]).contains("all of it"));
    let shown: Value = serde_json::from_str(&place.ok(&["approvals", "show", &id, "--reveal"])).unwrap();
    assert_eq!(shown["arguments"], whole);
    place.ok(&["approvals", "approve", &id]);
    let records = place.journal("journal-commands");
    let kinds: Vec<&str> = records
        .iter()
        .filter_map(|record| record["kind"].as_str())
        .filter(|kind| kind.starts_with("approval."))
        .collect();
    assert_eq!(kinds, ["approval.refused", "approval.revealed", "approval.decided"]);
}

#[test]
fn list_counts_omitted_questions_and_shows_the_next_to_expire() {
    let place = Place::new();
    let state = queue(&place);
    for number in 0..3 {
        ask(&state, number);
    }
    let said = place.ok(&["approvals", "list", "--limit", "2"]);
    assert!(said.contains("question 0.") && said.contains("question 1."), "{said}");
    assert!(!said.contains("question 2.") && said.ends_with("1 more; raise --limit to see them\n"), "{said}");
    let said = place.ok(&["approvals", "list"]);
    assert!(said.contains("question 2.") && !said.contains("--limit"), "{said}");
    let output = place.toolgate(&["approvals", "list", "--limit", "1", "--format", "json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["approvals"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told["approvals"][0]["prompt"], "question 0.");
    assert_eq!(told["more"], 2);
    let newest = place.ok(&["approvals", "list", "--all", "--limit", "1"]);
    assert!(newest.contains("question 2."), "{newest}");
}

#[test]
fn watch_shows_every_question_once() {
    const AT_FIRST: u64 = 205;
    let place = Place::new();
    let state = queue(&place);
    for number in 0..AT_FIRST {
        ask(&state, number);
    }
    let mut watching = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["approvals", "watch"])
        .current_dir(place.path())
        .env_remove("TOOLGATE_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let (told, hears) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok).filter(|line| line.contains("question")) {
            if told.send(line.trim().trim_start_matches("message ").to_owned()).is_err() {
                break;
            }
        }
    });
    let next = || hears.recv_timeout(PATIENCE).expect("a question");
    for number in 0..AT_FIRST {
        assert_eq!(next(), format!("question {number}."), "the oldest first");
    }
    for number in AT_FIRST..AT_FIRST + 3 {
        ask(&state, number);
        assert_eq!(next(), format!("question {number}."), "and nothing again");
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// A client without a person could answer its own questions, so the gateway logs at start whether clients may answer.
#[test]
fn gateway_logs_at_start_who_may_answer() {
    const CLIENTS: &str = "clients that can show a question may approve calls for their user; to use only the queue, set \
        `approvals.client_may_answer: false` or start with `--autonomous`";
    const QUEUE: &str = "calls are approved in the queue only; see `toolgate approvals`";
    let place = Place::new();
    let said = |arguments: &[&str]| {
        let output = place.toolgate(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let counts = |text: &str| [CLIENTS, QUEUE].map(|line| text.matches(line).count());
    assert_eq!(counts(&said(&["serve", "--stdio"])), [1, 0]);
    assert_eq!(counts(&said(&["serve", "--stdio", "--autonomous"])), [0, 1]);
    place.configure("approvals: {client_may_answer: false}");
    assert_eq!(counts(&said(&["serve", "--stdio"])), [0, 1]);
}

/// Generous, because other tests keep the machine busy.
const PATIENCE: Duration = Duration::from_mins(1);
