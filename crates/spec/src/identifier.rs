//! Names that JavaScript can bind: parameters and static variables become variables of the code.

/// Whether the name is an ASCII identifier, not a reserved word and not used by the wrapper.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts =
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || matches!(first, b'_' | b'$'));
    starts
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
        && !RESERVED.contains(&name)
}

/// Reserved words of ECMAScript in sloppy, strict and module code, literals that look like names, two names that an
/// async function cannot bind, and `__proto__`. Names of globals such as `name` or `location` are allowed.
const RESERVED: [&str; 51] = [
    "__proto__",
    "arguments",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

#[cfg(test)]
mod tests {
    use super::is_identifier;

    #[test]
    fn unbindable_names_are_rejected() {
        for good in ["city", "_x", "$1", "name", "length", "from", "location", "a1"] {
            assert!(is_identifier(good), "{good}");
        }
        for bad in [
            "",
            "1a",
            "a-b",
            "a b",
            "class",
            "await",
            "eval",
            "a;alert(1)",
            "é",
            "a\u{200b}",
            "undefined",
            "__proto__",
            "__proto__\0",
        ] {
            assert!(!is_identifier(bad), "{bad}");
        }
    }
}
