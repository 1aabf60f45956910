//! What is refused at start, before any token comes?

use super::*;

#[test]
fn a_scope_that_would_break_out_of_its_header_is_refused_at_start() {
    for scope in ["", "a b", "a\"b", "a\\b", "a\nb", "ä"] {
        let mut settings = rsa();
        settings.required_scopes = BTreeSet::from([scope.to_owned()]);
        let error = JwtVerifier::new(vec![settings], None).unwrap_err().to_string();
        assert!(error.contains("`required_scopes`"), "{error}");
    }
}

#[test]
fn weak_and_foreign_keys_are_refused_at_start() {
    for (key, why) in [
        (RSA_SHORT_PUBLIC, "2048"),
        (RSA_A, "PUBLIC KEY"),
        ("", "PUBLIC KEY"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "not an RSA"),
    ] {
        let error =
            JwtVerifier::new(vec![issuer(pem(key), &[Algorithm::Rs256])], None).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    for (length, algorithm) in
        [(31, Algorithm::Hs256), (47, Algorithm::Hs384), (63, Algorithm::Hs512), (0, Algorithm::Hs256)]
    {
        let keys = KeySettings::Secret(Secret::new(vec![7; length]));
        assert!(JwtVerifier::new(vec![issuer(keys, &[algorithm])], None).is_err(), "{algorithm:?}");
    }
    assert!(JwtVerifier::new(vec![issuer(pem(RSA_A_PUBLIC), &[Algorithm::Es256])], None).is_err());
    assert!(JwtVerifier::new(vec![issuer(KeySettings::Pem(vec![]), &[Algorithm::Rs256])], None).is_err());
}

type Change = fn(&mut IssuerSettings);

#[test]
fn doubtful_settings_are_refused_at_start() {
    let broken: [(&str, Change); 12] = [
        ("a minute", |issuer| issuer.refresh = Duration::ZERO),
        ("a day", |issuer| issuer.refresh = Duration::MAX),
        ("`sub`", |issuer| issuer.subject_claim = String::new()),
        ("name", |issuer| issuer.name = "a:b".into()),
        ("name", |issuer| issuer.name = String::new()),
        ("issuer", |issuer| issuer.issuer = " ".into()),
        ("audiences", |issuer| issuer.audiences.clear()),
        ("algorithms", |issuer| issuer.algorithms.clear()),
        ("clock_skew", |issuer| issuer.clock_skew = Duration::from_secs(601)),
        ("https", |issuer| issuer.keys = KeySettings::JwksUrl("http://login.example/keys".into())),
        ("password", |issuer| issuer.keys = KeySettings::JwksUrl("https://u:p@login.example/keys".into())),
        ("no way to fetch", |issuer| issuer.keys = KeySettings::JwksUrl("https://login.example/keys".into())),
    ];
    for (word, change) in broken {
        let mut settings = rsa();
        change(&mut settings);
        let error = JwtVerifier::new(vec![settings], None).unwrap_err().to_string();
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(JwtVerifier::new(vec![rsa(), rsa()], None).is_err());
}

#[test]
fn keys_of_a_set_are_checked_one_by_one() {
    let point = |curve: &str, x: &[u8], y: &[u8]| json!({"kty": "EC", "crv": curve, "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y)});
    let modulus = URL_SAFE_NO_PAD.encode([0xff; 256]);
    for jwk in [
        // Not on the curve, and the wrong size for it.
        point("P-256", &[1; 32], &[1; 32]),
        point("P-256", &[1; 31], &[1; 32]),
        point("P-384", &[1; 48], &[1; 48]),
        point("P-521", &[1; 66], &[1; 66]),
        // A key too short would make the library panic.
        json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}),
        json!({"kty": "OKP", "crv": "X25519", "x": URL_SAFE_NO_PAD.encode([1; 32])}),
        json!({"kty": "RSA", "n": modulus, "e": "AQ"}),
        json!({"kty": "RSA", "n": modulus, "e": "Ag"}),
        json!({"kty": "RSA", "n": modulus, "e": ""}),
        json!({"kty": "RSA", "n": modulus}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "use": "enc"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "key_ops": ["encrypt"]}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "d": "AQAB"}),
        json!({"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RSA-OAEP"}),
        // A secret in a public key set is not secret.
        json!({"kty": "oct", "k": URL_SAFE_NO_PAD.encode(SECRET)}),
        json!({}),
    ] {
        assert!(VerificationKey::from_jwk(jwk.as_object().unwrap()).is_err(), "{jwk}");
    }
    let fine = json!({"kty": "RSA", "n": modulus, "e": "AQAB", "use": "sig", "alg": "PS256"});
    let key = VerificationKey::from_jwk(fine.as_object().unwrap()).unwrap();
    assert!(key.fits(Algorithm::Ps256) && !key.fits(Algorithm::Rs256));
}

#[test]
fn nothing_secret_shows_in_debug_output() {
    let verifier = JwtVerifier::new(vec![shared()], None).unwrap();
    let said = format!("{verifier:?} {:?} {:?}", shared(), VerificationKey::shared(&Secret::new(*SECRET)));
    assert!(!said.contains("0123456789abcdef") && !said.contains("48, 49, 50"), "{said}");
}
