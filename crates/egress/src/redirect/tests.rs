use http::HeaderValue;

use super::*;
use crate::{BodyHolds, EgressLimits, Request};

struct RedirectCase {
    method: &'static str,
    from: &'static str,
    headers: &'static [(&'static str, &'static str)],
    sensitive: &'static [&'static str],
    body: &'static str,
    body_holds: BodyHolds,
}

const GET: RedirectCase = RedirectCase {
    method: "GET",
    from: "https://a.com/x/y?z",
    headers: &[],
    sensitive: &[],
    body: "",
    body_holds: BodyHolds::Data,
};
const POST: RedirectCase = RedirectCase { method: "POST", body: "data", ..GET };

/// The message after the redirect: request line, the caller's headers, body.
fn after(case: &RedirectCase, status: u16, location: &str) -> Result<String, &'static str> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let request = Request {
        method: case.method.into(),
        headers: case.headers.iter().map(own).collect(),
        sensitive_headers: case.sensitive.iter().map(|name| (*name).to_owned()).collect(),
        body: case.body.into(),
        body_holds: case.body_holds,
        ..Request::get(case.from)
    };
    let mut outgoing = Outgoing::of(&request, &EgressLimits::default()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(LOCATION, HeaderValue::from_bytes(location.as_bytes()).unwrap());
    let from = RequestTarget::parse(case.from).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    assert!(is_redirect(status, &headers));
    let to = location_url(&from, &headers)
        .and_then(|place| next(&from, status, place, &mut outgoing))
        .map_err(|error| error.slug())?;
    let sent = outgoing.to_http(&to).unwrap();
    let given = case.headers.iter().map(|(name, _)| *name);
    let kept: Vec<_> = given.filter(|name| sent.headers().contains_key(*name)).collect();
    let body = if outgoing.has_body() { "body" } else { "-" };
    Ok(format!("{} {} {} {body}", sent.method(), to.url(), kept.join(",")))
}

#[track_caller]
fn check(case: &RedirectCase, status: u16, location: &str, expect: &str) {
    let found = after(case, status, location).unwrap_or_else(str::to_owned);
    assert_eq!(found, expect, "{status} {location}");
}

#[test]
fn status_decides_about_the_method() {
    let put = RedirectCase { method: "PUT", ..POST };
    let delete = RedirectCase { method: "DELETE", ..POST };
    let head = RedirectCase { method: "HEAD", ..GET };
    let typed = RedirectCase { headers: &[("content-type", "text/plain"), ("accept", "*/*")], ..POST };
    for status in [301, 302, 303] {
        check(&POST, status, "/n", "GET https://a.com/n  -");
        check(&put, status, "/n", "GET https://a.com/n  -");
        check(&head, status, "/n", "HEAD https://a.com/n  -");
        check(&typed, status, "/n", "GET https://a.com/n accept -");
    }
    check(&delete, 301, "/n", "DELETE https://a.com/n  body");
    check(&delete, 303, "/n", "GET https://a.com/n  -");
    for status in [307, 308] {
        check(&POST, status, "/n", "POST https://a.com/n  body");
        check(&typed, status, "/n", "POST https://a.com/n content-type,accept body");
    }
}

#[test]
fn relative_locations_are_resolved() {
    check(&GET, 302, "n", "GET https://a.com/x/n  -");
    check(&GET, 302, "?q", "GET https://a.com/x/y?q  -");
    check(&GET, 302, "//b.com/", "GET https://b.com/  -");
    check(&GET, 302, "\\\\b.com\\", "GET https://b.com/  -");
    check(&GET, 302, "HTTPS://A.com:443/#f", "GET https://a.com/  -");
}

#[test]
fn only_harmless_headers_cross_origins() {
    let case = RedirectCase {
        headers: &[
            ("authorization", "k"),
            ("cookie", "k"),
            ("x-api-key", "k"),
            ("x-whatever", "k"),
            ("accept", "a"),
            ("user-agent", "u"),
            ("accept-language", "k"),
        ],
        sensitive: &["Accept-Language"],
        ..GET
    };
    let all = "authorization,cookie,x-api-key,x-whatever,accept,user-agent,accept-language";
    check(&case, 302, "/n", &format!("GET https://a.com/n {all} -"));
    for elsewhere in ["https://b.com/", "https://b.a.com/", "https://a.com:8443/"] {
        check(&case, 302, elsewhere, &format!("GET {elsewhere} accept,user-agent -"));
    }
    let plain = RedirectCase { from: "http://a.com/", ..case };
    check(&plain, 302, "https://a.com/", "GET https://a.com/ accept,user-agent -");
}

#[test]
fn credentials_do_not_follow_a_downgrade() {
    let keyed = RedirectCase { headers: &[("x-key", "k")], sensitive: &["X-Key"], ..GET };
    let bearing = RedirectCase { headers: &[("authorization", "k")], ..GET };
    check(&GET, 302, "http://a.com/", "GET http://a.com/  -");
    check(&keyed, 302, "http://a.com/", "insecure-redirect");
    check(&bearing, 302, "http://b.com/", "insecure-redirect");
    check(&POST, 307, "http://a.com/", "insecure-redirect");
    check(&POST, 303, "http://a.com/", "GET http://a.com/  -");
}

#[test]
fn secret_body_does_not_cross_origins() {
    let secret = RedirectCase { body_holds: BodyHolds::Secrets, ..POST };
    check(&POST, 307, "https://b.com/", "POST https://b.com/  body");
    for status in [307, 308] {
        check(&secret, status, "https://b.com/", "insecure-redirect");
        check(&secret, status, "https://a.com:8443/", "insecure-redirect");
        check(&secret, status, "/other", "POST https://a.com/other  body");
    }
    check(&secret, 303, "https://b.com/", "GET https://b.com/  -");
}

#[test]
fn invalid_locations_are_refused() {
    check(&GET, 302, "http://", "invalid-redirect");
    check(&GET, 302, "http://a.com:99999/", "invalid-redirect");
    check(&GET, 302, "a\tb", "invalid-redirect");
    check(&GET, 302, "file:///etc/passwd", "unsupported-scheme");
    check(&GET, 302, "https://user:pw@a.com/", "userinfo-in-url");
    check(&GET, 302, "https://a.com:0/", "port-blocked");
}

#[test]
fn ambiguous_location_is_refused() {
    let mut headers = HeaderMap::new();
    assert!(!is_redirect(StatusCode::FOUND, &headers));
    headers.append(LOCATION, HeaderValue::from_static("/a"));
    for status in
        [StatusCode::NOT_MODIFIED, StatusCode::MULTIPLE_CHOICES, StatusCode::OK, StatusCode::USE_PROXY]
    {
        assert!(!is_redirect(status, &headers), "{status}");
    }
    headers.append(LOCATION, HeaderValue::from_static("/b"));
    assert_eq!(location_header(&headers).unwrap_err().slug(), "invalid-redirect");
    headers.clear();
    headers.append(LOCATION, HeaderValue::from_bytes(b"/\xff").unwrap());
    assert_eq!(location_header(&headers).unwrap_err().slug(), "invalid-redirect");
}
