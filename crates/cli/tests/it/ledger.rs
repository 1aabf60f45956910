//! The ledger of attacks: `tests/attacks/ledger/*.yaml` names existing tests, and `docs/attacks` is generated from it.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use toolgate_spec::{Format, value_from_text};

use crate::generated::compare;

#[test]
fn every_ledger_row_names_an_existing_test() {
    let mut found = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        for row in &page.rows {
            wrong.extend(
                complaints(&page, row)
                    .into_iter()
                    .map(|what| format!("tests/attacks/ledger/{}.yaml, `{}`: {what}", page.name, row.attack)),
            );
            found += row.tests.len();
        }
    }
    assert!(found >= 600, "only {found} tests were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ledger_pages_are_up_to_date() {
    let pages = pages();
    let tests: usize = pages.iter().flat_map(|page| &page.rows).map(|row| row.tests.len()).sum();
    let rows: usize = pages.iter().map(|page| page.rows.len()).sum();
    let mut index = format!(
        "# Attacks\n\n\
         The ledger lists {rows} kinds of attack, the mechanism that stops each, and {tests} tests that prove it.\n\
         [How to run them](../tests/attacks/README.md). Paths are relative to `crates/`.\n\n\
         |page|rows|about|\n|---|---|---|\n"
    );
    for page in &pages {
        let about = page.about.replace("](../", "](");
        writeln!(index, "|[{}](attacks/{}.md)|{}|{about}|", page.title, page.name, page.rows.len()).unwrap();
        compare(&format!("docs/attacks/{}.md", page.name), &text_of(page));
    }
    index += "\nThe pages are generated. To add a row, edit `tests/attacks/ledger/` and run `make bless`. A row without a test is rejected.\n";
    compare("docs/attacks.md", &index);
}

fn text_of(page: &LedgerPage) -> String {
    let mut text = format!("# {}\n\n{}\n", page.title, page.about);
    if let Some(folder) = &page.tests_in {
        writeln!(text, "Tests without a path are in `{folder}`.").unwrap();
    }
    text += "\n|attack|stopped by|test|\n|---|---|---|\n";
    for row in &page.rows {
        let mut last_file = "";
        let mut tests = Vec::new();
        for test in &row.tests {
            match test.split_once("::") {
                Some((file, name)) if file == last_file => tests.push(format!("`{name}`")),
                Some((file, name)) => {
                    last_file = file;
                    tests.push(format!("`{file}`: `{name}`"));
                }
                None => tests.push(format!("`{test}`")),
            }
        }
        writeln!(text, "|{}|{}|{}|", row.attack, row.stopped_by, tests.join(", ")).unwrap();
    }
    text + "\n[All pages](../attacks.md)\n"
}

#[test]
fn index_links_to_every_ledger_page() {
    let folder = root().join("tests/attacks");
    let text = fs::read_to_string(folder.join("README.md")).unwrap();
    let links: Vec<&str> =
        text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect();
    assert!(links.len() >= 10, "{links:?}");
    for link in links {
        assert!(folder.join(link).exists(), "tests/attacks/README.md: `{link}` does not exist");
    }
}

#[test]
fn row_without_a_test_is_reported() {
    for (stopped_by, test, complaint) in [
        ("b", "cli/tests/it/ledger.rs", None),
        ("`cli/src/{lib,main}.rs`", "cli/tests/it/ledger.rs::row_without_a_test_is_reported", None),
        ("b", "spec/tests/manifests/danger_example_*.yaml", None),
        ("b", "limits_while_true.js", None),
        ("b", "limits_of_nothing.js", Some("`tests/attacks/js/limits_of_nothing.js` does not exist")),
        ("b", "nothing", Some("`nothing` is not a path")),
        ("`cli/src/no.rs`", "cli/tests/it", Some("`crates/cli/src/no.rs` does not exist")),
        ("`src/main.rs`", "cli/tests/it", Some("`src/main.rs` does not exist")),
        ("`cli/src/{main,no}.rs`", "cli/tests/it", Some("`crates/cli/src/no.rs` does not exist")),
        ("b", "cli/tests/it/no_*.rs", Some("`crates/cli/tests/it/no_*.rs` does not exist")),
        ("b", "cli/tests/it/ledger.rs::every", Some("`crates/cli/tests/it/ledger.rs` has no `every`")),
    ] {
        let row =
            LedgerRow { attack: "a".into(), stopped_by: stopped_by.into(), tests: vec![test.to_owned()] };
        let page =
            LedgerPage { name: "", title: String::new(), about: String::new(), tests_in: None, rows: vec![] };
        assert_eq!(complaints(&page, &row), complaint.into_iter().collect::<Vec<_>>(), "{stopped_by} {test}");
    }
    let row =
        |attack: &str, tests: Vec<String>| LedgerRow { attack: attack.into(), stopped_by: "b".into(), tests };
    let page =
        LedgerPage { name: "", title: String::new(), about: String::new(), tests_in: None, rows: vec![] };
    assert_eq!(complaints(&page, &row("a", vec![])), ["no test is named"]);
    let long = "word ".repeat(16);
    assert_eq!(
        complaints(&page, &row(&long, vec!["cli/tests/it".into()])),
        ["an attack has at most 15 words"]
    );
}

struct LedgerPage {
    name: &'static str,
    title: String,
    about: String,
    /// Directory or file of the tests that have no path.
    tests_in: Option<String>,
    rows: Vec<LedgerRow>,
}

struct LedgerRow {
    attack: String,
    stopped_by: String,
    /// `path` or `path::function`.
    tests: Vec<String>,
}

/// The files of the ledger, in the order of a call.
const PAGES: [&str; 13] = [
    "documents",
    "clients",
    "approvals",
    "paths",
    "commands",
    "javascript",
    "jail",
    "containers",
    "workers",
    "egress",
    "results",
    "journal",
    "fuzzing",
];

fn pages() -> Vec<LedgerPage> {
    let folder = root().join("tests/attacks/ledger");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), PAGES.len(), "every file of the ledger is in `PAGES`");
    PAGES.iter().map(|name| page(&folder, name)).collect()
}

fn page(folder: &Path, name: &'static str) -> LedgerPage {
    let text = fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap();
    let value = value_from_text(&text, Format::Yaml).unwrap_or_else(|finding| panic!("{name}: {finding:?}"));
    let text_at = |value: &Value, key: &str| {
        value[key].as_str().unwrap_or_else(|| panic!("{name}: no text `{key}` in {value}")).to_owned()
    };
    let rows = value["rows"].as_array().unwrap().iter().map(|row| LedgerRow {
        attack: text_at(row, "attack"),
        stopped_by: text_at(row, "stopped_by"),
        tests: match &row["test"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(several) => several.iter().map(|one| one.as_str().unwrap().to_owned()).collect(),
            _ => Vec::new(),
        },
    });
    LedgerPage {
        name,
        title: text_at(&value, "title"),
        about: text_at(&value, "about"),
        tests_in: value["tests_in"].as_str().map(str::to_owned),
        rows: rows.collect(),
    }
}

fn complaints(page: &LedgerPage, row: &LedgerRow) -> Vec<String> {
    let mut found = Vec::new();
    for word in row.stopped_by.split('`').skip(1).step_by(2) {
        if let Some(path) = path_of(word) {
            found.extend(missing(&path, None));
        }
    }
    for test in &row.tests {
        let (file, name) =
            test.split_once("::").map_or((test.as_str(), None), |(file, name)| (file, Some(name)));
        match (path_of(file), &page.tests_in) {
            (Some(path), _) => found.extend(missing(&path, name)),
            (None, Some(folder)) => {
                found.extend(path_of(folder).into_iter().flat_map(|path| missing(&path, Some(test))));
            }
            (None, None) => found.push(format!("`{test}` is not a path")),
        }
    }
    if row.tests.is_empty() {
        found.push("no test is named".to_owned());
    }
    if row.attack.split_whitespace().count() > 15 {
        found.push("an attack has at most 15 words".to_owned());
    }
    found
}

fn missing(path: &str, name: Option<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for path in alternatives(path) {
        let files = files_at(&path);
        if files.is_empty() {
            found.push(format!("`{path}` does not exist"));
        } else if let Some(name) = name.filter(|name| !files.iter().any(|file| has(file, name))) {
            found.push(format!("`{path}` has no `{name}`"));
        }
    }
    found
}

/// The file that a word names, if it is a path. Paths start with the directory of a crate or of the repository; a hostile
/// script has no directory.
fn path_of(word: &str) -> Option<String> {
    let has_ending = |ending: &str| Path::new(word).extension().is_some_and(|extension| extension == ending);
    let (first, _) = word.split_once('/').unwrap_or((word, ""));
    if first == word {
        return has_ending("js").then(|| format!("tests/attacks/js/{word}"));
    }
    // Rows never mean the repository's own `.git`.
    if first.is_empty() || first == ".git" {
        return None;
    }
    if root().join("crates").join(first).is_dir() {
        return Some(format!("crates/{word}"));
    }
    (has_ending("rs") || root().join(first).is_dir()).then(|| word.to_owned())
}

/// `a/{b,c}.rs` is two files.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (names, after) = rest.split_once('}').unwrap();
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

/// The file, all files in the directory, or those that match the pattern.
fn files_at(name: &str) -> Vec<PathBuf> {
    let path = root().join(name);
    if let Some((begin, end)) = name.rsplit('/').next().and_then(|name| name.split_once('*')) {
        let fits = |name: &str| name.starts_with(begin) && name.ends_with(end);
        return within(path.parent().unwrap())
            .into_iter()
            .filter(|file| fits(&file.file_name().unwrap().to_string_lossy()))
            .collect();
    }
    if path.is_file() { vec![path] } else { within(&path) }
}

fn within(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

/// A function of this name, or a row of a table of tests.
fn has(file: &Path, name: &str) -> bool {
    let Ok(text) = fs::read_to_string(file) else { return false };
    let function = match file.extension().and_then(std::ffi::OsStr::to_str) {
        Some("c") => return text.contains(&format!(" {name}(")),
        Some("js") => "function",
        _ => "fn",
    };
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    text.split(&format!("{function} {name}")).skip(1).any(is_whole) || text.contains(&format!("\"{name}\""))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
