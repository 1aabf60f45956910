//! Computes the next target of a redirect and removes what must not be sent there.

use http::{HeaderMap, Method, StatusCode, header::LOCATION};
use url::Url;

use crate::{
    error::{EgressError, EgressReason, quoted},
    request::{Credentials, Outgoing},
    target::{RequestTarget, Transport},
};

/// Whether this is a redirect status with a Location header. Other statuses, such as 304, are final responses.
pub fn is_redirect(status: StatusCode, headers: &HeaderMap) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) && headers.contains_key(LOCATION)
}

/// Returns the URL of the Location header.
pub fn location_url(from: &RequestTarget, headers: &HeaderMap) -> Result<Url, EgressError> {
    from.join(location_header(headers)?).map_err(as_redirect)
}

/// Returns the next target and removes from `outgoing` what must not be sent there.
pub fn next(
    from: &RequestTarget,
    status: StatusCode,
    location: Url,
    outgoing: &mut Outgoing,
) -> Result<RequestTarget, EgressError> {
    let to = RequestTarget::of(location).map_err(as_redirect)?;
    if becomes_get(status, outgoing.method()) {
        outgoing.become_get();
    }
    let is_downgrade = from.transport() == Transport::Tls && to.transport() == Transport::Plain;
    if is_downgrade && (outgoing.credentials() == Credentials::Carried || outgoing.has_body()) {
        let host = quoted(&to.authority());
        let message =
            format!("a redirect from https to http at {host} would send credentials or a body unencrypted");
        return Err(EgressError::new(EgressReason::InsecureRedirect, message));
    }
    if !from.shares_origin_with(&to) {
        if outgoing.has_secret_body() {
            let host = quoted(&to.authority());
            let message = format!("a redirect to {host} would forward a secret to another host");
            return Err(EgressError::new(EgressReason::InsecureRedirect, message));
        }
        outgoing.leave_origin();
    }
    Ok(to)
}

fn becomes_get(status: StatusCode, method: &Method) -> bool {
    let rewrites = *method == Method::POST || *method == Method::PUT || *method == Method::PATCH;
    match status.as_u16() {
        303 => *method != Method::HEAD,
        301 | 302 => rewrites,
        _ => false,
    }
}

/// Different Location headers are rejected, because another reader of the same response might choose another one.
fn location_header(headers: &HeaderMap) -> Result<&str, EgressError> {
    let invalid = |why: &str| {
        EgressError::new(EgressReason::InvalidRedirect, format!("the server sent an invalid redirect: {why}"))
    };
    let mut locations = headers.get_all(LOCATION).iter();
    let location = locations.next().ok_or_else(|| invalid("no Location header"))?;
    if locations.any(|other| other != location) {
        return Err(invalid("several different Location headers"));
    }
    std::str::from_utf8(location.as_bytes()).map_err(|_| invalid("the Location header is not UTF-8"))
}

/// The server caused this error; the caller's request was valid.
pub fn as_redirect(error: EgressError) -> EgressError {
    match error.reason {
        EgressReason::InvalidUrl | EgressReason::MissingHost | EgressReason::UrlTooLong => EgressError::new(
            EgressReason::InvalidRedirect,
            format!("the server sent an invalid redirect: {error}"),
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests;
