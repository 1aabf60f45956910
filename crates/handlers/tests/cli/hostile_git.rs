//! A repository and its configuration come from other people. They must not make the shipped tools run a program,
//! leave the directory or contact a remote.

use std::{fs, path::Path, sync::Arc};

use serde_json::{Value, json};

use crate::{
    catalog::{git, manifest, repository},
    world::{Unjailed, World, call},
};

/// A repository whose configuration names a program wherever git would start one. The program creates a marker file.
struct Hostile {
    world: World,
    mark: String,
}

impl Hostile {
    fn new() -> Self {
        let world = World::new();
        repository(&world);
        let mark = world.root().join("mark");
        // It also passes its input through like a filter, so git continues.
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat 2>/dev/null\nexit 0\n", mark.display());
        let program = world.program("evil", &script, 0o755);
        let evil = program.display().to_string();
        let hooks = world.root().join("hooks");
        fs::create_dir(&hooks).unwrap();
        for hook in ["post-index-change", "fsmonitor-watchman", "post-checkout"] {
            fs::copy(&program, hooks.join(hook)).unwrap();
        }
        let at = world.at("");
        for (key, value) in [
            ("core.hooksPath", hooks.to_str().unwrap()),
            ("core.pager", &evil),
            ("pager.log", &evil),
            ("pager.diff", &evil),
            ("alias.log", &format!("!{evil}")),
            ("alias.diff", &format!("!{evil}")),
            ("diff.external", &evil),
            ("diff.evil.textconv", &evil),
            ("diff.evil.command", &evil),
            ("filter.evil.clean", &evil),
            ("filter.evil.smudge", &evil),
            ("log.showSignature", "true"),
            ("gpg.program", &evil),
            ("core.sshCommand", &evil),
            ("core.editor", &evil),
            ("core.askPass", &evil),
            ("credential.helper", &evil),
            ("remote.origin.url", &format!("ext::{evil}")),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", "blob:none"),
            ("extensions.partialClone", "origin"),
            ("protocol.ext.allow", "always"),
            ("core.fsmonitor", &evil),
        ] {
            git(&at, &["config", key, value]);
        }
        world.write("workspace/.gitattributes", "* diff=evil filter=evil\n");
        world.write("workspace/docs/readme.md", "# changed\n");
        let mark = mark.display().to_string();
        fs::remove_file(&mark).ok();
        Self { world, mark }
    }

    fn has_run(&self) -> Option<String> {
        fs::read_to_string(&self.mark).ok()
    }

    #[track_caller]
    fn check(&self, name: &str, arguments: &Value) -> Result<String, String> {
        let tool = self.world.load(&manifest(name)).unwrap();
        let tool = self.world.handlers(Arc::new(Unjailed)).runnable(tool);
        let report = call(&tool, arguments).unwrap();
        assert_eq!(self.has_run(), None, "{name} {arguments}");
        match report.outcome {
            Ok(value) => Ok(value.unwrap().as_str().unwrap().to_owned()),
            Err(failure) => Err(failure.message),
        }
    }
}

#[test]
fn trap_works_without_the_guards() {
    for args in [&["diff"][..], &["-c", "core.fsmonitor=false", "diff", "--no-ext-diff"], &["status"]] {
        let hostile = Hostile::new();
        let _ =
            std::process::Command::new("git").args(args).current_dir(hostile.world.at("")).output().unwrap();
        assert!(hostile.has_run().is_some(), "{args:?}");
    }
}

#[test]
fn no_program_of_the_repository_runs() {
    let hostile = Hostile::new();
    let log = hostile.check("git_log", &json!({ "count": 5, "path": "docs" })).unwrap();
    assert_eq!(log.lines().count(), 2);
    let diff = hostile.check("git_diff", &json!({})).unwrap();
    assert!(diff.contains("+# changed"), "{diff}");
    hostile.check("git_diff", &json!({ "staged": true, "namesOnly": true })).unwrap();
    let between =
        hostile.check("git_diff_branches", &json!({ "base": "feature/x", "head": "main" })).unwrap();
    assert!(between.contains("+is closed"), "{between}");
    let old =
        hostile.check("git_show_file", &json!({ "revision": "main", "path": "docs/readme.md" })).unwrap();
    assert_eq!(old, "# The gate\nis closed\n");
}

#[test]
fn signed_commit_is_not_verified() {
    let hostile = Hostile::new();
    let at = hostile.world.at("");
    let commit = fs::read_to_string(hostile.world.root().join("workspace/.git/refs/heads/main")).unwrap();
    let body = git(&at, &["-c", "core.fsmonitor=false", "cat-file", "commit", commit.trim()]);
    let signed = body.replacen(
        "\n\n",
        "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n\n",
        1,
    );
    hostile.world.write("outside/commit", &signed);
    let file = hostile.world.root().join("outside/commit").display().to_string();
    let id = git(&at, &["hash-object", "-t", "commit", "-w", &file]);
    git(&at, &["update-ref", "refs/heads/signed", &id]);
    fs::remove_file(&hostile.mark).ok();
    hostile.check("git_log", &json!({ "count": 1, "revision": "signed" })).unwrap();
}

#[test]
fn missing_object_is_not_fetched() {
    let hostile = Hostile::new();
    let at = hostile.world.at("");
    let blob = git(&at, &["-c", "core.fsmonitor=false", "rev-parse", "main:docs/readme.md"]);
    fs::remove_file(&hostile.mark).ok();
    let (folder, name) = blob.split_at(2);
    fs::remove_file(Path::new(&at).join(".git/objects").join(folder).join(name)).unwrap();
    let why = hostile.check("git_show_file", &json!({ "revision": "main", "path": "docs/readme.md" }));
    assert!(why.unwrap_err().contains("exit code 128"));
    let _ = hostile.check("git_diff_branches", &json!({ "base": "feature/x", "head": "main" }));
}

#[test]
fn work_tree_is_the_workspace_whatever_the_repository_says() {
    let hostile = Hostile::new();
    let outside = hostile.world.root().join("outside").display().to_string();
    let at = hostile.world.at("");
    git(&at, &["config", "core.worktree", &outside]);
    fs::remove_file(&hostile.mark).ok();
    let diff = hostile.check("git_diff", &json!({})).unwrap();
    assert!(diff.contains("+# changed") && !diff.contains("deleted file"), "{diff}");
}

#[test]
fn nested_repository_configuration_is_not_used() {
    let hostile = Hostile::new();
    let (at, inner) = (hostile.world.at(""), hostile.world.at("inner"));
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "--quiet", "."]);
    hostile.world.write("workspace/inner/file", "x");
    git(&inner, &["add", "."]);
    git(&inner, &["commit", "--quiet", "-m", "inner"]);
    git(&at, &["-c", "core.fsmonitor=false", "-c", "filter.evil.clean=cat", "add", "inner"]);
    let evil = hostile.world.root().join("bin/evil").display().to_string();
    git(&inner, &["config", "core.fsmonitor", &evil]);
    hostile.world.write("workspace/inner/file", "y");
    fs::remove_file(&hostile.mark).ok();
    hostile.check("git_diff", &json!({})).unwrap();
}

#[test]
fn attributes_file_without_an_option_is_hidden() {
    let hostile = Hostile::new();
    hostile.world.write("workspace/.git/info/attributes", "* filter=evil\n");
    let order = hostile.world.order(&manifest("git_diff"), &json!({}));
    assert!(
        order.view.hidden.contains(&hostile.world.at(".git/info/attributes").into()),
        "{:?}",
        order.view.hidden
    );
}

#[test]
fn other_repository_is_not_used_even_without_a_jail() {
    for way in ["commondir", "git file"] {
        let hostile = Hostile::new();
        let at = hostile.world.at("");
        hostile.world.write("workspace/evil/info/attributes", "* filter=evil\n");
        for name in ["HEAD", "config", "index"] {
            fs::copy(Path::new(&at).join(".git").join(name), Path::new(&at).join("evil").join(name)).unwrap();
        }
        if way == "commondir" {
            hostile.world.write("workspace/.git/commondir", "../evil\n");
        } else {
            fs::remove_dir_all(hostile.world.at(".git")).unwrap();
            hostile.world.write("workspace/.git", "gitdir: evil\n");
        }
        for (name, arguments) in [
            ("git_diff", json!({})),
            ("git_diff_branches", json!({ "base": "feature/x", "head": "main" })),
            ("git_log", json!({ "count": 5 })),
            ("git_show_file", json!({ "revision": "main", "path": "docs/readme.md" })),
        ] {
            let shown = hostile.check(name, &arguments);
            // References still follow `commondir`, and name no program.
            let is_expected = match (way, name) {
                ("commondir", "git_diff") => shown.is_ok(),
                ("commondir", _) => true,
                _ => shown.is_err(),
            };
            assert!(is_expected, "{way} {name}: {shown:?}");
        }
    }
}

#[test]
fn git_tools_start_no_process_and_are_not_loaded_for_a_container() {
    let world = World::new();
    repository(&world);
    for name in ["git_diff", "git_diff_branches", "git_log", "git_show_file"] {
        let text = manifest(name);
        assert!(text.contains("childProcesses: false"), "{name}");
        let extends = if name == "git_diff" { "  extends: read\n  execution:\n" } else { "{extends: read}" };
        let contained = if name == "git_diff" {
            "  extends: read\n  execution:\n    sandbox: container\n"
        } else {
            "{extends: read, execution: {sandbox: container}}"
        };
        let why = world.loading_error(&text.replace(extends, contained)).unwrap();
        assert!(why.contains("`childProcesses: false` is not enforced in containers"), "{name}: {why}");
    }
}
