//! Checks header fields: names that an author may set, values of one line.

use std::collections::HashSet;

use super::{
    report::ManifestReport,
    scope::TemplateScope,
    templates::{self, Absent, TemplateRules, Used, WholeValue},
};
use crate::{
    Pointer,
    arg_template::{ArgPart, ArgTemplate},
    model::NamedTemplate,
};

/// Checks names and literal values. The functions below check who fills in values.
pub(super) fn check(
    headers: &[NamedTemplate],
    at: &Pointer,
    scope: &TemplateScope,
    used: &mut Used,
    report: &mut ManifestReport<'_>,
) {
    fields(headers, at, report);
    for header in headers {
        let at = at.key(&header.name);
        let place = TemplateRules { absent: Absent::LeftOut, whole: WholeValue::Text, item_of: None };
        templates::check(&header.value, &at, place, scope, used, report);
        credentials(header, &at, scope, report);
    }
}

/// Callers must not fill in headers that authenticate the request.
pub(super) fn credentials(
    header: &NamedTemplate,
    at: &Pointer,
    scope: &TemplateScope,
    report: &mut ManifestReport<'_>,
) {
    let name = header.name.to_ascii_lowercase();
    let is_credential = CREDENTIALS.contains(&name.as_str()) || name.starts_with("x-forwarded-");
    if let Some(chosen) = templates::chosen_by_caller(&header.value, scope).next()
        && is_credential
    {
        report.add(
            at,
            format!("`{chosen}` would let the caller choose `{}`", header.name),
            "use a static variable: `staticVariables: [{token: \"${MY_TOKEN}\"}]`",
        );
    }
}

/// A line break inside a value would start another header.
pub(super) fn is_one_line(value: &ArgTemplate) -> bool {
    value.parts().iter().all(|part| match part {
        ArgPart::Literal(text) => text.chars().all(|c| c == '\t' || (!c.is_control() && c.is_ascii())),
        ArgPart::Variable(_) => true,
    })
}

fn fields(headers: &[NamedTemplate], at: &Pointer, report: &mut ManifestReport<'_>) {
    let mut seen: HashSet<String> = HashSet::new();
    for header in headers {
        let at = at.key(&header.name);
        let name = header.name.to_ascii_lowercase();
        if !is_token(&name) {
            report.add_at_key(
                &at,
                format!("`{}` is not a header name", header.name.escape_debug()),
                "use letters, digits and hyphens",
            );
        } else if OURS.contains(&name.as_str()) || name.starts_with("proxy-") {
            report.add_at_key(
                &at,
                format!("`{}` is set by the gateway", header.name),
                "remove it; it follows from the URL and the connection",
            );
        } else if seen.contains(&name) {
            report.add_at_key(&at, format!("`{}` is declared twice", header.name), "remove one of the two");
        }
        if !is_one_line(&header.value) {
            report.add(
                &at,
                "a header value must be one line of ASCII",
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
