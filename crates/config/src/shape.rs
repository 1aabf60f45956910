//! What texts may stand at a key, and what to write instead of the others.

use crate::web::{WebAddress, check_authority, listen_address};

/// What a text means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shape {
    /// Of a file or folder, relative to the configuration file.
    Path,
    /// To listen on.
    Address,
    /// What clients call.
    PublicUrl,
    /// As in the header `Host`.
    Host,
    /// As in the header `Origin`.
    Origin,
    KeySetUrl,
    /// Of a collector.
    Endpoint,
    Permission,
    /// Of OAuth: RFC 6749, 3.3.
    Scope,
    /// Of an environment variable.
    EnvName,
    /// Of a tool, tag, category or claim.
    Name,
    Words,
}

/// What is wrong, and what to write instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Complaint {
    pub problem: String,
    pub remedy: String,
}

impl Complaint {
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

impl Shape {
    pub fn check(self, text: &str) -> Result<(), Complaint> {
        if let Some(problem) = general_problem(text) {
            return Err(Complaint::new(problem, self.remedy()));
        }
        match self {
            Self::Path => check_path(text),
            Self::Address if listen_address(text).is_some() => Ok(()),
            Self::Address => Err(self.complaint(text, "is not an IP address and a port")),
            Self::Name | Self::Permission if text.contains('*') => {
                Err(self.complaint(text, "has a `*`, which is not a wildcard here"))
            }
            Self::Words | Self::Name | Self::Permission => Ok(()),
            Self::Scope if text.bytes().all(is_scope_byte) => Ok(()),
            Self::Scope => Err(self.complaint(text, "is not one word of plain ASCII")),
            Self::EnvName if is_env_name(text) => Ok(()),
            // Whoever mistakes this key for the secret itself does not want to see it in a log.
            Self::EnvName => Err(Complaint::new("not the name of an environment variable", self.remedy())),
            Self::Host => check_authority(text).map_err(|why| self.complaint(text, why)),
            Self::Origin => self.check_origin(text),
            Self::PublicUrl | Self::KeySetUrl | Self::Endpoint => self.check_url(text),
        }
    }

    /// The same as a regular expression, for editors. It may let more pass than `check`, never less.
    pub const fn pattern(self) -> &'static str {
        match self {
            Self::Path => r"^[^~$\s](.*\S)?$",
            Self::Address => r"^(localhost|[0-9.]+|\[[0-9a-zA-Z:.%]+\]):[0-9]{1,5}$",
            Self::PublicUrl | Self::Endpoint => r"^https?://[^\s/?#@\\]+(/[^\s?#\\]*)?$",
            Self::KeySetUrl => r"^https?://[^\s/?#@\\]+(/[^\s?#\\]*)?(\?[^\s#\\]*)?$",
            Self::Host => r"^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$",
            Self::Origin => r"^[a-z][a-z0-9+.-]*://[^\s/?#@\\*]+$",
            Self::Permission | Self::Name => r"^[^\s*]([^*]*[^\s*])?$",
            Self::Scope => r"^[!#-\[\]-~]+$",
            Self::EnvName => "^[A-Z_][A-Z0-9_]*$",
            Self::Words => r"^\S(.*\S)?$",
        }
    }

    /// For the table of keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Address => "address:port",
            Self::PublicUrl | Self::KeySetUrl | Self::Endpoint => "URL",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Permission => "permission",
            Self::Scope => "scope",
            Self::EnvName => "VARIABLE",
            Self::Name => "name",
            Self::Words => "text",
        }
    }

    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Path => "write a path, absolute or relative to this file",
            Self::Address => {
                "write `127.0.0.1:8282` for this machine only, `0.0.0.0:8282` for every interface"
            }
            Self::PublicUrl => "write it as clients call it: `https://tools.example.com`",
            Self::Host => {
                "write the name as in the header `Host`: `tools.example.com` or `tools.example.com:8443`"
            }
            Self::Origin => "write it as in the header `Origin`: `https://app.example.com`, without a path",
            Self::KeySetUrl => "write the whole address: `https://login.example.com/keys.json`",
            Self::Endpoint => "write the collector's address: `http://127.0.0.1:4318`",
            Self::Permission => "name each permission",
            Self::Scope => "list each scope by itself, such as `tools:call`, without spaces and quotes",
            Self::EnvName => {
                "write the name of a variable in capitals, such as `TOOLGATE_SECRET`; a secret itself does not belong into this file"
            }
            Self::Name => "write each name out",
            Self::Words => "write a text without spaces around it",
        }
    }

    fn check_origin(self, text: &str) -> Result<(), Complaint> {
        if text == "null" {
            return Err(self.complaint(text, "is what every sandboxed page and local file sends"));
        }
        let address = WebAddress::parse(text).map_err(|why| self.complaint(text, why))?;
        if !address.path.is_empty() || address.query.is_some() {
            return Err(self.complaint(text, "has a path, which no origin has"));
        }
        if is_default_port(&address) {
            return Err(self.complaint(text, "has its scheme's own port, which browsers leave out"));
        }
        Ok(())
    }

    fn check_url(self, text: &str) -> Result<(), Complaint> {
        let address = WebAddress::parse(text).map_err(|why| self.complaint(text, why))?;
        let is_clear = match address.scheme {
            "https" => false,
            "http" => true,
            _ => return Err(self.complaint(text, "is neither https nor http")),
        };
        if address.query.is_some() && self != Self::KeySetUrl {
            return Err(self.complaint(text, "has a query (`?`)"));
        }
        // A collector in one's own network is often reached in clear; `rules` sees to it that no credential is.
        if is_clear && self != Self::Endpoint && !address.is_loopback() {
            return Err(self.complaint(text, "is not https, and not on this machine"));
        }
        Ok(())
    }

    fn complaint(self, text: &str, why: &str) -> Complaint {
        // A password or a key stands before `@` or after `?`, and an error goes to logs.
        let may_be_shown = self == Self::Path || !text.contains(['@', '?']);
        let subject = if may_be_shown { format!("`{}`", shown(text)) } else { "the text".into() };
        Complaint::new(format!("{subject} {why}"), self.remedy())
    }
}

/// A user's text for an error: one line, short, nothing that steers a terminal.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

fn general_problem(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        Some("the text is empty".into())
    } else if text.len() > MAX_TEXT_BYTES {
        Some(format!("the text has {} bytes; at most {MAX_TEXT_BYTES} are read", text.len()))
    } else if text.chars().any(char::is_control) {
        Some("the text has a control character in it".into())
    } else if text.trim() != text {
        Some("the text has spaces around it".into())
    } else {
        None
    }
}

fn check_path(text: &str) -> Result<(), Complaint> {
    match text.chars().next() {
        Some('~') => Err(Shape::Path.complaint(text, "begins with `~`, which is not expanded")),
        Some('$') => Err(Shape::Path.complaint(text, "begins with `$`, and variables are not expanded")),
        _ => Ok(()),
    }
}

fn is_default_port(address: &WebAddress<'_>) -> bool {
    matches!((address.scheme, address.port), ("https", Some(443)) | ("http", Some(80)))
}

fn is_env_name(text: &str) -> bool {
    !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// What may stand between the quotes of a challenge.
const fn is_scope_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

const MAX_TEXT_BYTES: usize = 4_096;
const MAX_SHOWN: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shape: Shape, text: &str, expect: &str) {
        let shown = shape.check(text).map_or_else(|complaint| complaint.problem, |()| "ok".into());
        assert_eq!(shown, expect);
    }

    #[test]
    fn a_disguised_loopback_address_is_not_one() {
        check(Shape::KeySetUrl, "http://127.0.0.1:80/keys", "ok");
        check(
            Shape::KeySetUrl,
            "http://127.0.0.1.evil.example/keys",
            "`http://127.0.0.1.evil.example/keys` is not https, and not on this machine",
        );
        check(Shape::PublicUrl, "https://a.example/?x", "the text has a query (`?`)");
        check(Shape::PublicUrl, "ftp://a.example", "`ftp://a.example` is neither https nor http");
    }

    #[test]
    fn an_origin_is_exactly_what_a_browser_sends() {
        check(Shape::Origin, "https://a.example", "ok");
        check(Shape::Origin, "chrome-extension://abcdef", "ok");
        check(Shape::Origin, "null", "`null` is what every sandboxed page and local file sends");
        check(Shape::Origin, "*", "`*` has no `scheme://`");
        check(Shape::Origin, "https://a.example/", "`https://a.example/` has a path, which no origin has");
        check(
            Shape::Origin,
            "https://a.example:443",
            "`https://a.example:443` has its scheme's own port, which browsers leave out",
        );
    }

    #[test]
    fn a_secret_in_the_place_of_a_name_is_not_repeated() {
        let complaint = Shape::EnvName.check("hunter2-is-my-secret").unwrap_err();
        assert!(!format!("{complaint:?}").contains("hunter2"), "{complaint:?}");
        check(Shape::PublicUrl, "https://me:hunter2@a.example", "the text has a user or a password in it");
        check(
            Shape::KeySetUrl,
            "http://a.example?key=hunter2",
            "the text is not https, and not on this machine",
        );
    }

    #[test]
    fn texts_cannot_steer_the_reader_of_an_error() {
        check(Shape::Path, "a\u{1b}[2Jb", "the text has a control character in it");
        assert_eq!(shown("a\u{202e}b\n"), "a\\u{202e}b\\n");
        assert_eq!(shown(&"x".repeat(100)), format!("{}…", "x".repeat(80)));
    }

    #[test]
    fn a_scope_is_one_word() {
        check(Shape::Scope, "tools:call", "ok");
        check(Shape::Scope, "https://a.example/scope", "ok");
        check(Shape::Scope, "a b", "`a b` is not one word of plain ASCII");
        check(Shape::Scope, "a\"b", "`a\\\"b` is not one word of plain ASCII");
        check(Shape::Scope, "ä", "`ä` is not one word of plain ASCII");
    }

    #[test]
    fn paths_are_not_expanded() {
        check(Shape::Path, "../shared/tools", "ok");
        check(Shape::Path, "~/tools", "`~/tools` begins with `~`, which is not expanded");
        check(Shape::Path, "$HOME/x", "`$HOME/x` begins with `$`, and variables are not expanded");
        check(Shape::Path, " ", "the text is empty");
    }
}
