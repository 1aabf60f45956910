//! Tests the shipped commands: valid documents, and the first group with the real programs.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use toolgate_gate::{Reason, Runnable};

use crate::{
    catalog::{fits, git, manifest, repository},
    world::{Unjailed, World, call, resolve},
};

/// Those that only read.
const READING: [&str; 15] = [
    "argocd_diff",
    "argocd_get_app",
    "argocd_get_sync_status",
    "echo_message",
    "git_diff",
    "git_diff_branches",
    "git_log",
    "git_show_file",
    "k8s_get_events",
    "k8s_get_logs",
    "k8s_get_pods",
    "list_files",
    "query_logs",
    "read_file",
    "search_code",
];

#[track_caller]
fn shipped(world: &World, name: &str) -> Arc<dyn Runnable> {
    world.handlers(Arc::new(Unjailed)).runnable(world.load(&manifest(name)).unwrap())
}

#[track_caller]
fn check(world: &World, name: &str, arguments: &Value) -> String {
    assert!(fits(&manifest(name), arguments), "{arguments}");
    let report = call(&shipped(world, name), arguments).unwrap();
    report.outcome.unwrap().unwrap().as_str().unwrap().to_owned()
}

#[test]
fn every_shipped_document_is_valid_and_its_test_values_fit() {
    for name in READING {
        let text = manifest(name);
        let (spec, policy) = resolve(&text);
        assert_eq!(spec.name, name);
        assert!(!policy.files.write.value, "{name}");
        let input = spec.governance.test_input.clone().unwrap();
        assert!(fits(&text, &input), "{name}");
    }
}

/// Finds wrong patterns of arguments before an attacker does. The texts that a pattern must accept and reject are
/// next to it in the document, and are checked whenever it is loaded.
#[test]
fn argument_patterns_accept_and_reject_their_examples() {
    let mut seen = BTreeSet::new();
    for name in READING {
        let (spec, _) = resolve(&manifest(name));
        let mut left: Vec<Value> = spec.governance.input.iter().cloned().collect();
        while let Some(part) = left.pop() {
            if let Some(pattern) = part.get("pattern").and_then(Value::as_str) {
                check_rule(name, pattern, &part);
                seen.insert(pattern.to_owned());
            }
            match part {
                Value::Object(members) => left.extend(members.into_iter().map(|(_, value)| value)),
                Value::Array(items) => left.extend(items),
                _ => {}
            }
        }
    }
    assert_eq!(seen.len(), 7, "{seen:?}");
}

#[track_caller]
fn check_rule(name: &str, pattern: &str, schema: &Value) {
    let texts = |keyword: &str| -> Vec<&str> {
        let listed = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
        listed.map(|text| text.as_str().unwrap()).collect()
    };
    let (hits, misses) = (texts("examples"), texts("x-misses"));
    assert!(!hits.is_empty() && !misses.is_empty(), "{name}: {pattern} was not tried");
    let regex = regex::Regex::new(pattern).unwrap();
    assert!(hits.iter().all(|text| regex.is_match(text)), "{name}: {pattern} {hits:?}");
    for text in misses.into_iter().chain(ALWAYS_MISSED) {
        assert!(!regex.is_match(text), "{name}: {pattern} {text:?}");
    }
}

/// No pattern accepts an empty text, several lines, or shell syntax.
const ALWAYS_MISSED: [&str; 6] = ["", "a\nb", "a\0b", "$(id)", "`id`", "a;id\n"];

#[test]
fn echo_prints_its_argument() {
    let world = World::new();
    for message in ["good morning", "a; rm -rf / && $(id) `id` | cat > x", "\\n \\t %s", "'\"'"] {
        assert_eq!(check(&world, "echo_message", &json!({ "message": message })), format!("{message}\n"));
    }
}

#[test]
fn script_may_have_lines_but_no_control_characters() {
    let world = World::new();
    let order = world.order(&manifest("bash"), &json!({ "command": "cd src\n\tls -l\n" }));
    assert_eq!(order.argv, ["bash", "-c", "cd src\n\tls -l\n"]);
    assert!(world.line(&manifest("bash"), &json!({ "command": "a\0b" })).is_err());
    assert!(world.line(&manifest("bash"), &json!({ "command": "\u{1b}[1m" })).is_err());
}

#[test]
fn files_are_listed_read_and_searched() {
    let world = World::new();
    let listed = check(&world, "list_files", &json!({ "folder": "src" }));
    assert!(listed.contains("main.rs") && listed.contains(".env"), "{listed}");
    let read = check(&world, "read_file", &json!({ "path": "docs/readme.md" }));
    assert_eq!(read, "# The gate\nopens for those who are named\n");
    for path in ["Makefile", "my notes.md", ".github/workflows/ci.yml", "Cargo.lock", "日記"] {
        world.write(&format!("workspace/{path}"), "text\n");
        assert_eq!(check(&world, "read_file", &json!({ "path": path })), "text\n", "{path}");
    }
    let input = json!({ "text": "GATE", "folder": ".", "ignoreCase": true, "extensions": ["md"] });
    assert_eq!(
        check(&world, "search_code", &input),
        format!("{}:1:# The gate\n", world.at("docs/readme.md"))
    );
    assert_eq!(check(&world, "search_code", &json!({ "text": "-e nothing", "folder": "src" })), "");
}

/// A search selects lines, and may leave out those that identify a key.
#[test]
fn key_is_not_leaked_by_a_search() {
    let world = World::new();
    let letter = |line: u8, at: u8| {
        let letter = char::from(b'A' + at.wrapping_mul(7).wrapping_add(line * 11) % 26);
        match at % 9 {
            // One in six base64 characters is a digit.
            4 => char::from(b'0' + (at + line) % 10),
            0 | 3 | 6 => letter,
            _ => letter.to_ascii_lowercase(),
        }
    };
    let body: Vec<String> = (0..6).map(|line| (0..70).map(|at| letter(line, at)).collect()).collect();
    let kind = ["OPENSSH", "PRIVATE", "KEY"].join(" ");
    let key = format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", body.join("\n"));
    for path in ["deploy/id_ed25519", "tls/server.key", "plain/notes"] {
        world.write(&format!("workspace/{path}"), &key);
    }
    for folder in ["deploy", "tls", "plain"] {
        world.write(&format!("workspace/{folder}/readme.md"), "a quite open B and E\n");
    }
    // The last one is only identified by its first line, which contains an `E`.
    for (folder, text) in [("deploy", "a"), ("deploy", "q"), ("tls", "B"), ("tls", "E"), ("plain", "E")] {
        let found = check(&world, "search_code", &json!({ "text": text, "folder": folder }));
        assert!(body.iter().any(|line| line.contains(text)), "a search would find it");
        assert!(body.iter().all(|line| !found.contains(&line[20..32])), "{found}");
        assert!(
            found.ends_with("readme.md:1:a quite open B and E\n") && found.lines().count() == 1,
            "{found}"
        );
    }
}

#[test]
fn paths_that_lead_out_are_rejected() {
    let world = World::new();
    std::os::unix::fs::symlink(world.root().join("outside/passwd"), world.at("leads_out.md")).unwrap();
    for path in ["../outside/passwd", "/etc/passwd", "src/.env", "docs/../../outside/passwd"] {
        let refusal = call(&shipped(&world, "read_file"), &json!({ "path": path })).unwrap_err();
        assert!(matches!(refusal.reason, Reason::PathOutsideRoots | Reason::PathBlocked), "{path}");
    }
    assert!(call(&shipped(&world, "read_file"), &json!({ "path": "leads_out.md" })).is_err());
    for folder in ["..", "/etc", "docs/../..", ".toolgate"] {
        assert!(call(&shipped(&world, "list_files"), &json!({ "folder": folder })).is_err(), "{folder}");
        assert!(call(&shipped(&world, "search_code"), &json!({ "text": "x", "folder": folder })).is_err());
    }
}

#[test]
fn listings_and_searches_show_no_blocked_files() {
    let world = World::new();
    for path in ["workspace/.git/config", "workspace/src/secrets/key.md"] {
        world.write(path, "TOKEN=1\n");
    }
    for (name, mut input) in [("list_files", json!({})), ("search_code", json!({ "text": "TOKEN" }))] {
        for folder in [".git", "src/secrets"] {
            input["folder"] = json!(folder);
            let refusal = call(&shipped(&world, name), &input).unwrap_err();
            assert_eq!(refusal.reason, Reason::PathBlocked, "{name} {folder}");
        }
        input["folder"] = json!(".");
        let hidden = world.order(&manifest(name), &input).view.hidden;
        for path in [".git", "src/.env", "src/secrets"] {
            assert!(hidden.contains(&world.at(path).into()), "{name} {path}: {hidden:?}");
        }
    }
}

/// A line break in a file name could forge a line of a listing.
#[test]
fn name_is_one_line_of_a_listing() {
    let world = World::new();
    world.write("workspace/odd/a\n-rw-r--r-- 1 root 9 2026-01-01 00:00 forged", "x");
    world.write("workspace/odd/grün", "x");
    let listed = check(&world, "list_files", &json!({ "folder": "odd" }));
    let entries: Vec<&str> = listed.lines().filter(|line| line.starts_with('-')).collect();
    assert_eq!(entries.len(), 2, "{listed}");
    assert!(entries[0].contains(r"a\n-rw-r--r--"), "{listed}");
    assert!(entries[1].ends_with("grün"), "{listed}");
}

/// Committed content is in `.git`, where no path is blocked.
#[test]
fn diff_shows_no_blocked_files() {
    let world = World::new();
    repository(&world);
    let at = world.at("");
    let blocked =
        [".env", "src/.env.local", "docs/.envs/deep/key.md", "secrets/plan.md", "src/secrets/deep/a.md"];
    for path in blocked.into_iter().chain(["src/env.rs", "docs/secrets.md"]) {
        world.write(&format!("workspace/{path}"), "committed\n");
    }
    git(&at, &["add", "--force", "."]);
    git(&at, &["commit", "--quiet", "-m", "third"]);
    for (what, text) in [("staged", "staged\n"), ("changed", "changed\n")] {
        for path in blocked.into_iter().chain(["src/env.rs", "docs/secrets.md"]) {
            world.write(&format!("workspace/{path}"), text);
        }
        if what == "staged" {
            git(&at, &["add", "--force", "."]);
        }
    }
    for (name, input) in [
        ("git_diff_branches", json!({ "base": "HEAD~1", "head": "HEAD" })),
        ("git_diff_branches", json!({ "base": "HEAD~1", "head": "HEAD", "namesOnly": true })),
        ("git_diff", json!({})),
        ("git_diff", json!({ "staged": true })),
        ("git_diff", json!({ "namesOnly": true })),
    ] {
        let shown = check(&world, name, &input);
        for path in blocked {
            assert!(!shown.contains(path), "{name} {input} {path}: {shown}");
        }
        assert!(shown.contains("src/env.rs") && shown.contains("docs/secrets.md"), "{name} {input}: {shown}");
    }
    for path in blocked.into_iter().chain(["secrets", "src/secrets"]) {
        assert_eq!(check(&world, "git_diff", &json!({ "path": path })), "", "{path}");
    }
    let named = check(&world, "git_diff", &json!({ "path": "src", "namesOnly": true }));
    assert_eq!(named, "1\t1\tsrc/env.rs\n");
}

#[test]
fn history_is_shown() {
    let world = World::new();
    repository(&world);
    let log = check(&world, "git_log", &json!({ "count": 5 }));
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].ends_with("\t2026-01-02T03:04:05Z\tAda\tsecond"), "{log}");
    assert_eq!(lines.len(), 2);
    assert_eq!(check(&world, "git_log", &json!({ "count": 5, "path": "src" })).lines().count(), 1);
    let of_branch =
        check(&world, "git_log", &json!({ "count": 5, "revision": "feature/x", "path": "docs/readme.md" }));
    assert_eq!(of_branch.lines().count(), 1);
    let old = check(&world, "git_show_file", &json!({ "revision": "HEAD~1", "path": "docs/readme.md" }));
    assert_eq!(old, "# The gate\nopens for those who are named\n");
    let between = check(&world, "git_diff_branches", &json!({ "base": "feature/x", "head": "main" }));
    assert!(between.contains("-opens for those who are named\n+is closed\n"), "{between}");
    assert_eq!(check(&world, "git_diff", &json!({})), "");
    world.write("workspace/src/main.rs", "fn main() { run() }\n");
    let changed = check(&world, "git_diff", &json!({ "context": 0 }));
    assert!(changed.contains("+fn main() { run() }"), "{changed}");
    assert_eq!(check(&world, "git_diff", &json!({ "namesOnly": true })), "1\t1\tsrc/main.rs\n");
    assert_eq!(check(&world, "git_diff", &json!({ "staged": true })), "");
    let failure = call(&shipped(&world, "git_log"), &json!({ "count": 1, "revision": "none" })).unwrap();
    let message = failure.outcome.unwrap_err().message;
    assert!(message.starts_with("`git` ended with exit code 128: fatal: bad revision 'none'"), "{message}");
}
