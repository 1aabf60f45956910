//! No argument changes anything but its own element.
//!
//! Covers the families of injection and traversal, and option injection for commands known for it. Every generated
//! value is either rejected, or the command line equals that of a harmless call with the value in its place.
//! `jailed/reach.rs` runs such lines with the real programs.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_gate::Runnable;

use crate::{
    catalog::manifest as shipped,
    world::{Recorder, Unjailed, World, call},
};

/// One parameter of one tool, and the fixed rest.
struct Case {
    tool: Arc<dyn Runnable>,
    recorder: Arc<Recorder>,
    param: &'static str,
    harmless: Map<String, Value>,
    expected: Vec<String>,
    workspace: String,
    _world: World,
}

impl Case {
    fn new(manifest: &str, param: &'static str, harmless: Value) -> Self {
        let world = World::new();
        world.write("workspace/harmless", "x");
        world.write("workspace/other", "x");
        let (tool, recorder) = world.with_stand_in(manifest);
        call(&tool, &harmless).unwrap();
        let expected = recorder.last().argv;
        let Value::Object(harmless) = harmless else { panic!("an object") };
        Self { tool, recorder, param, harmless, expected, workspace: world.at(""), _world: world }
    }

    /// The element with the value, if it was not rejected.
    fn check(&self, value: &str) -> Result<Option<String>, TestCaseError> {
        let mut arguments = self.harmless.clone();
        arguments.insert(self.param.to_owned(), Value::from(value));
        let Ok(_) = call(&self.tool, &Value::Object(arguments)) else {
            prop_assert!(self.recorder.is_unused());
            return Ok(None);
        };
        let argv = self.recorder.last().argv;
        prop_assert_eq!(argv.len(), self.expected.len(), "{:?}", argv);
        let mut changed = argv.iter().zip(&self.expected).filter(|(now, before)| now != before);
        let Some((element, before)) = changed.next() else { return Ok(None) };
        prop_assert!(changed.next().is_none(), "{:?} and {:?}", argv, self.expected);
        prop_assert!(!element.chars().any(char::is_control), "{:?}", element);
        if let Some((option, _)) = before.split_once(&self.workspace) {
            let path = element.strip_prefix(option);
            prop_assert!(path.is_some_and(|path| self.is_inside(path)), "{:?}", element);
        } else {
            // The value as given, inside the author's text.
            let (start, end) = before.split_once(self.harmless[self.param].as_str().unwrap()).unwrap();
            prop_assert_eq!(element.as_str(), format!("{start}{value}{end}"));
            prop_assert!(start.starts_with('-') || !element.starts_with('-'), "{:?} is an option", element);
        }
        Ok(Some(element.clone()))
    }

    /// Absolute, in the workspace, not leading out of it.
    fn is_inside(&self, path: &str) -> bool {
        format!("{path}/").starts_with(&self.workspace) && !path.split('/').any(|part| part == "..")
    }
}

fn tried(command: &str, args: &str, more: &str) -> String {
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: read
input: {{type: object, required: [x], properties: {{x: {{type: string{more}}}}}}}
testInput: {{x: harmless}}
handler: {{cli: {{command: {command}, args: [{args}]}}}}
capability: {{extends: read}}
"
    )
}

/// The eight families: separators, pipes, conjunctions, backticks, substitutions, line breaks, redirections,
/// traversal; and options in the spellings that commands accept.
fn nasty() -> impl Strategy<Value = String> {
    let families = prop::sample::select(FAMILIES);
    let options = prop::sample::select(OPTIONS);
    let word = "[a-z0-9./_-]{0,6}";
    prop_oneof![
        (word, families.clone(), word).prop_map(|(before, nasty, after)| format!("{before}{nasty}{after}")),
        (options.clone(), word).prop_map(|(option, after)| format!("{option}{after}")),
        (families, options).prop_map(|(nasty, option)| format!("{nasty} {option}")),
        any::<String>(),
    ]
    // An empty argument counts as absent.
    .prop_filter("empty", |value| !value.is_empty())
}

/// Elements that this program would not read as plain values.
macro_rules! unharmed {
    ($($name:ident: $manifest:expr, $param:literal, $harmless:expr $(, $means_more:expr)?;)*) => {$(
        #[test]
        fn $name() {
            let case = Case::new(&$manifest, $param, $harmless);
            // Some values must be rejected, and some must not.
            assert!(case.check("other").unwrap().is_some());
            assert_eq!(case.check("a\nb").unwrap(), None);
            let meanings: &[fn(&str) -> bool] = &[$($means_more)?];
            proptest!(ProptestConfig::with_cases(192), |(value in nasty())| {
                if let Some(element) = case.check(&value)? {
                    let means_more = meanings.iter().any(|means_more| means_more(&element));
                    prop_assert!(!means_more, "{:?} became {:?}", value, element);
                }
            });
        }
    )*};
}

unharmed! {
    git_revision: shipped("git_log"), "revision", json!({ "count": 1, "revision": "harmless" });
    git_path: shipped("git_log"), "path", json!({ "count": 1, "path": "harmless" });
    git_show: shipped("git_show_file"), "revision", json!({ "revision": "harmless", "path": "x" });
    git_range: shipped("git_diff_branches"), "head", json!({ "base": "main", "head": "harmless" });
    git_operand: tried("git", "log, '{x}'", ""), "x", json!({ "x": "harmless" });
    grep_text: shipped("search_code"), "text", json!({ "text": "harmless", "folder": "." });
    grep_folder: shipped("search_code"), "folder", json!({ "text": "x", "folder": "harmless" });
    grep_operand: tried("grep", "x, '{x}'", ""), "x", json!({ "x": "harmless" });
    cat_path: shipped("read_file"), "path", json!({ "path": "harmless" });
    path_in_an_option: tried("cat", "'--file={x}'", ", format: path"), "x", json!({ "x": "harmless" });
    find_start: tried("find", "'{x}', '-maxdepth', '1'", ""), "x", json!({ "x": "harmless" }), begins_an_expression;
    find_name: tried("find", "src, '-name', '{x}'", ""), "x", json!({ "x": "harmless" }), begins_an_expression;
    tar_archive: tried("tar", "'-tf', '{x}'", ""), "x", json!({ "x": "harmless" }), |element| {
        element.contains([':', '@'])
    };
    tar_member: tried("tar", "'--extract', '--file=a.tar', '{x}'", ""), "x", json!({ "x": "harmless" }), |element| {
        element.contains([':', '@'])
    };
    curl_url: tried("curl", "'--silent', '{x}'", ""), "x", json!({ "x": "harmless" }), |element| {
        element.starts_with('@') || has_other_scheme(element)
    };
    curl_data: tried("curl", "'--data', '{x}', 'https://api.example.com/'", ""), "x", json!({ "x": "harmless" }), |element| {
        element.starts_with(['@', '<'])
    };
    curl_path: tried("curl", "'https://api.example.com/{x}'", ""), "x", json!({ "x": "harmless" });
    ssh_host: tried("ssh", "'{x}', uptime", ""), "x", json!({ "x": "harmless" }), |element| !is_plain(element);
    ssh_argument: tried("ssh", "host, ls, '{x}'", ""), "x", json!({ "x": "harmless" }), |element| !is_plain(element);
    awk_file: tried("awk", "'$1 == 2', '{x}'", ""), "x", json!({ "x": "harmless" }), |element| {
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        element.split_once('=').is_some_and(|(name, _)| {
            is_name(name) && name.starts_with(|c: char| !c.is_ascii_digit())
        })
    };
    unknown_command: tried("'true'", "sub, '{x}', end", ""), "x", json!({ "x": "harmless" });
}

fn begins_an_expression(element: &str) -> bool {
    element.starts_with(['(', ')', '!', ',', '-'])
}

/// A URL that does not lead to a web server. `file:/etc/passwd` is one.
fn has_other_scheme(element: &str) -> bool {
    let is_web = |scheme: &str| ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    element.split_once(":/").is_some_and(|(scheme, _)| !scheme.contains('/') && !is_web(scheme))
}

fn is_plain(element: &str) -> bool {
    element.chars().all(|c| c.is_ascii_alphanumeric() || "._@%+=,/-".contains(c))
}

#[test]
fn harmless_values_are_accepted() {
    let case = Case::new(&shipped("search_code"), "text", json!({ "text": "harmless", "folder": "." }));
    proptest!(ProptestConfig::with_cases(64), |(value in "[ -~]{1,40}")| {
        let element = case.check(&value)?;
        prop_assert_eq!(element.unwrap_or("--regexp=harmless".into()), format!("--regexp={value}"));
    });
}

#[test]
fn program_receives_exactly_the_given_value() {
    let world = World::new();
    let tool = world.handlers(Arc::new(Unjailed)).runnable(world.load(&shipped("echo_message")).unwrap());
    call(&tool, &json!({ "message": "not everything is refused" })).unwrap();
    proptest!(ProptestConfig::with_cases(48), |(value in nasty())| {
        if let Ok(report) = call(&tool, &json!({ "message": value })) {
            let said = report.outcome.unwrap().unwrap();
            prop_assert_eq!(said.as_str().unwrap().trim_start_matches('\u{feff}'), format!("{}\n", value.trim_start_matches('\u{feff}')));
        }
    });
}

const FAMILIES: &[&str] = &[
    ";",
    "; id",
    "|",
    "| sh",
    "||",
    "&&",
    "& id",
    "`id`",
    "$(id)",
    "${IFS}",
    "$HOME",
    "\n",
    "\r\n",
    "\u{2028}",
    ">",
    "> /etc/passwd",
    "<",
    "<(id)",
    "2>&1",
    "../",
    "../../etc/passwd",
    "/etc/passwd",
    "..\\",
    "%2e%2e%2f",
    "..%c0%af",
    "....//",
    "/proc/self/root/etc",
    "~",
    "~root",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "FILE:///etc/passwd",
    "{file,x}:///etc/passwd",
    "gopher://127.0.0.1:1/_x",
    "\0",
    "\x1b]0;x\x07",
    "\u{9b}2J",
    "*",
    "?",
    "[a]",
    "{a,b}",
    "'",
    "\"",
    "\\",
    "!",
    "(",
    ")",
    ",",
    "@/etc/passwd",
    "host:file",
    ":(exclude)",
    "@{u}",
    "FS=x",
    "id|",
    "\\! id",
];

const OPTIONS: &[&str] = &[
    "-",
    "--",
    "-x",
    "--help",
    "--output=/tmp/x",
    "--upload-pack=id",
    "-oProxyCommand=id",
    "-exec",
    "-delete",
    "--checkpoint-action=exec=id",
    "--to-command=id",
    "-K/etc/passwd",
    "--config=x",
    "-f",
    "--file=/etc/passwd",
    "-r",
    "--exec-path=/tmp",
    "-c",
    "--git-dir=/tmp",
    "-O",
    "--open-files-in-pager=id",
    "-fprint",
    "-I",
    "--use-compress-program=id",
];
