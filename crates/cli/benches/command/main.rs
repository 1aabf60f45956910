//! Cost of a no-op command through the gateway, over HTTP on one connection, beside a bare start and `bwrap`.
//!
//! The three take turns within one loop, and medians count. A second part counts the calls of 64 connections. `--quick` takes fewer
//! rounds; `--binary PATH` measures another build of the gateway, to compare two.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and fails loudly"
)]

mod client;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use client::Client;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let binary = arguments.iter().skip_while(|argument| *argument != "--binary").nth(1);
    let binary = binary.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_toolgate")), PathBuf::from);
    let folder = tempfile::tempdir().unwrap();
    let token = prepare(&binary, folder.path());
    let (gateway, address) = serve(&binary, folder.path());
    let mut gateway = Gateway(gateway);
    one_connection(&address, &token, if is_quick { 50 } else { 300 });
    many_connections(&address, &token, Duration::from_secs(if is_quick { 3 } else { 10 }));
    Command::new("kill").args(["-TERM", &gateway.0.id().to_string()]).status().unwrap();
    assert!(gateway.0.wait().unwrap().success(), "the gateway stops in good order");
}

/// Does not outlive a bench that fails.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

type Variant<'v> = (&'static str, Box<dyn FnMut() -> Duration + 'v>);

fn one_connection(address: &str, token: &str, rounds: usize) {
    let mut client = Client::connect(address, token);
    let mut variants: Vec<Variant<'_>> = vec![
        ("bare", Box::new(|| spawned(&mut Command::new("/usr/bin/true")))),
        ("through the gateway", Box::new(move || called(&mut client))),
    ];
    if Path::new("/usr/bin/bwrap").exists() {
        variants.push(("bwrap", Box::new(|| spawned(&mut bwrap()))));
    }
    let mut times: Vec<Vec<Duration>> = variants.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (number, (_, variant)) in variants.iter_mut().enumerate() {
            // The kernel puts away what the one before has left, and the gateway prepares its next jail.
            thread::sleep(BETWEEN);
            let time = variant();
            if round > 0 {
                times[number].push(time);
            }
        }
    }
    println!("a no-op command, one connection, in ms, {rounds} rounds");
    let mut medians = Vec::new();
    for ((name, _), times) in variants.iter().zip(&mut times) {
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("  {name:<24} p50 {:>7.2}   p99 {:>7.2}   min {:>7.2}", ms(p50), ms(p99), ms(times[0]));
        medians.push(p50);
    }
    if let [_, ours, theirs] = medians[..] {
        let ratio = ms(ours) / ms(theirs);
        let verdict = if ratio <= MOST { "met" } else { "MISSED" };
        println!("  gateway / bwrap          {ratio:>11.2} × (goal ≤ {MOST}: {verdict})");
    } else {
        println!(
            "  gateway / bwrap          NOT MEASURED (goal ≤ {MOST}): there is no /usr/bin/bwrap; scripts/bench-peers installs it"
        );
    }
}

fn many_connections(address: &str, token: &str, span: Duration) {
    let calls = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    let threads: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (calls, mut client) = (Arc::clone(&calls), Client::connect(address, token));
            thread::spawn(move || {
                while begin.elapsed() < span {
                    // A gateway that has no free place says so, and the call does not count.
                    if client.call("noop").contains("\"isError\":false") {
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("a client ends well");
    }
    let rate = u128::from(calls.load(Ordering::Relaxed)) * 1_000 / begin.elapsed().as_millis().max(1);
    println!("  {CONNECTIONS} connections           {rate:>11} calls a second");
}

fn called(client: &mut Client) -> Duration {
    let begin = Instant::now();
    let answer = client.call("noop");
    let time = begin.elapsed();
    assert!(answer.contains("\"isError\":false"), "{answer}");
    time
}

fn spawned(command: &mut Command) -> Duration {
    let begin = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    let time = begin.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    time
}

/// The namespaces and mounts of our jail. It has no seccomp filter, no Landlock and no limits.
fn bwrap() -> Command {
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
    command.args(["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--chdir", "/tmp", "/usr/bin/true"]);
    command
}

fn prepare(binary: &Path, folder: &Path) -> String {
    toolgate(binary, folder, &["init", ".", "--preset", "none"]);
    fs::create_dir_all(folder.join("tools")).unwrap();
    fs::write(folder.join("tools/noop.yaml"), NOOP).unwrap();
    toolgate(binary, folder, &["publish"]);
    toolgate(binary, folder, &["token", "create", "bench"]).trim().to_owned()
}

fn toolgate(binary: &Path, folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(binary).args(arguments).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn serve(binary: &Path, folder: &Path) -> (Child, String) {
    let mut child = Command::new(binary)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("serving MCP at")).expect("it serves");
    let address = line.split("http://").nth(1).unwrap().trim_end_matches("/mcp").to_owned();
    // Read on, or the gateway would wait for us.
    thread::spawn(move || lines.for_each(drop));
    (child, address)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

const NOOP: &str = "\
name: noop
description: Does nothing. Returns nothing.
classification: read
params: []
handler:
  cli:
    command: \"true\"
    args: []
capability:
  approval: {level: auto}
";
const MOST: f64 = 0.5;
const CONNECTIONS: usize = 64;
const BETWEEN: Duration = Duration::from_millis(20);
