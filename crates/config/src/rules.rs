//! What must hold between keys. A key that is at fault is absent here, and the rules that need it say nothing.

use std::path::Path;

use serde_json::Value;
use toolgate_spec::Pointer;

use crate::{
    fault::{Fault, Faults},
    key::Ms,
    quantity::milliseconds,
    shape::{Complaint, shown},
    web::{WebAddress, is_loopback, listen_address},
};

pub(crate) fn check(tree: &Value, base: &Path, faults: &mut Faults) {
    anonymous_stays_at_home(tree, faults);
    issuers_are_sound(tree, faults);
    waiting_ends_in_time(tree, faults);
    doors_are_apart(tree, faults);
    credentials_are_not_sent_in_clear(tree, faults);
    state_is_apart(tree, base, faults);
}

fn anonymous_stays_at_home(tree: &Value, faults: &mut Faults) {
    const AT: &str = "/auth/anonymous";
    let Some(Value::Object(_)) = tree.pointer(AT) else { return };
    let listen = text(tree, "/server/listen");
    if let Some(open) = listen.filter(|text| listen_address(text).is_some_and(|at| !is_loopback(at.ip()))) {
        let problem =
            format!("anybody would be let in on `{}`, which is not a loopback address", shown(open));
        refuse(faults, AT, problem, "listen on `127.0.0.1`, or remove `anonymous` and hand out tokens");
    }
    let public = text(tree, "/server/public_url").and_then(|url| WebAddress::parse(url).ok());
    if let Some(public) = public.filter(|public| !public.is_loopback()) {
        let problem =
            format!("anybody would be let in at `{}`, which public_url says others can call", public.host);
        refuse(faults, AT, problem, "remove `anonymous` and hand out tokens, or remove `public_url`");
    }
}

fn issuers_are_sound(tree: &Value, faults: &mut Faults) {
    let issuers = tree.pointer("/auth/jwt").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names: Vec<_> = issuers.iter().map(|issuer| text(issuer, "/issuer")).collect();
    for (index, (issuer, name)) in issuers.iter().zip(&names).enumerate() {
        let at = format!("/auth/jwt/{index}");
        if let Some(name) = name.filter(|name| names.iter().take(index).any(|earlier| *earlier == Some(name)))
        {
            let problem = format!("issuer `{}` stands here a second time", shown(name));
            let remedy = "write each issuer once, with all its algorithms";
            refuse(faults, &format!("{at}/issuer"), problem, remedy);
        }
        keys_fit_algorithms(issuer, &at, faults);
    }
}

/// A public key that is also taken for a shared secret lets everybody sign: the two families never mix.
fn keys_fit_algorithms(issuer: &Value, at: &str, faults: &mut Faults) {
    let Some(algorithms) = issuer.get("algorithms").and_then(Value::as_array) else { return };
    let symmetric = algorithms.iter().filter_map(Value::as_str).filter(|name| name.starts_with("HS")).count();
    let at = format!("{at}/algorithms");
    if symmetric > 0 && symmetric < algorithms.len() {
        let problem = "algorithms with a shared secret (HS…) stand together with such that have a public key";
        return refuse(
            faults,
            &at,
            problem,
            "write either HS… or the others; two kinds of keys are two issuers",
        );
    }
    let Some(key) = issuer.get("key").and_then(Value::as_object) else { return };
    match (symmetric > 0, key.contains_key("secret_env")) {
        (true, false) => refuse(
            faults,
            &at,
            "HS algorithms with a public key would let anybody who knows that key sign",
            "write `RS256`, `ES256` or `EdDSA`, as the issuer signs; or give a `secret_env`",
        ),
        (false, true) => refuse(
            faults,
            &at,
            "a shared secret cannot check these algorithms",
            "write `algorithms: [HS256]`, or give the public key by `pem_file`, `jwks_file` or `jwks_url`",
        ),
        _ => {}
    }
}

fn waiting_ends_in_time(tree: &Value, faults: &mut Faults) {
    const AT: &str = "/approvals/timeout";
    let Some(timeout) = duration(tree, AT) else { return };
    for (pointer, key, why) in [
        (
            "/server/request_timeout",
            "server.request_timeout",
            "the call would be cut off while a person is asked",
        ),
        ("/approvals/expires", "approvals.expires", "the answer would come too late"),
    ] {
        if let (Some(longest), Some(written)) = (duration(tree, pointer), text(tree, pointer))
            && timeout > longest
        {
            let problem = format!("longer than `{key}`, which is {}: {why}", shown(written));
            refuse(faults, AT, problem, &format!("write at most {}, or raise `{key}`", shown(written)));
        }
    }
}

fn doors_are_apart(tree: &Value, faults: &mut Faults) {
    const AT: &str = "/admin/listen";
    let address = |pointer| text(tree, pointer).and_then(listen_address);
    let (Some(admin), Some(server)) = (address(AT), address("/server/listen")) else { return };
    if admin == server && admin.port() != 0 {
        let problem = "the server listens there already";
        refuse(faults, AT, problem, "write another port, or remove the key to have `/admin` at the server's");
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
            let problem = format!("{what} would be sent in clear");
            refuse(faults, at, problem, &format!("write an https address, or remove `{key}`"));
        }
    }
}

/// The state folder is kept from tools (see `guarded_paths`); a workspace inside of it would be kept from them as a whole.
fn state_is_apart(tree: &Value, base: &Path, faults: &mut Faults) {
    const AT: &str = "/state";
    let resolve = |pointer| text(tree, pointer).map(|path| crate::paths::resolved(base, Path::new(path)));
    if let (Some(workspace), Some(state)) = (resolve("/workspace"), resolve(AT))
        && workspace.starts_with(&state)
    {
        let problem = "the workspace lies in the state folder, beside journal and keys";
        refuse(faults, AT, problem, "write a folder of its own, such as `.toolgate`");
    }
}

fn text<'tree>(tree: &'tree Value, pointer: &str) -> Option<&'tree str> {
    tree.pointer(pointer).and_then(Value::as_str)
}

fn duration(tree: &Value, pointer: &str) -> Option<Ms> {
    text(tree, pointer).and_then(milliseconds)
}

fn refuse(faults: &mut Faults, at: &str, problem: impl Into<String>, remedy: &str) {
    faults.push(Fault::at_value(Pointer::new(at), Complaint::new(problem, remedy)));
}

#[cfg(test)]
mod tests;
