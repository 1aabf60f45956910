//! Attacks on other processes: the gateway, process 1 and neighbours; and attempts to outlive the command.

use std::{
    fs::{self, File},
    io::{self, Write},
    process::{Command, Stdio},
    time::Duration,
};

use super::{
    Attack, Inside, Verdict,
    call::{Fork, call, fork, leave, of, signed, wait},
    must_fail, none_works, read, row,
    stage::Target,
};
use crate::driver::INSIDE;

pub fn table() -> Vec<Attack> {
    let mut table = looking();
    table.extend(touching());
    table.extend(surviving());
    table
}

fn looking() -> Vec<Attack> {
    vec![
        row(
            "inherited_descriptors",
            "an inherited descriptor leads to the gateway or the supervisor",
            CLOSED,
            inherited,
        ),
        row(
            "environment",
            "the environment of the gateway is inherited",
            "nothing is inherited",
            environment,
        ),
        row(
            "environment_of_others",
            "`/proc/*/environ` of the gateway or process 1 is read",
            PROC,
            |inside| everywhere(inside, "environ", |path| read(path)),
        )
        .unjailed(),
        row("root_of_others", "`/proc/*/root` leads to the tree of another process", PROC, |inside| {
            let below = inside.canary();
            everywhere(inside, "root", |path| read(format!("{path}{}", below.display())))
        })
        .unjailed(),
        row("folder_of_others", "`/proc/*/cwd` leads to the directory of another process", PROC, |inside| {
            everywhere(inside, "cwd", |path| fs::read_dir(path).map(|_| "listed".into()))
        })
        .unjailed(),
        row("descriptors_of_others", "`/proc/*/fd` opens what another process has open", PROC, |inside| {
            everywhere(inside, "fd", |path| fs::read_dir(path).map(|_| "listed".into()))
        })
        .unjailed(),
        row("memory_file_of_others", "`/proc/*/mem` shows the memory of another process", PROC, memory_file)
            .unjailed(),
        row("read_memory_of_others", "`process_vm_readv` reads the gateway's memory", SECCOMP, |inside| {
            vm(inside, libc::SYS_process_vm_readv)
        })
        .unjailed(),
        row("write_memory_of_others", "`process_vm_writev` writes the gateway's memory", SECCOMP, |inside| {
            vm(inside, libc::SYS_process_vm_writev)
        })
        .unjailed(),
        row("steal_descriptor", "`pidfd_getfd` takes a descriptor of the gateway", SECCOMP, steal).unjailed(),
        row("program_of_others", "`/proc/*/exe` and maps reveal programs and addresses", PROC, |inside| {
            everywhere(inside, "maps", |path| read(path).and_then(told))
        })
        .unjailed(),
    ]
}

fn touching() -> Vec<Attack> {
    vec![
        row("trace_gateway", "the gateway is traced", SECCOMP, |inside| trace(inside.gateway)).unjailed(),
        row("trace_parent", "process 1 or the supervisor is traced", SECCOMP, |_| trace(parent())).unjailed(),
        row("trace_own_child", "tracing a child bypasses its filter", SECCOMP, trace_child).unjailed(),
        row("signal_gateway", "the gateway is killed or stopped", SIGNALS, |inside| signal(inside.gateway))
            .unjailed(),
        row("signal_parent", "process 1 or the supervisor is killed", SIGNALS, |_| signal_parent()),
        row("signal_everybody", "processes of the host are signalled all at once", SIGNALS, everybody)
            .at(Target::StoppedDecoy)
            .unjailed(),
        row("signal_by_handle", "a pidfd sends a signal to the gateway", SIGNALS, by_handle).unjailed(),
        row("signal_by_descriptor", "`F_SETOWN` makes the kernel signal the gateway", SIGNALS, by_descriptor)
            .unjailed(),
        row("queued_signal", "a queued signal with made-up data reaches the gateway", SIGNALS, |inside| {
            let mut about = [0_i32; 32];
            (about[0], about[2]) = (libc::SIGKILL, -1);
            must_fail(call(libc::SYS_rt_sigqueueinfo, &[signed(inside.gateway), 9, of(&mut about)]))
        })
        .unjailed(),
        row("limits_of_others", "limits of the gateway are lowered (`prlimit`)", OTHERS, limits).unjailed(),
        row("processors_of_others", "the gateway is bound to one processor", OTHERS, affinity).unjailed(),
        row(
            "priority_of_others",
            "the priority of the gateway, or of all its user's processes, is lowered",
            OTHERS,
            priority,
        )
        .unjailed(),
        row("schedule_of_others", "the scheduling policy of the gateway is changed", OTHERS, schedule)
            .unjailed(),
        row("disk_priority_of_others", "the I/O priority of the gateway is lowered", OTHERS, disk).unjailed(),
    ]
}

fn surviving() -> Vec<Attack> {
    vec![
        row("double_fork", "a daemon in its own session that ignores signals survives", DIES, |_| {
            daemon(Daemons::Leave)
        }),
        row("held_output", "a child that holds the output open keeps the call waiting", DIES, |_| {
            daemon(Daemons::Stay)
        }),
        row("zombies", "zombies are never reaped", DIES, |_| zombies()),
        row("stopped", "a stopped process blocks the wait forever", "deadline", |_| {
            let _ = call(libc::SYS_kill, &[usize::try_from(std::process::id()).unwrap(), 19]);
            Verdict::Held("went on".into())
        })
        .anyhow()
        .within(Duration::from_millis(100))
        .harms(|_, report| {
            (report.ending != toolgate_sandbox::Ending::TimedOut).then(|| "it was not ended".into())
        }),
        row("deaf", "a process that ignores every signal outlives its deadline", "deadline; SIGKILL", |_| {
            deaf()
        })
        .anyhow()
        .within(Duration::from_millis(100))
        .harms(|_, report| {
            (report.ending != toolgate_sandbox::Ending::TimedOut).then(|| "it was not ended".into())
        }),
        row("adopted", "a child made a sibling (`CLONE_PARENT`) outlives the command", DIES, adopted),
        row("restarting", "a process that keeps restarting itself escapes the kill", DIES, |_| restarting()),
    ]
}

/// Tries every process that could be another user's or the host's.
fn everywhere(inside: &Inside, name: &str, look: impl Fn(&str) -> io::Result<String>) -> Verdict {
    let own = std::process::id().to_string();
    let mut others: Vec<String> = ["1".to_owned(), inside.gateway.to_string(), parent().to_string()].into();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = entry.file_name().to_string_lossy().into_owned();
        // Threads and processes of the host, if visible; only some of them, to save time.
        if process.parse::<u32>().is_ok() && others.len() < 64 {
            others.push(process);
        }
    }
    others.retain(|process| *process != own);
    for process in others {
        for path in [format!("/proc/{process}/{name}"), format!("/proc/{process}/task/{process}/{name}")] {
            if let Ok(got) = look(&path) {
                return Verdict::Broke(format!("{path} {got}"));
            }
        }
    }
    Verdict::Held("nobody can be looked into".into())
}

/// Some files of `/proc` can be opened by everyone but are empty for most.
fn told(text: String) -> io::Result<String> {
    if text.is_empty() { Err(io::Error::other("empty")) } else { Ok(text) }
}

fn inherited(_: &Inside) -> Verdict {
    let get_flags = usize::try_from(libc::F_GETFD).unwrap();
    let open = (3..1024).find(|number| call(libc::SYS_fcntl, &[*number, get_flags]).is_ok());
    open.map_or_else(
        || Verdict::Held("0 to 2".to_owned()),
        |number| Verdict::Broke(format!("{number} is open")),
    )
}

fn environment(_: &Inside) -> Verdict {
    let names = std::env::vars().map(|(name, _)| name);
    let strange: Vec<String> = names.filter(|name| !name.starts_with("STAGE_") && name != "PATH").collect();
    let whole = read("/proc/self/environ").unwrap_or_default();
    let is_whole =
        whole.split('\0').all(|one| one.is_empty() || one.starts_with("STAGE_") || one.starts_with("PATH="));
    if strange.is_empty() && is_whole {
        Verdict::Held("as given".into())
    } else {
        Verdict::Broke(format!("{strange:?}"))
    }
}

fn memory_file(inside: &Inside) -> Verdict {
    use std::os::unix::fs::FileExt;
    let mut bytes = [0_u8; 64];
    let place = u64::try_from(inside.secret_at).unwrap();
    let others = [inside.gateway, parent(), 1];
    none_works(others.map(|process| {
        let opened = File::open(format!("/proc/{process}/mem"));
        let got = opened.and_then(|memory| memory.read_at(&mut bytes, place));
        ("read", got.map(|got| String::from_utf8_lossy(&bytes[..got]).into_owned()))
    }))
}

fn vm(inside: &Inside, number: libc::c_long) -> Verdict {
    // Writes the byte that is already there.
    let mut bytes = *b"s00000000000000000000000000000000000000000000000000000000000000";
    let length = if number == libc::SYS_process_vm_writev { 1 } else { 40 };
    let mut own = [of(&mut bytes), length];
    let mut theirs = [inside.secret_at, length];
    let outcome = call(number, &[signed(inside.gateway), of(&mut own), 1, of(&mut theirs), 1, 0]);
    must_fail(outcome.map(|_| String::from_utf8_lossy(&bytes).into_owned()))
}

fn steal(inside: &Inside) -> Verdict {
    let taken = |handle| call(libc::SYS_pidfd_getfd, &[handle, 1, 0]);
    none_works(
        [inside.gateway, parent(), 1]
            .map(|process| ("take", call(libc::SYS_pidfd_open, &[signed(process), 0]).and_then(taken))),
    )
}

fn trace(process: i32) -> Verdict {
    let seized = call(libc::SYS_ptrace, &[usize::try_from(libc::PTRACE_SEIZE).unwrap(), signed(process)]);
    if seized.is_ok() {
        return must_fail(seized);
    }
    must_fail(call(libc::SYS_ptrace, &[usize::try_from(libc::PTRACE_ATTACH).unwrap(), signed(process)]))
}

fn trace_child(_: &Inside) -> Verdict {
    match fork() {
        Ok(Fork::Child) => {
            std::thread::sleep(Duration::from_secs(20));
            leave()
        }
        Ok(Fork::Parent(child)) => {
            let verdict = trace(i32::try_from(child).unwrap());
            let _ = call(libc::SYS_kill, &[child, 9]);
            let _ = wait(child);
            verdict
        }
        Err(error) => Verdict::Broke(format!("a child is everybody's right: {error}")),
    }
}

fn signal(process: i32) -> Verdict {
    none_works([0, libc::SIGSTOP, libc::SIGTERM, libc::SIGKILL].map(|signal| {
        let target = signed(process);
        let whole = call(libc::SYS_kill, &[target, signed(signal)]);
        let group = || call(libc::SYS_kill, &[signed(-process), signed(signal)]);
        let thread = || call(libc::SYS_tgkill, &[target, target, signed(signal)]);
        ("signal", whole.or_else(|_| thread()).or_else(|_| group()))
    }))
}

fn signal_parent() -> Verdict {
    // The kernel accepts signals for process 1 of a namespace and drops them; a living parent is the proof.
    let parent = parent();
    let answers = [libc::SIGKILL, libc::SIGSTOP, libc::SIGTERM, libc::SIGUSR1, libc::SIGSEGV]
        .map(|signal| call(libc::SYS_kill, &[signed(parent), signed(signal)]));
    std::thread::sleep(Duration::from_millis(20));
    if self::parent() != parent {
        return Verdict::Broke("the parent is gone".into());
    }
    if parent > 1 && answers.iter().any(Result::is_ok) {
        return Verdict::Broke("the supervisor can be signalled".into());
    }
    Verdict::Held(format!("{:?}", answers[0]))
}

fn everybody(inside: &Inside) -> Verdict {
    if inside.has_own_processes {
        // Kills for real: its own namespace contains no other process.
        return none_works(
            [libc::SIGKILL, 0].map(|signal| ("all", call(libc::SYS_kill, &[signed(-1), signed(signal)]))),
        );
    }
    // Here all processes are visible, so it uses a signal that only continues stopped processes. The kernel reports
    // success even if it signalled none; whether one continued is checked outside.
    let answer = call(libc::SYS_kill, &[signed(-1), signed(libc::SIGCONT)]);
    std::thread::sleep(Duration::from_millis(20));
    match none_works(
        [1, parent()].map(|process| ("one", call(libc::SYS_kill, &[signed(process), signed(libc::SIGCONT)]))),
    ) {
        Verdict::Held(how) => Verdict::Held(format!("{answer:?} {how}")),
        broke @ Verdict::Broke(_) => broke,
    }
}

fn by_handle(inside: &Inside) -> Verdict {
    must_fail(
        call(libc::SYS_pidfd_open, &[signed(inside.gateway), 0])
            .and_then(|handle| call(libc::SYS_pidfd_send_signal, &[handle, 9, 0, 0])),
    )
}

fn by_descriptor(inside: &Inside) -> Verdict {
    let (source, mut sink) = io::pipe().unwrap();
    let set = |command: i32, value: usize| {
        call(libc::SYS_fcntl, &[super::call::descriptor(&source), signed(command), value])
    };
    // Any chosen signal, or otherwise SIGIO, which also kills.
    let _ = set(F_SETSIG, 9);
    let owned = set(libc::F_SETOWN, signed(inside.gateway))
        .and_then(|_| set(libc::F_SETFL, usize::try_from(libc::O_ASYNC).unwrap()))
        .and_then(|_| sink.write(b"x"));
    std::thread::sleep(Duration::from_millis(20));
    // The setup may succeed; whether the signal arrives is checked outside.
    Verdict::Held(format!("{owned:?}"))
}

fn limits(inside: &Inside) -> Verdict {
    let mut few = [64_u64, 64];
    must_fail(call(libc::SYS_prlimit64, &[signed(inside.gateway), 7, of(&mut few), 0]))
}

fn affinity(inside: &Inside) -> Verdict {
    let mut first = 1_u64;
    must_fail(call(libc::SYS_sched_setaffinity, &[signed(inside.gateway), 8, of(&mut first)]))
}

fn priority(inside: &Inside) -> Verdict {
    let set = |which: usize, who: i32| call(libc::SYS_setpriority, &[which, signed(who), 19]);
    let user = || rustix::process::geteuid().as_raw().cast_signed();
    let one = must_fail(set(0, inside.gateway));
    if matches!(one, Verdict::Held(_)) && !inside.has_own_processes {
        // All processes of the user; in a namespace these are the command's own.
        return must_fail(set(2, user()));
    }
    one
}

fn schedule(inside: &Inside) -> Verdict {
    let mut parameter = 0_i32;
    must_fail(call(libc::SYS_sched_setscheduler, &[signed(inside.gateway), 5, of(&mut parameter)]))
}

fn disk(inside: &Inside) -> Verdict {
    let idle = 3 << 13;
    must_fail(call(libc::SYS_ioprio_set, &[1, signed(inside.gateway), idle]))
}

#[derive(Clone, Copy)]
enum Daemons {
    /// Closing all descriptors, in their own session.
    Leave,
    /// Holding standard output.
    Stay,
}

fn daemon(kind: Daemons) -> Verdict {
    for _ in 0..3 {
        if let Ok(Fork::Child) = fork() {
            let _ = call(libc::SYS_setsid, &[]);
            if let Ok(Fork::Parent(_)) = fork() {
                leave();
            }
            ignore_all();
            if let Daemons::Leave = kind {
                for number in 0..3 {
                    let _ = call(libc::SYS_close, &[number]);
                }
            }
            std::thread::sleep(Duration::from_mins(10));
            leave();
        }
    }
    Verdict::Held("daemons were left".into())
}

fn deaf() -> Verdict {
    ignore_all();
    std::thread::sleep(Duration::from_mins(10));
    Verdict::Held("woke up".into())
}

fn ignore_all() {
    for signal in 1..=64 {
        let mut ignore = [1_usize, 0, 0, 0];
        let _ = call(libc::SYS_rt_sigaction, &[signal, of(&mut ignore), 0, 8]);
    }
}

fn zombies() -> Verdict {
    let mut count = 0;
    while count < 40 {
        match fork() {
            Ok(Fork::Child) => leave(),
            Ok(Fork::Parent(_)) => count += 1,
            Err(_) => break,
        }
    }
    Verdict::Held(format!("{count} were left unburied"))
}

fn adopted(_: &Inside) -> Verdict {
    let flags = usize::try_from(libc::CLONE_PARENT | libc::SIGCHLD).unwrap();
    match call(libc::SYS_clone, &[flags, 0, 0, 0, 0]) {
        Ok(0) => {
            ignore_all();
            std::thread::sleep(Duration::from_mins(10));
            leave()
        }
        other => Verdict::Held(format!("{other:?}")),
    }
}

fn restarting() -> Verdict {
    let own = std::env::current_exe().unwrap();
    if std::env::var_os("STAGE_AGAIN").is_none() {
        for _ in 0..4 {
            let mut again = Command::new(&own);
            again.args([INSIDE, "restarting"]).env("STAGE_AGAIN", "1").stdout(Stdio::null());
            let _ = again.spawn();
        }
        std::thread::sleep(Duration::from_millis(50));
        return Verdict::Held("they were left running".into());
    }
    // Each starts the next and exits; all must be gone with the first command.
    loop {
        let mut next = Command::new(&own);
        if next.args([INSIDE, "restarting"]).spawn().is_ok() {
            leave();
        }
    }
}

fn parent() -> i32 {
    rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get())
}

const F_SETSIG: i32 = 10;
const CLOSED: &str = "everything but 0 to 2 is closed";
const PROC: &str = "`hidepid`, process namespace; Landlock";
const SECCOMP: &str = "seccomp; process namespace";
const SIGNALS: &str = "process namespace; Landlock scope";
const OTHERS: &str = "process namespace; seccomp where there is none";
const DIES: &str = "everything dies together";
