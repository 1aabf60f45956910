//! Every shipped tool passes its test run in the sandbox, on a copy of the fixtures.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::Ordering,
};

use serde_json::{Value, json};
use toolgate_gate::{PassStore as _, StoredPass};
use toolgate_policy::PassOutcome;
use toolgate_spec::model::ToolId;
use toolgate_store::{ApprovalLimits, StateDb};

use crate::{
    place::{Place, Serving, token, until},
    stand_ins,
};

#[test]
fn every_shipped_tool_passes() {
    let needs_more = needs_more();
    let others = |name: &str| !WITH_STAND_INS.contains(&name) && !needs_more.iter().any(|one| one == name);
    let files = files(others);
    assert!(files.len() >= 40);
    let (passed, said) = test(&files);
    assert!(passed && said.contains(&format!("{} tools passed, 0 failed", files.len())), "{said}");
}

/// Tools that need internet hosts or rare programs run against stand-ins: a private network with a local server, and
/// scripts instead of the programs.
#[test]
fn online_tools_pass_with_stand_ins() {
    if let Some(world) = env::var_os("TOOLGATE_TEST_WORLD") {
        return stand_ins::inside(Path::new(&world), |world| {
            let files = files(|name| WITH_STAND_INS.contains(&name));
            assert_eq!(files.len(), WITH_STAND_INS.len());
            let (passed, said) = test_with(&files, world);
            assert!(passed && said.contains(&format!("{} tools passed, 0 failed", files.len())), "{said}");
        });
    }
    stand_ins::enter("catalog::online_tools_pass_with_stand_ins");
}

/// Web tools are served without a test run.
#[test]
fn gateway_contacts_no_other_host_when_it_starts() {
    if let Some(world) = env::var_os("TOOLGATE_TEST_WORLD") {
        let seen = stand_ins::observed(Path::new(&world), |environment, requests| {
            let mut place = Place::new();
            for (name, value) in environment {
                place.set(name, value);
            }
            place.configure("catalog:\n  preset: everything\n");
            let own = token(&place, &[]);
            for _ in 0..2 {
                let serving = Serving::start(&place);
                until("the web tools are live", || {
                    let live = serving.names(&own);
                    ["web_fetch", "wikipedia_summary"].iter().all(|name| live.iter().any(|one| one == name))
                });
                serving.stop();
            }
            place.ok(&["list"]);
            assert_eq!(requests.load(Ordering::SeqCst), 0, "connections and DNS queries");
            // A call reaches the host.
            place.ok(&["call", "web_fetch", "url=https://docs.github.com/"]);
            assert!(requests.load(Ordering::SeqCst) > 0);
        });
        assert_eq!(seen, BTreeSet::from(["docs.github.com".to_owned()]));
        return;
    }
    stand_ins::enter("catalog::gateway_contacts_no_other_host_when_it_starts");
}

/// A host that was down at the first start must not disable a tool forever. `unpublish` does.
#[test]
fn failed_shipped_tool_is_retested_at_start_but_an_unpublished_one_is_not() {
    const NAME: &str = "gcd_lcm";
    let place = Place::new();
    place.configure(&format!("catalog:\n  include:\n    names: [{NAME}, slugify]\n"));
    let own = token(&place, &[]);
    let is_live = |serving: &Serving| serving.names(&own).contains(&NAME.to_owned());
    let serving = Serving::start(&place);
    assert!(is_live(&serving));
    serving.stop();
    fail(&place, NAME);
    let serving = Serving::start(&place);
    until("it is live again", || is_live(&serving));
    serving.stop();
    place.ok(&["unpublish", NAME]);
    fail(&place, NAME);
    fail(&place, "slugify");
    let serving = Serving::start(&place);
    until("the other one has been tried", || serving.names(&own).contains(&"slugify".to_owned()));
    assert!(!is_live(&serving), "nobody has published it again");
    serving.stop();
}

/// Test runs must not change the user's files, and shipped tools must not fail because the workspace lacks their fixtures.
#[test]
fn test_runs_of_shipped_tools_do_not_touch_the_workspace() {
    let place = Place::new();
    place.configure("catalog:\n  preset: files\n");
    fs::create_dir_all(place.path().join("out/archive")).unwrap();
    for file in ["out/report.md", "out/archive/old-letter.txt"] {
        fs::write(place.path().join(file), "our own").unwrap();
    }
    let before = (files_below(&place.path().join("out")), states(&place));
    assert!(before.1.iter().all(|(_, state)| state == "ACTIVE"), "{:?}", before.1);
    place.ok(&["test"]);
    assert_eq!((files_below(&place.path().join("out")), states(&place)), before);
    // By name, and each tool on fresh files.
    place.ok(&["publish", "--yes", "delete_file", "write_text_file", "move_file", "delete_file"]);
    assert_eq!((files_below(&place.path().join("out")), states(&place)), before);
}

fn states(place: &Place) -> Vec<(String, String)> {
    let listed: Value = serde_json::from_str(&place.ok(&["list", "--format", "json"])).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shipped = listed["tools"].as_array().unwrap().iter().filter(|tool| tool["origin"] == "shipped");
    shipped.map(|tool| (text(&tool["name"]), text(&tool["state"]))).collect()
}

fn files_below(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push((path.clone(), fs::read_to_string(path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Stores a failed test run for the current document and policy.
fn fail(place: &Place, name: &str) {
    let limits = ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 };
    let state = StateDb::open(&place.path().join(".toolgate/state.db"), limits).unwrap();
    let failed = |latest: Option<StoredPass>| {
        let mut pass = latest.unwrap();
        pass.record.outcome = PassOutcome::Failed { error: "execute.tool_failed: no such host".to_owned() };
        Ok(StoredPass { is_published: false, ..pass })
    };
    state.revise(ToolId::of_name(name).as_str(), &failed).unwrap();
}

#[test]
fn needs_more_lists_every_tool_that_cannot_pass_alone() {
    let listed = needs_more();
    assert_eq!(listed, ["bash"], "whoever adds to the list says here which test shows it");
    for name in listed {
        let file = files(|one| one == name);
        assert_eq!(file.len(), 1, "`{name}` is no shipped tool");
        let (passed, said) = test(&file);
        assert!(!passed, "`{name}` passes here; take it off the list\n{said}");
    }
}

/// Tools that pass only if a host or a program is available.
const WITH_STAND_INS: [&str; 14] = [
    "argocd_diff",
    "argocd_get_app",
    "argocd_get_sync_status",
    "fetch_page_text",
    "github_repository",
    "hacker_news_top",
    "k8s_get_events",
    "k8s_get_logs",
    "k8s_get_pods",
    "package_version",
    "query_logs",
    "send_message",
    "web_fetch",
    "wikipedia_summary",
];

fn catalog() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog")
}

fn needs_more() -> Vec<String> {
    let text = fs::read_to_string(catalog().join("needs-more.txt")).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.trim().to_owned()).collect()
}

/// The documents of the wanted tools.
fn files(is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folders = fs::read_dir(catalog().join("tools")).unwrap().map(|folder| folder.unwrap().path());
    let mut files = Vec::new();
    for folder in folders.chain([catalog().join("commands")]) {
        let documents = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files.extend(documents.filter(|file| is_wanted(&file.file_stem().unwrap().to_string_lossy())));
    }
    files.sort();
    files
}

/// Whether all tools pass on a copy of the fixtures, and the output.
fn test(files: &[PathBuf]) -> (bool, String) {
    test_with(files, &[])
}

fn test_with(files: &[PathBuf], environment: &[(&str, String)]) -> (bool, String) {
    let workspace = tempfile::tempdir().unwrap();
    copy(&catalog().join("fixtures"), workspace.path());
    let output = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .arg("test")
        .args(files)
        // The hosts are stand-ins and the workspace is already a copy.
        .args(["--for-real", "--workspace"])
        .arg(workspace.path())
        .envs(environment.iter().map(|(name, value)| (*name, value.as_str())))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), said.concat())
}

/// All tools give the same answer.
#[test]
fn no_shipped_tool_shows_a_blocked_file() {
    let place = Place::new();
    place.configure("catalog:\n  preset: everything\napprovals:\n  ask_from: never\n");
    let own = token(&place, &[]);
    let serving = Serving::start(&place);
    let said = |tool: &str, arguments: &Value| serving.call(&own, tool, arguments).to_string();
    until("the tools are live", || serving.names(&own).contains(&"read_file".to_owned()));
    for file in [".env", "app/.env.local", "secrets/key.txt", ".git/config"] {
        let path = place.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "hidden=words").unwrap();
        for tool in ["read_text_file", "read_lines", "file_info", "read", "read_file"] {
            let said = said(tool, &json!({ "path": file }));
            assert!(!said.contains("hidden=words"), "{tool} {file}: {said}");
            let is_refused = ["path_blocked", "blocked", "bind.", "\"exists\":false"];
            assert!(is_refused.iter().any(|word| said.contains(word)), "{tool} {file}: {said}");
        }
    }
    for (tool, arguments) in [
        ("find_in_files", json!({ "folder": ".", "query": "hidden" })),
        ("search_code", json!({ "folder": ".", "text": "hidden" })),
        ("list_folder", json!({ "path": "secrets" })),
        ("list_folder", json!({ "path": ".git" })),
        ("list_files", json!({ "folder": "secrets" })),
        ("list", json!({ "path": "secrets" })),
        ("find_files", json!({ "folder": ".", "name": "key*" })),
    ] {
        let said = said(tool, &arguments);
        assert!(!said.contains("hidden=words") && !said.contains("key.txt"), "{tool}: {said}");
    }
    serving.stop();
}

#[test]
fn shipped_name_is_reserved() {
    let place = Place::new();
    place.write_tool("slugify", &json!({}));
    let said = place.fails(&["list"], 1);
    assert!(said.contains("is the name of a shipped tool, and this is a different tool"), "{said}");
    place.fails(&["call", "slugify", "text=hi"], 1);
    let said = place.fails(&["check", "tools"], 1);
    assert!(said.contains("RESERVED_NAME") && said.contains("`catalog.include.names`"), "{said}");
}

#[test]
fn run_notes_that_a_reserved_name_cannot_be_published() {
    let place = Place::new();
    place.write_tool("slugify", &json!({}));
    place.write_tool("mine", &json!({}));
    let errors = |file: &str| {
        let output = place.toolgate(&["run", file]);
        assert!(output.status.success(), "{file}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = errors("tools/slugify.json");
    assert!(said.contains("this tool cannot be published: "), "{said}");
    assert!(
        said.contains("is the name of a shipped tool") && said.contains("`catalog.include.names`"),
        "{said}"
    );
    assert!(!errors("tools/mine.json").contains("cannot be published"));
}

/// Models and people choose tools by their visible names.
#[test]
fn lookalikes_of_shipped_names_are_reserved() {
    for alike in [
        "Slugify",
        "slugify ",
        "slug\u{456}fy",
        "\u{ff53}lugify",
        "sl\u{fa}gify",
        "\u{1d4fc}lugify",
        "s1ugify",
        "sIugify",
    ] {
        let place = Place::new();
        place.write_tool("mine", &json!({ "name": alike }));
        let said = place.fails(&["publish", "--yes", alike], 1);
        assert!(said.contains("can be mistaken for the shipped tool `slugify`"), "{alike:?}: {said}");
    }
}

#[test]
fn name_with_invisible_characters_is_rejected() {
    for unseen in ["slugify\u{200b}", "my\u{2060}own", "own\u{202e}ym", "my\u{1}own", "\u{3164}"] {
        let place = Place::new();
        place.write_tool("mine", &json!({ "name": unseen }));
        let said = place.fails(&["list"], 1);
        assert!(said.contains("its name contains an invisible character, U+"), "{unseen:?}: {said}");
    }
    let place = Place::new();
    place.write_tool("mine", &json!({ "name": "Mine, with Spaces" }));
    place.ok(&["publish", "--yes", "Mine, with Spaces"]);
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_name().unwrap();
        let target = to.join(if name == "dot-git" { ".git".as_ref() } else { name });
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
