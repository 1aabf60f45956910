//! The texts that a command is given, for danger patterns: elements of its command line, standard input and environment.

use toolgate_gate::Refusal;
use toolgate_spec::ArgTemplate;

use super::arg::Arg;
use crate::cli::{line, program::conventions::Conventions};

/// The elements that contain a caller's value, separately and joined to one line. Search patterns are left out.
pub fn elements(elements: &[Arg], conventions: &Conventions, line: &[String]) -> Vec<String> {
    let searches = conventions.searches(line);
    let mut texts = Vec::new();
    let mut before = None;
    for element in elements {
        if element.is_filled() && !(searches && gives_pattern(element, before)) {
            texts.push(element.text());
        }
        before = element.as_literal();
    }
    if texts.len() > 1 {
        texts.push(texts.join(" "));
    }
    texts
}

/// Standard input and variables that contain a caller's value. Secrets are not resolved yet; the text around them is
/// included.
pub fn templates<'t>(
    templates: impl Iterator<Item = &'t ArgTemplate>,
    values: &line::TemplateValues<'_>,
) -> Result<Vec<String>, Refusal> {
    let is_filled = |template: &&ArgTemplate| template.names().any(|name| values.is_callers(name));
    templates.filter(is_filled).map(|template| values.known_text(template)).collect()
}

/// Whether the caller's value is a search pattern: after `--regexp=`, `--regexp`, `-e` or `-rne`.
fn gives_pattern(element: &Arg, before: Option<&str>) -> bool {
    match element.filled_parts().as_slice() {
        [(option, _)] if option.is_empty() => before.is_some_and(takes_pattern),
        [(option, _)] => takes_pattern(option),
        _ => false,
    }
}

fn takes_pattern(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(word) => word.len() > 2 && "regexp".starts_with(word.trim_end_matches('=')),
        None => option.strip_prefix('-').is_some_and(|letters| letters.ends_with('e')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::line::arg::{ArgText, LeadingDash};

    /// `{}` stands for the caller's value.
    #[track_caller]
    fn check(command: &str, elements: &[&str], expect: &[&str]) {
        let conventions = Conventions::of(command, command).unwrap();
        let filled: Vec<Arg> = elements
            .iter()
            .map(|element| {
                let Some((start, end)) = element.split_once("{}") else {
                    return Arg::of(vec![ArgText::Author((*element).to_owned())], LeadingDash::Denied);
                };
                let value = ArgText::Caller { name: "x".to_owned(), text: "/etc/passwd".to_owned() };
                let parts = vec![ArgText::Author(start.to_owned()), value, ArgText::Author(end.to_owned())];
                Arg::of(parts, LeadingDash::Denied)
            })
            .collect();
        let line: Vec<String> = filled.iter().map(Arg::text).collect();
        assert_eq!(super::elements(&filled, conventions, &line), expect, "{command} {elements:?}");
    }

    #[test]
    fn option_values_are_included_and_search_patterns_are_not() {
        check("curl", &["--data={}", "--url=https://a/"], &["--data=/etc/passwd"]);
        check("tar", &["-f{}"], &["-f/etc/passwd"]);
        check("grep", &["--regexp={}", "--", "docs"], &[]);
        check("grep", &["-rne", "{}", "docs"], &[]);
        check("grep", &["-e", "x", "--file={}"], &["--file=/etc/passwd"]);
        check("grep", &["--regexp={}", "--", "{}"], &["/etc/passwd"]);
        // Not a search program.
        check("sed", &["-e", "{}"], &["/etc/passwd"]);
        check("cp", &["a{}", "{}"], &["a/etc/passwd", "/etc/passwd", "a/etc/passwd /etc/passwd"]);
    }
}
