//! Why did nothing come back? One closed table of reasons; its words are promises.

use std::{error::Error, fmt};

use crate::response::Hop;

/// Whose fault it is, in the words of the tool documents.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Class {
    /// What was asked for makes no sense.
    InvalidInput,
    /// The world failed.
    HelperRuntime,
    /// We said no.
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
        /// Every way a request can end without an answer.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum Reason { $($name,)* }

        impl Reason {
            /// Stable: journals and tools depend on these words.
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

/// A request that came to nothing. The message is for the caller: it names what the caller named, and never an
/// address that only the resolver knew.
#[derive(Clone, Debug)]
pub struct EgressError {
    pub class: Class,
    pub reason: Reason,
    pub message: String,
    /// Where the request went, and last where it ended, for the journal and not for the caller.
    pub hops: Vec<Hop>,
}

impl EgressError {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { class: reason.class(), reason, message: message.into(), hops: Vec::new() }
    }

    /// The word of the reason, as journals and tools read it.
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

/// Foreign text in a message: on one line, and whole or not at all. The caller masks secrets, and could not recognise the
/// beginning of one.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}

/// The same for a record, which has a field for it.
pub(crate) fn shown(text: &str) -> String {
    match text.chars().count() {
        ..=MOST_SHOWN => text.chars().flat_map(char::escape_debug).collect(),
        long => format!("({long} characters)"),
    }
}

const MOST_SHOWN: usize = 1_000;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn slugs_are_distinct_and_in_kebab_case() {
        let slugs: HashSet<_> = Reason::ALL.iter().map(|reason| reason.slug()).collect();
        assert_eq!(slugs.len(), Reason::ALL.len());
        for slug in slugs {
            assert!(slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{slug}");
        }
    }

    #[test]
    fn every_reason_is_documented() {
        let page = include_str!("../../../docs/egress-reference.md");
        for reason in Reason::ALL {
            assert!(page.contains(&format!("`{}`", reason.slug())), "{}", reason.slug());
        }
    }

    #[test]
    fn foreign_text_is_on_one_line_and_whole_or_not_shown() {
        assert_eq!(quoted("a\r\nb"), r"`a\r\nb`");
        let whole = "x".repeat(MOST_SHOWN);
        assert_eq!(quoted(&whole), format!("`{whole}`"));
        assert_eq!(quoted(&format!("{whole}x")), "`(1001 characters)`");
    }
}
