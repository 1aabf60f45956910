//! What is on a page? A flat list that the prelude makes its tree of, read as a browser reads it without scripting.
//!
//! In the list, `1, tag, attributes` opens an element, where the attributes are names and values in turn, or `0` for none;
//! `0` closes it; `2, text` is a comment, `3, name` a document type, and a text alone is text.

mod sink;
#[cfg(test)]
mod tests;

use html5ever::{
    LocalName, ParseOpts, Parser, QualName, ns, parse_document, parse_fragment,
    tendril::{StrTendril, TendrilSink},
    tree_builder::TreeBuilderOpts,
};

use self::sink::{Kind, Page};
use super::{Answer, HelperError};

/// The first line names the element that a fragment is read for, and is empty for a whole page; the rest is HTML. The page,
/// with the list that is made of it, has `room` bytes.
pub fn parse(text: &str, room: usize) -> Result<Answer, HelperError> {
    let (context, html) = text.split_once('\n').unwrap_or(("", text));
    if html.len() > MAX_INPUT {
        return Err(too_large("more than 10 MiB of HTML"));
    }
    let page = read(context, html, room)?;
    let top = if context.is_empty() { Page::DOCUMENT } else { page.fragment_root() };
    flatten(&page, top, room).map(Answer::Json)
}

/// Fed in small pieces, so that a page that grows out of all proportion to its text is noticed while it does.
fn read(context: &str, html: &str, room: usize) -> Result<Page, HelperError> {
    let mut parser = parser(context);
    let mut rest = html;
    let (mut seen, mut open_tag) = (0, OpenTag::default());
    while !rest.is_empty() {
        let (piece, next) = rest.split_at(rest.floor_char_boundary(PIECE));
        let before = parser.tokenizer.sink.sink.questions();
        parser.process(StrTendril::from_slice(piece));
        rest = next;
        let page = &parser.tokenizer.sink.sink;
        if page.len() > MAX_NODES {
            return Err(too_large("more than 200000 parts"));
        }
        if page.bytes() > room {
            return Err(too_large(NO_ROOM));
        }
        if page.is_deeper_than(MAX_DEPTH, seen) {
            let message = format!("the page nests more than {MAX_DEPTH} elements");
            return Err(HelperError::runtime(HELPER, "too-deep", message));
        }
        seen = page.len();
        if open_tag.follow(piece, page.questions() == before) > MAX_COMPARISONS {
            return Err(too_large("a tag with very many attributes"));
        }
    }
    Ok(parser.finish())
}

/// What a tag that never ends costs: the tokenizer compares each attribute with all before it.
#[derive(Default)]
struct OpenTag {
    separators: u64,
    comparisons: u64,
}

impl OpenTag {
    /// A piece of the page from which no token came can only be the inside of one.
    fn follow(&mut self, piece: &str, is_inside: bool) -> u64 {
        let is_separator =
            |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b'/' | b'"' | b'\'');
        let separators = piece.bytes().filter(is_separator).count() as u64;
        if is_inside {
            self.separators += separators;
            self.comparisons = self.comparisons.saturating_add(self.separators.saturating_mul(separators));
        } else {
            self.separators = separators;
        }
        self.comparisons
    }
}

fn parser(context: &str) -> Parser<Page> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    if context.is_empty() {
        return parse_document(Page::new(), options);
    }
    let name = QualName::new(None, ns!(html), LocalName::from(context));
    let context_allows_scripting = false;
    parse_fragment(Page::new(), options, name, Vec::new(), context_allows_scripting)
}

fn flatten(page: &Page, top: usize, room: usize) -> Result<String, HelperError> {
    let mut json = String::from("[");
    let mut pending: Vec<Step> = page.children(top).rev().map(Step::Enter).collect();
    while let Some(step) = pending.pop() {
        let Step::Enter(node) = step else {
            json.push_str("0,");
            continue;
        };
        page.with_kind(node, |kind| push_kind(&mut json, kind));
        if page.is_element(node) {
            pending.push(Step::Leave);
            pending.extend(page.children(node).rev().map(Step::Enter));
        }
        if json.len() > MAX_OUTPUT {
            return Err(too_large("more than 16 MiB once read"));
        }
        if json.len().saturating_add(page.bytes()) > room {
            return Err(too_large(NO_ROOM));
        }
    }
    json.truncate(json.len() - usize::from(json.ends_with(',')));
    json.push(']');
    Ok(json)
}

enum Step {
    Enter(usize),
    Leave,
}

fn push_kind(json: &mut String, kind: &Kind) {
    match kind {
        Kind::Document => {}
        Kind::Text(text) => json.push_str(&quote(text)),
        Kind::Comment(text) => push_all(json, &["2,", &quote(text)]),
        Kind::Doctype(name) => push_all(json, &["3,", &quote(name)]),
        Kind::Element(name, attributes) => {
            push_all(json, &["1,", &quote(&name.local), ","]);
            let mut separator = '[';
            for (name, value) in attributes {
                json.push(separator);
                push_all(json, &[&quote(name), ",", &quote(value)]);
                separator = ',';
            }
            json.push(if separator == '[' { '0' } else { ']' });
        }
    }
    json.push(',');
}

fn push_all(json: &mut String, parts: &[&str]) {
    for part in parts {
        json.push_str(part);
    }
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn too_large(what: &str) -> HelperError {
    HelperError::runtime(HELPER, "result-too-large", format!("the page is too large: {what}; cut it first"))
}

const HELPER: &str = "safety.parser.html";
const NO_ROOM: &str = "more than is left of the call's memory";
const MAX_INPUT: usize = 10 << 20;
const MAX_OUTPUT: usize = 16 << 20;
const MAX_NODES: usize = 200_000;
/// For each tag the parser may look at all elements that are open.
const MAX_DEPTH: usize = 1000;
/// About a second's worth.
const MAX_COMPARISONS: u64 = 1_000_000_000;
const PIECE: usize = 1024;
