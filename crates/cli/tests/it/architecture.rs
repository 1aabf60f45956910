//! Architecture rules: ranks of crates, restricted dependencies, size budgets, and the files with `unsafe`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Ranks of the crates, pure ones first. A crate may depend on lower ranks only.
const RANKS: &[(&str, u8)] = &[
    ("toolgate-secrets", 0),
    ("toolgate-spec", 1),
    ("toolgate-policy", 2),
    ("toolgate-sandbox", 2),
    ("toolgate-egress", 2),
    ("toolgate-upstream", 2),
    ("toolgate-audit", 2),
    ("toolgate-config", 2),
    ("toolgate-gate", 3),
    ("toolgate-engine", 4),
    ("toolgate-store", 4),
    ("toolgate-worker", 5),
    ("toolgate-handlers", 5),
    ("toolgate-telemetry", 5),
    ("toolgate-server", 6),
    ("toolgate", 7),
    ("toolgate-eval", 7),
    ("toolgate-cli", 8),
];

/// Mechanism without policy: these crates depend on no other crate of the workspace.
const MECHANISMS: &[&str] =
    &["toolgate-sandbox", "toolgate-egress", "toolgate-upstream", "toolgate-audit", "toolgate-secrets"];

/// Dangerous or central dependencies, each with the only crate that may use it.
const DOORWAYS: &[(&str, &[&str])] = &[
    ("argon2", &["toolgate-store"]),
    ("cedar-policy", &["toolgate-policy"]),
    ("chacha20poly1305", &["toolgate-store"]),
    ("hyper", &["toolgate-egress"]),
    ("jsonschema", &["toolgate-spec"]),
    ("landlock", &["toolgate-sandbox"]),
    ("jsonwebtoken", &["toolgate-server"]),
    ("reqwest", &["toolgate-egress"]),
    ("rmcp", &["toolgate-server"]),
    ("rusqlite", &["toolgate-store"]),
    ("seccompiler", &["toolgate-sandbox"]),
    ("sqlx", &["toolgate-store"]),
    ("ureq", &["toolgate-egress"]),
    ("wasmtime", &["toolgate-engine", "toolgate-worker"]),
];

/// Known to be unmaintained or unsafe for untrusted input.
const BANNED: &[&str] = &["birdcage", "extrasafe", "figment", "openssl", "serde_yaml", "serde_yml"];

const UNSAFE_FILES: &[&str] = &[
    "crates/sandbox/src/sys.rs",
    "crates/sandbox/src/sys/filter.rs",
    "crates/sandbox/src/sys/mounts.rs",
    "crates/sandbox/src/sys/process.rs",
    "crates/sandbox/tests/command/attacks/native.rs",
    "crates/sandbox/tests/command/raw.rs",
    "crates/sandbox/tests/jail/attacks.rs",
    "crates/engine/src/loader.rs",
];

#[test]
fn crates_depend_downwards_only() {
    for (package, dependencies) in packages() {
        let rank = rank_of(&package).unwrap_or_else(|| panic!("give `{package}` a rank in {}", file!()));
        for dependency in &dependencies {
            let Some(below) = rank_of(dependency) else { continue };
            assert!(
                below < rank,
                "`{package}` (rank {rank}) must not depend on `{dependency}` (rank {below})"
            );
            assert!(
                !MECHANISMS.contains(&package.as_str()),
                "`{package}` is a mechanism and must not know `{dependency}`"
            );
        }
    }
}

#[test]
fn dangerous_dependencies_are_used_by_one_crate() {
    for (package, dependencies) in packages() {
        for dependency in &dependencies {
            assert!(
                !BANNED.contains(&dependency.as_str()),
                "`{package}` depends on `{dependency}`, which is banned"
            );
            if let Some((_, doors)) = DOORWAYS.iter().find(|(name, _)| name == dependency) {
                assert!(
                    doors.contains(&package.as_str()),
                    "`{package}` must not name `{dependency}`; {doors:?} may"
                );
            }
        }
    }
}

#[test]
fn every_package_uses_the_workspace_lints() {
    for manifest in manifests() {
        let text = fs::read_to_string(&manifest).unwrap();
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{} has no `[lints] workspace = true`",
            manifest.display()
        );
    }
}

#[test]
fn files_keep_their_budgets() {
    let over: Vec<String> = sources().iter().filter_map(|path| over_budget(path)).collect();
    assert!(over.is_empty(), "split these:\n{}", over.join("\n"));
}

#[test]
fn unsafe_code_is_in_listed_files_only() {
    for path in sources() {
        let name = relative(&path);
        let text = fs::read_to_string(&path).unwrap();
        let has_unsafe = ["{", "fn", "impl", "extern", "trait"]
            .iter()
            .any(|what| text.contains(&format!("{} {what}", concat!("un", "safe"))));
        assert!(
            !has_unsafe || UNSAFE_FILES.contains(&name.as_str()),
            "{name} has unsafe code; only {UNSAFE_FILES:?} may"
        );
        let is_root = name.ends_with("src/lib.rs") || name.ends_with("src/main.rs");
        let may_unsafe =
            UNSAFE_FILES.iter().any(|file| Path::new(file).parent() == Path::new(&name).parent());
        assert!(
            !is_root || may_unsafe || text.contains("#![forbid(unsafe_code)]"),
            "{name} does not forbid unsafe code"
        );
    }
}

#[test]
fn no_unfinished_code_is_committed() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for mark in
            [concat!("// TO", "DO"), concat!("// FIX", "ME"), concat!("todo", "!("), concat!("#[ig", "nore")]
        {
            assert!(!text.contains(mark), "{} contains {mark}", relative(&path));
        }
    }
}

fn over_budget(path: &Path) -> Option<String> {
    let name = relative(path);
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    let is_test = name.contains("/tests/") || name.ends_with("tests.rs") || name.contains("/benches/");
    let budget = if name.ends_with("gate/src/call.rs") { 150 } else { 600 };
    (!is_test && lines > budget).then(|| format!("{name}: {lines} lines, budget {budget}"))
}

fn rank_of(package: &str) -> Option<u8> {
    RANKS.iter().find(|(name, _)| *name == package).map(|(_, rank)| *rank)
}

/// Package name → the names of its normal and build dependencies.
fn packages() -> BTreeMap<String, Vec<String>> {
    metadata()["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            let shipped = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
            let names = shipped.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect();
            (package["name"].as_str().unwrap().to_owned(), names)
        })
        .collect()
}

fn manifests() -> Vec<PathBuf> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| PathBuf::from(package["manifest_path"].as_str().unwrap())).collect()
}

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("fuzz")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 20, "the sources were not found");
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
