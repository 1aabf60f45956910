use proptest::prelude::*;
use serde_json::json;

use super::*;

fn unhex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

#[track_caller]
fn check(answer: Result<HelperAnswer, HelperError>, expected: &str) {
    assert_eq!(answer.unwrap(), HelperAnswer::Bytes(unhex(expected)));
}

#[track_caller]
fn check_refused(answer: Result<HelperAnswer, HelperError>, reason: &str) {
    assert_eq!(answer.map_err(|error| error.reason), Err(reason.to_owned()));
}

#[test]
fn digests_of_fips_180() {
    check(digest("SHA-256", b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check(digest("SHA-256", b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check(
        digest("SHA-384", b"abc"),
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
    );
    check(
        digest("SHA-512", b"abc"),
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    );
}

#[test]
fn broken_and_unknown_hashes_are_refused() {
    for name in ["SHA-1", "MD5", "sha-256", "", "SHA-256\0"] {
        check_refused(digest(name, b"abc"), "unsupported-algorithm");
    }
}

const RFC_4231: &[(&str, &str, &str, &str)] = &[
    (
        "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
        "4869205468657265",
        "SHA-256",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    ),
    (
        "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
        "4869205468657265",
        "SHA-384",
        "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6",
    ),
    (
        "4a656665",
        "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
        "SHA-256",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    ),
    (
        "4a656665",
        "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
        "SHA-512",
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554
         9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
    ),
];

#[test]
fn signatures_of_rfc_4231() {
    for (key, data, hash, expected) in RFC_4231 {
        let (key, data) = (unhex(key), unhex(data));
        let asked = json!({ "hash": hash, "keyLength": key.len() }).to_string();
        check(hmac_sign(&asked, &[key, data].concat()), expected);
    }
}

#[test]
fn only_the_whole_signature_verifies() {
    let (key, data, hash, signature) = RFC_4231[0];
    let (key, data, signature) = (unhex(key), unhex(data), unhex(signature));
    let verify = |key: &[u8], signature: &[u8], data: &[u8]| {
        let asked = json!({ "hash": hash, "keyLength": key.len(), "signatureLength": signature.len() });
        hmac_verify(&asked.to_string(), &[key, signature, data].concat())
    };
    let no = Ok(HelperAnswer::Json("false".to_owned()));
    assert_eq!(verify(&key, &signature, &data), Ok(HelperAnswer::Json("true".to_owned())));
    assert_eq!(verify(&key, &signature[..31], &data), no);
    assert_eq!(verify(&key, &[signature.as_slice(), &[0]].concat(), &data), no);
    assert_eq!(verify(&key, &[], &data), no);
    assert_eq!(verify(&key, &signature, b"Hi There!"), no);
    assert_eq!(verify(b"other", &signature, &data), no);
    let mut changed = signature.clone();
    changed[31] ^= 1;
    assert_eq!(verify(&key, &changed, &data), no);
}

fn input(key: &[u8], iv: &[u8], aad: &[u8], data: &[u8]) -> (String, Vec<u8>) {
    let asked = json!({ "keyLength": key.len(), "ivLength": iv.len(), "aadLength": aad.len() });
    (asked.to_string(), [key, iv, aad, data].concat())
}

/// Cases 4, 10 and 16 of McGrew and Viega: the same text under keys of 16, 24 and 32 bytes.
const GCM: &[(&str, &str)] = &[
    (
        "feffe9928665731c6d6a8f9467308308",
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
         21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091
         5bc94fbc3221a5db94fae95ae7121a47",
    ),
    (
        "feffe9928665731c6d6a8f9467308308feffe9928665731c",
        "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c
         7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710
         2519498e80f1478f37ba55bd6d27618c",
    ),
    (
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
         8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662
         76fc6ece0f4e1768cddf8853bb2d551b",
    ),
];
const GCM_IV: &str = "cafebabefacedbaddecaf888";
const GCM_AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
const GCM_TEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
                        1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";

#[test]
fn encryption_of_the_gcm_paper() {
    for (key, sealed) in GCM {
        let (asked, bytes) = input(&unhex(key), &unhex(GCM_IV), &unhex(GCM_AAD), &unhex(GCM_TEXT));
        check(aes_gcm_encrypt(&asked, &bytes), sealed);
        let (asked, bytes) = input(&unhex(key), &unhex(GCM_IV), &unhex(GCM_AAD), &unhex(sealed));
        check(aes_gcm_decrypt(&asked, &bytes), GCM_TEXT);
    }
}

#[test]
fn changed_ciphertext_is_refused() {
    let (key, sealed) = GCM[2];
    let (asked, bytes) = input(&unhex(key), &unhex(GCM_IV), &unhex(GCM_AAD), &unhex(sealed));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x80;
        check_refused(aes_gcm_decrypt(&asked, &changed), "decryption-failed");
    }
    let (asked, bytes) = input(&unhex(key), &unhex(GCM_IV), b"", b"short");
    check_refused(aes_gcm_decrypt(&asked, &bytes), "decryption-failed");
}

#[test]
fn keys_and_vectors_of_other_sizes_are_refused() {
    for size in [0, 8, 13, 16] {
        let (asked, bytes) = input(&[0; 16], &vec![0; size], b"", b"text");
        check_refused(aes_gcm_encrypt(&asked, &bytes), "invalid-iv");
    }
    for size in [0, 15, 17, 31, 33, 64] {
        let (asked, bytes) = input(&vec![0; size], &[0; 12], b"", b"text");
        check_refused(aes_gcm_encrypt(&asked, &bytes), "encryption-failed");
    }
}

fn derive_hkdf(
    hash: &str,
    key: &[u8],
    salt: &[u8],
    info: &[u8],
    length: usize,
) -> Result<HelperAnswer, HelperError> {
    let asked = json!({ "hash": hash, "keyLength": key.len(), "saltLength": salt.len(), "length": length });
    hkdf(&asked.to_string(), &[key, salt, info].concat())
}

#[test]
fn derivation_of_rfc_5869() {
    let key = [0x0b; 22];
    let (salt, info) = (unhex("000102030405060708090a0b0c"), unhex("f0f1f2f3f4f5f6f7f8f9"));
    check(
        derive_hkdf("SHA-256", &key, &salt, &info, 42),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    );
    check(
        derive_hkdf("SHA-256", &key, b"", b"", 42),
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    );
}

#[test]
fn hkdf_output_is_limited() {
    assert!(derive_hkdf("SHA-256", b"key", b"", b"", 255 * 32).is_ok());
    check_refused(derive_hkdf("SHA-256", b"key", b"", b"", 255 * 32 + 1), "invalid-length");
    check_refused(derive_hkdf("SHA-256", b"key", b"", b"", usize::MAX), "invalid-length");
    check_refused(derive_hkdf("SHA-256", b"key", b"", &vec![0; MAX_INFO + 1], 32), "info-too-long");
}

fn derive_pbkdf2(
    hash: &str,
    password: &[u8],
    salt: &[u8],
    iterations: u64,
    length: usize,
) -> Result<HelperAnswer, HelperError> {
    let asked =
        json!({ "hash": hash, "keyLength": password.len(), "iterations": iterations, "length": length });
    pbkdf2(&asked.to_string(), &[password, salt].concat())
}

#[test]
fn derivation_of_rfc_7914() {
    check(
        derive_pbkdf2("SHA-256", b"passwd", b"salt", 1, 64),
        "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc
         49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783",
    );
    check(
        derive_pbkdf2("SHA-512", b"password", b"salt", 2, 64),
        "e1d9c16aa681708a45f5c7c4e215ceb66e011a2e9f0040713f18aefdb866d53c
         f76cab2868a39b9f7840edce4fef5a82be67335c77a6068e04112754f27ccf4e",
    );
}

#[test]
fn pbkdf2_work_is_limited() {
    check_refused(derive_pbkdf2("SHA-256", b"p", b"s", 0, 32), "invalid-iterations");
    check_refused(derive_pbkdf2("SHA-256", b"p", b"s", 1_000_001, 32), "invalid-iterations");
    check_refused(derive_pbkdf2("SHA-256", b"p", b"s", u64::MAX, 32), "invalid-arguments");
    check_refused(derive_pbkdf2("SHA-256", b"p", b"s", 1, MAX_FROM_PASSWORD + 1), "invalid-length");
    check_refused(derive_pbkdf2("SHA-256", b"p", b"s", 1_000_000, 65), "too-much-work");
    check_refused(derive_pbkdf2("SHA-512", b"p", b"s", 250_001, MAX_FROM_PASSWORD), "too-much-work");
}

#[test]
fn random_bytes_differ_and_are_limited() {
    let (first, second) = (random("32"), random("32"));
    assert_ne!(first, second);
    assert!(matches!(random("65536"), Ok(HelperAnswer::Bytes(bytes)) if bytes.len() == 65_536));
    for count in ["65537", "-1", "", "1e3", "99999999999999999999"] {
        check_refused(random(count), "too-many-bytes");
    }
}

#[test]
fn wrong_lengths_are_refused() {
    for length in [4, usize::MAX] {
        check_refused(
            hmac_sign(&json!({ "hash": "SHA-256", "keyLength": length }).to_string(), b"key"),
            "invalid-arguments",
        );
    }
    for text in ["", "null", "[]", "{\"hash\":\"SHA-256\",\"keyLength\":-1}"] {
        for ask in [hmac_sign, hmac_verify, aes_gcm_encrypt, aes_gcm_decrypt, hkdf, pbkdf2] {
            check_refused(ask(text, b"bytes"), "invalid-arguments");
        }
    }
}

proptest! {
    #[test]
    fn parameters_never_panic(key in 0usize..80, iv in 0usize..20, aad in 0usize..20, bytes in prop::collection::vec(any::<u8>(), 0..128)) {
        let asked = json!({ "hash": "SHA-256", "keyLength": key, "ivLength": iv, "aadLength": aad, "saltLength": iv, "signatureLength": aad, "iterations": 1, "length": key }).to_string();
        for ask in [hmac_sign, hmac_verify, aes_gcm_encrypt, aes_gcm_decrypt, hkdf, pbkdf2] {
            if let Err(error) = ask(&asked, &bytes) {
                prop_assert!(!error.message.is_empty());
            }
        }
    }
}
