//! May this leave with a request? Not if it holds a secret that was not lent to the call.

use std::{borrow::Cow, sync::Arc};

use toolgate_egress::{BodyGuard, OutgoingPart, RequestPart};
use toolgate_gate::ApprovedSecrets;
use toolgate_secrets::{Detector, SecretFinding, Tier};

/// Looks through what one call sends out.
pub struct SecretGuard {
    detector: Arc<Detector>,
    /// The values of the tool's own secrets, which it was given to send, plain and as a URL spells them.
    lent: Vec<String>,
    /// What a person has agreed to send, although it may be a secret; spelled in the same ways.
    agreed: Vec<String>,
}

impl SecretGuard {
    pub fn new(detector: &Arc<Detector>, lent: &[String], agreed: &ApprovedSecrets) -> Self {
        let lent = lent.iter().filter(|secret| secret.len() >= SHORTEST);
        let spelled = |secret: &String| [secret.clone(), url_encoded(secret)];
        Self {
            detector: Arc::clone(detector),
            lent: lent.flat_map(spelled).collect(),
            agreed: agreed.values().iter().flat_map(spelled).collect(),
        }
    }

    /// A credential is recognised by what stands before it too, so that a lent one is put out of sight with as much of
    /// its surroundings as a mark needs.
    fn without_lent<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if self.lent.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let hidden = self.lent.iter().fold(text, |text, secret| text.replace(secret.as_str(), LENT));
        Cow::Owned(hidden.into_bytes())
    }

    /// What keeps this from leaving. A yes was given for values that somebody was shown: it is none for what stands beside them, nor
    /// for what is certainly a secret. They are not put out of sight as lent ones are, for whoever chose them could hide with them
    /// the word by which another secret is known.
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
        let bytes = self.without_lent(leaving.bytes);
        let bytes = match leaving.part {
            // The name tells what the value is, as it does in a body.
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

/// Too short to be taken for anything by a rule.
const LENT: &str = "(lent)";
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const OPAQUE: &str = "q7Zk2mVx9TbLw4Rs8NyPd3Hc";

    fn judged(lent: &[&str], part: RequestPart<'_>, text: &str) -> Option<String> {
        judged_after(lent, &ApprovedSecrets::default(), part, text)
    }

    fn judged_after(
        lent: &[&str],
        agreed: &ApprovedSecrets,
        part: RequestPart<'_>,
        text: &str,
    ) -> Option<String> {
        let lent: Vec<String> = lent.iter().map(|&secret| secret.to_owned()).collect();
        let guard = SecretGuard::new(&Detector::shipped().unwrap(), &lent, agreed);
        guard.judge(&OutgoingPart { host: "a.example", part, bytes: text.as_bytes() })
    }

    /// The values that a person allowed a call to send.
    fn agreed(values: &[&str]) -> ApprovedSecrets {
        ApprovedSecrets::new(values.iter().map(|&value| value.to_owned()).collect())
    }

    #[track_caller]
    fn check_header(name: &str, value: &str, expect: Option<&str>) {
        assert_eq!(judged(&[], RequestPart::Header(name), value).as_deref(), expect, "{name}: {value}");
    }

    #[test]
    fn a_header_is_judged_with_its_name() {
        check_header("x-api-key", OPAQUE, Some("it holds a password of generic"));
        check_header("token", OPAQUE, Some("it holds a token of generic"));
        check_header("x-auth-token", OPAQUE, Some("it holds a password of generic"));
        check_header("cookie", &format!("a=1; session={OPAQUE}"), Some("it holds a session of generic"));
        check_header("authorization", &format!("Bearer {OPAQUE}"), Some("it holds a token of generic"));
    }

    #[test]
    fn what_headers_ordinarily_hold_may_leave() {
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

    /// What a call was lent may leave under any name, and nothing else with it.
    #[test]
    fn what_was_lent_may_leave_in_a_header() {
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

    /// The yes was given for what was shown, wherever in the request it stands.
    #[test]
    fn what_was_agreed_to_may_leave() {
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

    /// A yes to one secret is none to what a file held that nobody was shown.
    #[test]
    fn a_yes_lets_nothing_else_leave() {
        let survey = agreed(&["hunter22x", "DB_PASSWORD"]);
        for text in [
            "please store password = hunter22x\nDB_PASSWORD=Tr0ub4dor-and-3\n",
            "DB_PASSWORD=Tr0ub4dor-and-3",
            r#"{"password":"hunter22x","env":"API_TOKEN=q7Zk2mVx9TbLw4Rs8NyPd3Hc"}"#,
            "password = hunter22xyz",
        ] {
            assert!(judged_after(&[], &survey, RequestPart::Body, text).is_some(), "{text}");
        }
        // What is certainly a secret never leaves, whatever somebody said.
        let token = format!("{}_{}", "ghp", "q7Zk2mVx9TbLw4Rs8NyPd3HcJf5GaE0QhQH1");
        assert!(judged_after(&[], &agreed(&[&token]), RequestPart::Body, &token).is_some());
    }

    #[test]
    fn other_parts_are_judged_as_they_are() {
        assert_eq!(judged(&[], RequestPart::Body, OPAQUE), None);
        assert!(judged(&[], RequestPart::Body, &format!("api_key: {OPAQUE}")).is_some());
        assert!(judged(&[], RequestPart::Url, &format!("https://a.example/?token={OPAQUE}")).is_some());
    }
}
