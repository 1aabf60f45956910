//! What happens while a call is running: an edit that goes live, of which its caller notices nothing; a client that goes away.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::place::{Place, Serving, token};

/// The running call waits for a file, and so for the test: it lasts across every reload that the edit brings about.
#[test]
fn a_call_that_runs_across_a_reload_is_released_and_others_meet_the_edit() {
    let place = Place::new();
    // One waits, however few processors there are.
    place.configure("worker:\n  count: 4\n");
    place.write_tool("waits", &json!({
        "code": "while (text === 'wait' && !safety.fs.exists('go.txt')) await new Promise((done) => setTimeout(done, 100));\nreturn text",
        "sandboxOverrides": { "fileRead": true },
        "humanInTheLoop": { "mode": "DISABLED" },
        "x-toolgate-capability": { "execution": { "timeout": 60_000 } },
    }));
    place.write_tool("say", &json!({}));
    place.ok(&["publish", "--yes"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let said = || serving.call(&token, "say", &json!({ "text": "hi" })).to_string();
    assert!(said().contains("hi!"));
    let answer = thread::scope(|scope| {
        let running = scope.spawn(|| serving.call(&token, "waits", &json!({ "text": "wait" })));
        until("the call begins", || kinds_of(&place, "waits") == ["call.opened"]);
        place.write_tool("say", &json!({ "code": "return `${text}, edited`" }));
        place.ok(&["publish", "say"]);
        until("the edit is live", || said().contains("hi, edited"));
        let meanwhile = kinds_of(&place, "waits");
        // Before anything can fail, or the call would be waited for.
        fs::write(place.path().join("go.txt"), "go").unwrap();
        assert_eq!(meanwhile, ["call.opened"], "it runs while the edit is live");
        running.join().unwrap()
    });
    assert_ne!(answer["isError"], true, "{answer}");
    assert!(answer.to_string().contains("wait"), "{answer}");
    serving.stop();
    let records = place.journal("journal");
    let closed = records
        .iter()
        .find(|record| record["kind"] == "call.closed" && record["tool"]["name"] == "waits")
        .unwrap();
    assert_eq!(closed["outcome"], "released", "{closed}");
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

/// Whoever hangs up in time must not have what the tool did forgotten.
#[test]
fn what_a_tool_did_before_its_client_went_away_is_in_the_journal() {
    let place = Place::new();
    place.write_tool("leaves", &json!({
        "code": "safety.fs.writeText('made.txt', 'x');\nif (text === 'stay') await new Promise((done) => setTimeout(done, 50_000));\nreturn text",
        "sandboxOverrides": { "fileRead": true, "fileWrite": true },
        "humanInTheLoop": { "mode": "DISABLED" },
        "x-toolgate-capability": { "execution": { "timeout": 60_000 } },
    }));
    place.ok(&["publish", "--yes"]);
    fs::remove_file(place.path().join("made.txt")).ok();
    let token = token(&place, &["--permission", "allow_destructive"]);
    let serving = Serving::start(&place);
    let client = serving.begin(&token, "leaves", &json!({ "text": "stay" }));
    until("the tool has written", || place.path().join("made.txt").exists());
    drop(client);
    until("the call is closed", || kinds_of(&place, "leaves") == ["call.opened", "call.closed"]);
    let records = place.journal_so_far("journal");
    let closed = records.iter().find(|record| record["kind"] == "call.closed").unwrap();
    assert_eq!(closed["reason"], "execute.cancelled", "{closed}");
    assert_eq!(closed["run"]["effects"][0]["what"], "safety.fs.writeText", "{closed}");
    assert_eq!(closed["run"]["effects"][0]["target"], "made.txt", "{closed}");
    serving.stop();
}

/// Records of calls of this tool so far.
fn kinds_of(place: &Place, tool: &str) -> Vec<String> {
    let records = place.journal_so_far("journal");
    let of_tool = records.iter().filter(|record| record["tool"]["name"] == tool);
    of_tool.map(|record| record["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    // A guard against hanging, not a measurement.
    let end = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
