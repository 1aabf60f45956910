//! Checks that the tests can detect something: with a command line chosen by the attacker, the same tools in the same
//! jail reach the markers.

use std::sync::Arc;

use toolgate_handlers::{Arg, CliCommand};

use super::{
    canary::{Canary, Seen},
    programs::{self, Tempting},
};
use crate::{
    cases,
    world::{Unjailed, resolve},
};

/// A tool with exactly this command line, without checks.
fn raw(canary: &Canary, tempting: &Tempting, words: &[&str]) -> Seen {
    let elements: Vec<Arg> = words.iter().map(|word| Arg::literal(canary.fill(word).leak())).collect();
    let (spec, policy) = resolve(&tempting.manifest(canary));
    let mut command = CliCommand::new(tempting.command).args(move |_| elements.clone());
    if let Some(folder) = tempting.cwd {
        command = command.cwd(folder);
    }
    let tool = command.into_tool(spec, &policy, &canary.world.host()).unwrap();
    canary.call(&canary.runnable(tool), &canary.fill(tempting.harmless))
}

#[track_caller]
fn is_seen(tempting: &Tempting, words: &[&str], what: &str) {
    let canary = Canary::new(cases::launcher());
    let seen = raw(&canary, tempting, words);
    assert!(seen.wrong.iter().any(|wrong| wrong.contains(what)), "{words:?}: {seen:?}");
}

const NEAR: &str = "said n3ar";
const OUTSIDE: &str = "said 0utside";
const PROGRAM: &str = "said RAN";
const MARK: &str = "PWNED changed";
const STRANGER: &str = "came to the port";

pub fn git() {
    is_seen(&programs::GIT_REVISION, &["log", "--format=%s", "-p"], NEAR);
    is_seen(&programs::GIT_REVISION, &["log", "--output={MARK}"], MARK);
    is_seen(&programs::GIT_REMOTE, &["ls-remote", "file://{INSIDE}"], NEAR);
    is_seen(&programs::GIT_REMOTE, &["ls-remote", "{INSIDE}"], NEAR);
    let program = ["-c", "protocol.ext.allow=always", "ls-remote", "ext::sh -c touch% {MARK}"];
    is_seen(&programs::GIT_REMOTE, &program, MARK);
}

pub fn grep() {
    is_seen(&programs::GREP_PATTERN, &["--recursive", "-e", "docs"], NEAR);
    is_seen(&programs::GREP_PATTERN, &["--file=private/near.txt", "private/near.txt"], NEAR);
}

pub fn find() {
    is_seen(&programs::FIND_NAME, &["docs", "-name", "a.txt", "-exec", "touch", "{MARK}", ";"], MARK);
    is_seen(&programs::FIND_NAME, &["docs", "-name", "a.txt", "-delete"], "a.txt changed");
    is_seen(&programs::FIND_NAME, &["docs", "private", "-name", "*"], NEAR);
}

pub fn tar() {
    let extract = ["--extract", "--file=archives/a.tar"];
    let with = |option| [extract[0], extract[1], option];
    is_seen(&programs::TAR_MEMBER, &with("--to-command=echo RAN-$((6*7))"), PROGRAM);
    is_seen(&programs::TAR_MEMBER, &with("--directory=docs"), "a.txt changed");
    is_seen(&programs::TAR_MEMBER, &["--list", "--file=private/near.tar"], NEAR);
}

pub fn curl() {
    for network in [programs::CURL_LISTED, programs::CURL_OPEN, programs::CURL_WITHOUT_NETWORK] {
        is_seen(&network, &["--silent", "file://{NEAR}"], NEAR);
        is_seen(&network, &["--silent", "{file,x}:{NEAR}"], NEAR);
        is_seen(&network, &["--silent", "--output", "{MARK}", "file://{NEAR}"], MARK);
    }
    let wider = Tempting { network: ANOTHER_HOST, ..programs::CURL_LISTED };
    is_seen(&wider, &["--silent", "http://{FORBIDDEN}/"], STRANGER);
}

pub fn curl_values() {
    for (tool, option, value) in [
        (programs::CURL_FORM, "--form", "a=@{NEAR}"),
        (programs::CURL_FORM, "--form", "a=<private/near.txt"),
        (programs::CURL_FORM, "--form", "a=b;headers=@private/near.txt"),
        (programs::CURL_ENCODED, "--data-urlencode", "a@{NEAR}"),
        (programs::CURL_COOKIE, "--cookie", "private/near.cookies"),
    ] {
        is_seen(&tool, &["--silent", option, value, "http://{ALLOWED}/"], NEAR);
    }
}

pub fn ssh() {
    is_seen(&programs::SSH_HOST, &["-oProxyCommand=touch {MARK}", "127.0.0.1", "uptime"], MARK);
    // The port is reachable without a jail.
    let canary = Canary::new(Arc::new(Unjailed));
    let seen = raw(&canary, &programs::SSH_HOST, &["-oBatchMode=yes", "-p", "{PORT}", "127.0.0.2", "uptime"]);
    assert!(seen.wrong.iter().any(|wrong| wrong.contains(STRANGER)), "{seen:?}");
}

/// Files outside are reached if they are granted.
pub fn outside() {
    let wider = Tempting { allowed: "'{OUTSIDE}'", cwd: None, ..programs::GREP_PATTERN };
    is_seen(&wider, &["--recursive", "hello", "{OUT}"], OUTSIDE);
}

const ANOTHER_HOST: &str =
    ", network: {access: limited, allowedHosts: ['127.0.0.1', '127.0.0.2'], blockPrivateIPs: false}";
