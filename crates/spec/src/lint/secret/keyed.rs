//! Is a value that stands under a telling name a secret?

/// A literal under a name such as `apiKey` in the places that hold configuration.
pub(super) fn find(name: &str, value: &str, field: &str) -> Option<String> {
    let is_configuration = matches!(field, "staticVariables" | "handler");
    if !is_configuration || value.len() < SHORTEST || !is_telling(name) {
        return None;
    }
    is_secret_value("", value).then(|| format!("a literal value of `{}`", crate::lint::show::shown(name)))
}

/// Would somebody assign this to a word like `password`? A name, a type or an address would not be one.
pub(super) fn is_secret_value(word: &str, value: &str) -> bool {
    let value = without_placeholders(value);
    if value.len() < SHORTEST || value.starts_with("http://") || value.starts_with("https://") {
        return false;
    }
    let is_password =
        word.to_ascii_lowercase().starts_with('p') && !word.to_ascii_lowercase().contains("key");
    if is_password { !is_word_like(&value) } else { is_mixed(&value) }
}

/// What tokens are written with.
pub(super) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'=' | b'-')
}

/// Letters and digits both, as random text has and words have not.
pub(super) fn is_mixed(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit()) && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Three kinds of characters and more than four bits in each: hashes and identifiers in hexadecimal have at most four.
#[expect(clippy::cast_precision_loss, reason = "counts of at most a few hundred characters are exact")]
pub(super) fn is_random(value: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| value.as_bytes().iter().any(kind);
    if !has(u8::is_ascii_uppercase) || !has(u8::is_ascii_lowercase) || !has(u8::is_ascii_digit) {
        return false;
    }
    let mut counts = [0_usize; 256];
    for byte in value.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = value.len() as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| *count as f64 / total)
        .map(|share| -share * share.log2())
        .sum();
    entropy > LEAST_ENTROPY
}

/// What remains of a value when its `${NAME}` and `{name}` references are taken out.
pub(super) fn without_placeholders(value: &str) -> String {
    let mut rest = value;
    let mut literal = String::new();
    while let Some((before, from)) = rest.split_once('{') {
        let Some((name, after)) = from.split_once('}') else { break };
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')) {
            literal.push_str(before.strip_suffix('$').unwrap_or(before));
        } else {
            literal.push_str(before);
            literal.push_str(name);
        }
        rest = after;
    }
    literal.push_str(rest);
    literal
}

fn is_telling(name: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    TELLING.iter().any(|word| name.ends_with(word))
}

/// One lower-case word or identifier, or a description of a password in angle brackets.
fn is_word_like(value: &str) -> bool {
    let inner = value.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(value);
    inner.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        || inner.bytes().all(|byte| byte == b'*' || byte == b'.')
}

const SHORTEST: usize = 8;
const LEAST_ENTROPY: f64 = 4.2;

const TELLING: [&str; 11] = [
    "apikey",
    "secret",
    "token",
    "password",
    "passwd",
    "accesskey",
    "secretkey",
    "privatekey",
    "authorization",
    "credential",
    "credentials",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_excuses_only_itself() {
        assert_eq!(without_placeholders("${A}"), "");
        assert_eq!(without_placeholders("Bearer {token}!"), "Bearer !");
        assert_eq!(without_placeholders("k3jh4k5j6h7${A}"), "k3jh4k5j6h7");
        assert_eq!(without_placeholders("a{b c}d{"), "ab cd{");
    }
}
