//! Finds test values that test nothing.

use super::{report::LintReport, show::shown};
use crate::{
    Code, Pointer,
    model::{Param, ParamType, ToolSpec},
};

pub(super) fn check(spec: &ToolSpec, report: &mut LintReport<'_>) {
    for (index, param) in spec.params.iter().enumerate() {
        if let Some(value) = &param.test_value
            && is_filler(param, value)
        {
            report.add(
                Code::LintTestValue,
                Pointer::new("/params").index(index).key("testValue"),
                format!("`{}` is a filler", shown(value)),
                format!("give `{}` a value that a real call would have", shown(&param.name)),
            );
        }
    }
}

fn is_filler(param: &Param, value: &str) -> bool {
    if param.kind != ParamType::String || value.len() > LONGEST {
        return false;
    }
    let word = value.trim().to_lowercase();
    let word = word.trim_end_matches(['.', '!', '?']);
    let is_bracketed =
        (word.starts_with('<') && word.ends_with('>') && !word.contains("</") && !word.contains("/>"))
            && word.chars().filter(|c| *c == '<').count() == 1
            && !is_markup_param(&param.name);
    let is_repeated = word.len() >= 3 && word.bytes().all(|byte| matches!(byte, b'x' | b'?' | b'_'));
    let is_counting = matches!(word, "123" | "1234" | "12345" | "abc" | "abc123") && names_text(&param.name);
    FILLERS.contains(&word)
        || is_bracketed
        || is_repeated
        || word == "…"
        || word.starts_with("lorem ipsum")
        || is_counting
}

/// Whether the parameter takes words, where a number is meaningless.
fn names_text(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "name",
        "text",
        "title",
        "message",
        "query",
        "content",
        "subject",
        "description",
        "comment",
        "city",
        "body",
    ]
    .iter()
    .any(|word| name.ends_with(word))
}

/// Whether legitimate values of the parameter contain angle brackets.
fn is_markup_param(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["html", "xml", "markup", "svg", "tag"].iter().any(|word| name.contains(word))
}

const LONGEST: usize = 200;

/// Only words that no real call would have. `foo` and `bar` are missing, because authors legitimately test text tools
/// with them.
const FILLERS: [&str; 24] = [
    "test",
    "testing",
    "test value",
    "test string",
    "test data",
    "testvalue",
    "this is a test",
    "just a test",
    "asdf",
    "todo",
    "tbd",
    "fixme",
    "changeme",
    "change me",
    "placeholder",
    "string",
    "some value",
    "some text",
    "some string",
    "dummy",
    "undefined",
    "your value here",
    "insert here",
    "fill me in",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, kind: ParamType, value: &str, expect: bool) {
        let param = Param {
            name: name.into(),
            description: String::new(),
            required: true,
            kind,
            test_value: Some(value.into()),
        };
        assert_eq!(is_filler(&param, value), expect, "{name}: {value}");
    }

    #[test]
    fn fillers_are_distinguished_from_values() {
        for filler in ["test", "Test", "TODO", "xxx", "<your text>", "…", "Lorem ipsum dolor", "123"] {
            check("name", ParamType::String, filler, true);
        }
        for value in [
            "encode",
            "Seoul",
            "hello world",
            "KRW-BTC",
            "https://example.com",
            "true",
            "README.md",
            "sha256",
            "한국",
            "",
            " ",
            ".",
            "bar",
        ] {
            check("name", ParamType::String, value, false);
        }
        check("zip", ParamType::String, "12345", false);
        check("html", ParamType::String, "<br>", false);
        check("count", ParamType::Integer, "123", false);
        check("flag", ParamType::Boolean, "true", false);
        check("options", ParamType::Object, "{}", false);
    }
}
