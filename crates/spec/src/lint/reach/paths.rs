//! Checks for overly broad directories.

use serde_json::{Map, Value};

use crate::{
    Code, Pointer,
    lint::{
        report::LintReport,
        show::{listed, shown},
    },
    model::ToolSpec,
};

pub(super) fn check(
    document: &Map<String, Value>,
    spec: &ToolSpec,
    capability: &str,
    report: &mut LintReport<'_>,
) {
    if let Some(base) = &spec.overrides.fs_base_path {
        broad(std::iter::once(base.as_str()), Pointer::new("/sandboxOverrides/fsBasePath"), report);
    }
    // As written: a pattern that does not parse is missing from the model, but may be broad.
    let allowed = document
        .get(capability)
        .and_then(|block| block.get("execution"))
        .and_then(|execution| execution.get("allowedPaths"))
        .and_then(Value::as_array);
    if let Some(allowed) = allowed {
        let at = Pointer::root().key(capability).key("execution").key("allowedPaths");
        broad(allowed.iter().filter_map(Value::as_str), at, report);
    }
}

fn broad<'a>(paths: impl Iterator<Item = &'a str>, at: Pointer, report: &mut LintReport<'_>) {
    let broad: Vec<String> =
        paths.filter_map(|path| why_broad(path).map(|why| format!("`{}` is {why}", shown(path)))).collect();
    if !broad.is_empty() {
        report.add(
            Code::LintBroadPath,
            at,
            listed(&broad),
            "grant the directory that the tool works in, preferably below `$WORKSPACE`",
        );
    }
}

fn why_broad(path: &str) -> Option<&'static str> {
    let path = path.replace('\\', "/");
    let segments: Vec<&str> =
        path.split('/').filter(|segment| !segment.is_empty() && *segment != ".").collect();
    // The part after the first `*` only narrows each directory that the wildcard matches.
    let literal: Vec<&str> = segments.iter().copied().take_while(|segment| !segment.contains('*')).collect();
    match literal.as_slice() {
        [] => {
            path.starts_with('/').then_some("the whole file system").or((path == "*").then_some("everything"))
        }
        [drive] if drive.len() == 2 && drive.ends_with(':') => Some("a whole drive"),
        ["$HOME" | "~" | "root"] | ["home" | "Users", _] => Some("a whole home directory"),
        ["$HOME" | "~" | "root", below @ ..] | ["home" | "Users", _, below @ ..] => credentials(below),
        ["proc" | "sys", ..] if path.starts_with('/') => Some("the kernel's own view of the machine"),
        ["private", "etc" | "var"] => Some("a system directory"),
        [one] if path.starts_with('/') && SYSTEM.contains(one) => Some("a system directory"),
        _ => None,
    }
}

/// Directories below a home directory where programs keep keys and tokens.
fn credentials(below: &[&str]) -> Option<&'static str> {
    let found = match below {
        [".config" | ".local" | "Library"]
        | [".config", "gcloud" | "gh" | "op" | "hub" | "rclone", ..]
        | ["Library", "Keychains" | "Application Support", ..] => true,
        [first, ..] => KEYS.contains(first),
        [] => false,
    };
    found.then_some("where programs keep credentials")
}

const SYSTEM: [&str; 22] = [
    "etc",
    "usr",
    "var",
    "home",
    "Users",
    "dev",
    "boot",
    "lib",
    "lib64",
    "bin",
    "sbin",
    "opt",
    "mnt",
    "media",
    "srv",
    "run",
    "tmp",
    "private",
    "System",
    "Library",
    "Volumes",
    "Applications",
];

const KEYS: [&str; 19] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".docker",
    ".azure",
    ".gcloud",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".cargo",
    ".git-credentials",
    ".password-store",
    ".mozilla",
    ".bash_history",
    ".zsh_history",
    ".terraform.d",
    ".vault-token",
    ".pgpass",
];

#[cfg(test)]
mod tests {
    use super::why_broad;

    #[test]
    fn roots_homes_and_key_folders_are_broad() {
        for path in [
            "/",
            "//",
            "/**",
            "/*/x",
            "C:\\",
            "c:/",
            "$HOME",
            "$HOME/",
            "$HOME/**",
            "$HOME/*/x",
            "/home",
            "/home/ann",
            "/root",
            "/etc",
            "/etc/**",
            "/usr",
            "/var/",
            "/proc/self",
            "/sys",
            "/dev",
            "$HOME/.ssh",
            "$HOME/.ssh/id_rsa",
            "/home/ann/.aws",
            "$HOME/.config",
            "$HOME/.config/gh/hosts.yml",
            "/root/.kube/config",
            "*",
        ] {
            assert!(why_broad(path).is_some(), "{path}");
        }
        for path in [
            "$WORKSPACE",
            "$WORKSPACE/**",
            "$WORKSPACE/etc",
            "/data/reports",
            "/var/log/app",
            "/etc/ssl/certs",
            "$HOME/projects/x",
            "$HOME/.config/mytool",
            "/home/ann/notes",
            "/opt/app",
            "",
        ] {
            assert!(why_broad(path).is_none(), "{path}");
        }
    }
}
