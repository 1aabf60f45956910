//! What must hold of every command, in each kind of jail.

use std::{
    fs,
    os::fd::OwnedFd,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use toolgate_sandbox::{
    Access, Attempt, Bind, CommandJail, CommandLimits, CommandReport, Ending, OutputCaps, Refused, Source,
    SpawnError, Wall,
};

use crate::{
    attacks,
    driver::{
        CAPS, Case, GATEWAY, LIMITS, PATIENCE, PLACED, Tier, bind, finish, finish_with, folder, inside,
        is_root, jail, jailer, on_runtime, program, refusal, spawn,
    },
};

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for tier in [Tier::Namespaces, Tier::Landlock] {
        let mut add = |name: &str, body: fn(Tier)| {
            cases.push(Case {
                name: format!("{tier:?}/{name}").to_lowercase(),
                body: Box::new(move || body(tier)),
            });
        };
        add("true_and_false_end_as_they_should", exit_codes);
        add("echo_is_heard_and_no_shell_is_near", echo);
        add("the_environment_and_folder_are_exactly_those_given", environment);
        add("standard_input_is_fed", standard_input);
        add("a_bound_file_is_read_and_nothing_beside_it", bound_file);
        add("writing_needs_a_bind_for_writing", writing);
        add("what_is_hidden_stays_hidden", hidden);
        add("another_name_of_a_hidden_file_is_hidden_too", hard_links);
        add("a_deadline_ends_it", deadline);
        add("too_much_output_ends_it", output_cap);
        add("too_much_complaint_is_cut", complaint_cap);
        add("nothing_outlives_the_command", survivors);
        add("dropping_it_kills_it", dropped);
        add("the_death_of_the_gateway_kills_it", gateway_death);
        add("a_signal_is_told", signalled);
        add("few_descriptors_are_few", few_descriptors);
        add("a_missing_program_is_told", missing_program);
        add("refused_calls_are_told", refused_calls);
        add("refused_paths_are_told", refused_paths);
        add("memory_runs_out_for_one_and_for_all", memory);
        add("a_program_in_a_bind_runs_only_where_allowed", no_execution);
        add("common_programs_run", common_programs);
    }
    cases.extend(once());
    cases.extend(attacks::cases());
    cases
}

/// What depends on namespaces, or on no jail at all.
fn once() -> Vec<Case> {
    let case = |name: &str, body: fn()| Case { name: name.to_owned(), body: Box::new(body) };
    vec![
        case("the_temporary_folder_is_its_own_and_bounded", own_tmp),
        case("the_view_shows_nothing_else", view),
        case("an_opened_folder_is_bound_or_refused", opened_source),
        case("a_bind_through_a_link_is_refused", link_in_target),
        case("a_hidden_path_is_hidden_through_every_bind", hidden_twice),
        case("a_fork_bomb_is_bounded", fork_bomb),
        case("the_hosts_own_limit_of_processes_is_untouched", host_untouched),
        case("without_namespaces_hardened_is_refused", too_weak),
        case("jails_that_make_no_sense_are_refused", nonsense),
        case("a_dead_jailer_is_replaced", dead_jailer),
        case("the_proxy_is_all_of_the_network", crate::network::proxied),
    ]
}

fn shell(tier: Tier, script: &str) -> CommandJail {
    jail(tier, "/bin/sh", &["-c", script])
}

#[track_caller]
fn text(report: &CommandReport) -> &str {
    std::str::from_utf8(&report.stdout).unwrap()
}

#[track_caller]
fn ended(report: &CommandReport, code: u8) {
    let errors = String::from_utf8_lossy(&report.stderr);
    assert_eq!(report.ending, Ending::Exited(code), "{errors} {:?}", report.refused);
}

fn exit_codes(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/true", &[]));
    ended(&report, 0);
    assert_eq!(report.refused, [], "an ordinary program is refused nothing");
    ended(&finish(jail(tier, "/usr/bin/false", &[])), 1);
    ended(&finish(shell(tier, "exit 77")), 77);
    let strength = report.strength;
    assert!(
        strength.has(Wall::Seccomp)
            && strength.has(Wall::NoCapabilities)
            && strength.landlock_abi().is_some()
    );
    assert_eq!(strength.has(Wall::PrivateView), tier == Tier::Namespaces, "{strength:?}");
    assert!(report.usage.elapsed > Duration::ZERO && report.usage.peak_memory > 0, "{:?}", report.usage);
}

fn echo(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/echo", &["a b", "$HOME", ";", "id"]));
    ended(&report, 0);
    assert_eq!(text(&report), "a b $HOME ; id\n");
}

fn environment(tier: Tier) {
    let mut order = jail(tier, "/usr/bin/env", &[]);
    order.env = vec![("ONE".into(), "1".into()), ("TWO".into(), "a=b c".into())];
    let report = finish(order);
    assert_eq!(text(&report), "ONE=1\nTWO=a=b c\n");
    let mut order = jail(tier, "/bin/pwd", &[]);
    order.cwd = "/usr/lib".into();
    assert_eq!(text(&finish(order)), "/usr/lib\n");
    let mut order = jail(tier, "/bin/pwd", &[]);
    order.cwd = "/no/such/folder".into();
    assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("/no/such/folder")));
}

fn standard_input(tier: Tier) {
    let sent: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let report =
        finish_with(jail(tier, "/bin/cat", &[]), &sent, OutputCaps { stdout: 2 << 20, ..CAPS }, PATIENCE);
    ended(&report, 0);
    assert!(report.stdout == sent, "{} bytes came back", report.stdout.len());
    ended(&finish_with(jail(tier, "/usr/bin/true", &[]), &sent, CAPS, PATIENCE), 0);
}

fn bound_file(tier: Tier) {
    let folder = folder();
    fs::write(folder.join("open"), "granted").unwrap();
    fs::write(folder.join("other"), "not granted").unwrap();
    symlink("other", folder.join("link")).unwrap();
    let read = |name: &str| {
        let mut order = jail(tier, "/bin/cat", &[folder.join(name).to_str().unwrap()]);
        order.view.binds.push(bind(&folder.join("open"), Access::Read));
        finish(order)
    };
    assert_eq!(text(&read("open")), "granted");
    for name in ["other", "link"] {
        let report = read(name);
        assert_eq!((text(&report), &report.ending), ("", &Ending::Exited(1)), "{name}");
    }
}

fn writing(tier: Tier) {
    let folder = folder();
    let (read, write) = (folder.join("read"), folder.join("write"));
    for path in [&read, &write] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("old"), "old").unwrap();
    }
    let script = format!(
        "cd {0}; echo new > old; echo x > made; mkdir d; mv old d/moved; rm -f made
         cd {1}; echo new > old; echo x > made; mkdir d; mv old renamed; rm -f old; chmod 777 old; true",
        write.display(),
        read.display()
    );
    let mut order = shell(tier, &script);
    order.view.binds.push(bind(&read, Access::Read));
    order.view.binds.push(bind(&write, Access::Write));
    let report = finish(order);
    ended(&report, 0);
    assert_eq!(fs::read_to_string(write.join("d/moved")).unwrap(), "new\n");
    let made = fs::metadata(write.join("d")).unwrap();
    assert_eq!(made.uid(), rustix::process::geteuid().as_raw(), "files belong to the gateway's user");
    assert_eq!(fs::read_dir(&read).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(read.join("old")).unwrap(), "old");
    let old = Refused::Path { path: read.join("old"), access: Attempt::Write };
    assert!(report.refused.contains(&old), "{:?}", report.refused);
}

fn hidden(tier: Tier) {
    let folder = folder();
    fs::create_dir_all(folder.join("deep/secrets")).unwrap();
    for name in ["plain", "deep/plain", "deep/secrets/key", ".env"] {
        fs::write(folder.join(name), "content").unwrap();
    }
    symlink("deep/secrets/key", folder.join("link")).unwrap();
    let paths = ["plain", "deep/plain", "deep/secrets/key", ".env", "link", "deep/secrets/../secrets/key"];
    for (name, shown) in paths.into_iter().zip([true, true, false, false, false, false]) {
        for access in [Access::Read, Access::Write] {
            let mut order = jail(tier, "/bin/cat", &[folder.join(name).to_str().unwrap()]);
            order.view.binds.push(bind(&folder, access));
            order.view.hidden =
                vec![folder.join("deep/secrets"), folder.join(".env"), "/no/such/path".into()];
            let report = finish(order);
            assert_eq!(text(&report) == "content", shown, "{name} {access:?} {report:?}");
        }
    }
    let script = format!(
        "cd {0} && ls deep/secrets; mv deep/secrets x; rm -rf deep/secrets .env; ls x",
        folder.display()
    );
    let mut order = shell(tier, &script);
    order.view.binds.push(bind(&folder, Access::Write));
    order.view.hidden = vec![folder.join("deep/secrets"), folder.join(".env")];
    let report = finish(order);
    // `mv` across mounts makes a folder first, as closed as the cover, which an ordinary user could not clear away.
    let _ = fs::set_permissions(folder.join("x"), fs::Permissions::from_mode(0o755));
    assert_eq!(text(&report), "", "{report:?}");
    assert_eq!(fs::read_to_string(folder.join("deep/secrets/key")).unwrap(), "content");
    assert_eq!(fs::read_to_string(folder.join(".env")).unwrap(), "content");
}

fn hard_links(tier: Tier) {
    let folder = folder();
    fs::create_dir_all(folder.join("secrets")).unwrap();
    fs::create_dir_all(folder.join("open/deep")).unwrap();
    fs::write(folder.join("secrets/key"), "content").unwrap();
    fs::hard_link(folder.join("secrets/key"), folder.join("open/deep/innocent")).unwrap();
    let mut order = jail(tier, "/bin/cat", &[folder.join("open/deep/innocent").to_str().unwrap()]);
    order.view.binds.push(bind(&folder, Access::Write));
    order.view.hidden = vec![folder.join("secrets")];
    match tier {
        Tier::Namespaces => assert_eq!(text(&finish(order)), ""),
        Tier::Landlock => {
            assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("innocent")));
        }
    }
}

fn deadline(tier: Tier) {
    let report = finish_with(shell(tier, "echo before; sleep 600"), b"", CAPS, Duration::from_millis(500));
    assert_eq!(report.ending, Ending::TimedOut);
    assert_eq!(text(&report), "before\n", "what was said is kept");
    let report = finish_with(
        shell(tier, "trap '' TERM INT HUP; while :; do :; done"),
        b"",
        CAPS,
        Duration::from_millis(300),
    );
    assert_eq!(report.ending, Ending::TimedOut);
}

fn output_cap(tier: Tier) {
    let caps = OutputCaps { stdout: 1000, stderr: 1000 };
    let report = finish_with(jail(tier, "/bin/cat", &["/dev/zero"]), b"", caps, PATIENCE);
    assert_eq!(report.ending, Ending::OutputTooLarge);
    assert_eq!(report.stdout.len(), 1000);
    let report = finish_with(jail(tier, "/usr/bin/head", &["-c", "1000", "/dev/zero"]), b"", caps, PATIENCE);
    assert_eq!((report.ending, report.stdout.len()), (Ending::Exited(0), 1000));
}

fn complaint_cap(tier: Tier) {
    let caps = OutputCaps { stdout: 1000, stderr: 1000 };
    let report = finish_with(shell(tier, "head -c 1000000 /dev/zero >&2; echo done"), b"", caps, PATIENCE);
    assert_eq!((&report.ending, text(&report)), (&Ending::Exited(0), "done\n"));
    assert_eq!((report.stderr.len(), report.stderr_cut), (1000, true));
}

/// Whoever lives on holds standard output open, and then the command would not be heard out before the deadline.
fn survivors(tier: Tier) {
    for script in [
        "sleep 600 & exit 3",
        "(setsid sleep 600 &); exit 3",
        "(trap '' HUP TERM; (sleep 600 & sleep 600) &); exit 3",
        "nohup setsid sh -c 'setsid sleep 600 & setsid sleep 600' & exit 3",
    ] {
        let report = finish(shell(tier, script));
        ended(&report, 3);
    }
}

fn dropped(tier: Tier) {
    let mark = mark();
    on_runtime(async {
        let running = spawn(shell(tier, &format!("setsid sleep {mark} & sleep {mark}"))).await.unwrap();
        until("it runs", || processes_with(&mark) > 0);
        drop(running);
        until("all are gone", || processes_with(&mark) == 0);
    });
}

fn gateway_death(tier: Tier) {
    let mark = mark();
    let mut gateway = Command::new(program());
    gateway
        .env(PLACED, "1")
        .args([GATEWAY, &format!("{tier:?} {mark}")])
        .stdout(Stdio::null())
        .stdin(Stdio::null());
    let mut gateway = gateway.spawn().unwrap();
    // Where nobody may leave the group, one of them fails to start.
    let count = if tier == Tier::Landlock { 2 } else { 3 };
    until("they run", || processes_with(&mark) >= count);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    until("all are gone", || processes_with(&mark) == 0);
}

/// The other side of `gateway_death`.
pub fn be_a_gateway(role: &str) -> ExitCode {
    let (tier, mark) = role.split_once(' ').unwrap();
    let tier = if tier == "Landlock" { Tier::Landlock } else { Tier::Namespaces };
    let script = format!("setsid sleep {mark} & (sleep {mark} &) ; trap '' TERM HUP; sleep {mark}");
    let report = finish(shell(tier, &script));
    panic!("it ended: {report:?}")
}

fn signalled(tier: Tier) {
    for (script, signal) in
        [("kill -TERM $$", libc::SIGTERM), ("kill -SEGV $$", libc::SIGSEGV), ("kill -KILL $$", 9)]
    {
        assert_eq!(finish(shell(tier, script)).ending, Ending::Signalled(signal), "{script}");
    }
    let mut order = shell(tier, "while :; do :; done");
    order.limits = CommandLimits { cpu_seconds: 1, ..LIMITS };
    assert_eq!(finish(order).ending, Ending::Signalled(libc::SIGXCPU));
}

fn few_descriptors(tier: Tier) {
    let mut order =
        shell(tier, "exec 3</dev/null && echo 3; exec 4</dev/null && echo 4; exec 5</dev/null && echo 5");
    order.limits = CommandLimits { open_files: 5, ..LIMITS };
    let report = finish(order);
    assert!(text(&report).starts_with("3\n") && !text(&report).contains('5'), "{report:?}");
}

fn missing_program(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/no-such-program", &[]));
    assert!(
        matches!(&report.ending, Ending::JailFailed(why) if why.contains("no-such-program")),
        "{report:?}"
    );
}

fn refused_calls(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/unshare", &["-n", "true"]));
    let unshare = Refused::Syscall { name: "unshare".into(), detail: String::new() };
    assert!(report.refused.contains(&unshare), "{:?}", report.refused);
    assert!(matches!(report.ending, Ending::Exited(1..)));
    let report = finish(inside(tier, "internet-socket"));
    let socket = Refused::Syscall { name: "socket".into(), detail: "AF_INET".into() };
    assert!(report.refused.contains(&socket), "{:?}", report.refused);
}

fn refused_paths(tier: Tier) {
    let folder = folder();
    fs::write(folder.join("there"), "x").unwrap();
    let script = format!(
        "cat {0}/there {0}/absent; echo x > /usr/lib/x; cd /usr/lib; cat ../../etc/shadow",
        folder.display()
    );
    let report = finish(shell(tier, &script));
    let path = |path: &Path, access| Refused::Path { path: path.to_owned(), access };
    for expected in [
        path(&folder.join("there"), Attempt::Read),
        path(Path::new("/usr/lib/x"), Attempt::Write),
        path(Path::new("/etc/shadow"), Attempt::Read),
    ] {
        assert!(report.refused.contains(&expected), "{expected:?} is not in {:?}", report.refused);
    }
    assert!(!report.refused.contains(&path(&folder.join("absent"), Attempt::Read)), "{:?}", report.refused);
    let mut quiet = shell(tier, &script);
    quiet.trace = toolgate_sandbox::Trace::Off;
    assert_eq!(finish(quiet).refused, []);
}

fn no_execution(tier: Tier) {
    let folder = folder();
    let tool = folder.join("tool");
    fs::copy("/usr/bin/true", &tool).unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    for (access, runs) in [(Access::Read, false), (Access::Write, false), (Access::Execute, true)] {
        let mut order = jail(tier, &tool, &[]);
        order.view.binds.push(bind(&folder, access));
        let report = finish(order);
        assert_eq!(report.ending == Ending::Exited(0), runs, "{access:?} {report:?}");
    }
}

fn common_programs(tier: Tier) {
    let folder = folder();
    fs::write(folder.join("a.txt"), "needle\n").unwrap();
    let here = folder.to_str().unwrap();
    for (program, argv) in [
        ("/bin/ls", vec!["-la", here]),
        ("/usr/bin/grep", vec!["-r", "needle", here]),
        ("/usr/bin/find", vec![here, "-name", "*.txt"]),
        ("/bin/tar", vec!["-cf", "-", "-C", here, "a.txt"]),
        ("/usr/bin/git", vec!["-C", here, "--version"]),
        (
            "/usr/bin/python3",
            vec!["-c", "import subprocess, tempfile, json; print(subprocess.check_output(['echo', 'x']))"],
        ),
        (
            "/usr/bin/node",
            vec!["-e", "console.log(require('child_process').execFileSync('echo', ['x']).toString())"],
        ),
        ("/usr/bin/curl", vec!["--version"]),
    ] {
        if !Path::new(program).exists() {
            continue;
        }
        let mut order = jail(tier, program, &argv);
        order.limits = CommandLimits { memory_bytes: 2 << 30, ..LIMITS };
        order.view.binds.push(bind(&folder, Access::Read));
        let report = finish(order);
        ended(&report, 0);
        assert!(!report.stdout.is_empty(), "{program}");
        println!(
            "    {program} was refused {:?}",
            report.refused.iter().map(Refused::describe).collect::<Vec<_>>()
        );
    }
}

fn memory(tier: Tier) {
    let mut order = inside(tier, "take-memory");
    order.limits = CommandLimits { memory_bytes: 64 << 20, ..LIMITS };
    let report = finish(order);
    ended(&report, 0);
    let megabytes: u64 = text(&report).trim().parse().unwrap();
    assert!((1..64).contains(&megabytes), "{megabytes}");
    for role in ["take-memory-together", "leave-memory-to-orphans", "take-shared-memory"] {
        let mut order = inside(tier, role);
        order.limits = CommandLimits { memory_bytes: 64 << 20, ..LIMITS };
        let report = finish(order);
        assert_eq!(report.ending, Ending::OutOfMemory, "{role} {report:?}");
    }
}

fn own_tmp() {
    let outside = folder();
    let report = finish(shell(
        Tier::Namespaces,
        &format!(
            "ls /tmp; echo x > /tmp/x; head -c 100000000 /dev/zero > /tmp/big; wc -c < /tmp/big; cp /bin/true /tmp/t; /tmp/t; echo $?; ls {}",
            outside.display()
        ),
    ));
    let said = text(&report);
    let own = program().parent().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(said.starts_with(&format!("{own}\n")), "{said}");
    let size: u64 = said.lines().nth(1).unwrap().parse().unwrap();
    assert!(size <= 16 << 20, "{size}");
    assert_eq!(said.lines().nth(2), Some("126"), "nothing in there can be run");
    assert!(!Path::new("/tmp/x").exists() && !Path::new("/tmp/big").exists());
}

fn view() {
    let report = finish(shell(
        Tier::Namespaces,
        "ls -A /; echo --; ls -A /etc /dev; echo --; echo x > /x; mkdir /usr/x; ls -A /proc",
    ));
    let said = text(&report);
    let root: Vec<&str> = said.lines().take_while(|line| *line != "--").collect();
    let known = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr"];
    assert!(root.iter().all(|name| known.contains(name)), "{root:?}");
    assert!(!said.contains("shadow") && !said.contains("hostname"), "{said}");
    let processes = said.rsplit("--\n").next().unwrap();
    assert!(!processes.lines().any(|line| line == "1" || line == "sys"), "{processes}");
}

fn opened_source() {
    let folder = folder();
    let real = folder.join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("file"), "content").unwrap();
    let open = |path: &Path| -> OwnedFd {
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap()
    };
    let cat = |opened| {
        let mut order = jail(Tier::Namespaces, "/bin/cat", &["/granted/file"]);
        let source = Source::Opened(opened);
        order.view.binds.push(Bind { source, at: "/granted".into(), access: Access::Read });
        order
    };
    assert_eq!(text(&finish(cat(open(&real)))), "content");
    // Checked, then replaced by a link to somewhere else.
    let opened = open(&real);
    fs::rename(&real, folder.join("moved")).unwrap();
    symlink("/etc", &real).unwrap();
    let moved = finish(cat(opened));
    assert_eq!(text(&moved), "content", "a folder that was moved is still itself");
    let opened = open(&folder.join("moved"));
    fs::remove_dir_all(folder.join("moved")).unwrap();
    fs::create_dir(folder.join("moved")).unwrap();
    assert!(matches!(refusal(cat(opened)), SpawnError::Failed(_)));
}

fn link_in_target() {
    let folder = folder();
    fs::create_dir(folder.join("write")).unwrap();
    symlink("/etc", folder.join("write/link")).unwrap();
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.view.binds.push(bind(&folder.join("write"), Access::Write));
    let at = folder.join("write/link/inner");
    order.view.binds.push(Bind { source: Source::Path(folder.clone()), at, access: Access::Read });
    assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("is a link")));
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.view.binds.push(bind(Path::new("/proc"), Access::Read));
    assert!(matches!(refusal(order), SpawnError::Invalid(_)));
    symlink("/proc", folder.join("write/proc")).unwrap();
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    let source = Source::Path(folder.join("write/proc"));
    order.view.binds.push(Bind { source, at: "/harmless".into(), access: Access::Read });
    assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("/proc")));
}

fn hidden_twice() {
    let folder = folder();
    fs::create_dir_all(folder.join("work/secret")).unwrap();
    fs::write(folder.join("work/secret/key"), "content").unwrap();
    let mut order = shell(Tier::Namespaces, "cat /one/secret/key /two/key /three /one/link/key; ls -A /one");
    symlink(folder.join("work/secret"), folder.join("work/link")).unwrap();
    for (source, at) in [("work", "/one"), ("work/secret", "/two"), ("work/secret/key", "/three")] {
        let source = Source::Path(folder.join(source));
        order.view.binds.push(Bind { source, at: at.into(), access: Access::Write });
    }
    // Named through the link.
    order.view.hidden = vec![folder.join("work/link")];
    let report = finish(order);
    assert_eq!(text(&report), "link\nsecret\n");
}

fn fork_bomb() {
    let mut order = shell(Tier::Namespaces, "bomb() { bomb | bomb & }; bomb; sleep 1; echo survived");
    order.limits = CommandLimits { processes: 32, ..LIMITS };
    let report = finish_with(order, b"", OutputCaps { stdout: 4096, stderr: 4096 }, Duration::from_secs(5));
    assert!(matches!(report.ending, Ending::Exited(_) | Ending::TimedOut), "{report:?}");
    let mut order = inside(Tier::Namespaces, "count-forks");
    order.limits = CommandLimits { processes: 32, ..LIMITS };
    let report = finish(order);
    let count: u64 = text(&report).trim().parse().unwrap();
    // Root's processes are counted by their numbers, of which the kernel keeps 300 for itself.
    let most = if is_root() { 301 } else { 32 };
    assert!((1..=most).contains(&count), "{count}");
}

fn host_untouched() {
    let before = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    ended(&finish(jail(Tier::Namespaces, "/usr/bin/true", &[])), 0);
    assert_eq!(fs::read_to_string("/proc/sys/kernel/pid_max").unwrap(), before);
}

fn too_weak() {
    let mut order = jail(Tier::Landlock, "/usr/bin/true", &[]);
    order.required.walls = &[Wall::PrivateView, Wall::PidNamespace];
    match refusal(order) {
        SpawnError::TooWeak { missing } => assert_eq!(missing, ["private-view", "pid-namespace"]),
        other => panic!("{other}"),
    }
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.required.landlock_abi = 200;
    match refusal(order) {
        SpawnError::TooWeak { missing } => assert_eq!(missing, ["landlock-200"]),
        other => panic!("{other}"),
    }
}

fn nonsense() {
    let make = |change: fn(&mut CommandJail)| {
        let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
        change(&mut order);
        refusal(order)
    };
    let changes: [fn(&mut CommandJail); 8] = [
        |order| order.program = "true".into(),
        |order| order.argv.clear(),
        |order| order.argv.push("a\0b".into()),
        |order| order.env.push(("A=B".into(), "x".into())),
        |order| order.cwd = "/usr/../etc".into(),
        |order| order.view.binds.push(bind(Path::new("/"), Access::Read)),
        |order| order.view.hidden.push("relative".into()),
        |order| order.view.binds.push(bind(Path::new("/dev/shm"), Access::Write)),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(matches!(make(change), SpawnError::Invalid(_)), "change {number}");
    }
    let mut order = jail(Tier::Namespaces, "/usr/bin/true", &[]);
    order.view.binds.push(bind(Path::new("/no/such/source"), Access::Read));
    assert!(matches!(refusal(order), SpawnError::Failed(why) if why.contains("/no/such/source")));
}

fn dead_jailer() {
    ended(&finish(jail(Tier::Namespaces, "/usr/bin/true", &[])), 0);
    let own = std::process::id();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let tasks = fs::read_dir(format!("/proc/{own}/task")).unwrap();
    let of_tasks =
        tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    let all = of_tasks.fold(children, |all, more| all + " " + &more);
    let jailers: Vec<i32> = all
        .split_whitespace()
        .filter(|id| {
            fs::read_to_string(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| line.starts_with("toolgate-jailer"))
        })
        .map(|id| id.parse().unwrap())
        .collect();
    assert!(!jailers.is_empty());
    for jailer in jailers {
        let pid = rustix::process::Pid::from_raw(jailer).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    let _ = jailer();
    let started = Instant::now();
    loop {
        let outcome = on_runtime(async {
            let running = spawn(jail(Tier::Namespaces, "/usr/bin/true", &[])).await?;
            Ok::<_, SpawnError>(running.finish(Vec::new(), CAPS, PATIENCE).await)
        });
        match outcome {
            Ok(report) => break ended(&report, 0),
            Err(_) => assert!(started.elapsed() < PATIENCE, "no new jailer"),
        }
    }
}

/// A number of seconds that no other process sleeps.
fn mark() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    format!("600.{}{next:03}", std::process::id())
}

fn processes_with(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.starts_with(b"sleep\0") && line.windows(mark.len()).any(|part| part == mark.as_bytes())
        })
        .count()
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
