//! Rules between keys. Faulty keys are missing from the tree, so the rules that need them are skipped.

use std::path::Path;

use serde_json::Value;
use toolgate_spec::Pointer;

use crate::{
    fault::{ConfigFault, Faults},
    key::Ms,
    quantity::milliseconds,
    shape::{Complaint, shown},
    web::{WebAddress, is_loopback, listen_address},
};

pub(crate) fn check(tree: &Value, base: &Path, faults: &mut Faults) {
    anonymous_requires_loopback(tree, faults);
    issuers_are_valid(tree, faults);
    upstream_names_are_unique(tree, faults);
    approval_timeout_fits(tree, faults);
    listeners_differ(tree, faults);
    credentials_are_not_sent_in_clear(tree, faults);
    workspace_is_outside_state(tree, base, faults);
    providers_are_complete(tree, faults);
}

fn anonymous_requires_loopback(tree: &Value, faults: &mut Faults) {
    const AT: &str = "/auth/anonymous";
    let Some(Value::Object(_)) = tree.pointer(AT) else { return };
    let listen = text(tree, "/server/listen");
    if let Some(open) = listen.filter(|text| listen_address(text).is_some_and(|at| !is_loopback(at.ip()))) {
        let problem = format!(
            "callers without a token would be accepted on `{}`, which is not a loopback address",
            shown(open)
        );
        refuse(faults, AT, problem, "listen on `127.0.0.1`, or remove `anonymous` and use tokens");
    }
    let public = text(tree, "/server/public_url").and_then(|url| WebAddress::parse(url).ok());
    if let Some(public) = public.filter(|public| !public.is_loopback()) {
        let problem =
            format!("callers without a token would be accepted on the public host `{}`", public.host);
        refuse(faults, AT, problem, "remove `anonymous` and use tokens, or remove `public_url`");
    }
}

fn issuers_are_valid(tree: &Value, faults: &mut Faults) {
    let issuers = tree.pointer("/auth/jwt").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names: Vec<_> = issuers.iter().map(|issuer| text(issuer, "/issuer")).collect();
    for (index, (issuer, name)) in issuers.iter().zip(&names).enumerate() {
        let at = format!("/auth/jwt/{index}");
        if let Some(name) = name.filter(|name| names.iter().take(index).any(|earlier| *earlier == Some(name)))
        {
            let problem = format!("duplicate issuer `{}`", shown(name));
            let remedy = "write each issuer once, with all its algorithms";
            refuse(faults, &format!("{at}/issuer"), problem, remedy);
        }
        keys_fit_algorithms(issuer, &at, faults);
    }
}

fn upstream_names_are_unique(tree: &Value, faults: &mut Faults) {
    let servers = tree.pointer("/upstreams").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = servers.iter().map(|server| text(server, "/name").unwrap_or_default()).collect();
    for (index, name) in names.iter().enumerate() {
        if names.iter().take(index).any(|earlier| earlier.eq_ignore_ascii_case(name)) {
            let problem = format!("duplicate upstream server `{}`", shown(name));
            refuse(faults, &format!("/upstreams/{index}/name"), problem, "give each server its own name");
        }
    }
}

/// Shared secrets and public keys must not mix: everyone knows the public key, and could sign if it were used as a secret.
fn keys_fit_algorithms(issuer: &Value, at: &str, faults: &mut Faults) {
    let Some(algorithms) = issuer.get("algorithms").and_then(Value::as_array) else { return };
    let symmetric = algorithms.iter().filter_map(Value::as_str).filter(|name| name.starts_with("HS")).count();
    let at = format!("{at}/algorithms");
    if symmetric > 0 && symmetric < algorithms.len() {
        let problem = "HS algorithms (shared secret) cannot be combined with public-key algorithms";
        return refuse(
            faults,
            &at,
            problem,
            "list either HS algorithms or the others; use two issuers for two kinds of keys",
        );
    }
    let Some(key) = issuer.get("key").and_then(Value::as_object) else { return };
    match (symmetric > 0, key.contains_key("secret_env")) {
        (true, false) => refuse(
            faults,
            &at,
            "HS algorithms with a public key would let everyone who knows that key sign tokens",
            "write `RS256`, `ES256` or `EdDSA`, as the issuer signs, or set `secret_env`",
        ),
        (false, true) => refuse(
            faults,
            &at,
            "a shared secret cannot verify these algorithms",
            "write `algorithms: [HS256]`, or set `pem_file`, `jwks_file` or `jwks_url` to the public key",
        ),
        _ => {}
    }
}

fn approval_timeout_fits(tree: &Value, faults: &mut Faults) {
    const AT: &str = "/approvals/timeout";
    let Some(timeout) = duration(tree, AT) else { return };
    for (pointer, key, why) in [
        (
            "/server/request_timeout",
            "server.request_timeout",
            "the request would time out while a person is asked",
        ),
        ("/approvals/expires", "approvals.expires", "the answer would arrive after the approval expires"),
    ] {
        if let (Some(longest), Some(written)) = (duration(tree, pointer), text(tree, pointer))
            && timeout > longest
        {
            let problem = format!("longer than `{key}` ({}): {why}", shown(written));
            refuse(faults, AT, problem, &format!("write at most {}, or raise `{key}`", shown(written)));
        }
    }
}

fn listeners_differ(tree: &Value, faults: &mut Faults) {
    const AT: &str = "/admin/listen";
    let address = |pointer| text(tree, pointer).and_then(listen_address);
    let (Some(admin), Some(server)) = (address(AT), address("/server/listen")) else { return };
    if admin == server && admin.port() != 0 {
        let problem = "same address as `server.listen`";
        refuse(
            faults,
            AT,
            problem,
            "use another port, or remove this key to serve `/admin` on that listener",
        );
    }
}

fn credentials_are_not_sent_in_clear(tree: &Value, faults: &mut Faults) {
    for (at, credentials, what, key) in [
        ("/metrics/otlp/endpoint", "/metrics/otlp/headers_env", "the headers", "headers_env"),
        ("/audit/webhook/url", "/audit/webhook/token_env", "the token", "token_env"),
    ] {
        if text(tree, credentials).is_none() {
            continue;
        }
        let Some(endpoint) = text(tree, at).and_then(|url| WebAddress::parse(url).ok()) else { continue };
        if endpoint.scheme == "http" && !endpoint.is_loopback() {
            let problem = format!("{what} would be sent unencrypted");
            refuse(faults, at, problem, &format!("use an https address, or remove `{key}`"));
        }
    }
}

/// Tools cannot access the state directory (see `guarded_paths`). A workspace inside it would be inaccessible as a whole.
fn workspace_is_outside_state(tree: &Value, base: &Path, faults: &mut Faults) {
    const AT: &str = "/state";
    let resolve = |pointer| text(tree, pointer).map(|path| crate::paths::resolved(base, Path::new(path)));
    if let (Some(workspace), Some(state)) = (resolve("/workspace"), resolve(AT))
        && workspace.starts_with(&state)
    {
        let problem = "the workspace is inside the state directory, next to journal and keys";
        refuse(faults, AT, problem, "use a separate directory, such as `.toolgate`");
    }
}

fn providers_are_complete(tree: &Value, faults: &mut Faults) {
    let providers =
        tree.pointer("/secrets/providers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names: Vec<_> = providers.iter().map(|provider| text(provider, "/name")).collect();
    for (index, (provider, name)) in providers.iter().zip(&names).enumerate() {
        let at = format!("/secrets/providers/{index}");
        if name.is_some() && names.iter().take(index).any(|earlier| earlier == name) {
            refuse(faults, &format!("{at}/name"), "duplicate name", "give each provider its own name");
        }
        let command = provider.get("command").and_then(Value::as_array);
        let has_name = |words: &Vec<Value>| {
            words.iter().skip(1).filter_map(Value::as_str).any(|word| word.contains("{name}"))
        };
        match text(provider, "/kind") {
            Some("file") if provider.get("path").is_some_and(Value::is_null) => refuse(
                faults,
                &format!("{at}/kind"),
                "`path` is missing",
                "set `path` to a directory with one file for each secret, or to a dotenv file",
            ),
            Some("command") if command.is_some_and(|words| !has_name(words)) => refuse(
                faults,
                &format!("{at}/kind"),
                "`command` has no argument with `{name}`",
                "write for example `command: [pass, show, 'toolgate/{name}']`",
            ),
            _ => {}
        }
    }
}

fn text<'tree>(tree: &'tree Value, pointer: &str) -> Option<&'tree str> {
    tree.pointer(pointer).and_then(Value::as_str)
}

fn duration(tree: &Value, pointer: &str) -> Option<Ms> {
    text(tree, pointer).and_then(milliseconds)
}

fn refuse(faults: &mut Faults, at: &str, problem: impl Into<String>, remedy: &str) {
    faults.push(ConfigFault::at_value(Pointer::new(at), Complaint::new(problem, remedy)));
}

#[cfg(test)]
mod tests;
