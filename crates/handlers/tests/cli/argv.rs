//! Tests which command lines are built, and which values are rejected.

use serde_json::{Value, json};
use toolgate_gate::Reason;

use crate::world::World;

/// A manifest for one command with the given arguments in YAML, and parameters of every type.
pub fn manifest(command: &str, args: &str) -> String {
    let used: String = ["text", "count", "is_on", "list", "path"]
        .iter()
        .filter(|name| !args.contains(&format!("{{{name}}}")) && !args.contains(&format!(": {name},")))
        .map(|name| match *name {
            "list" => format!("      - {{each: {name}, args: ['{{item}}']}}\n"),
            name => format!("      - {{when: {name}, args: ['{{{name}}}']}}\n"),
        })
        .collect();
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: read
input:
  type: object
  properties:
    text: {{type: string}}
    count: {{type: number}}
    is_on: {{type: boolean}}
    list: {{type: array, items: {{type: string}}}}
    path: {{type: string, format: path}}
  required: [{}]
testInput: {{text: x, count: 1, path: x}}
handler:
  cli:
    command: {command}
    args:
{}{used}capability: {{extends: read}}
",
        ["text", "count", "path"]
            .into_iter()
            .filter(|name| args
                .lines()
                .any(|line| { line.contains(&format!("{{{name}}}")) && !line.contains("when:") }))
            .collect::<Vec<_>>()
            .join(", "),
        args.lines().fold(String::new(), |text, line| text + "      - " + line + "\n"),
    )
}

#[track_caller]
fn check(command: &str, args: &str, arguments: &Value, expect: &[&str]) {
    let world = World::new();
    let line = world.line(&manifest(command, args), arguments);
    let line = line.unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let expect: Vec<String> =
        expect.iter().map(|part| part.replace("$WORKSPACE", &world.at("")).replace("//", "/")).collect();
    assert_eq!(line, expect);
}

#[track_caller]
fn refuses(command: &str, args: &str, arguments: &Value, part: &str) {
    let refusal = World::new().line(&manifest(command, args), arguments).unwrap_err();
    assert_eq!(refusal.reason, Reason::ArgumentRefused, "{refusal:?}");
    assert!(refusal.message.contains(part) && !refusal.remedy.is_empty(), "{refusal:?}");
}

#[test]
fn values_fill_elements_and_placeholders() {
    check("echo", "'{text}'", &json!({ "text": "a b; $(c)" }), &["echo", "a b; $(c)"]);
    check("echo", "'a={text}!'", &json!({ "text": "x" }), &["echo", "a=x!"]);
    check("echo", "'{text}{text}'", &json!({ "text": "x" }), &["echo", "xx"]);
    check("echo", "'{{{text}}}'", &json!({ "text": "x" }), &["echo", "{x}"]);
}

#[test]
fn conditional_groups_are_included_when_given() {
    let args = "{when: is_on, args: ['--on']}\n{when: count, args: ['--count={count}']}\n{each: list, args: ['--item', '{item}']}";
    check("echo", args, &json!({}), &["echo"]);
    check("echo", args, &json!({ "is_on": false, "count": null, "list": [] }), &["echo"]);
    check(
        "echo",
        args,
        &json!({ "is_on": true, "count": 0, "list": ["a", "b"] }),
        &["echo", "--on", "--count=0", "--item", "a", "--item", "b"],
    );
    // An empty text counts as absent.
    check("echo", "{when: text, args: ['--text={text}']}", &json!({ "text": "" }), &["echo"]);
}

#[test]
fn numbers_are_written_without_exponent() {
    let args = "'--n={count}'";
    for (count, text) in [
        (json!(5), "5"),
        (json!(5.0), "5"),
        (json!(2.5), "2.5"),
        (json!(1e3), "1000"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(1e16), "10000000000000000"),
        (json!(-1e-7), "-0.0000001"),
        (json!(1e19), "10000000000000000000"),
        (json!(i64::MIN), "-9223372036854775808"),
    ] {
        check("echo", args, &json!({ "count": count }), &["echo", &format!("--n={text}")]);
        // After a letter, an `e` in a number would be an option: `-v1e16` is `-e 16`.
        check("echo", "'-v{count}'", &json!({ "count": count }), &["echo", &format!("-v{text}")]);
    }
}

#[test]
fn rounded_number_is_rejected() {
    // Parsed from text like a call, where the first number was already rounded.
    for count in ["36893488147419103233", "18446744073709551616", "-9223372036854775809", "1e300", "-1e300"] {
        let arguments: Value = serde_json::from_str(&format!("{{\"count\": {count}}}")).unwrap();
        refuses("echo", "'--n={count}'", &arguments, "more than 64 bits");
        refuses("echo", "'-v{count}'", &arguments, "more than 64 bits");
    }
}

#[test]
fn value_that_would_be_an_option_is_rejected() {
    for value in ["-x", "--help", "-", "--", "-1"] {
        refuses("echo", "'{text}'", &json!({ "text": value }), "begins with `-`");
        refuses("echo", "'{text}{count}'", &json!({ "text": value, "count": 1 }), "begins with `-`");
        refuses(
            "echo",
            "{each: list, args: ['{item}']}",
            &json!({ "list": ["a", value] }),
            "begins with `-`",
        );
        check(
            "echo",
            "{value: '--a={text}', allowOption: true}",
            &json!({ "text": value }),
            &["echo", &format!("--a={value}")],
        );
    }
    refuses("echo", "'{count}'", &json!({ "count": -5 }), "begins with `-`");
    // After text of the author it starts no option.
    check("grep", "'--max-count={count}'\nx", &json!({ "count": -1 }), &["grep", "--max-count=-1", "x"]);
    check("echo", "'--a={text}'", &json!({ "text": "--help" }), &["echo", "--a=--help"]);
    check("echo", "{each: list, args: ['--a={item}']}", &json!({ "list": ["-x"] }), &["echo", "--a=-x"]);
    check("echo", "'x{text}'", &json!({ "text": "-x" }), &["echo", "x-x"]);
}

#[test]
fn control_characters_are_rejected() {
    for bad in ["\0", "\n", "\r", "\t", "\x1b[31m", "\x7f", "\u{85}", "\u{9b}"] {
        for text in [bad.to_owned(), format!("a{bad}"), format!("{bad}a")] {
            refuses("echo", "'--a={text}'", &json!({ "text": text }), "control character");
        }
    }
}

#[test]
fn required_value_must_not_be_empty() {
    refuses("echo", "'{text}'", &json!({ "text": "" }), "empty");
    refuses("echo", "'{text}'", &json!({ "text": null }), "empty");
}

#[test]
fn path_argument_becomes_its_real_path() {
    let world = World::new();
    std::os::unix::fs::symlink("src/main.rs", world.at("link")).unwrap();
    for path in ["src/main.rs", "link", "docs/../src/./main.rs", &world.at("src/main.rs")] {
        let line = world.line(&manifest("cat", "'{path}'"), &json!({ "path": path })).unwrap();
        assert_eq!(line, ["cat", "--", &world.at("src/main.rs")], "{path}");
    }
    // Another argument with the same text is not a path.
    let both = manifest("echo", "'{text}'\n'--file={path}'");
    let line = world.line(&both, &json!({ "text": "link", "path": "link" })).unwrap();
    assert_eq!(line, ["echo", "link", &format!("--file={}", world.at("src/main.rs"))]);
    // A file may have the name of an option; its absolute path does not.
    world.write("workspace/-rf", "x");
    let line = world.line(&manifest("cat", "'{path}'"), &json!({ "path": "-rf" })).unwrap();
    assert_eq!(line, ["cat", "--", &world.at("-rf")]);
    // A symlink may lead to a name that no command line may contain.
    world.write("workspace/a\nb", "x");
    std::os::unix::fs::symlink("a\nb", world.at("break")).unwrap();
    let refusal = world.line(&manifest("cat", "'{path}'"), &json!({ "path": "break" })).unwrap_err();
    assert!(refusal.message.contains("control character"), "{refusal:?}");
}

#[test]
fn double_dash_is_inserted_for_known_programs() {
    let text = json!({ "text": "x" });
    check("ls", "'-la'\n'{text}'", &text, &["ls", "-la", "--", "x"]);
    check("cat", "'a'\n'{text}'\n'b'", &text, &["cat", "a", "--", "x", "b"]);
    check(
        "grep",
        "'-e'\n'{text}'\n'{path}'",
        &json!({ "text": "x", "path": "src" }),
        &["grep", "-e", "x", "--", "$WORKSPACE/src"],
    );
    check("grep", "'-rne'\n'{text}'\n'src'", &text, &["grep", "-rne", "x", "src"]);
    check(
        "head",
        "'-n'\n'{count}'\n'{text}'",
        &json!({ "count": 3, "text": "x" }),
        &["head", "-n", "3", "--", "x"],
    );
    check(
        "head",
        "'--lines'\n'{count}'\n'{text}'",
        &json!({ "count": 3, "text": "x" }),
        &["head", "--lines", "3", "--", "x"],
    );
    check(
        "ls",
        "'--width={count}'\n{each: list, args: ['{item}']}",
        &json!({ "count": 3, "list": ["a", "b"] }),
        &["ls", "--width=3", "--", "a", "b"],
    );
    // An existing `--` is enough.
    check("ls", "'--'\n'{text}'", &text, &["ls", "--", "x"]);
    // Not if an option follows or may follow, nor if `--` has another meaning or is unknown.
    check("ls", "'{text}'\n'-la'", &text, &["ls", "x", "-la"]);
    check("ls", "{value: '{text}', allowOption: true}", &json!({ "text": "-la" }), &["ls", "-la"]);
    check("git", "'log'\n'{text}'", &text, &["git", "log", "x"]);
    check("echo", "'{text}'", &text, &["echo", "x"]);
    // Without a caller's value there is nothing to separate.
    check("ls", "'-la'", &json!({}), &["ls", "-la"]);
}

#[test]
fn value_with_a_special_meaning_is_rejected() {
    for value in ["(", "!", ")", ","] {
        refuses("find", "'{text}'\n'-name'\n'x'", &json!({ "text": value }), "expression");
    }
    refuses("curl", "'--data={text}'", &json!({ "text": "@/etc/passwd" }), "file to send");
    refuses("curl", "'-d'\n'{text}'", &json!({ "text": "@/etc/passwd" }), "file to send");
    for value in ["file:///etc/passwd", "file:/etc/passwd", "{file,x}:///etc/passwd", "dict://a:1/x"] {
        refuses("curl", "'--silent'\n'{text}'", &json!({ "text": value }), "begins with");
        refuses("curl", "'--url'\n'{text}'", &json!({ "text": value }), "begins with");
        refuses("curl", "'--url={text}'", &json!({ "text": value }), "begins with");
    }
    refuses("curl", "'{text}://host/'", &json!({ "text": "file" }), "not a web address");
    for (args, value) in [
        ("'--form'\n'{text}'", "a=@/etc/passwd"),
        ("'-sF'\n'{text}'", "a=</etc/passwd"),
        ("'-F'\n'a={text}'", "b;headers=@/etc/passwd"),
        ("'--data-urlencode'\n'{text}'", "a@/etc/passwd"),
        ("'--cookie'\n'{text}'", "/etc/passwd"),
        ("{value: '-b{text}', allowOption: true}", "/etc/passwd"),
    ] {
        refuses("curl", args, &json!({ "text": value }), "names a file");
    }
    let form = ["curl", "--form", "a=me@here", "api.example.com"];
    check("curl", "'--form'\n'{text}'\n'api.example.com'", &json!({ "text": "a=me@here" }), &form);
    let sent = json!({ "text": "file:/a" });
    check(
        "curl",
        "'--data'\n'{text}'\n'api.example.com'",
        &sent,
        &["curl", "--data", "file:/a", "api.example.com"],
    );
    refuses("tar", "'-tf'\n'{text}'", &json!({ "text": "host:file" }), "another machine");
    for value in ["a b", "x;id", "$(id)", "`id`", "a|b", "a>b", "a\"b", "*"] {
        refuses("ssh", "'host'\n'ls'\n'{text}'", &json!({ "text": value }), "the remote shell");
    }
    refuses("dd", "'{text}'", &json!({ "text": "of=x" }), "a setting");
    // The machine decides the name of the file that the symlink leads to.
    refuses("strings", "'-a'\n'{text}'", &json!({ "text": "@options" }), "further arguments");
    refuses("strings", "'--radix={text}'", &json!({ "text": "@options" }), "further arguments");
    check("strings", "'{text}'", &json!({ "text": "a@b" }), &["strings", "a@b"]);
}

#[test]
fn too_many_or_too_long_elements_are_rejected() {
    let long = "x".repeat(70_000);
    refuses("echo", "'{text}'", &json!({ "text": long }), "bytes");
    let many: Vec<Value> = (0..1_001).map(|_| json!("x")).collect();
    refuses("echo", "{each: list, args: ['{item}']}", &json!({ "list": many }), "elements");
}

#[test]
fn double_dash_is_not_inserted_before_an_option_value() {
    let both = json!({ "text": "x", "count": 1 });
    check("diff", "'-L'\n'{text}'\n'a'\n'{count}'", &both, &["diff", "-L", "x", "a", "--", "1"]);
    check("du", "'-X'\n'{text}'\n'{count}'", &both, &["du", "-X", "x", "--", "1"]);
    let args = "'--group-separator'\n'{text}'\n'a'\n'{count}'";
    check("grep", args, &both, &["grep", "--group-separator", "x", "a", "--", "1"]);
    for option in ["--sparse", "--no-preserve"] {
        let args = format!("'{option}'\n'{{text}}'\n'a'\n'{{count}}'");
        check("cp", &args, &both, &["cp", option, "x", "a", "--", "1"]);
    }
    check("touch", "'--time'\n'{text}'\n'{count}'", &both, &["touch", "--time", "x", "--", "1"]);
}
