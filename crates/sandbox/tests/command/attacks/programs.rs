//! Attacks that try to execute programs that were not granted.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    Attack, Inside, Verdict,
    call::{Fork, HERE, at, call, descriptor, fork, path, wait},
    must_fail, native, none_works, read, row,
};

pub fn table() -> Vec<Attack> {
    let mut table = vec![
        row("run_from_tmp", "a program is written to `/tmp` and run", "`noexec`; Landlock", |_| {
            run_from(Path::new("/tmp"))
        })
        .in_namespaces()
        .unjailed(),
        row("run_from_writable", "a program is written to a writable directory and run", NOEXEC, |inside| {
            run_from(&inside.work().join("free"))
        })
        .unjailed(),
        row("run_script", "a script is written and run by its first line", NOEXEC, script).unjailed(),
        row("run_by_descriptor", "`execveat` with an empty path runs what is open", NOEXEC, by_descriptor)
            .unjailed(),
        row("run_memory", "a program in a memory file is run", "seccomp", memory).unjailed(),
        row(
            "run_by_loader",
            "the dynamic loader runs a file without execute permission",
            "`noexec` refuses executable mappings",
            loader,
        )
        .in_namespaces()
        .unjailed(),
        row(
            "preload",
            "a library is preloaded from a writable directory",
            "`noexec` refuses executable mappings",
            preload,
        )
        .in_namespaces()
        .unjailed(),
    ];
    table.extend(by_other_entries());
    table
}

fn by_other_entries() -> Vec<Attack> {
    vec![
        row(
            "map_executable",
            "a writable file is mapped as executable",
            "`noexec` refuses executable mappings",
            map,
        )
        .in_namespaces()
        .unjailed(),
        row("run_read_only", "a program in a read-only directory is run", NOEXEC, read_only),
        row(
            "calls_of_32_bits",
            "the 32-bit entry of the kernel, whose numbers mean other calls",
            "seccomp kills",
            |inside| must_fail(native::tell_by_32_bit_calls(inside.canary().to_str().unwrap())),
        )
        .anyhow(),
        row(
            "calls_of_32_bits_allowed_here",
            "a granted file through the 32-bit entry, to prove that the entry itself is closed",
            "seccomp kills",
            |inside| must_fail(native::tell_by_32_bit_calls(inside.read().join("text").to_str().unwrap())),
        )
        .anyhow()
        .harms(|_, report| {
            (report.ending != toolgate_sandbox::Ending::Signalled(libc::SIGSYS))
                .then(|| "it was not killed".into())
        })
        .unjailed(),
        row("calls_of_x32", "x32 numbers pass a filter for x86_64 numbers", "seccomp kills", x32).anyhow(),
        row("numbers_beyond", "unknown or negative system call numbers", "seccomp", |_| {
            none_works([0x3fff_ffff_i64, 600, 512, 547, 1023, -2].map(|number| ("call", call(number, &[]))))
        }),
    ]
}

fn run_from(folder: &Path) -> Verdict {
    let program = folder.join(format!("program-{}", std::process::id()));
    let outcome = copy_of("/usr/bin/true", &program).and_then(|()| Command::new(&program).status());
    let _ = fs::remove_file(program);
    must_fail(outcome)
}

fn copy_of(program: &str, to: &Path) -> io::Result<()> {
    fs::copy(program, to)?;
    // Setting a mode may be denied; a copy keeps the mode of its source anyway.
    let _ = fs::set_permissions(to, fs::Permissions::from_mode(0o755));
    Ok(())
}

fn script(inside: &Inside) -> Verdict {
    let script = inside.work().join("free/script");
    let written = fs::write(&script, "#!/bin/sh\necho ran\n");
    let _ = fs::set_permissions(&script, fs::Permissions::from_mode(0o755));
    must_fail(written.and_then(|()| Command::new(script).output()).map(|output| output.stdout))
}

fn by_descriptor(inside: &Inside) -> Verdict {
    let program = inside.work().join("free/program");
    if let Err(error) = copy_of("/usr/bin/true", &program) {
        return Verdict::Held(error.to_string());
    }
    must_fail(File::open(&program).and_then(|file| run_open(descriptor(&file))))
}

/// Executes an open file in a child; an error if exec failed.
fn run_open(file: usize) -> io::Result<i32> {
    match fork()? {
        Fork::Child => {
            let name = c"true";
            let mut arguments = [at(name), 0];
            let nothing = super::call::of(&mut [0_usize]);
            let _ =
                call(libc::SYS_execveat, &[file, at(c""), super::call::of(&mut arguments), nothing, 0x1000]);
            loop {
                let _ = call(libc::SYS_exit_group, &[99]);
            }
        }
        Fork::Parent(child) => match wait(child)? {
            0 => Ok(0),
            other => Err(io::Error::other(format!("ended with {other:#x}"))),
        },
    }
}

fn memory(_: &Inside) -> Verdict {
    let made = call(libc::SYS_memfd_create, &[at(c"x"), 0]);
    let secret = call(libc::SYS_memfd_secret, &[0]);
    if let Ok(made) = made {
        let copied =
            fs::read("/usr/bin/true").and_then(|program| fs::write(format!("/proc/self/fd/{made}"), program));
        return must_fail(copied.and_then(|()| run_open(made)));
    }
    none_works([("memory file", made), ("secret memory", secret)])
}

fn loader(inside: &Inside) -> Verdict {
    let program = inside.work().join("free/program");
    if let Err(error) = copy_of("/usr/bin/true", &program) {
        return Verdict::Held(error.to_string());
    }
    let Some(loader) = LOADERS.iter().find(|path| Path::new(path).exists()) else {
        return Verdict::Broke("there is no loader to try".into());
    };
    let status = Command::new(loader).arg(&program).status();
    must_fail(status.and_then(|status| {
        if status.success() { Ok(status) } else { Err(io::Error::other(status.to_string())) }
    }))
}

fn preload(inside: &Inside) -> Verdict {
    let library = inside.work().join("free/libplanted.so");
    let Some(some) = some_library() else { return Verdict::Broke("there is no library to copy".into()) };
    if let Err(error) = fs::copy(some, &library) {
        return Verdict::Held(error.to_string());
    }
    let output =
        Command::new("/usr/bin/cat").arg("/proc/self/maps").env("LD_PRELOAD", &library).output().unwrap();
    let maps = String::from_utf8_lossy(&output.stdout);
    match maps.lines().find(|line| line.contains("libplanted") && line.contains("r-xp")) {
        Some(line) => Verdict::Broke(line.to_owned()),
        None => Verdict::Held(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn map(inside: &Inside) -> Verdict {
    let file = inside.work().join("free/code");
    let written = fs::write(&file, [0xc3_u8; 4096]).and_then(|()| File::open(&file));
    must_fail(written.and_then(|file| {
        let (read_and_run, private) = (5, 2);
        call(libc::SYS_mmap, &[0, 4096, read_and_run, private, descriptor(&file), 0])
    }))
}

fn read_only(inside: &Inside) -> Verdict {
    // A text file that is not a program: executing it fails with the right error only if permission is checked
    // first.
    let name = path(inside.read().join("text"));
    let refused = call(libc::SYS_faccessat, &[HERE, at(&name), 1, 0]);
    let program = inside.work().join("fixed/settled");
    none_works([("may run", refused), ("runs", Command::new(program).status().map(|_| 0))])
}

fn x32(inside: &Inside) -> Verdict {
    let canary = path(inside.canary());
    let opened = call(0x4000_0002, &[at(&canary), 0, 0]);
    must_fail(opened.and_then(|file| read(format!("/proc/self/fd/{file}"))))
}

fn some_library() -> Option<PathBuf> {
    let names = ["libm.so.6", "libz.so.1", "libselinux.so.1"];
    let folders = ["/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib"];
    let mut all = folders.iter().flat_map(|folder| names.map(|name| Path::new(folder).join(name)));
    all.find(|path| path.exists())
}

const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
const NOEXEC: &str = "`noexec`; Landlock";
