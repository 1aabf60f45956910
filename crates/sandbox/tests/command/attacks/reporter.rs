//! Attacks on the part of the jail that reads data from the command: the reporter of denials.

use std::{
    ffi::CString, fs, os::unix::ffi::OsStrExt, os::unix::fs::PermissionsExt, process::Command, time::Duration,
};

use toolgate_sandbox::{CommandReport, Refused};

use super::{
    Attack, Inside, Verdict,
    call::{Fork, HERE, at, call, fork, leave, of, path},
    must_fail, read, row,
    stage::Stage,
};

pub fn table() -> Vec<Attack> {
    let mut table = vec![
        row("endless_path", "an unterminated path keeps the reporter reading", BOUNDED, |_| {
            let long = CString::new(vec![b'a'; 1 << 20]).unwrap();
            let deep = CString::new("/usr/..".repeat(100_000)).unwrap();
            let tries =
                [at(&long), at(&deep)].map(|name| ("open", call(libc::SYS_openat, &[HERE, name, 0, 0])));
            super::none_works(tries)
        }),
        row("garbage_pointers", "invalid addresses crash the reporter", BOUNDED, garbage),
        row(
            "text_at_the_edge",
            "a string that ends at a page boundary makes the reporter read beyond it",
            BOUNDED,
            edge,
        ),
        row("flood_of_refusals", "unlimited denials fill the supervisor's memory", BOUNDED, |_| {
            for _ in 0..20_000 {
                let _ = call(libc::SYS_unshare, &[0]);
            }
            must_fail(call(libc::SYS_unshare, &[0x1000_0000]))
        })
        .harms(is_short),
        row("flood_of_paths", "different denied paths fill the report", BOUNDED, |inside| {
            for number in 0..2000 {
                let _ = read(format!("/etc/{number}/../shadow"));
                let _ = fs::write(inside.read().join(number.to_string()), "");
                let _ = read(inside.canary().join(format!("../{}", "../outside/".repeat(number % 8))));
            }
            Verdict::Held("2000 times".into())
        })
        .harms(is_short),
        row("forged_lines", "control characters in a path forge lines of the journal", ESCAPED, forged)
            .harms(|_, report| {
                let lines = report.refused.iter().map(Refused::describe);
                lines.into_iter().find(|line| line.chars().any(char::is_control))
            }),
    ];
    table.extend(of_many());
    table
}

fn of_many() -> Vec<Attack> {
    vec![
        row(
            "long_refusals",
            "a hundred longest paths make a report that cannot be sent",
            BOUNDED,
            long_refusals,
        )
        .harms(|_, report| (report.refused.len() < 50).then(|| "the report is not whole".into())),
        row(
            "askers_without_end",
            "endless notifications keep the supervisor from killing the command",
            BOUNDED,
            |_| {
                for _ in 0..5 {
                    let _ = fork();
                }
                loop {
                    let _ = call(libc::SYS_unshare, &[0x1000_0000]);
                    let _ = read("/etc/shadow");
                }
            },
        )
        .anyhow()
        .within(Duration::from_millis(150))
        .harms(|_, report| {
            (report.ending != toolgate_sandbox::Ending::TimedOut).then(|| format!("{:?}", report.ending))
        }),
        row("dying_askers", "the calling process dies before it gets a reply", BOUNDED, |_| dying()),
        row(
            "changing_paths",
            "a path changes while the reporter reads it",
            "the reporter decides nothing",
            changing,
        ),
        row("deep_folder", "a working directory longer than any path confuses the reporter", BOUNDED, deep),
        row("many_askers", "many processes notify at once", BOUNDED, |_| many()).harms(is_short),
    ]
}

/// The report stays small.
fn is_short(_: &Stage, report: &CommandReport) -> Option<String> {
    (report.refused.len() > 100).then(|| format!("{} refusals are listed", report.refused.len()))
}

fn garbage(_: &Inside) -> Verdict {
    let addresses =
        [0, 1, 4095, usize::MAX, usize::MAX - 3, 1 << 47, 0xffff_8000_0000_0000, 0xffff_ffff_ff60_0000];
    let calls = [
        libc::SYS_openat,
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_unlinkat,
        libc::SYS_renameat2,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_openat2,
        libc::SYS_mkdirat,
        libc::SYS_truncate,
        libc::SYS_faccessat2,
        libc::SYS_chdir,
        libc::SYS_readlinkat,
        libc::SYS_socket,
        libc::SYS_ioctl,
        libc::SYS_clone3,
        libc::SYS_connect,
        libc::SYS_ptrace,
    ];
    for number in calls {
        for address in addresses {
            if let Ok(got) = call(number, &[address, address, address, address, address, address]) {
                return Verdict::Broke(format!("call {number} with {address:#x} answered {got}"));
            }
        }
    }
    Verdict::Held("each was refused".into())
}

fn edge(_: &Inside) -> Verdict {
    let (read_write, private) = (3, 0x22);
    let Ok(place) = call(libc::SYS_mmap, &[0, 8192, read_write, private, super::call::NONE, 0]) else {
        return Verdict::Broke("no memory".into());
    };
    let (source, mut sink) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut sink, &[b'/'; 4096]).unwrap();
    let _ = call(libc::SYS_read, &[super::call::descriptor(&source), place, 4096]);
    let _ = call(libc::SYS_munmap, &[place + 4096, 4096]);
    let tries = [1, 2, 255, 256, 257, 4095]
        .map(|length| ("open", call(libc::SYS_openat, &[HERE, place + 4096 - length, 0, 0])));
    super::none_works(tries)
}

fn forged(inside: &Inside) -> Verdict {
    let name = inside.work().join("free/x\nforged: \x1b[2Jgranted\r\u{202e}");
    let written = fs::write(&name, "#!/bin/true\n");
    let _ = fs::set_permissions(&name, fs::Permissions::from_mode(0o755));
    let bytes = inside.work().join("free").join(std::ffi::OsStr::from_bytes(b"\xff\xfe\n\x07"));
    let _ = fs::write(&bytes, "#!/bin/true\n");
    let ran = Command::new(name).status();
    let also = Command::new(bytes).status();
    if ran.is_ok() || also.is_ok() {
        return Verdict::Broke("it ran".into());
    }
    Verdict::Held(format!("{}", written.is_ok()))
}

fn long_refusals(inside: &Inside) -> Verdict {
    let mut folder = inside.work().join("free");
    while folder.as_os_str().len() < 3800 {
        folder.push("\u{1}".repeat(200));
    }
    if let Err(error) = fs::create_dir_all(&folder) {
        return Verdict::Broke(format!("the folder is its own: {error}"));
    }
    let mut none = [0_usize];
    let nothing = of(&mut none);
    for number in 0..120 {
        let name = folder.join(number.to_string());
        let _ = fs::write(&name, "");
        if let Ok(answer) = call(libc::SYS_execve, &[at(&path(name)), nothing, nothing]) {
            return Verdict::Broke(format!("it ran: {answer}"));
        }
    }
    Verdict::Held("120 were refused".into())
}

fn dying() -> Verdict {
    for round in 0..60 {
        match fork() {
            Ok(Fork::Child) => loop {
                let _ = call(libc::SYS_unshare, &[0x1000_0000]);
                let _ = read("/etc/shadow");
            },
            Ok(Fork::Parent(child)) => {
                std::thread::sleep(Duration::from_micros(round * 50));
                let _ = call(libc::SYS_kill, &[child, 9]);
                let _ = super::call::wait(child);
            }
            Err(_) => {}
        }
    }
    Verdict::Held("each was killed".into())
}

fn changing(inside: &Inside) -> Verdict {
    let granted = path(inside.read().join("text"));
    let other = path(inside.canary());
    let length = granted.as_bytes().len().max(other.as_bytes().len()) + 1;
    // The kernel writes both texts alternately to one address, while another thread opens it.
    let mut place = vec![0_u8; length];
    let address = of(place.as_mut_slice());
    let (source, mut sink) = std::io::pipe().unwrap();
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let is_over = is_over.clone();
        let texts = [granted.clone(), other];
        move || {
            while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                for text in &texts {
                    let mut bytes = text.as_bytes_with_nul().to_vec();
                    bytes.resize(length, 0);
                    std::io::Write::write_all(&mut sink, &bytes).unwrap();
                    let _ = call(libc::SYS_read, &[super::call::descriptor(&source), address, length]);
                }
            }
        }
    });
    let mut told = String::new();
    for _ in 0..3000 {
        if let Ok(file) = call(libc::SYS_openat, &[HERE, address, 0, 0]) {
            let text = read(format!("/proc/self/fd/{file}")).unwrap_or_default();
            let _ = call(libc::SYS_close, &[file]);
            if text.starts_with("secret") {
                told = text;
                break;
            }
        }
    }
    is_over.store(true, std::sync::atomic::Ordering::SeqCst);
    writer.join().unwrap();
    if told.is_empty() { Verdict::Held("3000 times".into()) } else { Verdict::Broke(told) }
}

fn deep(inside: &Inside) -> Verdict {
    let _ = std::env::set_current_dir(inside.work().join("free"));
    let name = "d".repeat(200);
    for _ in 0..40 {
        let _ = fs::create_dir(&name);
        if std::env::set_current_dir(&name).is_err() {
            break;
        }
    }
    let outcome = read("../".repeat(60) + "etc/shadow");
    let _ = fs::write("made", "x");
    must_fail(outcome)
}

fn many() -> Verdict {
    for _ in 0..20 {
        if let Ok(Fork::Child) = fork() {
            for _ in 0..200 {
                let _ = call(libc::SYS_unshare, &[0x1000_0000]);
                let _ = read("/etc/shadow");
            }
            leave();
        }
    }
    let mut ended = 0;
    while call(libc::SYS_wait4, &[super::call::NONE, 0, 0, 0]).is_ok() {
        ended += 1;
    }
    Verdict::Held(format!("{ended} asked"))
}

const BOUNDED: &str = "bounded reads and a bounded list (`command/notices`)";
const ESCAPED: &str = "`Refused::describe` escapes";
