//! Checks `Origin` and `Sec-Fetch-Site`: only configured web pages may call.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use super::host::Authority;

#[derive(Clone, Debug)]
pub(super) struct AllowedOrigins(Vec<WebOrigin>);

/// A configured origin as sent in the request, for the answer's headers.
pub(super) type Configured = HeaderValue;

#[derive(Clone, Debug, Eq, PartialEq)]
struct WebOrigin {
    scheme: String,
    authority: Authority,
}

impl AllowedOrigins {
    pub(super) fn new(origins: &[String]) -> Result<Self, String> {
        let parsed = origins.iter().map(|text| {
            parse(text)
                .ok_or_else(|| format!("`{text}` is not an origin; write it like `https://app.example`"))
        });
        parsed.collect::<Result<_, _>>().map(Self)
    }

    /// Returns `Ok(None)` if no web page calls. Rejects `null`, which sandboxed frames and files send.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<Option<Configured>, &'static str> {
        let mut values = headers.get_all(header::ORIGIN).iter();
        let Some(value) = values.next() else {
            return if comes_from_elsewhere(headers) {
                Err("cross-site request; add the origin of the web page to `allowed_origins`")
            } else {
                Ok(None)
            };
        };
        let origin = value.to_str().ok().and_then(parse).filter(|origin| self.0.contains(origin));
        match (origin, values.next()) {
            (Some(_), None) => Ok(Some(value.clone())),
            _ => Err("this `Origin` is not allowed; add it to `allowed_origins`"),
        }
    }

    /// Adds the CORS headers. `Vary` keeps caches from mixing answers for different origins.
    pub(super) fn decorate<B>(&self, origin: Option<Configured>, response: &mut Response<B>) {
        let headers = response.headers_mut();
        if !self.0.is_empty() {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        }
    }
}

/// Whether this is a CORS preflight.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

pub(super) fn preflight<B: Default>() -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// `same-site` is not enough: it includes pages on other ports of this machine.
fn comes_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get_all(SEC_FETCH_SITE).iter().any(|site| site != "none" && site != "same-origin")
}

fn parse(text: &str) -> Option<WebOrigin> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let default = match scheme.as_str() {
        "https" => Some(443),
        "http" => Some(80),
        // Browser extensions, such as `chrome-extension`.
        other if other.ends_with("-extension") => None,
        _ => return None,
    };
    let mut authority = Authority::parse(rest)?;
    authority.port = authority.port.filter(|port| Some(*port) != default);
    Some(WebOrigin { scheme, authority })
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const ALLOWED: &str = "Authorization, Content-Type, Accept, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, \
                       Mcp-Method, Mcp-Name";
const EXPOSED: &str = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(configured: &[&str], sent: &[(&'static str, &str)]) -> Result<bool, &'static str> {
        let configured: Vec<String> = configured.iter().map(|text| (*text).to_owned()).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(*name, value.parse().unwrap());
        }
        AllowedOrigins::new(&configured).unwrap().check(&headers).map(|origin| origin.is_some())
    }

    #[test]
    fn requests_without_a_web_page_pass() {
        assert_eq!(check(&[], &[]), Ok(false));
        assert_eq!(check(&[], &[("sec-fetch-site", "none")]), Ok(false));
        assert_eq!(check(&[], &[("sec-fetch-site", "same-origin")]), Ok(false));
    }

    #[test]
    fn only_configured_origins_pass() {
        let app = ["https://app.example"];
        for origin in ["https://app.example", "https://app.example:443", "HTTPS://APP.example"] {
            assert_eq!(check(&app, &[("origin", origin)]), Ok(true), "{origin}");
        }
        for origin in [
            "http://app.example",
            "https://app.example:8443",
            "https://evil.example",
            "https://app.example.evil.example",
            "null",
            "",
            "*",
            "https://app.example/",
            "https://user@app.example",
            "https://app.example, https://evil.example",
            "file://",
            "app.example",
            "https://[::1",
        ] {
            assert!(check(&app, &[("origin", origin)]).is_err(), "{origin}");
        }
        assert!(check(&[], &[("origin", "http://127.0.0.1:8700")]).is_err());
        assert!(
            check(&app, &[("origin", "https://app.example"), ("origin", "https://evil.example")]).is_err()
        );
    }

    #[test]
    fn browser_extensions_can_be_configured() {
        let extension = ["chrome-extension://abcdef"];
        assert_eq!(check(&extension, &[("origin", "chrome-extension://abcdef")]), Ok(true));
        assert!(check(&extension, &[("origin", "chrome-extension://other")]).is_err());
        assert!(check(&extension, &[("origin", "https://abcdef")]).is_err());
    }

    /// A simple GET from a page has no `Origin`.
    #[test]
    fn cross_site_requests_without_origin_are_rejected() {
        for site in ["cross-site", "same-site", "", "Cross-Site", "none, cross-site"] {
            assert!(check(&["https://app.example"], &[("sec-fetch-site", site)]).is_err(), "{site}");
        }
        assert!(check(&[], &[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")]).is_err());
        let both = [("origin", "https://app.example"), ("sec-fetch-site", "cross-site")];
        assert_eq!(check(&["https://app.example"], &both), Ok(true));
    }

    #[test]
    fn settings_that_match_nothing_or_everything_are_rejected() {
        for origin in
            ["*", "null", "app.example", "https://", "https://app.example/path", "https://*.example"]
        {
            assert!(AllowedOrigins::new(&[origin.to_owned()]).is_err(), "{origin}");
        }
    }
}
