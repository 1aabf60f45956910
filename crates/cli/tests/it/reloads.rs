//! Reloads of a running gateway: valid edits, corrected edits, running calls and disconnected clients.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::place::{Place, Serving, token, until};

/// The running call waits for a file, so it lasts across all reloads.
#[test]
fn running_call_survives_a_reload() {
    let place = Place::new();
    // Enough workers, even on a machine with one processor.
    place.configure("worker:\n  count: 4\n");
    write_waiting_tool(&place);
    place.write_tool("say", &json!({}));
    place.ok(&["publish", "--yes"]);
    let token = token(&place, &WAITS);
    let serving = Serving::start(&place);
    let said = || serving.call(&token, "say", &json!({ "text": "hi" })).to_string();
    assert!(said().contains("hi!"));
    let answer = thread::scope(|scope| {
        let running = scope.spawn(|| serving.call(&token, "waits", &json!({ "text": "wait" })));
        until("the call runs", || place.path().join(RUNS).exists());
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

/// A disconnect must not hide the tool's effects.
#[test]
fn effects_before_a_disconnect_are_recorded() {
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

/// After the named file is corrected, the configuration need not be edited again.
#[test]
fn corrected_new_policy_file_becomes_active() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let rules = place.path().join("new.cedar");
    fs::write(&rules, "permit (principal, action ==").unwrap();
    place.configure("policy:\n  cedar: [new.cedar]\n");
    serving.wait_for("change rejected");
    assert_eq!(serving.names(&token), ["say", "word_count"], "the last good set");
    fs::write(&rules, r#"permit (principal, action == Action::"say", resource);"#).unwrap();
    until("the mended file counts", || serving.names(&token) == ["say"]);
    serving.stop();
}

#[test]
fn corrected_new_tools_directory_becomes_active() {
    let place = Place::new();
    place.ok(&["publish"]);
    let serving = Serving::start(&place);
    let (more, name) = (place.path().join("more"), "two.json");
    fs::create_dir(&more).unwrap();
    fs::write(more.join(name), "{ \"name\": \"two\", \"code\": ").unwrap();
    place.configure("tools: [tools, more]\n");
    serving.wait_for("change rejected");
    let sound = json!({
        "name": "two", "description": "Is two, for tests.", "codeType": "Javascript", "code": "return 2", "params": [],
    });
    fs::write(more.join(name), sound.to_string()).unwrap();
    serving.wait_for("reloaded: 1 tool is live");
    // Tools of a removed directory disappear; those of a restored one come back.
    place.configure("tools: [more]\n");
    serving.wait_for("reloaded: 0 tools are live");
    serving.wait_for("is no longer served: its document was removed");
    place.configure("tools: [tools]\n");
    serving.wait_for("reloaded: 1 tool is live");
    serving.stop();
}

#[test]
fn rejected_edits_are_recorded() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start_enduring(&place);
    let rejected = || {
        let records = place.journal_so_far("journal");
        let told = records.iter().filter(|record| record["kind"] == "tools.rejected");
        told.map(|record| record["problems"].to_string()).collect::<Vec<_>>()
    };
    let baseline = place.path().join("own.yaml");
    fs::write(&baseline, "nonsense: true").unwrap();
    place.configure("policy:\n  baseline: own.yaml\n");
    serving.wait_for("change rejected");
    until("the baseline is in the journal", || rejected().iter().any(|told| told.contains("own.yaml")));
    place.configure("exposure: 7\n");
    serving.wait_for("toolgate.yaml");
    until("so is the configuration", || rejected().iter().any(|told| told.contains("toolgate.yaml")));
    // With a full disk the error is still logged.
    serving.limit_files("1");
    place.configure("exposure: 8\n");
    serving.wait_for("change rejected");
    serving.wait_for("toolgate.yaml");
    serving.wait_for("journal: ");
    place.configure("exposure: {excluded: [word_count]}\n");
    serving.wait_for("the change is active, but the journal has no record of it");
    serving.limit_files("unlimited");
    assert_eq!(serving.names(&token), Vec::<String>::new());
    serving.stop();
}

/// The only worker is busy, so the test run of the shipped tool waits for this test.
#[test]
fn tighter_baseline_does_not_wait_for_test_runs() {
    let place = Place::new();
    let one_worker = "worker:\n  count: 1\n";
    place.configure(one_worker);
    write_waiting_tool(&place);
    place.write_tool("say", &json!({}));
    place.ok(&["publish", "--yes"]);
    let token = token(&place, &WAITS);
    let serving = Serving::start(&place);
    assert_eq!(serving.names(&token), ["say", "waits", "word_count"]);
    let answer = thread::scope(|scope| {
        let running = scope.spawn(|| serving.call(&token, "waits", &json!({ "text": "wait" })));
        until("the call runs", || place.path().join(RUNS).exists());
        let shipped = include_str!("../../../../profiles/baseline.yaml");
        let tight = shipped.replace("memoryMib: 64", "memoryMib: 48");
        assert_ne!(tight, shipped);
        fs::write(place.path().join("tight.yaml"), tight).unwrap();
        place.configure(&format!(
            "{one_worker}policy:\n  baseline: tight.yaml\ncatalog:\n  include:\n    names: [{SHIPPED}]\n"
        ));
        until("the trial begins", || is_being_tried(&place));
        let meanwhile = (serving.names(&token), is_being_tried(&place));
        // Before anything can fail, or the call would be waited for.
        fs::write(place.path().join("go.txt"), "go").unwrap();
        assert_eq!(meanwhile, (Vec::new(), true), "drafts under the new baseline");
        running.join().unwrap()
    });
    assert_ne!(answer["isError"], true, "{answer}");
    until("the shipped tool is live", || serving.names(&token) == [SHIPPED]);
    serving.stop();
}

/// As above, the test run waits. No file changes, only the stored result of a test run.
#[test]
fn publication_does_not_wait_for_test_runs() {
    let place = Place::new();
    let one_worker = "worker:\n  count: 1\n";
    place.configure(one_worker);
    write_waiting_tool(&place);
    place.ok(&["publish", "--yes"]);
    place.write_tool("say", &json!({}));
    let token = token(&place, &WAITS);
    let serving = Serving::start(&place);
    thread::scope(|scope| {
        let running = scope.spawn(|| serving.call(&token, "waits", &json!({ "text": "wait" })));
        until("the call runs", || place.path().join(RUNS).exists());
        place.configure(&format!("{one_worker}catalog:\n  include:\n    names: [{SHIPPED}]\n"));
        until("the trial begins", || is_being_tried(&place));
        let before = fs::read_to_string(place.path().join("tools/say.json")).unwrap();
        place.ok(&["publish", "say"]);
        let is_edited = fs::read_to_string(place.path().join("tools/say.json")).unwrap() != before;
        let is_live = || serving.names(&token).contains(&"say".to_owned());
        // While the call keeps the worker, the test run cannot start.
        while !is_live() && !running.is_finished() {
            thread::sleep(Duration::from_millis(20));
        }
        let meanwhile = (is_live(), is_being_tried(&place), is_edited);
        // Before anything can fail, or the call would be waited for.
        fs::write(place.path().join("go.txt"), "go").unwrap();
        running.join().unwrap();
        assert_eq!(meanwhile, (true, true, false), "live before the trial is over, and not by an edit");
    });
    until("the shipped tool is live", || serving.names(&token).contains(&SHIPPED.to_owned()));
    serving.stop();
}

/// The soak bench measures how fast.
#[test]
fn edit_is_live_without_a_signal() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    for (excluded, live) in [("say", "word_count"), ("word_count", "say")] {
        place.configure(&format!("exposure: {{excluded: [{excluded}]}}\n"));
        until("the edit is live", || serving.names(&token) == [live]);
    }
    serving.stop();
}

const SHIPPED: &str = "gcd_lcm";

/// With the text `wait`, the tool creates a file and waits for `go.txt`. Its file proves that it has a worker, which the opening
/// record does not.
fn write_waiting_tool(place: &Place) {
    place.write_tool("waits", &json!({
        "code": "if (text === 'wait') {\n  safety.fs.writeText('runs.txt', 'x');\n  while (!safety.fs.exists('go.txt')) await new Promise((done) => setTimeout(done, 100));\n}\nreturn text",
        "sandboxOverrides": { "fileRead": true, "fileWrite": true },
        "humanInTheLoop": { "mode": "DISABLED" },
        "x-toolgate-capability": { "execution": { "timeout": 60_000 } },
    }));
}

/// Token flags for callers of the waiting tool.
const WAITS: [&str; 2] = ["--permission", "allow_destructive"];
const RUNS: &str = "runs.txt";

/// The kinds of this tool's call records so far.
fn kinds_of(place: &Place, tool: &str) -> Vec<String> {
    let records = place.journal_so_far("journal");
    let of_tool = records.iter().filter(|record| record["tool"]["name"] == tool);
    of_tool.map(|record| record["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Whether the gateway has started a test run of the shipped tool and finished none. A reload restarts a test run; test runs of
/// commands are in the commands' journal.
fn is_being_tried(place: &Place) -> bool {
    let records = place.journal_so_far("journal");
    let of_tool = || records.iter().filter(|record| record["tool"]["name"] == SHIPPED);
    let is_end = |record: &Value| record["kind"] != "call.opened" && record["reason"] != "execute.cancelled";
    of_tool().count() > 0 && !of_tool().any(is_end)
}
