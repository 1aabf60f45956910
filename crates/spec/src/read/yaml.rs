//! Parses YAML with serde-saphyr, limited to the JSON data model: no tags, no merge keys, bounded aliases, one
//! document.

use std::{collections::HashMap, fmt};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy, Options, Spanned, options};

use super::{
    Parsed, SourceSpans, YamlOutline,
    value::{ReadNotes, UniqueKeys},
    yaml_error::explain,
    yaml_extent::{self, NodeShape},
    yaml_strict,
};
use crate::{
    Finding, SourceSpan,
    source::{LineIndex, MAX_FILE_BYTES, MAX_YAML_DEPTH},
};

pub(super) fn parse(text: &str) -> Result<Parsed, Finding> {
    let notes = ReadNotes::default();
    let value =
        serde_saphyr::with_deserializer_from_str_with_options(text, reader_options(), |deserializer| {
            UniqueKeys(&notes).deserialize(deserializer)
        })
        .map_err(|error| explain(text, &error))?;
    if let Some(refusal) = yaml_strict::refusal(text) {
        return Err(refusal);
    }
    Ok(Parsed { value, has_wide_numbers: notes.has_wide_numbers.get() })
}

pub(super) fn places(text: &str, wanted: &[Vec<String>]) -> Vec<Option<SourceSpans>> {
    let Ok(root) = serde_saphyr::from_str_with_options::<Spanned<YamlNode>>(text, reader_options()) else {
        return vec![None; wanted.len()];
    };
    let lines = LineIndex::new(text);
    wanted.iter().map(|path| find(text, &lines, &root, path)).collect()
}

pub(super) fn outline(text: &str) -> Option<YamlOutline> {
    let root = serde_saphyr::from_str_with_options::<Spanned<YamlNode>>(text, reader_options()).ok()?;
    let YamlNode::Mapping(mapping) = &root.value else { return None };
    let lines = LineIndex::new(text);
    if text.get(start_of(&lines, &root)..)?.starts_with('{') {
        return Some(YamlOutline::Flow);
    }
    let keys = mapping.members.iter().map(|(key, _)| (key.value.clone(), start_of(&lines, key)));
    Some(YamlOutline::Block(keys.collect()))
}

fn find(text: &str, lines: &LineIndex<'_>, root: &Spanned<YamlNode>, path: &[String]) -> Option<SourceSpans> {
    let span = |start: usize, shape: NodeShape| {
        let line = text.get(start..lines.end_of_line(start)).unwrap_or_default();
        SourceSpan::new(start, start + yaml_extent::length(line, shape))
    };
    let of_value = |node: &Spanned<YamlNode>, in_flow: bool| {
        span(start_of(lines, node), NodeShape { is_scalar: matches!(node.value, YamlNode::Scalar), in_flow })
    };
    let mut place = SourceSpans { key: None, value: of_value(root, false) };
    let (mut node, mut in_flow) = (root, false);
    for token in path {
        in_flow |= text.get(place.value.start..).is_some_and(|rest| rest.starts_with(['[', '{']));
        (place, node) = match &node.value {
            YamlNode::Scalar => return None,
            YamlNode::Sequence(items) => {
                let item = items.get(token.parse::<usize>().ok()?)?;
                (SourceSpans { key: None, value: of_value(item, in_flow) }, item)
            }
            YamlNode::Mapping(mapping) => {
                let (key, value) = mapping.members.get(*mapping.by_name.get(token)?)?;
                let key = span(start_of(lines, key), NodeShape { is_scalar: true, in_flow });
                (SourceSpans { key: Some(key), value: of_value(value, in_flow) }, value)
            }
        };
    }
    Some(place)
}

fn start_of<T>(lines: &LineIndex<'_>, node: &Spanned<T>) -> usize {
    // Bytes, not columns: counting columns from the start of a huge line for every node takes hours.
    let bytes = node.referenced.span().byte_offset().and_then(|offset| usize::try_from(offset).ok());
    bytes.unwrap_or_else(|| {
        let line = usize::try_from(node.referenced.line()).unwrap_or(1);
        lines.char_offset(line, usize::try_from(node.referenced.column()).unwrap_or(1))
    })
}

fn reader_options() -> Options {
    options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(MAX_FILE_BYTES),
            max_depth: MAX_YAML_DEPTH,
            max_documents: 1,
            max_aliases: 256,
            max_anchors: 256,
            max_nodes: 2_000_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        legacy_octal_numbers: false,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// The document's structure with positions, without the content of scalars.
enum YamlNode {
    Scalar,
    Sequence(Vec<Spanned<Self>>),
    Mapping(Mapping),
}

#[derive(Default)]
struct Mapping {
    members: Vec<(Spanned<String>, Spanned<YamlNode>)>,
    by_name: HashMap<String, usize>,
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Outline)
    }
}

struct Outline;

impl<'de> Visitor<'de> for Outline {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML node")
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_bool<E>(self, _: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlNode, A::Error> {
        let mut sequence = Vec::new();
        while let Some(item) = items.next_element()? {
            sequence.push(item);
        }
        Ok(YamlNode::Sequence(sequence))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<YamlNode, A::Error> {
        let mut mapping = Mapping::default();
        while let Some((key, value)) = members.next_entry::<Spanned<String>, _>()? {
            mapping.by_name.insert(key.value.clone(), mapping.members.len());
            mapping.members.push((key, value));
        }
        Ok(YamlNode::Mapping(mapping))
    }
}
