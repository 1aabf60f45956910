//! Properties of every text: redaction is idempotent, keeps lines, leaves no definite secret and does not depend on
//! piece boundaries.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use toolgate_secrets::{Detector, Tier};

#[expect(clippy::unwrap_used, reason = "a test fails loudly")]
static DETECTOR: LazyLock<Arc<Detector>> = LazyLock::new(|| Detector::shipped().unwrap());

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn redacting_twice_changes_nothing(text in text(), tier in tier()) {
        let once = DETECTOR.redact(&text, tier);
        let twice = DETECTOR.redact(&once.text, tier);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert!(twice.findings.is_empty());
    }

    #[test]
    fn lines_stay(text in text(), tier in tier()) {
        let redacted = DETECTOR.redact(&text, tier).text.into_owned();
        prop_assert_eq!(redacted.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn no_definite_secret_is_left(text in text(), tier in tier()) {
        let redacted = DETECTOR.redact(&text, tier).text.into_owned();
        prop_assert_eq!(DETECTOR.contains(redacted.as_bytes(), Tier::Definite), None);
    }

    #[test]
    fn findings_are_in_order_and_apart(text in text()) {
        let findings = DETECTOR.scan(&text);
        prop_assert!(findings.iter().all(|found| text.get(found.span.clone()).is_some_and(|part| !part.is_empty())));
        prop_assert!(findings.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
    }

    #[test]
    fn piece_boundaries_do_not_matter(text in text(), sizes in prop::collection::vec(1_usize..40, 1..20), tier in tier()) {
        let whole = DETECTOR.redact(&text, tier).text.into_owned();
        prop_assert_eq!(streamed(text.as_bytes(), &sizes, tier), whole.as_bytes());
    }

    #[test]
    fn arbitrary_bytes_are_scanned(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let found = DETECTOR.contains(&bytes, Tier::Possible);
        prop_assert!(found.is_none_or(|found| found.span.end <= bytes.len()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Longer than a window, with boundaries anywhere.
    #[test]
    fn piece_boundaries_do_not_matter_in_long_texts(
        parts in prop::collection::vec(text(), 20..30),
        fill in 0_usize..20_000,
        sizes in prop::collection::vec(1_usize..100_000, 1..8),
    ) {
        let text = parts.join(&format!("{} ", "lorem ipsum ".repeat(fill / 12)));
        let text = text.repeat(2 + 600_000 / text.len().max(1));
        // Not compared with `redact`, which also redacts repeats before the window in which a value was found.
        let at_once = streamed(text.as_bytes(), &[text.len()], Tier::Probable);
        prop_assert!(streamed(text.as_bytes(), &sizes, Tier::Probable) == at_once);
    }
}

fn streamed(text: &[u8], sizes: &[usize], tier: Tier) -> Vec<u8> {
    let mut stream = DETECTOR.stream(tier);
    let mut out = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, others) = rest.split_at(rest.len().min(*size));
        out.extend(stream.push(piece));
        rest = others;
    }
    out.extend(stream.finish().0);
    out
}

fn tier() -> impl Strategy<Value = Tier> {
    prop_oneof![Just(Tier::Possible), Just(Tier::Probable), Just(Tier::Definite)]
}

/// Secrets, pieces of secrets and of disguises, markers and words, in any order.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![3 => piece(), 1 => beside(), 2 => secret(), 1 => "[ -~]{0,12}", 1 => "\\PC{0,6}"],
        0..14,
    )
    .prop_map(|pieces| pieces.concat())
}

fn piece() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        " ",
        "\n",
        "\r\n",
        "\t",
        "  ",
        "=",
        ":",
        "\"",
        "'",
        "+",
        "-",
        "_",
        ".",
        "/",
        "%",
        "\\",
        "%5F",
        "\\u005f",
        "&#95;",
        "\u{200b}",
        "–",
        "𝚐",
        "password",
        "secret",
        "token",
        "api_key",
        "Bearer ",
        "Basic ",
        "aws_secret_access_key",
        "twilio",
        "heroku",
        "xx",
        "[REDACTED:",
        "[REDACTED:token:github]",
        "[REDACTED:password:generic]",
        "Bearer [REDACTED:token:github]",
        "\"DB_PASSWORD\",\"value\":\"hunter22x",
        "password:[\"hunter22x\",\"",
        "--password hunter22x",
        "a=1;password=",
        "]",
        "postgres://",
        "u:p",
        "@h",
        "ghp_",
        "AKIA",
        "eyJ",
        ".eyJ",
        "-----BEGIN",
        " PRIVATE KEY-----",
        "-----END",
        "0123456789abcdef0123",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "g h p _ ",
        "Z2hwX",
        "\" + \"",
        "sk_live_",
    ])
    .prop_map(str::to_owned)
}

/// Text that may hide or reveal an adjacent secret.
fn beside() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "%22",
        "%3D",
        "\\n",
        "\\\"",
        "&quot;",
        "\u{1b}[32m",
        "datadog",
        "\"kty\"",
        "\"d\":\"",
    ])
    .prop_map(str::to_owned)
}

fn secret() -> impl Strategy<Value = String> {
    let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
    let key = format!(
        "{}{}\n{}\n-----END PRIVATE KEY-----",
        "-----BEGIN PRI",
        "VATE KEY-----",
        "MIIEvQ".repeat(20)
    );
    let all = vec![
        token.clone(),
        token.chars().flat_map(|character| [character, ' ']).collect(),
        token.replacen('_', "_\n", 1),
        token.replace('_', "%5F"),
        "6768705f7a5157427554534f6f5269344139737048635659356e636e73446b786b4a306d4c713137".to_owned(),
        format!("Z2hwX3pRV0J1VFNPb1JpNEE5c3BIY1ZZNW5jbnNE{}", "a3hrSjBtTHExNw=="),
        key,
        format!("{}_{}", "sk_live", "0123456789abcdefABCDEFGH"),
        concat!("AKIA", "QYLPMN5HHHFPZA22").to_owned(),
        "postgres://app:s3cr3t@db/x".to_owned(),
        "password = \"hunter22\"".to_owned(),
        concat!("dapi", "a3f09c7be1d24586a3f09c7be1d24586").to_owned(),
        "a3f09c7be1d24586a3f09c7be1d24586".to_owned(),
        "cIrjXn8OvnYozQ5YDXWsJD5JNfIsuCMs0lHGpZV0".to_owned(),
        "Kd1cIrjXn8OvnYozQ5YDXWsJD5JNfIsuCMs0lHGpZV0".to_owned(),
        "token 0123456789abcdef0123456789abcdef0123456789abcdef".to_owned(),
    ];
    prop::sample::select(all)
}
