//! Parses XML into a JSON tree of `{tag, attrs, text, children}`, in one pass without recursion.
//!
//! A tag keeps its prefix, and `xmlns` declarations are ordinary attributes. The text of an element is its direct text,
//! trimmed. Comments and processing instructions are dropped. A document type is refused, because it could declare
//! entities; only the five entities of XML are known.

#[cfg(test)]
mod tests;

use std::{collections::HashSet, ops::Range};

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_xml_entity,
    events::{BytesRef, BytesStart, Event},
};

use super::{ErrorClass, HelperAnswer, HelperError, whole_or_length};

pub fn parse(text: &str) -> Result<HelperAnswer, HelperError> {
    if text.len() > MAX_INPUT {
        return Err(too_large());
    }
    let mut reader = Reader::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    reader.config_mut().check_comments = true;
    let mut tree = XmlTree::default();
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
    tree.finish().map(HelperAnswer::Json).map_err(|error| error.at(line_of(text, u64::MAX)))
}

/// The parsed content, nearly as long as its JSON. A tree of maps would take twenty times as much memory.
#[derive(Default)]
struct XmlTree {
    /// Tag and attributes of each element, in the order in which they open.
    heads: String,
    /// The text of each element, in the order in which they close.
    texts: String,
    elements: Vec<Element>,
    /// From the outermost to the innermost.
    open: Vec<OpenElement>,
    attributes: usize,
}

/// The depth of an element and the positions of its parts; its head begins where the previous one ends.
struct Element {
    depth: usize,
    head_end: usize,
    text: Range<usize>,
}

struct OpenElement {
    number: usize,
    tag: String,
    text: String,
}

/// An error whose line is not known yet.
enum XmlProblem {
    Malformed(String),
    TooLarge,
}

impl XmlProblem {
    fn at(self, line: usize) -> HelperError {
        match self {
            Self::Malformed(message) => failed(&format!("{message} (line {line})")),
            Self::TooLarge => too_large(),
        }
    }
}

impl XmlTree {
    fn open(&mut self, start: &BytesStart<'_>) -> Result<(), XmlProblem> {
        if self.open.is_empty() && !self.elements.is_empty() {
            return Err(malformed("there is a second root element"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(malformed(&format!("elements are nested more than {MAX_DEPTH} deep")));
        }
        if self.elements.len() >= MAX_ELEMENTS {
            return Err(XmlProblem::TooLarge);
        }
        let tag = checked(start.name().into_inner())?.to_owned();
        push_all(&mut self.heads, &["{\"tag\":", &quote(&tag), ",\"attrs\":{"]);
        self.push_attributes(start)?;
        self.heads.push_str("},\"text\":");
        let (number, depth) = (self.elements.len(), self.open.len());
        self.open.push(OpenElement { number, tag, text: String::new() });
        self.elements.push(Element { depth, head_end: self.heads.len(), text: 0..0 });
        self.within_output()
    }

    /// Checks for repeated attributes with a set. The library's own check compares each attribute with all others.
    fn push_attributes(&mut self, start: &BytesStart<'_>) -> Result<(), XmlProblem> {
        let mut names = HashSet::new();
        let mut written = start.attributes();
        for attribute in written.with_checks(false) {
            let attribute = attribute.map_err(|error| malformed(&error.to_string()))?;
            let name = checked(attribute.key.into_inner())?;
            let value = attribute
                .normalized_value(XmlVersion::default())
                .map_err(|error| malformed(&error.to_string()))?;
            if !names.insert(name) {
                return Err(malformed(&format!("attribute `{name}` is repeated in one tag")));
            }
            self.attributes += 1;
            if self.attributes > MAX_ATTRIBUTES {
                return Err(XmlProblem::TooLarge);
            }
            let separator = if names.len() > 1 { "," } else { "" };
            push_all(&mut self.heads, &[separator, &quote(name), ":", &quote(&value)]);
            self.within_output()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), XmlProblem> {
        let Some(closed) = self.open.pop() else {
            return Err(malformed("a closing tag has no opening tag"));
        };
        let start = self.texts.len();
        self.texts.push_str(&quote(closed.text.trim()));
        if let Some(element) = self.elements.get_mut(closed.number) {
            element.text = start..self.texts.len();
        }
        self.within_output()
    }

    fn text(&mut self, text: &str) -> Result<(), XmlProblem> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(malformed("there is text outside the root element")),
        }
        Ok(())
    }

    fn finish(&self) -> Result<String, XmlProblem> {
        if let Some(element) = self.open.last() {
            return Err(malformed(&format!("element `{}` is never closed", element.tag.escape_debug())));
        }
        if self.elements.is_empty() {
            return Err(malformed("there is no root element"));
        }
        Ok(self.json())
    }

    fn json(&self) -> String {
        let mut json = String::with_capacity(self.json_length());
        let (mut head_start, mut open) = (0, 0);
        for element in &self.elements {
            if open > element.depth {
                close_children(&mut json, open - element.depth);
                json.push(',');
            }
            json.push_str(self.heads.get(head_start..element.head_end).unwrap_or_default());
            json.push_str(self.texts.get(element.text.clone()).unwrap_or_default());
            json.push_str(",\"children\":[");
            (head_start, open) = (element.head_end, element.depth + 1);
        }
        close_children(&mut json, open);
        json
    }

    /// Counts a comma for every element, although some have none.
    fn json_length(&self) -> usize {
        self.heads.len() + self.texts.len() + self.elements.len() * ",\"children\":[]},".len()
    }

    /// Checked for every part, so the intermediate data stays as small as the result.
    fn within_output(&self) -> Result<(), XmlProblem> {
        if self.json_length() > MAX_OUTPUT { Err(XmlProblem::TooLarge) } else { Ok(()) }
    }
}

fn close_children(json: &mut String, levels: usize) {
    for _ in 0..levels {
        json.push_str("]}");
    }
}

fn push_all(json: &mut String, parts: &[&str]) {
    for part in parts {
        json.push_str(part);
    }
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn checked(name: &str) -> Result<&str, XmlProblem> {
    let may_start = |first: char| first.is_alphabetic() || matches!(first, '_' | ':');
    let may_follow = |next: char| {
        may_start(next) || next.is_numeric() || matches!(next, '-' | '.' | '\u{b7}') || !next.is_ascii()
    };
    if name.starts_with(may_start) && name.chars().all(may_follow) {
        return Ok(name);
    }
    let shown = whole_or_length(name, MAX_SHOWN);
    Err(malformed(&format!("`{shown}` is not a valid name of a tag or attribute")))
}

fn resolve(name: &BytesRef<'_>) -> Result<String, XmlProblem> {
    if let Some(character) = name.resolve_char_ref().map_err(|error| malformed(&error.to_string()))? {
        return Ok(character.to_string());
    }
    let name = name.xml10_content();
    resolve_xml_entity(&name).map(str::to_owned).ok_or_else(|| {
        let shown = whole_or_length(&name, MAX_SHOWN);
        malformed(&format!("unknown entity `&{shown};`; write the character itself"))
    })
}

fn line_of(text: &str, offset: u64) -> usize {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

fn malformed(message: &str) -> XmlProblem {
    XmlProblem::Malformed(message.to_owned())
}

fn failed(message: &str) -> HelperError {
    HelperError::runtime(HELPER, "parse-failed", message)
}

fn doctype_refused() -> HelperError {
    let message = "document types are refused, because they can declare entities; remove `<!DOCTYPE …>`";
    HelperError::new(ErrorClass::Security, HELPER, "doctype-refused", message)
}

fn too_large() -> HelperError {
    let message = format!(
        "the text or its tree has more than {MAX_ELEMENTS} elements, {MAX_ATTRIBUTES} attributes or 16 MiB; split it first"
    );
    HelperError::runtime(HELPER, "result-too-large", message)
}

const HELPER: &str = "safety.parser.xml";
/// Each level takes two levels of the engine's JSON parser, whose stack is small.
const MAX_DEPTH: usize = 200;
const MAX_ELEMENTS: usize = 200_000;
/// In the whole text. Each attribute takes the engine more than a hundred bytes, whatever its content.
const MAX_ATTRIBUTES: usize = 400_000;
const MAX_INPUT: usize = 16 << 20;
const MAX_OUTPUT: usize = 16 << 20;
const MAX_SHOWN: usize = 80;
