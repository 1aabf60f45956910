//! Parses HTML like a browser without scripting. The result is a flat list from which the prelude builds its tree.
//!
//! In the list, `1, tag, attributes` opens an element; the attributes are alternating names and values, or `0` for
//! none. `0` closes it; `2, text` is a comment, `3, name` a document type, and a plain string is text.

mod sink;
#[cfg(test)]
mod tests;

use html5ever::{
    LocalName, ParseOpts, Parser, QualName, ns, parse_document, parse_fragment,
    tendril::{StrTendril, TendrilSink},
    tree_builder::TreeBuilderOpts,
};

use self::sink::{HtmlNodeKind, HtmlPage};
use super::{HelperAnswer, HelperError};

/// The first line names the context element of a fragment, and is empty for a whole page; the rest is HTML. The page
/// and the resulting list may use `room` bytes.
pub fn parse(text: &str, room: usize) -> Result<HelperAnswer, HelperError> {
    let (context, html) = text.split_once('\n').unwrap_or(("", text));
    if html.len() > MAX_INPUT {
        return Err(too_large("more than 10 MiB of HTML"));
    }
    let page = read(context, html, room)?;
    let top = if context.is_empty() { HtmlPage::DOCUMENT } else { page.fragment_root() };
    flatten(&page, top, room).map(HelperAnswer::Json)
}

/// Feeds the parser in small pieces, to detect early that a page grows out of proportion to its text.
fn read(context: &str, html: &str, room: usize) -> Result<HtmlPage, HelperError> {
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
            return Err(too_large("more than 200000 nodes"));
        }
        if page.bytes() > room {
            return Err(too_large(NO_ROOM));
        }
        if page.is_deeper_than(MAX_DEPTH, seen) {
            let message =
                format!("the page nests elements more than {MAX_DEPTH} levels deep; parse a part of it");
            return Err(HelperError::runtime(HELPER, "too-deep", message));
        }
        seen = page.len();
        if open_tag.follow(piece, page.questions() == before) > MAX_COMPARISONS {
            return Err(too_large("a tag with very many attributes"));
        }
    }
    Ok(parser.finish())
}

/// The cost of an unfinished tag: the tokenizer compares each attribute with all earlier ones.
#[derive(Default)]
struct OpenTag {
    separators: u64,
    comparisons: u64,
}

impl OpenTag {
    /// A piece that yields no token must be inside of one.
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

fn parser(context: &str) -> Parser<HtmlPage> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    if context.is_empty() {
        return parse_document(HtmlPage::new(), options);
    }
    let name = QualName::new(None, ns!(html), LocalName::from(context));
    let context_allows_scripting = false;
    parse_fragment(HtmlPage::new(), options, name, Vec::new(), context_allows_scripting)
}

fn flatten(page: &HtmlPage, top: usize, room: usize) -> Result<String, HelperError> {
    let mut json = String::from("[");
    let mut pending: Vec<FlattenStep> = page.children(top).rev().map(FlattenStep::Enter).collect();
    while let Some(step) = pending.pop() {
        let FlattenStep::Enter(node) = step else {
            json.push_str("0,");
            continue;
        };
        page.with_kind(node, |kind| push_kind(&mut json, kind));
        if page.is_element(node) {
            pending.push(FlattenStep::Leave);
            pending.extend(page.children(node).rev().map(FlattenStep::Enter));
        }
        if json.len() > MAX_OUTPUT {
            return Err(too_large("more than 16 MiB after parsing"));
        }
        if json.len().saturating_add(page.bytes()) > room {
            return Err(too_large(NO_ROOM));
        }
    }
    json.truncate(json.len() - usize::from(json.ends_with(',')));
    json.push(']');
    Ok(json)
}

enum FlattenStep {
    Enter(usize),
    Leave,
}

fn push_kind(json: &mut String, kind: &HtmlNodeKind) {
    match kind {
        HtmlNodeKind::Document => {}
        HtmlNodeKind::Text(text) => json.push_str(&quote(text)),
        HtmlNodeKind::Comment(text) => push_all(json, &["2,", &quote(text)]),
        HtmlNodeKind::Doctype(name) => push_all(json, &["3,", &quote(name)]),
        HtmlNodeKind::Element(name, attributes) => {
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
    HelperError::runtime(
        HELPER,
        "result-too-large",
        format!("the page is too large: {what}; parse a part of it"),
    )
}

const HELPER: &str = "safety.parser.html";
const NO_ROOM: &str = "more than the remaining memory of the call";
const MAX_INPUT: usize = 10 << 20;
const MAX_OUTPUT: usize = 16 << 20;
const MAX_NODES: usize = 200_000;
/// For each tag the parser may search all open elements.
const MAX_DEPTH: usize = 1000;
/// About one second of work.
const MAX_COMPARISONS: u64 = 1_000_000_000;
const PIECE: usize = 1024;
