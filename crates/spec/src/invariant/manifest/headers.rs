//! Header fields: names that are the author's to set, values that stay within their line.

use std::collections::HashSet;

use super::{
    report::Report,
    scope::Scope,
    templates::{self, Absent, Place, Used, Whole},
};
use crate::{
    Pointer,
    arg_template::{ArgPart, ArgTemplate},
    model::NamedTemplate,
};

/// Judges names and literal values; who fills them in is for the callers below.
pub(super) fn check(
    headers: &[NamedTemplate],
    at: &Pointer,
    scope: &Scope,
    used: &mut Used,
    report: &mut Report<'_>,
) {
    fields(headers, at, report);
    for header in headers {
        let at = at.key(&header.name);
        let place = Place { absent: Absent::LeftOut, whole: Whole::Text, item_of: None };
        templates::check(&header.value, &at, place, scope, used, report);
        credentials(header, &at, scope, report);
    }
}

/// For an upstream server, which all calls share: static variables only.
pub(super) fn check_fixed(headers: &[NamedTemplate], at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    fields(headers, at, report);
    for header in headers {
        templates::check_fixed(&header.value, &at.key(&header.name), scope, report);
    }
}

/// Whose word the other side takes for who is calling is not for a caller to choose.
pub(super) fn credentials(header: &NamedTemplate, at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    let name = header.name.to_ascii_lowercase();
    let is_credential = CREDENTIALS.contains(&name.as_str()) || name.starts_with("x-forwarded-");
    if let Some(chosen) = templates::chosen_by_caller(&header.value, scope).next()
        && is_credential
    {
        report.say(
            at,
            format!("`{chosen}` would let the caller choose `{}`", header.name),
            "use a static variable: `staticVariables: [{token: \"${MY_TOKEN}\"}]`",
        );
    }
}

/// A line break inside a value would begin another header.
pub(super) fn is_one_line(value: &ArgTemplate) -> bool {
    value.parts().iter().all(|part| match part {
        ArgPart::Literal(text) => text.chars().all(|c| c == '\t' || (!c.is_control() && c.is_ascii())),
        ArgPart::Variable(_) => true,
    })
}

fn fields(headers: &[NamedTemplate], at: &Pointer, report: &mut Report<'_>) {
    let mut seen: HashSet<String> = HashSet::new();
    for header in headers {
        let at = at.key(&header.name);
        let name = header.name.to_ascii_lowercase();
        if !is_token(&name) {
            report.say_of_key(
                &at,
                format!("`{}` is not a header name", header.name.escape_debug()),
                "use letters, digits and hyphens",
            );
        } else if OURS.contains(&name.as_str()) || name.starts_with("proxy-") {
            report.say_of_key(
                &at,
                format!("`{}` is set by the gateway", header.name),
                "remove it; it follows from the URL and the connection",
            );
        } else if seen.contains(&name) {
            report.say_of_key(&at, format!("`{}` stands twice", header.name), "remove one of the two");
        }
        if !is_one_line(&header.value) {
            report.say(
                &at,
                "a header value is one line of ASCII",
                "remove line breaks and control characters",
            );
        }
        seen.insert(name);
    }
}

fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

const OURS: [&str; 12] = [
    "connection",
    "content-length",
    "cookie2",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

const CREDENTIALS: [&str; 10] = [
    "api-key",
    "authorization",
    "cookie",
    "forwarded",
    "x-api-key",
    "x-auth-token",
    "x-http-method-override",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];
