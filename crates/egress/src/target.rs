//! Parses URLs into request targets. A URL is parsed once; the checked value is the dialled value.

use std::net::IpAddr;

use url::{Host, ParseError, Url};

use crate::error::{EgressError, EgressReason, quoted};

/// Parses a URL exactly as a request does. A check before the call therefore sees the same target.
pub fn parse_url(text: &str) -> Result<Url, EgressError> {
    RequestTarget::parse(text).map(|target| target.url)
}

/// A parsed URL with its host, port and transport.
#[derive(Clone, Debug)]
pub struct RequestTarget {
    url: Url,
    host: TargetHost,
    port: u16,
    transport: Transport,
}

/// A name in lower-case ASCII without a trailing dot, or the address that packets go to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TargetHost {
    Name(String),
    Address(IpAddr),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    Plain,
    Tls,
}

impl RequestTarget {
    pub fn parse(text: &str) -> Result<Self, EgressError> {
        reject_control_characters(text)?;
        let url = Url::parse(text).map_err(|error| unreadable(text, error))?;
        Self::of(url)
    }

    /// Parses `host` or `host:port`, the form used by CONNECT and the Host header.
    pub fn of_authority(text: &str) -> Result<Self, EgressError> {
        // Rejects characters that begin a path or query, and percent-encoding. `@` passes here, because `parse` reports
        // it with its own reason.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]@".contains(&byte);
        if text.is_empty() || !text.bytes().all(is_plain) {
            let message = format!("{} does not name a host and a port; write `host:443`", quoted(text));
            return Err(EgressError::new(EgressReason::InvalidUrl, message));
        }
        Self::parse(&format!("http://{text}/"))
    }

    /// Resolves a redirect location against this URL. The result is not checked yet.
    pub fn join(&self, location: &str) -> Result<Url, EgressError> {
        reject_control_characters(location)?;
        self.url.join(location).map_err(|error| unreadable(location, error))
    }

    pub fn of(mut url: Url) -> Result<Self, EgressError> {
        let transport = match url.scheme() {
            "http" => Transport::Plain,
            "https" => Transport::Tls,
            other => {
                let message = format!("scheme {} is not supported; use http or https", quoted(other));
                return Err(EgressError::new(EgressReason::UnsupportedScheme, message));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            let message = "a URL must not contain a user or password; send an Authorization header";
            return Err(EgressError::new(EgressReason::UserinfoInUrl, message));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => TargetHost::Name(valid_name(name)?),
            Some(Host::Ipv4(v4)) => TargetHost::Address(IpAddr::V4(v4)),
            Some(Host::Ipv6(v6)) => TargetHost::Address(IpAddr::V6(v6).to_canonical()),
            None => return Err(missing_host()),
        };
        let port = url.port_or_known_default().unwrap_or_default();
        if port == 0 {
            return Err(EgressError::new(
                EgressReason::PortBlocked,
                "port 0 cannot be reached; use another port",
            ));
        }
        // Write the host back, because the Host header, the TLS name and the origin must equal the checked host.
        let rewritten = match &host {
            TargetHost::Name(name) => url.set_host(Some(name)).is_ok(),
            TargetHost::Address(address) => url.set_ip_host(*address).is_ok(),
        };
        if !rewritten {
            return Err(missing_host());
        }
        url.set_fragment(None);
        Ok(Self { url, host, port, transport })
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    pub fn host(&self) -> &TargetHost {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn transport(&self) -> Transport {
        self.transport
    }

    pub fn shares_origin_with(&self, other: &Self) -> bool {
        self.origin() == other.origin()
    }

    /// The scheme, host and port that a connection serves.
    pub fn origin(&self) -> (Transport, &TargetHost, u16) {
        (self.transport, &self.host, self.port)
    }

    /// The value of the Host header.
    pub fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Path and query for the request line.
    pub fn path_and_query(&self) -> String {
        let path = self.url.path();
        self.url.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
    }
}

/// Removes the query and the user, which may contain credentials.
pub fn for_journal(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for a URL without a host, which has no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// The normalized host, for messages.
impl std::fmt::Display for TargetHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// The URL parser silently drops tabs and line ends, so another reader might see another URL.
fn reject_control_characters(text: &str) -> Result<(), EgressError> {
    if text.chars().any(char::is_control) {
        let message = format!("{} contains control characters; percent-encode or remove them", quoted(text));
        return Err(EgressError::new(EgressReason::InvalidUrl, message));
    }
    Ok(())
}

fn unreadable(text: &str, error: ParseError) -> EgressError {
    if error == ParseError::EmptyHost {
        return missing_host();
    }
    let message = format!("{} is not a URL: {error}; write `https://host/path`", quoted(text));
    EgressError::new(EgressReason::InvalidUrl, message)
}

fn missing_host() -> EgressError {
    EgressError::new(EgressReason::MissingHost, "the URL has no host; write `https://host/path`")
}

/// The URL standard allows host characters that resolvers, certificates and rules do not support.
fn valid_name(name: &str) -> Result<String, EgressError> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        return Err(missing_host());
    }
    let is_valid = |label: &str| {
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if name.len() > MAX_NAME_BYTES || !name.split('.').all(is_valid) {
        let message = format!("{} is not a host name (RFC 1123)", quoted(name));
        return Err(EgressError::new(EgressReason::InvalidUrl, message));
    }
    Ok(name.to_ascii_lowercase())
}

const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

#[cfg(test)]
mod tests;
