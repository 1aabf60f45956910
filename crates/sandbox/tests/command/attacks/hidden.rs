//! Attacks on hidden paths in granted directories, and on the directories above them.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process::Command,
};

use toolgate_sandbox::CommandJail;

use super::{
    Attack, Hole, Inside, Verdict,
    call::{HERE, at, call, descriptor, path},
    must_fail, none_works, read, row,
    stage::Stage,
};

pub fn table() -> Vec<Attack> {
    vec![
        row("link_hidden", "a hidden file gets a hard link", HIDDEN, |inside| {
            let target = inside.work().join("free/second");
            must_fail(fs::hard_link(inside.work().join(".env"), &target).and_then(|()| read(target)))
        })
        .hole(Hole::Cut(nothing_hidden)),
        row(
            "link_hidden_by_descriptor",
            "a hidden file gets a hard link through `/proc/self/fd`",
            HIDDEN,
            by_fd,
        )
        .hole(Hole::Cut(nothing_hidden)),
        row(
            "link_hidden_by_empty_path",
            "a hidden file gets a hard link through `AT_EMPTY_PATH`",
            HIDDEN,
            by_empty,
        ),
        row(
            "rename_hidden",
            "a hidden directory is moved to a path that is not hidden",
            HIDDEN,
            rename_hidden,
        )
        .hole(Hole::Cut(nothing_hidden)),
        row(
            "rename_above_hidden",
            "a directory above a hidden one is moved, so the next command finds it",
            PINNED,
            rename_above,
        )
        .hole(Hole::Cut(nothing_hidden)),
        row(
            "rename_above_readonly",
            "a directory above a read-only one is moved and replaced by a forgery",
            PINNED,
            above_readonly,
        )
        .hole(Hole::Cut(|order, _| order.view.binds.retain(|bind| !bind.at.ends_with("inner")))),
        row("exchange_hidden", "a hidden directory is exchanged with a visible one", HIDDEN, exchange)
            .hole(Hole::Cut(nothing_hidden)),
        row("uncover_hidden", "the mask of a hidden path is unmounted", "seccomp; locked mounts", uncover),
        row(
            "use_hidden_in_system",
            "a hidden file in a system directory is read or executed",
            HIDDEN,
            use_in_system,
        )
        .changed(|order, _| order.view.hidden.push(IN_SYSTEM.into()))
        .hole(Hole::Cut(nothing_hidden)),
    ]
}

fn nothing_hidden(order: &mut CommandJail, _: &Stage) {
    order.view.hidden.clear();
}

fn by_fd(inside: &Inside) -> Verdict {
    let target = path(inside.work().join("free/second"));
    let opened = File::options().read(true).custom_flags(libc::O_PATH).open(inside.work().join(".env"));
    must_fail(opened.and_then(|file| {
        let name = path(format!("/proc/self/fd/{}", descriptor(&file)));
        call(libc::SYS_linkat, &[HERE, at(&name), HERE, at(&target), FOLLOW])?;
        read(inside.work().join("free/second"))
    }))
}

fn by_empty(inside: &Inside) -> Verdict {
    let target = path(inside.work().join("free/second"));
    let opened = File::options().read(true).custom_flags(libc::O_PATH).open(inside.work().join(".env"));
    must_fail(opened.and_then(|file| {
        call(libc::SYS_linkat, &[descriptor(&file), at(c""), HERE, at(&target), EMPTY_PATH])?;
        read(inside.work().join("free/second"))
    }))
}

fn rename_hidden(inside: &Inside) -> Verdict {
    let (from, to) = (inside.work().join("hidden"), inside.work().join("moved"));
    let (into, file) = (inside.work().join("free/moved"), inside.work().join("free/file"));
    none_works([
        ("beside", fs::rename(&from, &to).and_then(|()| read(to.join("key")))),
        ("below", fs::rename(&from, &into).and_then(|()| read(into.join("key")))),
        ("file", fs::rename(inside.work().join(".env"), &file).and_then(|()| read(&file))),
        ("over", fs::rename(inside.work().join("plain"), inside.work().join(".env")).map(|()| String::new())),
    ])
}

fn rename_above(inside: &Inside) -> Verdict {
    let (from, to) = (inside.work().join("deep"), inside.work().join("shallow"));
    none_works([
        ("move", fs::rename(&from, &to).map(|()| String::new())),
        ("exchange", rename_exchange(&from, &inside.work().join("free")).map(|()| String::new())),
        ("moved", read(to.join("hidden/key"))),
        ("in place", read(from.join("hidden/key"))),
        (
            "lifted",
            fs::rename(to.join("hidden"), inside.work().join("up"))
                .and_then(|()| read(inside.work().join("up/key"))),
        ),
    ])
}

fn above_readonly(inside: &Inside) -> Verdict {
    let (from, to) = (inside.work().join("outer/middle"), inside.work().join("free/middle"));
    let moved = fs::rename(&from, &to).and_then(|()| {
        fs::create_dir_all(from.join("inner"))?;
        fs::write(from.join("inner/settled"), "forged")
    });
    none_works([
        ("move", moved),
        ("higher", fs::rename(inside.work().join("outer"), inside.work().join("free/outer"))),
    ])
}

fn exchange(inside: &Inside) -> Verdict {
    let (hidden, own) = (inside.work().join("hidden"), inside.work().join("free/own"));
    let _ = fs::create_dir(&own);
    must_fail(rename_exchange(&hidden, &own).and_then(|()| read(own.join("key"))))
}

pub fn rename_exchange(one: &Path, other: &Path) -> io::Result<()> {
    let (one, other) = (path(one), path(other));
    call(libc::SYS_renameat2, &[HERE, at(&one), HERE, at(&other), 2]).map(drop)
}

fn uncover(inside: &Inside) -> Verdict {
    let places = [inside.work().join("hidden"), inside.work().join(".env")].map(path);
    let away = |place| call(libc::SYS_umount2, &[at(place), 2]);
    let lifted = call(libc::SYS_open_tree, &[HERE, at(&places[0]), 1]);
    let moved = call(libc::SYS_move_mount, &[HERE, at(&places[0]), HERE, at(&path(inside.work())), 0]);
    none_works([
        ("folder", away(&places[0])),
        ("file", away(&places[1])),
        ("copy", lifted),
        ("move", moved),
        ("read", read(inside.work().join("hidden/key")).map(|text| text.len())),
    ])
}

fn use_in_system(_: &Inside) -> Verdict {
    let length = |path: &str| read(path).map(|text| text.len().to_string());
    let run = Command::new(IN_SYSTEM).arg("/dev/null").output();
    none_works([
        ("by its name", length(IN_SYSTEM)),
        ("by the other name of its folder", length("/bin/cat")),
        ("through the root of a process", length(&format!("/proc/self/root{IN_SYSTEM}"))),
        ("run", run.map(|output| output.status.to_string())),
    ])
}

/// Exists on every host, and no attack needs it.
const IN_SYSTEM: &str = "/usr/bin/cat";
const FOLLOW: usize = 0x400;
const EMPTY_PATH: usize = 0x1000;
const HIDDEN: &str = "covers that are mounts; Landlock grants neighbours only";
const PINNED: &str = "folders above are mounts, too; Landlock grants neighbours only";
