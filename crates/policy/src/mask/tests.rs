use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const SECRET: &str = "s3cr3t/+value 42";

#[track_caller]
fn check_hidden(text: &str) {
    let masked = Mask::new(&[SECRET.to_owned()]).text(text);
    assert!(masked.contains("***"), "`{text}` came through as `{masked}`");
}

#[test]
fn common_encodings_are_redacted() {
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

/// Python writes JSON in ASCII, PHP also escapes slashes, and others write the digits in capitals.
#[test]
fn ascii_json_with_escaped_slashes_is_redacted() {
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

/// The end is dropped regardless of its content. The cut depends on lines and lengths only.
#[test]
fn end_of_a_cut_text_is_dropped() {
    let mask = Mask::new(&[SECRET.to_owned()]);
    for end in ["s3cr3t/+va", "s3cr3t/+xx", "s3c", "", "anything else", SECRET] {
        assert_eq!(mask.cut_text(&format!("first line\n{end}")), "first line\n…");
    }
    let long = "x".repeat(1_000);
    assert_eq!(mask.cut_text(&format!("{SECRET} {long}")), format!("*** {}…", "x".repeat(1_000 - 512)));
    // The secret starts before the cut and ends after it.
    let across = format!("{long}{SECRET}{}", "y".repeat(500));
    assert_eq!(mask.cut_text(&across), format!("{long}***…"));
    assert_eq!(Mask::new(&[]).cut_text("no secrets at all"), "no secrets at all…");
}

#[test]
fn keys_are_masked_too_and_other_text_is_left_alone() {
    let mask = Mask::new(&[SECRET.to_owned()]);
    assert_eq!(mask.value(json!({ SECRET: [1, "x"] })), json!({ "***": [1, "x"] }));
    assert_eq!(mask.text("nothing here"), "nothing here");
}

/// All keys become equal; trying every number for each would take hours.
#[test]
fn very_many_equal_masked_keys_are_kept() {
    let many: serde_json::Map<String, Value> = (0..50_000).map(|n| (n.to_string(), json!(n))).collect();
    let masked = Mask { finder: Finder::HidesAll, traces: None }.value(Value::Object(many));
    let members = masked.as_object().unwrap();
    assert_eq!(members.len(), 50_000);
    assert!(members.contains_key("***") && members.contains_key("*** (50000)"));
}

/// For any characters, including those of escapes.
#[test]
fn long_value_is_redacted() {
    let long: String = (0..16 * 1_024_u32).filter_map(|n| char::from_u32(33 + n * n % 90)).collect();
    let mask = Mask::new(std::slice::from_ref(&long));
    assert_eq!(mask.text(&format!("a {long} b")), "a *** b");
}

#[test]
fn short_values_are_not_masked() {
    assert_eq!(Mask::new(&["abc".to_owned()]).text("abc"), "abc");
}

/// If `…` ended a match, a caller who writes it would learn whether the text before it is the start of a secret.
#[test]
fn beginning_of_a_secret_before_an_ellipsis_is_not_compared() {
    let mask = Mask::new(&[SECRET.to_owned()]);
    let value = json!({ "s3cr3t/+va… `s3cr3t/+va…` s3cr3t/+value 4": ["s3cr3t/+value…", "s3cr…"] });
    assert_eq!(mask.value(value.clone()), value);
}

#[test]
fn truncated_encoded_secret_is_not_shown() {
    let secret = "Hunter2/'\"\\ ~ä€😀\n%41+end";
    let mask = Mask::new(&[secret.to_owned()]);
    let before = "x".repeat(600);
    for (name, encode) in ENCODERS {
        let encoded = encode(secret);
        for (at, _) in encoded.char_indices().skip(1) {
            let masked = mask.cut_text(&format!("{before} key={}", &encoded[..at]));
            assert!(!masked.contains("Hun"), "{name}: `{}` came through as `{masked}`", &encoded[..at]);
        }
    }
}

#[test]
fn secrets_that_overlap_are_masked_as_one() {
    let mask = Mask::new(&["abcdef".to_owned(), "defghijklmnop".to_owned(), "ghij".to_owned()]);
    assert_eq!(mask.text("-abcdefghijklmnop-"), "-***-");
    assert_eq!(mask.text("abcdef ghij"), "*** ***");
}

#[test]
fn a_value_of_four_characters_is_found_in_base64_at_every_alignment() {
    let mask = Mask::new(&["k7#x".to_owned()]);
    for before in ["", "x", "xx", "xxx"] {
        let masked = mask.text(&STANDARD.encode(format!("{before}k7#xy")));
        assert!(masked.contains("***"), "behind `{before}`: {masked}");
    }
}

/// `btoa` and `escape` write one byte per character if that is enough.
#[test]
fn latin1_encodings_are_redacted() {
    let mask = Mask::new(&["pässwort-é".to_owned()]);
    assert_eq!(mask.text("-p%E4sswort-%E9-"), "-***-");
    let mut latin = b"?p\xe4sswort-\xe9?".to_vec();
    assert!(mask.text(&STANDARD.encode(&latin)).contains("***"));
    latin.insert(0, b'?');
    assert!(mask.text(&STANDARD.encode(&latin)).contains("***"));
    assert_eq!(Mask::new(&["1 € = ä".to_owned()]).text("1%20%u20AC%20%3D%20%E4"), "***");
}

/// A secret may contain text that looks like an escape, and an encoder may leave it unescaped.
#[test]
fn secret_that_looks_like_an_escape_is_redacted() {
    for secret in ["50%20off", r"C:\new\temp", "100%", "%41%42%43%44%45", r"a\u0041\x41b"] {
        let mask = Mask::new(&[secret.to_owned()]);
        assert_eq!(mask.text(&format!("<{secret}>")), "<***>");
        for (name, encode) in ENCODERS {
            assert_eq!(mask.text(&format!("<{}>", encode(secret))), "<***>", "{secret} by {name}");
        }
    }
    let mask = Mask::new(&["50%20'off".to_owned()]);
    assert_eq!(mask.text("?k=50%20%27off#"), "?k=***#");
}

/// Redaction removes no more than necessary.
#[test]
fn text_around_an_escaped_secret_stays() {
    let mask = Mask::new(&["it's me".to_owned()]);
    assert_eq!(mask.text(r"a\nb%20it%27s+me%20\u00e4 100%"), r"a\nb%20***%20\u00e4 100%");
    assert_eq!(mask.text(r"a\nb%20\u00e4 100% \"), r"a\nb%20\u00e4 100% \");
}

type Encoder = (&'static str, fn(&str) -> String);

/// The output of common libraries. Each percent-encoding keeps the characters of its standard.
const ENCODERS: [Encoder; 16] = [
    ("encodeURIComponent", |text| percent(text, |mark| b"-_.~!'()*".contains(&mark))),
    ("encodeURI", |text| percent(text, |mark| b"-_.~!'()*;/?:@&=+$,#".contains(&mark))),
    ("RFC 3986", |text| percent(text, |mark| b"-_.~".contains(&mark))),
    ("a form", form),
    ("small digits", |text| small_digits(&percent(text, |mark| b"-_.~".contains(&mark)))),
    ("everything", |text| text.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02X}"))),
    ("a URL's query", |text| percent(text, |mark| !b" \"#<>'".contains(&mark))),
    ("a URL's path", |text| percent(text, |mark| !b" \"#<>?^`{}".contains(&mark))),
    ("a URL's user name", |text| percent(text, |mark| !b" \"#<>?^`{}/:;=@[\\]|".contains(&mark))),
    ("JSON", json_text),
    ("JSON in ASCII", |text| only_ascii(&json_text(text)).replace('/', "\\/")),
    ("escape_debug", |text| text.escape_debug().to_string()),
    ("a URL's query in JSON", |text| json_text(&percent(text, |mark| !b" \"#<>'".contains(&mark)))),
    ("JSON in a form", |text| form(&json_text(text))),
    ("a message in JSON", |text| json_text(&text.escape_debug().to_string())),
    ("a form in a form", |text| form(&form(text))),
];

/// All of them keep letters and digits, and none keeps control or non-ASCII characters.
fn percent(text: &str, stays: fn(u8) -> bool) -> String {
    text.bytes()
        .map(|byte| match byte {
            letter if letter.is_ascii_alphanumeric() => char::from(letter).to_string(),
            mark if (b' '..=b'~').contains(&mark) && stays(mark) => char::from(mark).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

fn form(text: &str) -> String {
    percent(text, |mark| b"-_.*".contains(&mark)).replace("%20", "+")
}

/// Lowers the digits of the escapes only.
fn small_digits(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| format!("{text}%{}{}", part[..2].to_lowercase(), &part[2..]))
}

fn json_text(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn only_ascii(text: &str) -> String {
    let escaped = |unit: &u16| format!("\\u{unit:04x}");
    text.chars()
        .map(|character| match character {
            ascii if ascii.is_ascii() => ascii.to_string(),
            other => other.encode_utf16(&mut [0; 2]).iter().map(escaped).collect(),
        })
        .collect()
}

proptest! {
    /// Nothing of it is left, and nothing else is removed: the brackets occur in no secret and in no encoding of one.
    #[test]
    fn secret_is_redacted_in_every_encoding(secret in SECRETS) {
        // Some encoders keep `%41` and `%u0041`: the rest of the secret must be long enough to be one.
        prop_assume!(secret.chars().count() >= 4 + 5 * secret.matches('%').count());
        let mask = Mask::new(std::slice::from_ref(&secret));
        for (name, encode) in ENCODERS {
            let masked = mask.text(&format!("⟦{}⟧", encode(&secret)));
            prop_assert_eq!(masked, "⟦***⟧", "{:?} by {}", secret, name);
        }
    }

    #[test]
    fn no_alignment_of_base64_gets_it_through(
        secret in SECRETS,
        before in "[ -~]{0,3}",
        after in "[ -~]{0,3}",
    ) {
        let mask = Mask::new(std::slice::from_ref(&secret));
        let text = format!("{before}{secret}{after}");
        for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
            let masked = mask.text(&encoded);
            let left: usize = masked.split("***").map(str::len).sum();
            // The neighbours remain, with the bits of the secret that share a character with them.
            prop_assert!(masked.contains("***") && left <= 12, "{secret:?}: {encoded} became {masked}");
        }
    }
}

const SECRETS: &str = "[ -~äß€😀\n]{4,32}";

/// Text that a caller may write around a guess.
const AROUND: [&str; 8] = ["…", " … ", "\n", "`", "%", "\\", "\u{fffd}", " and more "];

/// Every encoding of a part of a secret whose whole the mask recognises.
fn written(part: &str, by: usize) -> String {
    match ENCODERS.get(by) {
        Some((_, encode)) => encode(part),
        None => match by - ENCODERS.len() {
            0 => part.to_owned(),
            1 => part.chars().rev().collect(),
            2 => part.bytes().fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
            3 => STANDARD.encode(part),
            _ => URL_SAFE.encode(part),
        },
    }
}

proptest! {
    /// The text is compared with whole secrets only. The results for any two secrets are therefore equal, unless the text
    /// contains a whole one.
    #[test]
    fn answer_does_not_depend_on_a_secret_that_the_text_contains_only_in_part(
        secret in "[A-Za-z0-9]{6,40}",
        other in "[A-Za-z0-9]{6,40}",
        pieces in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..ENCODERS.len() + 5, 0..AROUND.len(), any::<bool>()),
            1..8,
        ),
        padding in 0_usize..1_500,
        cut in any::<prop::sample::Index>(),
    ) {
        // The brackets keep two parts from forming a whole secret.
        let mut text = "⟦".to_owned();
        for (length, by, around, from_end) in pieces {
            let length = length.index(secret.len());
            let part = if from_end { &secret[secret.len() - length..] } else { &secret[..length] };
            text.extend([written(part, by).as_str(), AROUND[around], "⟧"]);
        }
        text += &"-".repeat(padding);
        text += &secret[..secret.len() - 1];
        let (mask, others) = (Mask::new(&[secret]), Mask::new(&[other]));
        prop_assume!(others.text(&text) == text);
        prop_assert_eq!(mask.text(&text), text.clone());
        prop_assert_eq!(mask.value(json!({ &text: [&text] })), json!({ &text: [&text] }));
        // The gateway may truncate the text anywhere.
        let cut = text.floor_char_boundary(cut.index(text.len() + 1));
        prop_assert_eq!(mask.cut_text(&text[..cut]), others.cut_text(&text[..cut]));
    }
}

#[test]
fn verbatim_values_are_redacted_with_the_secrets() {
    let long = "Frau Müller, Straße der Zwölf Bäume 3, Köln";
    let mask = Mask::new(&[SECRET.to_owned()]).and_as_they_stand([long, "Bäume"].into_iter());
    assert_eq!(mask.text(&format!("<{long}> or <{SECRET}>, <Bäume>")), "<***> or <***>, <***>");
    assert_eq!(mask.text("Straße der Zwölf Böume"), "***ume", "a character is hidden as a whole");
    assert_eq!(mask.text("nothing here"), "nothing here");
    assert_eq!(mask.value(json!({ long: [long, 1] })), json!({ "***": ["***", 1] }));
    let alone = Mask::new(&[]).and_as_they_stand(["5550123"].into_iter());
    assert_eq!(alone.value(json!({ "phone": 5_550_123 })), json!({ "phone": "***" }));
    // A value that contains another one is redacted as a whole.
    let both =
        Mask::new(&["ann@example.org, Ann Smith".to_owned()]).and_as_they_stand(["example.org"].into_iter());
    assert_eq!(both.text("to ann@example.org, Ann Smith!"), "to ***!");
}
