//! Finds positions in JSON text. Runs only if there are findings, so valid documents cost nothing. Stops early on
//! invalid JSON and then finds fewer positions.

use std::collections::HashMap;

use super::SourceSpans;
use crate::{Pointer, SourceSpan};

/// One member of an object, as written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct JsonMember {
    pub name: String,
    pub key: SourceSpan,
    pub value: SourceSpan,
}

/// The spans of the requested token paths, in their order.
pub(super) fn places(text: &str, wanted: &[Vec<String>]) -> Vec<Option<SourceSpans>> {
    let mut found = vec![None; wanted.len()];
    let all: Vec<usize> = (0..wanted.len()).collect();
    let mut scanner = Scanner { text, at: 0 };
    scanner.descend(wanted, &all, 0, None, &mut found);
    found
}

/// The top-level members of an object; `None` if the text is not an object.
pub(super) fn members(text: &str) -> Option<Vec<JsonMember>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut members = Vec::new();
    scanner.skip_space();
    scanner.each_member(|scanner, name, key| {
        let value = scanner.skip_value()?;
        members.push(JsonMember { name, key, value });
        Some(())
    })?;
    Some(members)
}

/// The spans of an array's elements; `None` if the text is not an array.
pub(super) fn elements(text: &str) -> Option<Vec<SourceSpan>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut elements = Vec::new();
    scanner.skip_space();
    scanner.each_element(|scanner, _| {
        elements.push(scanner.skip_value()?);
        Some(())
    })?;
    Some(elements)
}

/// The innermost value at an offset, as far as the text can be parsed.
pub(super) fn pointer_at(text: &str, offset: usize) -> Pointer {
    let mut open: Vec<JsonStep> = Vec::new();
    let mut scanner = Scanner { text, at: 0 };
    loop {
        scanner.skip_space();
        let Some(byte) = scanner.peek() else { break };
        if scanner.at >= offset {
            break;
        }
        match byte {
            b'{' => open.push(JsonStep::Member(None)),
            b'[' => open.push(JsonStep::Element(0)),
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some(JsonStep::Element(index)) => *index += 1,
                Some(JsonStep::Member(name)) => *name = None,
                None => {}
            },
            b'"' => {
                let Some(span) = scanner.skip_string() else { break };
                if let Some(JsonStep::Member(name @ None)) = open.last_mut() {
                    *name = Some(unescape(text, span));
                }
                continue;
            }
            _ => {}
        }
        scanner.at += 1;
    }
    open.iter().take(MAX_POINTER_TOKENS).fold(Pointer::root(), |pointer, step| match step {
        JsonStep::Member(Some(name)) => pointer.key(name),
        JsonStep::Member(None) => pointer,
        JsonStep::Element(index) => pointer.index(*index),
    })
}

enum JsonStep {
    Member(Option<String>),
    Element(usize),
}

struct Scanner<'text> {
    text: &'text str,
    at: usize,
}

impl Scanner<'_> {
    /// Descends only along requested paths. The depth limit of the reader bounds the recursion, because every
    /// requested path leads to a parsed value.
    fn descend(
        &mut self,
        wanted: &[Vec<String>],
        here: &[usize],
        depth: usize,
        key: Option<SourceSpan>,
        found: &mut [Option<SourceSpans>],
    ) -> Option<()> {
        self.skip_space();
        let start = self.at;
        let mut inside: HashMap<&str, Vec<usize>> = HashMap::new();
        for which in here {
            if let Some(token) = wanted.get(*which).and_then(|path| path.get(depth)) {
                inside.entry(token).or_default().push(*which);
            }
        }
        let mut into = |scanner: &mut Self, token: &str, key: Option<SourceSpan>| match inside.get(token) {
            Some(some) => scanner.descend(wanted, some, depth + 1, key, found),
            None => scanner.skip_value().map(|_| ()),
        };
        match self.peek()? {
            b'{' if !inside.is_empty() => {
                self.each_member(|scanner, name, key| into(scanner, &name, Some(key)))?;
            }
            b'[' if !inside.is_empty() => {
                self.each_element(|scanner, index| into(scanner, &index.to_string(), None))?;
            }
            _ => {
                self.skip_value()?;
            }
        }
        let place = SourceSpans { key, value: SourceSpan::new(start, self.at) };
        for which in here {
            if wanted.get(*which).is_some_and(|path| path.len() == depth)
                && let Some(slot) = found.get_mut(*which)
            {
                *slot = Some(place);
            }
        }
        Some(())
    }

    fn each_member(
        &mut self,
        mut visit: impl FnMut(&mut Self, String, SourceSpan) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        self.skip_space();
        if self.accept(b'}') {
            return Some(());
        }
        loop {
            self.skip_space();
            let key = self.skip_string()?;
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            visit(self, unescape(self.text, key), key)?;
            self.skip_space();
            if self.accept(b'}') {
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    fn each_element(&mut self, mut visit: impl FnMut(&mut Self, usize) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        self.skip_space();
        if self.accept(b']') {
            return Some(());
        }
        for index in 0.. {
            self.skip_space();
            visit(self, index)?;
            self.skip_space();
            if self.accept(b']') {
                return Some(());
            }
            self.expect(b',')?;
        }
        None
    }

    /// Skips one value without recursion, at any depth.
    fn skip_value(&mut self) -> Option<SourceSpan> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            self.skip_space();
            match self.peek()? {
                b'"' => {
                    self.skip_string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    let word = self
                        .rest()
                        .find([',', ']', '}', ' ', '\t', '\n', '\r', ':'])
                        .unwrap_or(self.rest().len());
                    if word == 0 {
                        return None;
                    }
                    self.at += word;
                }
            }
            if depth == 0 {
                return Some(SourceSpan::new(start, self.at));
            }
        }
    }

    fn skip_string(&mut self) -> Option<SourceSpan> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(SourceSpan::new(start, self.at));
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.accept(byte).then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

fn unescape(text: &str, span: SourceSpan) -> String {
    let quoted = text.get(span.range()).unwrap_or_default();
    serde_json::from_str(quoted).unwrap_or_else(|_| quoted.trim_matches('"').to_owned())
}

/// Long enough to find the position; bounds the output for deeply nested documents.
const MAX_POINTER_TOKENS: usize = 64;
