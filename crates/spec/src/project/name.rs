//! The name of a tool in a wire format: unchanged if the format allows it.

use std::{borrow::Cow, fmt::Write as _};

use sha2::{Digest as _, Sha256};

use super::WireTarget;

/// Returns the name if `target` accepts it. Otherwise: the allowed characters, `_` and eight digits of its SHA-256. A
/// registry must still reject two tools with the same wire name, because an author can choose a colliding name.
pub fn wire_name(name: &str, target: WireTarget) -> Cow<'_, str> {
    if is_accepted(name, target) {
        return Cow::Borrowed(name);
    }
    let mut kept: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .take(MOST_KEPT)
        .collect();
    if target == WireTarget::Google && !kept.starts_with(is_google_start) {
        kept.insert(0, '_');
    }
    kept.push('_');
    for byte in Sha256::digest(name).iter().take(4) {
        // Writing to a `String` cannot fail.
        let _ = write!(kept, "{byte:02x}");
    }
    Cow::Owned(kept)
}

fn is_accepted(name: &str, target: WireTarget) -> bool {
    let is_made_of = |also: &[char]| name.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(&c));
    let fits = (1..=64).contains(&name.len());
    match target {
        // The protocol recommends an alphabet but requires none, so names of other servers must be accepted.
        WireTarget::Mcp => !name.is_empty() && !name.chars().any(char::is_control),
        WireTarget::OpenAi | WireTarget::Anthropic => fits && is_made_of(&['_', '-']),
        WireTarget::Google => fits && is_made_of(&['_', '-', '.']) && name.starts_with(is_google_start),
    }
}

fn is_google_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// 64 minus a possible leading `_`, and a trailing `_` with eight digits.
const MOST_KEPT: usize = 54;
