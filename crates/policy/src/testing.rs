//! Test documents, written as additions to a plain one.

use toolgate_spec::{Format, check_text, model::ToolSpec};

#[track_caller]
pub(crate) fn spec(document: &str) -> ToolSpec {
    let file = check_text(document, Format::Yaml);
    let tool = file.tools.into_iter().next().unwrap_or_else(|| panic!("{:?}\n{document}", file.findings));
    let errors: Vec<_> = tool.findings.iter().filter(|finding| finding.is_error()).collect();
    tool.spec.clone().unwrap_or_else(|| panic!("{errors:?}\n{document}"))
}

/// Asserts that `check` rejects the document with `pointer: message`.
#[track_caller]
pub(crate) fn refused(document: &str, expect: &str) {
    let file = check_text(document, Format::Yaml);
    let tool = file.tools.into_iter().next().unwrap_or_else(|| panic!("{:?}\n{document}", file.findings));
    let errors = tool.findings.iter().filter(|finding| finding.is_error());
    let shown: Vec<String> = errors.map(|finding| format!("{}: {}", finding.at, finding.message)).collect();
    assert_eq!((shown, tool.spec.is_none()), (vec![expect.to_owned()], true), "\n{document}");
}

/// A JavaScript tool named `t`, with more fields.
pub(crate) fn js(more: &str) -> String {
    format!("{{name: t, code: return 1, codeType: Javascript, {}}}", fields(more))
}

/// A manifest named `t` that reads, unless the fields change that.
pub(crate) fn manifest(handler: &str, more: &str) -> String {
    let classification = if more.contains("classification:") { "" } else { "classification: read, " };
    format!("{{name: t, {classification}handler: {{{handler}}}, {}}}", fields(more))
}

fn fields(more: &str) -> &str {
    more.strip_prefix('{').and_then(|more| more.strip_suffix('}')).unwrap_or(more)
}

pub(crate) const PLAIN: &str = "{name: t, code: return 1, codeType: Javascript}";
