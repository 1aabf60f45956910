//! The shipped command manifests, and git repositories for tests.

use std::{fs, path::PathBuf, process::Command};

use serde_json::Value;
use toolgate_spec::CompiledSchema;

use crate::world::{World, resolve};

#[track_caller]
pub fn manifest(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.yaml"))).unwrap()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../catalog/commands")
}

/// Whether the arguments fit the tool's schema. Others are rejected before any check of the survey.
pub fn fits(manifest: &str, arguments: &Value) -> bool {
    let (spec, _) = resolve(manifest);
    let schema = toolgate_spec::project::input_schema(&spec).unwrap();
    CompiledSchema::new(&schema).unwrap().violations(arguments, 1).is_empty()
}

/// Runs git on a repository of the test, as its author would.
pub fn git(folder: &str, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
        .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub fn repository(world: &World) {
    let at = world.at("");
    git(&at, &["init", "--quiet", "."]);
    git(&at, &["add", "docs", "src/main.rs"]);
    git(&at, &["commit", "--quiet", "-m", "first"]);
    git(&at, &["branch", "feature/x"]);
    world.write("workspace/docs/readme.md", "# The gate\nis closed\n");
    git(&at, &["commit", "--quiet", "-am", "second"]);
}
