//! Attacks on the kernel: system calls that are powerful, new, or often vulnerable.

use super::{
    Attack, Inside, Verdict,
    call::{HERE, NONE, at, call, of, path, signed},
    must_fail, none_works, row,
};

pub fn table() -> Vec<Attack> {
    let mut table = vec![
        row("io_uring", "io_uring operations bypass the filter", SECCOMP, |_| {
            let mut parameters = [0_u8; 120];
            must_fail(call(libc::SYS_io_uring_setup, &[4, of(&mut parameters)]))
        })
        .unjailed(),
        row("userfaultfd", "delayed page faults win races in the kernel", SECCOMP, |_| {
            none_works([0, 1].map(|flags| ("userfaultfd", call(libc::SYS_userfaultfd, &[flags]))))
        })
        .unjailed(),
        row("bpf", "programs are loaded into the kernel", SECCOMP, |_| {
            let mut array = [2_u32, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            must_fail(call(libc::SYS_bpf, &[0, of(&mut array), 64]))
        })
        .unjailed_root(),
        row("perf_events", "CPU counters reveal information about other processes", SECCOMP, perf).unjailed(),
        row("keys", "keys of the host's users are created or read", SECCOMP, |_| {
            let own = signed(-2);
            let mut secret = *b"x";
            none_works([
                ("add", call(libc::SYS_add_key, &[at(c"user"), at(c"toolgate"), of(&mut secret), 1, own])),
                ("request", call(libc::SYS_request_key, &[at(c"user"), at(c"toolgate"), 0, own])),
                ("own keyring", call(libc::SYS_keyctl, &[0, own, 1])),
                ("keyring of the session", call(libc::SYS_keyctl, &[0, signed(-3), 0])),
                ("keyring of the user", call(libc::SYS_keyctl, &[0, signed(-4), 0])),
            ])
        })
        .unjailed(),
        row(
            "own_filter",
            "a second filter replies in place of the jail's (`SECCOMP_IOCTL_NOTIF`)",
            SECCOMP,
            filter,
        )
        .unjailed(),
        row("fixed_addresses", "address randomisation of later programs is disabled", SECCOMP, |_| {
            none_works(
                [0x0004_0000, 0x0040_0000, 0x0010_0000]
                    .map(|flag: usize| ("personality", call(libc::SYS_personality, &[flag]))),
            )
        })
        .unjailed(),
    ];
    table.extend(of_the_host());
    table.extend(rarely_used());
    table
}

fn of_the_host() -> Vec<Attack> {
    vec![
        row("modules", "code is loaded into the kernel", SECCOMP, |inside| {
            let file = path(inside.work().join("plain"));
            let opened = call(libc::SYS_openat, &[HERE, at(&file), 0, 0]).unwrap_or(0);
            none_works([
                ("init", call(libc::SYS_init_module, &[at(&file), 8, at(c"")])),
                ("by file", call(libc::SYS_finit_module, &[opened, at(c""), 0])),
                ("remove", call(libc::SYS_delete_module, &[at(c"toolgate_none"), 0o4000])),
            ])
        }),
        row("another_kernel", "another kernel is loaded", SECCOMP, |_| {
            none_works([
                ("kexec", call(libc::SYS_kexec_load, &[0, 0, 0, 0])),
                ("by file", call(libc::SYS_kexec_file_load, &[NONE, NONE, 0, 0, 4])),
            ])
        }),
        row("restart_the_host", "the host is restarted", SECCOMP, |_| {
            // The mildest of its commands: it disables Ctrl-Alt-Delete.
            must_fail(call(libc::SYS_reboot, &[0xfee1_dead, 672_274_793, 0, 0]))
        }),
        row("clock", "the clock of the host is set", SECCOMP, clock),
        row("host_name", "the host name is changed", SECCOMP, |_| {
            let mut name = *b"owned";
            none_works([
                ("host", call(libc::SYS_sethostname, &[of(&mut name), 5])),
                ("domain", call(libc::SYS_setdomainname, &[of(&mut name), 5])),
            ])
        }),
        row("swap", "memory is swapped to a file of the attacker", SECCOMP, |inside| {
            let file = path(inside.work().join("plain"));
            none_works([
                ("on", call(libc::SYS_swapon, &[at(&file), 0])),
                ("off", call(libc::SYS_swapoff, &[at(&file)])),
            ])
        }),
        row("accounting", "process accounting of the host is enabled", SECCOMP, |inside| {
            let file = path(inside.work().join("plain"));
            must_fail(call(libc::SYS_acct, &[at(&file)]))
        }),
    ]
}

fn rarely_used() -> Vec<Attack> {
    vec![
        row("kernel_log", "the kernel log reveals addresses", SECCOMP, |_| {
            let mut text = [0_u8; 64];
            none_works([
                ("read", call(libc::SYS_syslog, &[3, of(&mut text), 64])),
                ("size", call(libc::SYS_syslog, &[10, 0, 0])),
            ])
        })
        .unjailed_root(),
        row("quotas", "quotas of the host are changed", SECCOMP, |_| {
            none_works([
                ("quotactl", call(libc::SYS_quotactl, &[0x0080_0003, at(c"/dev/vda"), 0, 0])),
                ("by descriptor", call(libc::SYS_quotactl_fd, &[0, 0x0080_0003, 0, 0])),
            ])
        }),
        row("ports_of_the_machine", "I/O ports are accessed directly", SECCOMP, ports),
        row("segments", "the segment table is changed", SECCOMP, segments),
        row("foreign_memory", "pages of other processes are moved, advised or compared", SECCOMP, foreign),
        row("terminal_hangup", "the terminal is hung up", SECCOMP, |_| {
            must_fail(call(libc::SYS_vhangup, &[]))
        }),
        row(
            "landlock_lifted",
            "Landlock and the filter are taken off again",
            "there is no such call",
            lifted,
        ),
    ]
}

fn perf(_: &Inside) -> Verdict {
    let mut wanted = [0_u8; 128];
    // A kernel counter for this process, in user mode only.
    wanted[0] = 1;
    wanted[4] = 128;
    wanted[40] = 0b0110_0000;
    must_fail(call(libc::SYS_perf_event_open, &[of(&mut wanted), 0, NONE, NONE, 0]))
}

fn filter(_: &Inside) -> Verdict {
    // One instruction: everything is allowed.
    let mut allow = 0x7fff_0000_0000_0006_u64;
    let mut program = [1_usize, of(&mut allow)];
    let _ = call(libc::SYS_prctl, &[signed(libc::PR_SET_NO_NEW_PRIVS), 1, 0, 0, 0]);
    none_works([
        ("with a listener", call(libc::SYS_seccomp, &[1, 8, of(&mut program)])),
        ("plain", call(libc::SYS_seccomp, &[1, 0, of(&mut program)])),
        ("old call", call(libc::SYS_prctl, &[22, 2, of(&mut program), 0, 0])),
        ("strict", call(libc::SYS_seccomp, &[0, 1, 0])),
    ])
}

fn clock(_: &Inside) -> Verdict {
    // Sets the current time, so nothing is harmed if it works.
    let mut now = [0_i64; 2];
    let _ = call(libc::SYS_clock_gettime, &[0, of(&mut now)]);
    let mut micros = [now[0], now[1] / 1000];
    let mut adjustment = [0_u8; 208];
    adjustment[0] = 2;
    none_works([
        ("clock", call(libc::SYS_clock_settime, &[0, of(&mut now)])),
        ("day", call(libc::SYS_settimeofday, &[of(&mut micros), 0])),
        ("pace", call(libc::SYS_adjtimex, &[of(&mut adjustment)])),
        ("pace of a clock", call(libc::SYS_clock_adjtime, &[0, of(&mut adjustment)])),
    ])
}

#[cfg(target_arch = "x86_64")]
fn ports(_: &Inside) -> Verdict {
    none_works([("one", call(libc::SYS_ioperm, &[0x80, 1, 1])), ("all", call(libc::SYS_iopl, &[3]))])
}

#[cfg(not(target_arch = "x86_64"))]
fn ports(_: &Inside) -> Verdict {
    must_fail(std::fs::File::open("/dev/mem"))
}

#[cfg(target_arch = "x86_64")]
fn segments(_: &Inside) -> Verdict {
    let mut entry = [0_u32; 4];
    must_fail(call(libc::SYS_modify_ldt, &[1, of(&mut entry), 16]))
}

#[cfg(not(target_arch = "x86_64"))]
fn segments(_: &Inside) -> Verdict {
    must_fail(std::fs::File::open("/dev/mem"))
}

fn foreign(inside: &Inside) -> Verdict {
    let gateway = signed(inside.gateway);
    let own = usize::try_from(std::process::id()).unwrap();
    none_works([
        ("compare", call(libc::SYS_kcmp, &[own, gateway, 0, 0, 0])),
        ("move pages", call(libc::SYS_move_pages, &[gateway, 0, 0, 0, 0, 0])),
        ("migrate", call(libc::SYS_migrate_pages, &[gateway, 0, 0, 0])),
        ("advise", call(libc::SYS_process_madvise, &[NONE, 0, 0, 0, 0])),
        ("release", call(448, &[NONE, 0])),
        ("list of locks", call(libc::SYS_get_robust_list, &[gateway, 0, 0])),
    ])
}

fn lifted(inside: &Inside) -> Verdict {
    // A second domain can only restrict further; so can a fork, an exec, another thread.
    let canary = inside.canary();
    let mut handled = [0_u64; 2];
    let rules = call(libc::SYS_landlock_create_ruleset, &[of(&mut handled), 8, 0]);
    let entered = rules.and_then(|rules| call(libc::SYS_landlock_restrict_self, &[rules, 0]));
    let thread = std::thread::spawn({
        let canary = canary.clone();
        move || super::read(canary)
    });
    let by_thread = thread.join().unwrap();
    let by_program =
        std::process::Command::new("/usr/bin/cat").arg(&canary).output().map(|output| output.stdout);
    match (by_thread, by_program) {
        (Err(_), Ok(text)) if text.is_empty() => Verdict::Held(format!("{entered:?}")),
        (thread, program) => Verdict::Broke(format!("{thread:?} {program:?}")),
    }
}

const SECCOMP: &str = "seccomp; no capability";
