//! Hosts that a document may name: exact names, `*.suffix`, `name.*`, IP literals, and `*` for every public host.

use std::net::IpAddr;

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum HostPattern {
    /// Every host, judged as in `strict` mode: public addresses only.
    Any,
    Exact(String),
    /// `*.example.com`: the name itself and everything below it.
    Below(String),
    /// `docs.*`: names whose first labels are these.
    Above(String),
}

impl HostPattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text != text.trim() {
            return Err("a host has no spaces around it".into());
        }
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
            let address = inside.parse::<std::net::Ipv6Addr>();
            return address
                .map(|address| Self::Exact(address.to_string()))
                .map_err(|_| "brackets hold an IPv6 address".into());
        }
        if let Ok(address) = lower.parse::<IpAddr>() {
            return Ok(Self::Exact(address.to_string()));
        }
        host_name(&lower).map(Self::Exact)
    }

    /// Does this entry cover a host? The host is a name or an address without brackets, port or trailing dot.
    pub fn covers(&self, host: &str) -> bool {
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

    /// Is every host that `other` covers covered by this entry too?
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Exact(name)) => self.covers(name),
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

fn host_name(name: &str) -> Result<String, String> {
    if name.contains("://") || name.contains('/') {
        return Err("a host has no scheme and no path".into());
    }
    if name.contains('@') {
        return Err("a host carries no user or password".into());
    }
    if name.contains(':') {
        return Err("a host has no port".into());
    }
    if name.contains('*') {
        return Err("`*` stands alone, or for whole labels at one end: `*.example.com`, `docs.*`".into());
    }
    if !name.is_ascii() {
        return Err("a host is written in ASCII; use its `xn--` form".into());
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
    // `0x7f.1` and `127.1` are addresses to the C library though they are no addresses to us.
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
            assert!(parsed.covers(host), "{pattern} should cover {host}");
        }
        for host in misses {
            assert!(!parsed.covers(host), "{pattern} should not cover {host}");
        }
    }

    #[test]
    fn entries_cover_what_they_say() {
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
    fn what_is_no_host_is_refused_with_a_reason() {
        for bad in [
            "",
            " a.com",
            "http://a.com",
            "a.com/x",
            "a.com:80",
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
    }
}
