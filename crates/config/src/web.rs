//! Strict URL parsing. Rejects spellings that lenient parsers repair, because two parsers may read them differently.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `scheme://host[:port][/path][?query]`, without user and fragment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct WebAddress<'text> {
    pub scheme: &'text str,
    /// As written: a name, an IPv4 address, or an IPv6 address in brackets.
    pub host: &'text str,
    pub port: Option<u16>,
    /// Empty, or beginning with `/`.
    pub path: &'text str,
    pub query: Option<&'text str>,
}

impl<'text> WebAddress<'text> {
    pub fn parse(text: &'text str) -> Result<Self, &'static str> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic())
            || text.contains(['\\', '"', '<', '>', '`', '{', '}'])
        {
            return Err("has a character that is not allowed in URLs");
        }
        if text.contains('#') {
            return Err("has a fragment (`#`)");
        }
        let (scheme, rest) = text.split_once("://").ok_or("has no `scheme://`")?;
        if !is_scheme(scheme) {
            return Err("has a scheme that is not in lower case");
        }
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) =
            rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err("has a user name or password");
        }
        let (host, port) = split_port(authority)?;
        check_host(host)?;
        Ok(Self { scheme, host, port, path, query })
    }

    pub fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == LOCALHOST || bare.parse::<IpAddr>().is_ok_and(is_loopback)
    }
}

/// `host` or `host:port`, as in the `Host` header.
pub(crate) fn check_authority(text: &str) -> Result<(), &'static str> {
    check_host(split_port(text)?.0)
}

/// The address to listen on: an IP address and a port, or `localhost` and a port.
pub(crate) fn listen_address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix(LOCALHOST).and_then(|rest| rest.strip_prefix(':')) {
        // Other names may resolve to any address; `localhost` is always 127.0.0.1 here.
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port.parse().ok()?))
        }
        _ => text.parse().ok(),
    }
}

/// Also true for IPv4-mapped IPv6 addresses.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.')
        })
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    if authority.starts_with('[') && !authority.contains(']') {
        return Err("has a bracket that is not closed");
    }
    let after_address = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority.get(after_address..).and_then(|rest| rest.find(':')) else {
        return Ok((authority, None));
    };
    let (host, port) = authority.split_at_checked(after_address + colon).unwrap_or((authority, ""));
    let port = port.strip_prefix(':').unwrap_or(port);
    let is_plain = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(port) if is_plain => Ok((host, Some(port))),
        _ => Err("has a port that is not a number from 1 to 65535"),
    }
}

fn check_host(host: &str) -> Result<(), &'static str> {
    if let Some(inside) = host.strip_prefix('[') {
        let inside = inside.strip_suffix(']').ok_or("has text between its address and its port")?;
        let address: Ipv6Addr = inside.parse().map_err(|_| "has brackets without an IPv6 address")?;
        let is_canonical = address.to_string() == inside;
        return if is_canonical {
            Ok(())
        } else {
            Err("has an IPv6 address that is not in its shortest form")
        };
    }
    if host.is_empty() {
        return Err("has no host");
    }
    if host.contains('*') {
        return Err("has a `*`, which is not a wildcard here");
    }
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err("has upper-case letters in its host; write it in lower case");
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        return Err(
            "has a host that is neither a name nor an address (write non-ASCII names in their `xn--` form)",
        );
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let looks_numeric = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if looks_numeric && host.parse::<Ipv4Addr>().is_err() {
        // Parsers disagree whether `127.1`, `2130706433` and `0x7f.1` are addresses or names.
        return Err("has a numeric host that is not an IPv4 address of four parts");
    }
    Ok(())
}

const LOCALHOST: &str = "localhost";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let shown = match WebAddress::parse(text) {
            Err(why) => why.to_owned(),
            Ok(address) => {
                let WebAddress { scheme, host, port, path, query } = address;
                let loopback = if address.is_loopback() { " loopback" } else { "" };
                format!("{scheme} {host} {} {path:?} {query:?}{loopback}", port.unwrap_or_default())
            }
        };
        assert_eq!(shown, expect, "{text}");
    }

    #[test]
    fn urls_are_split_into_their_parts() {
        check("https://tools.example.com", "https tools.example.com 0 \"\" None");
        check("https://a.example:8443/b/c?d=e", "https a.example 8443 \"/b/c\" Some(\"d=e\")");
        check("http://[::1]:4318/", "http [::1] 4318 \"/\" None loopback");
        check("http://localhost:1", "http localhost 1 \"\" None loopback");
        check("http://127.9.9.9", "http 127.9.9.9 0 \"\" None loopback");
        check("http://[::ffff:127.0.0.1]", "http [::ffff:127.0.0.1] 0 \"\" None loopback");
    }

    #[test]
    fn disguised_hosts_are_rejected() {
        check("https://localhost@evil.example", "has a user name or password");
        check("http://127.0.0.1:80@evil.example", "has a user name or password");
        check("http://localhost.evil.example", "http localhost.evil.example 0 \"\" None");
        check("http://localhost\\@evil.example", "has a character that is not allowed in URLs");
        check("http://local\thost", "has a character that is not allowed in URLs");
        check("http://evil.example#localhost", "has a fragment (`#`)");
        check("http://127.1", "has a numeric host that is not an IPv4 address of four parts");
        check("http://0x7f.0x1", "has a numeric host that is not an IPv4 address of four parts");
        check("http://127.0.0.01", "has a numeric host that is not an IPv4 address of four parts");
        check("http://[0:0:0:0:0:0:0:1]", "has an IPv6 address that is not in its shortest form");
        check("http://[::1", "has a bracket that is not closed");
        check("http://[::1]x", "has text between its address and its port");
        check("http://a:0", "has a port that is not a number from 1 to 65535");
        check("http://a:+80", "has a port that is not a number from 1 to 65535");
        check("http://a:65536", "has a port that is not a number from 1 to 65535");
        check("HTTPS://a", "has a scheme that is not in lower case");
        check("https:a", "has no `scheme://`");
        check("https://", "has no host");
        check("https://*.example.com", "has a `*`, which is not a wildcard here");
    }

    #[test]
    fn only_addresses_and_localhost_can_be_listened_on() {
        assert_eq!(listen_address("localhost:80"), "127.0.0.1:80".parse().ok());
        assert_eq!(listen_address("[::1]:0"), "[::1]:0".parse().ok());
        for text in
            ["", ":80", "80", "0.0.0.0", "example.com:80", "localhost", "localhost:+80", "localhost:65536"]
        {
            assert_eq!(listen_address(text), None, "{text}");
        }
        assert!(is_loopback("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!is_loopback("0.0.0.0".parse().unwrap()) && !is_loopback("::".parse().unwrap()));
    }
}
