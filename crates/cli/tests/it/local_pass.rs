//! `toolgate test`: reports grants that a run did not use. `--tighten` removes them and changes nothing else.

use std::{fs, os::unix::fs::symlink, process::Command};

use serde_json::{Value, json};

use crate::place::Place;

fn place_with_a_note() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path().join("data/notes")).unwrap();
    fs::write(place.path().join("data/notes/a.txt"), "a note").unwrap();
    place
}

/// A tool with unusual formatting.
fn write_tool(place: &Place, code: &str, overrides: &Value) {
    let text = format!(
        "{{\n\t\"name\": \"reader\",   \"description\": \"Reads one note, for tests.\",\n\t\"codeType\":\"Javascript\",\n\t\"code\": {},\n\t\"params\": [ ],\n\t\"sandboxOverrides\": {overrides},\n\n\t\"x-note\": {{ \"kept\":   1.50 }}\n}}\n",
        json!(code)
    );
    fs::write(place.path().join(TOOL), text).unwrap();
}

fn text_of(place: &Place) -> String {
    fs::read_to_string(place.path().join(TOOL)).unwrap()
}

/// The text before and after `sandboxOverrides`.
#[track_caller]
fn around_overrides(text: &str) -> (&str, &str) {
    (text.split_once("\"sandboxOverrides\"").unwrap().0, text.split_once("\"x-note\"").unwrap().1)
}

#[test]
fn tighten_removes_unused_grants() {
    let place = place_with_a_note();
    let data = place.path().join("data").display().to_string();
    let overrides = json!({
        "networkMode": "allowlist", "hostsAllow": ["a.example"], "fileRead": true, "fileWrite": true,
        "fsBasePath": data, "addAllowClasses": ["a.B"],
    });
    write_tool(&place, &format!("return safety.fs.readText('{data}/notes/a.txt')"), &overrides);
    let before = text_of(&place);
    let said = place.ok(&["test", TOOL, "--for-real"]);
    for line in [
        "sandboxOverrides.networkMode is `allowlist`, the run used no host\n".to_owned(),
        "sandboxOverrides.fileWrite is `true`, the run used no file\n".to_owned(),
        format!("sandboxOverrides.fsBasePath is `{data}`, the run used {data}/notes\n"),
        "sandboxOverrides.addAllowClasses is `a.B`, the run used no class\n".to_owned(),
    ] {
        assert!(said.contains(&line), "{line}{said}");
    }
    let told = test_report(&place);
    let settings: Vec<&Value> = told["wider"].as_array().unwrap().iter().map(|one| &one["setting"]).collect();
    assert_eq!(settings, ["networkMode", "fileWrite", "fsBasePath", "addAllowClasses"], "{told}");
    assert_eq!(told["wider"][0]["enough"], "blocked", "{told}");
    assert_eq!(told["grant"], json!([]), "{told}");
    assert_eq!(text_of(&place), before, "only --tighten writes");

    let said = place.ok(&["test", TOOL, "--tighten", "--for-real"]);
    assert!(said.contains("tightened"), "{said}");
    let after = text_of(&place);
    assert_eq!(around_overrides(&after), around_overrides(&before));
    let document: Value = serde_json::from_str(&after).unwrap();
    let expect = json!({
        "networkMode": "blocked", "fileRead": true, "fileWrite": false, "fsBasePath": format!("{data}/notes"),
    });
    assert_eq!(document["sandboxOverrides"], expect);

    let said = place.ok(&["test", TOOL, "--for-real"]);
    assert!(said.contains("1 tool passed, 0 failed") && !said.contains("wider"), "{said}");
}

/// The first tool in the JSON output of `test`.
fn test_report(place: &Place) -> Value {
    let output = place.toolgate(&["test", TOOL, "--for-real", "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["tools"][0].clone()
}

/// A helper without a grant is undefined, so the error alone does not explain the failure.
#[test]
fn failed_run_suggests_the_missing_grant() {
    for (code, grant) in [
        (
            "return fetch('https://a.example/').text()",
            "the code calls `fetch`, which needs a grant: `networkMode: allowlist`, with its hosts in `hostsAllow` in `sandboxOverrides`",
        ),
        (
            "return safety.fs.readText('data/notes/a.txt')",
            "the code calls `safety.fs`, which needs a grant: `fileRead: true` in `sandboxOverrides`",
        ),
    ] {
        let place = place_with_a_note();
        write_tool(&place, code, &json!({}));
        let said = place.fails(&["test", TOOL], 1);
        assert!(said.contains(&format!("  grant    {grant}\n")), "{said}");
        let said = place.fails(&["publish", "--yes", "reader"], 1);
        assert!(said.contains(&format!("  grant    {grant}\n")), "{said}");
        let told = test_report(&place);
        assert_eq!((&told["grant"], &told["wider"]), (&json!([grant]), &json!([])), "{told}");
    }
}

#[test]
fn suggested_grant_is_the_missing_one() {
    let place = place_with_a_note();
    let online = json!({ "networkMode": "allowlist", "hostsAllow": ["a.example"] });
    write_tool(&place, "return fetch('https://b.example/').text()", &online);
    let said = place.fails(&["test", TOOL], 1);
    assert!(said.contains("it needs this host in `hostsAllow` of `sandboxOverrides`"), "{said}");
    write_tool(&place, "return fetch('https://a.example/', { method: 'POST', body: '1' }).text()", &online);
    let asks = json!({ "approval": { "askForMethods": ["POST"] } });
    let text = text_of(&place)
        .replace("\t\"x-note\"", &format!("\t\"x-toolgate-capability\": {asks},\n\t\"x-note\""));
    fs::write(place.path().join(TOOL), text).unwrap();
    let said = place.fails(&["test", TOOL], 1);
    assert!(said.contains("it needs a person's approval"), "{said}");
    assert!(!said.contains("hostsAllow"), "the host is granted: {said}");
}

/// The tool never ran, so there is no run report.
#[test]
fn call_refused_before_the_run_has_a_suggestion() {
    let place = place_with_a_note();
    place.write_tool("reader", &json!({
        "params": [{ "name": "url", "description": "Which page", "type": "STRING", "required": true, "testValue": "https://b.example/" }],
        "code": "return fetch(url).text()",
        "sandboxOverrides": { "networkMode": "allowlist", "hostsAllow": ["a.example"] },
        "x-toolgate-touches": { "connect": [".url"] },
    }));
    let said = place.fails(&["test", TOOL], 1);
    assert!(said.contains("check.host_not_allowed"), "{said}");
    assert!(said.contains("  remedy   name a host that this tool may reach\n"), "{said}");
    assert!(said.contains("  grant    a test value names a host that is not granted"), "{said}");
    let told = test_report(&place);
    assert_eq!(told["outcome"]["remedy"], "name a host that this tool may reach", "{told}");
    assert_eq!(told["grant"].as_array().unwrap().len(), 1, "{told}");
}

/// A base with the source but without the destination would make the next run fail, or hide where it wrote.
#[test]
fn copy_and_move_need_the_directories_of_both_paths() {
    let place = place_with_a_note();
    let data = place.path().join("data").canonicalize().unwrap().display().to_string();
    fs::create_dir_all(place.path().join("data/notes/old")).unwrap();
    let overrides = json!({ "fileRead": true, "fileWrite": true, "fsBasePath": data });
    let code = format!("return safety.fs.copy('{data}/notes/a.txt', '{data}/notes/old/a.txt')");
    write_tool(&place, &code, &overrides);
    let said = place.ok(&["test", TOOL, "--for-real"]);
    let line = format!("sandboxOverrides.fsBasePath is `{data}`, the run used {data}/notes\n");
    assert!(said.contains(&line), "{said}");
    let code = format!("return safety.fs.move('{data}/notes/a.txt', '{data}/b.txt')");
    write_tool(&place, &code, &overrides);
    let said = place.ok(&["test", TOOL, "--for-real"]);
    assert!(!said.contains("fsBasePath") && said.contains("sandboxOverrides.fileRead is `true`"), "{said}");
}

#[test]
fn base_of_relative_paths_is_not_narrowed() {
    let place = place_with_a_note();
    write_tool(&place, "return safety.fs.readText('data/notes/a.txt')", &json!({ "fileRead": true }));
    let before = text_of(&place);
    let said = place.ok(&["test", TOOL, "--tighten"]);
    let line =
        "fsBasePath is `$WORKSPACE`, the run used $WORKSPACE/data/notes; narrow it by hand in `capability`";
    assert!(said.contains(line) && !said.contains("tightened"), "{said}");
    assert_eq!(text_of(&place), before);
    place.ok(&["test", TOOL]);
}

/// Listed paths stay granted with any base, so a narrower base would not narrow the grant.
#[test]
fn base_with_listed_paths_is_not_narrowed() {
    let place = place_with_a_note();
    let data = place.path().join("data").canonicalize().unwrap().display().to_string();
    let code = format!("return safety.fs.readText('{data}/notes/a.txt')");
    write_tool(&place, &code, &json!({ "fileRead": true, "fsBasePath": data }));
    let listed = json!({ "execution": { "allowedPaths": [data] } });
    let before = text_of(&place)
        .replace("\t\"x-note\"", &format!("\t\"x-toolgate-capability\": {listed},\n\t\"x-note\""));
    fs::write(place.path().join(TOOL), &before).unwrap();
    let said = place.ok(&["test", TOOL, "--tighten"]);
    let line =
        format!("fsBasePath is `{data}`, the run used {data}/notes; narrow it by hand in `capability`");
    assert!(said.contains(&line) && !said.contains("tightened"), "{said}");
    assert_eq!(text_of(&place), before);
}

/// A base is opened by name at every call. If that is a symlink, the base could later lead anywhere.
#[test]
fn base_is_not_narrowed_to_a_symlinked_directory() {
    let place = place_with_a_note();
    let data = place.path().join("data").canonicalize().unwrap();
    symlink("notes", data.join("current")).unwrap();
    fs::create_dir(data.join("notes/old")).unwrap();
    fs::write(data.join("notes/old/a.txt"), "an old note").unwrap();
    let shown = data.display();
    for path in ["current/a.txt", "current/old/a.txt"] {
        let overrides = json!({ "fileRead": true, "fsBasePath": data });
        write_tool(&place, &format!("return safety.fs.readText('{shown}/{path}')"), &overrides);
        let before = text_of(&place);
        let said = place.ok(&["test", TOOL, "--tighten"]);
        assert!(!said.contains("fsBasePath") && !said.contains("tightened"), "{said}");
        assert_eq!(text_of(&place), before);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("old")).unwrap();
    fs::write(elsewhere.path().join("old/a.txt"), "nobody's business").unwrap();
    fs::remove_file(data.join("current")).unwrap();
    symlink(elsewhere.path(), data.join("current")).unwrap();
    assert!(!place.fails(&["test", TOOL], 1).contains("nobody's business"));
}

/// Each tool would fail its next run if one of its grants counted as unused.
#[test]
fn implicitly_used_grants_are_kept() {
    let both = json!({ "fileRead": true, "fileWrite": true });
    for (code, overrides) in [
        ("return safety.fs.copy('data/notes/a.txt', 'b.txt')", &both),
        (
            "return safety.fs.grep('note', safety.fs.workspace() + '/data/notes/a.txt')",
            &json!({ "fileRead": true }),
        ),
    ] {
        let place = place_with_a_note();
        write_tool(&place, code, overrides);
        let before = text_of(&place);
        let said = place.ok(&["test", TOOL, "--tighten"]);
        assert!(!said.contains("wider"), "{said}");
        assert_eq!(text_of(&place), before);
        place.ok(&["test", TOOL]);
    }
}

/// Publishing all new tools must not undo an earlier `unpublish`.
#[test]
fn unpublished_tool_is_published_again_only_by_name() {
    let place = Place::new();
    for name in ["kept", "gone"] {
        place.write_tool(name, &json!({}));
    }
    place.ok(&["publish"]);
    place.ok(&["unpublish", "gone"]);
    let suggested = |name: &str| {
        format!(
            "suggests   {name}: `humanInTheLoop: {{mode: DISABLED}}`; the document says nothing, and the tool is rated L0\n"
        )
    };
    let left_out = "left out   gone: it was unpublished; to publish it again, name it\n";
    assert_eq!(place.ok(&["publish"]), left_out);
    assert!(
        place.ok(&["list"]).contains("it was unpublished; run `toolgate publish NAME` to publish it again")
    );
    for name in ["kept", "gone"] {
        place.write_tool(name, &json!({ "code": "return `${text}?`" }));
    }
    assert_eq!(
        place.ok(&["publish"]),
        format!("{left_out}{}published  kept (L0)\n", suggested("kept")),
        "an edit changes nothing"
    );
    let published = format!("{}published  gone (L0)\n", suggested("gone"));
    assert_eq!(place.ok(&["publish", "gone"]), published);
    assert_eq!(place.ok(&["publish"]), "", "nothing is left");
}

#[test]
fn flag_without_effect_is_refused() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    for (flag, key) in [
        ("--workspace", "workspace"),
        ("--profiles", "policy.profiles"),
        ("--baseline", "policy.baseline"),
        ("--overrides", "policy.overrides"),
    ] {
        let said = place.fails(&["test", flag, "."], 2);
        assert!(said.contains(&format!("`{flag}` needs paths")) && said.contains(key), "{said}");
    }
    let said = place.fails(&["test", "tools/say.json", "--config", "toolgate.yaml"], 2);
    assert!(said.contains("use either `--config` or paths"), "{said}");
    place.ok(&["test", "--config", "toolgate.yaml"]);
}

/// Without namespaces, the jail is not hardened.
#[test]
fn hardened_flag_works_with_and_without_paths() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    let no_more = "for kind in user net mnt ipc pid; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec \"$@\"";
    for paths in [&[][..], &["tools/say.json"][..]] {
        let test = |more: &[&str]| {
            let output = Command::new("unshare")
                .args(["--user", "--map-root-user", "sh", "-c", no_more, "sh"])
                .arg(env!("CARGO_BIN_EXE_toolgate"))
                .arg("test")
                .args(paths)
                .args(more)
                .current_dir(place.path())
                .env_remove("TOOLGATE_CONFIG")
                .output()
                .unwrap();
            let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            (output.status.code(), said.concat())
        };
        let (code, said) = test(&[]);
        assert_eq!(code, Some(0), "{said}");
        let (code, said) = test(&["--hardened"]);
        assert!(code == Some(1) && said.contains("this host does not enforce"), "{said}");
    }
}

const TOOL: &str = "tools/reader.json";
