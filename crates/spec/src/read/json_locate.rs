//! Finds places in JSON text. Runs only when there is something to point at, so that clean documents pay nothing.
//! Tolerant by design: on text that is not JSON it stops early and finds fewer places.

use std::collections::HashMap;

use super::Place;
use crate::{Pointer, Span};

/// One member of an object, as written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Member {
    pub name: String,
    pub key: Span,
    pub value: Span,
}

/// The places of the wanted token paths, in their order.
pub(super) fn places(text: &str, wanted: &[Vec<String>]) -> Vec<Option<Place>> {
    let mut found = vec![None; wanted.len()];
    let all: Vec<usize> = (0..wanted.len()).collect();
    let mut scanner = Scanner { text, at: 0 };
    scanner.descend(wanted, &all, 0, None, &mut found);
    found
}

/// The top-level members of an object; nothing when the text is no object.
pub(super) fn members(text: &str) -> Option<Vec<Member>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut members = Vec::new();
    scanner.skip_space();
    scanner.each_member(|scanner, name, key| {
        let value = scanner.skip_value()?;
        members.push(Member { name, key, value });
        Some(())
    })?;
    Some(members)
}

/// The spans of an array's elements; nothing when the text is no array.
pub(super) fn elements(text: &str) -> Option<Vec<Span>> {
    let mut scanner = Scanner { text, at: 0 };
    let mut elements = Vec::new();
    scanner.skip_space();
    scanner.each_element(|scanner, _| {
        elements.push(scanner.skip_value()?);
        Some(())
    })?;
    Some(elements)
}

/// The innermost value that an offset lies in, as far as the text can be followed.
pub(super) fn pointer_at(text: &str, offset: usize) -> Pointer {
    let mut open: Vec<Step> = Vec::new();
    let mut scanner = Scanner { text, at: 0 };
    loop {
        scanner.skip_space();
        let Some(byte) = scanner.peek() else { break };
        if scanner.at >= offset {
            break;
        }
        match byte {
            b'{' => open.push(Step::Member(None)),
            b'[' => open.push(Step::Element(0)),
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some(Step::Element(index)) => *index += 1,
                Some(Step::Member(name)) => *name = None,
                None => {}
            },
            b'"' => {
                let Some(span) = scanner.skip_string() else { break };
                if let Some(Step::Member(name @ None)) = open.last_mut() {
                    *name = Some(unescape(text, span));
                }
                continue;
            }
            _ => {}
        }
        scanner.at += 1;
    }
    open.iter().take(MAX_POINTER_TOKENS).fold(Pointer::root(), |pointer, step| match step {
        Step::Member(Some(name)) => pointer.key(name),
        Step::Member(None) => pointer,
        Step::Element(index) => pointer.index(*index),
    })
}

enum Step {
    Member(Option<String>),
    Element(usize),
}

struct Scanner<'text> {
    text: &'text str,
    at: usize,
}

impl Scanner<'_> {
    /// Walks into a value only as far as somebody wants to know; recursion is bounded by the reader's depth limit,
    /// since every wanted path leads to a value that was parsed.
    fn descend(
        &mut self,
        wanted: &[Vec<String>],
        here: &[usize],
        depth: usize,
        key: Option<Span>,
        found: &mut [Option<Place>],
    ) -> Option<()> {
        self.skip_space();
        let start = self.at;
        let mut inside: HashMap<&str, Vec<usize>> = HashMap::new();
        for which in here {
            if let Some(token) = wanted.get(*which).and_then(|path| path.get(depth)) {
                inside.entry(token).or_default().push(*which);
            }
        }
        let mut into = |scanner: &mut Self, token: &str, key: Option<Span>| match inside.get(token) {
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
        let place = Place { key, value: Span::new(start, self.at) };
        for which in here {
            if wanted.get(*which).is_some_and(|path| path.len() == depth)
                && let Some(slot) = found.get_mut(*which)
            {
                *slot = Some(place);
            }
        }
        Some(())
    }

    fn each_member(&mut self, mut visit: impl FnMut(&mut Self, String, Span) -> Option<()>) -> Option<()> {
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

    /// Passes over one value without recursion, whatever its depth.
    fn skip_value(&mut self) -> Option<Span> {
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
                return Some(Span::new(start, self.at));
            }
        }
    }

    fn skip_string(&mut self) -> Option<Span> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(Span::new(start, self.at));
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

fn unescape(text: &str, span: Span) -> String {
    let quoted = text.get(span.range()).unwrap_or_default();
    serde_json::from_str(quoted).unwrap_or_else(|_| quoted.trim_matches('"').to_owned())
}

/// Enough to find the place by; a hostile nesting does not get to print a megabyte.
const MAX_POINTER_TOKENS: usize = 64;
