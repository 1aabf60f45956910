//! Wraps the body of a tool in a function. The author's line numbers stay the same.

use std::{
    hash::{BuildHasher, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

use sha2::{Digest, Sha256};
use toolgate_spec::model::ToolSpec;

/// A function expression in parentheses, and the number of columns added to its first line.
pub struct WrappedCode {
    pub text: String,
    pub prefix: usize,
}

/// The names that a body can use: parameters, then static variables, each once.
pub fn names(spec: &ToolSpec) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let all =
        spec.params.iter().map(|param| &param.name).chain(spec.statics.iter().map(|variable| &variable.name));
    for name in all {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The body is placed in its own block, so it may declare a variable with the name of a parameter.
pub fn wrap(code: &str, names: &[String]) -> WrappedCode {
    let directive = if is_strict(code) { "\"use strict\";" } else { "" };
    let prefix = format!("(async function({}){{{directive}{{", names.join(","));
    WrappedCode { text: format!("{prefix}{code}\n}}}})"), prefix: prefix.chars().count() }
}

/// Whether the body begins with the directive. Inside a block it has no effect, so it is repeated outside.
fn is_strict(code: &str) -> bool {
    let mut rest = code.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
        } else {
            return rest.starts_with("\"use strict\"") || rest.starts_with("'use strict'");
        }
    }
}

/// Identifies the page image of a worker.
pub fn key(source: &str, names: &str, grants: u32) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [source.as_bytes(), names.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(grants.to_le_bytes());
    hash.finalize().into()
}

/// Identifies the tool that a worker is kept for. Tools with equal code but other secrets, hosts or files are
/// different and never share a worker.
pub fn identity(spec: &ToolSpec, key: &[u8; 32], policy_digest: &str) -> [u8; 32] {
    let mut parts =
        vec![spec.id.as_str().as_bytes(), spec.name.as_bytes(), key.as_slice(), policy_digest.as_bytes()];
    for variable in &spec.statics {
        parts.extend([variable.name.as_bytes(), variable.value.text().as_bytes()]);
    }
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// A seed for `Math.random`. Unpredictable values come from `crypto`.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_stays_the_first() {
        let wrapped = wrap("return a", &["a".to_owned(), "b".to_owned()]);
        assert_eq!(wrapped.text, "(async function(a,b){{return a\n}})");
        assert_eq!(wrapped.text.find("return"), Some(wrapped.prefix));
    }

    #[test]
    fn directive_after_comments_counts() {
        for strict in ["'use strict'; x", "// hello\n\"use strict\"", "/* a */ 'use strict'"] {
            assert!(wrap(strict, &[]).text.starts_with("(async function(){\"use strict\";{"), "{strict}");
        }
        for sloppy in ["return 'use strict'", "/* 'use strict'", "// 'use strict'"] {
            assert!(!wrap(sloppy, &[]).text.starts_with("(async function(){\"use strict\""), "{sloppy}");
        }
    }

    #[test]
    fn key_depends_on_every_part() {
        let keys = [key("a", "b", 0), key("ab", "", 0), key("a", "b", 1), key("", "ab", 0)];
        for (index, one) in keys.iter().enumerate() {
            assert!(!keys[index + 1..].contains(one));
        }
    }
}
