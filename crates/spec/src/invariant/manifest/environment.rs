//! Environment variables of a command: well-formed names, and none that decide what runs, chosen by a caller.

use super::{report::Report, scope::Scope, templates};
use crate::{Pointer, model::NamedTemplate};

/// Names and, where a caller fills a value in, what the name would let them do.
pub(super) fn check(env: &[NamedTemplate], at: &Pointer, scope: &Scope, report: &mut Report<'_>) {
    for variable in env {
        let at = at.key(&variable.name);
        if !is_upper_case_name(&variable.name) {
            report.say_of_key(
                &at,
                format!("`{}` is not an environment variable", variable.name.escape_debug()),
                "use upper-case letters, digits and `_`, not beginning with a digit",
            );
        } else if let Some(chosen) = templates::chosen_by_caller(&variable.value, scope).next()
            && decides_what_runs(&variable.name)
        {
            report.say(
                &at,
                format!("`{chosen}` would let the caller choose what runs, through `{}`", variable.name),
                "write the value out, or use a static variable",
            );
        }
    }
}

fn is_upper_case_name(name: &str) -> bool {
    is_name(name) && !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

pub(super) fn is_name(name: &str) -> bool {
    name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn decides_what_runs(name: &str) -> bool {
    DANGEROUS.contains(&name) || DANGEROUS_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Families in which most names load code, name a program or redirect traffic.
const DANGEROUS_FAMILIES: [&str; 14] = [
    "BASH_",
    "DOTNET_",
    "DYLD_",
    "GIT_",
    "GLIBC_",
    "LD_",
    "MALLOC_",
    "NODE_",
    "NPM_CONFIG_",
    "PERL",
    "PYTHON",
    "RUBY",
    "SSH_",
    "SSL_CERT_",
];

const DANGEROUS: [&str; 31] = [
    "ALL_PROXY",
    "BROWSER",
    "CLASSPATH",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "DOCKER_HOST",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KUBECONFIG",
    "LESSOPEN",
    "LOCPATH",
    "MANPAGER",
    "NO_PROXY",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "TERMINFO",
    "TMPDIR",
    "VISUAL",
    "XDG_CONFIG_HOME",
    "_JAVA_OPTIONS",
];
