//! Writes canonical JSON (RFC 8785), fast enough for every call.
//!
//! `serde_json` already writes strings and integers in canonical form, so mostly the order of members remains. A value
//! whose members are in order costs one comparison per key. Other values are sorted in one pass over the output.
//! Unusual values (keys that are not plain ASCII, duplicate keys) go to the canonicalizer, which handles everything and
//! is ten times slower.

mod fragment;
mod ordered;

use serde::Serialize;

pub use self::fragment::Fragment;

/// The canonical JSON of a value, for example to compute its digest.
pub fn canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(256);
    write(value, &mut out)?;
    Ok(out)
}

/// Appends the canonical JSON of a value.
pub(crate) fn write<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let start = out.len();
    if ordered::write(value, out).is_ok() {
        return Ok(());
    }
    out.truncate(start);
    let mut plain = Vec::with_capacity(USUAL_BYTES);
    serde_json::to_writer(&mut plain, value)?;
    if arrange(&plain, out).is_some() {
        return Ok(());
    }
    out.truncate(start);
    serde_json_canonicalizer::to_writer(value, out)
}

/// Whether all members of a value, at every depth, are in canonical order. Such a value is the cheapest to write.
pub fn is_in_order<T: Serialize>(value: &T) -> bool {
    ordered::write(value, &mut Vec::new()).is_ok()
}

/// Whether a text is canonical JSON.
pub(crate) fn is_canonical(text: &str) -> bool {
    let mut out = Vec::with_capacity(text.len());
    if arrange(text.as_bytes(), &mut out).is_some() {
        return out == text.as_bytes();
    }
    serde_json_canonicalizer::pipe(text).is_ok_and(|canonical| canonical == text)
}

fn arrange(json: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.reserve(json.len());
    let mut arranger = Arranger { rest: json, out, members: Vec::with_capacity(64), scratch: Vec::new() };
    arranger.value(0)?;
    arranger.rest.is_empty().then_some(())
}

/// Reads compact JSON and writes it in order. Gives up at the first byte that `serde_json` would write differently.
struct Arranger<'a, 'b> {
    rest: &'a [u8],
    out: &'b mut Vec<u8>,
    /// The members of all objects that are being read, the innermost last.
    members: Vec<ObjectMember<'a>>,
    scratch: Vec<u8>,
}

/// A member of an object: its key, and its range in the output.
struct ObjectMember<'a> {
    key: &'a [u8],
    start: usize,
    end: usize,
}

impl<'a> Arranger<'a, '_> {
    fn value(&mut self, depth: u32) -> Option<()> {
        match self.rest.first()? {
            b'"' => self.string().map(|_| ()),
            b'{' if depth < MAX_DEPTH => self.object(depth),
            b'[' if depth < MAX_DEPTH => self.array(depth),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        self.literal(b"[")?;
        if self.rest.first() != Some(&b']') {
            self.value(depth + 1)?;
            while self.rest.first() == Some(&b',') {
                self.literal(b",")?;
                self.value(depth + 1)?;
            }
        }
        self.literal(b"]")
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        self.literal(b"{")?;
        let (first, own) = (self.out.len(), self.members.len());
        if self.rest.first() != Some(&b'}') {
            loop {
                let member = self.member(depth)?;
                self.members.push(member);
                if self.rest.first() != Some(&b',') {
                    break;
                }
                self.literal(b",")?;
            }
        }
        if !self.members.get(own..)?.is_sorted_by(|one, next| one.key < next.key) {
            self.sort(first, own)?;
        }
        self.members.truncate(own);
        self.literal(b"}")
    }

    fn member(&mut self, depth: u32) -> Option<ObjectMember<'a>> {
        let start = self.out.len();
        let key = self.string()?;
        // The order is by UTF-16 units, which for plain ASCII is the order of bytes.
        if !key.is_ascii() || key.contains(&b'\\') {
            return None;
        }
        self.literal(b":")?;
        self.value(depth + 1)?;
        Some(ObjectMember { key, start, end: self.out.len() })
    }

    /// Sorts the members from index `own`, which were written from offset `first`.
    fn sort(&mut self, first: usize, own: usize) -> Option<()> {
        let members = self.members.get_mut(own..)?;
        members.sort_unstable_by_key(|member| member.key);
        if !members.is_sorted_by(|one, next| one.key < next.key) {
            return None;
        }
        self.scratch.clear();
        self.scratch.reserve(self.out.len().saturating_sub(first));
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                self.scratch.push(b',');
            }
            self.scratch.extend_from_slice(self.out.get(member.start..member.end)?);
        }
        self.out.truncate(first);
        self.out.extend_from_slice(&self.scratch);
        Some(())
    }

    /// Copies a string and returns it without its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let inner = self.rest.strip_prefix(b"\"")?;
        let mut at = 0;
        loop {
            at += inner.get(at..)?.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
            match inner.get(at..)? {
                [b'"', rest @ ..] => {
                    let (copied, text) = (self.rest.get(..at + 2)?, inner.get(..at)?);
                    self.out.extend_from_slice(copied);
                    self.rest = rest;
                    return Some(text);
                }
                [b'\\', b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => at += 2,
                [b'\\', b'u', b'0', b'0', high @ b'0'..=b'1', low, ..]
                    if has_no_short_escape(*high, *low) =>
                {
                    at += 6;
                }
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let end = self.rest.iter().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at_checked(end)?;
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let is_short = digits.len() <= EXACT_DIGITS && digits.iter().all(u8::is_ascii_digit);
        if is_short && (text == b"0" || !digits.starts_with(b"0")) && !digits.is_empty() {
            self.out.extend_from_slice(text);
        } else {
            let number: serde_json::Number = serde_json::from_slice(text).ok()?;
            serde_json_canonicalizer::to_writer(&number, self.out).ok()?;
        }
        self.rest = rest;
        Some(())
    }

    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        self.out.extend_from_slice(text);
        Some(())
    }
}

/// Whether `\u00` and these two digits are the canonical form of a control character.
fn has_no_short_escape(high: u8, low: u8) -> bool {
    matches!((high, low), (b'0', b'0'..=b'7' | b'b' | b'e' | b'f') | (b'1', b'0'..=b'9' | b'a'..=b'f'))
}

/// Enough for the record of a call.
const USUAL_BYTES: usize = 2048;
/// Deeper values go to the canonicalizer, because the recursion here must be bounded.
const MAX_DEPTH: u32 = 110;
/// Integers with this many digits are exact as doubles and are written unchanged.
const EXACT_DIGITS: usize = 15;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Number, Value, json};

    use super::*;

    #[track_caller]
    fn check(value: &Value) {
        let mut out = b"before".to_vec();
        write(value, &mut out).unwrap();
        let expected = serde_json_canonicalizer::to_string(value).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), format!("before{expected}"));
        assert!(is_canonical(&expected));
    }

    #[test]
    fn unusual_values_match_the_canonicalizer() {
        check(
            &json!({"b": 1, "a": {"d": [], "c": {}}, "B": [1.5, -0.0, 1e21, 1e-7, u64::MAX, i64::MIN, 0, -1]}),
        );
        check(&json!({"é": 1, "a\n": 2, "\u{1f600}": 3, "\u{ffff}": 4, "": 5}));
        check(&json!({"all": (0..=0x80_u8).map(char::from).collect::<String>(), "2028": "\u{2028}/"}));
        check(&json!([999_999_999_999_999_u64, 9_999_999_999_999_999_u64, 9_007_199_254_740_993_u64]));
    }

    #[test]
    fn other_spellings_are_not_canonical() {
        for text in [
            r#"{"b":1,"a":2}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a": 1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":-0}"#,
            r#"{"a":01}"#,
            r#"{"a":1e5}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u0061"}"#,
            r#"{"a":"\u000a"}"#,
            r#"{"a":"\u001F"}"#,
            r#"{"a":tru}"#,
            r#"{"a":1}}"#,
            r#"{"a":1,}"#,
            r#"{"a":-}"#,
            r#"{"a""#,
            "{\"a\":\"\n\"}",
            "",
        ] {
            assert!(!is_canonical(text), "{text}");
        }
    }

    #[test]
    fn order_is_checked_at_every_depth() {
        let in_order = [
            json!({}),
            json!({"": 1, "a": {"b": 1, "c": {}}, "ab": [{"z": 1}, {"a": 1}], "b": 1.5}),
            json!([{"b": {"a": 1}, "c": 1}, {"a": 1}]),
        ];
        for value in in_order {
            assert!(is_in_order(&value), "{value}");
            check(&value);
        }
        let others = [
            json!({"b": 1, "a": 1}),
            json!({"a": {"b": 1, "a": 1}}),
            json!({"a": {"z": 1}, "": 1}),
            json!({"b": {"c": 1}, "a": {"d": 1}}),
            json!([{"a": 1}, {"b": 1, "a": 2}]),
            json!({"é": 1}),
            json!({"a\n": 1}),
        ];
        for value in others {
            assert!(!is_in_order(&value), "{value}");
            check(&value);
        }
    }

    /// A duplicate key has no canonical form.
    #[test]
    fn duplicate_key_is_not_in_order() {
        struct Twice;
        impl Serialize for Twice {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map([("a", 1), ("a", 2)])
            }
        }
        assert!(!is_in_order(&Twice));
    }

    /// Numeric keys are sorted as texts.
    #[test]
    fn numeric_and_boolean_keys_are_sorted() {
        let numbers: std::collections::BTreeMap<u8, u8> = [(9, 1), (10, 2)].into();
        let mut out = Vec::new();
        write(&numbers, &mut out).unwrap();
        assert_eq!(out, br#"{"10":2,"9":1}"#);
        let truths: std::collections::BTreeMap<bool, i64> = [(false, 1), (true, i64::MIN)].into();
        check(&serde_json::to_value(&truths).unwrap());
        write(&truths, &mut out).unwrap();
    }

    /// A fragment is written once and copied. Other raw JSON is sorted.
    #[test]
    fn fragments_are_copied_and_other_raw_json_is_sorted() {
        let value = json!({"b": [1.5, "\n"], "a": {"é": null}});
        let fragment = Fragment::of(&value).unwrap();
        let whole = [("a", &fragment), ("b", &fragment)];
        let whole: std::collections::BTreeMap<_, _> = whole.into_iter().collect();
        let mut out = Vec::new();
        write(&whole, &mut out).unwrap();
        assert_eq!(out, serde_json_canonicalizer::to_vec(&json!({"a": value, "b": value})).unwrap());
        assert!(is_in_order(&whole) && !is_in_order(&value));
        assert_eq!(serde_json::to_value(&fragment).unwrap(), value);
        let raw = serde_json::value::RawValue::from_string(r#"{"b":1,"a":2}"#.to_owned()).unwrap();
        out.clear();
        write(&[raw], &mut out).unwrap();
        assert_eq!(out, br#"[{"a":2,"b":1}]"#);
    }

    /// serde has more kinds of values than JSON.
    #[test]
    fn every_serde_type_matches_the_canonicalizer() {
        #[derive(Serialize)]
        enum Kinds {
            Unit,
            New(i8),
            Tuple(u16, char),
            Struct { b: f32, a: Option<bool> },
        }
        #[derive(Serialize)]
        struct Empty;
        #[derive(Serialize)]
        struct Newtype(u64);
        #[derive(Serialize)]
        struct Pair(i64, f64);
        let value = (
            (Kinds::Unit, Kinds::New(-1), Kinds::Tuple(1, '"'), Kinds::Struct { b: 0.5, a: None }),
            (Empty, Newtype(u64::MAX), Pair(i64::MIN, -0.0), (), 'é', "\u{7f}\u{1f}/"),
        );
        let mut out = Vec::new();
        write(&value, &mut out).unwrap();
        assert_eq!(out, serde_json_canonicalizer::to_vec(&value).unwrap());
        let simple = (Kinds::Unit, Empty, Newtype(1), Pair(-1, 1e21), Some("x"), None::<u8>);
        assert!(is_in_order(&simple));
        out.clear();
        write(&simple, &mut out).unwrap();
        assert_eq!(out, serde_json_canonicalizer::to_vec(&simple).unwrap());
    }

    proptest! {
        #[test]
        fn any_value_matches_the_canonicalizer(value in values()) {
            check(&value);
            let canonical = serde_json_canonicalizer::to_string(&value).unwrap();
            check(&serde_json::from_str(&canonical).unwrap());
        }

        #[test]
        fn any_text_is_judged_like_the_canonicalizer(value in values(), at in any::<prop::sample::Index>(), new in "[ -~]") {
            let mut text: Vec<char> = serde_json_canonicalizer::to_string(&value).unwrap().chars().collect();
            let at = at.index(text.len());
            text[at] = new.chars().next().unwrap();
            let text: String = text.into_iter().collect();
            let expected = serde_json_canonicalizer::pipe(&text).is_ok_and(|canonical| canonical == text);
            prop_assert_eq!(is_canonical(&text), expected, "{}", text);
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|number| json!(number)),
            (-1000_i64..1000).prop_map(|number| json!(number)),
            any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::Number)),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            let key = prop_oneof!["[a-z]{0,3}", any::<String>()];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((key, inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }
}
