//! Tests that searches reveal no secrets, in any form of query or output.

use serde_json::{Value, json};
use toolgate_handlers::CommandOutcome;
use toolgate_sandbox::Ending;

use crate::world::{World, call, ended, said};

/// A command tool with this handler, and the parameters that it names: a text and two paths.
fn tool(command: &str, handler: &str) -> String {
    let is_used = |name: &&str| handler.contains(&format!("{{{name}}}"));
    let names: Vec<&str> = ["text", "path", "words"].into_iter().filter(is_used).collect();
    let properties = names.iter().fold(String::new(), |text, name| {
        let format = if *name == "text" { "" } else { ", format: path" };
        format!("{text}{name}: {{type: string{format}}}, ")
    });
    let tried = names.iter().fold(String::new(), |text, name| format!("{text}{name}: x, "));
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: read
input: {{type: object, required: [{}], properties: {{{properties}}}}}
testInput: {{{tried}}}
handler: {{cli: {{command: {command}, {handler}}}}}
capability: {{extends: read}}
",
        names.join(", ")
    )
}

#[track_caller]
fn answer(manifest: &str, arguments: &Value, ended: CommandOutcome) -> String {
    let world = World::new();
    let (tool, _) = world.stand_in_for(manifest, ended);
    let report = call(&tool, arguments).unwrap();
    format!("{:?} {:?} {:?}", report.outcome, report.console, report.refused)
}

fn secret_line() -> String {
    format!("src/pay.rs:3:let key = \"sk_live_{}\";\n", "Zq8Rt5Vw2Xy7Bn4Mk9Lp3Hd6")
}

const OPEN: &str = "src/main.rs:9:let live = 1;\n";

/// A match in the secret is not shown, and neither is the fact that it matched.
#[track_caller]
fn check_redacted(manifest: &str, arguments: &Value) {
    let nothing = answer(manifest, arguments, ended(Ending::Exited(1), "", ""));
    assert!(nothing.starts_with("Ok("), "{nothing}");
    assert_eq!(answer(manifest, arguments, said(&secret_line())), nothing, "{manifest}");
    let both = format!("{}{OPEN}", secret_line());
    assert_eq!(answer(manifest, arguments, said(&both)), answer(manifest, arguments, said(OPEN)));
}

#[test]
fn search_text_from_stdin_variables_or_files_counts_as_the_callers() {
    let both = json!({ "path": "src", "words": "docs/readme.md" });
    for (command, handler) in [
        ("grep", "args: [--fixed-strings, --file=-, '--', '{path}'], stdin: '{text}'"),
        ("rg", "args: ['-f', '-', '{path}'], env: {LOOKED_FOR: '{text}'}"),
    ] {
        check_redacted(&tool(command, handler), &json!({ "path": "src", "text": "live" }));
    }
    for (command, handler) in [
        ("grep", "args: ['-r', '--file={words}', '--', '{path}']"),
        ("grep", "args: ['-rf', '{words}', '--', '{path}']"),
        ("grep", "args: ['-r', --fil, '{words}', '--', '{path}']"),
        ("rg", "args: ['-f{words}', '{path}']"),
        ("git", "args: [grep, '-f', '{words}', '--', '{path}']"),
    ] {
        check_redacted(&tool(command, handler), &both);
    }
    // The place to search is not a search text.
    let fixed = tool("grep", "args: ['-r', live, '--', '{path}', '{words}']");
    assert!(answer(&fixed, &both, said(&secret_line())).contains("src/pay.rs"));
}

#[test]
fn search_programs_are_recognised_under_other_names() {
    for command in [
        "bzgrep",
        "xzgrep",
        "zstdgrep",
        "lzgrep",
        "lz4grep",
        "zfgrep",
        "zegrep",
        "pcre2grep",
        "pcregrep",
        "ugrep",
        "ug",
        "rga",
        "pdfgrep",
        "zipgrep",
        "agrep",
    ] {
        check_redacted(
            &tool(command, "args: ['{text}', '{path}']"),
            &json!({ "text": "live", "path": "src" }),
        );
    }
}

/// It prints a message without matches, and its exit code is 1.
#[test]
fn system_journal_is_searched_like_a_file() {
    let arguments = json!({ "text": "live" });
    for option in ["'--grep={text}'", "--grep, '{text}'", "'-g', '{text}'", "'-qg', '{text}'"] {
        let search = tool("journalctl", &format!("args: [{option}]"));
        check_redacted(&search, &arguments);
        let nothing = answer(&search, &arguments, ended(Ending::Exited(1), "-- No entries --\n", ""));
        assert_eq!(answer(&search, &arguments, said(&secret_line())), nothing, "{option}");
    }
    let unit = tool("journalctl", "args: ['--unit={text}']");
    assert!(answer(&unit, &arguments, said(&secret_line())).contains("src/pay.rs"));
    assert!(answer(&unit, &arguments, ended(Ending::Exited(1), "", "")).contains("CommandFailed"));
}

/// Some programs exit with 0 without matches.
#[test]
fn exit_code_meaning_depends_on_the_program() {
    let none = json!({});
    let nothing = || ended(Ending::Exited(1), "", "");
    let fixed = answer(&tool("git", "args: [grep, '-e', live]"), &none, nothing());
    assert!(fixed.starts_with("Ok("), "{fixed}");
    let other = answer(&tool("git", "args: [show, HEAD]"), &none, nothing());
    assert!(other.contains("CommandFailed"), "{other}");
    let logs = answer(&tool("logcli", "args: [query, '{text}']"), &json!({ "text": "x" }), nothing());
    assert!(logs.contains("CommandFailed"), "{logs}");
}

/// A parser could count the matches in secrets.
#[test]
fn parser_in_code_is_rejected_for_a_search() {
    let why = World::new().parsing_error(&tool("rg", "args: ['{text}']")).unwrap();
    assert!(why.contains("it searches for a caller's text"), "{why}");
    assert_eq!(World::new().parsing_error(&tool("rg", "args: [live]")), None);
    assert_eq!(World::new().parsing_error(&tool("echo", "args: ['{text}']")), None);
}

/// A heading, separator or total remains when the lines are removed, and reveals that there were matches.
#[test]
fn output_that_reveals_removed_matches_is_rejected() {
    let why = |manifest: &str| World::new().loading_error(manifest);
    for (command, handler) in [
        ("rg", "args: [--json, '{text}'], output: jsonl"),
        ("rg", "args: [--heading, '{text}']"),
        ("rg", "args: [--pretty, '{text}']"),
        ("rg", "args: [--stats, '{text}']"),
        ("rg", "args: ['-np', '-e', '{text}']"),
        ("git", "args: [grep, --heading, '-e', '{text}']"),
        ("git", "args: [grep, --break, '-e', '{text}']"),
        ("git", "args: [grep, '-np', '-e', '{text}']"),
        ("ag", "args: [--group, '{text}']"),
    ] {
        let told = why(&tool(command, handler)).unwrap();
        assert!(told.contains("would reveal matches in secrets"), "{handler}: {told}");
    }
    let told = why(&tool("ugrep", "args: ['{text}'], output: json")).unwrap();
    assert!(told.contains("set `output: text` or `output: jsonl`"), "{told}");
    // The search text may look like an option.
    for (command, option) in [("git", "grep, '-e'"), ("rg", "'-e'")] {
        let search = tool(command, &format!("args: [{option}, {{value: '{{text}}', allowOption: true}}]"));
        for text in ["-p", "--heading"] {
            answer(&search, &json!({ "text": text }), said(""));
        }
    }
    // The caller chooses no search text, or nothing is redacted.
    assert_eq!(why(&tool("rg", "args: [--json, live], output: jsonl")), None);
    assert_eq!(why(&tool("echo", "args: [--json, '{text}'], output: json")), None);
    let open = tool("rg", "args: [--heading, '{text}']")
        .replace("{extends: read}", "{extends: read, data: {sanitizeOutput: false, canReadSecrets: false}}");
    assert_eq!(why(&open), None);
}
