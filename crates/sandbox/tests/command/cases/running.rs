//! Tests start, input, output and end of a command.

use std::{fs, path::Path, time::Duration};

use toolgate_sandbox::{Access, CommandLimits, Ending, Layer, OutputCaps, Refused, SpawnError};

use super::{ended, shell, text};
use crate::driver::{CAPS, LIMITS, PATIENCE, Tier, bind, finish, finish_with, folder, jail, refusal};

pub fn exit_codes(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/true", &[]));
    ended(&report, 0);
    assert_eq!(report.refused, [], "an ordinary program is refused nothing");
    ended(&finish(jail(tier, "/usr/bin/false", &[])), 1);
    ended(&finish(shell(tier, "exit 77")), 77);
    let strength = report.strength;
    assert!(
        strength.has(Layer::Seccomp)
            && strength.has(Layer::NoCapabilities)
            && strength.landlock_abi().is_some()
    );
    assert_eq!(strength.has(Layer::PrivateView), tier == Tier::Namespaces, "{strength:?}");
    assert!(report.usage.elapsed > Duration::ZERO && report.usage.peak_memory > 0, "{:?}", report.usage);
}

pub fn echo(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/echo", &["a b", "$HOME", ";", "id"]));
    ended(&report, 0);
    assert_eq!(text(&report), "a b $HOME ; id\n");
}

pub fn environment(tier: Tier) {
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

pub fn standard_input(tier: Tier) {
    let sent: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let report =
        finish_with(jail(tier, "/bin/cat", &[]), &sent, OutputCaps { stdout: 2 << 20, ..CAPS }, PATIENCE);
    ended(&report, 0);
    assert!(report.stdout == sent, "{} bytes came back", report.stdout.len());
    ended(&finish_with(jail(tier, "/usr/bin/true", &[]), &sent, CAPS, PATIENCE), 0);
}

pub fn deadline(tier: Tier) {
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

pub fn output_cap(tier: Tier) {
    let caps = OutputCaps { stdout: 1000, stderr: 1000 };
    let report = finish_with(jail(tier, "/bin/cat", &["/dev/zero"]), b"", caps, PATIENCE);
    assert_eq!(report.ending, Ending::OutputTooLarge);
    assert_eq!(report.stdout.len(), 1000);
    let report = finish_with(jail(tier, "/usr/bin/head", &["-c", "1000", "/dev/zero"]), b"", caps, PATIENCE);
    assert_eq!((report.ending, report.stdout.len()), (Ending::Exited(0), 1000));
}

pub fn complaint_cap(tier: Tier) {
    let caps = OutputCaps { stdout: 1000, stderr: 1000 };
    let report = finish_with(shell(tier, "head -c 1000000 /dev/zero >&2; echo done"), b"", caps, PATIENCE);
    assert_eq!((&report.ending, text(&report)), (&Ending::Exited(0), "done\n"));
    assert_eq!((report.stderr.len(), report.stderr_cut), (1000, true));
}

pub fn signalled(tier: Tier) {
    for (script, signal) in
        [("kill -TERM $$", libc::SIGTERM), ("kill -SEGV $$", libc::SIGSEGV), ("kill -KILL $$", 9)]
    {
        assert_eq!(finish(shell(tier, script)).ending, Ending::Signalled(signal), "{script}");
    }
    let mut order = shell(tier, "while :; do :; done");
    order.limits = CommandLimits { cpu_seconds: 1, ..LIMITS };
    assert_eq!(finish(order).ending, Ending::Signalled(libc::SIGXCPU));
}

pub fn missing_program(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/no-such-program", &[]));
    assert!(
        matches!(&report.ending, Ending::JailFailed(why) if why.contains("no-such-program")),
        "{report:?}"
    );
}

/// Copies keep everything except attributes, which cannot be set.
pub fn copies() {
    let script = "cp -p /usr/bin/env /tmp/one && cp -a /tmp/one /tmp/two && mkdir /tmp/three \
        && tar -C /tmp -cpf - two | tar -C /tmp/three -xpf - && cmp /tmp/one /tmp/three/two && stat -c %a /tmp/three/two";
    let report = finish(shell(Tier::Namespaces, script));
    ended(&report, 0);
    assert_eq!((text(&report), report.stderr.is_empty()), ("755\n", true), "{report:?}");
}

pub fn common_programs(tier: Tier) {
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
