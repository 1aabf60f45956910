//! Formats errors as HTTP responses for a command. A model must understand them and not mistake them for a network
//! failure.

use crate::error::{Class, EgressError, EgressReason};

/// A complete HTTP response. The status line contains the code, too, because many clients show nothing else for a
/// refused tunnel.
pub fn answer(error: &EgressError) -> Vec<u8> {
    let (status, verb) = match error.class {
        Class::InvalidInput => (400, "refused"),
        Class::Security => (403, "refused"),
        Class::HelperRuntime => (502, "failed"),
    };
    let code = error.slug();
    let body = text(error, verb);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} toolgate {verb}: {code}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\n{REFUSAL_HEADER}: {code}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

fn text(error: &EgressError, verb: &str) -> String {
    let (code, message) = (error.slug(), &error.message);
    let remedy = remedy(error.reason).map_or_else(String::new, |setting| format!(" (`{setting}`)"));
    let bypass = if error.class == Class::Security { NO_BYPASS } else { "" };
    format!("toolgate: {verb}: {code}\n{message}{remedy}\n{bypass}")
}

/// The setting that the tool's author would change.
const fn remedy(reason: EgressReason) -> Option<&'static str> {
    match reason {
        EgressReason::HostNotInAllowlist
        | EgressReason::LiteralPrivateIp
        | EgressReason::ResolvedPrivateIp => Some("network.allowedHosts"),
        EgressReason::HostBlocked => Some("network.blockedHosts"),
        EgressReason::NetworkBlocked => Some("network.access"),
        EgressReason::MethodNeedsApproval => Some("approval.askForMethods"),
        _ => None,
    }
}

/// Removed from responses of servers: only the proxy sets it.
pub const REFUSAL_HEADER: &str = "x-toolgate-refusal";

const NO_BYPASS: &str = "this is a policy decision, not a network failure; the proxy cannot be bypassed\n";
