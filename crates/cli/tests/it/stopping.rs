//! A gateway that stops in the middle of calls: every call that was opened in the journal is closed there too.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::place::{Place, Serving, token, until};

#[test]
fn calls_that_run_when_the_client_closes_its_end_are_closed() {
    let place = slow_place("200ms");
    let (mut child, input) = stdio_with_calls(&place, "endless");
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_all_ended_by_the_stop(&place);
}

#[test]
fn calls_that_end_within_the_grace_are_released_though_the_client_closed_its_end() {
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
fn calls_that_run_over_stdio_at_a_signal_are_closed() {
    let place = slow_place("200ms");
    let (mut child, _input) = stdio_with_calls(&place, "endless");
    terminate(&child);
    assert!(child.wait().unwrap().success());
    assert_all_ended_by_the_stop(&place);
}

#[test]
fn calls_that_run_over_http_at_a_signal_are_closed_and_answered() {
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
fn a_second_signal_ends_the_grace() {
    let place = slow_place("1h");
    let (child, _input) = stdio_with_calls(&place, "endless");
    terminate_until_it_ends(child);
    assert_all_ended_by_the_stop(&place);
}

/// A client closes its end and then signals, as its SDK has it: nobody has been impatient yet.
#[test]
fn the_first_signal_after_the_client_closed_its_end_is_the_first() {
    let place = slow_place("1m");
    let (mut child, input) = stdio_with_calls(&place, "short");
    drop(input);
    // Long enough for the end to be seen. A signal that comes earlier is the first all the more.
    thread::sleep(Duration::from_millis(300));
    terminate(&child);
    assert!(child.wait().unwrap().success());
    let ends = ends(&place);
    assert_eq!(ends.len(), CALLS);
    assert!(ends.values().all(|end| end["outcome"] == "released"), "{ends:?}");
}

#[test]
fn a_second_signal_ends_the_grace_also_after_the_client_closed_its_end() {
    let place = slow_place("1h");
    let (child, input) = stdio_with_calls(&place, "endless");
    drop(input);
    terminate_until_it_ends(child);
    assert_all_ended_by_the_stop(&place);
}

/// Again and again, for the second one counts only once the first has been heard.
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

/// Its tool waits for a second or for longer than any test.
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

/// A client that has made its calls and reads no answer.
fn stdio_with_calls(place: &Place, text: &str) -> (Child, ChildStdin) {
    let mut child = place.serve_stdio();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "tests", "version": "1" },
    } });
    writeln!(input, "{hello}").unwrap();
    output.read_line(&mut String::new()).unwrap();
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
    for id in 1..=CALLS {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "slow", "arguments": { "text": text },
        } });
        writeln!(input, "{call}").unwrap();
    }
    until_open(place);
    (child, input)
}

fn until_open(place: &Place) {
    until("the calls begin", || of_kind(place, "call.opened").count() == CALLS);
}

fn terminate(child: &Child) {
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
}

#[track_caller]
fn assert_all_ended_by_the_stop(place: &Place) {
    let ends = ends(place);
    assert_eq!(ends.len(), CALLS);
    for end in ends.values() {
        assert_eq!(end["reason"], "execute.cancelled", "{end}");
        assert_eq!(end["message"], "the gateway stopped before the call had ended", "{end}");
    }
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

/// The closing record of every call that was opened.
#[track_caller]
fn ends(place: &Place) -> BTreeMap<String, Value> {
    let by_call = |kind| -> BTreeMap<String, Value> {
        of_kind(place, kind).map(|record| (record["callId"].as_str().unwrap().to_owned(), record)).collect()
    };
    let (opened, closed) = (by_call("call.opened"), by_call("call.closed"));
    assert!(opened.keys().eq(closed.keys()), "opened {}, closed {}", opened.len(), closed.len());
    closed
}

/// The gateway may be writing: a line that is not whole yet is left for the next look.
fn of_kind(place: &Place, kind: &'static str) -> impl Iterator<Item = Value> {
    place.journal_so_far("journal").into_iter().filter(move |record| record["kind"] == kind)
}

const CALLS: usize = 6;
