//! Which headers does the collector want? Credentials, as a rule: names may be shown, values never.

use std::fmt;

use crate::settings::SettingsError;

/// Headers for every request to the collector.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Reads `name=value,name=value`, values percent-encoded where need be, as in `OTEL_EXPORTER_OTLP_HEADERS`.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let pairs: Result<Vec<_>, _> = parts.enumerate().map(|(index, part)| pair(index + 1, part)).collect();
        Self::new(pairs?)
    }

    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, SettingsError> {
        for (index, (name, value)) in pairs.iter().enumerate() {
            if name.is_empty() || !name.bytes().all(is_token) {
                let message = format!(
                    "header {} of the collector has no sound name; use letters, digits and `-`",
                    index + 1
                );
                return Err(SettingsError::new(message));
            }
            if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
                let message = format!("header `{name}` of the collector is set by us; leave it out");
                return Err(SettingsError::new(message));
            }
            if !value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
                let message = format!(
                    "the value of header `{name}` of the collector has control or non-ASCII characters; encode it"
                );
                return Err(SettingsError::new(message));
            }
        }
        Ok(Self(pairs))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Counted instead of quoted: what stands before a missing `=` may be the secret itself.
fn pair(number: usize, part: &str) -> Result<(String, String), SettingsError> {
    let unreadable = |what: &str| {
        SettingsError::new(format!("header {number} of the collector {what}; write `name=value,name=value`"))
    };
    let (name, value) = part.split_once('=').ok_or_else(|| unreadable("has no `=`"))?;
    let value = decoded(value.trim()).ok_or_else(|| unreadable("has a `%` that encodes nothing"))?;
    Ok((name.trim().to_owned(), value))
}

fn decoded(value: &str) -> Option<String> {
    let mut pieces = value.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A second one would let the collector choose; the rest shapes the message.
const OURS: [&str; 6] =
    ["content-type", "content-length", "content-encoding", "host", "connection", "transfer-encoding"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(&str, &str)]) {
        let expect: Vec<(String, String)> =
            expect.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        assert_eq!(Headers::parse(text).unwrap().pairs(), expect);
    }

    #[track_caller]
    fn check_refused(text: &str, expect: &str) {
        let error = Headers::parse(text).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn headers_are_read_as_other_exporters_read_them() {
        check("", &[]);
        check(
            "authorization=Bearer%20abc, x-scope = a=b ,",
            &[("authorization", "Bearer abc"), ("x-scope", "a=b")],
        );
    }

    #[test]
    fn unsound_headers_are_refused_without_their_values() {
        check_refused("hunter2", "header 1 of the collector has no `=`");
        check_refused("a=b,=hunter2", "header 2 of the collector has no sound name");
        check_refused("a=hunter2%", "encodes nothing");
        check_refused("a=hunter2%+1", "encodes nothing");
        check_refused("a=hunter2%0d%0aHost: evil", "control or non-ASCII");
        check_refused("Content-Type=hunter2", "is set by us");
        check_refused("a=%ff", "encodes nothing");
    }

    #[test]
    fn debug_shows_names_only() {
        assert_eq!(format!("{:?}", Headers::parse("x-key=hunter2").unwrap()), r#"["x-key"]"#);
    }
}
