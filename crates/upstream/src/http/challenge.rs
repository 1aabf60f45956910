//! Parses `WWW-Authenticate` of a 401 or 403 response (RFC 9110, section 11.6.1).

/// The conditions of a server for access. All texts are untrusted and bounded.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AuthChallenge {
    /// 401 or 403.
    pub status: u16,
    /// Whether the server asks for a bearer token. The other fields are empty if not.
    pub is_bearer: bool,
    /// The URL of the server's authorization metadata (RFC 9728).
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs, separated by spaces.
    pub scope: Option<String>,
    /// `invalid_token`, `insufficient_scope`, …
    pub error: Option<String>,
}

impl AuthChallenge {
    /// Reads the values of all `WWW-Authenticate` headers. The first bearer challenge counts; the rest is ignored.
    pub fn parse<'a>(status: u16, values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut challenge = Self { status, ..Self::default() };
        for value in values {
            let Some(value) = value.get(..value.len().min(HEADER_BYTES)) else { continue };
            challenge.read(value);
            if challenge.is_bearer {
                break;
            }
        }
        challenge
    }

    fn read(&mut self, value: &str) {
        let mut scanner = ChallengeScanner { rest: value };
        let mut in_bearer = false;
        while let Some(part) = scanner.next_part() {
            match part {
                // A second bearer challenge must not change the first.
                ChallengePart::Scheme(_) if self.is_bearer => return,
                ChallengePart::Scheme(scheme) => {
                    in_bearer = scheme.eq_ignore_ascii_case("bearer");
                    self.is_bearer = in_bearer;
                }
                ChallengePart::Parameter(name, text) if in_bearer => self.set(name, text),
                ChallengePart::Parameter(..) => {}
            }
        }
    }

    fn set(&mut self, name: &str, text: String) {
        let field = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => &mut self.resource_metadata,
            "scope" => &mut self.scope,
            "error" => &mut self.error,
            _ => return,
        };
        // A repeated parameter is invalid; the first one counts.
        field.get_or_insert(text);
    }
}

enum ChallengePart<'a> {
    Scheme(&'a str),
    Parameter(&'a str, String),
}

struct ChallengeScanner<'a> {
    rest: &'a str,
}

impl<'a> ChallengeScanner<'a> {
    /// Returns `None` at the end and at the first thing that is not a challenge.
    fn next_part(&mut self) -> Option<ChallengePart<'a>> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', ',']);
            let name = self.token()?;
            let Some(value) = self.rest.trim_start_matches([' ', '\t']).strip_prefix('=') else {
                return Some(ChallengePart::Scheme(name));
            };
            let value = value.trim_start_matches([' ', '\t']);
            // `abc==` is the credential of another scheme, not a parameter.
            if value.is_empty() || value.starts_with([',', '=']) {
                self.rest = value.trim_start_matches('=');
                continue;
            }
            self.rest = value;
            let text = if value.starts_with('"') { self.quoted()? } else { self.token()?.to_owned() };
            return Some(ChallengePart::Parameter(name, text));
        }
    }

    fn token(&mut self) -> Option<&'a str> {
        let is_token =
            |character: char| character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:".contains(character);
        let end = self.rest.find(|character| !is_token(character)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at_checked(end).filter(|(token, _)| !token.is_empty())?;
        self.rest = rest;
        Some(token)
    }

    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.strip_prefix('"')?.chars();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => text.push(characters.next()?),
                character => text.push(character),
            }
        }
        self.rest = characters.as_str();
        Some(text)
    }
}

const HEADER_BYTES: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(values: &[&str], expect: (bool, Option<&str>, Option<&str>, Option<&str>)) {
        let found = AuthChallenge::parse(401, values.iter().copied());
        let shown = (
            found.is_bearer,
            found.resource_metadata.as_deref(),
            found.scope.as_deref(),
            found.error.as_deref(),
        );
        assert_eq!(shown, expect, "{values:?}");
    }

    #[test]
    fn bearer_challenges_are_read() {
        check(&["Bearer"], (true, None, None, None));
        check(
            &[r#"Bearer resource_metadata="https://a.test/.well-known/x", scope="a b", error=invalid_token"#],
            (true, Some("https://a.test/.well-known/x"), Some("a b"), Some("invalid_token")),
        );
        check(&[r#"bearer realm="a\"b, scope=c" , SCOPE = "d""#], (true, None, Some("d"), None));
        check(&[r#"Basic realm="x", scope="no", Bearer scope="yes""#], (true, None, Some("yes"), None));
        check(&["Negotiate abc==, Bearer scope=x"], (true, None, Some("x"), None));
        check(
            &[r#"Basic realm="x""#, "Bearer error=invalid_token"],
            (true, None, None, Some("invalid_token")),
        );
    }

    #[test]
    fn other_texts_ask_for_nothing() {
        check(&[], (false, None, None, None));
        check(&[""], (false, None, None, None));
        check(&["Basic scope=x"], (false, None, None, None));
        check(&[r#"Bearer scope="unfinished"#], (true, None, None, None));
        // The first challenge and the first parameter count.
        check(&["Bearer scope=a, scope=b, Bearer scope=c"], (true, None, Some("a"), None));
        let long = format!("Basic realm=\"{}\", Bearer scope=x", "y".repeat(HEADER_BYTES));
        check(&[&long], (false, None, None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "(Bearer|scope|[ ,=\"\\\\]|[a-z\u{e9}]{0,3}){0,40}") {
            let _ = AuthChallenge::parse(401, [text.as_str()]);
        }
    }
}
