//! Tests how denials are reported, to whom and how many, with a command that provokes them.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, ExitCode},
};

use rustix::net::{AddressFamily, SocketType, socket};
use serde_json::json;
use toolgate_gate::{Reason, RunReport};
use toolgate_handlers::CliTool;

use crate::{
    cases::{launcher, run, tried},
    world::{World, call, resolve, with_command},
};

pub const ALL: [(&str, fn()); 6] = [
    ("denial_does_not_reveal_files_outside", denial_does_not_reveal_files_outside),
    ("created_path_is_reported_despite_a_flood", created_path_is_reported_despite_a_flood),
    ("host_is_reported_despite_a_flood", host_is_reported_despite_a_flood),
    ("all_denials_of_a_flood_are_counted", all_denials_of_a_flood_are_counted),
    ("long_names_do_not_make_a_long_message", long_names_do_not_make_a_long_message),
    ("program_in_a_granted_directory_is_not_run", program_in_a_granted_directory_is_not_run),
];

pub const ROLE: &str = "be-refused";

/// In the jail: `make`, `fetch`, `fail` with a flood of calls; `nest` and `run` without.
pub fn be_refused(words: &[String]) -> ExitCode {
    let [what] = words else { return ExitCode::from(2) };
    if matches!(what.as_str(), "make" | "fetch" | "fail") {
        for number in 0..150 {
            assert!(socket(AddressFamily::from_raw(1_000 + number), SocketType::STREAM, None).is_err());
        }
    }
    match what.as_str() {
        "make" => (0..8).for_each(|number| fs::write(format!(".key{number}"), "x").unwrap()),
        "fetch" => fetch("elsewhere.example.com:443"),
        "nest" => nest(),
        "run" => assert!(Command::new("./x.sh").status().is_err()),
        _ => {}
    }
    ExitCode::from(if what == "fetch" { 0 } else { 3 })
}

/// Through the proxy, which denies it.
fn fetch(host: &str) {
    let proxy = env::var("http_proxy").unwrap();
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://")).unwrap();
    stream.write_all(format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 403");
}

/// Paths of maximal length, of a character that takes six to display; many of them.
fn nest() {
    let mut folder = env::current_dir().unwrap();
    for _ in 0..14 {
        let name = "\u{7f}".repeat(250);
        fs::create_dir(&name).unwrap();
        env::set_current_dir(&name).unwrap();
        folder.push(name);
    }
    for number in 0..120 {
        let name = format!("{}{number}", "\u{7f}".repeat(240));
        fs::write(&name, "#!/bin/true\n").unwrap();
        fs::set_permissions(&name, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Command::new(folder.join(name)).status().is_err());
    }
}

fn be_refused_in(world: &World, what: &str, capability: &str) -> RunReport {
    let manifest = format!(
        "
name: tried
description: Is tried. Returns text.
classification: write
handler: {{cli: {{command: be_refused, args: [{ROLE}, {what}], cwd: $WORKSPACE/docs}}}}
capability: {{{capability}}}
"
    );
    let (spec, policy) = resolve(&manifest);
    let tool = CliTool::new(with_command(&spec, &env::current_exe().unwrap()), &policy, &world.host());
    // A test binary needs more memory than a tool has by default.
    let tool = tool.unwrap().with_limits(|limits, _| limits.memory_bytes = 512 << 20);
    call(&world.handlers(launcher()).runnable(tool), &json!({})).unwrap()
}

/// A caller who names paths, and would learn which exist.
fn denial_does_not_reveal_files_outside() {
    let world = World::new();
    let manifest = tried(
        "classification: read
input: {type: object, required: [report], properties: {report: {type: string}}}
testInput: {report: x}",
        "command: head, args: ['-n', '5', '--', '{report}']",
        "allowedPaths: [$WORKSPACE]",
    );
    let told = |path: &Path| {
        let path = path.display().to_string();
        let report = run(&world, &manifest, &json!({ "report": path })).unwrap();
        let failure = report.outcome.unwrap_err();
        assert_eq!(failure.reason, Reason::CommandFailed);
        let has_view = report.layers.iter().any(|layer| layer == "private-view");
        (failure.message.replace(&path, "it"), report.refused, has_view)
    };
    let there = world.root().join("outside/passwd");
    let (present, journal, has_view) = told(&there);
    let (absent, _, _) = told(&world.root().join("outside/nothing"));
    assert_eq!(journal, [format!("reading `{}`", there.display())]);
    if has_view {
        assert_eq!(present, absent);
    } else {
        // The kernel's own error text.
        assert!(!present.contains("the jail refused"), "{present}");
    }
}

const BLOCKED: &str =
    "execution: {sandbox: process, allowedPaths: [$WORKSPACE], blockedPaths: ['$WORKSPACE/docs/.key*']}";

fn created_path_is_reported_despite_a_flood() {
    let world = World::new();
    let report = be_refused_in(&world, "make", BLOCKED);
    let failure = report.outcome.unwrap_err();
    assert_eq!(failure.reason, Reason::BlockedPathMade, "{}", failure.message);
    for number in 0..8 {
        let line =
            format!("creating `{}`, which is blocked (renamed to `", world.at(&format!("docs/.key{number}")));
        assert!(report.refused.iter().take(8).any(|told| told.starts_with(&line)), "{:?}", report.refused);
    }
}

fn host_is_reported_despite_a_flood() {
    let network = "network: {access: limited, allowedHosts: [api.example.com]}";
    let report = be_refused_in(&World::new(), "fetch", &format!("{BLOCKED}, {network}"));
    report.outcome.unwrap();
    assert_eq!(report.refused[0], "reaching `elsewhere.example.com:443`", "{:?}", report.refused);
}

fn all_denials_of_a_flood_are_counted() {
    let report = be_refused_in(&World::new(), "fail", BLOCKED);
    let message = report.outcome.unwrap_err().message;
    assert!(message.contains("(family 1004) and 145 more"), "{message}");
}

fn long_names_do_not_make_a_long_message() {
    let report = be_refused_in(&World::new(), "nest", BLOCKED);
    let message = report.outcome.unwrap_err().message;
    assert!(message.contains("…"), "{message:.500}");
    assert!(message.len() < 4 << 10, "{} bytes", message.len());
}

fn program_in_a_granted_directory_is_not_run() {
    let world = World::new();
    world.program("x.sh", "#!/bin/true\n", 0o755);
    fs::rename(world.root().join("bin/x.sh"), world.at("docs/x.sh")).unwrap();
    let message = be_refused_in(&world, "run", BLOCKED).outcome.unwrap_err().message;
    assert!(message.contains(&format!("the jail refused: running `{}`", world.at("docs/x.sh"))), "{message}");
    assert!(message.contains("programs in granted directories cannot be run"), "{message}");
    assert!(!message.contains("allowedPaths"), "{message}");
}
