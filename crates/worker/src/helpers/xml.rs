//! What does an XML text say? A tree of `{tag, attrs, text, children}`, read in one pass without recursion.
//!
//! A tag keeps its prefix, and `xmlns` declarations are attributes like others. An element's text is that directly in it,
//! trimmed. Comments and processing instructions are left out. A document type is refused: it is how entities are
//! declared, and so none is known beyond the five of XML itself.

#[cfg(test)]
mod tests;

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_xml_entity,
    events::{BytesRef, BytesStart, Event},
};
use serde_json::{Map, Value};

use super::{Answer, ErrorClass, HelperError, shortened};

pub fn parse(text: &str) -> Result<Answer, HelperError> {
    if text.len() > MAX_INPUT {
        return Err(too_large());
    }
    let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    reader.config_mut().check_comments = true;
    let mut tree = Tree::default();
    loop {
        let event = reader.read_event();
        let line = || line_of(text, reader.error_position().max(reader.buffer_position()));
        match event.map_err(|error| failed(&format!("{error} (line {})", line())))? {
            Event::Start(start) => tree.open(&start).map_err(|error| error.at(line()))?,
            Event::Empty(start) => {
                tree.open(&start).and_then(|()| tree.close()).map_err(|error| error.at(line()))?;
            }
            Event::End(_) => tree.close().map_err(|error| error.at(line()))?,
            Event::Text(text) => tree.text(&text.xml10_content()).map_err(|error| error.at(line()))?,
            Event::CData(text) => tree.text(&text.xml10_content()).map_err(|error| error.at(line()))?,
            Event::GeneralRef(name) => {
                resolve(&name).and_then(|text| tree.text(&text)).map_err(|error| error.at(line()))?;
            }
            Event::DocType(_) => return Err(doctype_refused()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    let json = tree.finish().map_err(|error| error.at(line_of(text, u64::MAX)))?.to_string();
    if json.len() > MAX_OUTPUT {
        return Err(too_large());
    }
    Ok(Answer::Json(json))
}

/// The elements that are open, from the outermost to the innermost.
#[derive(Default)]
struct Tree {
    open: Vec<Element>,
    root: Option<Value>,
    elements: usize,
    attributes: usize,
}

struct Element {
    tag: String,
    attributes: Map<String, Value>,
    text: String,
    children: Vec<Value>,
}

/// What is wrong, before its line is known.
enum Problem {
    Malformed(String),
    TooLarge,
}

impl Problem {
    fn at(self, line: usize) -> HelperError {
        match self {
            Self::Malformed(message) => failed(&format!("{message} (line {line})")),
            Self::TooLarge => too_large(),
        }
    }
}

impl Tree {
    fn open(&mut self, start: &BytesStart<'_>) -> Result<(), Problem> {
        if self.open.is_empty() && self.root.is_some() {
            return Err(malformed("there is a second element after the outermost one"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(malformed(&format!("elements are nested more than {MAX_DEPTH} deep")));
        }
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            return Err(Problem::TooLarge);
        }
        let name = start.name();
        let attributes = attributes(start, MAX_ATTRIBUTES.saturating_sub(self.attributes))?;
        self.attributes += attributes.len();
        let element =
            Element { tag: checked(name.as_ref())?, attributes, text: String::new(), children: Vec::new() };
        self.open.push(element);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let Some(element) = self.open.pop() else {
            return Err(malformed("an element is closed that was never opened"));
        };
        // Moved, not written with `json!`, which would copy all that is inside once for every level around it.
        let mut value = Map::new();
        value.insert("tag".to_owned(), Value::String(element.tag));
        value.insert("attrs".to_owned(), Value::Object(element.attributes));
        value.insert("text".to_owned(), Value::String(element.text.trim().to_owned()));
        value.insert("children".to_owned(), Value::Array(element.children));
        let value = Value::Object(value);
        match self.open.last_mut() {
            Some(parent) => parent.children.push(value),
            None => self.root = Some(value),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Problem> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(malformed("there is text outside of the outermost element")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Value, Problem> {
        if let Some(element) = self.open.last() {
            return Err(malformed(&format!("element `{}` is never closed", element.tag.escape_debug())));
        }
        self.root.ok_or_else(|| malformed("there is no element"))
    }
}

/// At most `allowed` of them. The library's own search for attributes that stand twice compares each with all others.
fn attributes(start: &BytesStart<'_>, allowed: usize) -> Result<Map<String, Value>, Problem> {
    let mut attributes = Map::new();
    let mut written = start.attributes();
    for attribute in written.with_checks(false) {
        let attribute = attribute.map_err(|error| malformed(&error.to_string()))?;
        let name = checked(attribute.key.as_ref())?;
        let value = attribute
            .normalized_value(XmlVersion::default())
            .map_err(|error| malformed(&error.to_string()))?;
        if attributes.contains_key(&name) {
            return Err(malformed(&format!("attribute `{name}` stands twice in one tag")));
        }
        if attributes.len() >= allowed {
            return Err(Problem::TooLarge);
        }
        attributes.insert(name, Value::String(value.into_owned()));
    }
    Ok(attributes)
}

fn checked(name: &str) -> Result<String, Problem> {
    let may_start = |first: char| first.is_alphabetic() || matches!(first, '_' | ':');
    let may_follow = |next: char| {
        may_start(next) || next.is_numeric() || matches!(next, '-' | '.' | '\u{b7}') || !next.is_ascii()
    };
    if name.starts_with(may_start) && name.chars().all(may_follow) {
        return Ok(name.to_owned());
    }
    let shown = shortened(name.escape_debug(), MOST_SHOWN);
    Err(malformed(&format!("`{shown}` is no name of a tag or an attribute")))
}

fn resolve(name: &BytesRef<'_>) -> Result<String, Problem> {
    if let Some(character) = name.resolve_char_ref().map_err(|error| malformed(&error.to_string()))? {
        return Ok(character.to_string());
    }
    let name = name.xml10_content();
    resolve_xml_entity(&name).map(str::to_owned).ok_or_else(|| {
        let shown = shortened(name.escape_debug(), MOST_SHOWN);
        malformed(&format!("entity `&{shown};` is not known; write the character itself"))
    })
}

fn line_of(text: &str, offset: u64) -> usize {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

fn malformed(message: &str) -> Problem {
    Problem::Malformed(message.to_owned())
}

fn failed(message: &str) -> HelperError {
    HelperError::runtime(HELPER, "parse-failed", message)
}

fn doctype_refused() -> HelperError {
    let message = "a document type could declare entities and is refused; remove `<!DOCTYPE …>`";
    HelperError::new(ErrorClass::Security, HELPER, "doctype-refused", message)
}

fn too_large() -> HelperError {
    let message = format!(
        "the text or its tree has more than {MAX_ELEMENTS} elements, {MAX_ATTRIBUTES} attributes or 16 MiB; split it first"
    );
    HelperError::runtime(HELPER, "result-too-large", message)
}

const HELPER: &str = "safety.parser.xml";
/// Each level is two for the engine's JSON reader, whose stack is small.
const MAX_DEPTH: usize = 200;
const MAX_ELEMENTS: usize = 200_000;
/// In the whole text. Each takes the tree a hundred bytes and more, whatever it says.
const MAX_ATTRIBUTES: usize = 400_000;
const MAX_INPUT: usize = 16 << 20;
const MAX_OUTPUT: usize = 16 << 20;
const MOST_SHOWN: usize = 80;
