//! Attacks that exhaust limited resources: processes, memory, disk, descriptors, the reader of the output.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use toolgate_sandbox::{Ending, Layer, Trace};

use super::{
    Attack, Hole, Inside, Verdict,
    call::{Fork, call, descriptor, fork, leave, of, signed},
    row,
};
use crate::driver::{CAPS, is_root};

pub fn table() -> Vec<Attack> {
    let mut table = vec![
        row("fork_bomb", "unlimited processes", PROCESSES, bomb)
            .in_namespaces()
            .anyhow()
            .within(Duration::from_secs(3))
            .changed(|order, _| order.limits.processes = FEW)
            .harms(|_, report| bounded(&report.stdout, if is_root() { 301 } else { FEW }))
            .hole(Hole::Cut(|order, _| order.limits.processes = 1000)),
        row("thread_bomb", "unlimited threads", PROCESSES, |_| threads())
            .in_namespaces()
            .changed(|order, _| order.limits.processes = FEW)
            .harms(|_, report| bounded(&report.stdout, if is_root() { 301 } else { FEW }))
            .hole(Hole::Cut(|order, _| order.limits.processes = 1000)),
        row("memory_bomb", "one process takes all memory", "`RLIMIT_DATA`", |_| memory(MUCH))
            .anyhow()
            .changed(|order, _| order.limits.memory_bytes = LITTLE)
            .harms(|_, report| {
                // A control group also counts kernel memory of the jail, and may be full before the process sees an
                // error.
                let is_ended =
                    report.ending == Ending::OutOfMemory && report.strength.has(Layer::ControlGroup);
                let is_told = report.ending == Ending::Exited(0) && report.stdout.starts_with(b"held ");
                let is_bounded = report.usage.peak_memory <= LITTLE + (64 << 20);
                (!is_bounded || !is_told && !is_ended).then(|| "it got more than its limit".into())
            })
            .hole(Hole::Cut(|order, _| order.limits.memory_bytes = 4 << 30)),
        row(
            "memory_bombs",
            "many processes together take all memory",
            "control group, or the supervisor",
            |_| together(),
        )
        .anyhow()
        .changed(|order, _| order.limits.memory_bytes = LITTLE)
        .harms(|_, report| (report.ending != Ending::OutOfMemory).then(|| "it was not ended".into()))
        .hole(Hole::Cut(|order, _| order.limits.memory_bytes = 4 << 30)),
        row("stack_bomb", "an unlimited stack", "`RLIMIT_STACK`, which cannot be raised", |_| {
            let mut endless = [u64::MAX; 2];
            let stack = 3;
            let _ = call(libc::SYS_prlimit64, &[0, stack, of(&mut endless), 0]);
            let taken = deeper(0);
            Verdict::Held(format!("{taken}"))
        })
        .anyhow()
        .changed(|order, _| order.limits.memory_bytes = LITTLE)
        // Killed by the kernel at the limit, not by polling when it is too late.
        .harms(|_, report| match report.ending {
            Ending::Signalled(_) => None,
            ref other => Some(format!("it was not ended by its own weight: {other:?}")),
        }),
        row("locked_memory", "memory is locked until others have none", "`RLIMIT_MEMLOCK`", |_| {
            let mut page = vec![0_u8; 1 << 20];
            super::must_fail(call(libc::SYS_mlock, &[of(page.as_mut_slice()), 1 << 20]))
        })
        .unjailed_root(),
    ];
    table.extend(of_disk());
    table.extend(more());
    table.extend(of_waiting());
    table
}

fn of_disk() -> Vec<Attack> {
    vec![
        row("huge_file", "one file fills the disk", "`RLIMIT_FSIZE`", |inside| {
            huge(&inside.work().join("free/huge"))
        })
        .changed(|order, _| order.limits.file_bytes = LITTLE)
        .harms(|stage, _| {
            let size = fs::metadata(stage.folder.join("work/free/huge")).map_or(0, |about| about.len());
            (size > LITTLE).then(|| format!("{size} bytes"))
        })
        .hole(Hole::Cut(|order, _| order.limits.file_bytes = 1 << 40)),
        row("full_tmp", "`/tmp` fills the host's memory", "size of the private `/tmp`", |_| full_tmp())
            .in_namespaces()
            .hole(Hole::Cut(|order, _| {
                order.view.tmp_bytes = 1 << 30;
                order.limits.file_bytes = 1 << 30;
            })),
        row("many_names", "unlimited files in `/tmp`", "number of files in the private `/tmp`", |_| {
            many_names()
        })
        .in_namespaces()
        .changed(|order, _| order.trace = Trace::Off),
    ]
}

fn more() -> Vec<Attack> {
    vec![
        row("many_descriptors", "the host runs out of open files", "`RLIMIT_NOFILE`", |_| many_descriptors())
            .harms(|_, _| File::open("/dev/null").err().map(|error| error.to_string()))
            .hole(Hole::Cut(|order, _| order.limits.open_files = 1000)),
        row("raised_limits", "limits are raised again", "hard limits; no capability", |_| raise()),
        row("big_pipes", "pipes take kernel memory", "`RLIMIT_NOFILE`; the host's limit of pipes", pipes),
        row("core_dump", "a core dump is left on the host", "`RLIMIT_CORE`", dump).anyhow().harms(
            |stage, _| {
                let left = fs::read_dir(stage.folder.join("work/free")).unwrap().flatten();
                let mut left = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
                left.find(|name| name.contains("core"))
            },
        ),
        row("flood_of_output", "endless output fills the gateway's memory", "`OutputCaps`", |_| flood(1))
            .anyhow()
            .harms(|_, report| {
                let is_cut = report.ending == Ending::OutputTooLarge && report.stdout.len() <= CAPS.stdout;
                (!is_cut).then(|| format!("{:?} after {} bytes", report.ending, report.stdout.len()))
            }),
        row("flood_of_complaints", "endless error output fills the gateway's memory", "`OutputCaps`", |_| {
            flood(2)
        })
        .anyhow()
        .within(Duration::from_millis(150))
        .harms(|_, report| {
            (!report.stderr_cut || report.stderr.len() > CAPS.stderr).then(|| "it was not cut".into())
        }),
        row("endless_work", "many processes use the CPU forever", "deadline; `RLIMIT_CPU`", |_| {
            for _ in 0..3 {
                let _ = fork();
            }
            let started = Instant::now();
            while started.elapsed() < Duration::from_mins(5) {}
            Verdict::Held("went on".into())
        })
        .anyhow()
        .within(Duration::from_millis(150))
        .harms(|_, report| (report.ending != Ending::TimedOut).then(|| format!("{:?}", report.ending))),
        row(
            "terminal_sequences",
            "terminal escape sequences in the output take effect",
            "captured, never interpreted",
            |_| Verdict::Held(SEQUENCES.into()),
        )
        .harms(|_, report| {
            (report.stdout != format!("held {SEQUENCES}\n").as_bytes()).then(|| "changed".into())
        }),
    ]
}

fn of_waiting() -> Vec<Attack> {
    vec![
        row(
            "many_waits",
            "the host's user runs out of epoll entries",
            "seccomp: the supervisor counts them",
            |_| waits(),
        )
        .changed(|order, _| order.limits.open_files = 512)
        .harms(|_, report| bounded(&report.stdout, MOST_WAITS))
        .unjailed(),
        row("many_watches", "the host's user runs out of file watches", "seccomp", |_| watches())
            .meanwhile(|_| std::thread::sleep(Duration::from_millis(5)))
            .harms(|_, report| bounded(&report.stdout, 100)),
    ]
}

/// Harm if the attacker reports more than the limit, or nothing at all, in which case the test proves nothing.
fn bounded(stdout: &[u8], most: u64) -> Option<String> {
    let said = String::from_utf8_lossy(stdout);
    let numbers =
        said.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
    match numbers.max() {
        Some(got) if got <= most => None,
        got => Some(format!("{got:?} where {most} are allowed")),
    }
}

/// Bounded by itself, too, in case the jail fails.
fn bomb(_: &Inside) -> Verdict {
    let mut count = 0_u64;
    while count < 600 {
        match fork() {
            Ok(Fork::Child) => {
                std::thread::sleep(Duration::from_secs(20));
                leave()
            }
            Ok(Fork::Parent(_)) => count += 1,
            Err(_) => break,
        }
    }
    Verdict::Held(count.to_string())
}

fn threads() -> Verdict {
    let mut count = 0_u64;
    while count < 600 {
        let builder = std::thread::Builder::new().stack_size(32 << 10);
        match builder.spawn(|| std::thread::sleep(Duration::from_secs(20))) {
            Ok(_) => count += 1,
            Err(_) => break,
        }
    }
    Verdict::Held(count.to_string())
}

/// Allocates memory in steps of one megabyte.
fn memory(most: usize) -> Verdict {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    while taken.len() < most {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(1 << 20).is_err() {
            return Verdict::Held(format!("{} MiB", taken.len()));
        }
        piece.resize(1 << 20, 1);
        taken.push(piece);
    }
    Verdict::Broke(format!("{} MiB", taken.len()))
}

fn together() -> Verdict {
    for _ in 0..6 {
        if let Ok(Fork::Child) = fork() {
            let held = vec![1_u8; 24 << 20];
            std::thread::sleep(Duration::from_secs(20));
            std::hint::black_box(held);
            leave();
        }
    }
    std::thread::sleep(Duration::from_millis(400));
    Verdict::Broke("144 MiB are held".into())
}

fn deeper(depth: usize) -> usize {
    let page = std::hint::black_box([1_u8; 8192]);
    if depth >= 40_000 { depth } else { deeper(depth + 1) + usize::from(page[depth % 8192]) - 1 }
}

fn huge(path: &Path) -> Verdict {
    // Ignored, so the process sees the error and continues.
    let mut ignore = [1_usize, 0, 0, 0];
    let _ = call(libc::SYS_rt_sigaction, &[signed(libc::SIGXFSZ), of(&mut ignore), 0, 8]);
    let mut file = File::create(path).unwrap();
    let piece = vec![0_u8; 1 << 20];
    let mut written = 0;
    while written < MUCH {
        match file.write(&piece) {
            Ok(got) if got > 0 => written += 1,
            _ => break,
        }
    }
    let stretched = file.set_len(1 << 40);
    let beyond = call(libc::SYS_fallocate, &[descriptor(&file), 0, 1 << 40, 4096]);
    if written < MUCH && stretched.is_err() && beyond.is_err() {
        return Verdict::Held(format!("{written} MiB"));
    }
    Verdict::Broke(format!("{written} MiB {stretched:?} {beyond:?}"))
}

fn full_tmp() -> Verdict {
    let piece = vec![1_u8; 1 << 20];
    let written = (0..MUCH).take_while(|number| fs::write(format!("/tmp/{number}"), &piece).is_ok()).count();
    if written < 17 {
        Verdict::Held(format!("{written} MiB"))
    } else {
        Verdict::Broke(format!("{written} MiB"))
    }
}

fn many_names() -> Verdict {
    let made = (0..80_000).take_while(|number| symlink("x", format!("/tmp/{number}")).is_ok()).count();
    if made < 70_000 { Verdict::Held(made.to_string()) } else { Verdict::Broke(made.to_string()) }
}

fn many_descriptors() -> Verdict {
    let mut open = Vec::new();
    while open.len() < 900 {
        match File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(_) => return Verdict::Held(open.len().to_string()),
        }
    }
    Verdict::Broke(open.len().to_string())
}

fn raise() -> Verdict {
    let tries =
        [libc::RLIMIT_CPU, libc::RLIMIT_FSIZE, libc::RLIMIT_DATA, libc::RLIMIT_CORE, libc::RLIMIT_NOFILE];
    super::none_works(tries.map(|resource| {
        let mut endless = [u64::MAX, u64::MAX];
        ("raise", call(libc::SYS_prlimit64, &[0, usize::try_from(resource).unwrap(), of(&mut endless), 0]))
    }))
}

fn pipes(_: &Inside) -> Verdict {
    let mut kept = Vec::new();
    let mut bytes = 0;
    while let Ok((source, sink)) = io::pipe() {
        bytes +=
            call(libc::SYS_fcntl, &[descriptor(&sink), signed(libc::F_SETPIPE_SZ), 1 << 20]).unwrap_or(65536);
        kept.push((source, sink));
        if bytes > 1 << 30 {
            return Verdict::Broke(format!("{bytes} bytes"));
        }
    }
    Verdict::Held(format!("{bytes} bytes in {} pipes", kept.len()))
}

fn dump(inside: &Inside) -> Verdict {
    let _ = std::env::set_current_dir(inside.work().join("free"));
    let _ = raise();
    let mut heed = [0_usize; 4];
    let _ = call(libc::SYS_rt_sigaction, &[signed(libc::SIGSEGV), of(&mut heed), 0, 8]);
    let _ = call(libc::SYS_kill, &[usize::try_from(std::process::id()).unwrap(), signed(libc::SIGSEGV)]);
    Verdict::Held("it lives".into())
}

fn flood(number: usize) -> Verdict {
    let mut piece = vec![b'x'; 1 << 16];
    while call(libc::SYS_write, &[number, of(piece.as_mut_slice()), 1 << 16]).is_ok() {}
    Verdict::Held("nobody listens".into())
}

/// One file can be added to epoll under many descriptor numbers, even after a number is reused. Few descriptors and
/// one instance are enough.
fn waits() -> Verdict {
    let instance = call(libc::SYS_epoll_create1, &[0]).unwrap();
    let files: Vec<io::PipeReader> = (0..FILES).map(|_| io::pipe().unwrap().0).collect();
    let mut count = 0_u64;
    for number in NUMBERS {
        for file in &files {
            let mut event = [1_u32, 0, 0];
            let added = call(libc::SYS_dup3, &[descriptor(file), number, 0]).and_then(|number| {
                call(libc::SYS_epoll_ctl, &[instance, signed(libc::EPOLL_CTL_ADD), number, of(&mut event)])
            });
            if added.is_err() {
                return Verdict::Held(count.to_string());
            }
            count += 1;
        }
    }
    Verdict::Broke(count.to_string())
}

fn watches() -> Verdict {
    let mut count = 0_u64;
    while count < 120 && call(libc::SYS_inotify_init1, &[0]).is_ok() {
        count += 1;
    }
    Verdict::Held(count.to_string())
}

const FILES: usize = 200;
const NUMBERS: std::ops::Range<usize> = 300..400;
/// The limit on hosts with the highest limit per user.
const MOST_WAITS: u64 = 1 << 14;
const FEW: u64 = 32;
const LITTLE: u64 = 32 << 20;
const MUCH: usize = 200;
const SEQUENCES: &str = "\x1b[2J\x1b]0;title\x07\x1b[6n\x1bP1$r\x1b\\\u{202e}\u{9b}31m\r\x08";
const PROCESSES: &str = "control group, `RLIMIT_NPROC`, or numbers of the process namespace";
