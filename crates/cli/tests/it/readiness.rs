//! Readiness for load balancers: not ready while something fails, and ready again afterwards.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use crate::place::{Place, Serving, token, until};

fn is_ready(serving: &Serving) -> bool {
    serving.get("/readyz", "none").starts_with("HTTP/1.1 200")
}

#[test]
fn gateway_is_ready_again_after_a_full_disk() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start_enduring(&place);
    assert!(is_ready(&serving));
    serving.limit_files("1");
    let refused = serving.call(&token, "word_count", &json!({ "text": "to be" }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(!is_ready(&serving));
    serving.wait_for("the journal cannot be written");
    serving.limit_files("unlimited");
    until("it is ready again, though nobody calls", || is_ready(&serving));
    serving.wait_for("the journal can be written again");
    let answer = serving.call(&token, "word_count", &json!({ "text": "to be" }));
    assert_eq!(answer["structuredContent"]["words"], 2, "{answer}");
    serving.stop();
    let records = place.journal("journal");
    let probed: Vec<_> = records.iter().filter(|record| record["kind"] == "journal.probed").collect();
    assert_eq!(probed.len(), 1, "{probed:?}");
    assert!(probed[0]["problem"].as_str().unwrap().contains("write to"), "{probed:?}");
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

#[test]
fn gateway_without_state_is_not_ready() {
    let place = Place::new();
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    assert!(is_ready(&serving));
    let (state, aside) = (place.path().join(".toolgate/state.db"), place.path().join("aside.db"));
    fs::rename(&state, &aside).unwrap();
    assert_eq!(serving.ask(Some(&token), "tools/list", json!({})).0, 503);
    assert!(!is_ready(&serving), "nobody with a token is let in");
    serving.wait_for("callers with tokens are refused");
    fs::rename(&aside, &state).unwrap();
    until("it is ready again", || is_ready(&serving));
    assert_eq!(serving.ask(Some(&token), "tools/list", json!({})).0, 200);
    serving.stop();
}

/// Supervisors send calls as soon as that line is logged.
#[test]
fn gateway_that_cannot_listen_does_not_report_serving() {
    let place = Place::new();
    place.ok(&["publish"]);
    let key = place.path().join(".toolgate/keys/request-state");
    fs::write(&key, "too short").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let said = place.fails(&["serve", "--listen", "127.0.0.1:0"], 2);
    assert!(said.contains("request-state"), "{said}");
    assert!(!said.contains("serving MCP"), "{said}");
}

/// Another user could change what tools may do.
#[test]
fn files_that_others_can_change_are_refused_or_reported() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    let chmod = |name: &str, mode: u32| {
        fs::set_permissions(place.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    // Files with umask 002: the group is the user's private group.
    chmod("toolgate.yaml", 0o664);
    chmod("tools", 0o775);
    chmod("tools/say.json", 0o664);
    place.ok(&["publish", "say"]);
    chmod("toolgate.yaml", 0o666);
    for command in [&["serve", "--stdio"][..], &["call", "say", "text=hi"], &["doctor"], &["list"]] {
        let said = String::from_utf8_lossy(&place.toolgate(command).stderr).into_owned()
            + &String::from_utf8_lossy(&place.toolgate(command).stdout);
        assert!(
            said.contains("every user of this machine can change") && said.contains("chmod o-w"),
            "{said}"
        );
        assert!(!place.toolgate(command).status.success(), "{command:?}");
    }
    chmod("toolgate.yaml", 0o644);
    chmod("tools/say.json", 0o666);
    let said = place.fails(&["call", "say", "text=hi"], 1);
    assert!(said.contains("chmod o-w"), "{said}");
    let checked = place.toolgate(&["check", "tools"]);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(said.contains("warning: every user of this machine can change"), "{said}");
    chmod("tools/say.json", 0o644);
    chmod("tools", 0o777);
    let said = place.fails(&["doctor"], 1);
    assert!(said.contains("permissions") && said.contains("chmod o-w"), "{said}");
    let serving = Serving::start(&place);
    serving.stop();
}
