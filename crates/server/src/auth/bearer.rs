//! Reads the bearer token from the only `Authorization` header of a request.

use http::{HeaderMap, header};

use crate::{auth::challenge::Challenge, http::DoorCode};

/// Returns `Ok(None)` without an `Authorization` header.
pub(crate) fn presented(headers: &HeaderMap) -> Result<Option<&str>, Challenge> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(invalid("send one `Authorization` header, not several"));
    }
    let text = value.to_str().map_err(|_| invalid("the `Authorization` header is not plain text"))?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(invalid("only `Authorization: Bearer` is supported"));
    }
    let token = token.trim_start_matches(' ');
    if token.is_empty() || !token.bytes().all(is_token_byte) {
        return Err(invalid("the `Authorization` header contains no valid bearer token"));
    }
    if token.len() > MAX_TOKEN_BYTES {
        return Err(invalid("the token is longer than 8 KiB"));
    }
    Ok(Some(token))
}

fn invalid(detail: &'static str) -> Challenge {
    Challenge::new(DoorCode::TokenInvalid, detail)
}

/// `b64token` of RFC 6750.
const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
}

const MAX_TOKEN_BYTES: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("authorization", HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn scheme_is_case_insensitive() {
        for value in ["Bearer tg_x", "bearer tg_x", "BEARER  tg_x"] {
            assert_eq!(presented(&headers(&[value])), Ok(Some("tg_x")), "{value}");
        }
        assert_eq!(presented(&headers(&[])), Ok(None));
    }

    #[test]
    fn other_values_are_rejected() {
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "Basic dXNlcjpwYXNz",
            "tg_x",
            "Bearer a b",
            "Bearer a,b",
            "Bearer \"a\"",
            "Bearer ä",
            "Bearer\ttg_x",
        ] {
            let challenge = presented(&headers(&[value])).unwrap_err();
            assert_eq!(challenge.code, DoorCode::TokenInvalid, "{value}");
        }
    }

    /// With two headers, another server might read the other one.
    #[test]
    fn repeated_headers_are_rejected() {
        assert!(presented(&headers(&["Bearer tg_x", "Bearer tg_x"])).is_err());
        assert!(presented(&headers(&["Bearer tg_x", "Basic eDp5"])).is_err());
    }

    #[test]
    fn oversized_token_is_rejected() {
        let fits = format!("Bearer {}", "a".repeat(MAX_TOKEN_BYTES));
        assert!(presented(&headers(&[&fits])).is_ok());
        let over = format!("Bearer {}", "a".repeat(MAX_TOKEN_BYTES + 1));
        assert!(presented(&headers(&[&over])).is_err());
    }
}
