//! Suggests the grants that a failed test run needs.

use toolgate_gate::{Candidate, EffectEntry, EffectKind, Outcome, Reason, Trial};
use toolgate_spec::{missing_helpers, model::Body};

/// One line for each missing grant. Empty if no grant would help.
pub fn grants(candidate: &Candidate, trial: &Trial) -> Vec<String> {
    let mut grants: Vec<String> = match &trial.outcome {
        Outcome::Released(_) => return Vec::new(),
        Outcome::Refused(end) => of_refusal(end.reason).map(str::to_owned).into_iter().collect(),
        Outcome::Failed(_) => of_code(candidate),
        Outcome::Broken(_) | Outcome::Pending(_) => Vec::new(),
    };
    let effects = trial.report.iter().flat_map(|report| &report.effects);
    for grant in effects.filter_map(of_effect) {
        if !grants.contains(&grant) && grants.len() < MOST {
            grants.push(grant);
        }
    }
    grants
}

/// Grants for a call that was refused before it ran, because of its test values.
const fn of_refusal(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::HostNotAllowed => Some(
            "a test value names a host that is not granted; the tool needs `networkMode: allowlist` with that host in `hostsAllow` of `sandboxOverrides`",
        ),
        Reason::PathOutsideRoots => Some(
            "a test value names a path that is not granted; the tool needs `fileRead: true` or `fileWrite: true`, and a path inside `fsBasePath`, in `sandboxOverrides`",
        ),
        _ => None,
    }
}

/// Grants for helpers that the code calls. Without a grant a helper is undefined, and the run's error does not say why.
fn of_code(candidate: &Candidate) -> Vec<String> {
    let Body::JavaScript { code } = &candidate.tool.spec().body else { return Vec::new() };
    let missing = missing_helpers(code, candidate.tool.denied_helpers());
    missing
        .into_iter()
        .map(|missing| {
            let hosts = if missing.field == "networkMode" { ", with its hosts in `hostsAllow`" } else { "" };
            format!(
                "the code calls {}, which needs a grant: `{}: {}`{hosts} in `sandboxOverrides`",
                missing.call, missing.field, missing.value
            )
        })
        .collect()
}

fn of_effect(effect: &EffectEntry) -> Option<String> {
    let reason = effect.outcome.strip_prefix("SECURITY ")?;
    let needed = match (reason, effect.kind) {
        ("network-blocked", _) => {
            "`networkMode: allowlist` with this host in `hostsAllow` of `sandboxOverrides`"
        }
        ("host-not-in-allowlist", _) => "this host in `hostsAllow` of `sandboxOverrides`",
        ("literal-private-ip", _) => {
            "`networkMode: allowlist` with exactly this address in `hostsAllow` of `sandboxOverrides`"
        }
        ("resolved-private-ip", _) => "`network.blockPrivateIPs: false` in `capability`",
        ("method-needs-approval", _) => {
            "a person's approval: take the method from a parameter called `method`, or leave it out of `approval.askForMethods`"
        }
        ("read-not-granted", _) | ("files-not-granted", EffectKind::Read) => {
            "`fileRead: true` in `sandboxOverrides`"
        }
        ("write-not-granted", _) | ("files-not-granted", EffectKind::Write) => {
            "`fileWrite: true` in `sandboxOverrides`"
        }
        ("path-escapes-base" | "path-not-allowed", _) => {
            "a path inside `fsBasePath` of `sandboxOverrides`, or its directory in `execution.allowedPaths` of `capability`"
        }
        ("write-outside-workspace", _) => "a path inside the workspace",
        // No grant overrides a prohibition, and other errors have nothing to do with grants.
        _ => return None,
    };
    Some(format!("{} of `{}` was refused; it needs {needed}", effect.what, effect.target))
}

/// Limits the output of a run with many refusals.
const MOST: usize = 8;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(kind: EffectKind, outcome: &str, expect: Option<&str>) {
        let effect = EffectEntry {
            kind,
            what: "it".to_owned(),
            target: "there".to_owned(),
            to: None,
            outcome: outcome.to_owned(),
            bytes: 0,
            elapsed: Duration::ZERO,
        };
        let expect = expect.map(|needed| format!("it of `there` was refused; it needs {needed}"));
        assert_eq!(of_effect(&effect), expect, "{outcome}");
    }

    #[test]
    fn suggested_grant_matches_the_reason() {
        check(
            EffectKind::Fetch,
            "SECURITY host-not-in-allowlist",
            Some("this host in `hostsAllow` of `sandboxOverrides`"),
        );
        check(
            EffectKind::Fetch,
            "SECURITY method-needs-approval",
            Some(
                "a person's approval: take the method from a parameter called `method`, or leave it out of `approval.askForMethods`",
            ),
        );
        check(
            EffectKind::Write,
            "SECURITY files-not-granted",
            Some("`fileWrite: true` in `sandboxOverrides`"),
        );
        check(EffectKind::Read, "SECURITY read-not-granted", Some("`fileRead: true` in `sandboxOverrides`"));
    }

    #[test]
    fn prohibitions_and_other_errors_suggest_no_grant() {
        for outcome in
            ["SECURITY metadata-endpoint", "SECURITY path-blocked", "HELPER_RUNTIME io", "ok", "404"]
        {
            check(EffectKind::Fetch, outcome, None);
        }
    }
}
