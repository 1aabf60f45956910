//! Checks that all `$ref`s stay inside the schema, terminate, and do not expand beyond a limit.

use std::collections::HashMap;

use serde_json::Value;

use super::json_schema::{SchemaFault, children, shorten};
use crate::Pointer;

pub(super) fn check(schema: &Value, at: &Pointer, faults: &mut Vec<SchemaFault>) {
    let mut map = SchemaMap::default();
    survey(schema, &Pointer::root(), &mut map);
    let mut is_closed = true;
    for (place, target) in &map.references {
        let place = place.within(at);
        let Some(inside) = target.strip_prefix('#').filter(|inside| inside.starts_with('/')) else {
            is_closed = false;
            let (message, remedy) = if *target == "#" {
                ("the schema refers to itself as a whole".into(), "write out as many levels as are needed")
            } else {
                (
                    format!("`{}` is outside this schema; other documents are never read", shorten(target)),
                    "copy what is needed under `$defs` and refer to `#/$defs/NAME`",
                )
            };
            faults.push((place, message, remedy.into()));
            continue;
        };
        if !map.schemas.contains_key(inside) {
            is_closed = false;
            faults.push((
                place,
                format!("`{}` does not point to a schema", shorten(target)),
                "define it under `$defs`".into(),
            ));
        }
    }
    if !is_closed || map.references.is_empty() {
        return;
    }
    let mut walk = ReferenceWalk { map: &map, open: Vec::new(), sizes: HashMap::new() };
    match walk.size_of("") {
        Err(reference) => faults.push((
            reference.within(at),
            "the reference leads back to itself".into(),
            "write out as many levels as are needed; many clients cannot follow recursion".into(),
        )),
        Ok(size) if size > MAX_SCHEMAS => faults.push((
            at.clone(),
            format!("with all references expanded the schema has more than {MAX_SCHEMAS} parts"),
            "refer to a definition in fewer places".into(),
        )),
        Ok(_) => {}
    }
}

#[derive(Default)]
struct SchemaMap<'s> {
    /// By position, relative to the root of the schema.
    schemas: HashMap<String, SchemaEntry<'s>>,
    references: Vec<(Pointer, &'s str)>,
}

struct SchemaEntry<'s> {
    children: Vec<String>,
    reference: Option<(Pointer, &'s str)>,
}

fn survey<'s>(schema: &'s Value, at: &Pointer, map: &mut SchemaMap<'s>) {
    let reference = schema.get("$ref").and_then(Value::as_str).map(|target| (at.key("$ref"), target));
    let inside = children(schema, at);
    let entry = SchemaEntry {
        // Definitions count at each use.
        children: inside
            .iter()
            .map(|(place, _)| place.as_str().to_owned())
            .filter(|place| !is_definition(place.strip_prefix(at.as_str()).unwrap_or(place)))
            .collect(),
        reference: reference.clone(),
    };
    map.references.extend(reference);
    map.schemas.insert(at.as_str().to_owned(), entry);
    for (place, child) in inside {
        survey(child, &place, map);
    }
}

fn is_definition(below: &str) -> bool {
    below.starts_with("/$defs/") || below.starts_with("/definitions/")
}

struct ReferenceWalk<'m, 's> {
    map: &'m SchemaMap<'s>,
    open: Vec<String>,
    sizes: HashMap<String, usize>,
}

impl ReferenceWalk<'_, '_> {
    /// The number of schemas after all references are expanded, or the reference that closes a cycle. Each position
    /// is computed once, so repeated doubling is counted, not walked.
    fn size_of(&mut self, place: &str) -> Result<usize, Pointer> {
        if let Some(size) = self.sizes.get(place) {
            return Ok(*size);
        }
        let Some(entry) = self.map.schemas.get(place) else { return Ok(1) };
        self.open.push(place.to_owned());
        let mut size: usize = 1;
        for child in &entry.children {
            size = size.saturating_add(self.size_of(child)?);
        }
        if let Some((reference, target)) = &entry.reference {
            let target = target.strip_prefix('#').unwrap_or_default();
            if self.open.iter().any(|open| open == target) {
                return Err(reference.clone());
            }
            size = size.saturating_add(self.size_of(target)?);
        }
        self.open.pop();
        self.sizes.insert(place.to_owned(), size);
        Ok(size)
    }
}

/// Validation visits each of them on every call.
const MAX_SCHEMAS: usize = 4096;
