//! How is a command told no? In words that a model can read and act on, and that are not taken for a network fault.

use crate::error::{Class, EgressError, Reason};

/// A whole HTTP answer. The code is in its first line too: of a tunnel that was refused many clients show nothing else.
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

/// The setting that the author of the tool would change.
const fn remedy(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::HostNotInAllowlist | Reason::LiteralPrivateIp | Reason::ResolvedPrivateIp => {
            Some("network.allowedHosts")
        }
        Reason::HostBlocked => Some("network.blockedHosts"),
        Reason::NetworkBlocked => Some("network.access"),
        Reason::MethodNeedsApproval => Some("approval.askForMethods"),
        _ => None,
    }
}

/// Never passed on from a server: only we refuse.
pub const REFUSAL_HEADER: &str = "x-toolgate-refusal";

const NO_BYPASS: &str =
    "this is the decision of a policy and no fault of the network; there is no way around the proxy\n";
