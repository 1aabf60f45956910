//! Does the name of a field say that its value is a secret?

use serde_json::Value;

/// The value without its texts; those of inner fields have names of their own.
pub fn without_texts(value: Value, mark: &str) -> Value {
    match value {
        Value::String(text) if !text.is_empty() => Value::String(mark.to_owned()),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| without_texts(item, mark)).collect())
        }
        other => other,
    }
}

/// Names under which nobody keeps anything but a secret, in any spelling, and lists of them.
pub fn is_telling(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let one = plain.strip_suffix('s').unwrap_or(&plain);
    TELLING.iter().any(|end| plain.ends_with(end) || one.ends_with(end))
        || TELLING_WORDS.contains(&last_word(name).to_lowercase().as_str())
}

/// `pass` of `db_pass`, `db-pass` and `dbPass`.
fn last_word(name: &str) -> &str {
    let name = name.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
    let word = name.rsplit(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or(name);
    let is_small = |at: usize| word.as_bytes().get(at).is_some_and(u8::is_ascii_lowercase);
    let mut capitals = word.rmatch_indices(|letter: char| letter.is_ascii_uppercase());
    let start = capitals.find(|(at, _)| at.checked_sub(1).is_some_and(is_small)).map_or(0, |(at, _)| at);
    word.get(start..).unwrap_or(word)
}

/// How such a name ends, without hyphens and the like.
const TELLING: &[&str] = &[
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

/// What ends other words too, such as `bypass`.
const TELLING_WORDS: &[&str] = &["auth", "pass"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_in_any_spelling() {
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
            assert!(is_telling(name), "{name}");
        }
    }

    #[test]
    fn other_names_do_not() {
        for name in
            ["", "_", "s", "bypass", "compass", "author", "passenger", "tokenizer", "key", "text", "é"]
        {
            assert!(!is_telling(name), "{name}");
        }
    }
}
