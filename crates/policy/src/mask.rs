//! How is a secret kept out of what leaves? By its own bytes, and by the forms that a line of code turns them into.

use std::{fmt, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use serde_json::Value;

use self::traces::Traces;
use crate::keys::DistinctMembers;

mod traces;

/// The secrets of one call. Built anew for each, so that a changed environment counts at once.
pub struct Mask(Finder, Option<Traces>);

enum Finder {
    NothingToFind,
    Finds {
        finder: AhoCorasick,
        patterns: Vec<String>,
    },
    /// The secrets are too large to be searched for: then nothing is let through.
    HidesAll,
}

impl Mask {
    /// Values of fewer than four characters are not masked: they would blank out half of every text.
    pub fn new(secrets: &[String]) -> Self {
        let mut patterns: Vec<String> = secrets
            .iter()
            .filter(|secret| secret.chars().count() >= SHORTEST)
            .flat_map(|secret| forms(secret))
            .collect();
        patterns.sort_unstable();
        patterns.dedup();
        if patterns.is_empty() {
            return Self(Finder::NothingToFind, None);
        }
        // The fastest way takes a kilobyte for each byte of a pattern: it is for what is short.
        let bytes: usize = patterns.iter().map(String::len).sum();
        let kind = (bytes > MOST_BYTES_TO_BE_FAST).then_some(AhoCorasickKind::ContiguousNFA);
        let finder =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).kind(kind).build(&patterns);
        Self(finder.map_or(Finder::HidesAll, |finder| Finder::Finds { finder, patterns }), None)
    }

    /// Hides these too, as they stand and in no disguise, and of the longer ones every part of 15 bytes or more. There may
    /// be ever so many, and ever so long ones.
    #[must_use]
    pub fn and_as_they_stand<'v>(self, values: impl Iterator<Item = &'v str>) -> Self {
        Self(self.0, Some(Traces::of(values)))
    }

    pub fn text(&self, text: &str) -> String {
        match &self.0 {
            Finder::NothingToFind | Finder::Finds { .. } if self.1.is_some() => self.without_traces(text),
            Finder::NothingToFind => text.to_owned(),
            Finder::Finds { finder, .. } => {
                let mut masked = String::with_capacity(text.len());
                finder.replace_all_with(text, &mut masked, |_, _, masked| {
                    masked.push_str(MASKED);
                    true
                });
                masked
            }
            Finder::HidesAll => MASKED.to_owned(),
        }
    }

    /// Both are looked for in the text as it is, so that neither tears apart what the other looks for.
    fn without_traces(&self, text: &str) -> String {
        let mut is_hidden = vec![false; text.len()];
        let mut hide = |place: Range<usize>| {
            if let Some(part) = is_hidden.get_mut(place) {
                part.fill(true);
            }
        };
        if let Some(traces) = &self.1 {
            traces.find(text.as_bytes(), &mut hide);
        }
        if let Finder::Finds { finder, .. } = &self.0 {
            finder.find_iter(text).for_each(|found| hide(found.range()));
        }
        let (mut masked, mut was_hidden) = (String::with_capacity(text.len()), false);
        for (at, character) in text.char_indices() {
            let bytes = is_hidden.get(at..at + character.len_utf8()).unwrap_or_default();
            let hides = bytes.contains(&true);
            match (hides, was_hidden) {
                (false, _) => masked.push(character),
                (true, false) => masked.push_str(MASKED),
                (true, true) => {}
            }
            was_hidden = hides;
        }
        masked
    }

    /// A text that was cut off somewhere: a secret may have begun at the cut, and its beginning goes too.
    pub fn cut_text(&self, text: &str) -> String {
        let mut masked = self.text(text);
        let Finder::Finds { patterns, .. } = &self.0 else { return masked };
        let end = masked.strip_suffix('…').unwrap_or(&masked).len();
        let kept = masked.get(..end).unwrap_or_default();
        let begun = patterns.iter().flat_map(|pattern| {
            let lengths = pattern.char_indices().map(|(at, _)| at).filter(|at| *at >= SHORTEST);
            lengths.filter(|at| pattern.get(..*at).is_some_and(|start| kept.ends_with(start)))
        });
        if let Some(length) = begun.max() {
            masked.truncate(end.saturating_sub(length));
            masked.push_str(MASKED);
        }
        masked
    }

    /// Every text in a value, keys included. Two keys that are masked to the same text stay two.
    pub fn value(&self, value: Value) -> Value {
        if let (Finder::NothingToFind, None) = (&self.0, &self.1) {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(members) => {
                let mut masked = DistinctMembers::with_capacity(members.len());
                for (key, value) in members {
                    masked.insert(self.text(&key), self.value(value));
                }
                Value::Object(masked.into_members())
            }
            Value::Number(number) if self.text(&number.to_string()) != number.to_string() => MASKED.into(),
            other => other,
        }
    }
}

/// The secret in its usual disguises. Base64 in each of its three alignments, without the characters at either end
/// that depend on the neighbours.
fn forms(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let hex = bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let mut forms = vec![secret.to_owned(), hex.to_uppercase(), secret.chars().rev().collect()];
    forms.push(hex);
    // As the URL functions of JavaScript write it, each leaving other marks alone, and as a form does.
    for kept in ["", "!'()*", "!'()*;/?:@&=+$,#", "*"] {
        forms.push(percent_encoded(secret, kept, Digits::Upper));
        forms.push(percent_encoded(secret, kept, Digits::Lower));
    }
    forms.push(percent_encoded(secret, "*", Digits::Upper).replace("%20", "+"));
    let escaped = Value::from(secret).to_string();
    let escaped = escaped.trim_matches('"');
    for written in
        [escaped.to_owned(), only_ascii(escaped, Digits::Lower), only_ascii(escaped, Digits::Upper)]
    {
        forms.push(written.replace('/', "\\/"));
        forms.push(written);
    }
    for alignment in 0..3 {
        let padded = [&vec![0; alignment], bytes].concat();
        let encoded = STANDARD_NO_PAD.encode(&padded);
        let first = (alignment * 8).div_ceil(6);
        let whole = padded.len() * 8 / 6;
        if let Some(stable) = encoded.get(first..whole).filter(|stable| stable.len() >= SHORTEST_ENCODED) {
            forms.push(stable.replace('+', "-").replace('/', "_"));
            forms.push(stable.to_owned());
        }
    }
    forms
}

#[derive(Clone, Copy)]
enum Digits {
    Upper,
    Lower,
}

fn percent_encoded(text: &str, kept: &str, digits: Digits) -> String {
    let is_kept =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || kept.as_bytes().contains(&byte);
    text.bytes()
        .map(|byte| match digits {
            _ if is_kept(byte) => char::from(byte).to_string(),
            Digits::Upper => format!("%{byte:02X}"),
            Digits::Lower => format!("%{byte:02x}"),
        })
        .collect()
}

/// As many writers of JSON do unless they are told otherwise.
fn only_ascii(text: &str, digits: Digits) -> String {
    let escaped = |unit: &u16| match digits {
        Digits::Upper => format!("\\u{unit:04X}"),
        Digits::Lower => format!("\\u{unit:04x}"),
    };
    text.chars()
        .map(|character| match character {
            ascii if ascii.is_ascii() => ascii.to_string(),
            other => other.encode_utf16(&mut [0; 2]).iter().map(escaped).collect(),
        })
        .collect()
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mask(***)")
    }
}

const MASKED: &str = "***";
const SHORTEST: usize = 4;
const SHORTEST_ENCODED: usize = 5;
const MOST_BYTES_TO_BE_FAST: usize = 8 * 1_024;

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use serde_json::json;

    use super::*;

    const SECRET: &str = "s3cr3t/+value 42";

    #[track_caller]
    fn check_hidden(text: &str) {
        let masked = Mask::new(&[SECRET.to_owned()]).text(text);
        assert!(masked.contains("***"), "`{text}` came through as `{masked}`");
    }

    #[test]
    fn the_usual_disguises_are_seen_through() {
        check_hidden(SECRET);
        check_hidden(&format!("Bearer {SECRET}."));
        for before in ["", "a", "ab", "abc"] {
            check_hidden(&STANDARD.encode(format!("{before}{SECRET}after")));
            check_hidden(&URL_SAFE.encode(format!("{before}{SECRET}")));
        }
        check_hidden("s3cr3t%2F%2Bvalue%2042");
        check_hidden("7333637233742f2b76616c7565203432");
        check_hidden(&SECRET.chars().rev().collect::<String>());
    }

    /// Python writes JSON in ASCII, PHP escapes slashes as well, and others write the digits in capitals.
    #[test]
    fn json_in_ascii_and_with_escaped_slashes_is_seen_through() {
        let mask = Mask::new(&["pässwort/😀".to_owned()]);
        for written in [
            "pässwort/😀",
            r"pässwort\/😀",
            r"p\u00e4sswort/\ud83d\ude00",
            r"p\u00e4sswort\/\ud83d\ude00",
            r"p\u00E4sswort/\uD83D\uDE00",
            r"p\u00E4sswort\/\uD83D\uDE00",
        ] {
            let text = format!(r#"{{"token":"{written}"}}"#);
            assert_eq!(mask.text(&text), r#"{"token":"***"}"#);
            assert_eq!(mask.value(json!({ written: [text] })), json!({ "***": [r#"{"token":"***"}"#] }));
        }
        let short = Mask::new(&["äöü1".to_owned()]);
        assert_eq!(short.text(r"\u00e4\u00f6\u00fc1"), "***");
    }

    #[test]
    fn a_secret_that_begins_at_the_cut_is_not_shown_in_part() {
        let mask = Mask::new(&[SECRET.to_owned()]);
        assert_eq!(mask.cut_text("token s3cr3t/+va…"), "token ***");
        assert_eq!(mask.cut_text("token s3c"), "token s3c");
        assert_eq!(mask.cut_text("whole s3cr3t/+value 42 x"), "whole *** x");
    }

    #[test]
    fn keys_are_masked_too_and_other_text_is_left_alone() {
        let mask = Mask::new(&[SECRET.to_owned()]);
        assert_eq!(mask.value(json!({ SECRET: [1, "x"] })), json!({ "***": [1, "x"] }));
        assert_eq!(mask.text("nothing here"), "nothing here");
    }

    /// Each key is masked to the same text; trying every number for each of them takes hours.
    #[test]
    fn ever_so_many_keys_that_read_alike_are_kept() {
        let many: serde_json::Map<String, Value> = (0..50_000).map(|n| (n.to_string(), json!(n))).collect();
        let masked = Mask(Finder::HidesAll, None).value(Value::Object(many));
        let members = masked.as_object().unwrap();
        assert_eq!(members.len(), 50_000);
        assert!(members.contains_key("***") && members.contains_key("*** (50000)"));
    }

    /// A caller may choose what is looked for, and so how long it is.
    #[test]
    fn a_long_value_is_found_without_taking_much_memory() {
        let long: String = (0..16 * 1_024_u32).filter_map(|n| char::from_u32(33 + n * n % 90)).collect();
        let mask = Mask::new(std::slice::from_ref(&long));
        assert_eq!(mask.text(&format!("a {long} b")), "a *** b");
        let Finder::Finds { finder, patterns } = &mask.0 else { panic!("nothing to find") };
        let bytes: usize = patterns.iter().map(String::len).sum();
        assert!(finder.memory_usage() < 64 * bytes, "{} for {bytes}", finder.memory_usage());
    }

    #[test]
    fn short_values_are_looked_for_in_the_fastest_way() {
        let Finder::Finds { finder, .. } = Mask::new(&[SECRET.to_owned()]).0 else { panic!("nothing") };
        assert_eq!(finder.kind(), AhoCorasickKind::DFA);
    }

    #[test]
    fn what_is_looked_for_as_it_stands_is_hidden_beside_the_secrets() {
        let long = "Frau Müller, Straße der Zwölf Bäume 3, Köln";
        let mask = Mask::new(&[SECRET.to_owned()]).and_as_they_stand([long, "Bäume"].into_iter());
        assert_eq!(mask.text(&format!("<{long}> or <{SECRET}>, <Bäume>")), "<***> or <***>, <***>");
        assert_eq!(mask.text("Straße der Zwölf Böume"), "***ume", "a character is hidden as a whole");
        assert_eq!(mask.text("nothing here"), "nothing here");
        assert_eq!(mask.value(json!({ long: [long, 1] })), json!({ "***": ["***", 1] }));
        let alone = Mask::new(&[]).and_as_they_stand(["5550123"].into_iter());
        assert_eq!(alone.value(json!({ "phone": 5_550_123 })), json!({ "phone": "***" }));
        // One that holds another is hidden as a whole.
        let both = Mask::new(&["ann@example.org, Ann Smith".to_owned()])
            .and_as_they_stand(["example.org"].into_iter());
        assert_eq!(both.text("to ann@example.org, Ann Smith!"), "to ***!");
    }

    #[test]
    fn short_values_are_not_masked() {
        assert_eq!(Mask::new(&["abc".to_owned()]).text("abc"), "abc");
    }
}
