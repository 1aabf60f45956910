//! Checks `Host`. This stops DNS rebinding, where a web page makes its own name resolve to 127.0.0.1.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use http::{HeaderMap, Uri, header};

#[derive(Clone, Debug)]
pub(super) struct AllowedHosts {
    allowed: Vec<Authority>,
    public_url: Option<String>,
}

impl AllowedHosts {
    pub(super) fn new(listen: SocketAddr, public_url: Option<&str>, more: &[String]) -> Result<Self, String> {
        let mut allowed: Vec<Authority> = own_names(listen.ip())
            .into_iter()
            .flat_map(|host| with_default(host, listen.port(), 80))
            .collect();
        for host in more {
            allowed.push(Authority::parse(host).ok_or_else(|| {
                format!("`{host}` is not a host; write a name or address, with `:port` if it is not the default port")
            })?);
        }
        let public_url = public_url.map(|url| url.trim_end_matches('/').to_owned());
        if let Some(url) = &public_url {
            allowed.extend(public_authorities(url)?);
        }
        Ok(Self { allowed, public_url })
    }

    /// The base URL for the client of this request: the public URL, or else its accepted `Host`.
    pub(super) fn base(&self, host: &Authority) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{host}"))
    }

    /// The URL of a well-known document for the MCP endpoint. The path of the public URL follows the well-known name (RFC 9728,
    /// section 3.1).
    pub(super) fn well_known(&self, host: &Authority, name: &str) -> String {
        let (base, path) = (self.base(host), self.public_path());
        let origin = base.strip_suffix(path).unwrap_or(&base);
        format!("{origin}{name}{path}/mcp")
    }

    /// The path of the public URL, such as `/gate`; usually empty.
    pub(super) fn public_path(&self) -> &str {
        let url = self.public_url.as_deref().and_then(|url| url.split_once("://"));
        let rest = url.map_or("", |(_, rest)| rest);
        rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default()
    }

    /// Requires exactly one accepted `Host`, equal to the host in the request line if that has one.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, &'static str> {
        let mut values = headers.get_all(header::HOST).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err("send exactly one `Host` header");
        };
        let host = value.to_str().ok().and_then(Authority::parse).ok_or("the `Host` header is not a host")?;
        if let Some(target) = uri.authority() {
            let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
            if !is_web || Authority::parse(target.as_str()).as_ref() != Some(&host) {
                return Err("the request line and `Host` name different hosts");
            }
        }
        if !self.allowed.contains(&host) {
            return Err("this `Host` is not allowed; add it to `allowed_hosts` or set `public_url`");
        }
        Ok(host)
    }
}

/// A normalized host with an optional port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Authority {
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

impl Authority {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            let port = if port.is_empty() { None } else { Some(number(port.strip_prefix(':')?)?) };
            return Some(Self { host: format!("[{address}]"), port });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(number(port)?)),
            None => (text, None),
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let is_sound = !host.is_empty() && host.len() <= 253 && host.bytes().all(is_plain);
        is_sound.then(|| Self { host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn number(text: &str) -> Option<u16> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Loopback names count only if the gateway listens on loopback.
fn own_names(ip: IpAddr) -> Vec<String> {
    let spelled = |ip: IpAddr| match ip {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    if ip.is_loopback() || ip.is_unspecified() {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let mut names: Vec<String> = loopback.map(spelled).into();
        names.extend(["localhost".to_owned(), spelled(ip)]);
        names
    } else {
        vec![spelled(ip)]
    }
}

fn with_default(host: String, port: u16, default: u16) -> Vec<Authority> {
    let mut forms = vec![Authority { host: host.clone(), port: Some(port) }];
    if port == default {
        forms.push(Authority { host, port: None });
    }
    forms
}

fn public_authorities(url: &str) -> Result<Vec<Authority>, String> {
    let wrong = || {
        format!(
            "`{url}` is not a valid public URL; write it like `https://gate.example` or `https://example.com/gate`"
        )
    };
    let (default, rest) = match url.split_once("://") {
        Some(("https", rest)) => (443, rest),
        Some(("http", rest)) => (80, rest),
        _ => return Err(wrong()),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_path = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte));
    let authority = Authority::parse(authority).filter(|_| is_path).ok_or_else(wrong)?;
    Ok(with_default(authority.host, authority.port.unwrap_or(default), default))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(listen: &str, public_url: Option<&str>, more: &[&str], uri: &str, hosts: &[&str]) -> bool {
        let more: Vec<String> = more.iter().map(|host| (*host).to_owned()).collect();
        let allowed = AllowedHosts::new(listen.parse().unwrap(), public_url, &more).unwrap();
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append("host", HeaderValue::from_bytes(host.as_bytes()).unwrap());
        }
        allowed.check(&uri.parse().unwrap(), &headers).is_ok()
    }

    #[test]
    fn own_names_are_accepted() {
        for host in ["127.0.0.1:8700", "localhost:8700", "LOCALHOST:8700", "[::1]:8700", "[0:0::1]:8700"] {
            assert!(check("127.0.0.1:8700", None, &[], "/mcp", &[host]), "{host}");
        }
        assert!(check("127.0.0.1:80", None, &[], "/", &["localhost"]));
        assert!(check("192.0.2.7:8700", None, &[], "/", &["192.0.2.7:8700"]));
        assert!(check("0.0.0.0:8700", None, &["gate.lan:8700"], "/", &["gate.lan:8700"]));
    }

    /// The page of `evil.example` makes its name point to 127.0.0.1 and calls us as its own origin.
    #[test]
    fn rebound_and_lookalike_names_are_rejected() {
        for host in [
            "evil.example:8700",
            "evil.example",
            "localhost",
            "localhost:80",
            "localhost:8701",
            "127.0.0.1",
            "localhost.:8700",
            "localhost:8700.evil.example",
            "127.0.0.1.nip.io:8700",
            "127.1:8700",
            "2130706433:8700",
            "0x7f000001:8700",
            "127.0.0.2:8700",
            "user@localhost:8700",
            "localhost:8700@evil.example",
            "localhost:08700x",
            "localhost:",
            ":8700",
            "",
            " ",
            "localhost:8700,evil.example",
            "[::1",
            "[::1]8700",
            "[::ffff:127.0.0.1]:8700",
            "localhost:+8700",
            "localhost:8700/",
            "ｌocalhost:8700",
            "localhost:74236",
        ] {
            assert!(!check("127.0.0.1:8700", None, &[], "/mcp", &[host]), "{host}");
        }
        assert!(!check("192.0.2.7:8700", None, &[], "/", &["localhost:8700"]));
        assert!(!check("0.0.0.0:8700", None, &[], "/", &["evil.example:8700"]));
    }

    #[test]
    fn host_must_be_unique_and_match_the_request_line() {
        assert!(!check("127.0.0.1:8700", None, &[], "/", &[]));
        assert!(!check("127.0.0.1:8700", None, &[], "/", &["localhost:8700", "localhost:8700"]));
        assert!(!check("127.0.0.1:8700", None, &[], "/", &["localhost:8700", "evil.example"]));
        assert!(check("127.0.0.1:8700", None, &[], "http://localhost:8700/mcp", &["localhost:8700"]));
        assert!(!check("127.0.0.1:8700", None, &[], "http://evil.example/mcp", &["localhost:8700"]));
        assert!(!check("127.0.0.1:8700", None, &[], "http://localhost:8700/mcp", &["evil.example"]));
        assert!(!check("127.0.0.1:8700", None, &[], "ftp://localhost:8700/mcp", &["localhost:8700"]));
    }

    #[test]
    fn public_url_is_accepted_with_and_without_its_default_port() {
        let url = Some("https://gate.example/");
        assert!(check("127.0.0.1:8700", url, &[], "/", &["gate.example"]));
        assert!(check("127.0.0.1:8700", url, &[], "/", &["gate.example:443"]));
        assert!(!check("127.0.0.1:8700", url, &[], "/", &["gate.example:80"]));
        assert!(check("127.0.0.1:8700", Some("https://gate.example/a/b"), &[], "/", &["gate.example"]));
        assert!(!check("127.0.0.1:8700", Some("http://gate.example:81"), &[], "/", &["gate.example"]));
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let listen = "127.0.0.1:1".parse().unwrap();
        for url in [
            "gate.example",
            "ftp://gate.example",
            "https://",
            "https://gate.example?x",
            "https://gate.example/a\"b",
            "https://u@gate.example",
        ] {
            assert!(AllowedHosts::new(listen, Some(url), &[]).is_err(), "{url}");
        }
        for host in ["https://gate.example", "*.example", "gate example"] {
            assert!(AllowedHosts::new(listen, None, &[host.to_owned()]).is_err(), "{host}");
        }
    }
}
