//! Old versions, tools and tokens do not come back by themselves.

use std::fs;

use serde_json::json;

use crate::place::{Place, Serving, token, until};

fn state_of(place: &Place, tool: &str) -> String {
    let listed: serde_json::Value = serde_json::from_str(&place.ok(&["list", "--format", "json"])).unwrap();
    let tools = listed["tools"].as_array().unwrap();
    tools.iter().find(|one| one["name"] == tool).unwrap()["state"].as_str().unwrap().to_owned()
}

#[test]
fn earlier_version_under_another_id_is_not_served_when_its_file_is_restored() {
    let place = Place::new();
    let first = json!({ "toolId": "11111111-0000-4000-8000-000000000001" });
    place.write_tool("say", &first);
    place.ok(&["publish", "say"]);
    assert_eq!(state_of(&place, "say"), "ACTIVE");
    place.write_tool(
        "say",
        &json!({ "toolId": "11111111-0000-4000-8000-000000000002", "code": "return text" }),
    );
    place.ok(&["publish", "say"]);
    place.write_tool("say", &first);
    assert_eq!(state_of(&place, "say"), "DRAFT");
}

#[test]
fn tool_is_not_exposed_by_an_id_that_is_another_tools_name() {
    let place = Place::new();
    place.configure("catalog:\n  preset: none\nexposure:\n  auto_add: false\n  exposed: [mail]\n");
    place.write_tool("mail", &json!({}));
    place.write_tool("other", &json!({ "toolId": "mail" }));
    place.ok(&["publish", "mail", "other"]);
    let own = token(&place, &[]);
    let serving = Serving::start(&place);
    assert_eq!(serving.names(&own), ["mail"]);
    serving.stop();
}

/// An operator restores a backup, or an attacker wants a revoked token back.
#[test]
fn restored_older_state_revives_neither_tools_nor_tokens() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    place.write_tool("kept", &json!({}));
    place.ok(&["publish", "say", "kept"]);
    let lost = token(&place, &[]);
    let own = place.ok(&["token", "create", "own"]).trim().to_owned();
    let state = place.path().join(".toolgate/state.db");
    let backup = fs::read(&state).unwrap();
    place.ok(&["unpublish", "say"]);
    place.ok(&["token", "revoke", "tests"]);
    let restore = || {
        for beside in ["state.db-wal", "state.db-shm"] {
            let _ = fs::remove_file(place.path().join(".toolgate").join(beside));
        }
        fs::write(&state, &backup).unwrap();
    };
    restore();
    let said = place.fails(&["audit", "verify"], 1);
    let older = "state.db is older than the journal";
    assert!(said.contains(older) && said.contains("say") && said.contains("tests"), "{said}");
    let said = place.fails(&["doctor"], 1);
    assert!(said.contains(older), "{said}");
    restore();
    let serving = Serving::start(&place);
    assert_eq!(serving.names(&own), ["kept"]);
    assert_eq!(serving.ask(Some(&lost), "tools/list", json!({})).0, 401);
    serving.stop();
    let records = place.journal("journal");
    let record = records.iter().find(|record| record["kind"] == "state.older").unwrap();
    assert_eq!((&record["tools"], &record["tokens"]), (&json!(["say"]), &json!(["tests"])));
    place.ok(&["audit", "verify"]);
    place.ok(&["doctor"]);
    place.ok(&["publish", "say"]);
    assert_eq!(state_of(&place, "say"), "ACTIVE", "publishing it counts");
}

#[test]
fn broken_document_does_not_keep_tighter_settings_of_others_from_being_applied() {
    let place = Place::new();
    for name in ["broken", "edited", "kept", "removed"] {
        place.write_tool(name, &json!({}));
    }
    place.configure("catalog:\n  preset: none\nauth:\n  anonymous:\n    permissions: []\n");
    fs::remove_file(place.path().join("tools/word_count.json")).ok();
    place.ok(&["publish"]);
    let own = token(&place, &[]);
    let serving = Serving::start(&place);
    until("all are live", || serving.names(&own).len() == 4);
    fs::write(place.path().join("tools/broken.json"), "{ \"name\": \"broken\", \"code\": ").unwrap();
    serving.wait_for("change rejected");
    fs::remove_file(place.path().join("tools/removed.json")).unwrap();
    until("a removed tool is gone", || !serving.names(&own).contains(&"removed".to_owned()));
    place.write_tool("edited", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    until("an edited tool is a draft", || !serving.names(&own).contains(&"edited".to_owned()));
    place.write_tool("newcomer", &json!({}));
    place.ok(&["publish", "newcomer"]);
    assert_eq!(serving.ask(None, "tools/list", json!({})).0, 200);
    place.configure("catalog:\n  preset: none\napprovals:\n  ask_from: always\n");
    until("callers without a token are refused", || serving.ask(None, "tools/list", json!({})).0 == 401);
    let asked = serving.call(&own, "kept", &json!({ "text": "hi" })).to_string();
    assert!(asked.contains("decide.approval_pending"), "{asked}");
    assert_eq!(serving.names(&own), ["broken", "kept"], "nothing is added, and the broken one stays");
    // An invalid configuration does not keep a removed tool, either.
    place.configure("catlog: {}\n");
    fs::remove_file(place.path().join("tools/kept.json")).unwrap();
    until("a removed tool is gone", || serving.names(&own) == ["broken"]);
    serving.stop();
}
