//! Is the value a name: of itself, of a type, of a file?
//!
//! Each of these forms leaves a secret no room: whoever could bring one into it could write it anywhere.

/// `name` is what the value is set to.
pub(super) fn is_name(name: &[u8], value: &[u8]) -> bool {
    is_own_name(name, value) || is_type(value) || is_generated(value) || is_package(name, value)
}

/// `USE_CREDENTIALS = 'use-credentials'`, `ExporterMasterSecret => "EXPORTER_SECRET"`: two words or more, each of which the name
/// has too. One alone, as in `DB_PASSWORD=password`, is what somebody logs in with.
fn is_own_name(name: &[u8], value: &[u8]) -> bool {
    if !value.iter().all(|byte| is_of_a_name(*byte)) {
        return false;
    }
    let (own, said) = (words(name), words(value));
    let mut rest = own.iter();
    said.len() >= 2 && said.iter().all(|word| rest.any(|own| own == word))
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Small, cut at signs and before capital letters that follow small ones.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
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

/// `Ed25519Key`, `Sha256Secret`: an algorithm and words for what it makes, and nothing else.
fn is_type(value: &[u8]) -> bool {
    let after = |text: &'_ [u8], words: &[&[u8]]| {
        words.iter().find_map(|word| text.strip_prefix(*word).map(<[u8]>::len))
    };
    let (mut left, mut algorithms) = (value.len(), 0);
    while left > 0 {
        let rest = value.get(value.len() - left..).unwrap_or_default();
        left = match (after(rest, ALGORITHMS), after(rest, OF_KEYS)) {
            (Some(shorter), _) => {
                algorithms += 1;
                shorter
            }
            (None, Some(shorter)) => shorter,
            (None, None) => return false,
        };
    }
    algorithms > 0
}

/// `_bindgen_ty_3`
fn is_generated(value: &[u8]) -> bool {
    let number = value.strip_prefix(b"_bindgen_ty_").unwrap_or_default();
    (1..=5).contains(&number.len()) && number.iter().all(u8::is_ascii_digit)
}

/// `passwd_1:4.13+dfsg1-1+deb12u2_amd64.deb`: the name ends with a number, the value begins with a version.
fn is_package(name: &[u8], value: &[u8]) -> bool {
    let Some((version, kind)) = value.strip_suffix(b".deb").and_then(|file| split_last(file, b'_')) else {
        return false;
    };
    let epoch = split_last(name, b'_').map(|(_, epoch)| epoch).unwrap_or_default();
    let numbers = version.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    KINDS.contains(&kind)
        && (1..=2).contains(&epoch.len())
        && epoch.iter().all(u8::is_ascii_digit)
        && version.get(..numbers).is_some_and(|numbers| numbers.contains(&b'.'))
        && version
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".+~-".contains(byte))
}

fn split_last(text: &[u8], sign: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memrchr(sign, text)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Longer ones before those that they begin with.
const ALGORITHMS: &[&[u8]] = &[
    b"Curve25519",
    b"Curve448",
    b"Ed25519",
    b"Ed448",
    b"X25519",
    b"X448",
    b"Secp256k1",
    b"Secp256r1",
    b"Secp384r1",
    b"P256",
    b"P384",
    b"P521",
    b"Sha1",
    b"Sha224",
    b"Sha256",
    b"Sha384",
    b"Sha512",
    b"Sha3",
    b"Blake2",
    b"Blake3",
    b"Aes128",
    b"Aes192",
    b"Aes256",
    b"ChaCha20",
    b"Poly1305",
    b"Pkcs1",
    b"Pkcs8",
    b"Sec1",
];
const OF_KEYS: &[&[u8]] = &[
    b"Key",
    b"Secret",
    b"Seed",
    b"Bin",
    b"Bytes",
    b"Private",
    b"Public",
    b"Signing",
    b"Verifying",
    b"Static",
    b"Ephemeral",
    b"Shared",
    b"Pair",
    b"Der",
    b"Pem",
    b"Hmac",
    b"Gcm",
    b"Hash",
];
/// Of machines.
const KINDS: &[&[u8]] =
    &[b"all", b"amd64", b"arm64", b"armel", b"armhf", b"i386", b"mips64el", b"ppc64el", b"riscv64", b"s390x"];

#[cfg(test)]
mod tests {
    use super::is_name;

    #[track_caller]
    fn check(name: &str, values: &[&str], expect: bool) {
        for value in values {
            assert_eq!(is_name(name.as_bytes(), value.as_bytes()), expect, "{name}: {value}");
        }
    }

    #[test]
    fn what_says_its_own_name() {
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
    fn types_and_files() {
        check(
            "secret",
            &["Ed25519Key", "Sha256Secret", "Curve25519SeedBin", "Aes256GcmKey", "_bindgen_ty_3"],
            true,
        );
        check("secret", &["Ed25519", "Sha512"], true);
        check(
            "secret",
            &[
                "Key",
                "SecretKey",
                "Ed25519Hunter22",
                "hunter22Ed25519Key",
                "Ed25519Key1",
                "_bindgen_ty_",
                "_bindgen_ty_123456",
                "_bindgen_ty_x",
            ],
            false,
        );
        check("passwd_1", &["4.13+dfsg1-1+deb12u2_amd64.deb", "4.8_all.deb"], true);
        check(
            "passwd_1",
            &["hunter22_amd64.deb", "4.8_hunter22.deb", "4.8Hunter22_all.deb", "4.8_all.deb2", "4_all.deb"],
            false,
        );
        check("passwd", &["4.13+dfsg1-1+deb12u2_amd64.deb"], false);
    }
}
