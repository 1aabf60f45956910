//! Checks tools of an upstream MCP server: the operator chooses the server, and all calls share it.

use serde_json::Value;

use super::{
    command::{self, ArgumentAuthor},
    environment, headers,
    report::ManifestReport,
    scope::TemplateScope,
    templates, url,
};
use crate::{
    Pointer,
    model::{McpHandler, McpUpstream, NamedTemplate},
};

pub(super) fn check(mcp: &McpHandler, at: &Pointer, scope: &TemplateScope, report: &mut ManifestReport<'_>) {
    if !mcp.tool.is_empty() && (mcp.tool.trim() != mcp.tool || mcp.tool.chars().any(char::is_control)) {
        report.add(
            &at.key("tool"),
            format!("`{}` is not a tool's name", mcp.tool.escape_debug()),
            "write the name as the server lists it",
        );
    }
    // With both or neither of `command` and `url`, no rules apply; that error is already reported.
    let is_given = |key: &str| report.at(&at.key(key)).is_some_and(Value::is_string);
    match &mcp.upstream {
        _ if is_given("command") == is_given("url") => {}
        McpUpstream::Stdio { command, env, .. } => {
            without_effect(&["headers"], "url", at, report);
            stdio(command, env, at, scope, report);
        }
        McpUpstream::Http { url, headers } => {
            without_effect(&["args", "env"], "command", at, report);
            http(url, headers, at, scope, report);
        }
    }
}

fn stdio(
    command: &str,
    env: &[NamedTemplate],
    at: &Pointer,
    scope: &TemplateScope,
    report: &mut ManifestReport<'_>,
) {
    if !command.is_empty()
        && let Some((message, remedy)) = command::refuse(command, ArgumentAuthor::Literal)
    {
        report.add(&at.key("command"), message, remedy);
    }
    for (at, argument) in report.texts(&at.key("args")) {
        if templates::names_something(argument, scope) {
            report.add(
                &at,
                "the arguments of a server must be literal; it is started once for all calls",
                "write the value out, or pass a static variable in `env`",
            );
        } else if argument.contains('\0') {
            report.add(&at, "an argument must not contain a NUL character", "remove it");
        }
    }
    let env_at = at.key("env");
    for variable in env {
        templates::check_fixed(&variable.value, &env_at.key(&variable.name), scope, report);
    }
    environment::check(&fixed_only(env, scope), &env_at, scope, report);
}

/// Caller values are already reported; the names are checked anyway.
fn fixed_only(env: &[NamedTemplate], scope: &TemplateScope) -> Vec<NamedTemplate> {
    let without_caller = |variable: &NamedTemplate| {
        let is_chosen = templates::chosen_by_caller(&variable.value, scope).next().is_some();
        if is_chosen {
            NamedTemplate { name: variable.name.clone(), value: crate::ArgTemplate::default() }
        } else {
            variable.clone()
        }
    };
    env.iter().map(without_caller).collect()
}

fn http(
    url: &str,
    headers: &[NamedTemplate],
    at: &Pointer,
    scope: &TemplateScope,
    report: &mut ManifestReport<'_>,
) {
    let url_at = at.key("url");
    headers::check_fixed(headers, &at.key("headers"), scope, report);
    if url.is_empty() {
        return;
    }
    let split = if url.contains(['{', '}']) {
        Err("the server's URL must be literal".to_owned())
    } else {
        url::split(url).map(|(authority, _)| authority)
    };
    match split {
        Err(why) => report.add(&url_at, why, "write `https://tools.example.com/mcp`"),
        Ok(authority) => {
            let secret = headers.iter().any(|header| templates::has_secret(&header.value, scope));
            if secret && authority.is_exposed() {
                report.add(&url_at, "a secret would travel unencrypted", "use `https`");
            }
        }
    }
}

fn without_effect(keys: &[&str], belongs_to: &str, at: &Pointer, report: &mut ManifestReport<'_>) {
    for key in keys {
        let at = at.key(key);
        if report.at(&at).is_some_and(|value| !value.is_null()) {
            report.add_at_key(
                &at,
                format!("`{key}` belongs to `{belongs_to}` and has no effect here"),
                "remove it",
            );
        }
    }
}
