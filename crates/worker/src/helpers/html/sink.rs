//! Node storage of the HTML parser: one list, indexed by number. Nodes do not own each other, so nothing recurses.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    rc::Rc,
};

use html5ever::{
    Attribute, ExpandedName, QualName,
    tendril::StrTendril,
    tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink},
};

/// A page during and after parsing.
pub struct HtmlPage {
    nodes: RefCell<Vec<HtmlNode>>,
    questions: Cell<u64>,
    bytes: Cell<usize>,
}

pub enum HtmlNodeKind {
    Document,
    Doctype(StrTendril),
    Comment(StrTendril),
    Text(String),
    Element(Rc<QualName>, Vec<(String, StrTendril)>),
}

struct HtmlNode {
    kind: HtmlNodeKind,
    parent: Option<usize>,
    children: Vec<usize>,
}

impl HtmlNodeKind {
    /// The approximate memory besides the node itself.
    fn bytes(&self) -> usize {
        match self {
            Self::Document => 0,
            Self::Doctype(text) | Self::Comment(text) => text.len(),
            Self::Text(text) => text.len(),
            Self::Element(_, attributes) => {
                attributes.iter().map(|(name, value)| attribute_bytes(name, value)).sum()
            }
        }
    }
}

/// The number of a node, and the name of an element.
#[derive(Clone)]
pub struct Handle {
    node: usize,
    name: Option<Rc<QualName>>,
}

impl HtmlPage {
    pub const DOCUMENT: usize = 0;

    pub fn new() -> Self {
        let document = HtmlNode { kind: HtmlNodeKind::Document, parent: None, children: Vec::new() };
        Self { nodes: RefCell::new(vec![document]), questions: Cell::new(0), bytes: Cell::new(0) }
    }

    pub fn len(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// The approximate memory of the page.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// The number of calls from the parser, at least one per token.
    pub fn questions(&self) -> u64 {
        self.questions.get()
    }

    /// The parser puts a fragment into an extra root element.
    pub fn fragment_root(&self) -> usize {
        self.children(Self::DOCUMENT).find(|child| self.is_element(*child)).unwrap_or(Self::DOCUMENT)
    }

    pub fn children(&self, node: usize) -> std::vec::IntoIter<usize> {
        self.nodes.borrow().get(node).map(|node| node.children.clone()).unwrap_or_default().into_iter()
    }

    pub fn is_element(&self, node: usize) -> bool {
        matches!(self.nodes.borrow().get(node), Some(HtmlNode { kind: HtmlNodeKind::Element(..), .. }))
    }

    pub fn with_kind(&self, node: usize, see: impl FnOnce(&HtmlNodeKind)) {
        if let Some(node) = self.nodes.borrow().get(node) {
            see(&node.kind);
        }
    }

    /// Whether any node from number `first` on has more than `most` ancestors.
    pub fn is_deeper_than(&self, most: usize, first: usize) -> bool {
        let nodes = self.nodes.borrow();
        let parent = |node: &usize| nodes.get(*node).and_then(|node| node.parent);
        (first..nodes.len()).any(|node| std::iter::successors(Some(node), parent).nth(most + 1).is_some())
    }

    fn add(&self, kind: HtmlNodeKind) -> usize {
        self.add_bytes(kind.bytes().saturating_add(NODE_BYTES));
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(HtmlNode { kind, parent: None, children: Vec::new() });
        nodes.len() - 1
    }

    fn handle(&self, kind: HtmlNodeKind) -> Handle {
        self.ask();
        let name = if let HtmlNodeKind::Element(name, _) = &kind { Some(Rc::clone(name)) } else { None };
        Handle { node: self.add(kind), name }
    }

    fn add_bytes(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    fn ask(&self) {
        self.questions.set(self.questions.get() + 1);
    }

    /// Inserts a node or text into `parent` before the child at `position`. Text is appended to a preceding text node.
    fn insert(&self, parent: usize, position: usize, child: NodeOrText<Handle>) {
        self.ask();
        let child = match child {
            NodeOrText::AppendNode(child) => child.node,
            NodeOrText::AppendText(text) if self.extend_text(parent, position, &text) => return,
            NodeOrText::AppendText(text) => self.add(HtmlNodeKind::Text(text.into())),
        };
        let mut nodes = self.nodes.borrow_mut();
        if let Some(node) = nodes.get_mut(child) {
            node.parent = Some(parent);
        }
        if let Some(node) = nodes.get_mut(parent) {
            node.children.insert(position.min(node.children.len()), child);
        }
    }

    fn extend_text(&self, parent: usize, position: usize, text: &str) -> bool {
        let mut nodes = self.nodes.borrow_mut();
        let before = position.checked_sub(1);
        let before = before.and_then(|index| nodes.get(parent)?.children.get(index).copied());
        let Some(HtmlNode { kind: HtmlNodeKind::Text(known), .. }) =
            before.and_then(|node| nodes.get_mut(node))
        else {
            return false;
        };
        known.push_str(text);
        self.add_bytes(text.len());
        true
    }

    fn detach(&self, child: usize) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(parent) = nodes.get_mut(child).and_then(|node| node.parent.take()) else { return };
        let Some(parent) = nodes.get_mut(parent) else { return };
        // Search from the end: the parser usually moves a node that was added last.
        if let Some(position) = parent.children.iter().rposition(|node| *node == child) {
            parent.children.remove(position);
        }
    }

    /// Returns the parent of a node and its position there.
    fn position(&self, child: usize) -> Option<(usize, usize)> {
        let nodes = self.nodes.borrow();
        let parent = nodes.get(child)?.parent?;
        let position = nodes.get(parent)?.children.iter().rposition(|node| *node == child)?;
        Some((parent, position))
    }
}

impl TreeSink for HtmlPage {
    type Handle = Handle;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn get_document(&self) -> Handle {
        Handle { node: Self::DOCUMENT, name: None }
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        self.ask();
        target.name.as_ref().map_or(NAMELESS, |name| name.expanded())
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        one.node == other.node
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Handle {
        self.handle(HtmlNodeKind::Element(Rc::new(name), attributes.into_iter().map(plain).collect()))
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.handle(HtmlNodeKind::Comment(text))
    }

    fn create_pi(&self, target: StrTendril, _: StrTendril) -> Handle {
        self.handle(HtmlNodeKind::Comment(target))
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        let end = self.nodes.borrow().get(parent.node).map_or(0, |node| node.children.len());
        self.insert(parent.node, end, child);
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(child) = &child {
            self.detach(child.node);
        }
        if let Some((parent, position)) = self.position(sibling.node) {
            self.insert(parent, position, child);
        }
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        if self.position(element.node).is_some() {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(&self, name: StrTendril, _: StrTendril, _: StrTendril) {
        let doctype = self.handle(HtmlNodeKind::Doctype(name));
        self.append(&self.get_document(), NodeOrText::AppendNode(doctype));
    }

    /// The content of a template is stored in the template, like that of other elements.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(HtmlNode { kind: HtmlNodeKind::Element(_, known), .. }) = nodes.get_mut(target.node) else {
            return;
        };
        for (name, value) in attributes.into_iter().map(plain) {
            // Only `html` and `body` get here. The limit keeps pages with a thousand of them fast.
            if known.len() < MAX_MERGED && !known.iter().any(|(known, _)| *known == name) {
                self.add_bytes(attribute_bytes(&name, &value));
                known.push((name, value));
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.detach(target.node);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        let mut nodes = self.nodes.borrow_mut();
        let moved =
            nodes.get_mut(node.node).map(|node| std::mem::take(&mut node.children)).unwrap_or_default();
        for child in &moved {
            if let Some(child) = nodes.get_mut(*child) {
                child.parent = Some(new_parent.node);
            }
        }
        if let Some(parent) = nodes.get_mut(new_parent.node) {
            parent.children.extend(moved);
        }
    }
}

fn attribute_bytes(name: &str, value: &str) -> usize {
    name.len() + value.len() + ATTRIBUTE_BYTES
}

fn plain(attribute: Attribute) -> (String, StrTendril) {
    let local = &*attribute.name.local;
    let name = attribute.name.prefix.map_or_else(|| local.to_owned(), |prefix| format!("{prefix}:{local}"));
    (name, attribute.value)
}

const NAMELESS: ExpandedName<'static> =
    ExpandedName { ns: &html5ever::ns!(), local: &html5ever::local_name!("") };
const MAX_MERGED: usize = 1000;
/// The node, its entry in the parent, and its name or the allocator's overhead for its text.
const NODE_BYTES: usize = 160;
const ATTRIBUTE_BYTES: usize = 64;
