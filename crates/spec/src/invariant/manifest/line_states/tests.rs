use proptest::prelude::*;
use serde_json::{Value, json};

/// The findings about the words of this command line, or about its standard input.
fn faults(command: &str, args: &[Value], stdin: Option<&str>) -> Vec<String> {
    let document = json!({
        "name": "x",
        "classification": "read",
        "input": {
            "type": "object",
            "required": ["x", "list"],
            "properties": {
                "x": { "type": "string" },
                "list": { "type": "array", "items": { "type": "string" } },
                "flag": { "type": "boolean" },
            },
        },
        "testInput": { "x": "a", "list": ["a"] },
        "handler": { "cli": { "command": command, "args": args, "stdin": stdin } },
    });
    let file = crate::check_text(&document.to_string(), crate::Format::Json);
    let findings = file.tools.into_iter().flat_map(|tool| tool.findings);
    findings
        .filter(|finding| finding.is_error() && finding.at.as_str().starts_with("/handler/cli"))
        .map(|finding| format!("{} {}", finding.at, finding.message))
        .collect()
}

fn maybe(args: &[&str]) -> Value {
    json!({ "when": "flag", "args": args })
}

#[track_caller]
fn check(command: &str, args: &Value, is_sound: bool) {
    let faults = faults(command, args.as_array().unwrap(), None);
    assert_eq!(faults.is_empty(), is_sound, "{command} {args} {faults:?}");
}

#[test]
fn optional_words_do_not_hide_caller_code() {
    for (command, code, option) in [
        ("perl", ["-e", "print 1;"], "-e"),
        ("ruby", ["-e", "puts 1"], "-e"),
        ("node", ["-e", "1"], "-r"),
        ("php", ["-r", "echo 1;"], "-r"),
        ("sed", ["-e", "p"], "-e"),
        ("sed", ["-e", "p"], "-f"),
        ("lua", ["-e", "n = 1"], "-e"),
    ] {
        let [flag, text] = code;
        check(command, &json!([flag, text, maybe(&[option]), "{x}"]), false);
        check(command, &json!([flag, maybe(&[text]), "{x}"]), false);
        check(command, &json!([flag, text, option, maybe(&["fixed"]), "{x}"]), false);
        check(command, &json!([flag, text, maybe(&["-v"]), maybe(&[option]), "{x}"]), false);
    }
    check("perl", &json!(["-e", "print 1;", maybe(&["-w"]), "{x}"]), true);
    check("sed", &json!([maybe(&["-n"]), "p", maybe(&["-s"]), "{x}"]), true);
    check("python3", &json!(["tool.py", maybe(&["-c"]), "{x}"]), true);
}

#[test]
fn optional_words_do_not_choose_the_program() {
    check("find", &json!([".", "-maxdepth", "0", "-exec", maybe(&["cat"]), "{x}", ";"]), false);
    check("find", &json!([".", "-exec", maybe(&["cat", ";", "-exec"]), "wc", "{x}", ";"]), true);
    check("tar", &json!(["-x", "-I", maybe(&["zstd"]), "{x}"]), false);
    check("tar", &json!([maybe(&["-v"]), maybe(&["-z"]), "xIf", "{x}"]), false);
    check("ssh", &json!(["-o", maybe(&["BatchMode=yes"]), "{x}", "uptime"]), false);
    check("rsync", &json!(["-e", maybe(&["ssh"]), "{x}", "b"]), false);
    check("git", &json!([maybe(&["log"]), "-c", "{x}", "status"]), false);
    check("git", &json!([maybe(&["-C"]), "rebase", "-x", "{x}"]), false);
    check("git", &json!([maybe(&["log"]), "rebase", "-x", "{x}"]), false);
    check("git", &json!([maybe(&["--no-pager"]), "log", maybe(&["-p"]), "{x}"]), true);
    check("ssh", &json!([maybe(&["-o", "BatchMode=yes"]), "{x}", "uptime"]), true);
}

#[test]
fn repeated_words_do_not_hide_caller_code() {
    let each = |args: &[&str]| json!({ "each": "list", "args": args });
    // The second time, the first word is the value of the last option of the first time.
    check("tar", &json!(["-x", each(&["{item}", "-I"])]), false);
    check("git", &json!([each(&["-C", "{item}"]), "-c", "{x}", "log"]), false);
    check("tar", &json!(["-x", "-f", "a.tar", each(&["{item}"])]), true);
}

#[test]
fn optional_words_do_not_leave_a_remote_shell() {
    let is_refused = |args: Value| !faults("ssh", args.as_array().unwrap(), Some("{x}")).is_empty();
    assert!(is_refused(json!(["-o", maybe(&["BatchMode=yes"]), "host", "cat"])));
    assert!(is_refused(json!([maybe(&["-p"]), "host", "cat"])));
    assert!(!is_refused(json!([maybe(&["-o", "BatchMode=yes"]), "host", "cat"])));
}

#[test]
fn finding_of_several_variants_is_reported_once() {
    let args = [maybe(&["-B"]), maybe(&["-E"]), maybe(&["-I"]), json!("{x}")];
    let faults = faults("python3", &args, None);
    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn line_with_too_many_variants_is_rejected() {
    let programs =
        ["python", "perl", "ruby", "php", "lua", "node", "guile", "java", "sed", "dc", "go", "npx"];
    let mut args = vec![json!("."), json!("-exec")];
    args.extend(programs.map(|program| maybe(&[program])));
    args.extend([maybe(&["-e"]), maybe(&["1"]), maybe(&["-i"]), maybe(&["-"]), json!(";")]);
    let faults = faults("find", &args, None);
    assert!(faults.iter().any(|fault| fault.contains("too many variants")), "{faults:?}");
}

#[derive(Clone, Debug)]
enum WordGroup {
    One(&'static str),
    When(Vec<&'static str>),
    Each(Vec<&'static str>),
}

impl WordGroup {
    fn written(&self) -> Value {
        match self {
            Self::One(word) => json!(word),
            Self::When(words) => maybe(words),
            // The group has to use its element.
            Self::Each(words) => {
                let args = [words.as_slice(), &["{item}"]].concat();
                json!({ "each": "list", "args": args })
            }
        }
    }

    /// The words that can replace the group.
    fn ways(&self) -> Vec<Vec<&'static str>> {
        match self {
            Self::One(word) => vec![vec![word]],
            Self::When(words) => vec![vec![], words.clone()],
            Self::Each(words) => {
                let once = [words.as_slice(), &["{x}"]].concat();
                vec![vec![], once.clone(), once.repeat(2)]
            }
        }
    }
}

fn lines(groups: &[WordGroup]) -> Vec<Vec<&'static str>> {
    groups.iter().fold(vec![vec![]], |lines, group| {
        let ways = group.ways();
        lines.iter().flat_map(|line| ways.iter().map(move |way| [line.as_slice(), way].concat())).collect()
    })
}

fn group(words: &'static [&'static str]) -> impl Strategy<Value = WordGroup> {
    let word = || prop::sample::select(words);
    let several = || prop::collection::vec(word(), 1..3);
    prop_oneof![
        4 => word().prop_map(WordGroup::One),
        3 => several().prop_map(WordGroup::When),
        1 => several().prop_map(WordGroup::Each),
    ]
}

fn command_line() -> impl Strategy<Value = (&'static str, Vec<WordGroup>)> {
    prop::sample::select(COMMANDS)
        .prop_flat_map(|(command, words)| (Just(command), prop::collection::vec(group(words), 1..6)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn document_is_rejected_if_any_variant_is((command, groups) in command_line()) {
        let written: Vec<Value> = groups.iter().map(WordGroup::written).collect();
        for stdin in [None, Some("{x}")] {
            let is_refused = !faults(command, &written, stdin).is_empty();
            let refused = lines(&groups).into_iter().find(|line| {
                let words: Vec<Value> = line.iter().map(|word| json!(word)).collect();
                !faults(command, &words, stdin).is_empty()
            });
            prop_assert!(is_refused || refused.is_none(), "{command} {written:?} can be {refused:?}");
            // The document is rejected only if some line is.
            let repeats = groups.iter().any(|group| matches!(group, WordGroup::Each(_)));
            prop_assert!(repeats || !is_refused || refused.is_some(), "{command} {written:?}");
        }
    }
}

const COMMANDS: &[(&str, &[&str])] = &[
    ("perl", &["-e", "-n", "-w", "-I", "print 1", "tool.pl", "{x}", "--", "-"]),
    ("python3", &["-c", "-m", "-i", "-W", "json.tool", "timeit", "tool.py", "{x}", "-"]),
    ("sed", &["-e", "-f", "-n", "p", "{x}", "a.txt"]),
    ("node", &["-e", "-r", "--test", "inspect", "a.js", "{x}"]),
    ("uv", &["run", "--with", "python", "-c", "tool.py", "bash", "{x}"]),
    ("find", &[".", "-exec", "cat", "perl", "-e", ";", "-name", "{x}"]),
    ("tar", &["-x", "xIf", "-I", "-f", "zstd", "--to-command", "a.tar", "{x}"]),
    ("git", &["-c", "-C", "log", "rebase", "clone", "-x", "-u", "submodule", "foreach", "a=b", "{x}"]),
    ("ssh", &["-o", "-p", "-T", "host", "cat", "sh", "BatchMode=yes", "{x}"]),
    ("make", &["-f", "-", "-C", "all", "NAME={x}", "{x}"]),
];
