//! Secrets read in slices through shipped tools. The caller's choice of a slice must not hide a secret from the detector.

use std::{fs, path::Path};

use serde_json::{Value, json};
use toolgate_gate::RunReport;

use crate::{
    gateway::{Gateway, NoSecrets, document},
    pool::returned,
};

/// The body of a fake key. Its lines have equal beginnings and different ends.
fn body() -> Vec<String> {
    (0..8_u8)
        .map(|line| {
            let letters =
                (0..70_u8).map(|at| char::from(b'A' + at.wrapping_mul(7).wrapping_add(line * 11) % 26));
            letters
                .enumerate()
                .map(|(at, letter)| if at % 3 == 0 { letter } else { letter.to_ascii_lowercase() })
                .collect()
        })
        .collect()
}

fn with_a_key() -> String {
    let kind = ["OPENSSH", "PRIVATE", "KEY"].join(" ");
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", body().join("\n"))
}

fn gateway() -> Gateway {
    let gateway = Gateway::new();
    fs::create_dir_all(gateway.workspace().join("deploy")).unwrap();
    fs::write(gateway.workspace().join("deploy/id_ed25519"), with_a_key()).unwrap();
    gateway
}

fn shipped(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/tools").join(file);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[track_caller]
fn shows_none_of_it(report: &RunReport) -> String {
    let shown = returned(report).to_string();
    for line in body() {
        assert!(!shown.contains(&line[20..32]), "{shown}");
    }
    shown
}

#[test]
fn key_is_not_leaked_in_slices() {
    let gateway = gateway();
    let path = "deploy/id_ed25519";
    for (file, arguments) in [
        ("agent/read.json", json!({ "path": path, "first": 2, "limit": 5 })),
        ("agent/read.json", json!({ "path": path, "first": 5, "limit": 1 })),
        ("files/read_text_file.json", json!({ "path": path, "max_characters": 300 })),
        ("files/read_lines.json", json!({ "path": path, "first": 3, "count": 3 })),
        ("files/read_lines.json", json!({ "path": path, "first": -4, "count": 2 })),
        ("files/find_in_files.json", json!({ "query": "a" })),
        ("files/find_in_files.json", json!({ "query": "^[A-Za-z]{20}", "regex": true, "files": "id_*" })),
    ] {
        let tool = gateway.tool(&shipped(file));
        let report = gateway.run(&tool, &arguments, &NoSecrets);
        shows_none_of_it(&report);
    }
    let tool = gateway.tool(&shipped("agent/read.json"));
    let report = gateway.run(&tool, &json!({ "path": path }), &NoSecrets);
    let shown = shows_none_of_it(&report);
    assert!(shown.contains("[REDACTED:private-key:") && shown.contains("\"total\":10"), "{shown}");
    assert_eq!(report.withheld.len(), 1, "the journal is told");
}

/// A token without its last character matches no rule, so a token that would be cut is omitted.
#[test]
fn token_cut_by_a_limit_is_not_leaked() {
    let gateway = Gateway::new();
    let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
    for file in ["agent/web_fetch.json", "web/fetch_page_text.json"] {
        let shipped = shipped(file);
        let code = shipped["code"].as_str().unwrap();
        for (page, most, expect) in [
            (format!("see {token} there"), 43, "see ".to_owned()),
            (format!("see {token} there"), 12, "see ".to_owned()),
            (format!("see {token} there"), 44, format!("see {token}")),
            (format!("see {token} there"), 46, format!("see {token} ")),
            (format!("see {token} there"), 9_999, format!("see {token} there")),
            (format!("{{\"a\":1,\"b\":\"{token}\"}}"), 30, "{\"a\":1,\"b\":\"".to_owned()),
            ("中文中文中文".to_owned(), 5, "中文中文中".to_owned()),
        ] {
            // Replaces the server's answer by this page.
            let page = Value::from(page).to_string();
            let stub = format!(
                "const [url, max_characters] = ['https://page.test/', {most}];\n\
                 const [method, body, content_type] = [];\n\
                 const fetch = () => ({{ url, ok: true, status: 200, contentType: 'text/plain', text: () => {page} }});\n"
            );
            let report = gateway.body(&(stub + code));
            assert_eq!(returned(&report)["text"], expect, "{file} {most}");
        }
    }
}

/// A tool that reads, edits and writes would write redaction markers into the file.
#[test]
fn writing_tool_reads_unredacted_text() {
    let gateway = gateway();
    let mut exact = document(
        "const text = safety.fs.readText('deploy/id_ed25519');\n\
         safety.fs.writeText('copy', safety.fs.slice('deploy/id_ed25519', 0, 10).join('\\n') + '\\n');\n\
         return text.length",
    );
    exact["sandboxOverrides"] = json!({ "fileRead": true, "fileWrite": true });
    let report = gateway.run(&gateway.tool(&exact), &json!({}), &NoSecrets);
    assert_eq!(*returned(&report), json!(with_a_key().len()));
    assert_eq!(fs::read_to_string(gateway.workspace().join("copy")).unwrap(), with_a_key());
}

#[test]
fn tool_with_secret_results_reads_them() {
    let gateway = gateway();
    let mut exact = document("return safety.fs.readText('deploy/id_ed25519')");
    exact["sandboxOverrides"] = json!({ "fileRead": true });
    exact["x-toolgate-capability"] = json!({ "data": { "sanitizeOutput": false } });
    let report = gateway.run(&gateway.tool(&exact), &json!({}), &NoSecrets);
    assert_eq!(*returned(&report), json!(with_a_key()));
}
