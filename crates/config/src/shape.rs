//! Validates text values, with a remedy for each kind of text.

use crate::web::{WebAddress, check_authority, listen_address};

/// The kind of a text value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TextShape {
    /// A file or directory, relative to the configuration file.
    Path,
    /// An address to listen on.
    Address,
    /// The URL that clients use.
    PublicUrl,
    /// As in the header `Host`.
    Host,
    /// As in the header `Origin`.
    Origin,
    KeySetUrl,
    /// The URL of a collector.
    Endpoint,
    Permission,
    /// An OAuth scope: RFC 6749, section 3.3.
    Scope,
    /// The name of an environment variable.
    EnvName,
    /// The name of an upstream server.
    ServerName,
    /// An environment variable and its value: `NAME=VALUE`.
    Assignment,
    /// The name of a tool, tag, category or claim.
    Name,
    Words,
}

/// A problem and its remedy.
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

impl TextShape {
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
            Self::Scope => Err(self.complaint(text, "is not one word of printable ASCII")),
            Self::ServerName if is_server_name(text) => Ok(()),
            Self::ServerName => Err(self.complaint(text, "is not a server's name")),
            Self::Assignment if text.split_once('=').is_some_and(|(name, _)| is_env_name(name)) => Ok(()),
            // Do not repeat the text: its value may be a secret.
            Self::Assignment => Err(Complaint::new("not a variable and its value", self.remedy())),
            Self::EnvName if is_env_name(text) => Ok(()),
            // Do not repeat the text: a user may have written the secret itself here, and errors go to logs.
            Self::EnvName => Err(Complaint::new("not the name of an environment variable", self.remedy())),
            Self::Host => check_authority(text).map_err(|why| self.complaint(text, why)),
            Self::Origin => self.check_origin(text),
            Self::PublicUrl | Self::KeySetUrl | Self::Endpoint => self.check_url(text),
        }
    }

    /// The same check as a regular expression, for editors. It may accept more than `check`, never less.
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
            Self::ServerName => "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$",
            Self::Assignment => "^[A-Z_][A-Z0-9_]*=",
            Self::EnvName => "^[A-Z_][A-Z0-9_]*$",
            Self::Words => r"^\S(.*\S)?$",
        }
    }

    /// The type column of the reference.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Address => "address:port",
            Self::PublicUrl | Self::KeySetUrl | Self::Endpoint => "URL",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Permission => "permission",
            Self::Scope => "scope",
            Self::Assignment => "VARIABLE=text",
            Self::EnvName => "VARIABLE",
            Self::Name | Self::ServerName => "name",
            Self::Words => "text",
        }
    }

    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Path => "write a path, absolute or relative to this file",
            Self::Address => {
                "write `127.0.0.1:8282` for this machine only, `0.0.0.0:8282` for every interface"
            }
            Self::PublicUrl => "write the URL that clients use: `https://tools.example.com`",
            Self::Host => {
                "write the name as in the `Host` header: `tools.example.com` or `tools.example.com:8443`"
            }
            Self::Origin => "write it as in the `Origin` header: `https://app.example.com`, without a path",
            Self::KeySetUrl => "write the whole URL: `https://login.example.com/keys.json`",
            Self::Endpoint => "write the URL of the collector: `http://127.0.0.1:4318`",
            Self::Permission => "list each permission by name",
            Self::Scope => "list each scope separately, such as `tools:call`, without spaces and quotes",
            Self::EnvName => {
                "write the name of a variable in capitals, such as `TOOLGATE_SECRET`; keep the secret itself out of this file"
            }
            Self::ServerName => "write letters, digits, `_` and `-`, at most 32, such as `files`",
            Self::Assignment => "write the name in capitals, `=` and the value: `API_KEY=${API_KEY}`",
            Self::Name => "list each name in full",
            Self::Words => "write a text without surrounding spaces",
        }
    }

    fn check_origin(self, text: &str) -> Result<(), Complaint> {
        if text == "null" {
            return Err(self.complaint(text, "is sent by every sandboxed page and local file"));
        }
        let address = WebAddress::parse(text).map_err(|why| self.complaint(text, why))?;
        if !address.path.is_empty() || address.query.is_some() {
            return Err(self.complaint(text, "has a path, but origins have none"));
        }
        if is_default_port(&address) {
            return Err(self.complaint(text, "has the default port of its scheme, which browsers omit"));
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
        // Collectors inside a private network often use plain http; `rules` rejects it if credentials are sent.
        if is_clear && self != Self::Endpoint && !address.is_loopback() {
            return Err(self.complaint(text, "is neither https nor a loopback address"));
        }
        Ok(())
    }

    fn complaint(self, text: &str, why: &str) -> Complaint {
        // Errors go to logs. Text before `@` may be a password, text after `?` an access key.
        let may_be_shown = self == Self::Path || !text.contains(['@', '?']);
        let subject = if may_be_shown { format!("`{}`", shown(text)) } else { "the text".into() };
        Complaint::new(format!("{subject} {why}"), self.remedy())
    }
}

/// Escapes and shortens a user's text for an error: one line, without terminal control sequences.
pub(crate) fn shown(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

fn general_problem(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        Some("the text is empty".into())
    } else if text.len() > MAX_TEXT_BYTES {
        Some(format!("the text has {} bytes, the limit is {MAX_TEXT_BYTES}", text.len()))
    } else if text.chars().any(char::is_control) {
        Some("the text has a control character".into())
    } else if text.trim() != text {
        Some("the text has surrounding spaces".into())
    } else {
        None
    }
}

fn check_path(text: &str) -> Result<(), Complaint> {
    match text.chars().next() {
        Some('~') => Err(TextShape::Path.complaint(text, "starts with `~`, which is not expanded")),
        Some('$') => Err(TextShape::Path.complaint(text, "starts with `$`, but variables are not expanded")),
        _ => Ok(()),
    }
}

fn is_default_port(address: &WebAddress<'_>) -> bool {
    matches!((address.scheme, address.port), ("https", Some(443)) | ("http", Some(80)))
}

/// Short, because it precedes the names of tools, which clients limit to 64 characters.
fn is_server_name(text: &str) -> bool {
    text.len() <= 32
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn is_env_name(text: &str) -> bool {
    !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Scopes are quoted in the `WWW-Authenticate` header.
const fn is_scope_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

const MAX_TEXT_BYTES: usize = 4_096;
const MAX_SHOWN: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shape: TextShape, text: &str, expect: &str) {
        let shown = shape.check(text).map_or_else(|complaint| complaint.problem, |()| "ok".into());
        assert_eq!(shown, expect);
    }

    #[test]
    fn name_that_starts_with_a_loopback_address_is_not_loopback() {
        check(TextShape::KeySetUrl, "http://127.0.0.1:80/keys", "ok");
        check(
            TextShape::KeySetUrl,
            "http://127.0.0.1.evil.example/keys",
            "`http://127.0.0.1.evil.example/keys` is neither https nor a loopback address",
        );
        check(TextShape::PublicUrl, "https://a.example/?x", "the text has a query (`?`)");
        check(TextShape::PublicUrl, "ftp://a.example", "`ftp://a.example` is neither https nor http");
    }

    #[test]
    fn origin_is_written_as_browsers_send_it() {
        check(TextShape::Origin, "https://a.example", "ok");
        check(TextShape::Origin, "chrome-extension://abcdef", "ok");
        check(TextShape::Origin, "null", "`null` is sent by every sandboxed page and local file");
        check(TextShape::Origin, "*", "`*` has no `scheme://`");
        check(
            TextShape::Origin,
            "https://a.example/",
            "`https://a.example/` has a path, but origins have none",
        );
        check(
            TextShape::Origin,
            "https://a.example:443",
            "`https://a.example:443` has the default port of its scheme, which browsers omit",
        );
    }

    #[test]
    fn secret_written_instead_of_a_name_is_not_repeated() {
        let complaint = TextShape::EnvName.check("hunter2-is-my-secret").unwrap_err();
        assert!(!format!("{complaint:?}").contains("hunter2"), "{complaint:?}");
        check(TextShape::PublicUrl, "https://me:hunter2@a.example", "the text has a user name or password");
        check(
            TextShape::KeySetUrl,
            "http://a.example?key=hunter2",
            "the text is neither https nor a loopback address",
        );
    }

    #[test]
    fn control_characters_do_not_reach_errors() {
        check(TextShape::Path, "a\u{1b}[2Jb", "the text has a control character");
        assert_eq!(shown("a\u{202e}b\n"), "a\\u{202e}b\\n");
        assert_eq!(shown(&"x".repeat(100)), format!("{}…", "x".repeat(80)));
    }

    #[test]
    fn scope_is_one_word() {
        check(TextShape::Scope, "tools:call", "ok");
        check(TextShape::Scope, "https://a.example/scope", "ok");
        check(TextShape::Scope, "a b", "`a b` is not one word of printable ASCII");
        check(TextShape::Scope, "a\"b", "`a\\\"b` is not one word of printable ASCII");
        check(TextShape::Scope, "ä", "`ä` is not one word of printable ASCII");
    }

    #[test]
    fn paths_are_not_expanded() {
        check(TextShape::Path, "../shared/tools", "ok");
        check(TextShape::Path, "~/tools", "`~/tools` starts with `~`, which is not expanded");
        check(TextShape::Path, "$HOME/x", "`$HOME/x` starts with `$`, but variables are not expanded");
        check(TextShape::Path, " ", "the text is empty");
    }
}
