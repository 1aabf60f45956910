//! The gateway end to end: publish tools, serve them, call them over MCP, and read the journal.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::place::{Place, Serving, token};

#[test]
fn tool_is_published_and_called() {
    let place = Place::new();
    assert!(place.ok(&["list"]).contains("DRAFT"));
    let refused = place.fails(&["call", "word_count", "text=hi"], 1);
    assert!(refused.contains("admit.unknown_tool"), "{refused}");
    assert!(place.ok(&["publish", "word_count"]).contains("published  word_count (L0)"));
    assert!(place.ok(&["list"]).contains("ACTIVE"));
    let answer = place.ok(&["call", "word_count", "text=to be or not to be", "--format", "json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["result"], json!({ "words": 6, "characters": 18 }));
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
    let text = fs::read_to_string(place.path().join("tools/word_count.json")).unwrap();
    fs::write(place.path().join("tools/word_count.json"), text.replace("words.length", "words.length + 1"))
        .unwrap();
    assert!(place.ok(&["list"]).contains("DRAFT"), "an edited tool is a draft again");
    let said = place.fails(&["call", "word_count", "text=hi"], 1);
    assert!(said.contains("DRAFT"), "an operator is told why: {said}");
}

#[test]
fn failed_pass_reports_stage_and_message() {
    let place = Place::new();
    place.write_tool(
        "reads",
        &json!({
            "code": "console.log('about to read');\nreturn safety.fs.readText(text)",
            "sandboxOverrides": { "fileRead": true },
        }),
    );
    let said = place.fails(&["publish", "reads"], 1);
    assert!(said.contains("FAIL       reads"), "{said}");
    assert!(said.contains("execute.tool_failed"), "{said}");
    assert!(said.contains("line 2"), "{said}");
    assert!(said.contains("about to read"), "{said}");
    assert!(place.ok(&["list"]).contains("TEST_FAILED"));
}

/// An approver's note that contains a secret by mistake.
fn note(text: &str) -> String {
    format!("{text}, {} is used", concat!("AKIA", "QYLPMN5HHHFPZAM2"))
}

#[test]
fn approval_is_valid_for_one_call() {
    let place = Place::new();
    place.write_tool(
        "say",
        &json!({ "humanInTheLoop": { "mode": "REQUIRED", "promptTemplate": "Say {args.text}?" } }),
    );
    place.ok(&["publish", "say"]);
    let said = place.fails(&["call", "say", "text=hi"], 1);
    assert!(said.contains("toolgate approvals approve apr_"), "{said}");
    let waiting: Value = serde_json::from_str(&place.ok(&["approvals", "list", "--format", "json"])).unwrap();
    let id = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(waiting["approvals"][0]["prompt"], "Say \"hi\"?");
    let listed = place.ok(&["approvals", "list"]);
    assert!(listed.contains("calls say"), "beside the tool's own words: {listed}");
    assert!(listed.contains("because human_in_the_loop"), "{listed}");
    assert!(listed.contains("\n    arguments {\"text\":\"hi\"}\n"), "{listed}");
    let shown: Value = serde_json::from_str(&place.ok(&["approvals", "show", &id])).unwrap();
    assert_eq!(shown["arguments"], r#"{"text":"hi"}"#);
    place.ok(&["approvals", "approve", &id, "--note", &note("fine")]);
    place.fails(&["approvals", "deny", &id], 1);
    let records = place.journal("journal-commands");
    let decided: Vec<&Value> = records.iter().filter(|record| record["kind"] == "approval.decided").collect();
    assert_eq!(decided.len(), 1, "once, and not for the answer that came too late: {decided:?}");
    assert_eq!(decided[0]["approval"], id);
    assert_eq!(decided[0]["state"], "approved");
    assert_eq!(decided[0]["note"], "fine, [REDACTED] is used");
    assert_eq!(place.ok(&["call", "say", "text=hi"]), "hi!\n");
    place.fails(&["call", "say", "text=hi"], 1);
}

#[test]
fn answer_of_an_admin_over_http_is_recorded() {
    let place = Place::new();
    place.write_tool("say", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    place.ok(&["publish", "say"]);
    let admin = token(&place, &["--admin"]);
    let serving = Serving::start(&place);
    serving.call(&admin, "say", &json!({ "text": "hi" }));
    let waiting: Value = serde_json::from_str(&place.ok(&["approvals", "list", "--format", "json"])).unwrap();
    let id = waiting["approvals"][0]["id"].as_str().unwrap();
    // This token made the call.
    let own = format!("/admin/v1/approvals/{id}/approve");
    let (status, _, body) = serving.post_to(&own, Some(&admin), &json!({}), &[]);
    assert!(status == 403 && body.contains("own_call"), "{status} {body}");
    let path = format!("/admin/v1/approvals/{id}/deny");
    let (status, _, body) = serving.post_to(&path, Some(&admin), &json!({ "note": note("not today") }), &[]);
    assert_eq!(status, 200, "{body}");
    serving.stop();
    let records = place.journal("journal");
    let decided: Vec<&Value> = records.iter().filter(|record| record["kind"] == "approval.decided").collect();
    assert_eq!(decided.len(), 1, "{decided:?}");
    assert_eq!(decided[0]["approval"], id);
    assert_eq!(decided[0]["state"], "denied");
    assert_eq!(decided[0]["by"], "token:tests");
    assert_eq!(decided[0]["note"], "not today, [REDACTED] is used");
    assert_eq!(decided[0]["tool"], "say");
    let refused = records.iter().filter(|record| record["kind"] == "approval.refused");
    assert_eq!(refused.map(|record| &record["by"]).collect::<Vec<_>>(), ["token:tests"]);
}

#[test]
fn client_lists_and_calls_over_http() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let (status, head, _) = serving.post(None, &initialize, &[]);
    assert_eq!(status, 401);
    assert!(head.to_lowercase().contains("www-authenticate: bearer"), "{head}");
    let (status, _, body) = serving.post(Some("tg_wrong"), &initialize, &[]);
    assert_eq!(status, 401, "{body}");
    let (status, _, _) = serving.post(Some(&token), &initialize, &[("origin", "https://evil.example")]);
    assert_eq!(status, 403);
    assert_eq!(serving.names(&token), ["word_count"]);
    let result = serving.call(&token, "word_count", &json!({ "text": "to be" }));
    assert_eq!(result["structuredContent"], json!({ "words": 2, "characters": 5 }));
    let refused = serving.call(&token, "word_count", &json!({ "txt": "to be" }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("bind.input_shape"), "{refused}");
    place.ok(&["token", "revoke", "tests"]);
    assert_eq!(serving.post(Some(&token), &initialize, &[]).0, 401, "taken back at once");
    serving.stop();
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
    let records = place.journal("journal");
    let closed: Vec<&Value> = records.iter().filter(|record| record["kind"] == "call.closed").collect();
    assert_eq!(closed.len(), 2, "{closed:?}");
    assert_eq!(closed[0]["client"]["protocol"], "2026-07-28");
    assert_eq!(closed[0]["caller"]["sub"], "token:tests");
    assert!(records.iter().any(|record| record["kind"] == "gateway.stopped"));
}

/// A new tool may have a name that looks like another tool's.
#[test]
fn new_tool_with_a_confusing_name_does_not_disable_a_live_one() {
    const ALIKE: &str = "P\u{430}y";
    let place = Place::new();
    place.write_tool("pay", &json!({}));
    place.ok(&["publish", "--yes"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    assert_eq!(serving.names(&token), ["pay", "word_count"]);
    place.write_tool("other", &json!({ "name": ALIKE }));
    serving.wait_for("reloaded: 2 tools are live");
    place.ok(&["publish", "--yes", "--accept", "LINT_POISON_LOOKALIKE", ALIKE]);
    serving.wait_for("change rejected");
    let said = serving.wait_for("rename one");
    assert!(said.contains("look alike"), "{said}");
    assert_eq!(serving.names(&token), ["pay", "word_count"], "who was there before still is");
    fs::remove_file(place.path().join("tools/other.json")).unwrap();
    serving.wait_for("reloaded: 2 tools are live");
    serving.stop();
}

#[test]
fn valid_edits_are_live_without_a_restart() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    place.write_tool("say", &json!({}));
    serving.wait_for("reloaded: 1 tool is live");
    place.ok(&["publish", "say"]);
    serving.wait_for("reloaded: 2 tools are live");
    assert_eq!(serving.names(&token), ["say", "word_count"]);
    fs::write(place.path().join("tools/broken.json"), "{ \"name\": \"broken\", \"code\": ").unwrap();
    serving.wait_for("change rejected");
    assert_eq!(serving.names(&token), ["say", "word_count"]);
    fs::remove_file(place.path().join("tools/broken.json")).unwrap();
    serving.wait_for("reloaded: 2 tools are live");
    place.configure("exposure:\n  excluded: [say]\n");
    serving.wait_for("reloaded: 1 tool is live");
    assert_eq!(serving.names(&token), ["word_count"]);
    place.configure("exposure:\n  exclude: [say]\n");
    serving.wait_for("did you mean `excluded`?");
    assert_eq!(serving.names(&token), ["word_count"]);
    place.configure(
        "approvals:\n  ask_from: always\n  client_may_answer: false\nlimits:\n  calls: 7\n  depth: 9\n",
    );
    let said = serving.wait_for("restart the gateway to apply changes of: ");
    assert!(said.contains("approvals.client_may_answer") && said.contains("limits.calls"), "{said}");
    assert!(!said.contains("approvals.ask_from") && !said.contains("limits.depth"), "{said}");
    serving.stop();
}

#[test]
fn approval_and_size_settings_are_live_without_a_restart() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let call = |text: &str| serving.call(&token, "word_count", &json!({ "text": text })).to_string();
    // One write may cause two reloads, so no single log line proves that this edit is live.
    let until = |text: &str, expect: &str| {
        let patience = Instant::now() + Duration::from_mins(1);
        while !call(text).contains(expect) {
            assert!(Instant::now() < patience, "never `{expect}`: {}", call(text));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("to be", "\"words\":2");
    place.configure("approvals:\n  ask_from: always\n");
    until("to be", "decide.approval_pending");
    let long = "be ".repeat(1000);
    place.configure("limits:\n  arguments: 1KiB\n");
    until(&long, "bind.too_large");
    assert!(call("to be or").contains("\"words\":3"), "nobody is asked any more");
    place.configure("limits:\n  argument: 1MiB\n");
    serving.wait_for("did you mean `arguments`?");
    assert!(call(&long).contains("bind.too_large"), "a mistake leaves what was in force");
    place.configure("");
    until(&long, "\"words\":1000");
    serving.stop();
}

#[test]
fn client_that_starts_the_gateway_uses_stdio() {
    let place = Place::new();
    place.ok(&["publish"]);
    let mut child = place.serve_stdio();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |message: Value, has_answer: bool| -> Value {
        writeln!(input, "{message}").unwrap();
        if !has_answer {
            return Value::Null;
        }
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line.get("id").is_some() {
                return line;
            }
        }
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "tests", "version": "1" },
    } });
    assert_eq!(ask(hello, true)["result"]["serverInfo"]["name"], "toolgate");
    ask(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), false);
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "word_count", "arguments": { "text": "a b c" },
    } });
    assert_eq!(ask(call, true)["result"]["structuredContent"]["words"], 3);
    drop(input);
    assert!(child.wait().unwrap().success());
    let records = place.journal("journal");
    let closed = records.iter().find(|record| record["kind"] == "call.closed").unwrap();
    assert_eq!(closed["client"]["transport"], "stdio");
    assert_eq!(closed["caller"]["sub"], "local:local");
}

#[test]
fn tools_cannot_read_the_gateways_files() {
    let place = Place::new();
    place.write_tool("peek", &json!({
        "params": [],
        "code": "const tried = {};\nfor (const path of ['.toolgate/keys/journal.key', '.toolgate/state.db', 'toolgate.yaml', 'tools/peek.json', '.mcp.json', '.cursor/mcp.json']) {\n  try { safety.fs.readText(path); tried[path] = 'read' } catch (error) { tried[path] = error.reason ?? String(error) }\n}\ntry { safety.fs.writeText('toolgate.yaml', 'version: 1'); tried.write = 'written' } catch (error) { tried.write = error.reason ?? String(error) }\nif (Object.values(tried).some((outcome) => outcome !== 'path-blocked')) throw new Error(JSON.stringify(tried))\nreturn tried",
        "humanInTheLoop": { "mode": "DISABLED" },
        "sandboxOverrides": { "fileRead": true, "fileWrite": true },
        "x-toolgate-capability": { "approval": { "level": "auto" } },
    }));
    // Client files and their backups contain tokens.
    for client in ["claude", "cursor"] {
        place.ok(&["connect", client, "--transport", "http"]);
    }
    place.ok(&["publish", "peek", "--yes"]);
    let answer: Value = serde_json::from_str(&place.ok(&["call", "peek", "--format", "json"])).unwrap();
    for (path, outcome) in answer["result"].as_object().unwrap() {
        assert_eq!(outcome, "path-blocked", "{path}");
    }
    // The same is true for a draft under test, wherever its document is.
    let draft = place.path().join("draft.json");
    fs::rename(place.path().join("tools/peek.json"), &draft).unwrap();
    for command in ["run", "test"] {
        // The tool throws if it can read anything.
        let said = place.ok(&[command, draft.to_str().unwrap(), "--format", "json"]);
        assert!(said.contains("peek") || said.contains("path-blocked"), "{said}");
    }
}

#[test]
fn risky_tool_is_not_published_without_confirmation() {
    let place = Place::new();
    place.write_tool("writes", &json!({ "sandboxOverrides": { "fileWrite": true } }));
    let said = place.fails(&["publish", "writes"], 1);
    assert!(said.contains("--yes"), "{said}");
    let said = place.ok(&["publish", "writes", "--yes"]);
    assert!(said.contains("sandboxOverrides.fileWrite is `true`, the run used no file"), "{said}");
}

#[test]
fn cedar_policies_forbid_hide_and_ask() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    place.ok(&["publish"]);
    let policies = place.path().join("rules.cedar");
    place.configure("policy:\n  cedar: [rules.cedar]\n");
    fs::write(
        &policies,
        r#"permit (principal, action == Action::"say", resource);
forbid (principal, action == Action::"say", resource) when { context.input.text == "no" };
@approval("loud words")
forbid (principal, action == Action::"say", resource) when { context.input.text like "*!*" };
"#,
    )
    .unwrap();
    assert_eq!(place.ok(&["call", "say", "text=hi"]), "hi!\n");
    assert!(place.fails(&["call", "say", "text=no"], 1).contains("decide.policy_forbids"));
    assert!(place.fails(&["call", "say", "text=hi!"], 1).contains("toolgate approvals approve"));
    assert!(place.fails(&["call", "word_count", "text=hi"], 1).contains("admit.unknown_tool"), "hidden");
    fs::write(
        &policies,
        r#"permit (principal, action == Action::"say", resource) when { context.input.txt == "x" };"#,
    )
    .unwrap();
    let said = place.fails(&["list"], 1);
    assert!(said.contains("txt"), "a rule about an argument that is not there is a mistake: {said}");
    assert!(
        place.fails(&["call", "say", "text=hi"], 1).contains("admit.unknown_tool"),
        "no policies, no calls"
    );
}

#[test]
fn shipped_tools_are_tested_on_their_own_fixtures() {
    let place = Place::new();
    place.configure("catalog:\n  preset: files\n");
    fs::create_dir(place.path().join("out")).unwrap();
    for name in ["report.md", "log.txt", "journal.md"] {
        fs::write(place.path().join("out").join(name), "mine").unwrap();
    }
    let listed = place.ok(&["list"]);
    assert!(!listed.contains("TEST_FAILED"), "{listed}");
    assert!(listed.matches("ACTIVE").count() >= 12, "{listed}");
    let mut found: Vec<String> = fs::read_dir(place.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            format!("{} {}", path.file_name().unwrap().to_string_lossy(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    assert_eq!(found, ["journal.md mine", "log.txt mine", "report.md mine"]);
}

#[test]
fn unpublished_tool_disappears_at_once_despite_other_errors() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    fs::write(place.path().join("tools/broken.json"), "{ \"name\": \"broken\", \"code\": ").unwrap();
    serving.wait_for("change rejected");
    place.ok(&["unpublish", "word_count"]);
    serving.wait_for("change rejected");
    assert_eq!(serving.names(&token), Vec::<String>::new());
    serving.stop();
}

/// Waits until exactly these tools are listed.
#[track_caller]
fn until_listed(serving: &Serving, token: &str, expected: &[&str]) {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        let mut names = serving.names(token);
        names.sort();
        if names == expected {
            return;
        }
        assert!(Instant::now() < end, "still {names:?}, not {expected:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Live tools with damaged documents are still served, and can be unpublished without the documents.
#[test]
fn live_tool_with_a_broken_document_can_be_unpublished() {
    let place = Place::new();
    let id = |number: u8| format!("6f1c2a90-7d7e-4a51-9d0a-00000000000{number}");
    for (number, name) in ["cut", "moved", "sound", "wrong"].into_iter().enumerate() {
        place.write_tool(name, &json!({ "toolId": id(u8::try_from(number).unwrap()) }));
    }
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    until_listed(&serving, &token, &["cut", "moved", "sound", "word_count", "wrong"]);
    fs::write(place.path().join("tools/cut.json"), "{ \"name\": \"cut\", \"code\": ").unwrap();
    serving.wait_for("change rejected");
    place.write_tool("wrong", &json!({ "params": 5 }));
    // An edit makes the tool a draft, even if others have errors.
    place.write_tool("moved", &json!({ "toolId": id(9) }));
    until_listed(&serving, &token, &["cut", "sound", "word_count", "wrong"]);
    place.ok(&["unpublish", "cut"]);
    until_listed(&serving, &token, &["sound", "word_count", "wrong"]);
    place.ok(&["unpublish", "wrong"]);
    until_listed(&serving, &token, &["sound", "word_count"]);
    place.ok(&["unpublish", "moved"]);
    place.ok(&["unpublish", &id(2)]);
    until_listed(&serving, &token, &["word_count"]);
    let records = place.journal("journal-commands");
    let withdrawn = records.iter().filter(|record| record["kind"] == "tool.unpublished");
    let withdrawn: Vec<&str> = withdrawn.map(|record| record["tool"]["name"].as_str().unwrap()).collect();
    assert_eq!(
        withdrawn,
        ["cut", "wrong", "moved", "moved", "sound"],
        "`moved` by its old id and its new one"
    );
    assert!(place.fails(&["unpublish", "nothing"], 2).contains("unknown tool `nothing`"));
    place.write_tool("never", &json!({ "params": 5 }));
    assert!(place.fails(&["unpublish", "never"], 1).contains("use its `toolId`"));
    serving.stop();
}

#[test]
fn excluded_tool_disappears_at_once_despite_other_errors() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    until_listed(&serving, &token, &["word_count"]);
    fs::write(place.path().join("tools/word_count.json"), "{ \"name\": \"word_count\", \"code\": ").unwrap();
    serving.wait_for("change rejected");
    assert_eq!(serving.names(&token), ["word_count"], "the last good set");
    place.configure("catalog:\n  preset: none\nexposure:\n  excluded: [word_count]\n");
    until_listed(&serving, &token, &[]);
    serving.stop();
}

#[test]
fn doctor_and_config_show_report() {
    let place = Place::new();
    let said = place.ok(&["doctor"]);
    assert!(said.contains("landlock"), "{said}");
    assert!(said.lines().last().unwrap().starts_with("everything needed works"), "{said}");
    let told: Value = serde_json::from_str(&place.ok(&["doctor", "--format", "json"])).unwrap();
    assert_eq!(told["problems"], 0, "{told}");
    // `doctor` also works without a configuration.
    let elsewhere = Place::new();
    fs::remove_file(elsewhere.path().join("toolgate.yaml")).unwrap();
    let said = elsewhere.ok(&["doctor"]);
    assert!(said.contains("note ") && said.contains("run `toolgate init`"), "{said}");
    elsewhere.fails(&["doctor", "--config", "toolgate.yaml"], 1);
    let shown = place.ok(&["config", "show", "--origin"]);
    assert!(shown.contains("server.listen"), "{shown}");
    place.configure("server:\n  lisen: 1\n");
    let said = place.fails(&["config", "show"], 2);
    assert!(said.contains("did you mean `listen`?"), "{said}");
    let said = place.fails(&["doctor"], 1);
    assert!(said.contains("PROBLEM") && said.contains("\n1 problem"), "{said}");
}

#[test]
fn mistake_in_a_cedar_policy_names_its_file_once() {
    let place = Place::new();
    fs::write(place.path().join("p.cedar"), "permit(principal, action").unwrap();
    place.configure("catalog:\n  preset: none\npolicy:\n  cedar: [p.cedar]\n");
    let said = place.fails(&["list"], 1);
    let line = said.lines().find(|line| line.contains("p.cedar")).unwrap();
    assert_eq!(line.matches("p.cedar").count(), 1, "{line}");
    assert!(line.contains("p.cedar:1:25: "), "{line}");
}

#[test]
fn no_tool_is_listed_as_active_while_the_policies_have_errors() {
    let place = Place::new();
    place.configure("catalog:\n  preset: none\n");
    place.ok(&["publish", "--yes"]);
    fs::write(place.path().join("p.cedar"), "permit(principal, action").unwrap();
    place.configure("catalog:\n  preset: none\npolicy:\n  cedar: [p.cedar]\n");
    let said = place.fails(&["list"], 1);
    assert!(said.contains("NOT_SERVED") && !said.contains("ACTIVE"), "{said}");
}

#[test]
fn unavailable_helper_is_reported_everywhere() {
    let place = Place::new();
    place.write_tool("early", &json!({ "toolSafety": { "runtime": { "helpers": ["safety.fs/v9"] } } }));
    let said = place.fails(&["publish"], 1);
    assert!(said.contains("safety.fs/v9"), "{said}");
    let said = place.fails(&["test"], 1);
    assert!(said.contains("safety.fs/v9"), "{said}");
}
