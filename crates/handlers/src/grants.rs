//! Translates the effective policy into grants and rules. This is the only place that does.

use std::path::{Path, PathBuf};

use toolgate_egress::{EgressMode, EgressRules, Guard, HostRule};
use toolgate_policy::{EffectivePolicy, FilePolicy, NetworkPolicy};
use toolgate_spec::{HostNames, HostPattern, PathPattern, model::NetworkMode};

use crate::{
    files::{FileCaps, FileGrants, FileRights, RedactedReads},
    places::Places,
};

const FETCH_GRANT: u32 = 1;
const READ_GRANT: u32 = 2;
const WRITE_GRANT: u32 = 4;

/// The grants as bits, as the prelude's `install` reads them.
pub fn bits(network: &NetworkPolicy, files: &FilePolicy) -> u32 {
    let fetch = if network.mode.value == NetworkMode::Blocked { 0 } else { FETCH_GRANT };
    let read = if files.read.value { READ_GRANT } else { 0 };
    let write = if files.write.value { WRITE_GRANT } else { 0 };
    fetch | read | write
}

pub fn rules(network: &NetworkPolicy) -> EgressRules {
    EgressRules {
        mode: match network.mode.value {
            NetworkMode::Blocked => EgressMode::Blocked,
            NetworkMode::Allowlist => EgressMode::Allowlist,
            NetworkMode::Strict => EgressMode::Strict,
            NetworkMode::Open => EgressMode::Open,
        },
        hosts: network.hosts.values().map(host_rule).collect(),
        blocked_hosts: network.blocked_hosts.values().map(host_rule).collect(),
        blocked_ports: network.blocked_ports.values().copied().collect(),
        guard_private: guard(network.block_private_ips.value),
        guard_metadata: guard(network.block_metadata.value),
    }
}

fn guard(is_on: bool) -> Guard {
    if is_on { Guard::On } else { Guard::Off }
}

fn host_rule(pattern: &HostPattern) -> HostRule {
    let hosts = match &pattern.names {
        HostNames::Any => HostRule::ANY,
        HostNames::Exact(name) => HostRule::exact(name.clone()),
        HostNames::Below(name) => HostRule::below(name.clone()),
        HostNames::Above(name) => HostRule::above(name.clone()),
    };
    hosts.at_port(pattern.port)
}

/// `None` if the tool may neither read nor write.
pub fn files(policy: &EffectivePolicy, places: &Places) -> Option<FileGrants> {
    let rights = match (policy.files.read.value, policy.files.write.value) {
        (true, true) => FileRights::ReadWrite,
        (true, false) => FileRights::Read,
        (false, true) => FileRights::Write,
        (false, false) => return None,
    };
    with_rights(rights, folder(&policy.files.base_path.value, places), policy, places)
}

/// The blocked paths, for a tool without file grants. Nothing is opened with it. `None` if one of the gateway's files
/// cannot be blocked by name.
pub fn blocked_files(policy: &EffectivePolicy, places: &Places) -> Option<FileGrants> {
    with_rights(FileRights::Read, places.workspace.clone(), policy, places)
}

fn with_rights(
    rights: FileRights,
    workspace: PathBuf,
    policy: &EffectivePolicy,
    places: &Places,
) -> Option<FileGrants> {
    let reads_secrets = policy.data.can_read_secrets.value;
    let policy = &policy.files;
    let mut blocked: Vec<PathPattern> = policy.blocked_paths.values().cloned().collect();
    if !reads_secrets {
        for path in CREDENTIALS {
            blocked.push(PathPattern::parse(path).ok()?);
        }
    }
    let mut guarded = Vec::new();
    for own in &places.guarded {
        // By its real path, which is what paths are compared with. If a path cannot be blocked by name, the tool gets
        // no files at all.
        let real = own.canonicalize().unwrap_or_else(|_| own.clone());
        blocked.push(PathPattern::literal(real.to_str()?)?);
        guarded.push(real);
    }
    Some(FileGrants {
        workspace,
        read_roots: policy.allowed_paths.values().map(|pattern| folder(pattern.text(), places)).collect(),
        pattern_workspace: places.workspace.clone(),
        home: places.home.clone(),
        rights,
        allowed: policy.allowed_paths.values().cloned().collect(),
        blocked,
        own: guarded,
        locks: places.state.join("turns"),
        caps: FileCaps::default(),
    })
}

/// Which reads are redacted. `None` if results are not filtered, or if the tool may write: it would write redaction
/// markers into files.
pub fn redacted_reads(policy: &EffectivePolicy) -> Option<RedactedReads> {
    if !policy.data.sanitize_output.value || policy.files.write.value {
        return None;
    }
    let sends = policy.network.mode.value != NetworkMode::Blocked;
    Some(if sends { RedactedReads::Lines } else { RedactedReads::All })
}

/// The directory that a path or pattern begins with, up to its first wildcard.
fn folder(text: &str, places: &Places) -> PathBuf {
    let (base, rest) = match (text.strip_prefix("$WORKSPACE"), text.strip_prefix("$HOME")) {
        (Some(rest), _) => (places.workspace.as_path(), rest),
        (None, Some(rest)) => (places.home.as_path(), rest),
        (None, None) => (Path::new("/"), text),
    };
    let literal = rest.split('/').filter(|part| !part.is_empty()).take_while(|part| !part.contains('*'));
    literal.fold(base.to_owned(), |folder, part| folder.join(part))
}

/// Whether it is blocked because it contains credentials. Such directories may also contain large caches.
pub fn holds_credentials(pattern: &PathPattern) -> bool {
    CREDENTIALS.contains(&pattern.text())
}

/// Usual locations of credentials. They are hidden from every tool that may not read secrets, even inside a granted
/// directory. Plain paths only, which need no search.
const CREDENTIALS: [&str; 21] = [
    "/etc/gshadow",
    "/etc/shadow",
    "$HOME/.aws",
    "$HOME/.azure",
    "$HOME/.cargo/credentials.toml",
    "$HOME/.config/argocd",
    "$HOME/.config/gcloud",
    "$HOME/.config/gh",
    "$HOME/.config/git/credentials",
    "$HOME/.docker/config.json",
    "$HOME/.git-credentials",
    "$HOME/.gnupg",
    "$HOME/.kube",
    "$HOME/.local/share/keyrings",
    "$HOME/.netrc",
    "$HOME/.npmrc",
    "$HOME/.password-store",
    "$HOME/.pgpass",
    "$HOME/.pypirc",
    "$HOME/.ssh",
    "$HOME/.vault-token",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_paths_can_be_blocked_by_name_and_are_documented() {
        let page = include_str!("../../../docs/settings.md");
        for path in CREDENTIALS {
            assert!(PathPattern::parse(path).is_ok() && !path.contains('*'), "{path}");
            assert!(page.contains(&format!("`{path}`")), "{path}");
        }
    }
}
