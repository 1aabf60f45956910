//! Scopes: valid, few and short, and never more than the operator allows.

/// The scopes of a list separated by spaces.
pub fn split(text: &str) -> Vec<String> {
    bounded(text.split(' ').map(str::to_owned))
}

/// Keeps valid scopes without repetition, up to a bounded number.
pub fn bounded(scopes: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for scope in scopes {
        if is_valid(&scope) && !kept.contains(&scope) && kept.len() < MOST_SCOPES {
            kept.push(scope);
        }
    }
    kept
}

/// Chooses the scopes to ask for: what the server wants now and what was granted before, within what is allowed.
pub fn choose(
    allowed: &[String],
    challenged: &[String],
    supported: &[String],
    granted: &[String],
) -> Vec<String> {
    let wanted = match (allowed.is_empty(), challenged.is_empty()) {
        (false, _) => return bounded(allowed.iter().cloned()),
        (true, false) => challenged,
        (true, true) => supported,
    };
    bounded(granted.iter().chain(wanted).cloned())
}

/// `scope-token` of RFC 6749.
fn is_valid(scope: &str) -> bool {
    let is_valid_byte = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    (1..=SCOPE_BYTES).contains(&scope.len()) && scope.bytes().all(is_valid_byte)
}

const MOST_SCOPES: usize = 32;
const SCOPE_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lists: [&str; 4], expect: &str) {
        let [allowed, challenged, supported, granted] = lists.map(split);
        assert_eq!(choose(&allowed, &challenged, &supported, &granted).join(" "), expect);
    }

    #[test]
    fn server_chooses_only_without_a_configured_list() {
        check(["", "", "", ""], "");
        check(["", "", "a b", ""], "a b");
        check(["", "c", "a b", ""], "c");
        check(["", "c", "a b", "a"], "a c");
        check(["x y", "admin", "a b", "a"], "x y");
    }

    #[test]
    fn invalid_and_excessive_scopes_are_dropped() {
        assert_eq!(split("a \"b  a\u{e9} c\\ a c"), ["a", "c"]);
        assert_eq!(split(&"x".repeat(SCOPE_BYTES + 1)), Vec::<String>::new());
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(split(&many.join(" ")).len(), MOST_SCOPES);
    }
}
