//! No argument, whatever it contains, changes anything but its own element.
//!
//! The families of injection and traversal, and option injection for the commands that are famous for it. For every
//! generated value a call is either refused, or its line has the elements of a harmless call with the value in its place.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_gate::Runnable;

use crate::{
    catalog::manifest as shipped,
    world::{Recorder, Unjailed, World, call},
};

/// One parameter of one tool, and what stays the same about the others.
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
        let (tool, recorder) = world.with_stand_in(manifest);
        call(&tool, &harmless).unwrap();
        let expected = recorder.last().argv;
        let Value::Object(harmless) = harmless else { panic!("an object") };
        Self { tool, recorder, param, harmless, expected, workspace: world.at(""), _world: world }
    }

    /// The element that the value came to stand in, where it was not refused.
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
        // What the author wrote around the value still stands around it.
        let harmless = self.harmless[self.param].as_str().unwrap();
        let (start, end) = match before.split_once(harmless) {
            Some(around) if !before.starts_with(&self.workspace) => around,
            _ => ("", ""),
        };
        // Of a path, the folder itself is inside too.
        let start = start.trim_end_matches('/');
        prop_assert!(element.starts_with(start) && element.ends_with(end), "{:?}", element);
        prop_assert!(start.starts_with('-') || !element.starts_with('-'), "{:?} is an option", element);
        Ok(Some(element.clone()))
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

/// The eight families: separators, pipes, conjunctions, backticks, substitutions, line breaks, redirections, traversal; and
/// options, in the spellings that commands know.
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
    // Nothing is nothing: an argument that is empty is one that was not given.
    .prop_filter("empty", |value| !value.is_empty())
}

macro_rules! unharmed {
    ($($name:ident: $manifest:expr, $param:literal, $harmless:expr, $also:expr;)*) => {$(
        #[test]
        fn $name() {
            let case = Case::new(&$manifest, $param, $harmless);
            let also: fn(&Case, &str) -> bool = $also;
            proptest!(ProptestConfig::with_cases(192), |(value in nasty())| {
                if let Some(element) = case.check(&value)? {
                    prop_assert!(also(&case, &element), "{:?} became {:?}", value, element);
                }
            });
        }
    )*};
}

/// Absolute, in the workspace, without a way out of it.
fn is_inside(case: &Case, element: &str) -> bool {
    let path = element.strip_prefix("--file=").unwrap_or(element);
    format!("{path}/").starts_with(&case.workspace) && !path.split('/').any(|part| part == "..")
}

unharmed! {
    git_revision: shipped("git_log"), "revision", json!({ "count": 1, "revision": "harmless" }), |_, _| true;
    git_path: shipped("git_log"), "path", json!({ "count": 1, "path": "harmless" }), |_, _| true;
    git_show: shipped("git_show_file"), "revision", json!({ "revision": "harmless", "path": "x" }), |_, element| {
        !element.starts_with('-') && element.ends_with(":x")
    };
    git_range: shipped("git_diff_branches"), "head", json!({ "base": "main", "head": "harmless" }), |_, element| {
        element.starts_with("main...")
    };
    git_operand: tried("git", "log, '{x}'", ""), "x", json!({ "x": "harmless" }), |_, _| true;
    grep_text: shipped("search_code"), "text", json!({ "text": "harmless", "folder": "." }), |_, element| {
        element.starts_with("--regexp=")
    };
    grep_folder: shipped("search_code"), "folder", json!({ "text": "x", "folder": "harmless" }), is_inside;
    grep_operand: tried("grep", "x, '{x}'", ""), "x", json!({ "x": "harmless" }), |_, _| true;
    cat_path: shipped("read_file"), "path", json!({ "path": "harmless" }), is_inside;
    path_in_an_option: tried("cat", "'--file={x}'", ", format: path"), "x", json!({ "x": "harmless" }), is_inside;
    find_start: tried("find", "'{x}', '-maxdepth', '1'", ""), "x", json!({ "x": "harmless" }), |_, element| {
        !element.starts_with(['(', ')', '!', ',', '-'])
    };
    find_name: tried("find", "src, '-name', '{x}'", ""), "x", json!({ "x": "harmless" }), |_, element| {
        !element.starts_with(['(', ')', '!', ',', '-'])
    };
    tar_archive: tried("tar", "'-tf', '{x}'", ""), "x", json!({ "x": "harmless" }), |_, element| {
        !element.contains([':', '@'])
    };
    tar_member: tried("tar", "'--extract', '--file=a.tar', '{x}'", ""), "x", json!({ "x": "harmless" }), |_, element| {
        !element.contains([':', '@'])
    };
    curl_url: tried("curl", "'--globoff', '{x}'", ""), "x", json!({ "x": "harmless" }), |_, element| {
        !element.starts_with('@')
    };
    curl_data: tried("curl", "'--data', '{x}', 'https://api.example.com/'", ""), "x", json!({ "x": "harmless" }), |_, element| {
        !element.starts_with(['@', '<'])
    };
    curl_path: tried("curl", "'https://api.example.com/{x}'", ""), "x", json!({ "x": "harmless" }), |_, element| {
        element.starts_with("https://api.example.com/")
    };
    ssh_host: tried("ssh", "'{x}', uptime", ""), "x", json!({ "x": "harmless" }), is_plain;
    ssh_argument: tried("ssh", "host, ls, '{x}'", ""), "x", json!({ "x": "harmless" }), is_plain;
    unknown_command: tried("'true'", "sub, '{x}', '--o={x}'", "").replace("'--o={x}'", "end"), "x", json!({ "x": "harmless" }), |_, _| true;
}

fn is_plain(_: &Case, element: &str) -> bool {
    element.chars().all(|c| c.is_ascii_alphanumeric() || "._@%+=,/-".contains(c))
}

#[test]
fn harmless_values_are_not_refused() {
    let case = Case::new(&shipped("search_code"), "text", json!({ "text": "harmless", "folder": "." }));
    proptest!(ProptestConfig::with_cases(64), |(value in "[ -~]{1,40}")| {
        let element = case.check(&value)?;
        prop_assert_eq!(element.unwrap_or("--regexp=harmless".into()), format!("--regexp={value}"));
    });
}

#[test]
fn a_program_gets_exactly_what_was_said() {
    let world = World::new();
    let tool = world.handlers(Arc::new(Unjailed)).runnable(world.load(&shipped("echo_message")).unwrap());
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
