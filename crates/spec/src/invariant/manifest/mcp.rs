//! A tool of an upstream MCP server: a server that the operator chose, the same for every call.

use serde_json::Value;

use super::{
    command::{self, Arguments},
    environment, headers,
    report::Report,
    scope::Scope,
    templates, url,
};
use crate::{
    Pointer,
    model::{McpHandler, McpUpstream, NamedTemplate},
};

pub(super) fn check(mcp: &McpHandler, at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    if !mcp.tool.is_empty() && (mcp.tool.trim() != mcp.tool || mcp.tool.chars().any(char::is_control)) {
        report.say(
            &at.key("tool"),
            format!("`{}` is not a tool's name", mcp.tool.escape_debug()),
            "write the name as the server lists it",
        );
    }
    // With both or neither of `command` and `url` there is no telling which rules apply, and that has been said.
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

fn stdio(command: &str, env: &[NamedTemplate], at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    if !command.is_empty()
        && let Some((message, remedy)) = command::refuse(command, Arguments::Literal)
    {
        report.say(&at.key("command"), message, remedy);
    }
    for (at, argument) in report.texts(&at.key("args")) {
        if templates::names_something(argument, scope) {
            report.say(
                &at,
                "the arguments of a server are literal; it is started once for all calls",
                "write the value out, or pass a static variable in `env`",
            );
        } else if argument.contains('\0') {
            report.say(&at, "an argument has no NUL character", "remove it");
        }
    }
    let env_at = at.key("env");
    for variable in env {
        templates::check_fixed(&variable.value, &env_at.key(&variable.name), scope, report);
    }
    environment::check(&fixed_only(env, scope), &env_at, scope, report);
}

/// What a caller fills in has been reported as such; the names are judged all the same.
fn fixed_only(env: &[NamedTemplate], scope: &Scope) -> Vec<NamedTemplate> {
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

fn http(url: &str, headers: &[NamedTemplate], at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    let url_at = at.key("url");
    headers::check_fixed(headers, &at.key("headers"), scope, report);
    if url.is_empty() {
        return;
    }
    let split = if url.contains(['{', '}']) {
        Err("the server's URL is literal".to_owned())
    } else {
        url::split(url).map(|(authority, _)| authority)
    };
    match split {
        Err(why) => report.say(&url_at, why, "write `https://tools.example.com/mcp`"),
        Ok(authority) => {
            let secret = headers.iter().any(|header| templates::has_secret(&header.value, scope));
            if secret && authority.is_exposed() {
                report.say(&url_at, "a secret would travel unencrypted", "use `https`");
            }
        }
    }
}

fn without_effect(keys: &[&str], belongs_to: &str, at: &Pointer, report: &mut Report<'_>) {
    for key in keys {
        let at = at.key(key);
        if report.at(&at).is_some_and(|value| !value.is_null()) {
            report.say_of_key(
                &at,
                format!("`{key}` belongs to `{belongs_to}` and has no effect here"),
                "remove it",
            );
        }
    }
}
