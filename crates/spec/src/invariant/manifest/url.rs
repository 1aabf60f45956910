//! Checks the URL of a handler. The author writes scheme, host and port; parameters come after them.
//!
//! Uses its own strict splitter: a general URL parser repairs its input (backslashes, tabs, user names, numeric
//! addresses). Here every such input is rejected.

use crate::{
    HostPattern,
    arg_template::{ArgPart, ArgTemplate},
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scheme {
    Http,
    Https,
}

#[derive(Debug)]
pub(super) struct UrlAuthority {
    pub scheme: Scheme,
    pub host: String,
    pub port: Option<u16>,
}

impl UrlAuthority {
    /// Whether the request can be read in transit.
    pub fn is_exposed(&self) -> bool {
        let loops_back = self.host == "localhost"
            || self.host.ends_with(".localhost")
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        self.scheme == Scheme::Http && !loops_back
    }
}

/// Splits a literal URL and returns the text after the authority unchanged.
pub(super) fn split(url: &str) -> Result<(UrlAuthority, &str), String> {
    if let Some(bad) = url.chars().find(|c| !c.is_ascii_graphic() || *c == '\\') {
        return Err(format!("`{}` is not allowed in a URL", bad.escape_debug()));
    }
    let (scheme, rest) = if let Some(rest) = url.strip_prefix("https://") {
        (Scheme::Https, rest)
    } else if let Some(rest) = url.strip_prefix("http://") {
        (Scheme::Http, rest)
    } else {
        return Err("a URL must begin with `https://` or `http://`".into());
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    if authority.contains('@') {
        return Err("a URL must not have a user or password".into());
    }
    let (host, port) = split_port(authority)?;
    let host = HostPattern::parse_exact(host)?;
    if after.contains('#') {
        return Err("a fragment is never sent".into());
    }
    Ok((UrlAuthority { scheme, host, port }, after))
}

/// Like `split`, for a template: returns the authority or the reason for rejection.
pub(super) fn split_template(url: &ArgTemplate) -> Result<UrlAuthority, String> {
    let mut parts = url.parts().iter();
    let Some(ArgPart::Literal(first)) = parts.next() else {
        return Err("scheme and host must be literal; a parameter cannot choose them".into());
    };
    let is_open = first.split_once("://").is_none_or(|(_, rest)| !rest.contains(['/', '?', '#']));
    if parts.next().is_some() && is_open {
        return Err("scheme, host and port must be literal; parameters may follow the first `/`".into());
    }
    let (authority, _) = split(first)?;
    path_and_query(url)?;
    Ok(authority)
}

/// Parameters fill whole path segments, or parts of query values.
fn path_and_query(url: &ArgTemplate) -> Result<(), String> {
    let mut at = UrlPosition::Segment(String::new());
    for (index, part) in url.parts().iter().enumerate() {
        match part {
            ArgPart::Variable(name) => match &at {
                UrlPosition::QueryValue => {}
                UrlPosition::Segment(before) if before.is_empty() => {
                    at = UrlPosition::AfterParameter(name.clone());
                }
                UrlPosition::Segment(_) | UrlPosition::AfterParameter(_) => return Err(whole_segment(name)),
                UrlPosition::QueryKey => {
                    return Err(format!(
                        "`{{{name}}}` is in the name of a query entry; names must be literal"
                    ));
                }
            },
            ArgPart::Literal(text) => {
                let text =
                    if index == 0 { text.split_once("://").map_or("", |(_, rest)| rest) } else { text };
                for character in text.chars() {
                    at = at.after(character)?;
                }
            }
        }
    }
    at.after('/').map(|_| ())
}

enum UrlPosition {
    Segment(String),
    AfterParameter(String),
    QueryKey,
    QueryValue,
}

impl UrlPosition {
    fn after(self, character: char) -> Result<Self, String> {
        if !character.is_ascii_graphic() || matches!(character, '\\' | '#') {
            return Err(format!("`{}` is not allowed in a URL", character.escape_debug()));
        }
        match (self, character) {
            (Self::Segment(segment), '/' | '?') => {
                if matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..") {
                    return Err("`..` would leave the named path".into());
                }
                Ok(if character == '/' { Self::Segment(String::new()) } else { Self::QueryKey })
            }
            (Self::Segment(mut segment), _) => {
                segment.push(character);
                Ok(Self::Segment(segment))
            }
            (Self::AfterParameter(_), '/') => Ok(Self::Segment(String::new())),
            (Self::AfterParameter(_), '?') | (Self::QueryValue | Self::QueryKey, '&') => Ok(Self::QueryKey),
            (Self::AfterParameter(name), _) => Err(whole_segment(&name)),
            (Self::QueryKey, '=') | (Self::QueryValue, _) => Ok(Self::QueryValue),
            (Self::QueryKey, _) => Ok(Self::QueryKey),
        }
    }
}

fn whole_segment(name: &str) -> String {
    format!(
        "`{{{name}}}` fills part of a path segment; a parameter must fill a whole segment or be in a query value"
    )
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let after_host = if authority.starts_with('[') { authority.find(']').map(|at| at + 1) } else { None };
    let colon = match after_host {
        Some(end) if authority.len() == end => None,
        Some(end) if authority.get(end..).is_some_and(|rest| rest.starts_with(':')) => Some(end),
        Some(_) => return Err("only a port may follow the address".into()),
        None => authority.find(':'),
    };
    let Some(colon) = colon else { return Ok((authority, None)) };
    let (host, port) = authority.split_at(colon);
    let digits = port.strip_prefix(':').unwrap_or_default();
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse::<u16>() {
        Ok(port) if is_decimal && port > 0 => Ok((host, Some(port))),
        _ => Err("a port is a number from 1 to 65535".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expect: &str) {
        let template = ArgTemplate::parse(url).unwrap();
        let shown = match split_template(&template) {
            Ok(authority) => format!("{:?} {} {:?}", authority.scheme, authority.host, authority.port),
            Err(why) => format!("refused: {why}"),
        };
        assert!(shown.contains(expect), "{url}: {shown}");
    }

    #[test]
    fn parameters_are_allowed_after_the_authority() {
        check("https://API.example.com", "Https api.example.com None");
        check("http://127.0.0.1:8080/a/{b}/c?d={e}-{f}&g=1", "Http 127.0.0.1 Some(8080)");
        check("https://[::1]:443/{x}", "Https ::1 Some(443)");
        check("https://a.com?q={x}", "Https a.com None");
    }

    #[test]
    fn url_with_ambiguous_destination_is_rejected() {
        for url in [
            "",
            "{base}/x",
            "ftp://a.com/",
            "HTTPS://a.com/",
            "//a.com/",
            "https://",
            "https:///x",
            "https://{host}/",
            "https://a.com{path}",
            "https://a.com:{port}/",
            "https://user@a.com/",
            "https://a.com:80@evil.org/",
            "https://a.com\\@evil.org/",
            "https://a.com\t.evil.org/",
            "https://*.a.com/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://\u{ff41}.com/",
            "https://a.com:0/",
            "https://a.com:+1/",
            "https://a.com:99999/",
            "https://[::1/",
            "https://[::1]x/",
            "https://a.com/#{x}",
            "https://a.com/x{y}",
            "https://a.com/{x}y",
            "https://a.com/{x}{y}",
            "https://a.com/{x}.json",
            "https://a.com/../b",
            "https://a.com/%2E%2e/b",
            "https://a.com/b/..",
            "https://a.com/?{k}=1",
            "https://a.com/?a=1&{k}",
            "https://a.com/a b",
        ] {
            check(url, "refused");
        }
    }
}
