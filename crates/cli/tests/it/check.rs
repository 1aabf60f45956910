//! `check`: findings, exit codes, filters and tool detection.

use crate::bench::{Bench, snapshot, tool, tool_with};

#[test]
fn valid_tool_has_no_findings() {
    let run = Bench::with("a.json", tool("add")).run(&["check", "a.json"]).expect(0);
    assert_eq!(run.out, "1 tool in 1 file: nothing found\n");
    assert_eq!(run.err, "");
}

#[test]
fn finding_shows_location_excerpt_and_remedy() {
    let bench = Bench::with("bad.json", BAD);
    let run = bench.run(&["check", "bad.json"]).expect(1);
    snapshot("check_text.txt", &run.out);
}

#[test]
fn carets_end_where_the_value_ends() {
    let yaml = "name: a\ndescription: Says something. Returns the text.\nparams:\n  - name: text\n    type: STRINGX   # a comment\ncodeType: Javascript\ncode: return text\nsandboxOverrides:\n  networkMode: allowlist\n  hostsAllow: [ \"http://x\"  , b.example.com ]\n  hostsBlock: ['*']\n";
    let run = Bench::with("bad.yaml", yaml).run(&["check", "bad.yaml"]).expect(1);
    for (line, carets) in [
        ("    type: STRINGX   # a comment", "          ^^^^^^^"),
        ("  hostsAllow: [ \"http://x\"  , b.example.com ]", "                ^^^^^^^^^^"),
        ("  hostsBlock: ['*']", "  ^^^^^^^^^^"),
    ] {
        let shown = run.out.lines().zip(run.out.lines().skip(1));
        let below: Vec<&str> = shown
            .filter(|(above, _)| above.ends_with(line))
            .filter_map(|(_, below)| below.split_once("| ").map(|(_, carets)| carets))
            .collect();
        assert!(below.contains(&carets), "{line}: {below:?}\n{}", run.out);
    }
}

#[test]
fn colours_follow_the_flag() {
    let bench = Bench::with("bad.json", BAD);
    assert!(!bench.run(&["check", "bad.json"]).expect(1).out.contains('\u{1b}'));
    assert!(bench.run(&["check", "--color", "always", "bad.json"]).expect(1).out.contains("\u{1b}["));
    assert!(!bench.run(&["check", "--color", "never", "bad.json"]).expect(1).out.contains('\u{1b}'));
}

#[test]
fn document_cannot_forge_terminal_output() {
    let forged = tool("x").replace(
        "\"name\": \"x\"",
        "\"name\": \"x\\u001b[2J\\u202e\u{202e}\u{200b}\", \"sandboxOverrides\": 3",
    );
    let run = Bench::with("bad.json", forged).run(&["check", "--color", "always", "bad.json"]).expect(1);
    let plain = run.out.replace("\u{1b}[", "");
    assert!(!plain.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{plain}");
    assert!(!run.out.contains("\u{1b}[2J"));
    assert!(run.out.contains("\\u{202e}"));
}

#[test]
fn secret_is_reported_but_not_shown() {
    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let fields = format!(r#""staticVariables": [{{"token": "{SECRET}"}}], "draft": 7"#);
    let bench = Bench::with("a.json", tool_with("add", &fields));
    for format in ["text", "json", "sarif", "github"] {
        let run = bench.run(&["check", "--format", format, "a.json"]).expect(1);
        assert!(run.out.contains("LINT_SECRET_TEXT") && !run.out.contains(SECRET), "{}", run.out);
    }
    let run = bench.run(&["check", "--allow", "LINT_SECRET_TEXT", "a.json"]).expect(1);
    assert!(run.out.contains("draft") && !run.out.contains(&SECRET[5..20]), "{}", run.out);
    let run = bench.run(&["resolve", "a.json"]).expect(1);
    assert!(run.err.contains("draft") && !run.err.contains(&SECRET[5..20]), "{}", run.err);
}

#[test]
fn long_line_is_cropped_around_the_finding() {
    let long = tool("x").replace("return a + b;", &"a".repeat(100_000)).replace('\n', "");
    let long = long.replace("\"draft\": true", "\"draft\": 7");
    let run = Bench::with("long.json", long).run(&["check", "long.json"]).expect(1);
    assert!(run.out.lines().all(|line| line.chars().count() < 250), "{}", run.out);
    assert!(run.out.contains('…'));
}

#[test]
fn warnings_pass_unless_denied() {
    let bench = Bench::with("a.json", tool_with("add", MISMATCH));
    let run = bench.run(&["check", "a.json"]).expect(0);
    assert!(run.out.contains("warning[LINT_SAFETY_MISMATCH]"), "{}", run.out);
    bench.run(&["check", "--deny-warnings", "a.json"]).expect(1);
    bench.run(&["check", "--deny-warnings", "--allow", "lint_safety_mismatch", "a.json"]).expect(0);
    bench.run(&["check", "--deny-warnings", "--only", "LINT_SAFETY_MISMATCH", "a.json"]).expect(1);
    bench.run(&["check", "--deny-warnings", "--only", "LINT_SECRET_TEXT", "a.json"]).expect(0);
}

#[test]
fn errors_cannot_be_allowed() {
    let bench = Bench::with("bad.json", BAD);
    let run = bench.run(&["check", "--allow", "SPEC_PARSE", "bad.json"]).expect(2);
    assert!(run.err.contains("`SPEC_PARSE` is an error"), "{}", run.err);
    let run = bench.run(&["check", "--allow", "LINT_SECRET", "bad.json"]).expect(2);
    assert!(run.err.contains("did you mean `LINT_SECRET_TEXT`?"), "{}", run.err);
    bench.run(&["check", "--only", "LINT_SECRET_TEXT", "bad.json"]).expect(1);
}

#[test]
fn unreadable_path_decides_the_exit_code() {
    let bench = Bench::with("bad.json", BAD);
    let run = bench.run(&["check", "bad.json", "nowhere.json"]).expect(2);
    assert!(run.out.contains("error[SPEC_PARSE]"), "{}", run.out);
    assert!(run.err.contains("nowhere.json"), "{}", run.err);
}

#[test]
fn directory_without_tools_fails() {
    let bench = Bench::with("tools/package.json", r#"{"name": "x", "version": "1.0.0"}"#);
    let run = bench.run(&["check", "tools"]).expect(2);
    assert!(run.err.contains("no tool document found"), "{}", run.err);
}

#[test]
fn files_without_a_tool_are_skipped_unless_named() {
    let bench = Bench::with("t/add.json", tool("add"));
    bench.write("t/package.json", r#"{"name": "x", "version": "1.0.0"}"#);
    bench.write("t/list.json", "[1, 2]");
    bench.write("t/compose.yaml", "services:\n  web:\n    image: nginx\n");
    bench.write("t/notes.txt", "not looked at");
    let run = bench.run(&["check", "t"]).expect(0);
    assert_eq!(run.out, "1 tool in 1 file: nothing found\n");
    bench.run(&["check", "t/package.json"]).expect(1);
    bench.run(&["check", "t/list.json"]).expect(1);
}

#[test]
fn broken_tool_documents_in_a_directory_are_reported() {
    for (name, content) in [
        ("cut.json", "{\"name\": \"x\", \"descr"),
        ("nameless.json", r#"{"code": "return 1;", "codeType": "Javascript"}"#),
        ("list.json", r#"[{"name": "x", "code": "return 1;"}]"#),
        ("empty.json", ""),
    ] {
        let bench = Bench::with(&format!("t/{name}"), content);
        let run = bench.run(&["check", "t"]).expect(1);
        assert!(run.out.contains("error[SPEC_PARSE]"), "{name}: {}", run.out);
    }
}

#[test]
fn standard_input_is_checked_like_a_file() {
    let bench = Bench::new();
    bench.run_with_input(&["check", "-"], tool("add").as_bytes()).expect(0);
    let run = bench.run_with_input(&["check", "-"], BAD.as_bytes()).expect(1);
    assert!(run.out.contains("--> <stdin>:"), "{}", run.out);
    let yaml = b"name: x\nclassification: read\ndescription: Prints the date of today.\nhandler:\n  cli: {command: date}\n";
    bench.run_with_input(&["check", "--stdin-format", "yaml", "-"], yaml).expect(0);
    bench.run_with_input(&["check", "-"], yaml).expect(1);
}

#[test]
fn duplicate_tools_in_different_files_are_errors() {
    let bench = Bench::with("a.json", tool_with("add", r#""draft": false"#));
    bench.write("b.json", tool_with("add", r#""draft": false, "toolId": "other""#));
    bench.write("c.json", tool_with("sum", r#""draft": true, "toolId": "other""#));
    let run = bench.run(&["check", "."]).expect(1);
    assert!(run.out.contains("`add` has the same name as `add` in `a.json`"), "{}", run.out);
    assert!(run.out.contains("`sum` has the same tool id as `add` in `b.json`"), "{}", run.out);
    assert!(run.out.contains("--> c.json:11:"), "{}", run.out);
    // Drafts are not served, so two may have the same name.
    let bench = Bench::with("a.json", tool("add"));
    bench.write("b.json", tool("add"));
    bench.run(&["check", "."]).expect(0);
}

#[test]
fn symlinked_file_is_checked_once() {
    let bench = Bench::with("a.json", tool_with("add", r#""draft": false"#));
    std::os::unix::fs::symlink("a.json", bench.path("b.json")).unwrap();
    let run = bench.run(&["check", ".", "a.json", "b.json"]).expect(0);
    assert_eq!(run.out, "1 tool in 1 file: nothing found\n");
}

#[test]
fn unresolvable_policy_is_an_error() {
    let bench = Bench::with("a.json", tool_with("add", r#""x-toolgate-profile": "no-such-profile""#));
    let run = bench.run(&["check", "a.json"]).expect(1);
    assert!(run.out.contains("error[RESOLVER_REJECT]"), "{}", run.out);
    bench.write("profiles/no-such-profile.yaml", "timeoutMs: 1000\n");
    bench.run(&["check", "--profiles", "profiles", "a.json"]).expect(0);
}

#[test]
fn finding_in_a_bundle_points_into_the_file() {
    let bundle = format!("{{\"toolSpecs\": [\n{},\n{}]}}", tool("a"), tool_with("b", r#""draft": 7"#));
    let run = Bench::with("bundle.json", bundle).run(&["check", "--format", "json", "bundle.json"]).expect(1);
    let finding = &run.json()["findings"][0];
    assert_eq!(finding["pointer"], "/toolSpecs/1/draft");
    assert_eq!(finding["tool"], "b");
    assert_eq!(finding["line"], 25);
}

#[test]
fn invalid_policy_file_is_refused() {
    let bench = Bench::with("a.json", tool("add"));
    bench.write("base.yaml", "netwrok: open\n");
    let run = bench.run(&["check", "--baseline", "base.yaml", "a.json"]).expect(2);
    assert!(run.err.contains("baseline"), "{}", run.err);
    bench.write("over.yaml", "tools: {add: {capability: {network: {acces: none}}}}\n");
    bench.run(&["check", "--overrides", "over.yaml", "a.json"]).expect(2);
    bench.run(&["check", "--profiles", "nowhere", "a.json"]).expect(2);
}

#[test]
fn quiet_prints_findings_only() {
    let bench = Bench::with("a.json", tool("add"));
    assert_eq!(bench.run(&["check", "--quiet", "a.json"]).expect(0).out, "");
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let bench = Bench::new();
    for number in 0..400 {
        bench.write(&format!("{number}.json"), BAD);
    }
    let script = "\"$0\" check . | head -1; echo \"${PIPESTATUS[0]}\"";
    let output = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_toolgate")])
        .current_dir(bench.path("."))
        .output()
        .unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.ends_with("\n0\n"), "{out}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

pub const BAD: &str = r#"{
  "name": "bad",
  "code": "return 1;",
  "codeType": "Javascript",
  "params": [
    { "name": "text", "description": "漢字", "required": true, "type": "STRNG" }
  ],
  "sandboxOverrides": { "fileread": true },
  "draft": true
}
"#;

const MISMATCH: &str = r#""toolSafety": { "capabilities": { "fileRead": true } }, "draft": true"#;
