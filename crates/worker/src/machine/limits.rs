//! Which limit was it? Turns what the engine says into the call's ending.

use serde::Deserialize;
use toolgate_sandbox::wire::{Ending, RunLimits};

/// What scripts may allocate: the limit, on top of what the snapshot holds already.
pub fn heap(limits: &RunLimits) -> u32 {
    let bytes = limits.memory_bytes.saturating_add(toolgate_engine::snapshot_bytes() as u64);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// How far the linear memory may grow: what the allocator needs for itself is the tool's memory too.
pub fn linear_memory(limits: &RunLimits) -> usize {
    usize::try_from(heap(limits)).unwrap_or(usize::MAX).min(toolgate_engine::MAX_LINEAR_MEMORY)
}

/// An uncaught error, told apart by the two that limits make.
pub fn classify(error: String) -> Ending {
    #[derive(Deserialize)]
    struct Thrown {
        name: String,
        message: String,
    }
    match serde_json::from_str::<Thrown>(&error) {
        Ok(thrown) if thrown.name == "InternalError" && thrown.message == "out of memory" => Ending::Memory,
        // A tool may throw the like itself; then its failure has a code that it chose, and that is all.
        Ok(thrown) if thrown.name == "RangeError" && thrown.message == "Maximum call stack size exceeded" => {
            Ending::Stack
        }
        Ok(thrown) if thrown.name == "SyntaxError" && thrown.message == "stack overflow" => Ending::Stack,
        _ => Ending::Threw(error),
    }
}

/// JSON from JavaScript may hold lone surrogates, which no text outside of JavaScript can: they become U+FFFD.
pub fn scalar_text(json: String) -> String {
    // A tool may write its own JSON, with digits in either case.
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return json;
    }
    let mut clean = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        clean.push_str(before);
        let (kept, length) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (escape.get(..12), 12),
            (Some(0xd800..=0xdfff), _) => (Some("\\ufffd"), 6),
            (Some(_), _) => (escape.get(..6), 6),
            (None, _) => (escape.get(..2), 2),
        };
        clean.push_str(kept.unwrap_or_default());
        rest = escape.get(length..).unwrap_or_default();
    }
    clean.push_str(rest);
    clean
}

/// The code unit of an escape such as `\ud83d` at the beginning of `text`.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_kept() {
        for (json, clean) in [
            (r#""a\ud800b""#, r#""a\ufffdb""#),
            (r#""\udc00\ud83d\ude00\n""#, r#""\ufffd\ud83d\ude00\n""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\ud83d\u0041""#, r#""\ufffd\u0041""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uD800""#, r#""\ufffd""#),
            (r#""\uD83D\uDE00\uDc00""#, r#""\uD83D\uDE00\ufffd""#),
        ] {
            assert_eq!(scalar_text(json.to_owned()), clean);
            assert!(serde_json::from_str::<serde_json::Value>(clean).is_ok());
        }
    }
}
