//! The texts that a command is given, for danger patterns: elements of its command line, standard input and environment.

use toolgate_gate::Refusal;
use toolgate_spec::ArgTemplate;

use super::arg::Arg;
use crate::cli::{line, program::conventions::Known};

/// The elements in which a caller's value stands, each by itself and all in one line. Leaves out the words that a search looks for.
pub fn elements(elements: &[Arg], known: &Known, line: &[String]) -> Vec<String> {
    let searches = known.searches(line);
    let mut texts = Vec::new();
    let mut before = None;
    for element in elements {
        if element.is_filled() && !(searches && gives_words(element, before)) {
            texts.push(element.text());
        }
        before = element.as_literal();
    }
    if texts.len() > 1 {
        texts.push(texts.join(" "));
    }
    texts
}

/// Standard input and variables in which a caller's value stands. Values of secrets are not known yet; the text around them is.
pub fn templates<'t>(
    templates: impl Iterator<Item = &'t ArgTemplate>,
    values: &line::Values<'_>,
) -> Result<Vec<String>, Refusal> {
    let is_filled = |template: &&ArgTemplate| template.names().any(|name| values.is_callers(name));
    templates.filter(is_filled).map(|template| values.known_text(template)).collect()
}

/// Is the caller's value a pattern: behind `--regexp=`, `--regexp`, `-e` or `-rne`?
fn gives_words(element: &Arg, before: Option<&str>) -> bool {
    match element.filled_parts().as_slice() {
        [(option, _)] if option.is_empty() => before.is_some_and(takes_words),
        [(option, _)] => takes_words(option),
        _ => false,
    }
}

fn takes_words(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(word) => word.len() > 2 && "regexp".starts_with(word.trim_end_matches('=')),
        None => option.strip_prefix('-').is_some_and(|letters| letters.ends_with('e')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::line::arg::{ArgText, Dashes};

    /// `{}` stands for the caller's value.
    #[track_caller]
    fn check(command: &str, elements: &[&str], expect: &[&str]) {
        let known = Known::of(command, command).unwrap();
        let filled: Vec<Arg> = elements
            .iter()
            .map(|element| {
                let Some((start, end)) = element.split_once("{}") else {
                    return Arg::of(vec![ArgText::Author((*element).to_owned())], Dashes::Refused);
                };
                let value = ArgText::Caller { name: "x".to_owned(), text: "/etc/passwd".to_owned() };
                let parts = vec![ArgText::Author(start.to_owned()), value, ArgText::Author(end.to_owned())];
                Arg::of(parts, Dashes::Refused)
            })
            .collect();
        let line: Vec<String> = filled.iter().map(Arg::text).collect();
        assert_eq!(super::elements(&filled, known, &line), expect, "{command} {elements:?}");
    }

    #[test]
    fn values_of_options_count_and_words_of_a_search_do_not() {
        check("curl", &["--data={}", "--url=https://a/"], &["--data=/etc/passwd"]);
        check("tar", &["-f{}"], &["-f/etc/passwd"]);
        check("grep", &["--regexp={}", "--", "docs"], &[]);
        check("grep", &["-rne", "{}", "docs"], &[]);
        check("grep", &["-e", "x", "--file={}"], &["--file=/etc/passwd"]);
        check("grep", &["--regexp={}", "--", "{}"], &["/etc/passwd"]);
        // Not a program that searches.
        check("sed", &["-e", "{}"], &["/etc/passwd"]);
        check("cp", &["a{}", "{}"], &["a/etc/passwd", "/etc/passwd", "a/etc/passwd /etc/passwd"]);
    }
}
