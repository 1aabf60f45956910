//! Headers for the collector. They usually hold credentials: names may be shown, values never.

use std::fmt;

use crate::settings::SettingsError;

/// Headers for every request to the collector.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Parses `name=value,name=value` with percent-encoded values, as in `OTEL_EXPORTER_OTLP_HEADERS`.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let pairs: Result<Vec<_>, _> = parts.enumerate().map(|(index, part)| pair(index + 1, part)).collect();
        Self::new(pairs?)
    }

    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, SettingsError> {
        for (index, (name, value)) in pairs.iter().enumerate() {
            if name.is_empty() || !name.bytes().all(is_token) {
                let message = format!(
                    "collector header {} has an invalid name; use letters, digits and `-`",
                    index + 1
                );
                return Err(SettingsError::new(message));
            }
            if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
                let message = format!("collector header `{name}` is set by Toolgate; remove it");
                return Err(SettingsError::new(message));
            }
            if !value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
                let message = format!(
                    "the value of collector header `{name}` has control or non-ASCII characters; percent-encode it"
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

/// Reports the number instead of the text: without `=`, the text may be the secret itself.
fn pair(number: usize, part: &str) -> Result<(String, String), SettingsError> {
    let unreadable = |what: &str| {
        SettingsError::new(format!("collector header {number} {what}; write `name=value,name=value`"))
    };
    let (name, value) = part.split_once('=').ok_or_else(|| unreadable("has no `=`"))?;
    let value = decoded(value.trim()).ok_or_else(|| unreadable("has an invalid `%` escape"))?;
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

/// Headers that shape the request. A duplicate would let the collector choose between two values.
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
    fn headers_are_parsed_as_by_other_exporters() {
        check("", &[]);
        check(
            "authorization=Bearer%20abc, x-scope = a=b ,",
            &[("authorization", "Bearer abc"), ("x-scope", "a=b")],
        );
    }

    #[test]
    fn invalid_headers_are_rejected_without_showing_values() {
        check_refused("hunter2", "collector header 1 has no `=`");
        check_refused("a=b,=hunter2", "collector header 2 has an invalid name");
        check_refused("a=hunter2%", "invalid `%` escape");
        check_refused("a=hunter2%+1", "invalid `%` escape");
        check_refused("a=hunter2%0d%0aHost: evil", "control or non-ASCII");
        check_refused("Content-Type=hunter2", "is set by Toolgate");
        check_refused("a=%ff", "invalid `%` escape");
    }

    #[test]
    fn debug_shows_names_only() {
        assert_eq!(format!("{:?}", Headers::parse("x-key=hunter2").unwrap()), r#"["x-key"]"#);
    }
}
