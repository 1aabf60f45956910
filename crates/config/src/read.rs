//! Checks each value against its key, fills in defaults and collects all faults.

use serde_json::{Map, Value};
use toolgate_spec::Pointer;

use crate::{
    fault::{ConfigFault, Faults},
    key::{ConfigKey, ConfigValueKind, KeyDefault},
    quantity::{bytes, milliseconds, show_bytes, show_milliseconds},
    shape::{Complaint, TextShape, shown},
    words,
};

/// A key that holds a value.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub at: Pointer,
    pub value: Value,
    pub given: ValueSource,
    pub is_secret: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ValueSource {
    Written,
    ByDefault,
}

/// The result of reading a document.
#[derive(Debug, Default)]
pub(crate) struct ConfigReader {
    pub faults: Faults,
    pub leaves: Vec<Leaf>,
    pub tree: Value,
}

impl ConfigReader {
    pub fn read(keys: &'static [ConfigKey], document: &Map<String, Value>) -> Self {
        let mut reader = Self::default();
        reader.tree = reader.section(keys, document, &Pointer::root());
        reader
    }

    /// Returns the complete section without its faulty keys. They are left out because rules between keys must not judge
    /// by a default that the user did not choose.
    fn section(&mut self, keys: &'static [ConfigKey], members: &Map<String, Value>, at: &Pointer) -> Value {
        self.refuse_unknown(keys, members, at);
        let mut complete = Map::new();
        for key in keys {
            if let Some(value) = self.member(key, members.get(key.name), at) {
                complete.insert(key.name.to_owned(), value);
            }
        }
        Value::Object(complete)
    }

    fn member(&mut self, key: &'static ConfigKey, given: Option<&Value>, section: &Pointer) -> Option<Value> {
        let at = section.key(key.name);
        match (given, &key.kind) {
            (None | Some(Value::Null), ConfigValueKind::Section(keys)) if key.is_plain_section() => {
                Some(self.section(keys, &Map::new(), &at))
            }
            (None, _) => self.absent(key, section, at),
            (Some(Value::Null), _) if key.is_nullable() => {
                Some(self.leaf(at, Value::Null, ValueSource::Written))
            }
            (Some(Value::Null), kind) => {
                self.faults.push(ConfigFault::at_key(
                    at,
                    Complaint::new("the key has no value", words::no_value(kind)),
                ));
                None
            }
            (Some(value), kind) => self.value(kind, value, &at),
        }
    }

    fn absent(&mut self, key: &ConfigKey, section: &Pointer, at: Pointer) -> Option<Value> {
        if matches!(key.fallback, KeyDefault::Required) {
            let complaint = Complaint::new(format!("`{}` is missing", key.name), words::example(key));
            self.faults.push(ConfigFault::at_key(section.clone(), complaint));
            return None;
        }
        Some(self.leaf(at, key.fallback_value()?, ValueSource::ByDefault))
    }

    fn value(&mut self, kind: &'static ConfigValueKind, value: &Value, at: &Pointer) -> Option<Value> {
        match (kind, value) {
            (ConfigValueKind::Section(keys), Value::Object(members)) => Some(self.section(keys, members, at)),
            (ConfigValueKind::OneOf(keys), Value::Object(members)) => self.one_of(keys, members, at),
            (ConfigValueKind::Sections(keys), Value::Array(items)) if !items.is_empty() => {
                Some(self.sections(keys, items, at))
            }
            (ConfigValueKind::Sections(_), Value::Array(_)) => {
                Some(self.leaf(at.clone(), value.clone(), ValueSource::Written))
            }
            (ConfigValueKind::Texts(_) | ConfigValueKind::Choices(_), Value::Array(items)) => {
                self.list(kind, items, at)
            }
            _ => match scalar(kind, value) {
                Ok(()) => {
                    let is_secret =
                        matches!(kind, ConfigValueKind::Text(TextShape::KeySetUrl)) && has_query(value);
                    self.leaves.push(Leaf {
                        at: at.clone(),
                        value: value.clone(),
                        given: ValueSource::Written,
                        is_secret,
                    });
                    Some(value.clone())
                }
                Err(complaint) => {
                    self.faults.push(ConfigFault::at_value(at.clone(), complaint));
                    None
                }
            },
        }
    }

    fn list(&mut self, kind: &'static ConfigValueKind, items: &[Value], at: &Pointer) -> Option<Value> {
        let before = self.faults.count();
        self.refuse_long(items, at);
        if items.is_empty() && matches!(kind, ConfigValueKind::Choices(_)) {
            self.faults.push(ConfigFault::at_value(
                at.clone(),
                Complaint::new(
                    "the list is empty",
                    format!("write at least one of {}", words::choices(kind)),
                ),
            ));
        }
        for (index, item) in items.iter().enumerate().take(MAX_ITEMS) {
            let checked = match (kind, item) {
                (ConfigValueKind::Texts(shape), Value::String(text)) => shape.check(text),
                (ConfigValueKind::Choices(known), Value::String(word)) => check_choice(known, word),
                (ConfigValueKind::Texts(shape), _) => {
                    Err(words::mismatch(&ConfigValueKind::Text(*shape), item))
                }
                (ConfigValueKind::Choices(known), _) => {
                    Err(words::mismatch(&ConfigValueKind::Choice(known), item))
                }
                _ => Err(words::mismatch(kind, item)),
            };
            if let Err(complaint) = checked {
                self.faults.push(ConfigFault::at_value(at.index(index), complaint));
            }
        }
        let is_sound = self.faults.count() == before;
        is_sound.then(|| self.leaf(at.clone(), items.to_vec().into(), ValueSource::Written))
    }

    fn sections(&mut self, keys: &'static [ConfigKey], items: &[Value], at: &Pointer) -> Value {
        self.refuse_long(items, at);
        let mut complete = Vec::new();
        for (index, item) in items.iter().enumerate().take(MAX_ITEMS) {
            let at = at.index(index);
            if let Value::Object(members) = item {
                complete.push(self.section(keys, members, &at));
            } else {
                let complaint = Complaint::new(
                    format!("expected a section, got {}", words::type_of(item)),
                    "write each key on a separate line, the first one after `- `",
                );
                self.faults.push(ConfigFault::at_value(at, complaint));
                // Keep the indexes of the other entries.
                complete.push(Value::Null);
            }
        }
        complete.into()
    }

    fn one_of(
        &mut self,
        keys: &'static [ConfigKey],
        members: &Map<String, Value>,
        at: &Pointer,
    ) -> Option<Value> {
        self.refuse_unknown(keys, members, at);
        let mut chosen =
            keys.iter().filter_map(|key| members.get_key_value(key.name).map(|(_, value)| (key, value)));
        let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
        let (Some((key, value)), None) = (chosen.next(), chosen.next()) else {
            let complaint = Complaint::new(
                "expected exactly one key in this section",
                format!("write exactly one of {}", names.join(", ")),
            );
            self.faults.push(ConfigFault::at_key(at.clone(), complaint));
            return None;
        };
        let value = self.value(&key.kind, value, &at.key(key.name))?;
        Some(Value::Object([(key.name.to_owned(), value)].into_iter().collect()))
    }

    fn leaf(&mut self, at: Pointer, value: Value, given: ValueSource) -> Value {
        self.leaves.push(Leaf { at, value: value.clone(), given, is_secret: false });
        value
    }

    fn refuse_unknown(&mut self, keys: &[ConfigKey], members: &Map<String, Value>, at: &Pointer) {
        for name in members.keys().filter(|name| keys.iter().all(|key| key.name != name.as_str())) {
            let complaint =
                Complaint::new(format!("unknown key `{}`", shown(name)), words::instead_of(name, keys));
            self.faults.push(ConfigFault::at_key(at.key(name), complaint));
        }
    }

    fn refuse_long(&mut self, items: &[Value], at: &Pointer) {
        if items.len() > MAX_ITEMS {
            let complaint = Complaint::new(
                format!("the list has {} entries, the limit is {MAX_ITEMS}", items.len()),
                "shorten it",
            );
            self.faults.push(ConfigFault::at_value(at.clone(), complaint));
        }
    }
}

fn scalar(kind: &ConfigValueKind, value: &Value) -> Result<(), Complaint> {
    match (kind, value) {
        (ConfigValueKind::Flag, Value::Bool(_)) => Ok(()),
        (ConfigValueKind::Version, Value::Number(number)) if number.as_u64() == Some(VERSION) => Ok(()),
        (ConfigValueKind::Version, Value::Number(number)) => Err(Complaint::new(
            format!("unknown version {number}"),
            format!("write `version: {VERSION}`, or use the Toolgate release that wrote this file"),
        )),
        (ConfigValueKind::Number { least, most }, Value::Number(number)) => {
            within(number.as_u64(), *least, *most, &number.to_string(), |bound| bound.to_string())
        }
        (ConfigValueKind::Duration { least, most }, Value::String(text)) => match milliseconds(text) {
            None => Err(words::mismatch(kind, value)),
            ms => within(ms, *least, *most, text, show_milliseconds),
        },
        (ConfigValueKind::Size { least, most }, Value::String(_) | Value::Number(_)) => match bytes(value) {
            None => Err(words::mismatch(kind, value)),
            size => within(size, *least, *most, value.to_string().trim_matches('"'), show_bytes),
        },
        (ConfigValueKind::Choice(known), Value::String(word)) => check_choice(known, word),
        (ConfigValueKind::Text(shape), Value::String(text)) => shape.check(text),
        _ => Err(words::mismatch(kind, value)),
    }
}

fn within(
    amount: Option<u64>,
    least: u64,
    most: u64,
    written: &str,
    show: impl Fn(u64) -> String,
) -> Result<(), Complaint> {
    if amount.is_some_and(|amount| (least..=most).contains(&amount)) {
        return Ok(());
    }
    let bounds = format!("from {} to {}", show(least), show(most));
    Err(Complaint::new(format!("`{}` is out of range", shown(written)), format!("write a value {bounds}")))
}

fn check_choice(known: &[&'static str], word: &str) -> Result<(), Complaint> {
    if known.contains(&word) {
        return Ok(());
    }
    let is_unsigned = word.eq_ignore_ascii_case("none") && known.contains(&"HS256");
    let problem = if is_unsigned {
        "`none` would accept unsigned tokens".to_owned()
    } else {
        format!("unknown value `{}`", shown(word))
    };
    Err(Complaint::new(problem, words::instead_of_choice(word, known)))
}

fn has_query(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('?'))
}

pub(crate) const VERSION: u64 = 1;

/// The longest list. A longer one belongs in a data file.
pub(crate) const MAX_ITEMS: usize = 1_000;
