//! How is a command told no? In words that a model can read and act on, and that are not taken for a network fault.

use crate::error::{Class, EgressError, Reason};

/// A whole HTTP answer.
pub fn answer(error: &EgressError) -> Vec<u8> {
    let body = text(error);
    let code = error.slug();
    let length = body.len();
    let status = match error.class {
        Class::InvalidInput => "400 Bad Request",
        Class::Security => "403 Forbidden",
        Class::HelperRuntime => "502 Bad Gateway",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         {REFUSAL_HEADER}: {code}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

fn text(error: &EgressError) -> String {
    let (verb, code) = match error.class {
        Class::InvalidInput | Class::Security => ("refused", error.slug()),
        Class::HelperRuntime => ("failed", error.slug()),
    };
    let message = &error.message;
    let remedy = remedy(error.reason).map_or_else(String::new, |remedy| format!(" ({remedy})"));
    let bypass = if error.class == Class::Security { NO_BYPASS } else { "" };
    format!("toolgate: {verb}: {code}\n{message}{remedy}\n{bypass}")
}

/// Where the author of the tool changes it.
const fn remedy(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::HostNotInAllowlist | Reason::LiteralPrivateIp | Reason::ResolvedPrivateIp => {
            Some("`network.allowedHosts`")
        }
        Reason::HostBlocked => Some("`network.blockedHosts`"),
        Reason::PortBlocked => Some("`network.blockedPorts`, and the ports of tunnels"),
        Reason::NetworkBlocked => Some("`network.access`"),
        _ => None,
    }
}

/// Never passed on from a server: only we refuse.
pub const REFUSAL_HEADER: &str = "x-toolgate-refusal";

const NO_BYPASS: &str =
    "this is the decision of a policy and no fault of the network; there is no way around the proxy\n";
