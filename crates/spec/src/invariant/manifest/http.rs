//! Checks HTTP handlers: a fixed destination, parameters that cannot change the structure of the request, and
//! credentials from the operator.

use super::{
    headers,
    report::ManifestReport,
    scope::{TemplateScope, ValueShape},
    templates::{self, Absent, TemplateRules, Used, WholeValue},
    url,
};
use crate::{Pointer, arg_template::ArgTemplate, model::HttpHandler};

pub(super) fn check(
    http: &HttpHandler,
    at: &Pointer,
    scope: &TemplateScope,
    report: &mut ManifestReport<'_>,
) {
    let used = &mut Used::default();
    let url_at = at.key("url");
    let place =
        TemplateRules { absent: Absent::Refused { guarded: None }, whole: WholeValue::Text, item_of: None };
    templates::check(&http.url, &url_at, place, scope, used, report);
    let authority = match url::split_template(&http.url) {
        _ if http.url.text().is_empty() => None,
        Ok(authority) => Some(authority),
        Err(why) => {
            report.add(&url_at, why, "write `https://api.example.com/items/{id}`");
            None
        }
    };
    let query_at = at.key("query");
    for entry in &http.query {
        let place = TemplateRules { absent: Absent::LeftOut, whole: WholeValue::Repeated, item_of: None };
        let at = query_at.key(&entry.name);
        templates::check(&entry.value, &at, place, scope, used, report);
        plain_items(&entry.value, &at, scope, report);
    }
    headers::check(&http.headers, &at.key("headers"), scope, used, report);
    if let Some(body) = &http.body {
        let body_at = at.key("body");
        if matches!(http.method.as_str(), "GET" | "HEAD") {
            report.add_at_key(
                &body_at,
                format!("a {} request must not have a body", http.method),
                "use `query`, or the method POST, PUT, PATCH or DELETE",
            );
        }
        templates::check_json(body, &body_at, scope, used, report);
    }
    if authority.is_some_and(|authority| authority.is_exposed()) && carries_secret(http, scope) {
        report.add(&url_at, "a secret would travel unencrypted", "use `https`");
    }
    used.report_unused(scope, report);
}

/// A list repeats its entry, so each element must be one plain value.
fn plain_items(value: &ArgTemplate, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    if let Some(variable) = value.whole().and_then(|name| scope.variable(name))
        && variable.shape == ValueShape::Array
        && !variable.has_plain_items
    {
        report.add(
            at,
            format!("the elements of `{}` have no declared type, or are not plain values", variable.name),
            "give its `items` one plain `type` in `input`",
        );
    }
}

fn carries_secret(http: &HttpHandler, scope: &TemplateScope) -> bool {
    let in_body = http.body.as_ref().is_some_and(|body| json_has_secret(body, scope));
    let named = http.headers.iter().chain(&http.query).map(|entry| &entry.value);
    in_body || named.chain([&http.url]).any(|template| templates::has_secret(template, scope))
}

pub(super) fn json_has_secret(body: &serde_json::Value, scope: &TemplateScope) -> bool {
    use serde_json::Value;
    match body {
        Value::String(text) => {
            ArgTemplate::parse(text).is_ok_and(|template| templates::has_secret(&template, scope))
        }
        Value::Array(items) => items.iter().any(|item| json_has_secret(item, scope)),
        Value::Object(members) => members.values().any(|member| json_has_secret(member, scope)),
        _ => false,
    }
}
