//! Memory limits of a call, and the mapping from engine errors to endings.

use serde::Deserialize;
use toolgate_sandbox::wire::{RunLimits, ScriptEnding};

/// The heap limit of scripts: the call's limit plus the size of the snapshot.
pub fn heap(limits: &RunLimits) -> u32 {
    let bytes = limits.memory_bytes.saturating_add(toolgate_engine::snapshot_bytes() as u64);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The limit of the linear memory. The allocator's overhead counts as the tool's memory.
pub fn linear_memory(limits: &RunLimits) -> usize {
    usize::try_from(heap(limits)).unwrap_or(usize::MAX).min(toolgate_engine::MAX_LINEAR_MEMORY)
}

/// Maps an uncaught error to an ending. Memory and stack exhaustion are recognised by their messages.
pub fn classify(error: String) -> ScriptEnding {
    #[derive(Deserialize)]
    struct ThrownError {
        name: String,
        message: String,
    }
    match serde_json::from_str::<ThrownError>(&error) {
        Ok(thrown) if thrown.name == "InternalError" && thrown.message == "out of memory" => {
            ScriptEnding::Memory
        }
        // A tool may throw such an error itself; then its call merely ends with that code.
        Ok(thrown) if thrown.name == "RangeError" && thrown.message == "Maximum call stack size exceeded" => {
            ScriptEnding::Stack
        }
        Ok(thrown) if thrown.name == "SyntaxError" && thrown.message == "stack overflow" => {
            ScriptEnding::Stack
        }
        _ => ScriptEnding::Threw(error),
    }
}

/// Replaces lone surrogates in JSON from JavaScript by U+FFFD, because they are not valid Unicode text.
pub fn scalar_text(json: String) -> String {
    // A tool may write its own JSON with hexadecimal digits in either case.
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
