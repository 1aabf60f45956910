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
    ($($name:ident, $class:ident, $slug:literal;)*) => {
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

            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

reasons! {
    InvalidUrl, InvalidInput, "invalid-url";
    UrlTooLong, InvalidInput, "url-too-long";
    MissingHost, InvalidInput, "missing-host";
    InvalidMethod, InvalidInput, "invalid-method";
    InvalidHeader, InvalidInput, "invalid-header";
    InvalidRequest, InvalidInput, "invalid-request";
    RequestHeadersTooLarge, InvalidInput, "request-headers-too-large";
    RequestBodyTooLarge, InvalidInput, "request-body-too-large";

    UnsupportedScheme, Security, "unsupported-scheme";
    UserinfoInUrl, Security, "userinfo-in-url";
    ForbiddenMethod, Security, "forbidden-method";
    MethodNeedsApproval, Security, "method-needs-approval";
    NetworkBlocked, Security, "network-blocked";
    HostBlocked, Security, "host-blocked";
    HostNotInAllowlist, Security, "host-not-in-allowlist";
    PortBlocked, Security, "port-blocked";
    GatewayListener, Security, "gateway-listener";
    MetadataEndpoint, Security, "metadata-endpoint";
    LiteralPrivateIp, Security, "literal-private-ip";
    ResolvedPrivateIp, Security, "resolved-private-ip";
    DnsResolutionFailed, Security, "dns-resolution-failed";
    DnsNoAddresses, Security, "dns-no-addresses";
    DnsTooManyAddresses, Security, "dns-too-many-addresses";
    TooManyRedirects, Security, "too-many-redirects";
    InsecureRedirect, Security, "insecure-redirect";
    ResponseHeadersTooLarge, Security, "response-headers-too-large";
    ResponseBodyTooLarge, Security, "response-body-too-large";
    ContentRefused, Security, "content-refused";
    TunnelNotTls, Security, "tunnel-not-tls";
    TunnelNameMismatch, Security, "tunnel-name-mismatch";
    TunnelNameHidden, Security, "tunnel-name-hidden";
    TooManyConnections, Security, "too-many-connections";
    TooManyNames, Security, "too-many-names";
    TrafficLimitReached, Security, "traffic-limit-reached";

    DnsTimeout, HelperRuntime, "dns-timeout";
    ConnectFailed, HelperRuntime, "connect-failed";
    ConnectTimeout, HelperRuntime, "connect-timeout";
    TlsFailed, HelperRuntime, "tls-failed";
    TlsTimeout, HelperRuntime, "tls-timeout";
    TlsRootsUnusable, HelperRuntime, "tls-roots-unusable";
    ResolverUnusable, HelperRuntime, "resolver-unusable";
    ResponseHeadersTimeout, HelperRuntime, "response-headers-timeout";
    ResponseBodyTimeout, HelperRuntime, "response-body-timeout";
    RequestTimeout, HelperRuntime, "request-timeout";
    ConnectionLost, HelperRuntime, "connection-lost";
    ConnectionIdle, HelperRuntime, "connection-idle";
    InvalidResponse, HelperRuntime, "invalid-response";
    ResponseTruncated, HelperRuntime, "response-truncated";
    InvalidEncoding, HelperRuntime, "invalid-encoding";
    UnsupportedEncoding, HelperRuntime, "unsupported-encoding";
    InvalidRedirect, HelperRuntime, "invalid-redirect";
    RedirectRefused, HelperRuntime, "redirect-refused";
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
