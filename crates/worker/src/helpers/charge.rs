//! Fuel charged for native work, in proportion to its input. Otherwise helpers would bypass the statement limit.

use toolgate_engine::Op;

/// Units of fuel for one question; equal input costs the same.
pub fn charge(op: Op, text: &str, bytes: &[u8]) -> u64 {
    let size = (text.len() as u64).saturating_add(bytes.len() as u64);
    let per_byte = match op {
        Op::ParseHtml | Op::ParseXml | Op::ParseYaml | Op::Collate => 200,
        Op::ParseCsv | Op::UrlParse | Op::UrlSet | Op::Segment => 50,
        _ => 10,
    };
    PER_CALL.saturating_add(size.saturating_mul(per_byte)).saturating_add(rounds(op, text))
}

/// PBKDF2 is slow by design, so every round is charged.
fn rounds(op: Op, text: &str) -> u64 {
    let Op::Pbkdf2 = op else { return 0 };
    let parameters: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let number = |name: &str| parameters.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    // Every block of the result, one hash long, needs all rounds.
    let blocks = number("length").div_ceil(SHORTEST_HASH).max(1);
    number("iterations").saturating_mul(blocks).saturating_mul(PER_ROUND)
}

const PER_CALL: u64 = 5_000;
const PER_ROUND: u64 = 2_000;
const SHORTEST_HASH: u64 = 32;
