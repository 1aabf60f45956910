//! Where to next, and what may come along?

use http::{HeaderMap, Method, StatusCode, header::LOCATION};
use url::Url;

use crate::{
    error::{EgressError, Reason, quoted},
    request::{Credentials, Outgoing},
    target::{Target, Transport},
};

/// A status that sends elsewhere and a place to go to. Others, 304 among them, are answers.
pub fn is_redirect(status: StatusCode, headers: &HeaderMap) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) && headers.contains_key(LOCATION)
}

/// Where the answer sends to, if that is a URL at all.
pub fn place(from: &Target, headers: &HeaderMap) -> Result<Url, EgressError> {
    from.join(location(headers)?).map_err(as_redirect)
}

/// The next target. `outgoing` becomes what may be sent there.
pub fn next(
    from: &Target,
    status: StatusCode,
    place: Url,
    outgoing: &mut Outgoing,
) -> Result<Target, EgressError> {
    let to = Target::of(place).map_err(as_redirect)?;
    if becomes_get(status, outgoing.method()) {
        outgoing.become_get();
    }
    let is_downgrade = from.transport() == Transport::Tls && to.transport() == Transport::Plain;
    if is_downgrade && (outgoing.credentials() == Credentials::Carried || outgoing.has_body()) {
        let host = quoted(&to.authority());
        let message =
            format!("a redirect from https to http at {host} would expose what was sent in confidence");
        return Err(EgressError::new(Reason::InsecureRedirect, message));
    }
    if !from.shares_origin_with(&to) {
        if outgoing.has_secret_body() {
            let host = quoted(&to.authority());
            let message = format!("a redirect to {host} would hand on the secret that was sent");
            return Err(EgressError::new(Reason::InsecureRedirect, message));
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

/// Two places to go to are none: we and whoever checks us might each choose another.
fn location(headers: &HeaderMap) -> Result<&str, EgressError> {
    let invalid =
        |why: &str| EgressError::new(Reason::InvalidRedirect, format!("the server redirects {why}"));
    let mut places = headers.get_all(LOCATION).iter();
    let place = places.next().ok_or_else(|| invalid("to nowhere"))?;
    if places.any(|other| other != place) {
        return Err(invalid("to several places at once"));
    }
    std::str::from_utf8(place.as_bytes()).map_err(|_| invalid("to a place that is not text"))
}

/// What the caller wrote was sound; the fault is the server's.
pub fn as_redirect(error: EgressError) -> EgressError {
    match error.reason {
        Reason::InvalidUrl | Reason::MissingHost | Reason::UrlTooLong => {
            EgressError::new(Reason::InvalidRedirect, format!("the server redirects to nowhere: {error}"))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests;
