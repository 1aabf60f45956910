//! Recognises values that stand for a secret: variables, templates, masks and words such as `changeme`.

use super::shape::is_filler;

/// Whether the value is a placeholder. Redacting it would protect nothing.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    is_template(value) || is_placeholder_text(value)
}

/// Whether it is a variable or template that is replaced later, or a mask that replaced a value.
pub(super) fn is_template(value: &[u8]) -> bool {
    is_variable(value) || is_masked(value) || is_filler(value)
}

/// Whether a token of a known format is a filler such as `GR1348941123123123123`: a prefix, then a pattern of up to four
/// characters that repeats. A real token with padding has more other characters than a prefix.
pub(crate) fn is_sample(token: &[u8]) -> bool {
    let plain: Vec<u8> = token.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    (1..=LONGEST_PERIOD).any(|period| {
        let same = plain.iter().zip(plain.iter().skip(period)).filter(|(a, b)| a == b).count();
        same >= SHORTEST_SAMPLE && plain.len() - same <= LONGEST_PREFIX
    })
}

/// Whether a token contains a word such as `EXAMPLE`, and is too short for a token without it. A longer one may be a
/// token with a word attached.
pub(crate) fn is_named_sample(token: &[u8], shortest: usize) -> bool {
    let lower = token.to_ascii_lowercase();
    let plain: Vec<u8> = lower.into_iter().filter(u8::is_ascii_alphanumeric).collect();
    let has = |word: &&&[u8]| memchr::memmem::find(&plain, word).is_some();
    ANYWHERE.iter().filter(|word| word.len() >= LONG_WORD).find(has).is_some_and(|word| {
        let words = memchr::memmem::find_iter(&plain, word).count();
        token.len() - words * word.len() < shortest
    })
}

/// `secret`, `string`, `none`: words that follow a secret's name in code and forms.
pub(super) fn is_common_word(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    COMMON.contains(&lower.as_slice())
}

/// `$NAME`, `${NAME}`, `$(command)`, `{{ name }}`, `<name>`, `%(name)s`, `%NAME%`, `[name]`, `#{name}`, and encrypted
/// values: `ENC(…)`.
fn is_variable(value: &[u8]) -> bool {
    let between = |open: &[u8], close: &[u8]| value.starts_with(open) && value.ends_with(close);
    let is_named = value.strip_prefix(b"$").is_some_and(|name| {
        let name = name.strip_prefix(b"env:").unwrap_or(name);
        name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
            && !has_digit_inside(name)
    });
    is_named
        || between(b"#{", b"}")
        || between(b"@{", b"}")
        || between(b"{", b"}")
        || between(b"<", b">")
        || between(b"&lt;", b"&gt;")
        || between(b"[", b"]")
        || between(b"%(", b"s")
        || between(b"%", b"%")
        || between(b"__", b"__")
        || OPENINGS.iter().any(|open| value.starts_with(open))
        || has_variable(value)
        || matches!(value, b"%s" | b"%v" | b"%q" | b"%d" | b"%@" | b"?" | b"...")
}

/// `${host}:token`, `{{ user }}-key`: a variable within the value.
fn has_variable(value: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-: |$".contains(byte);
    let is_closed = |(open, close): (&[u8], &[u8])| {
        memchr::memmem::find_iter(value, open).any(|at| {
            let rest = value.get(at + open.len()..).unwrap_or_default();
            let length = rest.iter().take_while(|byte| is_name(byte)).count();
            length > 0 && rest.get(length..).is_some_and(|rest| rest.starts_with(close))
        })
    };
    [(&b"${"[..], &b"}"[..]), (b"#{", b"}"), (b"%{", b"}"), (b"{{", b"}}"), (b"$(", b")")]
        .into_iter()
        .any(is_closed)
}

/// `$up3r5ecret` is a password, `$HOME2` a variable: digits are allowed at the end only.
fn has_digit_inside(name: &[u8]) -> bool {
    let kept = name.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    name.get(..kept).is_some_and(|name| {
        name.iter().any(u8::is_ascii_digit) && !name.iter().all(|byte| !byte.is_ascii_lowercase())
    })
}

/// `********`, `xxxx-xxxx`, `••••`, `abc...`: a mask and at most four other characters.
fn is_masked(value: &[u8]) -> bool {
    let masks = value
        .iter()
        .filter(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.' | b'#' | b'?' | b'_' | b'-'))
        .count();
    let is_mask_run = |byte: u8| value.windows(4).any(|four| four.iter().all(|one| *one == byte));
    let is_repeated = value.first().is_some_and(|first| value.iter().all(|byte| byte == first));
    let has_run = [b'x', b'X', b'*', b'#', b'.', b'?'].into_iter().any(is_mask_run);
    is_repeated
        || is_one_wide_character(value)
        || has_run && value.len() - masks <= OTHERS
        || value.ends_with(b"...")
        || value.starts_with(b"...")
}

/// `••••`: one character of three bytes over and over.
fn is_one_wide_character(value: &[u8]) -> bool {
    let (characters, rest) = value.as_chunks::<3>();
    let first = characters.first().filter(|[lead, ..]| lead >> 4 == 0b1110);
    rest.is_empty() && first.is_some_and(|first| characters.iter().all(|character| character == first))
}

/// Words that people write in place of a secret: the whole value, or one of the words that it consists of.
fn is_placeholder_text(value: &[u8]) -> bool {
    if value.len() > LONGEST_TEXT {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    if WHOLE.contains(&lower.as_slice()) {
        return true;
    }
    let plain: Vec<u8> = lower.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    if ANYWHERE.iter().any(|word| memchr::memmem::find(&plain, word).is_some()) {
        return true;
    }
    // A placeholder word counts only if all other parts are words too.
    let mut parts = lower.split(|byte| !byte.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let is_word = |part: &[u8]| {
        let letters = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        part.len() - letters <= 3 && part.iter().skip(letters).all(u8::is_ascii_digit)
    };
    parts.clone().all(is_word) && (parts.any(|part| PARTS.contains(&part)) || lower.starts_with(b"your"))
}

/// No password begins like that. The value may be cut at a blank or a comma, before the closing bracket.
const OPENINGS: &[&[u8]] = &[b"${", b"$(", b"ENC(", b"ENC["];
/// Compared with the whole value, ignoring case.
const WHOLE: &[&[u8]] = &[
    b"password",
    b"passwd",
    b"passphrase",
    b"pass",
    b"pwd",
    b"pw",
    b"token",
    b"apikey",
    b"api_key",
    b"api-key",
    b"user",
    b"username",
    b"mypassword",
    b"mypass",
    b"thepassword",
    b"userpassword",
    b"user_password",
    b"newpassword",
    b"oldpassword",
    b"testpassword",
    b"test_password",
    b"test-password",
    b"test",
    b"blah",
    b"foobar",
];
/// Compared with the whole value of an assignment.
const COMMON: &[&[u8]] = &[
    b"secret",
    b"secrets",
    b"tokens",
    b"admin",
    b"postgres",
    b"mysql",
    b"guest",
    b"root",
    b"testing",
    b"default",
    b"string",
    b"undefined",
    b"hidden",
    b"masked",
    b"required",
    b"optional",
    b"unknown",
    b"credentials",
    b"credential",
    b"authorization",
    b"bearer",
    b"include",
    b"same-origin",
    b"disabled",
    b"enabled",
    b"mysecret",
    b"mytoken",
    b"test123",
    b"testsecret",
    b"testtoken",
    b"base32",
    b"base64",
    b"base64url",
    b"sha-1",
    b"sha-256",
    b"sha-512",
    b"sha256",
    b"sha512",
    b"hs256",
    b"rs256",
    b"es256",
    b"aes128",
    b"aes256",
    b"aes-256-cbc",
    b"aes-256-gcm",
    b"argon2",
    b"argon2id",
    b"pbkdf2",
    b"oauth2",
    b"utf-16",
    b"ed25519",
];
/// Found anywhere among the letters and digits of the value.
const ANYWHERE: &[&[u8]] = &[
    b"changeme",
    b"changeit",
    b"placeholder",
    b"replaceme",
    b"replacewith",
    b"insertyour",
    b"inserthere",
    b"putyour",
    b"enteryour",
    b"yourpassword",
    b"yoursecret",
    b"yourtoken",
    b"yourapi",
    b"yourkey",
    b"youraccess",
    b"yourclient",
    b"yourown",
    b"yourauth",
    b"keyhere",
    b"tokenhere",
    b"secrethere",
    b"passwordhere",
    b"example",
    b"notreal",
    b"donotuse",
    b"dummy",
    b"notasecret",
    b"notsecret",
];
/// Compared with a part between separators. The other parts must be words too.
const PARTS: &[&[u8]] = &[
    b"your",
    b"here",
    b"fake",
    b"sample",
    b"mock",
    b"todo",
    b"fixme",
    b"xxx",
    b"xxxx",
    b"some",
    b"insert",
    b"replace",
    b"enter",
    b"development",
];
const SHORTEST_SAMPLE: usize = 10;
/// Words of this length do not occur in random text.
const LONG_WORD: usize = 7;
const LONGEST_PREFIX: usize = 16;
const LONGEST_PERIOD: usize = 4;
const OTHERS: usize = 4;
const LONGEST_TEXT: usize = 64;

#[cfg(test)]
mod tests {
    use super::{is_named_sample, is_placeholder};

    #[track_caller]
    fn check(values: &[&str], expect: bool) {
        for value in values {
            assert_eq!(is_placeholder(value.as_bytes()), expect, "{value}");
        }
    }

    #[test]
    fn placeholders_are_recognised() {
        check(
            &[
                "$DB_PASSWORD",
                "$password",
                "$env:TOKEN",
                "${PASS}",
                "${{ secrets.TOKEN }}",
                "{{ token }}",
                "<your-token>",
                "&lt;PASSWORD&gt;",
                "%(pw)s",
                "%PASSWORD%",
                "%s",
                "[PASSWORD]",
                "#{pass}",
                "********",
                "xxxxxxxx",
                "xxxx-xxxx-xxxx",
                "sk-xxxxxxxxxxxx",
                "changeme",
                "ChangeMe123",
                "change-me",
                "[Redacted]",
                "your-api-key",
                "YOUR_API_KEY_HERE",
                "yourSecretToken",
                "insert_key_here",
                "my-example-secret",
                "a-fake-api-key",
                "password",
                "abc...",
                "__TOKEN__",
                "ENC(q7Zk2mVx9T)",
                "••••••••",
                "ENC[AES256_GCM,data:q7Zk2mVx9T]",
                "$(cat key.txt | head -c 20)",
                "$(cat",
            ],
            true,
        );
    }

    /// The shortest token of the format has twenty characters.
    #[test]
    fn token_with_a_word_in_it_is_a_sample_unless_it_is_long_enough_without() {
        assert!(is_named_sample(b"acme_q7Zk2mVx9EXAMPLE", 20));
        assert!(is_named_sample(b"acme_put-your-token-here", 20));
        assert!(!is_named_sample(b"acme_q7Zk2mVx9TbLw4Rs8EXAMPLE", 20));
        assert!(!is_named_sample(b"acme_q7Zk2mVx9TbLw4Rs8", 20));
    }

    #[test]
    fn passwords_are_not() {
        check(
            &[
                "hunter22",
                "$up3r5ecret",
                "$super$ecret",
                "correcthorsebattery",
                "topsecretvalue",
                "Tr0ub4dor&3",
                "x7Kx9xQ2",
                "fakeries9081",
                "myp4ss{x}",
            ],
            false,
        );
    }
}
