use http::HeaderValue;

use super::*;
use crate::{BodyHolds, Limits, Request};

struct Case {
    method: &'static str,
    from: &'static str,
    headers: &'static [(&'static str, &'static str)],
    sensitive: &'static [&'static str],
    body: &'static str,
    body_holds: BodyHolds,
}

const GET: Case = Case {
    method: "GET",
    from: "https://a.com/x/y?z",
    headers: &[],
    sensitive: &[],
    body: "",
    body_holds: BodyHolds::Data,
};
const POST: Case = Case { method: "POST", body: "data", ..GET };

/// What is sent after the redirect: request line, then the headers that the caller gave, then the body.
fn after(case: &Case, status: u16, location: &str) -> Result<String, &'static str> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let request = Request {
        method: case.method.into(),
        headers: case.headers.iter().map(own).collect(),
        sensitive_headers: case.sensitive.iter().map(|name| (*name).to_owned()).collect(),
        body: case.body.into(),
        body_holds: case.body_holds,
        ..Request::get(case.from)
    };
    let mut outgoing = Outgoing::of(&request, &Limits::default()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(LOCATION, HeaderValue::from_bytes(location.as_bytes()).unwrap());
    let from = Target::parse(case.from).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    assert!(is_redirect(status, &headers));
    let to = place(&from, &headers)
        .and_then(|place| next(&from, status, place, &mut outgoing))
        .map_err(|error| error.slug())?;
    let sent = outgoing.to_http(&to).unwrap();
    let given = case.headers.iter().map(|(name, _)| *name);
    let kept: Vec<_> = given.filter(|name| sent.headers().contains_key(*name)).collect();
    let body = if outgoing.has_body() { "body" } else { "-" };
    Ok(format!("{} {} {} {body}", sent.method(), to.url(), kept.join(",")))
}

#[track_caller]
fn check(case: &Case, status: u16, location: &str, expect: &str) {
    let found = after(case, status, location).unwrap_or_else(str::to_owned);
    assert_eq!(found, expect, "{status} {location}");
}

#[test]
fn methods_change_as_the_status_says() {
    let put = Case { method: "PUT", ..POST };
    let delete = Case { method: "DELETE", ..POST };
    let head = Case { method: "HEAD", ..GET };
    let typed = Case { headers: &[("content-type", "text/plain"), ("accept", "*/*")], ..POST };
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
fn places_are_relative_to_where_we_are() {
    check(&GET, 302, "n", "GET https://a.com/x/n  -");
    check(&GET, 302, "?q", "GET https://a.com/x/y?q  -");
    check(&GET, 302, "//b.com/", "GET https://b.com/  -");
    check(&GET, 302, "\\\\b.com\\", "GET https://b.com/  -");
    check(&GET, 302, "HTTPS://A.com:443/#f", "GET https://a.com/  -");
}

#[test]
fn nothing_but_harmless_headers_crosses_origins() {
    let case = Case {
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
    let plain = Case { from: "http://a.com/", ..case };
    check(&plain, 302, "https://a.com/", "GET https://a.com/ accept,user-agent -");
}

#[test]
fn what_was_sent_in_confidence_does_not_go_on_in_the_clear() {
    let keyed = Case { headers: &[("x-key", "k")], sensitive: &["X-Key"], ..GET };
    let bearing = Case { headers: &[("authorization", "k")], ..GET };
    check(&GET, 302, "http://a.com/", "GET http://a.com/  -");
    check(&keyed, 302, "http://a.com/", "insecure-redirect");
    check(&bearing, 302, "http://b.com/", "insecure-redirect");
    check(&POST, 307, "http://a.com/", "insecure-redirect");
    check(&POST, 303, "http://a.com/", "GET http://a.com/  -");
}

#[test]
fn a_secret_in_the_body_stays_with_its_origin() {
    let secret = Case { body_holds: BodyHolds::Secrets, ..POST };
    check(&POST, 307, "https://b.com/", "POST https://b.com/  body");
    for status in [307, 308] {
        check(&secret, status, "https://b.com/", "insecure-redirect");
        check(&secret, status, "https://a.com:8443/", "insecure-redirect");
        check(&secret, status, "/other", "POST https://a.com/other  body");
    }
    check(&secret, 303, "https://b.com/", "GET https://b.com/  -");
}

#[test]
fn what_is_no_place_is_refused() {
    check(&GET, 302, "http://", "invalid-redirect");
    check(&GET, 302, "http://a.com:99999/", "invalid-redirect");
    check(&GET, 302, "a\tb", "invalid-redirect");
    check(&GET, 302, "file:///etc/passwd", "unsupported-scheme");
    check(&GET, 302, "https://user:pw@a.com/", "userinfo-in-url");
    check(&GET, 302, "https://a.com:0/", "port-blocked");
}

#[test]
fn two_places_are_none_and_no_place_is_an_answer() {
    let mut headers = HeaderMap::new();
    assert!(!is_redirect(StatusCode::FOUND, &headers));
    headers.append(LOCATION, HeaderValue::from_static("/a"));
    for status in
        [StatusCode::NOT_MODIFIED, StatusCode::MULTIPLE_CHOICES, StatusCode::OK, StatusCode::USE_PROXY]
    {
        assert!(!is_redirect(status, &headers), "{status}");
    }
    headers.append(LOCATION, HeaderValue::from_static("/b"));
    assert_eq!(location(&headers).unwrap_err().slug(), "invalid-redirect");
    headers.clear();
    headers.append(LOCATION, HeaderValue::from_bytes(b"/\xff").unwrap());
    assert_eq!(location(&headers).unwrap_err().slug(), "invalid-redirect");
}
