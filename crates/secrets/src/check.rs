//! Checks the structure of a match: checksums, nested documents, key blocks, and whether a value is a literal.

use std::ops::Range;

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{marker::MarkerSpans, rule::MatchEnd};

mod assigned;
mod base58;
mod bech32;
mod checksum;
mod digest_or_image;
mod given;
mod jwk;
mod keylike;
mod pem;
mod placeholder;
mod shape;

pub(crate) use keylike::noise;
pub(crate) use pem::{body_end, covered_until};
pub(crate) use placeholder::{is_named_sample, is_sample};

/// The checks that a rule can name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RuleCheck {
    /// Not part of a binary file in base64.
    Apart,
    /// The pattern's last character begins a value that is a literal, not code and not a placeholder.
    Assigned,
    /// Like `Assigned`, and the value looks generated: for names such as `token` that often hold something else.
    AssignedKey,
    /// An access key id that names an account.
    AwsKeyId,
    /// The checksum of Base58Check.
    Base58,
    /// The part between the first `_` and the next `_` or the end is a JSON object in base64.
    Base64Json,
    /// `user:password` in base64.
    BasicAuth,
    /// The checksum of Bech32.
    Bech32,
    /// The last six characters are the CRC-32 of the part after the `_`, in base 62.
    Crc32,
    /// The last eight hex digits are the CRC-32 of the part before the last `_`, lowest byte first.
    Crc32Hex,
    /// The first part is a number in base64, like the id of a Discord user.
    Discord,
    /// `Mixed`, in a position where keys are written: not a commit, a digest or a part of a URL.
    Given,
    /// `Mixed`, and not a digest, image or alphabet. Extends to the end of the base64. For uncertain findings: only its name
    /// and length distinguish a digest from a key.
    Loose,
    /// Letters and digits, and not one repeated character.
    Mixed,
    /// A JSON Web Token: header and payload are JSON objects, or as random as those.
    Jwt,
    /// Like `Key`, after a name that ends with a word for a key: `acme-api-key-…`.
    JoinedKey,
    /// A member of a JSON Web Key.
    Jwk,
    /// Length and randomness of a generated key: not a name, path, version or placeholder.
    Key,
    /// Exactly 64 bytes in base64.
    Key64,
    /// The body of a private key without its header. The finding extends to its end.
    KeyBody,
    /// A private key block. The finding extends to its end.
    Pem,
    /// A macaroon for PyPI.
    PypiMacaroon,
    /// Letters and digits of a password: not a placeholder, name, call or path.
    Password,
    /// Upper-case letters, lower-case letters and digits, but not a name made of words and numbers.
    Random,
    /// The number of an application and a digest in base64, then at least forty characters.
    TwitterBearer,
    /// Anything except one repeated character after a prefix.
    Unfilled,
    /// The kinds of characters of a random key, and not one repeated character.
    Varied,
    /// A password in a position where only passwords are written: anything except a variable or a mask.
    Entered,
    /// A value in a URL: anything except a placeholder.
    Written,
}

pub(crate) enum CheckResult {
    Sound,
    /// The pattern matches, but the structure is wrong.
    Unsound,
    /// Not a secret.
    Refuted,
    /// Sound, with another span than the pattern.
    Extends(Range<usize>, MatchEnd),
}

impl RuleCheck {
    /// Whether the matched text alone can show that it is a sample from documentation. The excluded checks match only the
    /// beginning of a secret or a block, or judge the text more closely.
    pub(crate) fn has_samples(self) -> bool {
        !matches!(
            self,
            Self::Assigned
                | Self::AssignedKey
                | Self::AwsKeyId
                | Self::Jwt
                | Self::KeyBody
                | Self::Loose
                | Self::Pem
        )
    }

    pub(crate) fn judge(self, hay: &[u8], span: &Range<usize>, marks: &MarkerSpans) -> CheckResult {
        let secret = hay.get(span.clone()).unwrap_or_default();
        let is_sound = match self {
            Self::Assigned => {
                let literal = assigned::literal(hay, span, marks);
                return literal
                    .map_or(CheckResult::Refuted, |span| CheckResult::Extends(span, MatchEnd::Closed));
            }
            Self::AssignedKey => {
                let key = assigned::key(hay, span, marks);
                return key.map_or(CheckResult::Refuted, |span| CheckResult::Extends(span, MatchEnd::Closed));
            }
            Self::KeyBody => return pem::judge_body(hay, span),
            Self::Loose => return judge_loose(hay, span),
            Self::Pem => return pem::judge(hay, span),
            Self::Written => {
                return if assigned::is_written(secret) { CheckResult::Sound } else { CheckResult::Refuted };
            }
            Self::Entered => {
                // The quote ends the string that the whole line is part of.
                let entered = secret.strip_suffix(b"'").or(secret.strip_suffix(b"\"")).unwrap_or(secret);
                return if placeholder::is_template(entered) {
                    CheckResult::Refuted
                } else {
                    CheckResult::Sound
                };
            }
            Self::Apart => shape::is_apart(hay, span),
            Self::AwsKeyId => return judge_aws_key_id(hay, span),
            Self::Base58 => base58::is_sound(secret),
            Self::Base64Json => is_json_in_base64(secret),
            Self::BasicAuth => is_basic_auth(secret),
            Self::Bech32 => bech32::is_sound(secret),
            Self::Crc32 => checksum::is_sound(secret),
            Self::Crc32Hex => checksum::is_sound_in_hex(secret),
            Self::Discord => is_discord(secret),
            Self::Given => is_mixed(secret) && given::is_given(hay, span.start, marks),
            Self::Mixed => is_mixed(secret),
            Self::JoinedKey => assigned::is_joined(hay, span),
            Self::Jwk => jwk::is_member(hay, span),
            Self::Jwt => is_jwt(secret),
            Self::Key => {
                keylike::is_key(secret) && keylike::has_key_length(secret) && !keylike::has_stray(secret)
            }
            Self::Key64 => decode(secret).is_some_and(|key| key.len() == 64),
            Self::Password => assigned::is_password(secret),
            Self::PypiMacaroon => is_pypi(secret),
            Self::Random => shape::is_random(secret),
            Self::TwitterBearer => shape::is_twitter_bearer(secret),
            Self::Unfilled => !shape::is_filler(secret),
            Self::Varied => is_varied(hay, span),
        };
        match is_sound {
            true => CheckResult::Sound,
            false if shape::is_filler(secret) => CheckResult::Refuted,
            false => CheckResult::Unsound,
        }
    }
}

/// Bits per character, by how often each occurs.
pub(crate) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let total = u32::try_from(text.len()).map_or(f64::MAX, f64::from);
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / total);
    shares.map(|share| -share * share.log2()).sum()
}

/// Decodes either alphabet, padded or not; nothing if it is not base64.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD_ENGINE.decode(text).or_else(|_| URL_ENGINE.decode(text)).ok()
}

/// Decodes percent-encoding such as `%40`.
pub(crate) fn decoded_percent(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let digit = |at: usize| {
            behind
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
                .and_then(|digit| u8::try_from(digit).ok())
        };
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            decoded.push(high << 4 | low);
            rest = behind.get(2..).unwrap_or_default();
        } else {
            decoded.push(*first);
            rest = behind;
        }
    }
    decoded
}

fn after(text: &[u8], mark: u8) -> Option<&[u8]> {
    let at = memchr::memchr(mark, text)?;
    text.get(at + 1..)
}

fn json_object(text: &[u8]) -> Option<serde_json::Map<String, Value>> {
    serde_json::from_slice(&decode(text)?).ok()
}

/// Another part may follow the document, as in `sntrys_…_…`.
fn is_json_in_base64(token: &[u8]) -> bool {
    let text = after(token, b'_').unwrap_or(token);
    let first = text.split(|byte| *byte == b'_').next().unwrap_or_default();
    json_object(text).is_some() || json_object(first).is_some()
}

/// Header or payload is a JSON object. Or all parts are as random as in a token, because a log may cut or garble it.
fn is_jwt(token: &[u8]) -> bool {
    let mut parts = token.split(|byte| *byte == b'.');
    let [header, payload] = [(); 2].map(|()| parts.next().unwrap_or_default());
    let signature = parts.next().unwrap_or_default();
    let is_object = |part: &[u8]| json_object(part).is_some_and(|object| !object.is_empty());
    is_object(header) && is_object(payload)
        || signature.len() >= MIN_SIGNATURE
            && (is_object(header) || is_object(payload) || [header, payload].into_iter().all(is_mixed))
}

/// Without a digit it may be a word, such as `ASIAPACIFICNORTHEAST`. If more characters follow, it is a longer word.
fn judge_aws_key_id(hay: &[u8], span: &Range<usize>) -> CheckResult {
    let body = hay.get(span.start + 4..span.end).unwrap_or_default();
    let has_digit = body.iter().any(u8::is_ascii_digit);
    let before = span.start.checked_sub(1).and_then(|at| hay.get(at));
    let is_longer = [before, hay.get(span.end)].into_iter().flatten().any(u8::is_ascii_uppercase);
    if entropy(body) < 2.0 || !has_digit && is_longer {
        return CheckResult::Refuted;
    }
    match (names_an_account(body), has_digit) {
        (true, _) => CheckResult::Sound,
        (false, true) => CheckResult::Unsound,
        (false, false) => CheckResult::Refuted,
    }
}

/// Decodes sixteen characters of base32. The first bit is set if the 40-bit account number follows. Ids from before 2019 contain
/// no account number, and begin with `I` or `J`.
fn names_an_account(body: &[u8]) -> bool {
    let digits = body.iter().map(|byte| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    });
    let Some(digits) = digits.collect::<Option<Vec<u8>>>().filter(|digits| digits.len() == 16) else {
        return false;
    };
    // Reads 45 bits: one for the generation, 40 for the account, and 4 of the rest.
    let bits = digits.iter().take(9).fold(0_u64, |bits, digit| bits << 5 | u64::from(*digit));
    let is_new = bits >> 44 == 1;
    let account = bits >> 4 & 0xff_ffff_ffff;
    matches!(body.first(), Some(b'I' | b'J')) || is_new && account < 1_000_000_000_000
}

fn is_basic_auth(text: &[u8]) -> bool {
    decode(text).is_some_and(|pair| {
        memchr::memchr(b':', &pair).is_some() && pair.iter().all(|byte| *byte >= b' ' && *byte != 0x7f)
    })
}

fn is_discord(token: &[u8]) -> bool {
    let id = token.split(|byte| *byte == b'.').next().and_then(decode);
    id.is_some_and(|id| (17..=20).contains(&id.len()) && id.iter().all(u8::is_ascii_digit))
}

fn is_mixed(text: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| text.iter().any(test);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && entropy(text) > 2.5
}

/// A name made of words, such as `sk-learn-and-others`, has lower-case letters and hyphens. A digest after `task-` has no
/// upper-case letters. Two kinds of characters therefore suffice only without a hyphen, and without a letter before the prefix.
fn is_varied(hay: &[u8], span: &Range<usize>) -> bool {
    let secret = hay.get(span.clone()).unwrap_or_default();
    let body = without_first_words(secret);
    // The letter of an escape such as `\n` does not count as a letter before the prefix.
    let touches = match hay.get(..span.start).unwrap_or_default() {
        [.., b'\\', _] | [] => false,
        [.., before] => before.is_ascii_alphabetic(),
    };
    let has_words = body.iter().any(|byte| matches!(byte, b'-' | b'_'));
    let has = |kind: fn(&u8) -> bool| usize::from(body.iter().any(kind));
    let kinds = has(u8::is_ascii_uppercase) + has(u8::is_ascii_lowercase) + has(u8::is_ascii_digit);
    let needed = if touches || has_words { 3 } else { 2 };
    kinds >= needed && entropy(body) > 2.5
}

/// The part after `sk-`, `sk-proj-` and similar prefixes.
fn without_first_words(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| !byte.is_ascii_lowercase())
        && let [b'-', behind @ ..] = rest.get(at..).unwrap_or_default()
    {
        rest = behind;
    }
    rest
}

fn judge_loose(hay: &[u8], span: &Range<usize>) -> CheckResult {
    let secret = hay.get(span.clone()).unwrap_or_default();
    if !is_mixed(secret) || digest_or_image::begins_at(hay, span.start) || is_alphabet(secret) {
        return CheckResult::Refuted;
    }
    let rest = hay.get(span.end..).unwrap_or_default();
    let belongs =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    CheckResult::Extends(
        span.start..span.end + rest.iter().take_while(|byte| belongs(byte)).count(),
        MatchEnd::Closed,
    )
}

fn is_alphabet(text: &[u8]) -> bool {
    text.windows(10).any(|ten| ten.array_windows().all(|[a, b]| a.checked_add(1) == Some(*b)))
}

fn is_pypi(token: &[u8]) -> bool {
    let body = after(token, b'-').and_then(decode);
    body.is_some_and(|body| {
        [&b"\x02\x01\x08pypi.org\x02"[..], b"\x02\x01\x0dtest.pypi.org\x02"]
            .iter()
            .any(|head| body.starts_with(head))
    })
}

/// The signature of a JSON Web Token. The shortest in use has 43 characters, but logs may cut it.
const MIN_SIGNATURE: usize = 10;
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD_ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const URL_ENGINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

#[cfg(test)]
mod tests;
