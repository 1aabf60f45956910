//! Watches on a real disk: every kind of change ticks, with inotify and with polling.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use notify::{
    Event, EventKind,
    event::{AccessKind, AccessMode, CreateKind, RemoveKind},
};
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::watch, time::timeout};

use super::{FileChanges, FileWatch, InotifyUse, WatchMode, ends_a_watch, is_change, plan::WatchPlan, scan};
use crate::write_atomic;

struct Scene {
    folder: TempDir,
    inotify: InotifyUse,
    ticks: watch::Sender<u64>,
    runtime: Runtime,
}

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn watch(&self, names: &[&str]) -> FileWatch {
        let paths = names.iter().map(|name| self.path(name)).collect();
        FileWatch::start_with(
            paths,
            self.ticks.clone(),
            WatchMode { inotify: self.inotify, poll_every: LOOK_EVERY },
        )
        .unwrap()
    }

    /// Waits for a tick caused by `act` and not by an earlier change. A hang fails the test.
    #[track_caller]
    fn ticks_after(&self, act: impl FnOnce()) {
        let mut receiver = self.ticks.subscribe();
        self.runtime.block_on(async {
            while timeout(STILL, receiver.changed()).await.is_ok() {}
            act();
            timeout(HANG, receiver.changed()).await.expect("a tick").unwrap();
        });
    }
}

/// Runs the test with inotify and with polling.
fn both(test: impl Fn(&Scene) + Sync) {
    std::thread::scope(|scope| {
        for inotify in [InotifyUse::Enabled, InotifyUse::Disabled] {
            let test = &test;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                let folder = tempfile::tempdir().unwrap();
                test(&Scene { folder, inotify, ticks: watch::Sender::new(0), runtime });
            });
        }
    });
}

#[test]
fn every_kind_of_write_ticks() {
    both(|scene| {
        fs::create_dir(scene.path("tools")).unwrap();
        let _watch = scene.watch(&["tools"]);
        let file = scene.path("tools/a.json");
        scene.ticks_after(|| fs::write(&file, "1").unwrap());
        scene.ticks_after(|| {
            fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"2").unwrap();
        });
        scene.ticks_after(|| write_atomic(&file, b"3").unwrap());
        scene.ticks_after(|| fs::rename(&file, scene.path("tools/b.json")).unwrap());
        scene.ticks_after(|| fs::remove_file(scene.path("tools/b.json")).unwrap());
    });
}

#[test]
fn new_directories_are_watched() {
    both(|scene| {
        fs::create_dir(scene.path("tools")).unwrap();
        let _watch = scene.watch(&["tools"]);
        scene.ticks_after(|| fs::create_dir_all(scene.path("tools/a/b")).unwrap());
        scene.ticks_after(|| fs::write(scene.path("tools/a/b/tool.json"), "1").unwrap());
    });
}

#[test]
fn single_file_is_watched_through_renames() {
    both(|scene| {
        let file = scene.path("toolgate.yaml");
        fs::write(&file, "1").unwrap();
        let _watch = scene.watch(&["toolgate.yaml"]);
        scene.ticks_after(|| write_atomic(&file, b"2").unwrap());
        scene.ticks_after(|| fs::write(&file, "in place").unwrap());
        scene.ticks_after(|| fs::remove_file(&file).unwrap());
        scene.ticks_after(|| fs::write(&file, "back").unwrap());
    });
}

#[test]
fn missing_path_is_watched_until_it_exists() {
    both(|scene| {
        let _watch = scene.watch(&["later/tools", "later/toolgate.yaml"]);
        scene.ticks_after(|| fs::create_dir_all(scene.path("later/tools")).unwrap());
        scene.ticks_after(|| fs::write(scene.path("later/toolgate.yaml"), "1").unwrap());
        scene.ticks_after(|| fs::write(scene.path("later/tools/a.json"), "1").unwrap());
    });
}

#[test]
fn recreated_directory_is_watched_again() {
    both(|scene| {
        fs::create_dir_all(scene.path("deep/tools")).unwrap();
        let _watch = scene.watch(&["deep/tools"]);
        scene.ticks_after(|| fs::remove_dir_all(scene.path("deep")).unwrap());
        scene.ticks_after(|| fs::create_dir_all(scene.path("deep/tools")).unwrap());
        scene.ticks_after(|| fs::write(scene.path("deep/tools/a.json"), "1").unwrap());
        scene.ticks_after(|| {
            fs::remove_dir_all(scene.path("deep/tools")).unwrap();
            fs::create_dir(scene.path("deep/tools")).unwrap();
        });
        scene.ticks_after(|| fs::write(scene.path("deep/tools/b.json"), "1").unwrap());
    });
}

#[test]
fn replaced_ancestor_ticks() {
    both(|scene| {
        fs::create_dir_all(scene.path("a/b/c/tools")).unwrap();
        fs::create_dir_all(scene.path("new/b/c/tools")).unwrap();
        let _watch = scene.watch(&["a/b/c/tools"]);
        scene.ticks_after(|| {
            fs::rename(scene.path("a"), scene.path("old")).unwrap();
            fs::rename(scene.path("new"), scene.path("a")).unwrap();
        });
        scene.ticks_after(|| fs::write(scene.path("a/b/c/tools/a.json"), "1").unwrap());
    });
}

#[test]
fn changed_symlink_ticks_and_its_new_target_is_watched() {
    both(|scene| {
        for name in ["one", "two"] {
            fs::create_dir(scene.path(name)).unwrap();
        }
        symlink(scene.path("one"), scene.path("current")).unwrap();
        let _watch = scene.watch(&["current"]);
        scene.ticks_after(|| fs::write(scene.path("one/a.json"), "1").unwrap());
        scene.ticks_after(|| {
            symlink(scene.path("two"), scene.path("next")).unwrap();
            fs::rename(scene.path("next"), scene.path("current")).unwrap();
        });
        scene.ticks_after(|| fs::write(scene.path("two/a.json"), "1").unwrap());
    });
}

/// `walk` treats a symlink to a file as the file. Its target may be anywhere, even in a skipped directory.
#[test]
fn linked_file_is_watched_at_its_target() {
    both(|scene| {
        for folder in ["tools/sub", "tools/.kept", "shared", "other"] {
            fs::create_dir_all(scene.path(folder)).unwrap();
        }
        let [say, kept, other] =
            ["shared/say.json", "tools/.kept/a.json", "other/b.json"].map(|name| scene.path(name));
        for file in [&say, &kept, &other] {
            fs::write(file, "1").unwrap();
        }
        symlink(&say, scene.path("tools/sub/say.json")).unwrap();
        symlink("../.kept/a.json", scene.path("tools/sub/a.json")).unwrap();
        let _watch = scene.watch(&["tools"]);
        scene.ticks_after(|| fs::write(&say, "22").unwrap());
        scene.ticks_after(|| write_atomic(&say, b"333").unwrap());
        scene.ticks_after(|| fs::write(&kept, "22").unwrap());
        scene.ticks_after(|| symlink(&other, scene.path("tools/b.json")).unwrap());
        scene.ticks_after(|| fs::write(&other, "22").unwrap());
        scene.ticks_after(|| fs::create_dir_all(scene.path("tools/sub/new")).unwrap());
        scene.ticks_after(|| fs::write(scene.path("tools/sub/new/c.json"), "1").unwrap());
    });
}

#[test]
fn dropped_events_tick_and_renew_the_watches() {
    both(|scene| {
        fs::create_dir(scene.path("tools")).unwrap();
        let watch = scene.watch(&["tools"]);
        scene.ticks_after(|| watch.signals.lose());
        scene.ticks_after(|| fs::write(scene.path("tools/a.json"), "1").unwrap());
    });
}

#[test]
fn watch_ends_when_it_is_dropped() {
    both(|scene| {
        fs::create_dir(scene.path("tools")).unwrap();
        let watch = scene.watch(&["tools"]);
        let signals = std::sync::Arc::downgrade(&watch.signals);
        drop(watch);
        // Our thread has ended; the one of the library ends soon after.
        let start = Instant::now();
        while signals.upgrade().is_some() {
            assert!(start.elapsed() < HANG, "something is left");
            std::thread::yield_now();
        }
    });
}

#[test]
fn long_burst_ticks_before_it_ends() {
    both(|scene| {
        fs::create_dir(scene.path("tools")).unwrap();
        let _watch = scene.watch(&["tools"]);
        let receiver = scene.ticks.subscribe();
        let start = Instant::now();
        // Faster than the quiet period, until the tick arrives.
        for number in 0_u64.. {
            fs::write(scene.path("tools/a.json"), number.to_string()).unwrap();
            if receiver.has_changed().unwrap() {
                break;
            }
            assert!(start.elapsed() < HANG, "no tick");
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn only_targets_and_their_ancestors_matter() {
    let folder = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir(base.join("tools")).unwrap();
    fs::write(base.join("toolgate.yaml"), "").unwrap();
    let plan =
        WatchPlan::of(&[base.join("tools"), base.join("toolgate.yaml"), base.join("later/policy.cedar")]);
    let concerns = |name: &str| plan.concerns(&base.join(name));
    for meant in [
        "tools",
        "tools/a.json",
        "tools/a/b.json",
        "tools/.a.json",
        "toolgate.yaml",
        "later",
        "later/policy.cedar",
    ] {
        assert!(concerns(meant), "{meant}");
    }
    let beside = [
        "state.db-wal",
        "toolgate.yaml~",
        "tools2",
        "later/other",
        "tools/.git/index",
        "tools/a/node_modules/x.json",
        "tools/target/x.json",
        "tools/.toolgate-x.tmp",
    ];
    for other in beside {
        assert!(!concerns(other), "{other}");
    }
    assert!(plan.concerns(&base), "an ancestor that goes away takes everything with it");
}

#[test]
fn reading_is_not_a_change() {
    let event = |kind| Event::new(kind);
    assert!(!is_change(&event(EventKind::Access(AccessKind::Open(AccessMode::Any)))));
    assert!(!is_change(&event(EventKind::Access(AccessKind::Close(AccessMode::Read)))));
    assert!(is_change(&event(EventKind::Access(AccessKind::Close(AccessMode::Write)))));
    assert!(is_change(&event(EventKind::Create(CreateKind::File))));
}

/// A file system may give the new directory the inode of the old one. The plan is then the same, but its watch is dead.
#[test]
fn removed_directory_ends_its_watch() {
    let folder = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir_all(base.join("tools/sub")).unwrap();
    let plan = WatchPlan::of(&[base.join("tools"), base.join("toolgate.yaml")]);
    let ends = |kind, name: &str| ends_a_watch(&Event::new(kind).add_path(base.join(name)), &plan);
    let renamed = EventKind::Modify(notify::event::ModifyKind::Name(notify::event::RenameMode::From));
    for kind in [EventKind::Remove(RemoveKind::Folder), EventKind::Remove(RemoveKind::Other), renamed] {
        assert!(ends(kind, "tools"), "{kind:?}");
        assert!(ends(kind, ""), "{kind:?}");
        assert!(!ends(kind, "tools/sub"), "below a registered folder the watcher follows by itself");
        assert!(!ends(kind, "toolgate.yaml"), "a file is watched through its folder");
    }
    assert!(!ends(EventKind::Create(CreateKind::Folder), "tools"));
}

#[test]
fn fingerprint_covers_what_walk_finds() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("tools")];
    let write = |name: &str, text: &str| {
        let path: &Path = &folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let nothing = scan::fingerprint(&paths);
    write("tools/a.json", "1");
    let one = scan::fingerprint(&paths);
    assert_ne!(one, nothing);
    assert_eq!(scan::fingerprint(&paths), one, "looking changes nothing");
    write("other/a.json", "1");
    assert_eq!(scan::fingerprint(&paths), one);
    write("tools/.git/index", "1");
    let with_git = scan::fingerprint(&paths);
    write("tools/.git/index", "22");
    assert_eq!(scan::fingerprint(&paths), with_git);
    write("tools/a.json", "22");
    assert_ne!(scan::fingerprint(&paths), with_git);
}

/// Longer than the polling interval.
const STILL: Duration = Duration::from_millis(350);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const HANG: Duration = Duration::from_secs(30);

/// Changes carry their paths; lost events count as a change of everything.
#[test]
fn changes_carry_their_paths() {
    both(|scene| {
        fs::create_dir(scene.path("tools")).unwrap();
        fs::write(scene.path("tools/a.json"), "1").unwrap();
        let watch = scene.watch(&["tools"]);
        assert_eq!(watch.take_changes(), FileChanges::default());
        scene.ticks_after(|| fs::write(scene.path("tools/a.json"), "2").unwrap());
        let real = fs::canonicalize(scene.path("tools")).unwrap();
        let expected = match scene.inotify {
            InotifyUse::Enabled => FileChanges::Paths([real.join("a.json")].into()),
            InotifyUse::Disabled => FileChanges::Everything,
        };
        assert_eq!(watch.take_changes(), expected);
        assert_eq!(watch.take_changes(), FileChanges::default());
        scene.ticks_after(|| {
            fs::rename(scene.path("tools"), scene.path("old")).unwrap();
            fs::create_dir(scene.path("tools")).unwrap();
        });
        assert_eq!(watch.take_changes(), FileChanges::Everything);
    });
}

/// The check runs every second. Walking the directories would use CPU in proportion to the number of files.
#[test]
fn idle_check_does_not_walk_and_still_follows_links() {
    let folder = tempfile::tempdir().unwrap();
    let [tools, one, two] = ["tools", "one.json", "two.json"].map(|name| folder.path().join(name));
    fs::create_dir(&tools).unwrap();
    fs::write(&one, "").unwrap();
    fs::write(&two, "").unwrap();
    symlink(&one, tools.join("link.json")).unwrap();
    let paths = vec![tools.clone()];
    let plan = WatchPlan::of(&paths);
    assert_eq!(plan, plan.again(&paths));
    // A walk would find it.
    symlink(&two, tools.join("new.json")).unwrap();
    assert_eq!(plan, plan.again(&paths));
    assert_ne!(plan, WatchPlan::of(&paths));
    fs::remove_file(tools.join("link.json")).unwrap();
    symlink(&two, tools.join("link.json")).unwrap();
    assert_ne!(plan, plan.again(&paths), "a known symlink leads elsewhere");
}
