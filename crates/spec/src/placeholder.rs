//! Parses `${NAME}` placeholders in static variables. They are not allowed anywhere else.
//!
//! The specification has two grammars. This one accepts an upper-case letter or underscore, then upper-case letters,
//! digits and underscores. Anything else between `${` and `}` is an error.

/// A static variable's value: literal text and references, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template {
    text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TemplatePart {
    Literal(String),
    Variable(String),
}

/// The part of a value that is not a valid placeholder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadPlaceholder(pub String);

impl Template {
    pub fn parse(text: &str) -> Result<Self, BadPlaceholder> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find(OPEN) {
            let (literal, from) = rest.split_at(start);
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            }
            let inside = from.strip_prefix(OPEN).unwrap_or_default();
            let Some(end) = inside.find('}') else { return Err(BadPlaceholder(shorten(from))) };
            let (name, after) = inside.split_at(end);
            if !is_variable_name(name) {
                return Err(BadPlaceholder(shorten(&format!("{OPEN}{name}}}"))));
            }
            parts.push(TemplatePart::Variable(name.to_owned()));
            rest = after.strip_prefix('}').unwrap_or_default();
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn parts(&self) -> &[TemplatePart] {
        &self.parts
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Variable(name) => Some(name.as_str()),
            TemplatePart::Literal(_) => None,
        })
    }

    /// The text without its references.
    pub(crate) fn literal(&self) -> String {
        let literals = self.parts.iter().map(|part| match part {
            TemplatePart::Literal(text) => text.as_str(),
            TemplatePart::Variable(_) => "",
        });
        literals.collect()
    }

    /// Whether the value has no references.
    pub fn is_literal(&self) -> bool {
        self.names().next().is_none()
    }
}

/// Whether `${name}` is a placeholder.
pub fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_uppercase() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    if text.chars().count() <= MOST {
        text.to_owned()
    } else {
        text.chars().take(MOST).chain("…".chars()).collect()
    }
}

const OPEN: &str = "${";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let shown = match Template::parse(text) {
            Ok(template) => template
                .parts()
                .iter()
                .map(|part| match part {
                    TemplatePart::Literal(text) => format!("'{text}'"),
                    TemplatePart::Variable(name) => name.clone(),
                })
                .collect::<Vec<_>>()
                .join(" "),
            Err(BadPlaceholder(piece)) => format!("bad: {piece}"),
        };
        assert_eq!(shown, expect);
    }

    #[test]
    fn anchored_embedded_and_several() {
        check("${KEY}", "KEY");
        check("Bearer ${KEY}", "'Bearer ' KEY");
        check("${_A}:${B2}!", "_A ':' B2 '!'");
        check("plain $ {text} }", "'plain $ {text} }'");
        check("", "");
    }

    #[test]
    fn malformed_placeholder_is_rejected() {
        for (text, piece) in [
            ("${key}", "${key}"),
            ("${}", "${}"),
            ("${1A}", "${1A}"),
            ("a ${OPEN", "${OPEN"),
            ("${A-B}", "${A-B}"),
            ("${${A}}", "${${A}"),
        ] {
            check(text, &format!("bad: {piece}"));
        }
    }
}
