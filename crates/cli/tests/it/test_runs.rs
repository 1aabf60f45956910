//! A test run changes no real data without the operator's consent.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
};

use serde_json::{Value, json};

use crate::place::Place;

/// A workspace with a file, and a command that empties it.
fn place_with_eraser(more: &str) -> Place {
    let place = Place::new();
    fs::write(place.path().join(NOTES), TEXT).unwrap();
    let manifest = format!(
        "name: erase\ndescription: Empties the notes of the workspace. Returns nothing.\nclassification: destructive\n\
         input: {{type: object, properties: {{}}}}\ntestInput: {{}}\n\
         handler: {{cli: {{command: truncate, args: [\"--size=0\", {NOTES}], cwd: $WORKSPACE}}}}\n\
         sandboxOverrides: {{fileRead: true, fileWrite: true}}\n\
         capability: {{execution: {{allowedPaths: [$WORKSPACE]}}{more}}}\n"
    );
    fs::write(place.path().join("tools/erase.yaml"), manifest).unwrap();
    place
}

fn notes(place: &Place) -> String {
    fs::read_to_string(place.path().join(NOTES)).unwrap()
}

fn runs(place: &Place) -> usize {
    let entries = place.journal_so_far("journal-commands");
    entries.iter().filter(|entry| entry["kind"] == "call.opened").count()
}

#[test]
fn tool_above_l3_is_not_run_before_publishing_is_confirmed() {
    let place = place_with_eraser("");
    let said = place.fails(&["publish", "erase"], 1);
    assert!(said.contains("was not confirmed; nothing was run"), "{said}");
    assert!(said.contains("add --yes to test and publish it"), "{said}");
    assert_eq!((notes(&place).as_str(), runs(&place)), (TEXT, 0));
}

#[test]
fn test_names_the_kinds_that_do_not_run_yet() {
    let place = Place::new();
    fs::create_dir(place.path().join("services")).unwrap();
    let manifest = |name: &str, handler: &str| {
        let text = format!(
            "name: {name}\ndescription: Asks a service for a word. Returns the word.\nclassification: read\n\
             input: {{type: object, properties: {{}}}}\ntestInput: {{}}\nhandler: {handler}\n\
             sandboxOverrides: {{networkMode: allowlist, hostsAllow: [word.example]}}\n"
        );
        fs::write(place.path().join(format!("services/{name}.yaml")), text).unwrap();
    };
    manifest("ask_http", "{http: {url: 'https://word.example/'}}");
    manifest("ask_grpc", "{grpc: {endpoint: 'https://word.example:443', service: words.Words, method: Get}}");
    let said = place.fails(&["test", "services"], 2);
    assert!(
        said.contains("no tool was run: ")
            && said.contains("`ask_http`: `http` tools cannot be run by this gateway yet"),
        "{said}"
    );
    // Beside a tool that runs, each is named, and the run passes.
    let said = place.ok(&["test", "services", "tools"]);
    assert!(said.contains("SKIP  `ask_http`: `http` tools cannot be run by this gateway yet"), "{said}");
}

#[test]
fn writing_test_run_changes_a_copy_of_the_workspace() {
    let place = place_with_eraser("");
    for arguments in [&["publish", "erase", "--yes"][..], &["test"], &["test", "tools/erase.yaml"]] {
        place.ok(arguments);
        assert_eq!(notes(&place), TEXT, "{arguments:?}");
    }
    place.write_tool(
        "scribble",
        &json!({
            "code": "safety.fs.writeText('notes.txt', text); return safety.fs.readText('notes.txt')",
            "sandboxOverrides": { "fileRead": true, "fileWrite": true },
        }),
    );
    place.ok(&["publish", "scribble", "--yes"]);
    assert_eq!(notes(&place), TEXT);
}

#[test]
fn test_run_for_real_changes_the_workspace() {
    let place = place_with_eraser("");
    place.ok(&["publish", "erase", "--yes", "--for-real"]);
    assert_eq!(notes(&place), "");
    fs::write(place.path().join(NOTES), TEXT).unwrap();
    place.ok(&["test", "tools/erase.yaml", "--for-real"]);
    assert_eq!(notes(&place), "");
}

/// Without a copy, only consent helps.
#[test]
fn writing_test_run_needs_consent_where_the_workspace_is_too_large_to_copy() {
    let place = place_with_eraser("");
    File::create(place.path().join("large")).unwrap().set_len(65 * 1024 * 1024).unwrap();
    for arguments in [&["publish", "erase", "--yes"][..], &["test", "tools/erase.yaml"]] {
        let said = place.fails(arguments, 1);
        assert!(said.contains("the workspace has more than 64 MiB or 20000 entries"), "{said}");
        assert!(said.contains("nothing was run; add --for-real to run it"), "{said}");
    }
    assert_eq!((notes(&place).as_str(), runs(&place)), (TEXT, 0));
    place.ok(&["publish", "erase", "--yes", "--for-real"]);
}

/// A copy does not protect a host.
#[test]
fn test_run_that_acts_on_other_hosts_needs_consent() {
    let place = place_with_eraser(", network: {access: limited, allowedHosts: [a.example]}");
    for arguments in [&["publish", "erase", "--yes"][..], &["test", "tools/erase.yaml"]] {
        let said = place.fails(arguments, 1);
        assert!(said.contains("it is classified `destructive`, and it reaches other hosts"), "{said}");
    }
    assert_eq!((notes(&place).as_str(), runs(&place)), (TEXT, 0));
}

#[test]
fn test_run_of_an_online_tool_needs_consent_where_its_calls_need_an_approval() {
    let place = Place::new();
    place.write_tool(
        "remove",
        &json!({
            "code": "return fetch('https://a.example/', { method: 'DELETE' }).text()",
            "sandboxOverrides": { "networkMode": "allowlist", "hostsAllow": ["a.example"] },
            "x-toolgate-capability": { "approval": { "level": "always" } },
        }),
    );
    for arguments in [&["publish", "remove", "--yes"][..], &["test"], &["test", "tools/remove.json"]] {
        let said = place.fails(arguments, 1);
        assert!(said.contains("its calls need an approval (`always`), and it reaches other hosts"), "{said}");
    }
    // `test` also runs the other tools of the workspace.
    let entries = place.journal_so_far("journal-commands");
    let is_run = |entry: &Value| entry["kind"] == "call.opened" && entry["tool"]["name"] == "remove";
    assert!(!entries.iter().any(is_run), "{entries:?}");
}

#[test]
fn test_run_that_writes_outside_of_the_workspace_needs_consent() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    place.write_tool(
        "scribble",
        &json!({
            "code": "return safety.fs.writeText('notes.txt', text)",
            "sandboxOverrides": { "fileRead": true, "fileWrite": true, "fsBasePath": outside.path() },
        }),
    );
    let said = place.fails(&["publish", "scribble", "--yes"], 1);
    assert!(said.contains("not below `$WORKSPACE`"), "{said}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    place.ok(&["publish", "scribble", "--yes", "--for-real"]);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

/// The copy of the workspace contains the symlink, too.
#[test]
fn test_run_does_not_follow_a_base_folder_that_is_a_symlink_out() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join(NOTES);
    fs::write(&victim, TEXT).unwrap();
    fs::create_dir(place.path().join("sub")).unwrap();
    fs::write(place.path().join("sub").join(NOTES), TEXT).unwrap();
    symlink(outside.path(), place.path().join("out")).unwrap();
    symlink(place.path().join("sub"), place.path().join("self")).unwrap();
    for base in ["out", "self"] {
        place.write_tool(
            "scribble",
            &json!({
                "code": "return safety.fs.writeText('notes.txt', text)",
                "sandboxOverrides": { "fileRead": true, "fileWrite": true, "fsBasePath": format!("$WORKSPACE/{base}") },
            }),
        );
        for arguments in [&["publish", "scribble", "--yes"][..], &["test"], &["test", "tools/scribble.json"]]
        {
            let said = place.fails(arguments, 1);
            assert!(said.contains("leads out of the workspace"), "{arguments:?}: {said}");
        }
    }
    let said = place.ok(&["publish", "scribble", "--yes", "--for-real"]);
    assert!(said.contains("published"), "`self` stays inside the real workspace: {said}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), TEXT);
}

/// Otherwise the rating would treat the grant as part of the workspace.
#[test]
fn command_is_not_shown_a_folder_behind_a_symlink_out_of_the_workspace() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join(NOTES), TEXT).unwrap();
    symlink(outside.path(), place.path().join("rt")).unwrap();
    let manifest = "name: show\ndescription: Lists the files of a folder. Returns their names.\nclassification: read\n\
         input: {type: object, properties: {}}\ntestInput: {}\n\
         handler: {cli: {command: ls, args: [/]}}\n\
         sandboxOverrides: {fileRead: true}\n\
         capability: {execution: {allowedPaths: [$WORKSPACE/rt]}}\n";
    fs::write(place.path().join("tools/show.yaml"), manifest).unwrap();
    let said = place.fails(&["publish", "show", "--yes"], 1);
    assert!(said.contains("leads out of the workspace"), "{said}");
}

const NOTES: &str = "notes.txt";
const TEXT: &str = "worth keeping";
