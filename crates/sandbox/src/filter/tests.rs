mod allowed;

use super::{calls::Machine, *};

/// Action of the kernel for a system call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Allowed,
    Asked,
    Absent,
    Killed,
}

/// The kernel's BPF machine, as far as our filters use it.
fn run(program: &[Instruction], architecture: u32, number: u32, arguments: [u64; 6]) -> Fate {
    let (mut here, mut accumulator) = (0_usize, 0_u32);
    loop {
        let step = program[here];
        here += 1;
        match step.code {
            0x20 => {
                accumulator = match step.k {
                    0 => number,
                    4 => architecture,
                    offset => low_half(arguments[(offset as usize - 16) / 8]),
                }
            }
            0x54 => accumulator &= step.k,
            0x05 => here += step.k as usize,
            0x15 => here += usize::from(if accumulator == step.k { step.jt } else { step.jf }),
            0x35 => here += usize::from(if accumulator >= step.k { step.jt } else { step.jf }),
            0x06 => {
                return match step.k {
                    libc::SECCOMP_RET_ALLOW => Fate::Allowed,
                    libc::SECCOMP_RET_USER_NOTIF => Fate::Asked,
                    libc::SECCOMP_RET_KILL_PROCESS => Fate::Killed,
                    other if other == libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32 => Fate::Absent,
                    other => panic!("answers {other:#x}"),
                };
            }
            other => panic!("instruction {other:#x}"),
        }
    }
}

fn low_half(argument: u64) -> u32 {
    u32::try_from(argument & 0xffff_ffff).unwrap()
}

const X86_64: u32 = 0xc000_003e;

const PLAIN: FilterVariant = FilterVariant {
    sockets: Sockets::None,
    processes: Processes::Namespace,
    paths: Paths::Unwatched,
    children: Children::Allowed,
};

struct Shipped {
    calls: Calls,
    filter: CommandFilter,
}

impl Shipped {
    fn new(variant: FilterVariant) -> Self {
        let calls = Calls::of(Machine::X86_64).unwrap();
        let profile = CommandProfile::shipped().unwrap();
        let always = ["openat", "execve", "connect", "mount"].map(|call| WatchedCall { call, unless: None });
        let unless = Some(SkipCondition { argument: 5, value: 0 });
        let looks = always.into_iter().chain([WatchedCall { call: "sendto", unless }]);
        let filter = profile.compile(&calls, variant, &looks.collect::<Vec<_>>()).unwrap();
        Self { calls, filter }
    }

    fn fate(&self, call: &str, arguments: [u64; 6]) -> Fate {
        run(&self.filter.program, X86_64, self.calls.number(call).unwrap(), arguments)
    }

    fn counted(&self, call: &str, arguments: [u64; 6]) -> Option<CountedResource> {
        let number = self.calls.number(call).unwrap();
        self.filter.counted.iter().find_map(|row| row.of(number, arguments))
    }

    #[track_caller]
    fn check(&self, call: &str, first: u64, second: u64, third: u64, fate: Fate) {
        let arguments = [first, second, third, 0, 0, 0];
        assert_eq!(self.fate(call, arguments), fate, "{call} {arguments:x?}");
    }
}

#[test]
fn shipped_list_compiles_for_both_architectures() {
    let profile = CommandProfile::shipped().unwrap();
    for machine in [Machine::X86_64, Machine::Aarch64] {
        let calls = Calls::of(machine).unwrap();
        let filter = profile.compile(&calls, PLAIN, &[]).unwrap();
        assert!((50..1000).contains(&filter.program.len()), "{}", filter.program.len());
    }
}

#[test]
fn calls_that_reach_beyond_the_jail_are_denied() {
    let shipped = Shipped::new(PLAIN);
    for call in BEYOND.split_ascii_whitespace() {
        assert_eq!(shipped.fate(call, [0; 6]), Fate::Asked, "{call}");
    }
    for call in ["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "inotify_init1"] {
        assert_eq!(shipped.fate(call, [0; 6]), Fate::Absent, "{call}");
    }
    for call in ["read", "openat", "execve", "fork", "exit_group", "getdents64", "setsid"] {
        assert_eq!(shipped.fate(call, [0; 6]), Fate::Allowed, "{call}");
    }
}

#[test]
fn other_calling_conventions_and_unknown_numbers_are_denied() {
    let shipped = Shipped::new(PLAIN);
    let program = &shipped.filter.program;
    assert_eq!(run(program, 0x4000_0003, 11, [0; 6]), Fate::Killed, "execve of 32 bits");
    for number in [0x4000_0000, 0x4000_003b, u32::MAX, 463, 10_000] {
        assert_eq!(run(program, X86_64, number, [0; 6]), Fate::Absent, "{number:#x}");
    }
}

#[test]
fn arguments_decide_the_action() {
    use Fate::{Allowed, Asked};
    let shipped = Shipped::new(PLAIN);
    shipped.check("clone", 0x0120_0011, 0, 0, Allowed);
    for namespace in [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000] {
        shipped.check("clone", namespace | 0x11, 0, 0, Asked);
    }
    shipped.check("ioctl", 0, 0x5401, 0, Allowed);
    for request in [0x5412, 0x541c, 0x5423, 0x5410, 0x5412 | 1 << 32] {
        shipped.check("ioctl", 0, request, 0, Asked);
    }
    shipped.check("personality", 0, 0, 0, Allowed);
    shipped.check("personality", 0xffff_ffff, 0, 0, Allowed);
    shipped.check("personality", 0x4_0000, 0, 0, Asked);
    shipped.check("mknod", 0, 0o010_644, 0, Allowed);
    shipped.check("mknod", 0, 0o020_666, 0, Asked);
    shipped.check("mknod", 0, 0o060_666, 0, Asked);
    let mmap = |flags| shipped.fate("mmap", [0, 4096, 3, flags, 0, 0]);
    assert_eq!([mmap(0x22), mmap(0x01), mmap(0x02)], [Allowed; 3]);
    assert_eq!([mmap(0x21), mmap(0x23)], [Asked; 2], "shared memory without a file");
    assert_eq!([mmap(0x102), mmap(0x122)], [Asked; 2], "memory that grows like a stack");
    shipped.check("chmod", 0, 0o755, 0, Allowed);
    shipped.check("fchmodat", 0, 0, 0o644, Allowed);
    for mode in [0o4755, 0o2755, 0o6000] {
        shipped.check("chmod", 0, mode, 0, Asked);
        shipped.check("fchmod", 0, mode, 0, Asked);
        shipped.check("fchmodat2", 0, 0, mode, Asked);
    }
    shipped.check("fcntl", 0, 1, 0, Allowed);
    for lock in [libc::F_SETLK, libc::F_SETLKW, libc::F_OFD_SETLK, libc::F_OFD_SETLKW] {
        let lock = u64::from(lock.cast_unsigned());
        shipped.check("fcntl", 0, lock, 0, Asked);
        assert_eq!(shipped.counted("fcntl", [0, lock | 1 << 32, 0, 0, 0, 0]), Some(CountedResource::Locks));
    }
    let epoll = |what: i32| u64::from(what.cast_unsigned());
    shipped.check("epoll_ctl", 3, epoll(libc::EPOLL_CTL_MOD), 0, Allowed);
    shipped.check("epoll_ctl", 3, epoll(libc::EPOLL_CTL_DEL), 0, Allowed);
    shipped.check("epoll_ctl", 3, epoll(libc::EPOLL_CTL_ADD), 0, Asked);
    assert_eq!(
        shipped.counted("epoll_ctl", [3, epoll(libc::EPOLL_CTL_ADD), 0, 0, 0, 0]),
        Some(CountedResource::Waits)
    );
    assert_eq!(shipped.counted("fcntl", [0, 1, 0, 0, 0, 0]), None);
    assert_eq!(shipped.counted("flock", [0, libc::F_SETLK as u64, 0, 0, 0, 0]), None);
    shipped.check("fcntl", 0, 1024, 0, Asked);
    shipped.check("fcntl", 0, 1026, 0, Asked);
    shipped.check("prlimit64", 0, 7, 0, Allowed);
    shipped.check("prlimit64", 1, 7, 0, Asked);
    shipped.check("socketpair", 1, 0x80801, 0, Allowed);
    shipped.check("socketpair", 1, 2, 0, Asked);
}

#[test]
fn sockets_depend_on_the_network() {
    use Fate::{Allowed, Asked};
    let none = Shipped::new(PLAIN);
    let proxied = Shipped::new(FilterVariant { sockets: Sockets::Internet, ..PLAIN });
    for family in [1, 2, 10, 16, 17, 38, 40] {
        none.check("socket", family, 1, 0, Asked);
    }
    for (family, kind, protocol, fate) in [
        (2, 0x80801, 0, Allowed),
        (10, 2, 17, Allowed),
        (2, 3, 0, Asked),
        (2, 3, 1, Asked),
        (2, 1, 132, Asked),
        (2, 1, 262, Asked),
        (1, 1, 0, Asked),
        (16, 3, 0, Asked),
        (17, 3, 0, Asked),
    ] {
        proxied.check("socket", family, kind, protocol, fate);
    }
    none.check("connect", 0, 0, 0, Asked);
    proxied.check("connect", 0, 0, 0, Allowed);
}

#[test]
fn command_without_children_starts_threads_and_no_process() {
    use Fate::{Allowed, Asked};
    let (parent, alone) =
        (Shipped::new(PLAIN), Shipped::new(FilterVariant { children: Children::Denied, ..PLAIN }));
    // As glibc does for a thread, for `fork`, for `posix_spawn`, and for a process that shares its memory.
    let thread = 0x3d_0f00;
    let (fork, spawn, shared) = (0x0120_0011, 0x4111, 0x0111);
    for flags in [thread, fork, spawn, shared] {
        parent.check("clone", flags, 0, 0, Allowed);
    }
    alone.check("clone", thread, 0, 0, Allowed);
    for flags in [fork, spawn, shared] {
        alone.check("clone", flags, 0, 0, Asked);
    }
    // A thread in a new user namespace.
    alone.check("clone", thread | 0x2000_0000, 0, 0, Asked);
    for call in ["fork", "vfork"] {
        parent.check(call, 0, 0, 0, Allowed);
        alone.check(call, 0, 0, 0, Asked);
    }
    alone.check("execve", 0, 0, 0, Allowed);
}

#[test]
fn without_a_pid_namespace_no_process_leaves_its_group() {
    let group = Shipped::new(FilterVariant { processes: Processes::Group, ..PLAIN });
    group.check("setsid", 0, 0, 0, Fate::Asked);
    group.check("setpgid", 0, 0, 0, Fate::Asked);
}

#[test]
fn without_namespaces_host_metadata_and_processes_cannot_be_changed() {
    use Fate::{Allowed, Asked};
    let (own, host) =
        (Shipped::new(PLAIN), Shipped::new(FilterVariant { processes: Processes::Group, ..PLAIN }));
    for call in ["chmod", "fchmod", "fchmodat", "chown", "utimensat", "removexattr"] {
        own.check(call, 5, 5, 5, Allowed);
        host.check(call, 5, 5, 5, Asked);
    }
    for call in ["setxattr", "lsetxattr", "fsetxattr"] {
        own.check(call, 5, 5, 5, Fate::Absent);
        host.check(call, 5, 5, 5, Fate::Absent);
    }
    for call in ["getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr"] {
        own.check(call, 5, 5, 5, Allowed);
        host.check(call, 5, 5, 5, Fate::Absent);
    }
    let closed = u64::from(libc::PR_SET_DUMPABLE.cast_unsigned());
    own.check("prctl", closed, 0, 0, Allowed);
    host.check("prctl", closed, 0, 0, Asked);
    for call in ["sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"] {
        own.check(call, 5, 0, 0, Allowed);
        host.check(call, 5, 0, 0, Asked);
        host.check(call, 0, 0, 0, Allowed);
    }
    for (call, process, all_of_a_user) in [("setpriority", 0, 2), ("ioprio_set", 1, 3)] {
        own.check(call, process, 5, 0, Allowed);
        host.check(call, process, 0, 0, Allowed);
        host.check(call, process, 5, 0, Asked);
        host.check(call, all_of_a_user, 0, 0, Asked);
    }
}

#[test]
fn only_allowed_calls_are_watched() {
    let watched = Shipped::new(FilterVariant { paths: Paths::Watched, ..PLAIN });
    watched.check("openat", 0, 0, 0, Fate::Asked);
    let number = |call| watched.calls.number(call).unwrap();
    let seen: Vec<u32> = watched.filter.watched.keys().copied().collect();
    assert_eq!(
        seen,
        [number("sendto"), number("execve"), number("openat")],
        "`connect` and `mount` must not be let through"
    );
    let sendto = |length: u64| {
        run(&watched.filter.program, X86_64, number("sendto"), [3, 1, 1, 0, 1, length << 32 | length])
    };
    assert_eq!([sendto(0), sendto(16)], [Fate::Allowed, Fate::Asked], "only with an address");
}

#[test]
fn system_call_table_matches_the_kernel() {
    let calls = Calls::of_this_machine().unwrap();
    for (name, number) in [
        ("read", libc::SYS_read),
        ("openat", libc::SYS_openat),
        ("execve", libc::SYS_execve),
        ("clone", libc::SYS_clone),
        ("clone3", libc::SYS_clone3),
        ("seccomp", libc::SYS_seccomp),
        ("socket", libc::SYS_socket),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("exit_group", libc::SYS_exit_group),
    ] {
        assert_eq!(calls.number(name).map(i64::from), Some(number), "{name}");
    }
}

/// Compiles a list of rows.
fn compile(rows: &str) -> Result<CommandFilter, String> {
    let text = format!("{{ \"it\": {{ \"otherwise\": \"report\", \"absent\": [], \"allow\": [{rows}] }} }}");
    let profile = CommandProfile::named("it", &text).map_err(|error| error.to_string())?;
    let calls = Calls::of(Machine::X86_64).map_err(|error| error.to_string())?;
    profile.compile(&calls, PLAIN, &[]).map_err(|error| error.to_string())
}

#[test]
fn mistakes_in_a_list_are_reported() {
    for (rows, because) in [
        (r#"{ "calls": ["opne"], "for": "x" }"#, "unknown system call `opne`"),
        (r#"{ "calls": ["open"], "for": " " }"#, "what needs it"),
        (r#"{ "calls": ["open"] }"#, "`for`"),
        (r#"{ "calls": ["open"], "for": "x", "if": {} }"#, "`if`"),
        (r#"{ "calls": ["open"], "for": "x", "when": { "arg6": { "any": ["AF_UNIX"] } } }"#, "`arg6`"),
        (
            r#"{ "calls": ["open"], "for": "x", "when": { "arg0": { "any": ["AF_UNIKS"] } } }"#,
            "unknown constant `AF_UNIKS`",
        ),
        (r#"{ "calls": ["open"], "for": "x", "when": { "arg0": { "any": [] } } }"#, "takes 1 to"),
        (r#"{ "calls": ["open"], "for": "x", "when": { "arg0": { "nay": [] } } }"#, "cannot parse"),
        (r#"{ "calls": ["open", "open"], "for": "x" }"#, "with and without"),
        (
            r#"{ "calls": ["open"], "for": "x" }, { "calls": ["open"], "for": "x", "when": { "arg0": { "without": ["AF_UNIX"] } } }"#,
            "with and without",
        ),
    ] {
        let error = compile(rows).unwrap_err();
        assert!(error.contains(because), "{rows}: {error}");
    }
}

#[test]
fn every_number_gets_the_action_of_its_row() {
    let filter = compile(
        r#"{ "calls": ["read", "close", "openat"], "for": "x" },
           { "calls": ["write"], "for": "x", "when": { "arg0": { "any": ["AF_UNIX", "AF_INET"] }, "arg1": { "without": ["AF_UNIX"] } } }"#,
    )
    .unwrap();
    let calls = Calls::of(Machine::X86_64).unwrap();
    for number in calls.numbers() {
        let allowed = ["read", "close", "openat"].contains(&calls.name(number).unwrap());
        let fate = run(&filter.program, X86_64, number, [9; 6]);
        assert_eq!(fate, if allowed { Fate::Allowed } else { Fate::Asked }, "{number}");
    }
    for (arguments, fate) in [
        ([1, 2, 0, 0, 0, 0], Fate::Allowed),
        ([2, 4, 0, 0, 0, 0], Fate::Allowed),
        ([1, 1, 0, 0, 0, 0], Fate::Asked),
        ([3, 2, 0, 0, 0, 0], Fate::Asked),
    ] {
        assert_eq!(run(&filter.program, X86_64, 1, arguments), fate, "{arguments:?}");
    }
}

const BEYOND: &str = "acct add_key bpf chroot clock_settime delete_module fanotify_init finit_module fsconfig fsmount \
    fsopen fspick init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl \
    landlock_restrict_self memfd_create memfd_secret modify_ldt mount mount_setattr move_mount \
    name_to_handle_at open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root \
    process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot \
    request_key seccomp setdomainname setgroups sethostname setns settimeofday shmget swapoff \
    swapon sync syslog umount2 unshare userfaultfd vhangup vmsplice";
