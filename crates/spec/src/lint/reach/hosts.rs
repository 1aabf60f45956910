//! Checks for overly broad hosts, and for hosts without effect.

use crate::{
    Code, HostNames, HostPattern, Pointer,
    lint::{
        report::LintReport,
        show::{listed, shown},
    },
    model::{NetworkAccess, NetworkMode, ToolSpec},
};

pub(super) fn check(spec: &ToolSpec, report: &mut LintReport<'_>) {
    let wanted = &spec.overrides;
    let mode_at = || Pointer::new("/sandboxOverrides/networkMode");
    let hosts_at = || Pointer::new("/sandboxOverrides/hostsAllow");
    wide(&wanted.hosts_allow, hosts_at(), report);
    if wanted.network_mode == Some(NetworkMode::Open) {
        report.add(
            Code::LintWildcardHost,
            mode_at(),
            "`open` allows every host, private ones included",
            "use `allowlist` and name the hosts that the tool talks to",
        );
    }
    match (wanted.network_mode, wanted.hosts_allow.is_empty()) {
        (Some(NetworkMode::Allowlist), true) => report.add(
            Code::LintHostsUnused,
            mode_at(),
            "an allow list without hosts reaches nothing",
            "name the hosts in `hostsAllow`, or use `blocked`",
        ),
        (None | Some(NetworkMode::Blocked | NetworkMode::Strict | NetworkMode::Open), false) => report.add(
            Code::LintHostsUnused,
            hosts_at(),
            "`hostsAllow` has no effect without `networkMode: allowlist`",
            "set `networkMode` to `allowlist`, or remove the hosts",
        ),
        _ => {}
    }
}

pub(super) fn check_capability(spec: &ToolSpec, at: &Pointer, report: &mut LintReport<'_>) {
    let capability = &spec.governance.capability;
    let hosts = capability.network.allowed_hosts.as_deref().unwrap_or_default();
    if !hosts.is_empty() {
        wide(hosts, at.key("allowedHosts"), report);
    }
    // A block with `extends` may inherit hosts or access.
    match (capability.network.access, hosts.is_empty()) {
        (Some(NetworkAccess::Limited), true) if !capability.may_inherit() => report.add(
            Code::LintHostsUnused,
            at.key("access"),
            "limited access without hosts reaches nothing",
            "name the hosts in `allowedHosts`, or use `none`",
        ),
        (Some(NetworkAccess::None | NetworkAccess::Full), false) => report.add(
            Code::LintHostsUnused,
            at.key("allowedHosts"),
            "`allowedHosts` has no effect without `access: limited`",
            "set `access` to `limited`, or remove the hosts",
        ),
        _ => {}
    }
}

fn wide(hosts: &[String], at: Pointer, report: &mut LintReport<'_>) {
    let wide: Vec<String> =
        hosts.iter().filter(|host| is_wide(host)).map(|host| format!("`{}`", shown(host))).collect();
    if !wide.is_empty() {
        report.add(
            Code::LintWildcardHost,
            at,
            format!("{} includes hosts that anyone can register", listed(&wide)),
            "name the hosts that the tool talks to",
        );
    }
}

fn is_wide(host: &str) -> bool {
    match HostPattern::parse(host).map(|host| host.names) {
        Ok(HostNames::Any | HostNames::Above(_)) => true,
        Ok(HostNames::Below(suffix)) => !suffix.contains('.') || SUFFIXES.contains(&suffix.as_str()),
        Ok(HostNames::Exact(_)) | Err(_) => false,
    }
}

/// Suffixes below which anyone can register a name or publish a page. The common ones, not the whole Public Suffix
/// List.
const SUFFIXES: [&str; 54] = [
    "co.uk",
    "org.uk",
    "ac.uk",
    "gov.uk",
    "me.uk",
    "com.au",
    "net.au",
    "org.au",
    "co.jp",
    "ne.jp",
    "or.jp",
    "co.kr",
    "or.kr",
    "go.kr",
    "com.br",
    "co.in",
    "com.cn",
    "net.cn",
    "org.cn",
    "co.nz",
    "co.za",
    "com.mx",
    "com.tr",
    "com.sg",
    "com.tw",
    "com.hk",
    "com.ar",
    "co.il",
    "github.io",
    "gitlab.io",
    "githubusercontent.com",
    "herokuapp.com",
    "vercel.app",
    "netlify.app",
    "pages.dev",
    "workers.dev",
    "r2.dev",
    "cloudfront.net",
    "amazonaws.com",
    "s3.amazonaws.com",
    "azurewebsites.net",
    "blob.core.windows.net",
    "cloudapp.azure.com",
    "web.app",
    "firebaseapp.com",
    "appspot.com",
    "run.app",
    "ngrok.io",
    "ngrok-free.app",
    "trycloudflare.com",
    "onrender.com",
    "fly.dev",
    "blogspot.com",
    "webhook.site",
];
