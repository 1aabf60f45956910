//! Checks that a regular expression compiles with the linear-time engine, within limits.

/// Why a pattern is rejected, as reported by the engine.
pub(super) fn refuse(pattern: &str) -> Option<String> {
    match regex::RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).nest_limit(MAX_NESTING).build() {
        Ok(_) => None,
        Err(regex::Error::CompiledTooBig(_)) => {
            Some("it grows too large when compiled; lower its repetition counts".into())
        }
        Err(error) => Some(last_line(&error.to_string())),
    }
}

pub(super) fn is_too_big(pattern: &str) -> bool {
    let built =
        regex::RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).nest_limit(MAX_NESTING).build();
    matches!(built, Err(regex::Error::CompiledTooBig(_)))
}

/// The engine prints the pattern with a caret; the reason is in the last line.
fn last_line(shown: &str) -> String {
    let line = shown.lines().next_back().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Large enough for `\p{L}{1,64}`; small enough to compile a document full of patterns quickly.
const MAX_COMPILED_BYTES: usize = 512 * 1024;

const MAX_NESTING: u32 = 64;

#[cfg(test)]
mod tests {
    use super::refuse;

    #[track_caller]
    fn check(pattern: &str, expect: &str) {
        let why = refuse(pattern).unwrap_or_else(|| "fine".into());
        assert!(why.contains(expect), "{pattern}: {why}");
    }

    #[test]
    fn reason_names_the_unsupported_construct() {
        check(r"rm\s+(-rf?|--recursive)", "fine");
        check(r"(?i)secret", "fine");
        check("(?=x)", "look-around");
        check(r"(a)\1", "backreferences");
        check("(", "unclosed group");
        check(r"(\w{100}){100}", "too large");
        check(&"(".repeat(200), "unclosed group");
    }
}
