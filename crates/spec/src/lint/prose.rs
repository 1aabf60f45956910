//! Checks that models can choose the tool by its description and people can review it.

use serde_json::{Map, Value};

use super::{poison::characters::is_latin, report::LintReport};
use crate::{Code, Pointer, model::ToolSpec};

pub(super) fn check(document: &Map<String, Value>, spec: &ToolSpec, report: &mut LintReport<'_>) {
    // The schema has already rejected these values.
    if document.get("description").is_some_and(|value| !value.is_string() && !value.is_null()) {
        return;
    }
    length(spec, report);
    return_shape(spec, report);
    locale(&spec.description, report);
}

fn length(spec: &ToolSpec, report: &mut LintReport<'_>) {
    let description = spec.description.trim();
    let is_draft = spec.draft == Some(true);
    let say = match description.len() {
        0 if is_draft => return,
        0 => "there is no description".to_owned(),
        1..SHORTEST if description.chars().count() < SHORTEST => {
            format!("the description has fewer than {SHORTEST} characters")
        }
        length if length > LONGEST && description.chars().count() > LONGEST => {
            format!("the description has more than {LONGEST} characters")
        }
        _ => return,
    };
    let remedy = "say in one or two sentences what the tool does, what it needs and what comes back";
    report.add(Code::LintDescription, at(), say, remedy);
}

fn return_shape(spec: &ToolSpec, report: &mut LintReport<'_>) {
    let description = &spec.description;
    if description.trim().is_empty() || spec.governance.output.is_some() {
        return;
    }
    let has_sketch = description
        .find('{')
        .is_some_and(|open| description.get(open..).is_some_and(|rest| rest.contains('}')));
    let has_arrow = ["->", "=>", "→"].iter().any(|arrow| description.contains(arrow));
    if has_sketch || has_arrow {
        return;
    }
    let lower = description.to_ascii_lowercase();
    if !["return", "respon", "yields", "output", "result is"].iter().any(|word| lower.contains(word)) {
        report.add(
            Code::LintReturnShape,
            at(),
            "the description does not say what comes back",
            "end it with a sketch such as `Returns {city, temperatureC}`, or declare an output schema",
        );
    }
}

/// Requires English prose; quotes may use other scripts.
fn locale(description: &str, report: &mut LintReport<'_>) {
    if description.is_ascii() {
        return;
    }
    let letters = description.chars().filter(|character| character.is_alphabetic()).count();
    let foreign =
        description.chars().filter(|character| character.is_alphabetic() && !is_latin(*character)).count();
    if foreign * 2 > letters {
        report.add(
            Code::LintLocale,
            at(),
            "most of the description is not written in Latin letters",
            "describe the tool in English; quote other scripts where they matter",
        );
    } else if foreign * NOTICEABLE > letters && !names_its_locale(description) {
        report.add(
            Code::LintLocale,
            at(),
            "a good part of the description is in another script, and it does not begin with its locale",
            "begin with the locale, such as `Korean tool — …`",
        );
    }
}

/// "Korean tool — …", "Simplified Chinese tool: …"
fn names_its_locale(description: &str) -> bool {
    for (before, word) in description.split_whitespace().take(4).enumerate() {
        let word = word.trim_end_matches([':', ',', '.', '-', '—', '–']);
        if word.eq_ignore_ascii_case("tool") || word.eq_ignore_ascii_case("tools") {
            return before > 0;
        }
    }
    false
}

fn at() -> Pointer {
    Pointer::new("/description")
}

const SHORTEST: usize = 12;
const LONGEST: usize = 2000;
/// One letter in this many.
const NOTICEABLE: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(description: &str, expect: &[Code]) {
        let document = serde_json::json!({ "name": "t", "description": description });
        let document = document.as_object().unwrap();
        let spec = crate::decode::tool(document, &mut Vec::new());
        let mut findings = Vec::new();
        super::check(document, &spec, &mut LintReport::new(&mut findings));
        let codes: Vec<Code> = findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, expect, "{description}");
    }

    #[test]
    fn length_and_shape() {
        check("", &[Code::LintDescription]);
        check("Adds.", &[Code::LintDescription, Code::LintReturnShape]);
        check("Adds two numbers.", &[Code::LintReturnShape]);
        check("Adds two numbers. Returns {sum}.", &[]);
        check("Adds two numbers -> sum", &[]);
        check("Hashes a text with SHA-256. Returns lowercase hex.", &[]);
        check(&format!("Returns {}", "x".repeat(2000)), &[Code::LintDescription]);
    }

    #[test]
    fn descriptions_are_english_and_may_quote() {
        check("네이버 뉴스를 검색합니다 {items}", &[Code::LintLocale]);
        check("Korean tool — searches news, e.g. '스프링 부트 뉴스 검색'. Returns {items}", &[]);
        check("Searches news, e.g. '스프링 부트 뉴스 검색'. Returns {items}", &[Code::LintLocale]);
        check("Formats a café's naïve résumé. Returns {text}, e.g. '서울'", &[]);
    }
}
