//! No repository makes a shipped git tool run a program, or show what other tools block.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use serde_json::{Value, json};
use toolgate_handlers::CliTool;

use crate::{
    cases::{launcher, run},
    catalog::{fits, git, manifest, repository},
    world::{World, call, resolve},
};

pub const ALL: [(&str, fn()); 3] = [
    ("no_repository_runs_a_program", no_repository_runs_a_program),
    ("git_diff_works_where_gateway_files_are_tracked", git_diff_works_where_gateway_files_are_tracked),
    ("git_tools_show_no_blocked_file", git_tools_show_no_blocked_file),
];

/// Prepares a workspace.
type Prepare = fn(&Path);

/// How a repository leads git to its configuration and attributes.
const WAYS: [(&str, Prepare); 8] = [
    ("own configuration", own_configuration),
    (".git/commondir", commondir),
    (".git file", git_file),
    (".git symlink", git_symlink),
    ("include.path", include),
    ("includeIf", include_if),
    ("config.worktree", worktree_configuration),
    ("alternates", alternates),
];

fn no_repository_runs_a_program() {
    let mut sprung = Vec::new();
    for (way, prepare) in WAYS {
        let world = hostile();
        let workspace = world.root().join("workspace");
        prepare(&workspace);
        if is_trap(&workspace) {
            sprung.push(way);
        }
        for (name, arguments) in calls() {
            let said = everything_said(&world, name, &arguments);
            for mark in [RAN, SECRET] {
                assert!(!said.contains(mark), "{way}: {name}: {said}");
            }
        }
    }
    // The other way, objects from elsewhere, names no program.
    let expected: Vec<&str> = WAYS.iter().map(|(way, _)| *way).filter(|way| *way != "alternates").collect();
    assert_eq!(sprung, expected, "these run a program with an unguarded git");
}

fn git_diff_works_where_gateway_files_are_tracked() {
    let world = World::new();
    repository(&world);
    let at = world.at("");
    for file in ["toolgate.yaml", "tools/own.json"] {
        world.write(&format!("workspace/{file}"), "as committed");
    }
    git(&at, &["add", "toolgate.yaml", "tools"]);
    git(&at, &["commit", "--quiet", "-m", "third"]);
    world.write("workspace/toolgate.yaml", "of the gateway");
    world.write("workspace/docs/readme.md", "# changed\n");
    let mut handlers = world.handlers(launcher());
    handlers.host.places.guarded.extend([world.at("toolgate.yaml").into(), world.at("tools").into()]);
    let (spec, policy) = resolve(&manifest("git_diff"));
    let tool = handlers.runnable(CliTool::new(spec, &policy, &handlers.host).unwrap());
    for arguments in [json!({}), json!({ "namesOnly": true }), json!({ "path": "docs" })] {
        let said = call(&tool, &arguments).unwrap().outcome.unwrap().unwrap().as_str().unwrap().to_owned();
        assert!(said.contains("docs/readme.md"), "{said}");
        assert!(!said.contains("gateway") && !said.contains("tools"), "{said}");
    }
}

fn git_tools_show_no_blocked_file() {
    let world = hostile();
    let at = world.at("");
    git(&at, &["add", "--force", ".env", "secrets/key"]);
    git(&at, &["commit", "--quiet", "-m", "third"]);
    for path in [".env", "app/.env.local", "secrets/key"] {
        let arguments = json!({ "revision": "main", "path": path });
        assert!(!fits(&manifest("git_show_file"), &arguments), "{path}");
    }
    world.write("workspace/.env", "other-words\n");
    for arguments in [json!({}), json!({ "staged": true })] {
        let said = everything_said(&world, "git_diff", &arguments);
        assert!(!said.contains("other-words") && !said.contains(SECRET), "{said}");
    }
}

fn calls() -> [(&'static str, Value); 6] {
    [
        ("git_diff", json!({})),
        ("git_diff", json!({ "staged": true })),
        ("git_diff", json!({ "namesOnly": true, "path": "docs" })),
        ("git_diff_branches", json!({ "base": "feature/x", "head": "main" })),
        ("git_log", json!({ "count": 5, "path": "docs" })),
        ("git_show_file", json!({ "revision": "main", "path": "docs/readme.md" })),
    ]
}

/// A repository with settings that name a program everywhere, in `evil/config`; they are not active yet.
fn hostile() -> World {
    let world = World::new();
    repository(&world);
    world.write("workspace/.env", SECRET);
    world.write("workspace/secrets/key", SECRET);
    let workspace = world.root().join("workspace");
    copy_all(&workspace.join(".git"), &workspace.join("evil"));
    world.write("workspace/evil/info/attributes", "* filter=evil diff=evil\n");
    world.write("workspace/hooks/post-index-change", &format!("#!/bin/sh\n{PROGRAM}\n"));
    let file = workspace.join("evil/config").display().to_string();
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "core.fsmonitor",
        "core.pager",
        "pager.diff",
        "pager.log",
        "core.sshCommand",
        "core.askPass",
        "core.alternateRefsCommand",
        "gpg.program",
        "credential.helper",
    ] {
        git(&world.at(""), &["config", "--file", &file, key, PROGRAM]);
    }
    for (key, value) in [
        ("core.hooksPath", "hooks"),
        ("log.showSignature", "true"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ssh://host/x"),
    ] {
        git(&world.at(""), &["config", "--file", &file, key, value]);
    }
    world.write("workspace/docs/readme.md", "# changed\n");
    world
}

fn own_configuration(workspace: &Path) {
    fs::copy(workspace.join("evil/config"), workspace.join(".git/config")).unwrap();
    fs::write(workspace.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
}

fn commondir(workspace: &Path) {
    fs::write(workspace.join(".git/commondir"), "../evil\n").unwrap();
}

fn git_file(workspace: &Path) {
    fs::remove_dir_all(workspace.join(".git")).unwrap();
    fs::write(workspace.join(".git"), "gitdir: evil\n").unwrap();
}

fn git_symlink(workspace: &Path) {
    fs::remove_dir_all(workspace.join(".git")).unwrap();
    symlink("evil", workspace.join(".git")).unwrap();
}

fn include(workspace: &Path) {
    fs::write(workspace.join(".git/config"), "[include]\npath = ../evil/config\n").unwrap();
    fs::write(workspace.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
}

fn include_if(workspace: &Path) {
    fs::write(workspace.join(".git/config"), "[includeIf \"gitdir:**\"]\npath = ../evil/config\n").unwrap();
    fs::write(workspace.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
}

fn worktree_configuration(workspace: &Path) {
    let settings = "[core]\nrepositoryformatversion = 1\n[extensions]\nworktreeConfig = true\n";
    fs::write(workspace.join(".git/config"), settings).unwrap();
    fs::copy(workspace.join("evil/config"), workspace.join(".git/config.worktree")).unwrap();
    fs::write(workspace.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
}

fn alternates(workspace: &Path) {
    fs::remove_dir_all(workspace.join(".git/objects")).unwrap();
    fs::create_dir_all(workspace.join(".git/objects/info")).unwrap();
    fs::write(workspace.join(".git/objects/info/alternates"), "../../evil/objects\n").unwrap();
}

/// Whether git runs the program without the guards of the shipped tools.
fn is_trap(workspace: &Path) -> bool {
    let output = Command::new("git").arg("diff").current_dir(workspace).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).contains(RAN)
}

/// Result or failure of a call, with all its denials.
fn everything_said(world: &World, name: &str, arguments: &Value) -> String {
    let report = run(world, &manifest(name), arguments).unwrap();
    format!("{:?} {:?}", report.outcome, report.console)
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Shows that it ran, with a text that is not in the command itself, and prints what other tools block.
const PROGRAM: &str = "printf 'program%sran ' -; cat .env secrets/key #";
const RAN: &str = "program-ran";
const SECRET: &str = "only-in-blocked-files";
