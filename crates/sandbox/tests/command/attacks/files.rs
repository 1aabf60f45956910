//! Attacks on files: paths that are not granted, hidden or read-only, and ways around path checks.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use toolgate_sandbox::{Access, CommandJail};

use super::{
    Attack, Hole, Inside, Verdict,
    call::{HERE, NONE, at, call, descriptor, of, path, signed},
    must_fail, none_works, read, row,
    stage::{ATTRIBUTE, PLANTED, Stage},
};

pub fn table() -> Vec<Attack> {
    let mut table = reading();
    table.extend(writing());
    table.extend(mounting());
    table
}

fn reading() -> Vec<Attack> {
    vec![
        row("read_shadow", "passwords of the host", VIEW, |_| must_fail(read("/etc/shadow"))).unjailed_root(),
        row("read_ungranted", "a file is read without a grant", VIEW, |inside| {
            must_fail(read(inside.canary()))
        })
        .hole(Hole::Cut(|order, stage| {
            order.view.binds.push(crate::driver::bind(&stage.folder.join("outside"), Access::Read));
        })),
        row(
            "attributes_of_ungranted",
            "extended attributes of a file without a grant are read",
            "view; seccomp without a view",
            attributes,
        )
        .unjailed(),
        row("climb_out", "`..` leads out of a granted directory", VIEW, climb).unjailed(),
        row("link_out", "a planted symlink leads out of a granted directory", VIEW, link_out).unjailed(),
        row("descriptor_path_out", "`/proc/self/fd/N/..` leads out of a granted directory", VIEW, fd_path)
            .unjailed(),
        row("open_path_then_reopen", "an `O_PATH` descriptor is opened again for reading", VIEW, reopen)
            .unjailed(),
        row(
            "file_handle",
            "a file is opened by its handle, without a path",
            "seccomp; no capability",
            handle,
        )
        .unjailed_root(),
        row(
            "device_node",
            "the disk of the host is read through a created device node",
            "seccomp; `nodev`",
            node,
        ),
        row("kernel_memory", "memory and symbols of the kernel are read", VIEW, kernel_memory)
            .unjailed_root(),
        row(
            "watch_ungranted",
            "watching a directory without a grant reveals names in it",
            "view; seccomp",
            watch,
        )
        .meanwhile(|stage| {
            let name = stage.folder.join("outside").join(&stage.secret);
            fs::write(&name, "").unwrap();
            fs::remove_file(name).unwrap();
        })
        .unjailed(),
        row("lease", "a lease on a readable file blocks all other processes", "seccomp", lease)
            .meanwhile(|stage| {
                let text = stage.folder.join("read/text");
                let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(text);
                if opened.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                    fs::write(stage.folder.join("outside/had-to-wait"), "").unwrap();
                }
            })
            .unjailed(),
        row("watch_everything", "all opened files of the host are reported (fanotify)", "seccomp", fanotify)
            .unjailed_root(),
    ]
}

fn writing() -> Vec<Attack> {
    vec![
        row("write_readonly", "content or metadata of a read-only file is changed", WRITE, |inside| {
            change(&inside.read().join("text"))
        })
        .hole(Hole::Cut(all_writable)),
        row(
            "change_ungranted",
            "mode, owner, times or attributes of an ungranted file are changed",
            ATTRIBUTES,
            |inside| change(&inside.canary()),
        )
        .unjailed(),
        row("change_system", "mode or times of the host's programs are changed", ATTRIBUTES, change_system),
        row(
            "reopen_for_writing",
            "a descriptor for reading is opened again for writing",
            WRITE,
            reopen_write,
        )
        .hole(Hole::Cut(all_writable)),
        row("readonly_within_writable", "a read-only directory in a writable one is changed", WRITE, within)
            .hole(Hole::Cut(|order, _| {
                order.view.binds.retain(|bind| !bind.at.ends_with("fixed"));
            })),
        row(
            "link_readonly",
            "a read-only file gets a hard link in a writable directory",
            WRITE,
            link_readonly,
        )
        .hole(Hole::Cut(|order, _| order.view.binds.retain(|bind| !bind.at.ends_with("fixed")))),
        row(
            "overwrite_program",
            "a granted program is overwritten through `/proc/<id>/exe`",
            WRITE,
            overwrite,
        )
        .unjailed(),
        row("plant_in_system", "a file is created in a directory of the host", WRITE, plant),
        row(
            "settings_of_the_kernel",
            "`/proc/sys` is written, with the pattern of core dumps",
            VIEW,
            settings,
        ),
        row("magic_keys", "`/proc/sysrq-trigger` is written", VIEW, |_| {
            let open = |path| File::options().write(true).open(path).and_then(|mut file| file.write(b"h"));
            none_works([
                ("trigger", open("/proc/sysrq-trigger")),
                ("old importance", open("/proc/self/oom_adj")),
            ])
        }),
    ]
}

fn mounting() -> Vec<Attack> {
    vec![
        row("mount_anything", "a mount is created, moved or made writable", SECCOMP, mount),
        row("mount_by_descriptor", "the new mount API mounts a file system", SECCOMP, mount_newer)
            .unjailed_root(),
        row("change_root", "`chroot` and an open directory lead above the root", SECCOMP, change_root)
            .unjailed_root(),
        row("pivot_root", "the root is replaced", SECCOMP, |inside| {
            let here = path(inside.work());
            must_fail(call(libc::SYS_pivot_root, &[at(&here), at(&here)]))
        }),
    ]
}

fn all_writable(order: &mut CommandJail, _: &Stage) {
    order.view.binds.iter_mut().filter(|bind| bind.at.ends_with("read")).for_each(|bind| {
        bind.access = Access::Write;
    });
}

/// By path, and by an `O_PATH` descriptor, which Landlock does not check.
fn attributes(inside: &Inside) -> Verdict {
    let (file, name) = (path(inside.canary()), path(ATTRIBUTE));
    let opened = || call(libc::SYS_openat, &[HERE, at(&file), signed(libc::O_ACCMODE), 0]);
    let told = |outcome: io::Result<usize>, text: &[u8]| {
        outcome.map(|length| String::from_utf8_lossy(&text[..length]).into_owned())
    };
    let get = |number, file: usize| {
        let mut text = [0_u8; 256];
        let outcome = call(number, &[file, at(&name), of(&mut text), 256]);
        told(outcome, &text)
    };
    let list = |number, file: usize| {
        let mut text = [0_u8; 256];
        let outcome = call(number, &[file, of(&mut text), 256]);
        told(outcome, &text)
    };
    none_works([
        ("get", get(libc::SYS_getxattr, at(&file))),
        ("get of a link", get(libc::SYS_lgetxattr, at(&file))),
        ("list", list(libc::SYS_listxattr, at(&file))),
        ("list of a link", list(libc::SYS_llistxattr, at(&file))),
        ("get of a descriptor", opened().and_then(|file| get(libc::SYS_fgetxattr, file))),
        ("list of a descriptor", opened().and_then(|file| list(libc::SYS_flistxattr, file))),
    ])
}

fn climb(inside: &Inside) -> Verdict {
    let up = "../".repeat(64) + &inside.canary().to_str().unwrap()[1..];
    none_works([
        ("neighbour", read(inside.work().join("../outside/canary"))),
        ("through a file's folder", read(inside.work().join("fixed/../../outside/canary"))),
        ("from the root", read(Path::new("/").join(up))),
    ])
}

fn link_out(inside: &Inside) -> Verdict {
    let name = inside.work().join("free/link");
    let folder = inside.work().join("free/folder");
    let made = symlink(inside.canary(), &name).and_then(|()| symlink(inside.outside(), &folder));
    none_works([
        ("link", made.and_then(|()| read(name))),
        ("folder", read(folder.join("canary"))),
        ("magic", read(format!("/proc/self/root{}", inside.canary().display()))),
        ("folder of a thread", read(format!("/proc/thread-self/cwd{}", inside.canary().display()))),
    ])
}

fn fd_path(inside: &Inside) -> Verdict {
    must_fail(File::open(inside.work().join("free")).and_then(|folder| {
        let number = descriptor(&folder);
        read(format!("/proc/self/fd/{number}/../../outside/canary"))
    }))
}

fn reopen(inside: &Inside) -> Verdict {
    let opened = File::options().read(true).custom_flags(libc::O_PATH).open(inside.canary());
    must_fail(opened.and_then(|file| read(format!("/proc/self/fd/{}", descriptor(&file)))))
}

fn handle(inside: &Inside) -> Verdict {
    let mut handle = inside.handle.clone();
    let mut own = [0_u32; 34];
    own[0] = 128;
    let mut mount = 0_i32;
    let folder = path(inside.work());
    let asked = call(libc::SYS_name_to_handle_at, &[HERE, at(&folder), of(&mut own), of(&mut mount), 0]);
    let opened = File::open(inside.read()).and_then(|folder| {
        call(libc::SYS_open_by_handle_at, &[descriptor(&folder), of(handle.as_mut_slice()), 0])
    });
    let told = opened.and_then(|file| read(format!("/proc/self/fd/{file}")));
    none_works([("open", told), ("ask", asked.map(|_| "a handle of its own".into()))])
}

fn node(inside: &Inside) -> Verdict {
    use std::os::unix::fs::MetadataExt;
    let disk = fs::metadata(inside.work()).map_or(0, |about| about.dev());
    let name = inside.work().join("free/disk");
    let kind = usize::try_from(libc::S_IFBLK | 0o600).unwrap();
    let made = call(libc::SYS_mknod, &[at(&path(&name)), kind, usize::try_from(disk).unwrap()]);
    let mut sector = [0_u8; 512];
    must_fail(
        made.and_then(|_| File::open(&name)).and_then(|mut disk| io::Read::read(&mut disk, &mut sector)),
    )
}

fn kernel_memory(_: &Inside) -> Verdict {
    none_works(
        ["/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/proc/kmsg", "/dev/kmsg", "/proc/keys"]
            .map(|path| (path, File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path))),
    )
}

fn watch(inside: &Inside) -> Verdict {
    let flags = usize::try_from(libc::IN_NONBLOCK | libc::IN_CLOEXEC).unwrap();
    let watched = call(libc::SYS_inotify_init1, &[flags]).and_then(|watcher| {
        let folder = path(inside.outside());
        call(libc::SYS_inotify_add_watch, &[watcher, at(&folder), 0xfff]).map(|_| watcher)
    });
    must_fail(watched.map(|watcher| {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let mut events = vec![0_u8; 4096];
        let got = call(libc::SYS_read, &[watcher, of(events.as_mut_slice()), 4096]).unwrap_or(0);
        String::from_utf8_lossy(&events[..got]).into_owned()
    }))
}

fn lease(inside: &Inside) -> Verdict {
    let set = |file: &File, kind: i32| {
        call(libc::SYS_fcntl, &[descriptor(file), 1024, usize::try_from(kind).unwrap()])
    };
    let Ok(file) = File::open(inside.read().join("text")) else {
        return Verdict::Broke("it may be read".into());
    };
    // Another process may have the file open at this moment, so try again.
    let taken = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_micros(200));
        set(&file, libc::F_WRLCK).ok()
    });
    std::thread::sleep(std::time::Duration::from_millis(30));
    let news = call(libc::SYS_fcntl, &[descriptor(&file), 1026, 1]);
    if taken.is_some() { Verdict::Broke("a lease".into()) } else { must_fail(news) }
}

fn fanotify(inside: &Inside) -> Verdict {
    let outside = path(inside.outside());
    let mark = |watcher| {
        call(
            libc::SYS_fanotify_mark,
            &[watcher, 1, usize::try_from(libc::FAN_OPEN).unwrap(), HERE, at(&outside)],
        )
    };
    must_fail(call(libc::SYS_fanotify_init, &[0, 0]).and_then(mark))
}

/// Every way to change a file that does no harm to the host if it works.
fn change(file: &Path) -> Verdict {
    let name = path(file);
    let own = usize::try_from(rustix::process::geteuid().as_raw()).unwrap();
    let mut times = [1_i64, 0, 1, 0];
    let mut value = *b"x";
    none_works([
        ("append", File::options().append(true).open(file).and_then(|mut file| file.write(b"x"))),
        ("open to write", File::options().write(true).open(file).map(|_| 0)),
        ("truncate", call(libc::SYS_truncate, &[at(&name), 0])),
        ("mode", fs::set_permissions(file, fs::Permissions::from_mode(0o777)).map(|()| 0)),
        ("newer call for the mode", call(SYS_FCHMODAT2, &[HERE, at(&name), 0o777, 0])),
        (
            "mode by descriptor",
            File::open(file).and_then(|file| call(libc::SYS_fchmod, &[descriptor(&file), 0o777])),
        ),
        ("owner", call(libc::SYS_chown, &[at(&name), own, NONE])),
        (
            "owner by descriptor",
            File::open(file).and_then(|file| call(libc::SYS_fchown, &[descriptor(&file), own, NONE])),
        ),
        ("times", call(libc::SYS_utimensat, &[HERE, at(&name), of(&mut times), 0])),
        ("old call for the times", call(libc::SYS_utimes, &[at(&name), 0])),
        ("attribute", call(libc::SYS_setxattr, &[at(&name), at(c"user.toolgate"), of(&mut value), 1, 0])),
        ("remove", fs::remove_file(file).map(|()| 0)),
        ("move", fs::rename(file, file.with_extension("moved")).map(|()| 0)),
        ("beside it", fs::write(file.with_extension("new"), "x").map(|()| 0)),
        ("folder beside it", fs::create_dir(file.with_extension("dir")).map(|()| 0)),
        ("link beside it", symlink("x", file.with_extension("link")).map(|()| 0)),
        (
            "mode of its directory",
            fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).map(|()| 0),
        ),
    ])
}

fn change_system(_: &Inside) -> Verdict {
    // Sets the current values, so nothing is harmed if it works.
    let mode = |path: &str| {
        let about = fs::metadata(path)?;
        fs::set_permissions(path, about.permissions())
    };
    let touch = |name| call(libc::SYS_utimensat, &[HERE, at(name), 0, 0]).map(drop);
    none_works([
        ("mode", mode("/usr/bin/true")),
        ("mode of a folder", mode("/usr/lib")),
        ("times", touch(c"/usr/share")),
        ("owner", call(libc::SYS_chown, &[at(c"/usr/bin/true"), NONE, NONE]).map(drop)),
    ])
}

fn reopen_write(inside: &Inside) -> Verdict {
    must_fail(File::open(inside.read().join("text")).and_then(|file| {
        let again = format!("/proc/self/fd/{}", descriptor(&file));
        File::options().write(true).truncate(true).open(again)?.write(b"changed")
    }))
}

fn within(inside: &Inside) -> Verdict {
    let (fixed, own) = (inside.work().join("fixed"), inside.work().join("free/own"));
    let settled = fixed.join("settled");
    none_works([
        ("write", fs::write(&settled, "changed")),
        ("remove", fs::remove_file(&settled)),
        ("make", fs::write(fixed.join("new"), "x")),
        ("move out", fs::rename(&settled, inside.work().join("free/settled"))),
        (
            "move the folder",
            fs::rename(&fixed, &own).and_then(|()| fs::write(own.join("settled"), "changed")),
        ),
    ])
}

fn link_readonly(inside: &Inside) -> Verdict {
    let settled = inside.work().join("fixed/settled");
    let names: [PathBuf; 2] = [inside.work().join("mine"), inside.work().join("free/mine")];
    none_works(
        names.map(|name| ("link", fs::hard_link(&settled, &name).and_then(|()| fs::write(name, "changed")))),
    )
}

fn overwrite(inside: &Inside) -> Verdict {
    let tool = inside.tools().join("tool");
    let started = Command::new(&tool).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    must_fail(started.and_then(|mut child| {
        let exe = format!("/proc/{}/exe", child.id());
        let kept = File::options().read(true).custom_flags(libc::O_PATH).open(exe);
        drop(child.stdin.take());
        child.wait()?;
        let kept = kept?;
        let again = format!("/proc/self/fd/{}", descriptor(&kept));
        File::options().write(true).open(again)?.write(b"#!/bin/owned")
    }))
}

fn plant(_: &Inside) -> Verdict {
    none_works(PLANTED.map(|path| (path, fs::write(path, "x"))))
}

fn settings(_: &Inside) -> Verdict {
    let set = |path: &str, value: &str| File::options().write(true).open(path)?.write(value.as_bytes());
    none_works([
        ("core dumps", set("/proc/sys/kernel/core_pattern", "|/owned")),
        ("host name", set("/proc/sys/kernel/hostname", "owned")),
        ("its own mapping", set("/proc/self/uid_map", "0 0 1")),
        ("its groups", set("/proc/self/setgroups", "allow")),
        ("its importance", set("/proc/self/oom_score_adj", "-1000")),
        ("programs of the kernel", set("/sys/kernel/uevent_helper", "/owned")),
        ("control groups", set("/sys/fs/cgroup/cgroup.procs", "0")),
    ])
}

fn mount(inside: &Inside) -> Verdict {
    let (folder, source) = (path(inside.work().join("free")), path(inside.outside()));
    let read = path(inside.read());
    let mount = |what: usize, place: usize, flags: libc::c_ulong| {
        call(libc::SYS_mount, &[what, place, at(c"tmpfs"), usize::try_from(flags).unwrap(), 0])
    };
    none_works([
        ("memory", mount(at(c"none"), at(&folder), 0)),
        ("bind", mount(at(&source), at(&folder), libc::MS_BIND)),
        ("writable again", mount(0, at(&read), libc::MS_BIND | libc::MS_REMOUNT)),
        ("shared with the host", mount(0, at(c"/"), libc::MS_REC | libc::MS_SHARED)),
        ("move", mount(at(&read), at(&folder), libc::MS_MOVE)),
        ("away", call(libc::SYS_umount2, &[at(&read), 2])),
        ("attributes", call(libc::SYS_mount_setattr, &[HERE, at(&read), 0, 0, 32])),
    ])
}

fn mount_newer(inside: &Inside) -> Verdict {
    let source = path(inside.outside());
    none_works([
        ("fsopen", call(libc::SYS_fsopen, &[at(c"tmpfs"), 0])),
        ("open_tree", call(libc::SYS_open_tree, &[HERE, at(&source), 1])),
        ("fspick", call(libc::SYS_fspick, &[HERE, at(c"/"), 0])),
        ("move_mount", call(libc::SYS_move_mount, &[HERE, at(&source), HERE, at(c"/"), 0])),
    ])
}

fn change_root(inside: &Inside) -> Verdict {
    let below = path(inside.work());
    let kept = File::options().read(true).custom_flags(libc::O_PATH).open("/").unwrap();
    must_fail(call(libc::SYS_chroot, &[at(&below)]).and_then(|_| {
        call(libc::SYS_fchdir, &[descriptor(&kept)])?;
        let up = path("../".repeat(32));
        call(libc::SYS_chroot, &[at(&up)])
    }))
}

const SYS_FCHMODAT2: libc::c_long = 452;
const VIEW: &str = "view; Landlock";
const WRITE: &str = "read-only mounts; Landlock";
const ATTRIBUTES: &str = "read-only mounts; seccomp where there is no view";
const SECCOMP: &str = "seccomp; no capability";
