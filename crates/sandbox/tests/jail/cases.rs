//! Requirements for a worker's jail, case by case.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::{
        fs::MetadataExt,
        net::UnixStream,
        process::{CommandExt, ExitStatusExt},
    },
    process::{ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use toolgate_sandbox::{Death, JailKind, Layer, LayerSet, describe_exit};

use crate::{
    attacks,
    child::{HEADROOM, REFUSED},
    driver::{
        Case, Inside, JAILED, Jailed, OF_ANOTHER, OF_ITS_OWN, PARENT, PATIENCE, PROBE, Starter, command,
        is_root,
    },
};

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (starter, inside) in settings() {
        let mut add = |name: &str, body: fn(Starter, Inside)| {
            cases.push(Case {
                name: format!("{starter:?}/{inside:?}/{name}").to_lowercase(),
                body: Box::new(move || body(starter, inside)),
            });
        };
        add("frames_pass_on_the_socket", frames_pass);
        add("ordinary_work_continues", ordinary_work);
        add("kernel_confirms_the_strength", kernel_confirms);
        add("namespaces_match_the_strength", namespaces_agree);
        add("nothing_is_reachable_between_the_phases", nothing_between);
        add("memory_bomb_hits_the_limit", memory_bomb);
        add("crash_is_reported_as_crash", crash);
        add("threads_are_sealed_too", thread_sealed);
        add("image_can_only_be_mapped_private", image);
        add("leaked_descriptor_is_closed", leaked_descriptor);
        for attack in attacks::all() {
            let name = attack.name;
            cases.push(Case {
                name: format!("{starter:?}/{inside:?}/dies of {name}").to_lowercase().replace(' ', "_"),
                body: Box::new(move || dies_of(name, starter, inside)),
            });
        }
    }
    cases.extend(once());
    cases
}

fn settings() -> Vec<(Starter, Inside)> {
    let mut settings =
        vec![(Starter::Caller, Inside::NewNamespaces), (Starter::Caller, Inside::OurNamespaces)];
    if is_root() {
        settings.push((Starter::Ordinary, Inside::NewNamespaces));
        settings.push((Starter::Ordinary, Inside::OurNamespaces));
    }
    settings
}

/// Cases that do not depend on who starts the worker.
fn once() -> Vec<Case> {
    let case = |name: &str, body: fn()| Case { name: name.to_owned(), body: Box::new(body) };
    vec![
        case("cpu_limit_is_enforced", processor_time),
        case("stopped_worker_continues", stopped_worker),
        case("parent_death_kills_the_worker", parent_death),
        case("parent_that_did_not_create_the_socket_is_rejected", wrong_parent),
        case("worker_without_a_socket_refuses_to_run", no_socket),
        case("worker_with_a_second_thread_refuses_to_run", second_thread),
        case("stray_descriptor_is_rejected", stray_descriptor),
        case("limits_are_in_force", limits),
        case("filter_against_namespaces_is_reported", refused_namespaces),
    ]
}

/// No file reveals such a filter, so only an attempt detects it.
fn refused_namespaces() {
    let output = command(Starter::Caller).arg(PROBE).stdout(Stdio::piped()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for name in ["user namespaces", "network namespaces", "jail for commands"] {
        let row = format!("{name}: Missing, ");
        assert!(text.lines().any(|line| line.starts_with(&row)), "{name}\n{text}");
    }
}

fn dies_of(attack: &str, starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start(attack, starter, inside);
    jailed.strength();
    assert_eq!(jailed.line(), "", "it lived to speak");
    assert_eq!(jailed.death(), Death::SeccompViolation);
}

fn frames_pass(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("echo", starter, inside);
    jailed.strength();
    jailed.send(b"one frame");
    assert_eq!(jailed.receive(9), b"one frame");
    jailed.send(&[0, 255, 10]);
    assert_eq!(jailed.receive(3), [0, 255, 10]);
}

fn ordinary_work(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("work", starter, inside);
    jailed.strength();
    assert_eq!(jailed.line(), "worked 1 8");
    assert_eq!(jailed.death(), Death::Exited(0));
}

fn kernel_confirms(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("wait", starter, inside);
    let strength = jailed.strength();
    assert!(strength.missing(JailKind::Worker, LayerSet::NONE).is_empty(), "{strength:?}");
    assert_eq!(jailed.status_line("Seccomp"), "2");
    assert_eq!(jailed.status_line("NoNewPrivs"), "1");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(jailed.status_line(set), NO_BITS, "{set}");
    }
    assert_eq!(strength.has(Layer::EmptyBoundingSet), jailed.status_line("CapBnd") == NO_BITS);
    let ids = [jailed.status_line("Uid"), jailed.status_line("Gid")].join(" ");
    assert_eq!(strength.has(Layer::UnprivilegedIds), ids.split(' ').all(|id| id != "0"));
    if is_full_root() && starter == Starter::Caller {
        assert_eq!(jailed.status_line("CapBnd"), NO_BITS);
        assert_eq!(jailed.status_line("Uid"), "65534 65534 65534 65534");
        assert_eq!(jailed.status_line("Gid"), "65534 65534 65534 65534");
        assert!(strength.has(Layer::UnprivilegedIds) && strength.has(Layer::NoGroups), "{strength:?}");
    }
    assert_eq!(strength.has(Layer::NoGroups), jailed.status_line("Groups").is_empty());
    for set in ["SigIgn", "SigBlk", "SigCgt"] {
        assert_eq!(jailed.status_line(set), NO_BITS, "{set}: signals are as the kernel made them");
    }
    // Files of a non-dumpable process belong to root in `/proc`, whatever its user.
    assert_eq!(fs::metadata(jailed.about("environ")).unwrap().uid(), 0);
    if is_root() {
        let open: Vec<_> =
            fs::read_dir(jailed.about("fd")).unwrap().map(|fd| fd.unwrap().file_name()).collect();
        assert_eq!(open, ["0"]);
    }
    assert_eq!(strength.landlock_abi(), landlock_of_the_host(), "{strength:?}");
}

fn namespaces_agree(starter: Starter, inside: Inside) {
    if !is_root() {
        // The kernel hides the namespaces of a non-dumpable process from others.
        return;
    }
    let mut jailed = Jailed::start("wait", starter, inside);
    let strength = jailed.strength();
    for (part, file) in NAMESPACES {
        let [theirs, ours] = [jailed.about(file), format!("/proc/self/{file}").into()]
            .map(|link| fs::read_link(link).unwrap());
        assert_eq!(strength.has(part), theirs != ours, "{file}: {strength:?}");
        assert!(inside == Inside::NewNamespaces || !strength.has(part), "{strength:?}");
    }
    let is_empty = fs::read_dir(jailed.about("root")).unwrap().next().is_none();
    assert_eq!(strength.has(Layer::EmptyRoot), is_empty, "{strength:?}");
}

fn nothing_between(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("between", starter, inside);
    let reached = jailed.line();
    let strength = jailed.strength();
    match strength.landlock_abi() {
        Some(6..) => assert_eq!(reached, "reached [0, 0, 0, 0, 0] [0, 0, 0, 0, 0]", "{strength:?}"),
        Some(_) => assert!(reached.starts_with("reached [0, 0, 0, 0,"), "{reached}, {strength:?}"),
        None if strength.has(Layer::EmptyRoot) => {
            assert!(reached.starts_with("reached [0, 0, 0, 0,"), "{reached}");
        }
        None => assert!(reached.starts_with("reached"), "{reached}"),
    }
}

fn memory_bomb(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("bomb", starter, inside);
    jailed.strength();
    let line = jailed.line();
    let taken: u64 = line.strip_prefix("taken ").expect(&line).parse().unwrap();
    assert!(taken <= HEADROOM, "{taken}");
    assert!(taken > HEADROOM / 2, "{taken}: what was promised can be had");
    assert_eq!(jailed.death(), Death::Exited(0));
}

fn crash(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("crash", starter, inside);
    jailed.strength();
    assert_eq!(jailed.death(), Death::Crashed(libc::SIGSEGV));
}

fn thread_sealed(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("attack-from-thread", starter, inside);
    jailed.strength();
    assert_eq!(jailed.death(), Death::SeccompViolation);
}

fn image(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("image", starter, inside);
    jailed.strength();
    assert_eq!(jailed.line(), "mapped true");
    assert_eq!(jailed.death(), Death::SeccompViolation);
}

fn leaked_descriptor(starter: Starter, inside: Inside) {
    let mut jailed = Jailed::start("leaked-descriptor", starter, inside);
    assert_eq!(jailed.line(), "leaked true -1");
    jailed.strength();
}

fn processor_time() {
    let mut jailed = Jailed::start("spin", Starter::Caller, Inside::NewNamespaces);
    jailed.strength();
    assert_eq!(jailed.death(), Death::CpuLimit);
}

fn stopped_worker() {
    let mut jailed = Jailed::start("sleep", Starter::Caller, Inside::NewNamespaces);
    jailed.strength();
    thread::sleep(Duration::from_millis(100));
    jailed.signal(libc::SIGSTOP);
    let started = Instant::now();
    while !jailed.status_line("State").starts_with('T') && started.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
    jailed.signal(libc::SIGCONT);
    assert_eq!(jailed.line(), "slept");
    assert_eq!(jailed.death(), Death::Exited(0));
}

fn parent_death() {
    // Orphans become our children, so their exit status is visible.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let mut parent = command(Starter::Caller)
        .args([PARENT, OF_ITS_OWN, "wait", "enter"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (worker, said) = line.split_once(' ').expect(&line);
    assert!(said.starts_with("sealed "), "{line}");
    parent.kill().unwrap();
    parent.wait().unwrap();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = attacks::wait_for(worker.parse().unwrap()) {
            break status;
        }
        assert!(started.elapsed() < PATIENCE, "it outlives its parent");
        thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(describe_exit(ExitStatus::from_raw(status)), Death::Killed);
}

fn wrong_parent() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut parent = command(Starter::Caller)
        .args([PARENT, OF_ANOTHER, "wait", "enter"])
        .stdin(std::os::fd::OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(ours).read_line(&mut line).unwrap();
    assert!(line.contains("not the process that created the socket"), "{line}");
    parent.wait().unwrap();
}

fn no_socket() {
    for stdin in [Stdio::null(), Stdio::piped()] {
        let mut command = command(Starter::Caller);
        let status = command.args([JAILED, "echo", "enter"]).stdin(stdin).arg0("jail").status().unwrap();
        assert_eq!(describe_exit(status), Death::Exited(REFUSED.into()));
    }
}

fn second_thread() {
    let mut jailed = Jailed::start("with-a-thread", Starter::Caller, Inside::NewNamespaces);
    let line = jailed.line();
    assert!(line.starts_with("refused: 2 threads exist"), "{line}");
    assert_eq!(jailed.death(), Death::Exited(REFUSED.into()));
}

fn stray_descriptor() {
    let mut jailed = Jailed::start("stray", Starter::Caller, Inside::NewNamespaces);
    let line = jailed.line();
    assert!(line.contains("is open and not a sealed memory file"), "{line}");
    assert_eq!(jailed.death(), Death::Exited(REFUSED.into()));
}

fn limits() {
    let mut jailed = Jailed::start("wait", Starter::Caller, Inside::NewNamespaces);
    jailed.strength();
    let limits = fs::read_to_string(jailed.about("limits")).unwrap();
    for name in [
        "core file size",
        "file size",
        "processes",
        "open files",
        "locked memory",
        "msgqueue size",
        "file locks",
    ] {
        let line = limits.lines().find(|line| line.starts_with(&format!("Max {name} "))).expect(name);
        let values: Vec<&str> =
            line.trim_start_matches(&format!("Max {name} ")).split_whitespace().take(2).collect();
        assert_eq!(values, ["0", "0"], "{line}");
    }
}

/// Root in a container often lacks the capability to change its ids; the strength then reports it.
fn is_full_root() -> bool {
    const SETGID_SETUID_SETPCAP: u64 = 1 << 6 | 1 << 7 | 1 << 8;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let held = u64::from_str_radix(held.trim(), 16).unwrap();
    is_root() && held & SETGID_SETUID_SETPCAP == SETGID_SETUID_SETPCAP
}

/// The Landlock version of the host, checked from outside, which a worker's report must match.
fn landlock_of_the_host() -> Option<u8> {
    let version = attacks::raw(libc::SYS_landlock_create_ruleset, [0, 0, 1, 0, 0, 0]);
    u8::try_from(version).ok().filter(|version| *version > 0).map(|version| version.min(NEWEST_LANDLOCK))
}

const NO_BITS: &str = "0000000000000000";
const NEWEST_LANDLOCK: u8 = 9;
const NAMESPACES: [(Layer, &str); 6] = [
    (Layer::UserNamespace, "ns/user"),
    (Layer::NetworkNamespace, "ns/net"),
    (Layer::IpcNamespace, "ns/ipc"),
    (Layer::UtsNamespace, "ns/uts"),
    (Layer::MountNamespace, "ns/mnt"),
    (Layer::CgroupNamespace, "ns/cgroup"),
];
