//! Holds the house style for English: few marks of indirect sentences, and no type name twice.
//!
//! A mark is a hint, not a verdict. Well-kept Rust projects have them in at most 1 % of their sentences.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

/// Words and constructions that make a sentence hard to follow.
const MARKS: &[&str] = &[
    r"(?i)\b(?:is|are|was|were|be) no \w+",
    r"^(?:What|Whoever|Whose|Of what|Of which|Where)\b[^?]*$",
    r"(?i)\b(?:is|are|was|were|be) told\b|\btells? of\b|\btold (?:of|by|as|to)\b|\bsaid of\b",
    r"(?i)\bso that\b",
    r"(?i)\b(?:whoever|nobody|somebody|whichever)\b",
    r"(?i)\b(?:stands?|stood) ",
    r"(?i)\b(?:came|come|comes) of\b|, came \S+",
    r"(?i)\b(?:anew|for want of|likewise|of (?:its|their|one's) own|lays? open|laid open|lent|let in|for ever|as it were|(?:is|are) to be|thereby|in vain|purse|(?:their|its) like|shall|take[ns]? back|took back|mend(?:ed|ing|s)?|heed(?:ed|s)?|beside the|goes? on from)\b",
];

/// Ordinary phrases that would match a mark.
const ORDINARY: &[&str] = &[
    "no longer",
    "no more",
    "no doubt",
    "here is no",
    "here are no",
    "here was no",
    "stand for",
    "stands for",
    "stand alone",
    "stand out",
];

/// The largest share of marked sentences, in percent.
const BUDGETS: [(&str, f64); 3] = [("comments", 3.0), ("messages", 1.5), ("documents", 1.5)];

/// Type names that may be defined more than once, each for a reason.
const SHARED_TYPE_NAMES: &[&str] = &[
    "Error",  // the error of a crate or module, always written with its path
    "Result", // the matching alias
];

#[test]
fn comments_messages_and_documents_are_plain() {
    let marks: Vec<Regex> = MARKS.iter().map(|mark| Regex::new(mark).unwrap()).collect();
    let mut report = String::new();
    for ((kind, budget), texts) in BUDGETS.into_iter().zip([comments(), messages(), documents()]) {
        let (mut all, mut marked) = (0_u32, Vec::new());
        for (place, text) in texts {
            for sentence in sentences(&text) {
                all += 1;
                if marks.iter().any(|mark| mark.is_match(&sentence)) {
                    marked.push(format!("{place}: {sentence}"));
                }
            }
        }
        assert!(all > 500, "only {all} sentences found in {kind}; does the test still read the files?");
        let share = f64::from(u32::try_from(marked.len()).unwrap()) * 100.0 / f64::from(all);
        println!("{kind}: {all} sentences, {share:.1} % marked");
        if share > budget {
            marked.truncate(40);
            let marked = marked.join("\n  ");
            writeln!(report, "{kind}: {share:.1} % of {all} sentences, budget {budget} %\n  {marked}")
                .unwrap();
        }
    }
    assert!(report.is_empty(), "rewrite these in plain words (subject, verb, object):\n{report}");
}

#[test]
fn no_type_name_is_defined_twice() {
    let definition =
        Regex::new(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type|union) (\w+)").unwrap();
    // `type Item = …;` inside an `impl` names an associated type of another trait.
    let associated = Regex::new(r"^\s+type \w+(?:<[^>]*>)? =|^\s+type \w+(?::[^;]*)?;").unwrap();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files("rs").into_iter().filter(|path| !is_test(path)) {
        for (number, line) in (1..).zip(read(&path).lines()) {
            if let Some(found) = definition.captures(line).filter(|_| !associated.is_match(line)) {
                places.entry(found[1].to_owned()).or_default().push(format!("{}:{number}", shown(&path)));
            }
        }
    }
    let twice: Vec<String> = places
        .iter()
        .filter(|(name, places)| places.len() > 1 && !SHARED_TYPE_NAMES.contains(&name.as_str()))
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(twice.is_empty(), "these type names are defined more than once:\n{}", twice.join("\n"));
}

fn comments() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for path in files("rs") {
        let mut continues = false;
        for (number, line) in (1..).zip(read(&path).lines()) {
            let Some(text) = line.trim().strip_prefix("//") else {
                continues = false;
                continue;
            };
            let text = text.trim_start_matches(['/', '!']).trim();
            match found.last_mut().filter(|_| continues) {
                Some((_, block)) => block.extend([" ", text]),
                None => found.push((format!("{}:{number}", shown(&path)), text.to_owned())),
            }
            continues = true;
        }
    }
    found
}

fn messages() -> Vec<(String, String)> {
    let string = Regex::new(r#""((?:[^"\\]|\\.){20,})""#).unwrap();
    let mut found = Vec::new();
    for path in files("rs").into_iter().filter(|path| !is_test(path)) {
        for (number, line) in (1..).zip(read(&path).lines()) {
            if !line.trim().starts_with("//") {
                let texts = string.captures_iter(line).map(|text| text[1].to_owned());
                found.extend(texts.map(|text| (format!("{}:{number}", shown(&path)), text)));
            }
        }
    }
    found
}

fn documents() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in files("md") {
        let mut fenced = false;
        for (number, line) in (1..).zip(read(&path).lines()) {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                found.push((
                    format!("{}:{number}", shown(&path)),
                    line.trim().trim_matches(['|', '-', ' ']).to_owned(),
                ));
            }
        }
    }
    found
}

/// Splits a text into sentences of four words or more. Code in backticks counts as one word.
fn sentences(text: &str) -> Vec<String> {
    let mut plain = String::new();
    for (index, part) in text.split('`').enumerate() {
        plain += if index % 2 == 0 { part } else { "X" };
    }
    for phrase in ORDINARY {
        plain = plain.replace(phrase, "X");
    }
    let mut found = vec![String::new()];
    for word in plain.split_whitespace() {
        if let Some(last) = found.last_mut() {
            last.extend([" ", word]);
        }
        if word.ends_with(['.', '?', '!', ':', ';']) {
            found.push(String::new());
        }
    }
    found.into_iter().map(|it| it.trim().to_owned()).filter(|it| it.split(' ').count() >= 4).collect()
}

fn is_test(path: &Path) -> bool {
    let path = shown(path);
    path.contains("/tests") || path.ends_with("tests.rs") || path.contains("/benches/")
}

/// All files of the repository with this extension.
fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                if !["target", ".git", "node_modules", "vendor"].iter().any(|skipped| name == *skipped) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|it| it == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
