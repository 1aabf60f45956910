//! `{name}` in a handler's texts: a parameter or static variable fills the marked part, and nothing else.
//!
//! `{{` and `}}` stand for braces. The result is one argument, header or segment, whatever the value contains;
//! quoting is the handler's business, and there is no shell to quote for.

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
                '\0' => return Err("a template has no NUL character".into()),
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
                        return Err(format!(
                            "`{{{name}}}` does not name a parameter; write `{{{{` for a brace"
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

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            ArgPart::Variable(name) => Some(name.as_str()),
            ArgPart::Literal(_) => None,
        })
    }
}
