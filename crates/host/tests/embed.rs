//! Runs the example programs that embed the gateway, and compares them with the documents.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails loudly")]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn readme_example_is_the_program_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tools")).unwrap();
    let shout = format!("{REPOSITORY}/examples/embed/shout.json");
    fs::copy(shout, folder.path().join("tools/shout.json")).unwrap();
    let output = Command::new(example("embed")).current_dir(folder.path()).output().unwrap();
    assert_eq!(printed_lines(&output), ["\"TO BE OR NOT TO BE\""]);

    let source = read("examples/embed/main.rs");
    let program = &source[source.find("use toolgate::").unwrap()..];
    assert!(rust_blocks(&read("README.md")).iter().any(|block| block == program.trim_end()), "{program}");
}

#[test]
fn examples_need_no_other_crate_of_ours() {
    for file in ["examples/embed/main.rs", "examples/embed/guide.rs"] {
        assert!(!read(file).contains("toolgate_"), "{file}");
    }
}

#[test]
fn guide_shows_only_code_that_runs() {
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let guide = lines(&read("examples/embed/guide.rs"));
    let blocks = rust_blocks(&read("docs/embedding.md"));
    assert!(blocks.len() > 4);
    for block in blocks {
        let block = lines(&block);
        assert!(guide.windows(block.len()).any(|window| window == block), "{block:#?}");
    }
}

#[test]
fn guide_serves_mcp_over_stdio() {
    let state = tempfile::tempdir().unwrap();
    let mut serving = Command::new(example("guide"))
        .arg(state.path())
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let client = json!({ "name": "test", "version": "1" });
    let initialize = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let call = json!({ "name": "count_words", "arguments": { "text": "to be or not" } });
    let mut stdin = serving.stdin.take().unwrap();
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call }),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let lines = printed_lines(&serving.wait_with_output().unwrap());
    let answers: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |id: u8| answers.iter().find(|answer| answer["id"] == id).unwrap();
    let listed = answer(2)["result"]["tools"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["name"], "count_words");
    assert_eq!(answer(3)["result"]["structuredContent"], json!({ "words": 4 }));
    let entries = entries(&state.path().join("journal"));
    assert!(entries.iter().any(|entry| entry["kind"] == "gateway.stopped"), "{entries:?}");
}

#[test]
fn guide_accepts_the_tokens_of_its_issuer_only() {
    let secret = "a secret of at least thirty-two bytes";
    let claims = |audience: &str| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        json!({ "iss": "https://login.example/", "aud": audience, "sub": "ann", "iat": now, "exp": now + 600 })
    };
    let called = |audience: &str| {
        let key = EncodingKey::from_secret(secret.as_bytes());
        let token = jsonwebtoken::encode(&Header::default(), &claims(audience), &key).unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut guide = Command::new(example("guide"));
        printed_lines(
            &guide.arg(state.path()).env("LOGIN_SECRET", secret).env("TOKEN", token).output().unwrap(),
        )
    };
    let right = called("my-tools").pop().unwrap();
    assert!(right.starts_with("called by jwt:login.example-") && right.ends_with(":ann"), "{right}");
    let wrong = called("others").pop().unwrap();
    assert!(wrong.starts_with("not authenticated: "), "{wrong}");
}

#[test]
fn guide_calls_tools_in_code_and_its_policies_refuse_calls() {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new(example("guide")).arg(state.path().join("state")).output().unwrap();
    let lines = printed_lines(&output);
    let unknown = |tool: &str| format!("refused: admit.unknown_tool: there is no tool `{tool}`");
    assert_eq!(lines[0], "released: \"TO BE OR NOT TO BE\"");
    assert_eq!(
        lines[1],
        "refused: decide.policy_forbids: a policy forbids this call: texts have fewer than 100 bytes here"
    );
    assert_eq!(lines[2], unknown("first_pages"), "the writer has no such tool");
    assert_eq!(lines[3], r#"released: ["one","two"]"#, "read by the parser in code");
    assert_eq!(lines[4], r#"released: {"words":6}"#);
    assert!(lines[5].starts_with("refused: bind.input_shape: "), "{}", lines[5]);
    assert_eq!(lines[6], unknown("shout"), "no policy names the stranger");
    assert_eq!(lines[7], "in time: true");
    let listed: Value = serde_json::from_str(&lines[8]).unwrap();
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first_pages", "count_words"]);
    assert_eq!(
        listed["tools"][1]["input_schema"]["properties"]["text"],
        json!({ "type": "string", "description": "The text to count." })
    );
    assert_eq!(lines[9], "call: count_words");

    let journal = state.path().join("state/journal");
    let verified = toolgate_audit::verify(&journal, None, None);
    assert!(verified.is_clean(), "{:?}", verified.findings);
    let entries = entries(&journal);
    let mut published: Vec<&str> = entries
        .iter()
        .filter(|entry| entry["kind"] == "tool.published" && entry["by"] == "library")
        .map(|entry| entry["tool"]["name"].as_str().unwrap())
        .collect();
    published.sort_unstable();
    assert_eq!(published, ["count_words", "first_pages", "shout"]);
    let own = entries.iter().find(|entry| {
        entry["kind"] == "call.closed"
            && entry["tool"]["name"] == "count_words"
            && entry["purpose"] != "local-pass"
    });
    let own = own.unwrap();
    assert_eq!(own["run"]["layers"], json!(["none"]), "{own}");
    assert_eq!(own["tool"]["risk"], "L3", "{own}");
}

/// A pass covers the document. It is valid at the next start, but not for a command line in code.
#[test]
fn passed_tool_is_not_tested_again_unless_it_has_code() {
    let state = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        printed_lines(&Command::new(example("guide")).arg(state.path()).output().unwrap());
    }
    let mut tried: Vec<String> = entries(&state.path().join("journal"))
        .into_iter()
        .filter(|entry| entry["kind"] == "call.closed" && entry["purpose"] == "local-pass")
        .map(|entry| entry["tool"]["name"].as_str().unwrap().to_owned())
        .collect();
    tried.sort();
    assert_eq!(tried, ["count_words", "count_words", "first_pages", "first_pages", "shout"]);
}

/// Fails to compile if a type is not exported.
#[test]
fn every_type_of_the_builder_is_exported() {
    fn named<T>() {}
    named::<(
        toolgate::Approvals,
        toolgate::Audit,
        toolgate::Auth,
        toolgate::LimitSettings,
        toolgate::ServerSettings,
        toolgate::WorkerSettings,
    )>();
    named::<(toolgate::AskFrom, toolgate::AuditSync, toolgate::OnAuditFailure, toolgate::WorkerIsolation)>();
    named::<(
        toolgate::RequiredJail,
        toolgate::Webhook,
        toolgate::AnonymousAccess,
        toolgate::LocalCaller,
        toolgate::AskFrom,
    )>();
    named::<(
        toolgate::Config,
        toolgate::ConfigError,
        toolgate::OpenError,
        toolgate::Otlp,
        toolgate::JwtIssuer,
        toolgate::IssuerAlgorithm,
    )>();
    named::<(std::sync::Arc<dyn toolgate::Observer>, toolgate::Finished<'_>, toolgate::CallRecord)>();
    named::<(
        Box<dyn toolgate::ToolPolicy>,
        toolgate::Ruling,
        toolgate::PerCaller,
        toolgate::Arguments,
        toolgate::BadArguments,
    )>();
    named::<(
        toolgate::Outcome,
        toolgate::ReleasedCall,
        toolgate::RefusedCall,
        toolgate::FailedCall,
        toolgate::PendingCall,
        toolgate::BrokenCall,
    )>();
    named::<(
        toolgate::Reason,
        toolgate::Trial,
        toolgate::ToolList,
        toolgate::ProjectError,
        toolgate::Candidate,
        toolgate::TestRunError,
    )>();
}

fn entries(journal: &Path) -> Vec<Value> {
    let records = toolgate_audit::read(journal, toolgate_audit::TimeRange::default()).unwrap();
    records.map(|record| record.unwrap().entry).collect()
}

fn read(file: &str) -> String {
    fs::read_to_string(format!("{REPOSITORY}/{file}")).unwrap()
}

fn rust_blocks(page: &str) -> Vec<String> {
    let blocks = page.split("```rust\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().trim_end().to_owned()).collect()
}

/// The lines that a program printed. Fails if the program failed.
#[track_caller]
fn printed_lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(str::to_owned).collect()
}

/// Examples are built next to the tests.
fn example(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples").join(name)
}
