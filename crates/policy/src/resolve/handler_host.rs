//! The host that a handler connects to. It is literal: no parameter can redirect a call to another host.

use toolgate_spec::{
    ArgPart, ArgTemplate, HostPattern, Pointer,
    model::{Body, Handler, ToolSpec},
};

/// The destination of a handler, and its position in the document.
pub(super) struct Destination {
    pub host: HostPattern,
    pub name: String,
    pub port: u16,
    pub at: Pointer,
}

/// `None` for a tool without a URL; an error if the host is not literal.
pub(super) fn destination(spec: &ToolSpec) -> Option<Result<Destination, (Pointer, String)>> {
    let Body::Handler(handler) = &spec.body else { return None };
    let (url, at) = match handler {
        Handler::Cli(_) | Handler::Mcp(_) | Handler::Rust => return None,
        Handler::Http(http) => (leading_literal(&http.url), "/handler/http/url"),
        Handler::Grpc(grpc) => (Leading { text: &grpc.endpoint, is_all: true }, "/handler/grpc/endpoint"),
    };
    let at = Pointer::new(at);
    Some(match parse(&url) {
        Ok((host, name, port)) => Ok(Destination { host, name, port, at }),
        Err(why) => Err((at, why)),
    })
}

/// A URL up to its first parameter.
struct Leading<'u> {
    text: &'u str,
    is_all: bool,
}

fn leading_literal(template: &ArgTemplate) -> Leading<'_> {
    match template.parts() {
        [] => Leading { text: "", is_all: true },
        [ArgPart::Literal(text)] => Leading { text, is_all: true },
        [ArgPart::Literal(text), ..] => Leading { text, is_all: false },
        [ArgPart::Variable(_), ..] => Leading { text: "", is_all: false },
    }
}

fn parse(url: &Leading<'_>) -> Result<(HostPattern, String, u16), String> {
    let (scheme, rest) = url.text.split_once("://").ok_or("a URL starts with `https://` or `http://`")?;
    let default_port = match scheme.to_ascii_lowercase().as_str() {
        "https" => 443,
        "http" => 80,
        _ => return Err(format!("`{scheme}` is not `https` or `http`")),
    };
    let authority = match rest.find(['/', '?', '#']) {
        Some(end) => rest.get(..end).unwrap_or_default(),
        None if url.is_all => rest,
        None => return Err("parameters are not allowed in the host; end it with `/` first".into()),
    };
    // Parsers disagree about `\` and `@`, so reject them: two parsers could see two hosts.
    if authority.contains(['@', '\\']) {
        return Err("a host must not have a user, password or backslash".into());
    }
    let (name, port) = split_port(authority, default_port)?;
    let exact = HostPattern::parse_exact(name)?;
    Ok((HostPattern::exact(exact.clone()), exact, port))
}

fn split_port(authority: &str, default_port: u16) -> Result<(&str, u16), String> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (address, after) = inside.split_once(']').ok_or("`[` is not closed")?;
            (address, after.strip_prefix(':').or((!after.is_empty()).then_some(after)))
        }
        None => match authority.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (authority, None),
        },
    };
    let Some(port) = port else { return Ok((name, default_port)) };
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(port) if is_number && port != 0 => Ok((name, port)),
        _ => Err(format!("`{port}` is not a port")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expect: &str) {
        let template = ArgTemplate::parse(url).unwrap();
        let shown = match parse(&leading_literal(&template)) {
            Ok((_, name, port)) => format!("{name} {port}"),
            Err(why) => why,
        };
        assert_eq!(shown, expect, "{url}");
    }

    #[test]
    fn literal_host_is_parsed() {
        check("https://API.example.com/v1/{id}", "api.example.com 443");
        check("http://example.com:8080?q={q}", "example.com 8080");
        check("https://[::1]:8443/x", "::1 8443");
        check("https://10.0.0.7", "10.0.0.7 443");
    }

    #[test]
    fn host_that_a_parameter_can_change_is_rejected() {
        check("https://{host}/x", "parameters are not allowed in the host; end it with `/` first");
        check(
            "https://api.example.com{tail}",
            "parameters are not allowed in the host; end it with `/` first",
        );
        check("{url}", "a URL starts with `https://` or `http://`");
        check("https://good.com@evil.com/", "a host must not have a user, password or backslash");
        check("https://good.com\\@evil.com/", "a host must not have a user, password or backslash");
        check("ftp://example.com/", "`ftp` is not `https` or `http`");
        check("https://*.example.com/", "expected one host name or address, without `*`");
        check("https://example.com:+80/", "`+80` is not a port");
        check("https://example.com:/", "`` is not a port");
        check("https://0x7f.1/", "not an address in the usual notation; write four decimal numbers");
        check("https://ex%61mple.com/", "not a host name (RFC 1123)");
        check("https:///x", "not a host name (RFC 1123)");
        check("https://[a.com:80]/", "write an IPv6 address with a port in brackets: `[2001:db8::7]:443`");
    }
}
