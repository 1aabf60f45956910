//! Names that JavaScript can bind: the code's parameters and static variables are plain variables.

/// An ASCII identifier that is neither a reserved word nor a name the wrapper needs.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts =
        bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || matches!(first, b'_' | b'$'));
    starts
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
        && !RESERVED.contains(&name)
}

/// ECMAScript's reserved words in sloppy, strict and module code, literals that read like names, the two names
/// that cannot be variables of an async function, and the one key that objects treat as their prototype. Names of globals such as `name` or `location` are fine.
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
    fn what_the_wrapper_could_not_bind_is_refused() {
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
