//! Checks every example tool and every complete document in `docs/`.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use std::{fs, path::PathBuf};

use toolgate_spec::{Finding, Format, LineIndex};

#[test]
fn example_tools_have_no_errors() {
    let tools = example_tools();
    assert!(tools.len() >= 12, "only {} examples", tools.len());
    for path in tools {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.display().to_string();
        assert!(
            Format::of_file_name(&name) == Format::Json
                || text.starts_with("# yaml-language-server: $schema="),
            "{name} tells editors its schema"
        );
        check(&name, &text, Format::of_file_name(&name));
    }
}

#[test]
fn simplest_example_is_short() {
    let shortest = example_tools().iter().map(|path| fs::read_to_string(path).unwrap().lines().count()).min();
    assert!(shortest.is_some_and(|lines| lines <= 15), "{shortest:?}");
}

#[test]
fn documents_in_docs_have_no_errors() {
    let manual = fs::read_to_string(root().join("docs/manifest.md")).unwrap();
    let documents: Vec<&str> = manual
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .filter(|block| block.starts_with("name:"))
        .collect();
    assert!(documents.len() >= 4, "only {} documents", documents.len());
    for (index, document) in documents.into_iter().enumerate() {
        check(&format!("docs/manifest.md, document {}", index + 1), document, Format::Yaml);
    }
}

#[track_caller]
#[expect(clippy::print_stdout, reason = "warnings are for whoever runs the tests with --nocapture")]
fn check(name: &str, text: &str, format: Format) {
    let file = toolgate_spec::check_text(text, format);
    let mut findings: Vec<Finding> =
        file.findings.into_iter().chain(file.tools.iter().flat_map(|tool| tool.findings.clone())).collect();
    toolgate_spec::locate(text, format, &mut findings);
    let shown: Vec<String> = findings.iter().map(|finding| show(name, text, finding)).collect();
    for line in &shown {
        println!("{line}");
    }
    assert!(!findings.iter().any(Finding::is_error), "{}", shown.join("\n"));
    assert!(!findings.iter().any(|finding| finding.blocks_publishing), "{}", shown.join("\n"));
    assert!(file.tools.iter().any(|tool| tool.spec.is_some()), "{name} holds a tool");
}

fn show(name: &str, text: &str, finding: &Finding) -> String {
    let line = finding.span.map_or(1, |span| LineIndex::new(text).position(span.start).line);
    format!("{name}:{line}: {} {}: {}", finding.code.name(), finding.at, finding.message)
}

fn example_tools() -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("examples/tools")).into_iter().flatten().flatten();
    let mut tools: Vec<PathBuf> = folders
        .flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten())
        .map(|file| file.path())
        .filter(|path| path.file_stem().is_some_and(|stem| stem == "tool"))
        .collect();
    tools.sort();
    tools
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
