//! Host patterns in documents: exact names, `*.suffix`, `name.*`, IP literals, and `*` for every public host. Each
//! may end with a port.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostPattern {
    pub names: HostNames,
    /// `None` means every port.
    pub port: Option<u16>,
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum HostNames {
    /// Every host with a public address, as in `strict` mode.
    Any,
    Exact(String),
    /// `*.example.com`: the name itself and all subdomains.
    Below(String),
    /// `docs.*`: names that begin with these labels.
    Above(String),
}

impl HostPattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text != text.trim() {
            return Err("remove the spaces around the host".into());
        }
        let (names, port) = split_port(text);
        Ok(Self { names: HostNames::parse(names)?, port: port.map(parse_port).transpose()? })
    }

    /// Parses one name or address, without a port and without `*`.
    pub fn parse_exact(text: &str) -> Result<String, String> {
        match HostNames::parse(text)? {
            HostNames::Exact(name) => Ok(name),
            HostNames::Any | HostNames::Below(_) | HostNames::Above(_) => {
                Err("expected one host name or address, without `*`".into())
            }
        }
    }

    /// This one host, at every port.
    pub const fn exact(name: String) -> Self {
        Self { names: HostNames::Exact(name), port: None }
    }

    /// Whether this entry covers a host and port. The host is a name or an address without brackets or trailing dot.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|only| only == port) && self.names.cover(host)
    }

    /// Limits this entry to one host, or returns `None` if it does not cover the host.
    pub fn narrowed_to(&self, host: &str) -> Option<Self> {
        let exact = || Self { names: HostNames::Exact(host.to_owned()), port: self.port };
        self.names.cover(host).then(exact)
    }

    /// Whether this entry covers every host and port that `other` covers.
    pub fn includes(&self, other: &Self) -> bool {
        (self.port.is_none() || self.port == other.port) && self.names.include(&other.names)
    }
}

impl HostNames {
    fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        if lower == "*" {
            return Ok(Self::Any);
        }
        if let Some(suffix) = lower.strip_prefix("*.") {
            return host_name(suffix).map(Self::Below);
        }
        if let Some(prefix) = lower.strip_suffix(".*") {
            return host_name(prefix).map(Self::Above);
        }
        let bracketed = lower.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(inside) = bracketed {
            let address = inside.parse::<Ipv6Addr>();
            return address
                .map(|address| Self::Exact(address.to_string()))
                .map_err(|_| "only an IPv6 address may be in brackets".into());
        }
        if let Ok(address) = lower.parse::<IpAddr>() {
            return Ok(Self::Exact(address.to_string()));
        }
        host_name(&lower).map(Self::Exact)
    }

    fn cover(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        match self {
            Self::Any => !host.is_empty(),
            Self::Exact(name) => *name == host,
            Self::Below(suffix) => {
                host == *suffix || host.strip_suffix(suffix.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            Self::Above(prefix) => {
                host.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
            }
        }
    }

    fn include(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Exact(name)) => self.cover(name),
            (Self::Below(wide), Self::Below(narrow)) => {
                narrow == wide || narrow.strip_suffix(wide.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            (Self::Above(wide), Self::Above(narrow)) => {
                narrow == wide || narrow.strip_prefix(wide.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
            _ => false,
        }
    }
}

/// The canonical spelling of the entry. It parses to the same entry.
impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needs_brackets = |name: &str| self.port.is_some() && name.parse::<Ipv6Addr>().is_ok();
        match &self.names {
            HostNames::Any => f.write_str("*"),
            HostNames::Exact(name) if needs_brackets(name) => write!(f, "[{name}]"),
            HostNames::Exact(name) => f.write_str(name),
            HostNames::Below(suffix) => write!(f, "*.{suffix}"),
            HostNames::Above(prefix) => write!(f, "{prefix}.*"),
        }?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Splits `host:port`. An IPv6 address needs brackets before a port.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        // A slash indicates a URL, which is rejected as a whole.
        Some((_, after)) if after.contains('/') => (text, None),
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

fn parse_port(digits: &str) -> Result<u16, String> {
    // Accepts only the usual spelling: no sign, no leading zero.
    let port = digits.parse::<u16>().ok().filter(|port| *port > 0 && port.to_string() == digits);
    port.ok_or_else(|| "a port is a number from 1 to 65535".into())
}

fn host_name(name: &str) -> Result<String, String> {
    if name.contains("://") || name.contains('/') {
        return Err("a host must not have a scheme or path".into());
    }
    if name.contains('@') {
        return Err("a host must not have a user or password".into());
    }
    if name.contains(':') {
        return Err("write an IPv6 address with a port in brackets: `[2001:db8::7]:443`".into());
    }
    if name.contains('*') {
        return Err("`*` must be alone, or replace whole labels at one end: `*.example.com`, `docs.*`".into());
    }
    if !name.is_ascii() {
        return Err("a host must be ASCII; use its `xn--` form".into());
    }
    let label_is_sound = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.is_empty() || name.len() > 253 || !name.split('.').all(label_is_sound) {
        return Err("not a host name (RFC 1123)".into());
    }
    // The C library reads `0x7f.1` and `127.1` as addresses; our parser does not.
    if name.split('.').next_back().is_some_and(looks_numeric) {
        return Err("not an address in the usual notation; write four decimal numbers".into());
    }
    Ok(name.to_owned())
}

fn looks_numeric(label: &str) -> bool {
    let hex = label.strip_prefix("0x");
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::HostPattern;

    #[track_caller]
    fn check(pattern: &str, covers: &[&str], misses: &[&str]) {
        let parsed = HostPattern::parse(pattern).unwrap();
        for host in covers {
            assert!(parsed.covers(host, 80), "{pattern} should cover {host}");
        }
        for host in misses {
            assert!(!parsed.covers(host, 80), "{pattern} should not cover {host}");
        }
    }

    #[test]
    fn entries_cover_matching_hosts() {
        check(
            "api.upbit.com",
            &["api.upbit.com", "API.Upbit.Com."],
            &["upbit.com", "x.api.upbit.com", "api.upbit.com.evil"],
        );
        check("*.github.com", &["github.com", "raw.github.com"], &["evilgithub.com", "github.com.evil.org"]);
        check("docs.*", &["docs.rs", "docs.example.org"], &["docs", "docs.", "mydocs.rs"]);
        check("*", &["anything"], &[""]);
        check("[::1]", &["::1"], &["::2"]);
    }

    #[test]
    fn invalid_host_is_rejected_with_a_reason() {
        for bad in [
            "",
            " a.com",
            "http://a.com",
            "a.com/x",
            "a.com:",
            "a.com:0",
            "a.com:080",
            "a.com:+80",
            "a.com:65536",
            "a.com:80:80",
            "a.com:http",
            ":80",
            "http://a.com:80",
            "a.com:80/x",
            "[::1]:",
            "[::1]:0",
            "[::1]80",
            "[a.com:80]",
            "[a.com]:80",
            "u@a.com",
            "a.*.com",
            "*a.com",
            "ä.de",
            "-a.com",
            "a..com",
            "0x7f.1",
            "127.1",
            "2130706433",
            "1.2.3.4.5",
            "[[::1]]",
            "::1]",
            "[1.2.3.4]",
            "a.com\u{3002}evil.org",
            "\u{ff45}vil.com",
            "a.com%00.evil.org",
        ] {
            assert!(HostPattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn inclusion_follows_cover() {
        let parse = |text: &str| HostPattern::parse(text).unwrap();
        assert!(parse("*").includes(&parse("*.a.com")));
        assert!(parse("*.a.com").includes(&parse("*.b.a.com")));
        assert!(parse("*.a.com").includes(&parse("a.com")));
        assert!(!parse("*.b.a.com").includes(&parse("*.a.com")));
        assert!(!parse("*.a.com").includes(&parse("*")));
        assert!(
            parse("a.com").includes(&parse("a.com:443")) && parse("a.com:443").includes(&parse("a.com:443"))
        );
        assert!(!parse("a.com:443").includes(&parse("a.com")));
        assert!(!parse("a.com:443").includes(&parse("a.com:80")));
        assert!(parse("*:443").includes(&parse("*.a.com:443")) && !parse("*:443").includes(&parse("a.com")));
    }

    #[test]
    fn entry_with_a_port_covers_that_port_only() {
        for (pattern, host) in [
            ("a.com:8443", "a.com"),
            ("*.a.com:8443", "x.a.com"),
            ("docs.*:8443", "docs.rs"),
            ("*:8443", "a.com"),
            ("127.0.0.1:8443", "127.0.0.1"),
            ("[::1]:8443", "::1"),
            ("[2001:DB8::7]:8443", "2001:db8::7"),
        ] {
            let parsed = HostPattern::parse(pattern).unwrap();
            assert!(parsed.covers(host, 8443) && !parsed.covers(host, 443), "{pattern}");
        }
        // Without brackets the whole text is an address.
        assert_eq!(HostPattern::parse("::1:8443").unwrap().port, None);
    }

    #[test]
    fn entry_is_shown_in_one_spelling_that_parses_to_itself() {
        for (text, shown) in [
            ("A.com", "a.com"),
            ("A.com:443", "a.com:443"),
            ("[::1]", "::1"),
            ("[0:0::1]:80", "[::1]:80"),
            ("*", "*"),
            ("*:80", "*:80"),
            ("*.A.com:80", "*.a.com:80"),
            ("docs.*:80", "docs.*:80"),
        ] {
            let parsed = HostPattern::parse(text).unwrap();
            assert_eq!(parsed.to_string(), shown);
            assert_eq!(HostPattern::parse(shown), Ok(parsed));
        }
    }
}
