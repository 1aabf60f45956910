//! Rejects requests that contain a secret which was not given to the call.

use std::{borrow::Cow, sync::Arc};

use toolgate_egress::{BodyGuard, OutgoingPart, RequestPart};
use toolgate_gate::ApprovedSecrets;
use toolgate_secrets::{Detector, SecretFinding, Tier};

/// Scans the requests of one call.
pub struct SecretGuard {
    detector: Arc<Detector>,
    /// The values of the tool's own secrets, which it may send, plain and URL-encoded.
    own_secrets: Vec<String>,
    /// Values that a person approved for sending, although they may be secrets; also URL-encoded.
    agreed: Vec<String>,
}

impl SecretGuard {
    pub fn new(detector: &Arc<Detector>, own_secrets: &[String], agreed: &ApprovedSecrets) -> Self {
        let own_secrets = own_secrets.iter().filter(|secret| secret.len() >= SHORTEST);
        let spelled = |secret: &String| [secret.clone(), url_encoded(secret)];
        Self {
            detector: Arc::clone(detector),
            own_secrets: own_secrets.flat_map(spelled).collect(),
            agreed: agreed.values().iter().flat_map(spelled).collect(),
        }
    }

    /// Replaces credentials that this call was given, so that the detector reports only foreign ones. The detector
    /// also looks at the text before a secret; the replacement therefore covers that context as well.
    fn without_own_secrets<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.own_secrets.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let hidden =
            self.own_secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), OWN_SECRET));
        Cow::Owned(hidden.into_bytes())
    }

    /// The secret that prevents sending. An approval covers only the values that were shown, and only probable
    /// secrets. Approved values are not replaced like the tool's own secrets: a caller could use them to hide the
    /// word that identifies another secret.
    fn secret_in(&self, bytes: &[u8]) -> Option<SecretFinding> {
        if self.agreed.is_empty() {
            return self.detector.contains(bytes, Tier::Probable);
        }
        let text = String::from_utf8_lossy(bytes);
        let was_agreed = |finding: &SecretFinding| {
            let written = text.get(finding.span.clone()).unwrap_or_default();
            finding.tier == Tier::Probable && self.agreed.iter().any(|agreed| agreed == written)
        };
        let found = self.detector.redact(&text, Tier::Probable).findings;
        found.into_iter().find(|finding| !was_agreed(finding))
    }
}

impl BodyGuard for SecretGuard {
    fn judge(&self, leaving: &OutgoingPart<'_>) -> Option<String> {
        let bytes = self.without_own_secrets(leaving.bytes);
        let bytes = match leaving.part {
            // The header name identifies the value, like a key in a body.
            RequestPart::Header(name) => Cow::Owned([name.as_bytes(), b": ", &bytes].concat()),
            RequestPart::Url | RequestPart::Body | RequestPart::Written => bytes,
        };
        let finding = self.secret_in(&bytes)?;
        Some(format!("it holds a {} of {}", finding.kind, finding.provider))
    }
}

fn url_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            other => drop(write!(encoded, "%{other:02X}")),
        }
        encoded
    })
}

/// Too short to match a rule.
const OWN_SECRET: &str = "(lent)";
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const OPAQUE: &str = "q7Zk2mVx9TbLw4Rs8NyPd3Hc";

    fn judged(own_secrets: &[&str], part: RequestPart<'_>, text: &str) -> Option<String> {
        judged_after(own_secrets, &ApprovedSecrets::default(), part, text)
    }

    fn judged_after(
        own_secrets: &[&str],
        agreed: &ApprovedSecrets,
        part: RequestPart<'_>,
        text: &str,
    ) -> Option<String> {
        let own_secrets: Vec<String> = own_secrets.iter().map(|&secret| secret.to_owned()).collect();
        let guard = SecretGuard::new(&Detector::shipped().unwrap(), &own_secrets, agreed);
        guard.judge(&OutgoingPart { host: "a.example", part, bytes: text.as_bytes() })
    }

    /// The values that a person approved for sending.
    fn agreed(values: &[&str]) -> ApprovedSecrets {
        ApprovedSecrets::new(values.iter().map(|&value| value.to_owned()).collect())
    }

    #[track_caller]
    fn check_header(name: &str, value: &str, expect: Option<&str>) {
        assert_eq!(judged(&[], RequestPart::Header(name), value).as_deref(), expect, "{name}: {value}");
    }

    #[test]
    fn header_is_checked_with_its_name() {
        check_header("x-api-key", OPAQUE, Some("it holds a password of generic"));
        check_header("token", OPAQUE, Some("it holds a token of generic"));
        check_header("x-auth-token", OPAQUE, Some("it holds a password of generic"));
        check_header("cookie", &format!("a=1; session={OPAQUE}"), Some("it holds a session of generic"));
        check_header("authorization", &format!("Bearer {OPAQUE}"), Some("it holds a token of generic"));
    }

    #[test]
    fn ordinary_headers_pass() {
        for (name, value) in [
            ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"),
            ("authorization", "none"),
            ("cookie", "lang=en; theme=dark"),
            ("etag", "\"33a64df551425fcc55e4d42a148795d9f25f89d4\""),
            ("idempotency-key", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"),
            ("x-amz-content-sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ] {
            check_header(name, value, None);
        }
    }

    #[test]
    fn key_is_recognised_as_a_method_a_header_name_or_a_host() {
        let key = format!("{}{}", "AKIA", "Q3EGRFLWZ7XKTN2P");
        for written in [key.clone(), format!("X-{key}"), format!("https://{key}.example/")] {
            assert!(judged(&[], RequestPart::Written, &written).is_some(), "{written}");
            assert_eq!(judged(&[&key], RequestPart::Written, &written), None, "{written}");
        }
        for written in ["PROPFIND", "X-Amz-Content-Sha256", "Sec-WebSocket-Key", "https://api.example.com/v1"]
        {
            assert_eq!(judged(&[], RequestPart::Written, written), None);
        }
    }

    /// The tool's own secret may be sent under any name, but no other secret with it.
    #[test]
    fn own_secret_may_be_sent_in_a_header() {
        for (name, value) in [
            ("x-api-key", OPAQUE.to_owned()),
            ("token", OPAQUE.to_owned()),
            ("authorization", format!("Bearer {OPAQUE}")),
            ("cookie", format!("session={OPAQUE}")),
        ] {
            assert_eq!(judged(&[OPAQUE], RequestPart::Header(name), &value), None, "{name}");
        }
        let other = format!("a={OPAQUE}; session={}", OPAQUE.to_lowercase());
        assert!(judged(&[OPAQUE], RequestPart::Header("cookie"), &other).is_some());
    }

    /// The approval covers the shown value anywhere in the request.
    #[test]
    fn approved_value_may_be_sent() {
        let survey = agreed(&["hunter22x", "p&ss w0rd/1"]);
        for (part, text) in [
            (RequestPart::Body, r#"{"note":"please store password = hunter22x"}"#),
            (RequestPart::Body, r#"{"password":"hunter22x","name":"ann"}"#),
            (RequestPart::Body, "password=hunter22x&name=ann"),
            (RequestPart::Body, "password = hunter22x\nname = ann\n"),
            (RequestPart::Body, r#"{"password":"p&ss w0rd/1"}"#),
            (RequestPart::Body, "password=p%26ss%20w0rd%2F1&name=ann"),
            (RequestPart::Header("x-api-key"), "hunter22x"),
            (RequestPart::Url, "https://a.example/?password=hunter22x"),
        ] {
            assert!(judged(&[], part, text).is_some(), "nothing to agree to in {text}");
            assert_eq!(judged_after(&[], &survey, part, text), None, "{text}");
        }
    }

    /// The approval of one secret does not cover another one that was not shown.
    #[test]
    fn approval_covers_no_other_secret() {
        let survey = agreed(&["hunter22x", "DB_PASSWORD"]);
        for text in [
            "please store password = hunter22x\nDB_PASSWORD=Tr0ub4dor-and-3\n",
            "DB_PASSWORD=Tr0ub4dor-and-3",
            r#"{"password":"hunter22x","env":"API_TOKEN=q7Zk2mVx9TbLw4Rs8NyPd3Hc"}"#,
            "password = hunter22xyz",
        ] {
            assert!(judged_after(&[], &survey, RequestPart::Body, text).is_some(), "{text}");
        }
        // A certain secret is never sent, even with approval.
        let token = format!("{}_{}", "ghp", "q7Zk2mVx9TbLw4Rs8NyPd3HcJf5GaE0QhQH1");
        assert!(judged_after(&[], &agreed(&[&token]), RequestPart::Body, &token).is_some());
    }

    #[test]
    fn other_parts_are_checked_without_a_name() {
        assert_eq!(judged(&[], RequestPart::Body, OPAQUE), None);
        assert!(judged(&[], RequestPart::Body, &format!("api_key: {OPAQUE}")).is_some());
        assert!(judged(&[], RequestPart::Url, &format!("https://a.example/?token={OPAQUE}")).is_some());
    }
}
