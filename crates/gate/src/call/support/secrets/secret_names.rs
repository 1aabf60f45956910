//! Names of fields whose value is a secret.

use serde_json::Value;

/// The value without its own texts. Inner fields are judged by their own names.
pub fn without_texts(value: Value, mark: &str) -> Value {
    match value {
        Value::String(text) if !text.is_empty() => Value::String(mark.to_owned()),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| without_texts(item, mark)).collect())
        }
        other => other,
    }
}

/// Names that are used for secrets only, in any spelling, and their plurals.
pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let one = plain.strip_suffix('s').unwrap_or(&plain);
    SECRET_SUFFIXES.iter().any(|end| plain.ends_with(end) || one.ends_with(end))
        || SECRET_WORDS.contains(&last_word(name).to_lowercase().as_str())
}

/// `pass` for `db_pass`, `db-pass` and `dbPass`.
fn last_word(name: &str) -> &str {
    let name = name.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
    let word = name.rsplit(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or(name);
    let is_small = |at: usize| word.as_bytes().get(at).is_some_and(u8::is_ascii_lowercase);
    let mut capitals = word.rmatch_indices(|letter: char| letter.is_ascii_uppercase());
    let start = capitals.find(|(at, _)| at.checked_sub(1).is_some_and(is_small)).map_or(0, |(at, _)| at);
    word.get(start..).unwrap_or(word)
}

/// Endings of such names, without separators.
const SECRET_SUFFIXES: &[&str] = &[
    "accesskey",
    "apikey",
    "authorization",
    "clientsecret",
    "cookie",
    "credential",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "sessionid",
    "signingkey",
    "token",
];

/// Whole words only, because they also end other words, such as `bypass`.
const SECRET_WORDS: &[&str] = &["auth", "pass"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_recognised_in_any_spelling() {
        for name in [
            "token",
            "TOKEN",
            "x-token",
            "X-Auth-Token",
            "session_token",
            "refreshToken",
            "tokens",
            "pwd",
            "db_pwd",
            "pass",
            "PASS",
            "db_pass",
            "dbPass",
            "auth",
            "proxy-auth",
            "jwt",
            "userJwt",
            "API_KEY",
            "api key",
            "credentials",
            "Set-Cookie",
            "cookies",
            "secret",
            "secret_",
            "Proxy-Authorization",
            "pass:",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_secret() {
        for name in
            ["", "_", "s", "bypass", "compass", "author", "passenger", "tokenizer", "key", "text", "é"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
