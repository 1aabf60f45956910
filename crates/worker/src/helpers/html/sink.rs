//! Where does the HTML parser put its nodes? In one list, by number; no node owns another, so nothing recurses.

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

/// A page while it is read, and afterwards.
pub struct Page {
    nodes: RefCell<Vec<Node>>,
    questions: Cell<u64>,
    bytes: Cell<usize>,
}

pub enum Kind {
    Document,
    Doctype(StrTendril),
    Comment(StrTendril),
    Text(String),
    Element(Rc<QualName>, Vec<(String, StrTendril)>),
}

struct Node {
    kind: Kind,
    parent: Option<usize>,
    children: Vec<usize>,
}

impl Kind {
    /// About what it takes beside the node itself.
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

/// A node's number, and its name where it is an element.
#[derive(Clone)]
pub struct Handle {
    node: usize,
    name: Option<Rc<QualName>>,
}

impl Page {
    pub const DOCUMENT: usize = 0;

    pub fn new() -> Self {
        let document = Node { kind: Kind::Document, parent: None, children: Vec::new() };
        Self { nodes: RefCell::new(vec![document]), questions: Cell::new(0), bytes: Cell::new(0) }
    }

    pub fn len(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// About what the page takes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// How often the parser has asked or told something; it does so for every token.
    pub fn questions(&self) -> u64 {
        self.questions.get()
    }

    /// The parser puts a fragment into an element of its own.
    pub fn fragment_root(&self) -> usize {
        self.children(Self::DOCUMENT).find(|child| self.is_element(*child)).unwrap_or(Self::DOCUMENT)
    }

    pub fn children(&self, node: usize) -> std::vec::IntoIter<usize> {
        self.nodes.borrow().get(node).map(|node| node.children.clone()).unwrap_or_default().into_iter()
    }

    pub fn is_element(&self, node: usize) -> bool {
        matches!(self.nodes.borrow().get(node), Some(Node { kind: Kind::Element(..), .. }))
    }

    pub fn with_kind(&self, node: usize, see: impl FnOnce(&Kind)) {
        if let Some(node) = self.nodes.borrow().get(node) {
            see(&node.kind);
        }
    }

    /// Whether any node from number `first` on has more than so many ancestors.
    pub fn is_deeper_than(&self, most: usize, first: usize) -> bool {
        let nodes = self.nodes.borrow();
        let parent = |node: &usize| nodes.get(*node).and_then(|node| node.parent);
        (first..nodes.len()).any(|node| std::iter::successors(Some(node), parent).nth(most + 1).is_some())
    }

    fn add(&self, kind: Kind) -> usize {
        self.weigh(kind.bytes().saturating_add(NODE_BYTES));
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Node { kind, parent: None, children: Vec::new() });
        nodes.len() - 1
    }

    fn handle(&self, kind: Kind) -> Handle {
        self.ask();
        let name = if let Kind::Element(name, _) = &kind { Some(Rc::clone(name)) } else { None };
        Handle { node: self.add(kind), name }
    }

    fn weigh(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    fn ask(&self) {
        self.questions.set(self.questions.get() + 1);
    }

    /// Puts a node or a text into `parent`, before the child at `position`. Text joins the text before it.
    fn insert(&self, parent: usize, position: usize, child: NodeOrText<Handle>) {
        self.ask();
        let child = match child {
            NodeOrText::AppendNode(child) => child.node,
            NodeOrText::AppendText(text) if self.extend_text(parent, position, &text) => return,
            NodeOrText::AppendText(text) => self.add(Kind::Text(text.into())),
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
        let Some(Node { kind: Kind::Text(known), .. }) = before.and_then(|node| nodes.get_mut(node)) else {
            return false;
        };
        known.push_str(text);
        self.weigh(text.len());
        true
    }

    fn detach(&self, child: usize) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(parent) = nodes.get_mut(child).and_then(|node| node.parent.take()) else { return };
        let Some(parent) = nodes.get_mut(parent) else { return };
        // From the end: what the parser moves was nearly always put there last.
        if let Some(position) = parent.children.iter().rposition(|node| *node == child) {
            parent.children.remove(position);
        }
    }

    /// The parent of a node and its place there.
    fn place(&self, child: usize) -> Option<(usize, usize)> {
        let nodes = self.nodes.borrow();
        let parent = nodes.get(child)?.parent?;
        let position = nodes.get(parent)?.children.iter().rposition(|node| *node == child)?;
        Some((parent, position))
    }
}

impl TreeSink for Page {
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
        self.handle(Kind::Element(Rc::new(name), attributes.into_iter().map(plain).collect()))
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.handle(Kind::Comment(text))
    }

    fn create_pi(&self, target: StrTendril, _: StrTendril) -> Handle {
        self.handle(Kind::Comment(target))
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        let end = self.nodes.borrow().get(parent.node).map_or(0, |node| node.children.len());
        self.insert(parent.node, end, child);
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(child) = &child {
            self.detach(child.node);
        }
        if let Some((parent, position)) = self.place(sibling.node) {
            self.insert(parent, position, child);
        }
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        if self.place(element.node).is_some() {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(&self, name: StrTendril, _: StrTendril, _: StrTendril) {
        let doctype = self.handle(Kind::Doctype(name));
        self.append(&self.get_document(), NodeOrText::AppendNode(doctype));
    }

    /// A template's content is found in the template, as other elements' is.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(Node { kind: Kind::Element(_, known), .. }) = nodes.get_mut(target.node) else { return };
        for (name, value) in attributes.into_iter().map(plain) {
            // Only `html` and `body` come here; the bound keeps a page of a thousand of them from being slow.
            if known.len() < MOST_MERGED && !known.iter().any(|(known, _)| *known == name) {
                self.weigh(attribute_bytes(&name, &value));
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
const MOST_MERGED: usize = 1000;
/// The node, its place among its siblings, and its name or the allocator's part of its text.
const NODE_BYTES: usize = 160;
const ATTRIBUTE_BYTES: usize = 64;
