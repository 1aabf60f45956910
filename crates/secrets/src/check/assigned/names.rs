//! Recognises values that are names: the name of the field itself, or of a type.

use super::super::keylike::noise;

/// `USE_CREDENTIALS = 'use-credentials'`, `ExporterMasterSecret => "EXPORTER_SECRET"`: two words or more, all of which the name
/// contains too. A single word, as in `DB_PASSWORD=password`, is a password.
pub(super) fn is_own_name(name: &[u8], value: &[u8]) -> bool {
    if !value.iter().all(|byte| is_of_a_name(*byte)) {
        return false;
    }
    let (own, said) = (words(name), words(value));
    let mut rest = own.iter();
    said.len() >= 2 && said.iter().all(|word| rest.any(|own| own == word))
}

/// `secret: Sha256Secret`, `privateKey: Ed25519PrivateKey`: a type that ends with the last word of the name. A password may
/// end like that too, so a word with a digit inside counts as a password.
pub(super) fn is_own_type(name: &[u8], value: &[u8]) -> bool {
    let all = words(name);
    let last = all.last().filter(|last| !last.starts_with(b"pass"));
    let Some((first, rest)) = last.and_then(|last| last.split_first()) else { return false };
    let head = value.strip_suffix(rest).and_then(|head| head.strip_suffix(&[first.to_ascii_uppercase()]));
    let is_capital = head.and_then(<[u8]>::first).is_some_and(u8::is_ascii_uppercase);
    let has_digit_inside = value.array_windows().any(|[a, b]| a.is_ascii_digit() && b.is_ascii_lowercase());
    is_capital && !has_digit_inside && value.iter().all(u8::is_ascii_alphanumeric)
}

/// `cms_user_password`, `changePassword`, `access-token`: two words or numbers or more, one of them for a secret.
pub(super) fn is_of_secret(value: &[u8]) -> bool {
    let is_identifier = value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-./#:@$".contains(byte));
    let said = words(value);
    let tells = |word: &Vec<u8>| OF_SECRETS.iter().any(|of| word.starts_with(of));
    let is_word = |word: &Vec<u8>| word.len() <= 3 || noise(word) == 0;
    is_identifier && said.len() >= 2 && said.iter().any(tells) && said.iter().all(is_word)
}

/// `curle_ftp_227_format`, `TLS13_CHACHA20_POLY1305`: words and numbers joined by `_`.
pub(super) fn is_identifier(value: &[u8]) -> bool {
    let is_name = value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let begins = value.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    is_name && begins && value.contains(&b'_') && noise(value) == 0
}

/// `getPassword`, `findToken`: the name of a function that takes the name of a secret and not the secret.
pub(super) fn reads(name: &[u8]) -> bool {
    words(name).first().is_some_and(|first| READERS.contains(&first.as_slice()))
}

/// Whether the last word of a name is one for a secret.
pub(super) fn ends_with_secret(name: &[u8]) -> bool {
    words(name).last().is_some_and(|last| {
        OF_SECRETS.iter().any(|of| last.starts_with(of))
            || KEY_WORDS.iter().any(|of| last.ends_with(of))
            || matches!(last.as_slice(), b"pass" | b"base")
    })
}

/// `MY_TOKEN`, `botToken`, `STREAM_KEY`, `license_key`, `user_auth`: the name ends with a word for a key, and nothing before
/// that word says that the key is public or one of a map.
pub(super) fn is_of_key(name: &[u8]) -> bool {
    let all = words(name);
    let is_tail =
        |word: &&Vec<u8>| word.iter().all(u8::is_ascii_digit) || KEY_TAILS.contains(&word.as_slice());
    let tail = all.iter().rev().take_while(is_tail).count();
    let Some((last, before)) = all.split_at_checked(all.len() - tail).and_then(|(all, _)| all.split_last())
    else {
        return false;
    };
    let ends = |word: &&[u8]| last.ends_with(word);
    let is_word = |word: &[u8]| OPEN_KEYS.contains(&word);
    // `publicKeyToken`.
    let is_public = |word: &Vec<u8>| word == b"public";
    let is_open = before.last().is_some_and(|word| is_word(word))
        || before.iter().any(is_public)
        || KEY_WORDS.iter().filter_map(|word| last.strip_suffix(*word)).any(is_word);
    KEY_WORDS.iter().any(ends) && !NOT_KEYS.iter().any(ends) && !is_open
}

/// `master-keying`, `api_keyboard`: the last word begins like one for a key and is another.
pub(super) fn is_of_other(name: &[u8]) -> bool {
    words(name).last().is_some_and(|last| OTHER_WORDS.iter().any(|word| last.starts_with(word)))
}

/// `storeSecrets`, `credentials`: several, and a word behind them is the name of one.
pub(super) fn is_plural(name: &[u8]) -> bool {
    words(name).last().is_some_and(|last| PLURALS.iter().any(|word| last.ends_with(word)))
}

/// A bare `key` names an entry of a map, an object or a message far more often than a secret.
pub(super) fn is_bare_key(name: &[u8]) -> bool {
    matches!(words(name).as_slice(), [one] if matches!(one.as_slice(), b"key" | b"keys"))
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The words in lower case, split at separators and before upper-case letters that follow lower-case ones.
pub(super) fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut before = b'_';
    for byte in text {
        let is_first =
            !before.is_ascii_alphanumeric() || before.is_ascii_lowercase() && byte.is_ascii_uppercase();
        before = *byte;
        if !byte.is_ascii_alphanumeric() {
            continue;
        }
        match words.last_mut().filter(|_| !is_first) {
            Some(word) => word.push(byte.to_ascii_lowercase()),
            None => words.push(vec![byte.to_ascii_lowercase()]),
        }
    }
    words
}

/// The beginnings of words for secrets.
const OF_SECRETS: &[&[u8]] =
    &[b"passw", b"passphrase", b"pwd", b"secret", b"token", b"credential", b"apikey", b"auth", b"key"];
const KEY_WORDS: &[&[u8]] = &[
    b"token",
    b"key",
    b"keys",
    b"auth",
    b"authorization",
    b"jwt",
    b"bearer",
    b"creds",
    b"salt",
    b"seed",
    b"sid",
    b"cookie",
    b"pat",
    b"apikey",
    b"private",
    b"access",
];
const OTHER_WORDS: &[&[u8]] = &[
    b"keyboard",
    b"keychain",
    b"keyed",
    b"keyframe",
    b"keying",
    b"keypress",
    b"keyring",
    b"keystone",
    b"keyword",
    b"secretar",
    b"tokenis",
    b"tokeniz",
];
const PLURALS: &[&[u8]] = &[b"secrets", b"credentials", b"keys", b"tokens"];
/// The first words of functions that look something up.
const READERS: &[&[u8]] = &[
    b"get",
    b"find",
    b"load",
    b"read",
    b"fetch",
    b"has",
    b"is",
    b"lookup",
    b"resolve",
    b"by",
    b"env",
    b"delete",
    b"remove",
    b"create",
    b"generate",
    b"new",
];
/// Other words with the same ending.
const NOT_KEYS: &[&[u8]] =
    &[b"monkey", b"turkey", b"hockey", b"whiskey", b"jockey", b"donkey", b"hotkey", b"oauth", b"exploit"];
/// Words that may follow them.
const KEY_TAILS: &[&[u8]] = &[
    b"value",
    b"string",
    b"prod",
    b"production",
    b"dev",
    b"test",
    b"staging",
    b"live",
    b"base",
    b"hex",
    b"b64",
    b"base64",
    b"env",
    b"default",
    b"secret",
    b"raw",
    b"new",
    b"old",
    b"primary",
    b"secondary",
];
/// Words before `key` or `token` that mark it as public.
const OPEN_KEYS: &[&[u8]] = &[
    b"public",
    b"pub",
    b"publishable",
    b"primary",
    b"foreign",
    b"cache",
    b"partition",
    b"sort",
    b"row",
    b"index",
    b"unique",
    b"lookup",
    b"group",
    b"bucket",
    b"object",
    b"routing",
    b"sequence",
    b"schema",
    b"natural",
    b"hot",
    b"short",
    b"translation",
    b"i18n",
    b"message",
    b"registry",
    b"config",
    b"map",
    b"dict",
    b"query",
    b"react",
    b"state",
    b"item",
    b"column",
    b"col",
    b"uniq",
    b"field",
    b"host",
    b"known",
    b"entity",
    b"record",
    b"issue",
    b"dedup",
    b"idempotency",
    b"version",
    b"tag",
    b"hash",
    b"aggregate",
    b"event",
    b"topic",
    b"blob",
    b"csrf",
    b"xsrf",
    b"page",
    b"next",
    b"continuation",
    b"cancel",
    b"cancellation",
    b"sync",
    b"pagination",
    b"cursor",
    b"resume",
    b"answer",
    b"verify",
    b"verifying",
    b"identity",
    b"site",
    b"peer",
    b"authorized",
    b"cert",
    b"certificate",
    b"gpg",
    b"idx",
    b"any",
    b"arrow",
    b"function",
    b"sub",
    b"subject",
    b"section",
    b"property",
    b"attribute",
    b"node",
    b"tree",
    b"wrapped",
    b"websocket",
    b"authenticity",
    b"antiforgery",
    b"file",
    b"place",
    b"start",
    b"end",
    b"last",
];
#[cfg(test)]
mod tests {
    use super::{is_of_other, is_own_name, is_own_type};

    #[track_caller]
    fn check(name: &str, values: &[&str], expect: bool) {
        for value in values {
            assert_eq!(is_own_name(name.as_bytes(), value.as_bytes()), expect, "{name}: {value}");
        }
    }

    #[test]
    fn value_that_repeats_its_name_is_recognised() {
        check("USE_CREDENTIALS", &["use-credentials", "useCredentials", "USE_CREDENTIALS"], true);
        check("ExporterMasterSecret", &["EXPORTER_SECRET", "exporter.master"], true);
        check(
            "USE_CREDENTIALS",
            &["credentials", "credentials-use", "use-credentials1", "use credentials!", ""],
            false,
        );
        check("DB_PASSWORD", &["password", "db", "dbpassword", "db_hunter22"], false);
    }

    #[test]
    fn other_words_begin_like_key() {
        assert!(
            is_of_other(b"master-keying") && is_of_other(b"accessKeyboard") && is_of_other(b"api_tokenizer")
        );
        assert!(!is_of_other(b"master_key") && !is_of_other(b"keyboard_api_key") && !is_of_other(b""));
    }

    #[test]
    fn types_are_named_like_their_fields() {
        let is_type = |name: &str, value: &str| is_own_type(name.as_bytes(), value.as_bytes());
        assert!(is_type("secret", "Sha256Secret"));
        assert!(is_type("privateKey", "Ed25519PrivateKey"));
        for value in ["Sup3rSecret", "hunter2Secret", "Sha256Secret1", "Secret", "Sha256secret"] {
            assert!(!is_type("secret", value), "{value}");
        }
        assert!(!is_type("DB_PASSWORD", "Hunter2Password"));
    }
}
