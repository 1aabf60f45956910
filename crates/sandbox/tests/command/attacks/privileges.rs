//! Attacks that try to gain privileges: other namespaces, other ids, capabilities, privileged programs.

use std::{fs::File, io, path::Path, process::Command};

use super::{
    Attack, Inside, Verdict,
    call::{HERE, NONE, at, call, descriptor, leave, of, path, signed},
    must_fail, none_works, row,
    stage::STRANGE_GROUP,
};

pub fn table() -> Vec<Attack> {
    let mut table = vec![
        row("unshare_user", "a user namespace gives every capability", SECCOMP, |_| {
            none_works(
                [0x1000_0000, 0x0002_0000, 0x4000_0000, 0x2000_0000, 0x0800_0000]
                    .map(|flag: usize| ("unshare", call(libc::SYS_unshare, &[flag]))),
            )
        })
        .unjailed(),
        row("clone_user", "a child is created in new namespaces (`clone`)", SECCOMP, clone).unjailed(),
        row(
            "clone3_user",
            "a child is created in new namespaces (`clone3`, whose flags filters cannot check)",
            SECCOMP,
            clone3,
        )
        .unjailed(),
        row("enter_namespaces", "namespaces of another process are entered", SECCOMP, enter).unjailed_root(),
        row("other_ids", "the user or group id is changed", NO_RIGHTS, ids).unjailed_root(),
        row("other_groups", "supplementary groups are added", "seccomp; no capability", |_| {
            let mut groups = [STRANGE_GROUP, 0];
            must_fail(call(libc::SYS_setgroups, &[2, of(&mut groups)]))
        })
        .unjailed_root(),
        row("set_capabilities", "capabilities are gained", "seccomp; no capability", capabilities)
            .unjailed_root(),
    ];
    table.extend(by_programs());
    table
}

fn by_programs() -> Vec<Attack> {
    vec![
        row(
            "keep_capabilities",
            "capabilities are kept, raised or made ambient",
            "seccomp; locked bits",
            keep,
        )
        .unjailed(),
        row("regain_by_running", "root regains its capabilities by running a program", NO_RIGHTS, regain)
            .unjailed_root(),
        row(
            "set_group_program",
            "a setgid program grants its group",
            "`nosuid`; no new privileges",
            set_group,
        )
        .unjailed_root(),
        row(
            "program_with_capability",
            "a program with file capabilities grants them",
            "`nosuid`; no new privileges",
            with_rights,
        )
        .unjailed_root(),
        row(
            "set_user_programs",
            "setuid programs of the host grant root",
            "`nosuid`; no new privileges",
            set_user,
        ),
        row(
            "make_set_user",
            "a setuid or setgid program is left for others to run on the host, also through an ACL",
            "seccomp: no such mode, no attributes",
            make_set_user,
        )
        .harms(|stage, _| {
            use std::os::unix::fs::MetadataExt;
            let made = std::fs::metadata(stage.folder.join("work/free/set-user")).ok()?;
            (made.mode() & 0o6000 != 0).then(|| format!("a program of mode {:o} was left", made.mode()))
        })
        .unjailed(),
    ]
}

fn clone(_: &Inside) -> Verdict {
    let flags = usize::try_from(libc::CLONE_NEWUSER | libc::SIGCHLD).unwrap();
    match call(libc::SYS_clone, &[flags, 0, 0, 0, 0]) {
        Ok(0) => leave(),
        outcome => must_fail(outcome),
    }
}

fn clone3(_: &Inside) -> Verdict {
    let mut arguments = [0_u64; 11];
    arguments[0] = u64::try_from(libc::CLONE_NEWUSER).unwrap();
    arguments[4] = u64::try_from(libc::SIGCHLD).unwrap();
    match call(libc::SYS_clone3, &[of(&mut arguments), 88]) {
        Ok(0) => leave(),
        outcome => must_fail(outcome),
    }
}

fn enter(inside: &Inside) -> Verdict {
    let kinds = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
    let enter =
        |path: String| File::open(path).and_then(|file| call(libc::SYS_setns, &[descriptor(&file), 0]));
    let others = kinds.into_iter().flat_map(|kind| {
        [
            ("own", enter(format!("/proc/self/ns/{kind}"))),
            ("first", enter(format!("/proc/1/ns/{kind}"))),
            ("gateway", enter(format!("/proc/{}/ns/{kind}", inside.gateway))),
        ]
    });
    none_works(others)
}

fn ids(_: &Inside) -> Verdict {
    let other = 60_000;
    let user = if rustix::process::geteuid().is_root() { other } else { 0 };
    let tries = [
        ("user", call(libc::SYS_setresuid, &[user, user, user])),
        ("user, old call", call(libc::SYS_setuid, &[user])),
        ("group", call(libc::SYS_setresgid, &[other, other, other])),
        ("both", call(libc::SYS_setreuid, &[user, user])),
    ];
    // This call never fails; it returns the previous id.
    let _ = call(libc::SYS_setfsuid, &[user]);
    let now = call(libc::SYS_setfsuid, &[NONE]).unwrap_or(0);
    if now == user {
        return Verdict::Broke("files as another user".into());
    }
    none_works(tries)
}

fn capabilities(_: &Inside) -> Verdict {
    let mut header = [0x2008_0522_u32, 0];
    // CAP_SYS_ADMIN, which covers everything without a specific capability.
    let mut sets = [1_u32 << 21, 1 << 21, 0, 0, 0, 0];
    must_fail(call(libc::SYS_capset, &[of(&mut header), of(&mut sets)]))
}

fn keep(_: &Inside) -> Verdict {
    let prctl = |option: i32, second: usize, third: usize| {
        call(libc::SYS_prctl, &[signed(option), second, third, 0, 0])
    };
    none_works([
        ("keep", prctl(libc::PR_SET_KEEPCAPS, 1, 0)),
        ("bits", prctl(libc::PR_SET_SECUREBITS, 0, 0)),
        ("ambient", prctl(libc::PR_CAP_AMBIENT, 2, 21)),
        ("adoption", prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0)),
        ("memory map", prctl(libc::PR_SET_MM, 1, 0)),
        ("tracer", prctl(libc::PR_SET_PTRACER, NONE, 0)),
        ("speculation", prctl(libc::PR_SET_SPECULATION_CTRL, 0, 2)),
    ])
}

fn regain(_: &Inside) -> Verdict {
    let output = Command::new("/usr/bin/cat").arg("/proc/self/status").output();
    status_holds(output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Whether the program that ran had any capability.
fn status_holds(status: io::Result<String>) -> Verdict {
    let Ok(status) = status else { return Verdict::Held("it does not run".into()) };
    let rights: Vec<&str> =
        status.lines().filter(|line| line.starts_with("CapPrm") || line.starts_with("CapEff")).collect();
    if rights.iter().all(|line| line.trim_end().ends_with("0000000000000000")) {
        return Verdict::Held(format!("{rights:?}"));
    }
    Verdict::Broke(format!("{rights:?}"))
}

fn set_group(inside: &Inside) -> Verdict {
    let output = Command::new(inside.tools().join("set-group")).arg("/proc/self/status").output();
    let status =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let groups = status.lines().find(|line| line.starts_with("Gid:")).unwrap_or_default();
    if groups.contains(&STRANGE_GROUP.to_string()) {
        return Verdict::Broke(groups.to_owned());
    }
    Verdict::Held(groups.to_owned())
}

fn with_rights(inside: &Inside) -> Verdict {
    let output = Command::new(inside.tools().join("with-rights")).arg("/proc/self/status").output();
    status_holds(output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn set_user(inside: &Inside) -> Verdict {
    let target = inside.work().join("free");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).stdin(std::process::Stdio::null()).output()?;
        if output.status.success() { Ok(program.to_owned()) } else { Err(io::Error::other("it failed")) }
    };
    none_works([
        ("mount", run("/usr/bin/mount", &["--bind", "/usr", target.to_str().unwrap()])),
        ("su", run("/usr/bin/su", &["-c", "id"])),
        ("sudo", run("/usr/bin/sudo", &["-n", "id"])),
        ("newgrp", run("/usr/bin/newgrp", &["shadow"])),
        ("chfn", run("/usr/bin/chfn", &["-f", "owned", "root"])),
    ])
}

fn make_set_user(inside: &Inside) -> Verdict {
    let made = inside.work().join("free/set-user");
    let name = path(&made);
    // A copy without its mode, because not every jail allows setting one.
    let copied = std::fs::read("/usr/bin/cat").and_then(|program| std::fs::write(&made, program));
    let Ok(file) = copied.and_then(|()| File::open(&made)) else {
        return Verdict::Broke("a writable folder is everybody's to write".into());
    };
    none_works([
        ("by name", call(libc::SYS_chmod, &[at(&name), 0o4755])),
        ("by descriptor", call(libc::SYS_fchmod, &[descriptor(&file), 0o2755])),
        ("in a folder", call(libc::SYS_fchmodat, &[HERE, at(&name), 0o6755])),
        ("newer call", call(452, &[HERE, at(&name), 0o6755, 0])),
        ("born so", born(&inside.work().join("free/born"))),
        ("by a list of rights", by_list(&inside.work().join("free/listed"))),
    ])
}

/// A file may be created with such a mode; it loses it with the first byte written.
fn born(path: &Path) -> io::Result<usize> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o6755).open(path)?;
    io::Write::write_all(&mut file, b"#!/bin/sh")?;
    let mode = file.metadata()?.mode();
    if mode & 0o6000 == 0 { Err(io::Error::other("it lost its mode")) } else { Ok(0) }
}

/// Without execute permission such a mode survives a write, and an ACL adds the permission.
fn by_list(program: &Path) -> io::Result<usize> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o2644).open(program)?;
    io::Write::write_all(&mut file, b"#!/bin/sh")?;
    // Version 2; then tag, permissions and id of owner, group and others.
    let mut list = [2_u32, 0x0007_0001, u32::MAX, 0x0005_0004, u32::MAX, 0x0005_0020, u32::MAX];
    let (name, kind) = (path(program), c"system.posix_acl_access");
    call(libc::SYS_setxattr, &[at(&name), at(kind), of(&mut list), size_of_val(&list), 0])?;
    let mode = file.metadata()?.mode();
    if mode & 0o2010 == 0o2010 { Ok(0) } else { Err(io::Error::other("it lost its mode")) }
}

const SECCOMP: &str = "seccomp";
const NO_RIGHTS: &str = "no capability, empty bounding set, locked bits";
