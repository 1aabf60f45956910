//! Tests blocked paths that do not exist and are created by a command.

use std::{
    fs,
    future::Future,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    pin::Pin,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use serde_json::json;
use toolgate_gate::{Reason, RunReport, StopFlag};
use toolgate_handlers::{CommandOrder, CommandOutcome, Launch};

use crate::world::{World, call, nest_too_deep, request, runtime, said};

/// Runs this in the writable directory instead of a command.
struct Making(fn(&Path));

impl Launch for Making {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        (self.0)(&order.cwd);
        Box::pin(async { said("done") })
    }
}

fn manifest(blocked: &str) -> String {
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: write
handler: {{cli: {{command: tee, cwd: $WORKSPACE/docs}}}}
capability: {{execution: {{sandbox: process, allowedPaths: [$WORKSPACE], blockedPaths: [{blocked}]}}}}
"
    )
}

fn run(world: &World, blocked: &str, making: fn(&Path)) -> RunReport {
    let tool = world.load(&manifest(blocked)).unwrap();
    call(&world.handlers(Arc::new(Making(making))).runnable(tool), &json!({})).unwrap()
}

/// `made` is the path that would exist without the quarantine.
#[track_caller]
fn check(blocked: &str, making: fn(&Path), made: &[&str]) {
    let world = World::new();
    let report = run(&world, blocked, making);
    let failure = report.outcome.unwrap_err();
    assert_eq!(failure.reason, Reason::BlockedPathMade, "{}", failure.message);
    for path in made.iter().map(|path| world.at(&format!("docs/{path}"))) {
        assert!(fs::symlink_metadata(&path).is_err(), "{path} is still there");
        let line = format!("creating `{path}`, which is blocked (renamed to `{path}.refused-");
        assert!(failure.message.contains(&line), "{line}: {}", failure.message);
        assert!(report.refused.iter().any(|told| told.starts_with(&line)), "{:?}", report.refused);
    }
}

#[track_caller]
fn check_left_alone(blocked: &str, making: fn(&Path)) {
    let report = run(&World::new(), blocked, making);
    assert_eq!(report.outcome.unwrap(), Some(json!("done")));
    assert_eq!(report.refused, Vec::<String>::new());
}

const ENV: &str = "'$WORKSPACE/**/.env*'";
const HOOKS: &str = "'$WORKSPACE/**/.git/hooks/**'";
const NAMED: &str = "$WORKSPACE/docs/deep/key";

fn hook(folder: &Path) {
    fs::create_dir_all(folder.join("hooks")).unwrap();
    fs::write(folder.join("hooks/pre-commit"), "#!/bin/sh\n").unwrap();
}

#[test]
fn created_blocked_file_is_quarantined() {
    check(ENV, |docs| fs::write(docs.join(".env"), "x").unwrap(), &[".env"]);
    check(ENV, |docs| fs::rename(docs.join("readme.md"), docs.join(".env.local")).unwrap(), &[".env.local"]);
    check(ENV, |docs| fs::hard_link(docs.join("readme.md"), docs.join(".env")).unwrap(), &[".env"]);
    check(ENV, |docs| symlink("nowhere", docs.join(".env")).unwrap(), &[".env"]);
    check(ENV, |docs| fs::create_dir_all(docs.join("a/.env/b")).unwrap(), &["a/.env"]);
    check(HOOKS, |docs| hook(&docs.join(".git")), &[".git/hooks"]);
    let named = |docs: &Path| {
        fs::create_dir(docs.join("deep")).unwrap();
        fs::write(docs.join("deep/key"), "x").unwrap();
    };
    check(NAMED, named, &["deep/key"]);
    // A quarantine name is blocked like the name it comes from.
    check(
        ENV,
        |docs| fs::write(docs.join(".env.refused-00000000"), "x").unwrap(),
        &[".env.refused-00000000"],
    );
}

#[test]
fn symlink_does_not_replace_a_directory_above_a_blocked_path() {
    let git = |docs: &Path| {
        hook(&docs.join("innocent"));
        symlink("innocent", docs.join(".git")).unwrap();
    };
    check(HOOKS, git, &[".git"]);
    let deep = |docs: &Path| {
        fs::create_dir(docs.join("other")).unwrap();
        fs::write(docs.join("other/key"), "x").unwrap();
        symlink("other", docs.join("deep")).unwrap();
    };
    check(NAMED, deep, &["deep"]);
}

#[test]
fn directory_modes_do_not_hide_a_blocked_path() {
    // Searchable but not readable. Root can read it anyway, and finds the directory in it.
    let unreadable = |docs: &Path| {
        hook(&docs.join(".git"));
        fs::set_permissions(docs.join(".git"), fs::Permissions::from_mode(0o311)).unwrap();
    };
    let world = World::new();
    let failure = run(&world, HOOKS, unreadable).outcome.unwrap_err();
    assert_eq!(failure.reason, Reason::BlockedPathMade, "{}", failure.message);
    assert!(fs::symlink_metadata(world.at("docs/.git/hooks")).is_err(), "{}", failure.message);
    for entry in fs::read_dir(world.at("docs")).unwrap() {
        // Otherwise the directory could not be deleted.
        fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let unwritable = |docs: &Path| {
        hook(&docs.join(".git"));
        fs::set_permissions(docs.join(".git"), fs::Permissions::from_mode(0o555)).unwrap();
    };
    check(HOOKS, unwritable, &[".git/hooks"]);
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// As a user for whom modes apply, also if root runs the tests. Threads started meanwhile are affected too.
fn as_an_ordinary_user(act: fn()) {
    let limited = thread::spawn(move || {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets).unwrap();
        act();
    });
    limited.join().unwrap();
}

#[test]
fn existing_directory_is_searched_and_never_moved() {
    as_an_ordinary_user(|| {
        // After a move, its blocked names would no longer be blocked.
        let world = World::new();
        world.write("workspace/docs/.cursor/.env", "TOKEN=1");
        for blocked in [ENV, "$WORKSPACE/docs/.cursor/.env"] {
            let report = run(&world, blocked, |docs| set_mode(docs.join(".cursor"), 0o000));
            assert_eq!(report.outcome.unwrap(), Some(json!("done")));
            assert_eq!(fs::read_to_string(world.at("docs/.cursor/.env")).unwrap(), "TOKEN=1");
            let order = world.order(&manifest(blocked), &json!({}));
            assert!(
                order.view.hidden.contains(&world.at("docs/.cursor/.env").into()),
                "{:?}",
                order.view.hidden
            );
        }
        let ways: [fn(&Path); 3] = [
            |docs| set_mode(docs.join(".git"), 0o000),
            |docs| set_mode(docs.join(".git"), 0o400),
            |docs| set_mode(docs, 0o000),
        ];
        for closed in ways {
            let world = World::new();
            world.write("workspace/docs/.git/config", "x");
            let tool = world.load(&manifest(HOOKS)).unwrap();
            let making = Arc::new(Closing(closed));
            let report = call(&world.handlers(making).runnable(tool), &json!({})).unwrap();
            assert_eq!(report.outcome.unwrap_err().reason, Reason::BlockedPathMade);
            set_mode(world.at("docs/.git"), 0o700);
            assert_eq!(fs::read_to_string(world.at("docs/.git/config")).unwrap(), "x");
            assert!(!Path::new(&world.at("docs/.git/hooks")).exists());
        }
    });
}

/// Creates a hook, and closes a directory around it.
struct Closing(fn(&Path));

impl Launch for Closing {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        hook(&order.cwd.join(".git"));
        (self.0)(&order.cwd);
        Box::pin(async { said("done") })
    }
}

#[test]
fn new_closed_directory_hides_nothing() {
    as_an_ordinary_user(|| {
        let closed = |docs: &Path| {
            fs::create_dir(docs.join("deep")).unwrap();
            fs::write(docs.join("deep/key"), "x").unwrap();
            set_mode(docs.join("deep"), 0o000);
        };
        check(NAMED, closed, &["deep/key"]);
        let around = |docs: &Path| {
            hook(&docs.join("a/.git"));
            set_mode(docs.join("a/.git"), 0o000);
            set_mode(docs.join("a"), 0o600);
        };
        check(HOOKS, around, &["a/.git/hooks"]);
    });
}

#[test]
fn directory_closed_to_the_gateway_is_hidden_and_stays_closed() {
    as_an_ordinary_user(|| {
        let world = World::new();
        world.write("workspace/docs/private/deep/.env", "x");
        let private = world.at("docs/private");
        set_mode(&private, 0o000);
        for blocked in [ENV, "$WORKSPACE/docs/private/deep/.env"] {
            let order = world.order(&manifest(blocked), &json!({}));
            assert!(
                order.view.hidden.contains(&private.clone().into()),
                "{blocked}: {:?}",
                order.view.hidden
            );
            let report = run(&world, blocked, |_| ());
            assert_eq!(report.outcome.unwrap(), Some(json!("done")));
            assert_eq!(mode(&private), 0);
        }
        set_mode(&private, 0o700);
    });
}

#[test]
fn quarantine_restores_the_directory_mode() {
    as_an_ordinary_user(|| {
        let world = World::new();
        world.write("workspace/docs/.git/config", "x");
        let report = run(&world, HOOKS, |docs| {
            hook(&docs.join(".git"));
            set_mode(docs.join(".git"), 0o555);
        });
        assert_eq!(report.outcome.unwrap_err().reason, Reason::BlockedPathMade);
        assert!(!Path::new(&world.at("docs/.git/hooks")).exists());
        assert_eq!(mode(world.at("docs/.git")), 0o555);
        set_mode(world.at("docs/.git"), 0o755);
    });
}

#[test]
fn name_too_long_to_keep_stays_blocked() {
    let world = World::new();
    run(&world, ENV, |docs| fs::write(docs.join(format!(".env{}", "n".repeat(250))), "TOKEN=1").unwrap());
    let entries = fs::read_dir(world.at("docs")).unwrap().map(|entry| entry.unwrap().path());
    let aside: Vec<_> = entries.filter(|path| path.to_str().unwrap().contains("/.refused-")).collect();
    assert_eq!(aside.len(), 1);
    for blocked in [ENV, HOOKS, "$WORKSPACE/docs/.env"] {
        let order = world.order(&manifest(blocked), &json!({}));
        assert!(order.view.hidden.contains(&aside[0]), "{blocked}: {:?}", order.view.hidden);
    }
}

#[test]
fn quarantine_follows_no_symlink_and_loses_nothing() {
    let world = World::new();
    world.write("workspace/src/key", "not to be moved");
    let deep = |docs: &Path| symlink("../src", docs.join("deep")).unwrap();
    let report = run(&world, NAMED, deep);
    assert_eq!(report.outcome.unwrap_err().reason, Reason::BlockedPathMade);
    assert_eq!(fs::read_to_string(world.at("src/key")).unwrap(), "not to be moved");
    let world = World::new();
    run(&world, ENV, |docs| fs::write(docs.join(".env"), "kept").unwrap());
    let entries = fs::read_dir(world.at("docs")).unwrap().map(|entry| entry.unwrap().path());
    let aside: Vec<_> = entries.filter(|path| path.to_str().unwrap().contains(".refused-")).collect();
    assert_eq!(aside.iter().map(|path| fs::read_to_string(path).unwrap()).collect::<Vec<_>>(), ["kept"]);
    // It may contain a secret: a quarantined file stays hidden, by pattern and by name.
    for blocked in [ENV, "$WORKSPACE/docs/.env"] {
        let order = world.order(&manifest(blocked), &json!({}));
        assert!(order.view.hidden.contains(&aside[0]), "{blocked}: {:?}", order.view.hidden);
    }
}

#[test]
fn record_of_many_created_paths_stays_short() {
    let world = World::new();
    let report = run(&world, ENV, |docs| {
        for number in 0..150 {
            fs::write(docs.join(format!(".env{number}")), "x").unwrap();
        }
    });
    assert_eq!((report.refused.len(), report.refused_dropped), (100, 50));
    assert!(report.outcome.unwrap_err().message.contains(" and 145 more;"));
    let names = fs::read_dir(world.at("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_str().unwrap().contains(".refused-")).count(), 150);
}

#[test]
fn existing_and_unblocked_paths_are_left_alone() {
    check_left_alone(ENV, |docs| fs::write(docs.join("env"), "x").unwrap());
    check_left_alone("$WORKSPACE/docs/readme.md", |docs| fs::write(docs.join("readme.md"), "x").unwrap());
    check_left_alone(HOOKS, |docs| symlink("readme.md", docs.join("link")).unwrap());
    check_left_alone(HOOKS, |docs| fs::create_dir_all(docs.join(".git/objects")).unwrap());
    let world = World::new();
    fs::create_dir(world.at("docs/innocent")).unwrap();
    symlink("innocent", world.at("docs/.git")).unwrap();
    let report = run(&world, HOOKS, |_| ());
    assert_eq!(report.outcome.unwrap(), Some(json!("done")));
}

#[test]
fn call_fails_if_the_tree_cannot_be_checked() {
    let world = World::new();
    let report = run(&world, ENV, |docs| {
        fs::write(docs.join(".env"), "x").unwrap();
        nest_too_deep(docs);
    });
    let failure = report.outcome.unwrap_err();
    assert_eq!(failure.reason, Reason::BlockedPathMade);
    assert!(failure.message.contains("cannot check whether"), "{}", failure.message);
    // Known paths are quarantined anyway, and so are directories that cannot be searched.
    for path in [".env".to_owned(), "d".repeat(200)] {
        assert!(!Path::new(&world.at(&format!("docs/{path}"))).exists(), "{path}: {}", failure.message);
    }
}

#[test]
fn known_paths_are_quarantined_also_if_the_search_is_incomplete() {
    let world = World::new();
    let report = run(&world, &format!("{HOOKS}, {NAMED}"), |docs| {
        for folder in ["deep", "flood"] {
            fs::create_dir(docs.join(folder)).unwrap();
        }
        for number in 0..=200_000 {
            fs::write(docs.join(format!("flood/{number}")), "").unwrap();
        }
        fs::write(docs.join("deep/key"), "x").unwrap();
        hook(&docs.join(".git"));
    });
    let failure = report.outcome.unwrap_err();
    assert!(failure.message.contains("cannot check whether"), "{}", failure.message);
    for path in ["docs/deep/key", "docs/.git/hooks"] {
        assert!(!Path::new(&world.at(path)).exists(), "{path}: {}", failure.message);
    }
}

/// Creates something, and never ends by itself.
struct Endless;

impl Launch for Endless {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        fs::write(order.cwd.join(".env"), "x").unwrap();
        Box::pin(std::future::pending())
    }
}

#[test]
fn cancelled_call_is_cleaned_up() {
    let world = World::new();
    let tool = world.handlers(Arc::new(Endless)).runnable(world.load(&manifest(ENV)).unwrap());
    let arguments = serde_json::Map::new();
    let survey = Arc::clone(&tool).survey(&arguments, &StopFlag::default()).unwrap();
    runtime().block_on(async {
        let run = survey.call.run(request(&arguments));
        let made = async {
            while !Path::new(&world.at("docs/.env")).exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! { _ = run => panic!("it ended"), () = made => {} }
    });
    let started = Instant::now();
    while Path::new(&world.at("docs/.env")).exists() {
        assert!(started.elapsed() < Duration::from_mins(1), "it is still there");
        thread::sleep(Duration::from_millis(20));
    }
}
