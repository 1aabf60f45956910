//! What does a search tell of secrets, however it is worded and whatever its answer looks like?

use serde_json::{Value, json};
use toolgate_handlers::{Ended, Ending};

use crate::world::{World, call, ended, said};

/// A tool of a command with `handler` for the rest of it, and those of a text and two paths for arguments that are named there.
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
fn answer(manifest: &str, arguments: &Value, ended: Ended) -> String {
    let world = World::new();
    let (tool, _) = world.stand_in_for(manifest, ended);
    let report = call(&tool, arguments).unwrap();
    format!("{:?} {:?} {:?}", report.outcome, report.console, report.refused)
}

fn secret_line() -> String {
    format!("src/pay.rs:3:let key = \"sk_live_{}\";\n", "Zq8Rt5Vw2Xy7Bn4Mk9Lp3Hd6")
}

const OPEN: &str = "src/main.rs:9:let live = 1;\n";

/// Whatever is found in the secret is not shown, and neither is that it was found.
#[track_caller]
fn check_veiled(manifest: &str, arguments: &Value) {
    let nothing = answer(manifest, arguments, ended(Ending::Exited(1), "", ""));
    assert!(nothing.starts_with("Ok("), "{nothing}");
    assert_eq!(answer(manifest, arguments, said(&secret_line())), nothing, "{manifest}");
    let both = format!("{}{OPEN}", secret_line());
    assert_eq!(answer(manifest, arguments, said(&both)), answer(manifest, arguments, said(OPEN)));
}

#[test]
fn words_that_come_by_another_way_than_the_command_line_are_a_callers_too() {
    let both = json!({ "path": "src", "words": "docs/readme.md" });
    for (command, handler) in [
        ("grep", "args: [--fixed-strings, --file=-, '--', '{path}'], stdin: '{text}'"),
        ("rg", "args: ['-f', '-', '{path}'], env: {LOOKED_FOR: '{text}'}"),
    ] {
        check_veiled(&tool(command, handler), &json!({ "path": "src", "text": "live" }));
    }
    for (command, handler) in [
        ("grep", "args: ['-r', '--file={words}', '--', '{path}']"),
        ("grep", "args: ['-rf', '{words}', '--', '{path}']"),
        ("grep", "args: ['-r', --fil, '{words}', '--', '{path}']"),
        ("rg", "args: ['-f{words}', '{path}']"),
        ("git", "args: [grep, '-f', '{words}', '--', '{path}']"),
    ] {
        check_veiled(&tool(command, handler), &both);
    }
    // Where to look is no word.
    let fixed = tool("grep", "args: ['-r', live, '--', '{path}', '{words}']");
    assert!(answer(&fixed, &both, said(&secret_line())).contains("src/pay.rs"));
}

#[test]
fn searches_by_other_names_are_searches() {
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
        check_veiled(&tool(command, "args: ['{text}', '{path}']"), &json!({ "text": "live", "path": "src" }));
    }
}

/// It says so where it finds nothing, and its exit code does.
#[test]
fn the_journal_of_the_system_is_searched_like_a_file() {
    let arguments = json!({ "text": "live" });
    for option in ["'--grep={text}'", "--grep, '{text}'", "'-g', '{text}'", "'-qg', '{text}'"] {
        let search = tool("journalctl", &format!("args: [{option}]"));
        check_veiled(&search, &arguments);
        let nothing = answer(&search, &arguments, ended(Ending::Exited(1), "-- No entries --\n", ""));
        assert_eq!(answer(&search, &arguments, said(&secret_line())), nothing, "{option}");
    }
    let unit = tool("journalctl", "args: ['--unit={text}']");
    assert!(answer(&unit, &arguments, said(&secret_line())).contains("src/pay.rs"));
    assert!(answer(&unit, &arguments, ended(Ending::Exited(1), "", "")).contains("CommandFailed"));
}

/// Of those that find nothing some end as if nothing were wrong.
#[test]
fn an_exit_code_is_an_answer_by_the_program_and_not_by_who_asks() {
    let none = json!({});
    let nothing = || ended(Ending::Exited(1), "", "");
    let fixed = answer(&tool("git", "args: [grep, '-e', live]"), &none, nothing());
    assert!(fixed.starts_with("Ok("), "{fixed}");
    let other = answer(&tool("git", "args: [show, HEAD]"), &none, nothing());
    assert!(other.contains("CommandFailed"), "{other}");
    let logs = answer(&tool("logcli", "args: [query, '{text}']"), &json!({ "text": "x" }), nothing());
    assert!(logs.contains("CommandFailed"), "{logs}");
}

/// A parser could count the lines that were found in secrets.
#[test]
fn parser_in_code_is_refused_for_a_search() {
    let why = World::new().parsing_error(&tool("rg", "args: ['{text}']")).unwrap();
    assert!(why.contains("it searches for a caller's text"), "{why}");
    assert_eq!(World::new().parsing_error(&tool("rg", "args: [live]")), None);
    assert_eq!(World::new().parsing_error(&tool("echo", "args: ['{text}']")), None);
}

/// A heading, an end or a sum is left when the lines are not, and says that there were some.
#[test]
fn an_answer_that_tells_of_lines_besides_showing_them_is_not_given() {
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
        assert!(told.contains("tells that something was found in a secret"), "{handler}: {told}");
    }
    let told = why(&tool("ugrep", "args: ['{text}'], output: json")).unwrap();
    assert!(told.contains("write `output: text` or `output: jsonl`"), "{told}");
    // What is looked for may look like one of them.
    for (command, option) in [("git", "grep, '-e'"), ("rg", "'-e'")] {
        let search = tool(command, &format!("args: [{option}, {{value: '{{text}}', allowOption: true}}]"));
        for text in ["-p", "--heading"] {
            answer(&search, &json!({ "text": text }), said(""));
        }
    }
    // Nobody guesses, or nothing is kept back.
    assert_eq!(why(&tool("rg", "args: [--json, live], output: jsonl")), None);
    assert_eq!(why(&tool("echo", "args: [--json, '{text}'], output: json")), None);
    let open = tool("rg", "args: [--heading, '{text}']")
        .replace("{extends: read}", "{extends: read, data: {sanitizeOutput: false, canReadSecrets: false}}");
    assert_eq!(why(&open), None);
}
