//! The state between real processes: an approval is used once, and acknowledged data survives a kill.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails loudly")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime},
};

use toolgate_gate::{
    ApprovalId, ApprovalQueue as _, ApprovalState, ApprovalStore as _, Binding, Decider, HiddenArguments,
    NewApproval,
};
use toolgate_store::{ApprovalLimits, StateDb};

fn open(path: &Path) -> StateDb {
    StateDb::open(path, ApprovalLimits { max_pending: 1000, max_pending_per_caller: 1000 })
        .expect("the state")
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn binding(number: usize) -> Binding {
    Binding {
        caller: "ann".to_owned(),
        tool: "notes.delete".to_owned(),
        tool_digest: "sha256:tool".to_owned(),
        arguments_digest: number.to_string(),
        policy_digest: "sha256:policy".to_owned(),
    }
}

fn ask(state: &StateDb, number: usize) -> ApprovalId {
    let question = NewApproval {
        quota: "ann".to_owned(),
        binding: binding(number),
        prompt: "Delete?".to_owned(),
        arguments: None,
        hidden: HiddenArguments::default(),
        remembers: None,
        because: Vec::new(),
        risk: "L4".to_owned(),
        created: now(),
        expires: now() + Duration::from_secs(100),
    };
    state.open(question, now()).expect("a question").id
}

/// Runs the test `child` below in a separate process; without these variables it does nothing.
fn spawn(path: &Path, role: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child", "--nocapture"])
        .env(PATH, path)
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process")
}

fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let output = BufReader::new(child.stdout.take().expect("its output"));
    // The test harness ends its own line only after the test.
    output
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.split_once("saw ").map(|(_, seen)| seen.to_owned()))
}

#[test]
fn child() {
    let (Ok(path), Ok(role)) = (std::env::var(PATH), std::env::var(ROLE)) else {
        return;
    };
    let state = open(Path::new(&path));
    println!("saw ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a signal");
    for number in 0..ROUNDS {
        if role == "spend" {
            if state.consume(&binding(number), None, now()).expect("the state").is_some() {
                println!("saw {number}");
            }
        } else {
            let id = ask(&state, number);
            state
                .decide(&id, ApprovalState::Denied, &Decider::Operator("olga"), None, now())
                .expect("a decision");
            println!("saw {id}");
        }
    }
}

#[test]
fn four_processes_use_each_approval_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state").join("toolgate.db");
    let state = open(&path);
    for number in 0..ROUNDS {
        let id = ask(&state, number);
        state
            .decide(&id, ApprovalState::Approved, &Decider::Operator("olga"), None, now())
            .expect("a decision");
    }
    let mut children: Vec<Child> = (0..4).map(|_| spawn(&path, "spend")).collect();
    let mut outputs: Vec<_> = children.iter_mut().map(lines).collect();
    for output in &mut outputs {
        assert_eq!(output.next().as_deref(), Some("ready"));
    }
    for child in &mut children {
        child.stdin.take().expect("its input").write_all(b"go\n").expect("a signal");
    }
    let mut spent: Vec<usize> =
        outputs.into_iter().flatten().map(|line| line.parse().expect("a number")).collect();
    for mut child in children {
        assert!(child.wait().expect("its end").success());
    }
    spent.sort_unstable();
    assert_eq!(spent, (0..ROUNDS).collect::<Vec<_>>());
    assert_eq!(state.list(Some(ApprovalState::Used), 1000, now()).expect("a list").len(), ROUNDS);
}

#[test]
fn acknowledged_decision_survives_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state").join("toolgate.db");
    let mut child = spawn(&path, "decide");
    let mut output = lines(&mut child);
    assert_eq!(output.next().as_deref(), Some("ready"));
    child.stdin.take().expect("its input").write_all(b"go\n").expect("a signal");
    let mut acknowledged: Vec<String> = output.by_ref().take(ROUNDS / 4).collect();
    child.kill().expect("a kill");
    child.wait().expect("its end");
    acknowledged.extend(output);
    assert!(acknowledged.len() >= ROUNDS / 4);
    let state = open(&path);
    for id in acknowledged.iter().filter_map(|text| ApprovalId::parse(text)) {
        assert_eq!(state.get(&id, now()).expect("the decision").state, ApprovalState::Denied, "{id}");
    }
}

const PATH: &str = "TOOLGATE_TEST_STATE";
const ROLE: &str = "TOOLGATE_TEST_ROLE";
const ROUNDS: usize = 100;
