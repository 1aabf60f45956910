use std::{
    os::unix::fs::PermissionsExt as _,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use super::*;

/// Repeats `attack` while `work` runs, and at least as often as given.
fn while_swapping(swaps: usize, attack: impl Fn(usize) + Sync, work: impl Fn()) {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..swaps {
                attack(turn);
            }
            is_done.store(true, Relaxed);
        });
        while !is_done.load(Relaxed) {
            work();
        }
    });
}

/// Swaps `ready` and `name` atomically.
fn exchange(ground: &Ground, ready: &str, name: &str) {
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    let cwd = rustix::fs::CWD;
    rustix::fs::renameat_with(cwd, ground.path(ready), cwd, ground.path(name), flags).unwrap();
}

#[test]
fn file_swapped_for_a_symlink_is_never_read_through() {
    let ground = Ground::new();
    ground.put("ws/a", "plain");
    ground.link("aside", "../out/secret");
    let files = ground.files();
    while_swapping(
        2000,
        |_| exchange(&ground, "aside", "ws/a"),
        || match files.read_text("a") {
            Ok(text) => assert_eq!(text, "plain"),
            Err(error) => assert_eq!(error.reason, "path-escapes-base"),
        },
    );
    assert!(ground.is_untouched());
}

#[test]
fn directory_swapped_for_a_symlink_is_never_searched_through() {
    let ground = Ground::new();
    ground.put("ws/d/secret", "plain");
    ground.link("aside", "../out");
    let files = ground.files();
    while_swapping(
        2000,
        |_| exchange(&ground, "aside", "ws/d"),
        || {
            for said in everything_said_about(&files, "d/secret") {
                assert!(!said.contains(CANARY), "{said}");
            }
            let hits = files.search_in_files(".", "*", "CANARY", SearchOptions::default()).unwrap();
            assert_eq!(hits, []);
            let found = files.find(".", "deep", FindOptions::default()).unwrap();
            assert_eq!(found, Vec::<String>::new());
        },
    );
    assert!(ground.is_untouched());
}

#[test]
fn directory_swapped_for_a_symlink_is_never_written_through() {
    let ground = Ground::new();
    ground.put("ws/d/e/f", "plain");
    ground.link("aside", "../out");
    let files = ground.files();
    while_swapping(
        2000,
        |_| exchange(&ground, "aside", "ws/d"),
        || {
            let _ = files.write_text("d/secret", "overwritten");
            let _ = files.append_text("d/new/secret", "overwritten");
            let _ = files.delete("d/secret");
            let _ = files.move_("d/e", "moved").and_then(|_| files.move_("moved", "d/e"));
            let _ = files.delete_dir("d/deep");
            let _ = files.delete_dir("d/new");
        },
    );
    assert!(ground.is_untouched());
}

/// A directory is moved out of the workspace while a file is read through a symlink with `..` in it.
#[test]
fn moved_out_directory_does_not_lead_outside() {
    let ground = Ground::new();
    ground.put("ws/d/e/f", "plain");
    ground.link("ws/d/e/up", "../../../out/secret");
    ground.link("ws/d/e/back", "../../d/e/f");
    let files = ground.files();
    while_swapping(
        2000,
        |turn| {
            let (from, to) = if turn % 2 == 0 { ("ws/d", "out-d") } else { ("out-d", "ws/d") };
            fs::rename(ground.path(from), ground.path(to)).unwrap();
        },
        || {
            for path in ["d/e/up", "d/e/back", "d/e/f"] {
                assert!(!files.read_text(path).is_ok_and(|text| text != "plain"), "{path}");
            }
        },
    );
}

#[test]
fn block_holds_while_its_symlink_is_swapped() {
    let ground = Ground::new();
    ground.put("ws/keys/id", CANARY);
    ground.put("ws/a", "plain");
    ground.link("ws/aside", "keys/id");
    let files = ground.files_with(|grants| grants.blocked = vec![pattern("$WORKSPACE/keys")]);
    while_swapping(
        2000,
        |_| exchange(&ground, "ws/aside", "ws/a"),
        || match files.read_text("a") {
            Ok(text) => assert_eq!(text, "plain"),
            Err(error) => assert_eq!(error.reason, "path-blocked"),
        },
    );
}

#[test]
fn reader_never_sees_a_partial_write() {
    let ground = Ground::new();
    ground.put("ws/a", "0".repeat(100_000));
    let (writer, reader) = (ground.files(), ground.files());
    while_swapping(
        60,
        |turn| drop(writer.write_text("a", &(turn % 10).to_string().repeat(100_000)).unwrap()),
        || {
            let text = reader.read_text("a").unwrap();
            assert_eq!(text.len(), 100_000);
            assert!(text.bytes().all(|byte| Some(byte) == text.bytes().next()));
        },
    );
}

#[test]
fn concurrent_appends_are_all_kept() {
    let ground = Ground::new();
    let files = [ground.files(), ground.files()];
    thread::scope(|scope| {
        for files in &files {
            for _ in 0..2 {
                scope.spawn(|| (0..15).for_each(|_| drop(files.append_text("log", "line\n").unwrap())));
            }
        }
    });
    assert_eq!(files[0].line_count("log").unwrap(), 60);
}

/// Appends also wait for each other without a state directory, as in a test of a draft.
#[test]
fn appends_are_kept_without_a_state_directory() {
    let ground = Ground::new();
    let files = [(); 2].map(|()| ground.files_with(|grants| grants.locks = ground.path("nowhere/turns")));
    thread::scope(|scope| {
        for files in &files {
            scope.spawn(|| (0..15).for_each(|_| drop(files.append_text("log", "line\n").unwrap())));
        }
    });
    assert_eq!(files[0].line_count("log").unwrap(), 30);
    assert!(!ground.path("nowhere").exists());
}

/// A command that may only read can open the workspace and lock it.
#[test]
fn lock_on_the_workspace_blocks_no_call() {
    let ground = Ground::new();
    let held = fs::File::open(ground.path("ws")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let files = ground.files();
    files.write_text("a", "one").unwrap();
    files.append_text("a", " two").unwrap();
    files.edit_text("a", "one", "1", Occurrences::Only).unwrap();
    files.move_("a", "b").unwrap();
    assert!(files.delete("b").unwrap());
}

#[test]
fn gateways_lock_the_workspace_and_report_the_wait() {
    let ground = Ground::new();
    let files = ground.files();
    files.write_text("a", "one").unwrap();
    let mut locks = fs::read_dir(ground.state.path().join("turns")).unwrap();
    let turn = locks.next().unwrap().unwrap().path();
    assert!(locks.next().is_none());
    assert_eq!(fs::metadata(&turn).unwrap().permissions().mode() & 0o777, 0o600);
    let held = fs::File::open(turn).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = files.write_text("a", "two").unwrap_err();
    assert_eq!(
        (error.reason, error.message.as_str()),
        ("io", "other calls keep changing the workspace; try again")
    );
    assert_eq!(ground.content("ws/a"), "one");
    drop(held);
    files.write_text("a", "two").unwrap();
}
