//! Which calls ask for approval, and how an operator sees and changes that.

use std::fs;

use serde_json::{Value, json};

use crate::place::{Place, Serving, token, until};

fn pending(answer: &Value) -> bool {
    answer["_meta"]["dev.toolgate/denial"]["code"] == "decide.approval_pending"
}

/// Rated L4.
fn anywhere() -> Value {
    json!({ "networkMode": "allowlist", "hostsAllow": ["*"] })
}

fn reads(more: &Value) -> Value {
    let mut document = json!({ "sandboxOverrides": { "fileRead": true } });
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    document
}

#[test]
fn silent_tools_ask_from_l4_by_default() {
    let place = Place::new();
    place.write_tool("reads", &reads(&json!({})));
    place.write_tool("surfs", &json!({ "sandboxOverrides": anywhere() }));
    place.ok(&["publish", "--yes"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let call = |tool: &str| serving.call(&token, tool, &json!({ "text": "hi" }));
    assert_eq!(call("reads")["isError"], false);
    assert!(pending(&call("surfs")));
    place.configure("approvals:\n  ask_from: L1\n");
    until("the stricter setting is live", || pending(&call("reads")));
    serving.stop();
}

#[test]
fn init_writes_the_threshold_with_a_comment_and_new_states_no_mode() {
    let place = Place::new();
    let config = fs::read_to_string(place.path().join("toolgate.yaml")).unwrap();
    let at = config.lines().position(|line| line == "  ask_from: L4").expect(&config);
    let comment = config.lines().nth(at - 1).unwrap();
    assert!(
        comment.starts_with("  # Tools that do not configure approval require it from this risk level on."),
        "{comment}"
    );
    for kind in ["js", "cli"] {
        place.ok(&["new", &format!("my-{kind}"), "--kind", kind, "--dir", "drafts"]);
    }
    for file in fs::read_dir(place.path().join("drafts")).unwrap().flatten() {
        if file.path().is_file() {
            assert!(!fs::read_to_string(file.path()).unwrap().contains("humanInTheLoop"), "{file:?}");
        }
    }
}

#[test]
fn resolve_says_why_a_tool_asks_and_what_to_change() {
    let place = Place::new();
    let disabled = json!({ "humanInTheLoop": { "mode": "DISABLED" }, "x-toolgate-classification": "write" });
    place.write_tool("notes", &disabled);
    let said = place.ok(&["resolve", "tools/notes.json"]);
    assert!(said.contains("asks       every call"), "{said}");
    assert!(said.contains("capability: calls are to be confirmed (classification, tool)"), "{said}");
    assert!(said.contains("to change: set `approval.level: auto`"), "{said}");
    assert!(said.contains("approvals.ask_from is L4 in toolgate.yaml"), "{said}");
    let said = place.fails(&["check", "--deny-warnings", "tools/notes.json"], 1);
    assert!(said.contains("LINT_APPROVAL_DISABLED"), "{said}");

    place.configure("policy:\n  overrides: overrides.yaml\n");
    let overrides = "tools: {notes: {capability: {approval: {level: auto}}}}\n";
    fs::write(place.path().join("overrides.yaml"), overrides).unwrap();
    let said = place.ok(&["resolve", "tools/notes.json"]);
    assert!(said.contains("asks       no call"), "{said}");
    assert!(said.contains("relaxed    approval.level ask -> auto, by overrides"), "{said}");
    let report: Value =
        serde_json::from_str(&place.ok(&["resolve", "--format", "json", "tools/notes.json"])).unwrap();
    assert_eq!(report["approval"]["asks"], "no call");
    assert_eq!(report["relaxed"][0]["by"], "overrides");
}

#[test]
fn check_warns_about_disabled_approval_from_l3_on() {
    let place = Place::new();
    let disabled = json!({ "humanInTheLoop": { "mode": "DISABLED" } });
    place.write_tool("plain", &disabled);
    place.ok(&["check", "--deny-warnings", "tools/plain.json"]);
    place.write_tool("reads", &reads(&disabled));
    let said = place.fails(&["check", "--deny-warnings", "tools/reads.json"], 1);
    assert!(said.contains("warning[LINT_APPROVAL_DISABLED]"), "{said}");
    assert!(said.contains("rated L3"), "{said}");
}

/// Approval of every call lowers the level of the calls, but the tool still needs a review.
#[test]
fn publish_asks_by_the_inherent_level() {
    let place = Place::new();
    let surfs = json!({ "sandboxOverrides": anywhere(), "humanInTheLoop": { "mode": "REQUIRED" } });
    place.write_tool("surfs", &surfs);
    let said = place.fails(&["publish", "surfs"], 1);
    assert!(said.contains("not published  surfs: it is rated L4"), "{said}");
    assert!(said.contains("reaches    surfs: hosts *"), "{said}");
}

#[test]
fn publish_prints_reach_and_suggests_a_mode() {
    let place = Place::new();
    place.write_tool("reads", &reads(&json!({})));
    let said = place.ok(&["publish", "reads"]);
    assert!(said.contains("reaches    reads: reads $WORKSPACE"), "{said}");
    assert!(said.contains("suggests   reads: `humanInTheLoop: {mode: REQUIRED}`"), "{said}");
    let said = place.ok(&["publish", "word_count"]);
    assert!(!said.contains("reaches"), "{said}");
}

#[test]
fn publish_asks_when_a_version_weakens_approval() {
    let place = Place::new();
    place.configure("policy:\n  overrides: overrides.yaml\n");
    fs::write(place.path().join("overrides.yaml"), "tools: {}\n").unwrap();
    place.write_tool("reads", &reads(&json!({ "humanInTheLoop": { "mode": "REQUIRED" } })));
    place.ok(&["publish", "reads"]);
    place.write_tool("reads", &reads(&json!({ "humanInTheLoop": { "mode": "DISABLED" } })));
    // A test run in between does not replace the published version.
    place.ok(&["test"]);
    let said = place.fails(&["publish", "reads"], 1);
    assert!(said.contains("relaxed    reads: approval.level always -> auto"), "{said}");
    assert!(said.contains("calls that required approval run without it"), "{said}");
    assert!(said.contains("not published  reads"), "{said}");
    place.ok(&["publish", "--yes", "reads"]);
    // A stricter version needs no confirmation.
    place.write_tool("reads", &reads(&json!({ "humanInTheLoop": { "mode": "REQUIRED" } })));
    place.ok(&["publish", "reads"]);
    // An override relaxes it without an edit.
    place
        .write_tool("reads", &reads(&json!({ "x-toolgate-capability": { "approval": { "level": "ask" } } })));
    place.ok(&["publish", "--yes", "reads"]);
    let overrides = "tools: {reads: {capability: {approval: {level: auto}}}}\n";
    fs::write(place.path().join("overrides.yaml"), overrides).unwrap();
    let said = place.fails(&["publish", "reads"], 1);
    assert!(said.contains("relaxed    reads: approval.level ask -> auto, set by user"), "{said}");
}

/// The twenty-first question is refused with its own reason, and other calls still run.
#[test]
fn full_queue_is_reported_and_blocks_no_other_call() {
    let place = Place::new();
    place.configure("approvals:\n  max_pending_per_caller: 2\n");
    place.write_tool("asks", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let call = |tool: &str, text: &str| serving.call(&token, tool, &json!({ "text": text }));
    assert!(pending(&call("asks", "one")) && pending(&call("asks", "two")));
    let full = call("asks", "three");
    assert_eq!(full["_meta"]["dev.toolgate/denial"]["code"], "decide.queue_full", "{full}");
    assert!(full.to_string().contains("2 of your calls wait for a person"), "{full}");
    assert_eq!(call("word_count", "a b")["isError"], false);
    assert!(serving.wait_for("outcome=refused reason=decide.queue_full").contains("tool=\"asks\""));
    let line = serving.wait_for("tool=\"word_count\" outcome=released");
    assert!(line.contains(" call ") && line.contains("caller=\"token:") && line.contains(" ms="), "{line}");
    assert!(!line.contains("a b"), "{line}");
    serving.stop();
}

#[test]
fn danger_patterns_leave_search_texts_alone() {
    let place = Place::new();
    place.configure("catalog:\n  preset: none\n  include: {names: [search_code]}\n");
    fs::create_dir(place.path().join("docs")).unwrap();
    fs::write(place.path().join("docs/a.md"), "see /etc/passwd\n").unwrap();
    let found = place.ok(&["call", "search_code", "text=/etc/passwd", "folder=docs"]);
    assert!(found.contains("see /etc/passwd"), "{found}");
    fs::create_dir(place.path().join("docs/.ssh")).unwrap();
    let said = place.fails(&["call", "search_code", "text=x", "folder=docs/.ssh/"], 1);
    assert!(said.contains("approve"), "{said}");
}

/// Another argument names a path, and these do not.
#[test]
fn danger_patterns_match_option_values_standard_input_and_environment() {
    let place = Place::new();
    let tool = |name: &str, handler: &str| {
        let document = format!(
            "name: {name}\n\
             description: Counts lines, for tests. Returns the number.\n\
             classification: read\n\
             params:\n  - {{name: path, type: STRING, required: true, description: A file., testValue: a.md}}\n  \
             - {{name: text, type: STRING, required: true, description: A text., testValue: a}}\n\
             touches: {{read: [path]}}\n\
             capability: {{extends: read, approval: {{level: auto}}}}\n\
             handler:\n  cli: {handler}\n"
        );
        fs::write(place.path().join(format!("tools/{name}.yaml")), document).unwrap();
    };
    fs::write(place.path().join("a.md"), "a\n").unwrap();
    tool("by_option", "{command: diff, args: ['--label={text}', '--', '{path}', '{path}']}");
    tool("by_stdin", "{command: wc, args: [-l, '--', '{path}'], stdin: '{text}'}");
    tool("by_env", "{command: wc, args: [-l, '--', '{path}'], env: {NOTE: 'see {text}'}}");
    place.ok(&["publish", "--yes"]);
    for name in ["by_option", "by_stdin", "by_env"] {
        place.ok(&["call", name, "path=a.md", "text=plain"]);
        let said = place.fails(&["call", name, "path=a.md", "text=/etc/passwd"], 1);
        assert!(said.contains("approve"), "{name}: {said}");
    }
}

#[test]
fn diff_compares_overrides_and_profiles() {
    let place = Place::new();
    place.write_tool("notes", &json!({ "x-toolgate-classification": "write", "x-toolgate-profile": "team" }));
    let write = |file: &str, text: &str| {
        let path = place.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("old.yaml", "tools: {}\n");
    write("new.yaml", "tools: {notes: {capability: {approval: {level: auto}}}}\n");
    write("strict/team.yaml", "askFrom: L1\n");
    write("loose/team.yaml", "fileMode: read\n");
    let tool = "tools/notes.json";
    let same = ["diff", tool, tool, "--profiles", "strict"];
    assert!(place.ok(&same).contains("no change"));
    let overridden = [
        "diff",
        tool,
        tool,
        "--profiles",
        "strict",
        "--overrides",
        "new.yaml",
        "--before-overrides",
        "old.yaml",
    ];
    let said = place.fails(&overridden, 1);
    assert!(said.contains("approval.level               ask -> auto  (user)"), "{said}");
    assert!(said.contains("calls that required approval run without it"), "{said}");
    let said = place.fails(&["diff", tool, tool, "--profiles", "loose", "--before-profiles", "strict"], 1);
    assert!(said.contains("files.read                   false -> true  (profile:team)"), "{said}");
    assert!(said.contains("approval.askFrom             L1 -> gateway"), "{said}");
}
