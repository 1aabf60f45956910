//! Distinguishes an assigned value from the name of a commit, a digest or a request.
//!
//! A provider's name near forty hex digits proves little: `uses: acme/action@…` and `Bump acme-agent` have both. A key follows an
//! assignment, is a quoted argument, or follows a word for a key.

use crate::marker::MarkerSpans;

/// Whether the value at `start` is in a position where keys are written. Ignores markers in between, because the text may have
/// contained them before.
pub(super) fn is_given(hay: &[u8], start: usize, marks: &MarkerSpans) -> bool {
    let from = start.saturating_sub(marks.reach_before(start, REACH));
    let before = marks.without(hay, &(from..start));
    let before = before.as_ref();
    let unquoted = trimmed(before, |byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\'));
    let is_quoted = unquoted.len() < before.len();
    // Code formatters break a line after the sign. A separate line without quotes is a digest.
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t') || is_quoted && matches!(byte, b'\r' | b'\n');
    let text = trimmed(unquoted, is_blank);
    let touches = text.len() == before.len();
    match text.last() {
        Some(b'=' | b':' | b'>') => is_assigned(text, touches),
        Some(b'(' | b'[' | b'{') => is_quoted,
        Some(b',' | b'|') => is_quoted || !touches,
        Some(b'/') if touches => ENDPOINTS.iter().any(|end| text.ends_with(end)),
        Some(_) if !touches && !is_quoted => says_key(last_word(text)),
        _ => false,
    }
}

/// `name =`, `"name": `, `name => `, `<name>`, unless the name is that of a public value.
fn is_assigned(text: &[u8], touches: bool) -> bool {
    let left = before_sign(text);
    let name = last_word(left);
    // A tag follows `registry/acme/agent:`.
    let is_path =
        touches && text.ends_with(b":") && left.strip_suffix(name).is_some_and(|path| path.ends_with(b"/"));
    !is_path && !is_public(name)
}

/// The name to which the value after `text` is assigned. `text` ends with the sign, blanks and quotes.
pub(super) fn name_before(text: &[u8]) -> &[u8] {
    last_word(before_sign(text))
}

fn before_sign(text: &[u8]) -> &[u8] {
    trimmed(text, |byte| {
        byte.is_ascii_whitespace() || matches!(byte, b'=' | b':' | b'>' | b'"' | b'\'' | b'`' | b'\\' | b']')
    })
}

/// `commit`, `imageDigest`, `trace_id`, `traceId`: names of values in logs, lock files and URLs.
fn is_public(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_id = matches!(name, [.., b'_' | b'-', b'i' | b'I', b'd' | b'D'] | [.., b'a'..=b'z', b'I', b'd']);
    is_id || SHORT_PUBLIC.contains(&lower.as_slice()) || PUBLIC.iter().any(|word| lower.ends_with(word))
}

/// `token …`, `wandb login …`, `--api-key …`, `the key is …`.
fn says_key(word: &[u8]) -> bool {
    let lower = word.to_ascii_lowercase();
    let is_flag = lower.starts_with(b"-") && !is_public(word);
    is_flag || lower == b"is" || KEYS.iter().any(|key| lower.ends_with(key))
}

fn last_word(text: &[u8]) -> &[u8] {
    let belongs = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = text.iter().rev().take_while(belongs).count();
    text.get(text.len() - length..).unwrap_or_default()
}

fn trimmed(text: &[u8], goes: impl Fn(u8) -> bool) -> &[u8] {
    let kept = text.iter().rposition(|byte| !goes(*byte)).map_or(0, |at| at + 1);
    text.get(..kept).unwrap_or_default()
}

/// Enough for a name, a sign, blanks and quotes.
const REACH: usize = 80;
/// Parts of a URL that a key follows.
const ENDPOINTS: &[&[u8]] = &[b"/v2/", b"/v3/", b"/inputs/"];
/// Whole names of public values.
const SHORT_PUBLIC: &[&[u8]] = &[b"id", b"v", b"ver", b"rev", b"ref", b"h1", b"etag", b"index"];
/// The ends of names of public values.
const PUBLIC: &[&[u8]] = &[
    b"commit",
    b"revision",
    b"reference",
    b"version",
    b"sha",
    b"sha1",
    b"sha256",
    b"sha384",
    b"sha512",
    b"md5",
    b"hash",
    b"checksum",
    b"digest",
    b"integrity",
    b"fingerprint",
    b"uuid",
];
const KEYS: &[&[u8]] =
    &[b"key", b"token", b"secret", b"password", b"passwd", b"login", b"bearer", b"basic", b"auth"];

#[cfg(test)]
mod tests {
    use super::{MarkerSpans, is_given};

    #[track_caller]
    fn check(before: &[&str], expect: bool) {
        for text in before {
            assert_eq!(is_given(text.as_bytes(), text.len(), &MarkerSpans::default()), expect, "{text:?}");
        }
    }

    #[test]
    fn assigned_values_are_given() {
        check(
            &[
                "DD_API_KEY=",
                "export DD_API_KEY=\"",
                "datadog: ",
                "\"datadog_api_key\": \"",
                "{\\\"datadog\\\":\\\"",
                "datadog_key => '",
                "const DATADOG_KEY =\n    \"",
                "$config['datadog'] = '",
                "<datadogKey>",
                "new Datadog(\"",
                "Datadog(site, `",
                "| datadog | ",
                "X-Auth-Key: ",
                "Authorization: Token ",
                "wandb login ",
                "--datadog-api-key ",
                "our datadog key is ",
                "http://api.openweathermap.org/data?appid=",
                "https://mainnet.infura.io/v3/",
            ],
            true,
        );
    }

    #[test]
    fn names_of_public_values_are_not_given() {
        check(
            &[
                "",
                "uses: cloudflare/wrangler-action@",
                "git+https://github.com/cloudflare/quiche?branch=master#",
                "https://github.com/cloudflare/circl/blob/",
                "Bump datadog-agent\n\ncommit ",
                "datadog.zip\n",
                "zGVuQ2Q==\n",
                "github.com/zendesk/foo ",
                "Submodule path 'vendor/zendesk': checked out '",
                "\"commit\": \"",
                "datadog trace_id=",
                "\"datadog\", \"traceId\": \"",
                "datadog@sha256:",
                "image: docker.io/datadog/agent:",
                "datadog.js?v=",
                "datadog --commit ",
                "/assets/datadog-",
                "index 0123abc..",
                "import { ",
            ],
            false,
        );
    }
}
