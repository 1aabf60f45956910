//! `audit verify` on journals that are intact, edited, cut, removed or written by an older version.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::PathBuf,
};

use serde_json::{Value, json};

use crate::{
    architecture::sources,
    place::{Place, Serving, token, until},
};

#[test]
fn killed_gateway_leaves_a_valid_journal() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let mut serving = Serving::start(&place);
    for _ in 0..5 {
        serving.call(&token, "word_count", &json!({ "text": "to be" }));
    }
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    assert_eq!(place.journal("journal").iter().filter(|record| record["kind"] == "call.closed").count(), 5);
    let again = Serving::start(&place);
    again.call(&token, "word_count", &json!({ "text": "to be" }));
    again.stop();
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
    assert_eq!(place.journal("journal").iter().filter(|record| record["kind"] == "call.closed").count(), 6);
}

fn records_of(place: &Place, journal: &str) -> PathBuf {
    let files = fs::read_dir(place.path().join(".toolgate").join(journal)).unwrap();
    let is_records = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    files.map(|entry| entry.unwrap().path()).find(is_records).unwrap()
}

/// An attacker with write access can remove unsigned records at the end. `verify` cannot detect that, but reports the risk.
#[test]
fn verify_reports_unsigned_records_after_kill() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let mut serving = Serving::start(&place);
    // The next checkpoint is due in a minute. A checkpoint between the call's two records would sign what the test keeps.
    until("the first checkpoint", || {
        place.journal_so_far("journal").iter().any(|record| record["kind"] == "checkpoint")
    });
    serving.call(&token, "word_count", &json!({ "text": "to be" }));
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    let file = records_of(&place, "journal");
    let text = fs::read_to_string(&file).unwrap();
    let kept = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&file, &text[..kept]).unwrap();
    let said = place.ok(&["audit", "verify"]);
    assert!(said.contains("not closed") && said.contains("not signed yet"), "{said}");
    assert!(place.fails(&["audit", "verify", "--sealed"], 1).contains("not signed yet"));
    let told: Value = serde_json::from_str(&place.ok(&["audit", "verify", "--format", "json"])).unwrap();
    assert_eq!((&told["clean"], &told["sealed"]), (&json!(true), &json!(false)), "{told}");
    let [gateway, commands] = told["journals"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert!(gateway["unsealed"].as_u64().unwrap() > 0, "{told}");
    assert_eq!((&gateway["closed"], &commands["closed"]), (&json!(false), &json!(true)), "{told}");
    assert_eq!(commands["unsealed"], 0, "{told}");
    Serving::start(&place).stop();
    let said = place.ok(&["audit", "verify", "--sealed"]);
    assert!(!said.contains("not closed") && !said.contains("not signed"), "{said}");
}

/// Reads the kinds from the sources, because some are rare. Tests of the gate compare the fields of call records.
#[test]
fn every_kind_and_field_of_the_journal_is_documented() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let documented = fs::read_to_string(root.join("docs/journal-fields.md")).unwrap();
    let mut kinds = 0;
    // The checkout itself may be below a directory called `src`.
    let is_source = |file: &PathBuf| {
        file.components()
            .rev()
            .take_while(|part| part.as_os_str() != "crates")
            .any(|part| part.as_os_str() == "src")
    };
    for file in sources().into_iter().filter(is_source) {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        // Each part starts with the rest of its kind and ends with its macro.
        for entry in text.split("\"kind\": \"").skip(1) {
            let (kind, rest) = entry.split_once('"').unwrap();
            // Kinds without a dot are not journal records.
            if !kind.contains('.') {
                continue;
            }
            kinds += 1;
            let (fields, _) = rest.split_once("})").unwrap();
            let names =
                fields.split("\":").filter_map(|before| before.rsplit_once('"')).map(|(_, name)| name);
            let is_name =
                |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
            for name in names.filter(is_name).chain([kind]) {
                let is_there = documented.contains(&format!("`{name}`"));
                assert!(is_there, "{}: `{kind}`: `{name}`", file.display());
            }
        }
    }
    assert!(kinds >= 10, "{kinds}");
}

/// The journal shows which policies decided a call, and since when they were active.
#[test]
fn journal_names_the_active_policies_by_digest() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serve_once = || {
        let serving = Serving::start(&place);
        serving.call(&token, "word_count", &json!({ "text": "to be" }));
        serving.stop();
        let records = place.journal("journal");
        let last = |kind: &str| records.iter().rfind(|record| record["kind"] == kind).unwrap().clone();
        (last("tools.loaded"), last("call.closed"))
    };
    let (loaded, call) = serve_once();
    assert_eq!(loaded, json!({ "kind": "tools.loaded", "live": 1, "found": 1, "policiesVersion": null }));
    assert_eq!(call.get("policiesVersion"), None);
    place.configure("policy:\n  cedar: [rules.cedar]\n");
    let mut seen = Vec::new();
    for rules in ["permit(principal, action, resource);", "// the same\npermit(principal, action, resource);"]
    {
        fs::write(place.path().join("rules.cedar"), rules).unwrap();
        let (loaded, call) = serve_once();
        assert_eq!(call["decision"], "ALLOWED");
        assert_eq!(call["policiesVersion"], loaded["policiesVersion"]);
        seen.push(loaded["policiesVersion"].as_str().unwrap().to_owned());
    }
    assert!(seen[0].starts_with("sha256:") && seen[0] != seen[1], "{seen:?}");
}

/// Kind, tool and author of every publication record.
fn publications(place: &Place) -> Vec<[String; 3]> {
    let records = place.journal("journal-commands");
    let told = records.iter().filter(|record| record["kind"].as_str().unwrap().starts_with("tool."));
    let text = |value: &Value| value.as_str().unwrap().split(' ').next().unwrap().to_owned();
    told.map(|one| [text(&one["kind"]), text(&one["tool"]["name"]), text(&one["by"])]).collect()
}

/// The journal shows which tools were served at any time, also after automatic changes.
#[test]
fn automatic_publications_and_withdrawals_are_recorded() {
    let place = Place::new();
    place.configure("catalog:\n  include:\n    names: [slugify]\n");
    place.ok(&["list"]);
    place.ok(&["list"]);
    let shipped = ["tool.published", "slugify", "catalog"].map(str::to_owned);
    assert_eq!(publications(&place), std::slice::from_ref(&shipped), "once");
    place.write_tool(
        "reads",
        &json!({
            "code": "return safety.fs.readText('note.txt')", "sandboxOverrides": { "fileRead": true },
        }),
    );
    fs::write(place.path().join("note.txt"), "a note").unwrap();
    place.ok(&["publish", "reads"]);
    fs::remove_file(place.path().join("note.txt")).unwrap();
    place.fails(&["test"], 1);
    place.fails(&["test"], 1);
    let published = ["tool.published", "reads", "operator"].map(str::to_owned);
    let taken_back = ["tool.unpublished", "reads", "operator"].map(str::to_owned);
    assert_eq!(publications(&place), [shipped, published, taken_back], "each once");
}

/// The test run of an edited document ends the publication, even if the command fails afterwards.
#[test]
fn withdrawal_before_a_new_publication_is_recorded() {
    let place = Place::new();
    place.write_tool("says", &json!({}));
    place.ok(&["publish", "says"]);
    place.write_tool("says", &json!({ "code": "return `${text}?`" }));
    place.ok(&["publish", "says"]);
    let told = publications(&place).into_iter().filter(|[_, name, _]| name == "says");
    let kinds: Vec<String> = told.map(|[kind, ..]| kind).collect();
    assert_eq!(kinds, ["tool.published", "tool.unpublished", "tool.published"]);
}

#[test]
fn verify_reports_an_edited_journal() {
    let place = Place::new();
    place.ok(&["publish"]);
    place.ok(&["call", "word_count", "text=hi"]);
    let file = records_of(&place, "journal-commands");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("ALLOWED", "DENIED ", 1)).unwrap();
    assert!(place.fails(&["audit", "verify"], 1).contains("CHANGED"));
}

/// Writes a journal as an old gateway does that has no list of journals.
fn put_journal_of_an_older_version(place: &Place, name: &str) {
    let fixture = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/tests/fixtures/journal-1");
    let put = |from: &str, folder: &str, to: &str| {
        let folder = place.path().join(".toolgate").join(folder);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
        fs::copy(fixture.join(from), folder.join(to)).unwrap();
        fs::set_permissions(folder.join(to), fs::Permissions::from_mode(0o600)).unwrap();
    };
    put("key.txt", "keys", "journal.key");
    put("head.json", name, "head.json");
    put("2026-11-16.jsonl", name, "2026-11-16.jsonl");
}

#[test]
fn journal_of_an_older_version_is_skipped_and_reported() {
    let place = Place::new();
    put_journal_of_an_older_version(&place, "journal-commands");
    place.ok(&["publish"]);
    assert!(place.ok(&["audit", "verify"]).contains("1 journal listed"));
    put_journal_of_an_older_version(&place, "journal");
    let state = place.path().join(".toolgate");
    let before = fs::read(state.join("journal/head.json")).unwrap();
    for _ in 0..2 {
        let output = place.toolgate(&["serve", "--stdio"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("the journal `journal` is not in the list of journals"), "{said}");
        assert_eq!(place.journal("journal-2").last().unwrap()["kind"], "checkpoint", "it served: {said}");
        assert_eq!(fs::read(state.join("journal/head.json")).unwrap(), before);
        assert!(place.fails(&["audit", "verify"], 1).contains("journal_unlisted"));
    }
    fs::rename(state.join("journal"), place.path().join("kept")).unwrap();
    assert!(place.ok(&["audit", "verify"]).contains("2 journals listed"));
}

#[test]
fn verify_reports_a_removed_journal() {
    let place = Place::new();
    place.ok(&["publish"]);
    Serving::start(&place).stop();
    assert!(place.ok(&["audit", "verify"]).contains("2 journals listed"));
    let state = place.path().join(".toolgate");
    fs::rename(state.join("journal"), state.join("journal-9")).unwrap();
    let said = place.fails(&["audit", "verify"], 1);
    for code in ["journal_name", "journal_unlisted", "journal_missing"] {
        assert!(said.contains(code), "{code}: {said}");
    }
    fs::remove_dir_all(state.join("journal-9")).unwrap();
    assert!(place.fails(&["audit", "verify"], 1).contains("journal_missing"));
    fs::remove_dir_all(state.join("journal-commands")).unwrap();
    assert!(place.fails(&["audit", "verify"], 1).contains("journal_missing"), "also when none is left");
    fs::remove_file(state.join("journals.jsonl")).unwrap();
    assert!(place.fails(&["audit", "verify"], 1).contains("restore it from a backup"));
    fs::create_dir(state.join("journal")).unwrap();
    assert!(
        place.fails(&["audit", "verify"], 1).contains("restore it from a backup"),
        "an empty folder is no journal"
    );
    fs::write(state.join("journal/lock"), "").unwrap();
    assert!(place.fails(&["audit", "verify"], 1).contains("restore it from a backup"), "nor is its lock");
}

/// There are two journals; the call is in the first.
#[test]
fn receipt_error_for_an_unsigned_call_does_not_deny_it() {
    let place = Place::new();
    place.ok(&["publish"]);
    let state = place.path().join(".toolgate");
    let key = toolgate_audit::Key::open_or_create(&state.join("keys/journal.key")).unwrap();
    let options =
        toolgate_audit::JournalOptions { checkpoint_every: 1_000, sync: toolgate_audit::Durability::Write };
    let clock: toolgate_audit::ClockFn = std::sync::Arc::new(std::time::SystemTime::now);
    let journal = toolgate_audit::Journal::open(&state.join("journal"), key, options, clock).unwrap();
    journal.append(&json!({ "kind": "call.opened", "callId": "call-1" })).unwrap();
    assert!(state.join("journal-commands").exists(), "the second one");
    let said = place.fails(&["audit", "receipt", "call-1"], 1);
    assert!(said.contains("no checkpoint covers the record yet"), "{said}");
    let said = place.fails(&["audit", "receipt", "call-2"], 1);
    assert!(said.contains("the journal has no call `call-2`"), "{said}");
    journal.close().unwrap();
    assert!(place.ok(&["audit", "receipt", "call-1"]).contains("call-1"));
}
