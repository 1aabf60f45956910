//! How does a body become a function? Wrapped so that lines stay where their author put them.

use std::{
    hash::{BuildHasher, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

use sha2::{Digest, Sha256};
use toolgate_spec::model::ToolSpec;

/// One function expression in parentheses, and how many columns its first line gained.
pub struct Wrapped {
    pub text: String,
    pub prefix: usize,
}

/// The names a body sees: parameters, then static variables, each once.
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

/// The body stands in a block of its own, so that it may declare a name that is also a parameter's.
pub fn wrap(code: &str, names: &[String]) -> Wrapped {
    let directive = if is_strict(code) { "\"use strict\";" } else { "" };
    let prefix = format!("(async function({}){{{directive}{{", names.join(","));
    Wrapped { text: format!("{prefix}{code}\n}}}})"), prefix: prefix.chars().count() }
}

/// Does the body begin with the directive? In a block it would be an idle string, so it is said again outside.
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

/// Identifies what a worker keeps a page image of.
pub fn key(source: &str, names: &str, grants: u32) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [source.as_bytes(), names.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(grants.to_le_bytes());
    hash.finalize().into()
}

/// Identifies the tool that a worker is kept for. Tools with equal code are different ones where they have other secrets or
/// reach other hosts and files: what one of them leaves behind must not meet the other's.
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

/// For `Math.random`, which promises nothing; what must not be guessed comes from `crypto`.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RandomState::new().hash_one(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_stays_the_first() {
        let wrapped = wrap("return a", &["a".to_owned(), "b".to_owned()]);
        assert_eq!(wrapped.text, "(async function(a,b){{return a\n}})");
        assert_eq!(wrapped.text.find("return"), Some(wrapped.prefix));
    }

    #[test]
    fn a_directive_counts_also_behind_comments() {
        for strict in ["'use strict'; x", "// hello\n\"use strict\"", "/* a */ 'use strict'"] {
            assert!(wrap(strict, &[]).text.starts_with("(async function(){\"use strict\";{"), "{strict}");
        }
        for sloppy in ["return 'use strict'", "/* 'use strict'", "// 'use strict'"] {
            assert!(!wrap(sloppy, &[]).text.starts_with("(async function(){\"use strict\""), "{sloppy}");
        }
    }

    #[test]
    fn a_key_depends_on_every_part() {
        let keys = [key("a", "b", 0), key("ab", "", 0), key("a", "b", 1), key("", "ab", 0)];
        for (index, one) in keys.iter().enumerate() {
            assert!(!keys[index + 1..].contains(one));
        }
    }
}
