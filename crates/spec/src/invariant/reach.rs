//! Checks that hosts, paths and helpers are well-formed.

use super::broken;
use crate::{Finding, HostPattern, helper, lint::shown, model::ToolSpec, path_pattern::PathPattern};

pub(super) fn check(spec: &ToolSpec, findings: &mut Vec<Finding>) {
    for (index, host) in spec.overrides.hosts_allow.iter().enumerate() {
        if let Err(why) = HostPattern::parse(host) {
            findings.push(broken(
                &format!("/sandboxOverrides/hostsAllow/{index}"),
                why,
                "write `api.example.com`, `api.example.com:8443`, `*.example.com`, an IP address, or `*` for every public host",
            ));
        }
    }
    if let Some(base) = &spec.overrides.fs_base_path {
        let problem = match PathPattern::parse(base) {
            Err(why) => Some(why),
            Ok(_) if base.contains('*') => Some("a base path must be one directory, without `*`".into()),
            Ok(_) => None,
        };
        if let Some(why) = problem {
            findings.push(broken(
                "/sandboxOverrides/fsBasePath",
                why,
                "write an absolute path, or one below `$WORKSPACE` or `$HOME`",
            ));
        }
    }
    let version = spec.claimed_safety.as_ref().and_then(|safety| safety.version.as_deref());
    if let Some(version) = version.filter(|version| *version != "1" && !version.starts_with("1.")) {
        findings.push(broken(
            "/toolSafety/version",
            format!(
                "version `{}` of `toolSafety` is unknown; this gateway reads versions 1.x",
                shown(version)
            ),
            "leave `toolSafety` out; Toolgate computes it",
        ));
    }
    let runtime = spec.claimed_safety.as_ref().and_then(|safety| safety.runtime.as_ref());
    for (index, name) in runtime.into_iter().flat_map(|runtime| &runtime.helpers).enumerate() {
        if !helper::is_well_formed(name) {
            findings.push(broken(
                &format!("/toolSafety/runtime/helpers/{index}"),
                "not a helper version",
                "write `safety.fs/v1` or `tool-safety-helpers/v1#crypto`",
            ));
        }
    }
}
