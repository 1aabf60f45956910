//! The form fits; does the structure too? Checksums, nested documents, key blocks, values that are no literals.

use std::ops::Range;

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{marker::Marks, rule::End};

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

/// What a rule may ask for by name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Check {
    /// Not a stretch of a binary file in base64.
    Apart,
    /// The pattern's last character begins a value that is a literal, not code and not a placeholder.
    Assigned,
    /// Like `Assigned`, and the value looks generated: for names such as `token` that often hold something else.
    AssignedKey,
    /// An access key id that names an account.
    AwsKeyId,
    /// The checksum of Base58Check.
    Base58,
    /// What follows the first `_` is a JSON object in base64, up to the next `_` or to the end.
    Base64Json,
    /// `user:password` in base64.
    BasicAuth,
    /// The checksum of Bech32.
    Bech32,
    /// Six characters at the end are the CRC-32 of what stands after the `_`, in base 62.
    Crc32,
    /// Eight hex digits at the end are the CRC-32 of what stands before the last `_`, the lowest byte first.
    Crc32Hex,
    /// The first part is a number in base64, as is the id of a Discord user.
    Discord,
    /// Mixed, and standing where a key is written: not as a commit, a digest or a part of an address.
    Given,
    /// Mixed, no digest, image or alphabet; reaches as far as base64 does. For what is only possible: a digest can be
    /// told from a key by its name and its length, and by nothing else.
    Loose,
    /// Letters and digits both, and not one character over and over.
    Mixed,
    /// A JSON Web Token: header and payload are JSON objects, or as random as those.
    Jwt,
    /// Like `Key`, behind a name that ends with a word for a key: `acme-api-key-…`.
    JoinedKey,
    /// A member of a JSON Web Key.
    Jwk,
    /// As random as a generated key, and as long as one can be: no name, path, version or placeholder.
    Key,
    /// Exactly 64 bytes in base64.
    Key64,
    /// The body of a private key without its header; the finding reaches to its end.
    KeyBody,
    /// A private key block; the finding reaches to its end.
    Pem,
    /// A macaroon for PyPI.
    PypiMacaroon,
    /// Letters and digits as a password has them: no placeholder, name, call or path.
    Password,
    /// Capital letters, small letters and digits, and no name made of words and numbers.
    Random,
    /// An application's number and a digest in base64, and fifty characters.
    TwitterBearer,
    /// Anything but one character over and over behind a prefix.
    Unfilled,
    /// Kinds of characters as a random key has them, and not one over and over.
    Varied,
    /// A password in a place where only passwords are written: anything but a variable or a mask.
    Entered,
    /// A value in an address: anything but a placeholder.
    Written,
}

pub(crate) enum Judged {
    Sound,
    /// The form without the structure.
    Unsound,
    /// No secret at all.
    Refuted,
    /// Sound, and elsewhere than the pattern says.
    Extends(Range<usize>, End),
}

impl Check {
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

    pub(crate) fn judge(self, hay: &[u8], span: &Range<usize>, marks: &Marks) -> Judged {
        let secret = hay.get(span.clone()).unwrap_or_default();
        let is_sound = match self {
            Self::Assigned => {
                let literal = assigned::literal(hay, span, marks);
                return literal.map_or(Judged::Refuted, |span| Judged::Extends(span, End::Closed));
            }
            Self::AssignedKey => {
                let key = assigned::key(hay, span, marks);
                return key.map_or(Judged::Refuted, |span| Judged::Extends(span, End::Closed));
            }
            Self::KeyBody => return pem::judge_body(hay, span),
            Self::Loose => return judge_loose(hay, span),
            Self::Pem => return pem::judge(hay, span),
            Self::Written => {
                return if assigned::is_written(secret) { Judged::Sound } else { Judged::Refuted };
            }
            Self::Entered => {
                // The quote ends the string that the whole line is part of.
                let entered = secret.strip_suffix(b"'").or(secret.strip_suffix(b"\"")).unwrap_or(secret);
                return if placeholder::is_template(entered) { Judged::Refuted } else { Judged::Sound };
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
            true => Judged::Sound,
            false if shape::is_filler(secret) => Judged::Refuted,
            false => Judged::Unsound,
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

/// The text with `%40` and the like undone.
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

/// Behind the document another part may follow, as in `sntrys_…_…`.
fn is_json_in_base64(token: &[u8]) -> bool {
    let text = after(token, b'_').unwrap_or(token);
    let first = text.split(|byte| *byte == b'_').next().unwrap_or_default();
    json_object(text).is_some() || json_object(first).is_some()
}

/// Header or payload is a JSON object; or all parts are as random as theirs, for a token may be cut or garbled in a log.
fn is_jwt(token: &[u8]) -> bool {
    let mut parts = token.split(|byte| *byte == b'.');
    let [header, payload] = [(); 2].map(|()| parts.next().unwrap_or_default());
    let signature = parts.next().unwrap_or_default();
    let is_object = |part: &[u8]| json_object(part).is_some_and(|object| !object.is_empty());
    is_object(header) && is_object(payload)
        || signature.len() >= MIN_SIGNATURE
            && (is_object(header) || is_object(payload) || [header, payload].into_iter().all(is_mixed))
}

/// Without a digit it may be a word: `ASIAPACIFICNORTHEAST` names no account, and what goes on is a longer one.
fn judge_aws_key_id(hay: &[u8], span: &Range<usize>) -> Judged {
    let body = hay.get(span.start + 4..span.end).unwrap_or_default();
    let has_digit = body.iter().any(u8::is_ascii_digit);
    let before = span.start.checked_sub(1).and_then(|at| hay.get(at));
    let is_longer = [before, hay.get(span.end)].into_iter().flatten().any(u8::is_ascii_uppercase);
    if entropy(body) < 2.0 || !has_digit && is_longer {
        return Judged::Refuted;
    }
    match (names_an_account(body), has_digit) {
        (true, _) => Judged::Sound,
        (false, true) => Judged::Unsound,
        (false, false) => Judged::Refuted,
    }
}

/// Sixteen characters of base32. The first bit tells that the account's number follows, in forty; ids from before 2019 have no
/// account in them, and begin with `I` or `J`.
fn names_an_account(body: &[u8]) -> bool {
    let digits = body.iter().map(|byte| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    });
    let Some(digits) = digits.collect::<Option<Vec<u8>>>().filter(|digits| digits.len() == 16) else {
        return false;
    };
    // 45 bits are read: one for the generation, 40 for the account, 4 of what follows.
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

/// A name made of words, as in `sk-learn-and-others`, has small letters and hyphens; a digest behind `task-` has no
/// capitals. So two kinds of characters are enough only where neither a hyphen nor a letter before it lets it be one.
fn is_varied(hay: &[u8], span: &Range<usize>) -> bool {
    let secret = hay.get(span.clone()).unwrap_or_default();
    let body = without_first_words(secret);
    // The letter of a `\n` touches nothing.
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

/// What is left behind `sk-`, `sk-proj-` and the like.
fn without_first_words(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| !byte.is_ascii_lowercase())
        && let [b'-', behind @ ..] = rest.get(at..).unwrap_or_default()
    {
        rest = behind;
    }
    rest
}

fn judge_loose(hay: &[u8], span: &Range<usize>) -> Judged {
    let secret = hay.get(span.clone()).unwrap_or_default();
    if !is_mixed(secret) || digest_or_image::begins_at(hay, span.start) || is_alphabet(secret) {
        return Judged::Refuted;
    }
    let rest = hay.get(span.end..).unwrap_or_default();
    let belongs =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    Judged::Extends(span.start..span.end + rest.iter().take_while(|byte| belongs(byte)).count(), End::Closed)
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

/// Of a JSON Web Token; the shortest in use has 43 characters, logs cut them.
const MIN_SIGNATURE: usize = 10;
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD_ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const URL_ENGINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

#[cfg(test)]
mod tests;
