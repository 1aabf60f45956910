//! Attacks that race: the meaning of a path changes between check and use (TOCTOU).

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use toolgate_sandbox::{Access, Ending};

use super::{Attack, Hole, Inside, Verdict, hidden::rename_exchange, read, row, stage::Stage};
use crate::driver::{Tier, bind, finish, folder, jail, on_runtime, spawn};

pub fn table() -> Vec<Attack> {
    vec![
        row(
            "race_symlink",
            "a symlink alternates between a granted and another file while it is opened",
            VIEW,
            symlinks,
        )
        .meanwhile(flip_link)
        .unjailed(),
        row(
            "race_own_symlink",
            "the command changes its own symlink while another thread opens it",
            VIEW,
            own_links,
        )
        .unjailed(),
        row(
            "race_rename_hidden",
            "a hidden directory is moved back and forth while it is opened",
            HIDDEN,
            renamed,
        )
        .meanwhile(move_hidden)
        .hole(Hole::Cut(|order, _| order.view.hidden.clear())),
        row(
            "race_rename_readonly",
            "a read-only directory is exchanged while it is written",
            WRITE,
            exchanged,
        )
        .hole(Hole::Cut(|order, _| order.view.binds.retain(|bind| !bind.at.ends_with("fixed")))),
        row("race_climb", "a directory is moved outwards while a process climbs out of it", VIEW, climbing)
            .meanwhile(move_folder)
            .unjailed(),
    ]
}

/// Repeats the attempt for a while, until it succeeds.
fn again_and_again(mut attempt: impl FnMut() -> Option<String>) -> Verdict {
    let started = Instant::now();
    let mut count = 0_u64;
    while started.elapsed() < A_WHILE {
        count += 1;
        if let Some(had) = attempt() {
            return Verdict::Broke(had);
        }
    }
    Verdict::Held(format!("{count} times"))
}

/// Any text but the granted one.
fn other(text: std::io::Result<String>) -> Option<String> {
    text.ok().filter(|text| text.starts_with("secret"))
}

fn flip_link(stage: &Stage) {
    for target in ["../plain", "../../outside/canary"] {
        let _ = symlink(target, stage.folder.join("work/free/next"));
        let _ = fs::rename(stage.folder.join("work/free/next"), stage.folder.join("work/free/flipping"));
    }
}

fn symlinks(inside: &Inside) -> Verdict {
    again_and_again(|| other(read(inside.work().join("free/flipping"))))
}

fn own_links(inside: &Inside) -> Verdict {
    let (next, name) = (inside.work().join("free/next"), inside.work().join("free/flipping"));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                for target in [inside.work().join("plain"), inside.canary()] {
                    let _ = symlink(target, &next);
                    let _ = fs::rename(&next, &name);
                }
            }
        });
        let verdict = again_and_again(|| other(read(&name)));
        is_over.store(true, std::sync::atomic::Ordering::SeqCst);
        verdict
    })
}

fn move_hidden(stage: &Stage) {
    let (here, there) = (stage.folder.join("work/hidden"), stage.folder.join("work/moved"));
    // Not before the command runs: a path that is missing while the jail is created cannot be hidden, as
    // documented.
    if fs::read(stage.folder.join("work/plain")).is_ok_and(|text| text == b"ready") {
        let _ = fs::rename(&here, &there);
    }
    let _ = fs::rename(&there, &here);
}

fn renamed(inside: &Inside) -> Verdict {
    let (here, there) = (inside.work().join("hidden/key"), inside.work().join("moved/key"));
    let _ = fs::write(inside.work().join("plain"), "ready");
    again_and_again(|| other(read(&here)).or_else(|| other(read(&there))))
}

fn exchanged(inside: &Inside) -> Verdict {
    let (fixed, own) = (inside.work().join("fixed"), inside.work().join("free/own"));
    let _ = fs::create_dir(&own);
    let names = [fixed.join("settled"), own.join("settled")];
    again_and_again(|| {
        let swapped = rename_exchange(&fixed, &own).is_ok();
        let written = names
            .iter()
            .any(|name| fs::exists(name).is_ok_and(|is| is) && fs::write(name, "changed").is_ok());
        (swapped || written).then(|| "changed".into())
    })
}

fn move_folder(stage: &Stage) {
    let (here, there) = (stage.folder.join("work/free/in"), stage.folder.join("outside/in"));
    let _ = fs::create_dir(&here);
    let _ = fs::rename(&here, &there);
    let _ = fs::remove_dir(there);
}

fn climbing(inside: &Inside) -> Verdict {
    let name = inside.work().join("free/in/../canary");
    let direct = inside.work().join("free/in/../../../outside/canary");
    again_and_again(|| other(read(&name)).or_else(|| other(read(&direct))))
}

/// The first command leaves a symlink at the working directory of the second one.
pub fn planted_working_folder() {
    for tier in [Tier::Namespaces, Tier::Landlock] {
        let folder = folder();
        for name in ["work/sub", "outside"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("outside/canary"), "secret").unwrap();
        let in_work = |script: &str, cwd: &Path| {
            let mut order = jail(tier, "/bin/sh", &["-c", script]);
            order.view.binds.push(bind(&folder.join("work"), Access::Write));
            cwd.clone_into(&mut order.cwd);
            order
        };
        let planted = finish(in_work("rmdir sub && ln -s ../outside sub", &folder.join("work")));
        assert_eq!(planted.ending, Ending::Exited(0), "{planted:?}");
        assert!(fs::symlink_metadata(folder.join("work/sub")).unwrap().is_symlink());
        let second =
            in_work("cat canary; echo x > canary; echo x > new; rm canary", &folder.join("work/sub"));
        let told = on_runtime(async {
            match spawn(second).await {
                Ok(running) => {
                    running.finish(Vec::new(), crate::driver::CAPS, crate::driver::PATIENCE).await.stdout
                }
                // In a view the directory does not exist.
                Err(_) => Vec::new(),
            }
        });
        assert_eq!(String::from_utf8_lossy(&told), "", "{tier:?}");
        assert_eq!(fs::read_to_string(folder.join("outside/canary")).unwrap(), "secret", "{tier:?}");
        assert_eq!(fs::read_dir(folder.join("outside")).unwrap().count(), 1, "{tier:?}");
    }
}

const A_WHILE: Duration = Duration::from_millis(200);
const VIEW: &str = "view; Landlock";
const HIDDEN: &str = "covers that are mounts; Landlock grants neighbours only";
const WRITE: &str = "read-only mounts; Landlock";
