//! The closed table of reasons why a request fails. Slugs are stable.

use std::{error::Error, fmt};

use crate::response::Hop;

/// Who caused the failure. Tools and documents use the text of `word`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Class {
    /// The request is invalid.
    InvalidInput,
    /// The network or the server failed.
    HelperRuntime,
    /// A rule denied the request.
    Security,
}

impl Class {
    pub const fn word(self) -> &'static str {
        match self {
            Self::InvalidInput => "INVALID_INPUT",
            Self::HelperRuntime => "HELPER_RUNTIME",
            Self::Security => "SECURITY",
        }
    }
}

macro_rules! reasons {
    ($($name:ident, $class:ident, $slug:literal, $meaning:literal, $remedy:literal;)*) => {
        /// Every reason why a request fails.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum EgressReason { $($name,)* }

        impl EgressReason {
            /// Stable: journals and tools depend on these slugs.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$name => $slug,)* }
            }

            pub const fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// A description for `toolgate explain`.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }

            /// The action that solves it.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)* }
            }

            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

reasons! {
    InvalidUrl, InvalidInput, "invalid-url",
        "the URL cannot be parsed, has control characters, or its host is not a name",
        "correct the URL";
    UrlTooLong, InvalidInput, "url-too-long",
        "the URL is longer than 16 KiB",
        "shorten the URL, or send the data in a body";
    MissingHost, InvalidInput, "missing-host",
        "the URL has no host",
        "add a host to the URL";
    InvalidMethod, InvalidInput, "invalid-method",
        "the request has no valid HTTP method",
        "use a method such as GET or POST";
    InvalidHeader, InvalidInput, "invalid-header",
        "a header has an invalid name or value",
        "correct the header";
    InvalidRequest, InvalidInput, "invalid-request",
        "the request to the proxy cannot be parsed, or has two meanings",
        "send a plain HTTP/1.1 request or a CONNECT request to the proxy";
    RequestHeadersTooLarge, InvalidInput, "request-headers-too-large",
        "the request has too many or too long headers",
        "send fewer or shorter headers";
    RequestBodyTooLarge, InvalidInput, "request-body-too-large",
        "the request body is larger than 10 MiB",
        "send less data in one request";

    UnsupportedScheme, Security, "unsupported-scheme",
        "the URL is neither http nor https",
        "use an https URL";
    UserinfoInUrl, Security, "userinfo-in-url",
        "the URL has a user name or a password",
        "send credentials in a header";
    ForbiddenMethod, Security, "forbidden-method",
        "the method is CONNECT, TRACE or TRACK",
        "use another method";
    MethodNeedsApproval, Security, "method-needs-approval",
        "a command uses a method of `askForMethods` without an approval",
        "declare the method; the call then asks before it runs";
    NetworkBlocked, Security, "network-blocked",
        "the policy of the tool blocks the network",
        "set `networkMode` in the document or in an override if the tool needs the network";
    HostBlocked, Security, "host-blocked",
        "the host or its address is blocked",
        "remove the host from `blockedHosts` if the tool may reach it";
    HostNotInAllowlist, Security, "host-not-in-allowlist",
        "the host and port are not in the allowlist of the tool",
        "add the host to `hostsAllow` if the tool may reach it";
    PortBlocked, Security, "port-blocked",
        "the port is blocked, is 0, or is not a port for tunnels",
        "use another port, or change `blockedPorts`";
    GatewayListener, Security, "gateway-listener",
        "the address and port belong to a listener of the gateway",
        "tools cannot call the gateway; use another service";
    MetadataEndpoint, Security, "metadata-endpoint",
        "the target is a metadata endpoint of a cloud",
        "give the tool credentials as a secret instead";
    LiteralPrivateIp, Security, "literal-private-ip",
        "the URL names an address that is not public",
        "allow exactly this address in `hostsAllow` if the tool may reach it";
    ResolvedPrivateIp, Security, "resolved-private-ip",
        "the name resolves to an address that is not public",
        "allow exactly the address in `hostsAllow` if the tool may reach it";
    DnsResolutionFailed, Security, "dns-resolution-failed",
        "the name cannot be resolved",
        "check the name and the name servers of this machine";
    DnsNoAddresses, Security, "dns-no-addresses",
        "the name has no addresses",
        "check the name";
    DnsTooManyAddresses, Security, "dns-too-many-addresses",
        "the name has more than 64 addresses",
        "use a name with fewer addresses";
    TooManyRedirects, Security, "too-many-redirects",
        "the server redirects more than five times",
        "use the final URL";
    InsecureRedirect, Security, "insecure-redirect",
        "the server redirects from https to http with data that must stay secret",
        "use a server that redirects to https";
    ResponseHeadersTooLarge, Security, "response-headers-too-large",
        "the response has too many or too long headers",
        "use a server that sends fewer headers";
    ResponseBodyTooLarge, Security, "response-body-too-large",
        "the response body is larger than the limit, compressed or not",
        "ask for less data, such as one page";
    ContentRefused, Security, "content-refused",
        "the request contains a secret that the tool was not given for this use",
        "remove the secret from the URL, the headers and the body";
    TunnelNotTls, Security, "tunnel-not-tls",
        "the traffic in a tunnel does not start with TLS",
        "use https through the proxy";
    TunnelNameMismatch, Security, "tunnel-name-mismatch",
        "the ClientHello names another host than the tunnel, or none",
        "connect to the host that the tunnel was opened for";
    TunnelNameHidden, Security, "tunnel-name-hidden",
        "the ClientHello is encrypted (ECH), so its host cannot be checked",
        "turn off Encrypted Client Hello in the client";
    TooManyConnections, Security, "too-many-connections",
        "the run opens more connections than allowed",
        "reuse connections, or open fewer";
    TooManyNames, Security, "too-many-names",
        "the run resolves more names than allowed, or a name that is too long",
        "resolve fewer names in one call";
    TrafficLimitReached, Security, "traffic-limit-reached",
        "the run sends or receives more bytes than allowed",
        "transfer less data in one call";

    DnsTimeout, HelperRuntime, "dns-timeout",
        "the name was not resolved in time",
        "try again, and check the name servers of this machine";
    ConnectFailed, HelperRuntime, "connect-failed",
        "no connection could be opened",
        "check that the server runs and that this machine can reach it";
    ConnectTimeout, HelperRuntime, "connect-timeout",
        "no connection was opened in time",
        "try again, and check that this machine can reach the server";
    TlsFailed, HelperRuntime, "tls-failed",
        "TLS failed, because of the certificate or the protocol",
        "check the certificate of the server and the root certificates of this machine";
    TlsTimeout, HelperRuntime, "tls-timeout",
        "TLS was not set up in time",
        "try again";
    TlsRootsUnusable, HelperRuntime, "tls-roots-unusable",
        "this machine has no usable root certificates",
        "install the package `ca-certificates`";
    ResolverUnusable, HelperRuntime, "resolver-unusable",
        "the name servers of this machine cannot be used",
        "check `/etc/resolv.conf`";
    ResponseHeadersTimeout, HelperRuntime, "response-headers-timeout",
        "the server sent no headers in time",
        "try again, or ask for less";
    ResponseBodyTimeout, HelperRuntime, "response-body-timeout",
        "the server stopped sending the body",
        "try again, or ask for less";
    RequestTimeout, HelperRuntime, "request-timeout",
        "the whole request took too long",
        "ask for less, or raise the timeout of the tool";
    ConnectionLost, HelperRuntime, "connection-lost",
        "the connection broke",
        "try again";
    ConnectionIdle, HelperRuntime, "connection-idle",
        "no data moved between command and server for too long",
        "try again, or send data more often";
    InvalidResponse, HelperRuntime, "invalid-response",
        "the response is not HTTP/1.1",
        "check that the server speaks HTTP";
    ResponseTruncated, HelperRuntime, "response-truncated",
        "the response ends early",
        "try again";
    InvalidEncoding, HelperRuntime, "invalid-encoding",
        "the response cannot be decompressed",
        "check the server";
    UnsupportedEncoding, HelperRuntime, "unsupported-encoding",
        "the response has a compression that was not asked for",
        "use a server that sends gzip or plain data";
    InvalidRedirect, HelperRuntime, "invalid-redirect",
        "the server redirects without a valid target, or to several",
        "check the server";
    RedirectRefused, HelperRuntime, "redirect-refused",
        "the server redirects, and the tool asked for `redirect: \"error\"`",
        "use the final URL, or follow redirects";
}

/// A failed request. The message is for the caller: it contains only names from the request, never an address that only
/// the resolver returned.
#[derive(Clone, Debug)]
pub struct EgressError {
    pub class: Class,
    pub reason: EgressReason,
    pub message: String,
    /// Every hop of the request, the failed one last. For the journal, not for the caller.
    pub hops: Vec<Hop>,
}

impl EgressError {
    pub(crate) fn new(reason: EgressReason, message: impl Into<String>) -> Self {
        Self { class: reason.class(), reason, message: message.into(), hops: Vec::new() }
    }

    /// Whether the server certainly did not receive the request. Sending it again is then safe.
    pub const fn was_not_sent(&self) -> bool {
        use EgressReason as R;
        let is_refused = matches!(self.class, Class::Security)
            && !matches!(
                self.reason,
                // These are found in a response or in the middle of a tunnel.
                R::ResponseHeadersTooLarge
                    | R::ResponseBodyTooLarge
                    | R::TooManyRedirects
                    | R::InsecureRedirect
                    | R::TunnelNotTls
                    | R::TunnelNameMismatch
                    | R::TunnelNameHidden
                    | R::TooManyConnections
                    | R::TooManyNames
                    | R::TrafficLimitReached
            );
        let is_unreachable = matches!(
            self.reason,
            R::DnsTimeout
                | R::ConnectFailed
                | R::ConnectTimeout
                | R::TlsFailed
                | R::TlsTimeout
                | R::TlsRootsUnusable
                | R::ResolverUnusable
        );
        is_refused || is_unreachable || matches!(self.class, Class::InvalidInput)
    }

    /// The slug of the reason, for journals and tools.
    pub const fn slug(&self) -> &'static str {
        self.reason.slug()
    }
}

impl fmt::Display for EgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for EgressError {}

/// Quotes untrusted text for a message, on one line. Long text is replaced, not truncated: the caller redacts secrets
/// and would not recognise the beginning of one.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}

/// Like `quoted`, without the quotes.
pub(crate) fn shown(text: &str) -> String {
    match text.chars().count() {
        ..=MAX_SHOWN => text.chars().flat_map(char::escape_debug).collect(),
        long => format!("({long} characters)"),
    }
}

const MAX_SHOWN: usize = 1_000;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn slugs_are_distinct_and_in_kebab_case() {
        let slugs: HashSet<_> = EgressReason::ALL.iter().map(|reason| reason.slug()).collect();
        assert_eq!(slugs.len(), EgressReason::ALL.len());
        for slug in slugs {
            assert!(slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{slug}");
        }
    }

    #[test]
    fn every_reason_is_documented() {
        let page = include_str!("../../../docs/egress-reference.md");
        for reason in EgressReason::ALL {
            assert!(page.contains(&format!("`{}`", reason.slug())), "{}", reason.slug());
        }
    }

    #[test]
    fn untrusted_text_is_escaped_and_never_truncated() {
        assert_eq!(quoted("a\r\nb"), r"`a\r\nb`");
        let whole = "x".repeat(MAX_SHOWN);
        assert_eq!(quoted(&whole), format!("`{whole}`"));
        assert_eq!(quoted(&format!("{whole}x")), "`(1001 characters)`");
    }
}
