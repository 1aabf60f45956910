//! Cost of a jailed command. Runs `true` bare, in the jail with and without denial reports, and by `bwrap` with
//! equal binds. They alternate within one loop, so noise on the machine affects them equally. `podman run` follows
//! separately, because it would take most of the loop's time. Also measures denial reports for a command that opens
//! many files.
//!
//! Without `bwrap` or Podman the benchmark continues and prints which goal was not measured. `--quick` runs fewer
//! rounds.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and fails loudly"
)]

#[path = "../../cli/benches/shared/times.rs"]
mod times;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use times::{median, ratio};
use tokio::runtime::Runtime as Tokio;
use toolgate_sandbox::{
    Access, Bind, Children, CommandJail, CommandLimits, Ending, JailKind, Jailer, Namespaces, Network,
    OutputCaps, Source, Trace, View,
};

type JailVariant<'v> = (&'static str, Box<dyn FnMut() -> Duration + 'v>);

fn main() {
    toolgate_sandbox::run_if_jailer();
    let quick = std::env::args().any(|argument| argument == "--quick");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let jailer = runtime.block_on(async { Jailer::start(&std::env::current_exe().unwrap()) }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "x").unwrap();
    one_true(&runtime, &jailer, folder.path(), if quick { 30 } else { 300 });
    many_files(&runtime, &jailer, folder.path(), if quick { 3 } else { 15 });
}

fn one_true(runtime: &Tokio, jailer: &Jailer, folder: &Path, rounds: usize) {
    let with = |trace| move || in_jail(runtime, jailer, folder, "/usr/bin/true", &[], trace);
    let mut variants: Vec<JailVariant<'_>> = vec![
        ("bare", Box::new(|| spawned(Command::new("/usr/bin/true")))),
        ("jailed", Box::new(with(Trace::Off))),
        ("jailed, denials reported", Box::new(with(Trace::Refusals))),
    ];
    if Path::new("/usr/bin/bwrap").exists() {
        variants.push(("bwrap, equal binds", Box::new(|| spawned(bwrap(folder)))));
    }
    println!("`true`, in ms, {rounds} rounds");
    let mut times = take_turns(&mut variants, rounds);
    drop(variants);
    if let Some(mut podman) = podman() {
        let mut few: Vec<Duration> = (0..rounds.div_ceil(15).max(3)).map(|_| podman()).collect();
        few.sort_unstable();
        times.push(("podman run, one layer, no network", few));
    }
    print(&times);
    let p50 = |name: &str| times.iter().find(|(known, _)| *known == name).map(|(_, times)| median(times));
    let ours = p50("jailed, denials reported").unwrap();
    match p50("bwrap, equal binds") {
        Some(theirs) => goal("jailed / bwrap", ratio(ours, theirs), 1.0, ratio(ours, theirs) <= 1.0, "≤"),
        None => not_measured("jailed / bwrap", "≤ 1", "there is no /usr/bin/bwrap"),
    }
    match p50("podman run, one layer, no network") {
        Some(theirs) => {
            goal("podman run / jailed", ratio(theirs, ours), 20.0, ratio(theirs, ours) >= 20.0, "≥");
        }
        None => not_measured("podman run / jailed", "≥ 20", "Podman does not run here"),
    }
}

/// With denial reports every opened file is checked once more.
fn many_files(runtime: &Tokio, jailer: &Jailer, folder: &Path, rounds: usize) {
    for number in 0..10_000 {
        let below = folder.join(format!("{}", number / 100));
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(format!("{number}.txt")), "a line of text\n").unwrap();
    }
    let arguments = ["-r", "-c", "nothing of the kind", folder.to_str().unwrap()];
    let with = |trace| move || in_jail(runtime, jailer, folder, "/usr/bin/grep", &arguments, trace);
    let mut variants: Vec<JailVariant<'_>> = vec![
        (
            "bare",
            Box::new(|| {
                let mut bare = Command::new("/usr/bin/grep");
                bare.args(arguments);
                spawned(bare)
            }),
        ),
        ("jailed", Box::new(with(Trace::Off))),
        ("jailed, denials reported", Box::new(with(Trace::Refusals))),
    ];
    println!("\n`grep -r` over 10,000 files, in ms, {rounds} rounds");
    let times = take_turns(&mut variants, rounds);
    print(&times);
}

fn in_jail(
    runtime: &Tokio,
    jailer: &Jailer,
    folder: &Path,
    program: &str,
    arguments: &[&str],
    trace: Trace,
) -> Duration {
    let jail = CommandJail {
        program: PathBuf::from(program),
        argv: std::iter::once(program).chain(arguments.iter().copied()).map(Into::into).collect(),
        env: vec![("PATH".into(), "/usr/bin".into())],
        cwd: folder.to_owned(),
        view: View {
            binds: vec![Bind {
                source: Source::Path(folder.to_owned()),
                at: folder.to_owned(),
                access: Access::Read,
            }],
            hidden: Vec::new(),
            hidden_large: Vec::new(),
            tmp_bytes: 1 << 20,
        },
        network: Network::None,
        limits: CommandLimits {
            memory_bytes: 256 << 20,
            cpu_seconds: 60,
            processes: 64,
            open_files: 256,
            file_bytes: 1 << 20,
        },
        children: Children::Allowed,
        required: JailKind::Command.minimum(),
        namespaces: Namespaces::Enter,
        trace,
    };
    let begin = Instant::now();
    let report = runtime.block_on(async {
        let running = jailer.spawn(jail).await.unwrap();
        let caps = OutputCaps { stdout: 4 << 20, stderr: 4096 };
        running.finish(Vec::new(), caps, Duration::from_mins(1)).await
    });
    let time = begin.elapsed();
    assert!(matches!(report.ending, Ending::Exited(0 | 1)), "{:?}", report.ending);
    time
}

/// The same view by `bwrap`: system directories, a private `/tmp`, `/dev` and `/proc`, and the directory.
fn bwrap(folder: &Path) -> Command {
    let mut command = Command::new("/usr/bin/bwrap");
    command.args(["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]);
    for path in ["/usr", "/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs"] {
        if Path::new(path).exists() {
            command.args(["--ro-bind", path, path]);
        }
    }
    for link in ["bin", "sbin", "lib", "lib64"] {
        command.args(["--symlink", &format!("usr/{link}"), &format!("/{link}")]);
    }
    command.args(["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"]);
    let shown = folder.to_str().unwrap();
    command.args(["--ro-bind", shown, shown, "--chdir", shown, "/usr/bin/true"]);
    command
}

/// Creates an image of one static program and returns a function that runs it. `None` if Podman does not run.
fn podman() -> Option<Box<dyn FnMut() -> Duration>> {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists())?;
    let folder = tempfile::tempdir().ok()?;
    fs::create_dir_all(folder.path().join("bin")).ok()?;
    fs::copy(busybox, folder.path().join("bin/true")).ok()?;
    let tar = folder.path().join("image.tar");
    let packed =
        Command::new("tar").args(["-C", folder.path().to_str()?, "-cf"]).arg(&tar).arg("bin").status();
    packed.ok().filter(std::process::ExitStatus::success)?;
    let image = "localhost/toolgate-bench:latest";
    let import = Command::new("podman").arg("import").arg(&tar).arg(image).output().ok()?;
    for runtime in ["crun", "runc"] {
        let run = move || {
            let mut command = Command::new("podman");
            command.args([
                "--runtime",
                runtime,
                "run",
                "--rm",
                "--network=none",
                "--read-only",
                "--cap-drop=ALL",
            ]);
            command.args(LIMITS);
            command.args(["--security-opt=no-new-privileges", image, "/bin/true"]);
            command
        };
        if import.status.success() && run().output().is_ok_and(|output| output.status.success()) {
            return Some(Box::new(move || spawned(run())));
        }
    }
    None
}

fn spawned(mut command: Command) -> Duration {
    let begin = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    let time = begin.elapsed();
    assert!(matches!(status.code(), Some(0 | 1)), "{command:?}: {status}");
    time
}

fn take_turns(variants: &mut [JailVariant<'_>], rounds: usize) -> Vec<(&'static str, Vec<Duration>)> {
    let mut times: Vec<(&'static str, Vec<Duration>)> =
        variants.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for round in 0..=rounds {
        for ((_, variant), (_, times)) in variants.iter_mut().zip(&mut times) {
            std::thread::sleep(BETWEEN);
            let time = variant();
            if round > 0 {
                times.push(time);
            }
        }
    }
    for (_, times) in &mut times {
        times.sort_unstable();
    }
    times
}

fn print(times: &[(&str, Vec<Duration>)]) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    for (name, times) in times {
        let (p50, p99) = (median(times), times[times.len() * 99 / 100]);
        println!(
            "  {name:<36} p50 {:>8.2}   p99 {:>8.2}   min {:>8.2}",
            millis(p50),
            millis(p99),
            millis(times[0])
        );
    }
}

/// Podman requests more descriptors and processes than a nested virtual machine may have.
const LIMITS: [&str; 2] = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"];

/// Lets the kernel clean up after a variant before the next one is measured.
const BETWEEN: Duration = Duration::from_millis(20);

fn goal(what: &str, value: f64, bound: f64, is_met: bool, sign: &str) {
    let verdict = if is_met { "met" } else { "MISSED" };
    println!("  {what:<36} {value:>12.2} × (goal {sign} {bound}: {verdict})");
}

/// Reports a goal that was not measured, because silence would look like success.
fn not_measured(what: &str, bound: &str, why: &str) {
    println!("  {what:<36} NOT MEASURED (goal {bound}): {why}; scripts/bench-peers installs it");
}
