//! Does the ledger of attacks name files and tests that exist?

use std::{
    fs,
    path::{Path, PathBuf},
};

#[test]
fn every_row_of_the_ledger_leads_to_its_test() {
    let ledger = fs::read_to_string(root().join("docs/attacks.md")).unwrap();
    let is_row = |line: &str| line.starts_with("| ") && !line.starts_with("| attack |");
    let rows: Vec<(usize, &str)> = ledger.lines().enumerate().filter(|(_, line)| is_row(line)).collect();
    assert!(rows.len() >= 300, "only {} rows were found", rows.len());
    let wrong: Vec<String> = rows
        .iter()
        .flat_map(|(line, row)| {
            complaints(row).into_iter().map(move |what| format!("docs/attacks.md:{}: {what}", line + 1))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_of_groups_leads_to_each() {
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
fn a_row_that_leads_nowhere_is_found() {
    for (row, complaint) in [
        ("| a | b | `cli/tests/it/ledger.rs` |", None),
        (
            "| a | `cli/src/{lib,main}.rs` | `cli/tests/it/ledger.rs`: `a_row_that_leads_nowhere_is_found` |",
            None,
        ),
        ("| a | b | `spec/tests/manifests/danger_example_*.yaml` |", None),
        ("| a | b | `limits_while_true.js` |", None),
        ("| a | b | nobody looked |", Some("no test is named")),
        (
            "| a | b | `limits_of_nothing.js` |",
            Some("`tests/attacks/js/limits_of_nothing.js` does not exist"),
        ),
        ("| a | `cli/src/no.rs` | `cli/tests/it` |", Some("`crates/cli/src/no.rs` does not exist")),
        ("| a | `src/main.rs` | `cli/tests/it` |", Some("`src/main.rs` does not exist")),
        ("| a | `cli/src/{main,no}.rs` | `cli/tests/it` |", Some("`crates/cli/src/no.rs` does not exist")),
        ("| a | b | `cli/tests/it/no_*.rs` |", Some("`crates/cli/tests/it/no_*.rs` does not exist")),
        (
            "| a | b | `cli/tests/it/ledger.rs`: `every` |",
            Some("`crates/cli/tests/it/ledger.rs` has no `every`"),
        ),
    ] {
        assert_eq!(complaints(row), complaint.into_iter().collect::<Vec<_>>(), "{row}");
    }
}

fn complaints(row: &str) -> Vec<String> {
    let parts: Vec<&str> = row.split('`').collect();
    let mut found = Vec::new();
    for at in (1..parts.len()).step_by(2) {
        let Some(place) = place_of(parts[at]) else { continue };
        for place in alternatives(&place) {
            let files = files_at(&place);
            let name = name_behind(&parts[at + 1..]);
            if files.is_empty() {
                found.push(format!("`{place}` does not exist"));
            } else if let Some(name) = name.filter(|name| !files.iter().any(|file| has(file, name))) {
                found.push(format!("`{place}` has no `{name}`"));
            }
        }
    }
    let last_cell = row.trim_end_matches(['|', ' ']).rsplit(" | ").next().unwrap_or_default();
    if !last_cell.split('`').skip(1).step_by(2).any(|word| place_of(word).is_some()) {
        found.push("no test is named".to_owned());
    }
    found
}

/// Where a word leads if it is a path. Paths begin with the folder of a crate or of the repository; a hostile script
/// goes by its bare name.
fn place_of(word: &str) -> Option<String> {
    let has_ending = |ending: &str| Path::new(word).extension().is_some_and(|extension| extension == ending);
    let (first, _) = word.split_once('/').unwrap_or((word, ""));
    if first == word {
        return has_ending("js").then(|| format!("tests/attacks/js/{word}"));
    }
    // `.git` is a folder in a clone and a file in a worktree; no row means ours.
    if first.is_empty() || first == ".git" {
        return None;
    }
    if root().join("crates").join(first).is_dir() {
        return Some(format!("crates/{word}"));
    }
    (has_ending("rs") || root().join(first).is_dir()).then(|| word.to_owned())
}

/// `a/{b,c}.rs` is two files.
fn alternatives(place: &str) -> Vec<String> {
    let Some((before, rest)) = place.split_once('{') else { return vec![place.to_owned()] };
    let (names, after) = rest.split_once('}').unwrap();
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

/// The file, everything in the folder, or what the pattern names.
fn files_at(place: &str) -> Vec<PathBuf> {
    let path = root().join(place);
    if let Some((begin, end)) = place.rsplit('/').next().and_then(|name| name.split_once('*')) {
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

/// What a path is said to hold: the word that follows it with nothing but a colon between.
fn name_behind<'row>(parts: &[&'row str]) -> Option<&'row str> {
    match parts {
        [" " | ": ", name, ..] => Some(*name),
        _ => None,
    }
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
