//! Parses `{name}` templates in handler texts. A parameter or static variable fills each marked part.
//!
//! `{{` and `}}` are escaped braces. The result is always one argument, header or path segment, whatever the value
//! contains. No shell is involved, so nothing needs quoting.

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ArgTemplate {
    text: String,
    parts: Vec<ArgPart>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ArgPart {
    Literal(String),
    Variable(String),
}

impl ArgTemplate {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\0' => return Err("a template must not contain a NUL character".into()),
                '{' if characters.next_if_eq(&'{').is_some() => literal.push('{'),
                '}' if characters.next_if_eq(&'}').is_some() => literal.push('}'),
                '}' => return Err("`}` without `{`; write `}}` for a brace".into()),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match characters.next() {
                            Some('}') => break,
                            Some(inside) => name.push(inside),
                            None => return Err("`{` is never closed; write `{{` for a brace".into()),
                        }
                    }
                    if !crate::identifier::is_identifier(&name) {
                        let shown: String = name.escape_debug().take(MOST_SHOWN).collect();
                        return Err(format!(
                            "`{{{shown}}}` does not name a parameter; write `{{{{` for a brace"
                        ));
                    }
                    if !literal.is_empty() {
                        parts.push(ArgPart::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(ArgPart::Variable(name));
                }
                other => literal.push(other),
            }
        }
        if !literal.is_empty() {
            parts.push(ArgPart::Literal(literal));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn parts(&self) -> &[ArgPart] {
        &self.parts
    }

    /// Returns the name if the template consists of exactly one variable.
    pub fn whole(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [ArgPart::Variable(name)] => Some(name),
            _ => None,
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            ArgPart::Variable(name) => Some(name.as_str()),
            ArgPart::Literal(_) => None,
        })
    }
}

const MOST_SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let shown = match ArgTemplate::parse(text) {
            Ok(template) => template
                .parts()
                .iter()
                .map(|part| match part {
                    ArgPart::Literal(text) => format!("'{text}'"),
                    ArgPart::Variable(name) => name.clone(),
                })
                .collect::<Vec<_>>()
                .join(" "),
            Err(why) => format!("bad: {why}"),
        };
        assert!(shown.starts_with(expect) && (shown == expect || expect.starts_with("bad")), "{shown}");
    }

    #[test]
    fn whole_embedded_and_escaped() {
        check("", "");
        check("{x}", "x");
        check("--max={n}", "'--max=' n");
        check("{a}{b}", "a b");
        check("{{x}}", "'{x}'");
        check("{{{x}}}", "'{' x '}'");
        check("$(id) `id` ;", "'$(id) `id` ;'");
    }

    #[test]
    fn malformed_template_is_rejected() {
        for text in ["{", "}", "{x", "{x}}", "{}", "{ x}", "{x y}", "{a{b}", "{x;}", "{class}"] {
            check(text, "bad: `");
        }
        check("a\0b", "bad: a template must not contain a NUL");
    }

    #[test]
    fn template_is_whole_only_if_it_is_one_variable() {
        assert_eq!(ArgTemplate::parse("{x}").unwrap().whole(), Some("x"));
        for text in ["", "x", "{x}{y}", "-{x}", "{{x}}"] {
            assert_eq!(ArgTemplate::parse(text).unwrap().whole(), None, "{text}");
        }
    }
}
