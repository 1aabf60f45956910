//! A gateway that stops during calls writes a closing record for every opened call.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::place::{Place, Serving, token, until};

#[test]
fn running_calls_are_closed_when_the_client_disconnects() {
    let place = slow_place("200ms");
    let (mut child, input) = stdio_with_calls(&place, "endless");
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_all_ended_by_the_stop(&place);
}

#[test]
fn calls_within_the_grace_period_are_released_after_a_disconnect() {
    let place = slow_place("1m");
    let (mut child, input) = stdio_with_calls(&place, "short");
    drop(input);
    assert!(child.wait().unwrap().success());
    let ends = ends(&place);
    assert_eq!(ends.len(), CALLS);
    assert!(ends.values().all(|end| end["outcome"] == "released"), "{ends:?}");
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

#[test]
fn signal_closes_running_stdio_calls() {
    let place = slow_place("200ms");
    let (mut child, _input) = stdio_with_calls(&place, "endless");
    terminate(&child);
    assert!(child.wait().unwrap().success());
    assert_all_ended_by_the_stop(&place);
}

#[test]
fn signal_closes_and_answers_running_http_calls() {
    let place = slow_place("200ms");
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let answers: Vec<Value> = thread::scope(|scope| {
        let call = || serving.call(&token, "slow", &json!({ "text": "endless" }));
        let clients: Vec<_> = (0..CALLS).map(|_| scope.spawn(call)).collect();
        until_open(&place);
        terminate(&serving.child);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer.to_string().contains("execute.cancelled")), "{answers:?}");
    serving.stop();
    assert_all_ended_by_the_stop(&place);
}

#[test]
fn second_signal_ends_the_grace_period() {
    let place = slow_place("1h");
    let (child, _input) = stdio_with_calls(&place, "endless");
    terminate_until_it_ends(child);
    assert_all_ended_by_the_stop(&place);
}

/// SDK clients close their pipe and then send one signal, which must not end the grace period.
#[test]
fn first_signal_after_a_disconnect_keeps_the_grace_period() {
    let place = slow_place("1m");
    let (mut child, input) = stdio_with_calls(&place, "short");
    drop(input);
    // Long enough for the gateway to see the closed pipe. An earlier signal would be the first one anyway.
    thread::sleep(Duration::from_millis(300));
    terminate(&child);
    assert!(child.wait().unwrap().success());
    let ends = ends(&place);
    assert_eq!(ends.len(), CALLS);
    assert!(ends.values().all(|end| end["outcome"] == "released"), "{ends:?}");
}

#[test]
fn second_signal_ends_the_grace_period_after_a_disconnect() {
    let place = slow_place("1h");
    let (child, input) = stdio_with_calls(&place, "endless");
    drop(input);
    terminate_until_it_ends(child);
    assert_all_ended_by_the_stop(&place);
}

/// SIGINT, SIGTERM and SIGHUP.
const END_SIGNALS: [(&str, i32); 3] = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)];

#[test]
fn interrupted_command_closes_its_call_in_the_journal() {
    let place = slow_place("1m");
    place.write_tool("stuck", &json!({ "code": "await new Promise((done) => setTimeout(done, 25000))" }));
    for arguments in [&["call", "slow", "text=endless"][..], &["publish", "stuck"]] {
        for (name, code) in END_SIGNALS {
            let before = records(&place, COMMANDS, "call.opened").len();
            let mut child = place.start(arguments);
            until("the call begins", || records(&place, COMMANDS, "call.opened").len() > before);
            signal(&child, name);
            assert_eq!(child.wait().unwrap().code(), Some(code), "{arguments:?} {name}");
            let ends = ends_in(&place, COMMANDS);
            let last = records(&place, COMMANDS, "call.closed").pop().unwrap();
            assert_eq!((ends.len(), last["reason"].as_str()), (before + 1, Some("execute.cancelled")));
        }
    }
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

/// The disk is full, and the client is gone before the next check of the journal.
#[test]
fn full_disk_over_stdio_is_logged() {
    let place = slow_place("1m");
    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" serve --stdio", env!("CARGO_BIN_EXE_toolgate")])
        .current_dir(place.path())
        .env_remove("TOOLGATE_CONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = hello(&mut child);
    let pid = child.id().to_string();
    assert!(Command::new("prlimit").args(["--pid", &pid, "--fsize=1:unlimited"]).status().unwrap().success());
    call_slow(&mut input, 1, "hi");
    let mut answer = String::new();
    output.read_line(&mut answer).unwrap();
    assert!(answer.contains("failed to run call"), "{answer}");
    // Space is available again before the next check.
    assert!(
        Command::new("prlimit")
            .args(["--pid", &pid, "--fsize=unlimited:unlimited"])
            .status()
            .unwrap()
            .success()
    );
    drop(input);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert!(
        said.contains("error calls were refused: the journal could not be written")
            || said.contains("error calls are refused: the journal cannot be written"),
        "{said}"
    );
}

/// Repeats the signal, because the second one counts only after the first was handled.
#[track_caller]
fn terminate_until_it_ends(mut child: Child) {
    let status = loop {
        terminate(&child);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        thread::sleep(Duration::from_millis(100));
    };
    assert!(status.success(), "{status}");
}

/// A workspace whose tool waits for a second, or longer than any test.
fn slow_place(grace: &str) -> Place {
    let place = Place::new();
    place.configure(&format!("server:\n  shutdown_grace: {grace}\n"));
    place.write_tool(
        "slow",
        &json!({ "code": "const wait = { short: 1000, endless: 25000 }[text] ?? 0;\nawait new Promise((done) => setTimeout(done, wait));\nreturn text" }),
    );
    place.ok(&["publish", "slow"]);
    place
}

/// A client that makes calls and reads no answers.
fn stdio_with_calls(place: &Place, text: &str) -> (Child, ChildStdin) {
    let mut child = place.serve_stdio();
    let (mut input, _output) = hello(&mut child);
    for id in 1..=CALLS {
        call_slow(&mut input, id, text);
    }
    until_open(place);
    (child, input)
}

fn call_slow(input: &mut ChildStdin, id: usize, text: &str) {
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "slow", "arguments": { "text": text },
    } });
    writeln!(input, "{call}").unwrap();
}

/// Initializes the session and returns the pipes.
fn hello(child: &mut Child) -> (ChildStdin, BufReader<ChildStdout>) {
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "tests", "version": "1" },
    } });
    writeln!(input, "{hello}").unwrap();
    output.read_line(&mut String::new()).unwrap();
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
    (input, output)
}

fn until_open(place: &Place) {
    until("the calls begin", || records(place, "journal", "call.opened").len() == CALLS);
}

fn terminate(child: &Child) {
    signal(child, "-TERM");
}

fn signal(child: &Child, name: &str) {
    Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
}

#[track_caller]
fn assert_all_ended_by_the_stop(place: &Place) {
    let ends = ends(place);
    assert_eq!(ends.len(), CALLS);
    for end in ends.values() {
        assert_eq!(end["reason"], "execute.cancelled", "{end}");
        assert_eq!(end["message"], "the gateway stopped before the call ended", "{end}");
    }
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

/// The closing record of every call that was opened.
#[track_caller]
fn ends(place: &Place) -> BTreeMap<String, Value> {
    ends_in(place, "journal")
}

#[track_caller]
fn ends_in(place: &Place, folder: &str) -> BTreeMap<String, Value> {
    let by_call = |kind| -> BTreeMap<String, Value> {
        records(place, folder, kind)
            .into_iter()
            .map(|record| (record["callId"].as_str().unwrap().to_owned(), record))
            .collect()
    };
    let (opened, closed) = (by_call("call.opened"), by_call("call.closed"));
    assert!(opened.keys().eq(closed.keys()), "opened {}, closed {}", opened.len(), closed.len());
    closed
}

/// Skips an incomplete last line, because the gateway may be writing it.
fn records(place: &Place, folder: &str, kind: &str) -> Vec<Value> {
    place.journal_so_far(folder).into_iter().filter(|record| record["kind"] == kind).collect()
}

const CALLS: usize = 6;
/// The journal that commands write.
const COMMANDS: &str = "journal-commands";
