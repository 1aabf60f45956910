//! Tests command tools in the real jail.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    pin::Pin,
    process::{Command, ExitCode},
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_egress::{Egress, EgressLimits, Listeners, SystemResolver, TlsRoots};
use toolgate_gate::{Reason, Refusal, RunReport, RunRequest, StopFlag, UnreportedEffects};
use toolgate_handlers::{
    CliTool, CommandOrder, CommandOutcome, FileCaps, FileGrants, FileRights, Files, JailedLauncher, Launch,
};
use toolgate_sandbox::{JailKind, Jailer};
use toolgate_spec::PathPattern;

use crate::{
    catalog::{git, manifest, repository},
    client,
    world::{World, call, request, resolve, runtime, with_command},
};

pub const ALL: [(&str, fn()); 19] = [
    ("shipped_tools_run", shipped_tools_run),
    ("only_named_paths_are_visible", only_named_paths_are_visible),
    ("blocked_paths_are_not_visible", blocked_paths_are_not_visible),
    ("hard_link_shows_no_blocked_file", hard_link_shows_no_blocked_file),
    ("second_mount_shows_no_blocked_file", second_mount_shows_no_blocked_file),
    ("symlink_with_a_blocked_name_shows_nothing", symlink_with_a_blocked_name_shows_nothing),
    ("created_blocked_path_is_quarantined", created_blocked_path_is_quarantined),
    ("writing_needs_a_grant", writing_needs_a_grant),
    ("lock_of_a_command_blocks_no_call", lock_of_a_command_blocks_no_call),
    ("time_and_output_are_bounded", time_and_output_are_bounded),
    ("denials_are_reported", denials_are_reported),
    ("denials_of_a_dropped_call_are_recorded", denials_of_a_dropped_call_are_recorded),
    ("repository_attributes_run_nothing", repository_attributes_run_nothing),
    ("repository_elsewhere_is_not_reached", repository_elsewhere_is_not_reached),
    ("allowed_hosts_are_reached", allowed_hosts_are_reached),
    ("other_hosts_are_not_reached", other_hosts_are_not_reached),
    ("secret_is_sent_only_if_it_was_given", secret_is_sent_only_if_it_was_given),
    ("method_is_not_sent_without_approval", method_is_not_sent_without_approval),
    ("tool_without_network_reaches_nothing", tool_without_network_reaches_nothing),
];

/// One for all cases, like in a gateway.
static JAILER: LazyLock<Jailer> = LazyLock::new(|| Jailer::start(&env::current_exe().unwrap()).unwrap());

pub fn launcher() -> Arc<dyn Launch> {
    let resolver = SystemResolver::with_servers(&[]).unwrap();
    let egress =
        Egress::new(Arc::new(resolver), &roots(), EgressLimits::default(), Listeners::of_this_process())
            .unwrap();
    Arc::new(JailedLauncher {
        jailer: JAILER.clone(),
        egress: Some(egress),
        required: JailKind::Command.minimum(),
    })
}

/// Certificates that sign nothing; these tests do not use TLS.
pub fn roots() -> TlsRoots {
    let signed = rcgen::generate_simple_self_signed(vec!["nobody.test".to_owned()]).unwrap();
    TlsRoots::Pem(signed.cert.pem().into_bytes())
}

pub fn run(world: &World, manifest: &str, arguments: &Value) -> Result<RunReport, Refusal> {
    call(&world.handlers(launcher()).runnable(world.load(manifest).unwrap()), arguments)
}

#[track_caller]
fn check(world: &World, manifest: &str, arguments: &Value) -> String {
    let report = run(world, manifest, arguments).unwrap();
    assert!(report.layers.iter().any(|layer| layer.contains("seccomp")), "{:?}", report.layers);
    report.outcome.unwrap().unwrap().as_str().unwrap().to_owned()
}

#[track_caller]
fn fails(world: &World, manifest: &str, arguments: &Value, reason: Reason) -> String {
    let failure = run(world, manifest, arguments).unwrap().outcome.unwrap_err();
    assert_eq!(failure.reason, reason, "{}", failure.message);
    failure.message
}

pub fn tried(head: &str, cli: &str, execution: &str) -> String {
    format!(
        "
name: tried
description: Is tried. Returns text.
{head}
handler: {{cli: {{{cli}}}}}
capability: {{execution: {{sandbox: process, {execution}}}}}
"
    )
}

const PATH: &str = "classification: read
input: {type: object, required: [path], properties: {path: {type: string, format: path}}}
testInput: {path: src}";

fn shipped_tools_run() {
    let world = World::new();
    repository(&world);
    assert_eq!(check(&world, &manifest("echo_message"), &json!({ "message": "$(id)" })), "$(id)\n");
    assert!(check(&world, &manifest("list_files"), &json!({ "folder": "src" })).contains("main.rs"));
    let read = check(&world, &manifest("read_file"), &json!({ "path": "docs/readme.md" }));
    assert_eq!(read, "# The gate\nis closed\n");
    let found = check(&world, &manifest("search_code"), &json!({ "text": "closed", "folder": "." }));
    assert_eq!(found, format!("{}:2:is closed\n", world.at("docs/readme.md")));
    assert_eq!(check(&world, &manifest("git_log"), &json!({ "count": 9 })).lines().count(), 2);
    let old = json!({ "revision": "HEAD~1", "path": "docs/readme.md" });
    assert!(check(&world, &manifest("git_show_file"), &old).contains("are named"));
    let between = json!({ "base": "feature/x", "head": "main" });
    assert!(check(&world, &manifest("git_diff_branches"), &between).contains("+is closed"));
    world.write("workspace/src/main.rs", "fn other() {}\n");
    assert!(check(&world, &manifest("git_diff"), &json!({})).contains("+fn other() {}"));
}

fn only_named_paths_are_visible() {
    let world = World::new();
    let list = tried(PATH, "command: ls, args: [-A, '{path}', /tmp]", "allowedPaths: [$WORKSPACE]");
    let listed = check(&world, &list, &json!({ "path": "docs" }));
    assert!(listed.contains("readme.md"), "{listed}");
    let above = tried(PATH, "command: ls, args: [-A, '{path}', '/']", "allowedPaths: [$WORKSPACE]");
    let listed = check(&world, &above, &json!({ "path": "docs" }));
    assert!(listed.contains("usr") && !listed.contains("root") && !listed.contains("home"), "{listed}");
    let neighbour = tried(
        PATH,
        &format!("command: cat, args: ['{{path}}', {}]", world.at("src/main.rs")),
        "allowedPaths: [$WORKSPACE]",
    );
    let why = fails(&world, &neighbour, &json!({ "path": "docs/readme.md" }), Reason::CommandFailed);
    assert!(why.contains("No such file"), "{why}");
}

fn blocked_paths_are_not_visible() {
    let world = World::new();
    world.write("workspace/a/.env.local", "TOKEN=2\n");
    world.write("workspace/a/note", "TOKEN=3\n");
    let search = tried(
        "classification: read",
        "command: grep, args: ['-r', 'TOKEN\\|x', .], cwd: $WORKSPACE",
        "allowedPaths: [$WORKSPACE], blockedPaths: ['$WORKSPACE/**/.env*']",
    );
    let found = check(&world, &search, &json!({}));
    assert_eq!(found, "./a/note:TOKEN=3\n");
    let named = tried(
        "classification: read",
        "command: cat, args: [src/.env], cwd: $WORKSPACE",
        "allowedPaths: [$WORKSPACE], blockedPaths: ['$WORKSPACE/**/.env*']",
    );
    let why = fails(&world, &named, &json!({}), Reason::CommandFailed);
    assert!(why.contains("is blocked for this tool") && !why.contains("allowedPaths"), "{why}");
    let read = tried(PATH, "command: cat, args: ['{path}']", "allowedPaths: [$WORKSPACE]");
    assert_eq!(check(&world, &read, &json!({ "path": "a/note" })), "TOKEN=3\n");
}

/// Blocked elsewhere by a pattern, as a directory, or as a location of credentials. The search does not fail because
/// of it.
fn hard_link_shows_no_blocked_file() {
    let world = World::new();
    world.write("workspace/docs/note", "KEY=seen\n");
    for (path, name) in [
        ("outside/keys/id_rsa", "docs/a.md"),
        ("outside/vault/deep/key", "docs/b.md"),
        ("home/.ssh/id_ed25519", "docs/c.md"),
        ("workspace/config/.env", "docs/d.md"),
    ] {
        world.write(path, "KEY=hidden\n");
        fs::hard_link(world.root().join(path), world.at(name)).unwrap();
    }
    let outside = world.root().join("outside").display().to_string();
    let search = tried(
        PATH,
        "command: grep, args: ['-r', KEY, '{path}']",
        &format!(
            "allowedPaths: [$WORKSPACE], blockedPaths: ['{outside}/keys/id_*', '{outside}/vault', '$WORKSPACE/**/.env']"
        ),
    );
    let found = check(&world, &search, &json!({ "path": "docs" }));
    assert_eq!(found, format!("{}:KEY=seen\n", world.at("docs/note")));
}

/// In a separate mount namespace, which leaves the host's mounts unchanged.
fn second_mount_shows_no_blocked_file() {
    let mut mounter = Command::new("unshare");
    mounter.args(["--mount", "--propagation", "private"]);
    if !rustix::process::geteuid().is_root() {
        mounter.arg("--map-root-user");
    }
    let output = mounter.arg(env::current_exe().unwrap()).arg(MOUNTER).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Mounts blocked files, by name and by pattern, inside the view of a command.
pub fn be_a_mounter() -> ExitCode {
    let world = World::new();
    world.write("workspace/docs/note", "KEY=seen\n");
    world.write("outside/vault/deep/key", "KEY=hidden\n");
    world.write("outside/app/.env", "KEY=hidden\n");
    world.write("outside/app/note", "KEY=seen\n");
    let outside = world.root().join("outside");
    for (from, on) in [("vault", "docs/a"), ("app", "docs/b")] {
        fs::create_dir(world.at(on)).unwrap();
        let mount = Command::new("mount").arg("--bind").arg(outside.join(from)).arg(world.at(on)).status();
        assert!(mount.unwrap().success());
    }
    let outside = outside.display();
    let search = tried(
        PATH,
        "command: grep, args: ['-r', KEY, '{path}']",
        &format!("allowedPaths: [$WORKSPACE], blockedPaths: ['{outside}/vault', '{outside}/**/.env']"),
    );
    let found = check(&world, &search, &json!({ "path": "docs" }));
    let mut lines: Vec<&str> = found.lines().collect();
    lines.sort_unstable();
    let seen = ["docs/b/note", "docs/note"].map(|name| format!("{}:KEY=seen", world.at(name)));
    assert_eq!(lines, seen);
    for on in ["docs/a", "docs/b"] {
        assert!(Command::new("umount").arg(world.at(on)).status().unwrap().success());
    }
    ExitCode::SUCCESS
}

pub const MOUNTER: &str = "be-a-mounter";

fn symlink_with_a_blocked_name_shows_nothing() {
    let world = World::new();
    world.write("workspace/config/prod.txt", "KEY=hidden\n");
    world.write("workspace/config/note", "KEY=seen\n");
    std::os::unix::fs::symlink("config/prod.txt", world.at(".env")).unwrap();
    let search = tried(
        "classification: read",
        "command: grep, args: ['-r', KEY, .], cwd: $WORKSPACE",
        "allowedPaths: [$WORKSPACE], blockedPaths: ['$WORKSPACE/**/.env*']",
    );
    assert_eq!(check(&world, &search, &json!({})), "./config/note:KEY=seen\n");
}

/// Neither by copying, moving and linking, nor as a directory, nor through a symlink in its place.
fn created_blocked_path_is_quarantined() {
    for (command, blocked, made) in [
        ("cp, args: [readme.md, .env]", "**/.env", ".env"),
        ("mv, args: [readme.md, .env]", "**/.env", ".env"),
        ("ln, args: [readme.md, .env]", "**/.env", ".env"),
        ("ln, args: ['-s', readme.md, .env]", "**/.env", ".env"),
        ("mkdir, args: ['-p', .git/hooks/x]", "**/.git/hooks/**", ".git/hooks"),
        ("ln, args: ['-s', innocent, .git]", "**/.git/hooks/**", ".git"),
        ("cp, args: [readme.md, key]", "key", "key"),
    ] {
        let world = World::new();
        let execution = format!("allowedPaths: [$WORKSPACE], blockedPaths: ['$WORKSPACE/docs/{blocked}']");
        let cli = format!("command: {command}, cwd: $WORKSPACE/docs");
        let tool = tried("classification: write", &cli, &execution);
        let why = fails(&world, &tool, &json!({}), Reason::BlockedPathMade);
        let made = world.at(&format!("docs/{made}"));
        assert!(why.contains(&format!("creating `{made}`")), "{command}: {why}");
        assert!(fs::symlink_metadata(&made).is_err(), "{command}: it is still there");
    }
}

fn writing_needs_a_grant() {
    let world = World::new();
    let touch = |class: &str| {
        let head = PATH.replace("classification: read", &format!("classification: {class}"));
        tried(&head, "command: tee, args: ['{path}'], stdin: written", "allowedPaths: [$WORKSPACE]")
    };
    check(&world, &touch("write"), &json!({ "path": "src/new.txt" }));
    assert_eq!(fs::read_to_string(world.at("src/new.txt")).unwrap(), "written");
    let why = fails(&world, &touch("read"), &json!({ "path": "src/new.txt" }), Reason::CommandFailed);
    assert!(why.contains("Read-only file system") || why.contains("Permission denied"), "{why}");
    let outside = world.root().join("outside/passwd").display().to_string();
    assert_eq!(
        run(&world, &touch("write"), &json!({ "path": outside })).unwrap_err().reason,
        Reason::PathOutsideRoots
    );
}

/// It may only read, but it can lock what it reads.
fn lock_of_a_command_blocks_no_call() {
    let world = World::new();
    let (spec, policy) = resolve(&tried(
        "classification: read",
        "command: holder, cwd: $WORKSPACE",
        "allowedPaths: [$WORKSPACE], timeout: 20000",
    ));
    let program = world.program("holder", "#!/bin/sh\nexec flock . sleep 4\n", 0o755);
    let tool = CliTool::new(with_command(&spec, &program), &policy, &world.host()).unwrap();
    let holder = world.handlers(launcher()).runnable(tool);
    let root = world.root();
    let grants = FileGrants {
        workspace: root.join("workspace"),
        read_roots: Vec::new(),
        pattern_workspace: root.join("workspace"),
        home: root.join("home"),
        rights: FileRights::ReadWrite,
        allowed: vec![PathPattern::parse("/").unwrap()],
        blocked: Vec::new(),
        own: Vec::new(),
        locks: root.join("workspace/.toolgate/turns"),
        caps: FileCaps::default(),
    };
    let workspace = fs::File::open(root.join("workspace")).unwrap();
    let try_lock = || flock(&workspace, FlockOperation::NonBlockingLockExclusive);
    thread::scope(|scope| {
        let running = scope.spawn(|| call(&holder, &json!({})).unwrap().outcome.unwrap());
        while try_lock().is_ok() {
            flock(&workspace, FlockOperation::Unlock).unwrap();
            assert!(!running.is_finished(), "it ended without a lock");
            thread::sleep(Duration::from_millis(20));
        }
        let files = Files::open(&grants, || false).unwrap();
        files.write_text("docs/new.md", "written").unwrap();
        assert!(try_lock().is_err(), "it is held no longer");
        running.join().unwrap();
    });
}

fn time_and_output_are_bounded() {
    let world = World::new();
    let slow = tried("classification: read", "command: sleep, args: ['60'], timeout: 300", "timeout: 20000");
    assert!(fails(&world, &slow, &json!({}), Reason::Timeout).contains("300 ms"));
    let loud = tried("classification: read", "command: 'yes'", "maxOutputSize: 1000");
    assert!(fails(&world, &loud, &json!({}), Reason::ResultTooLarge).contains("65536 bytes"));
}

fn denials_are_reported() {
    let world = World::new();
    let secret = world.root().join("outside/passwd").display().to_string();
    let tool = tried("classification: read", &format!("command: cat, args: [{secret}]"), "timeout: 20000");
    let report = run(&world, &tool, &json!({})).unwrap();
    let message = report.outcome.unwrap_err().message;
    assert!(message.contains(&format!("the jail refused: reading `{secret}`")), "{message}");
    assert!(message.contains("execution.allowedPaths"), "{message}");
    assert!(report.refused.contains(&format!("reading `{secret}`")), "{:?}", report.refused);
    // `ls` opens nothing before it fails.
    let tool =
        tried("classification: read", &format!("command: ls, args: ['-l', {secret}]"), "timeout: 20000");
    let report = run(&world, &tool, &json!({})).unwrap();
    // Without a private view the command gets an answer.
    if report.layers.iter().any(|layer| layer == "private-view") {
        let message = report.outcome.unwrap_err().message;
        assert!(message.contains(&format!("the jail refused: reading `{secret}`")), "{message}");
        assert!(report.refused.contains(&format!("reading `{secret}`")), "{:?}", report.refused);
    }
}

/// The real jail, with a signal once it has reported a denial.
pub struct Watched {
    pub jailed: Arc<dyn Launch>,
    pub path: String,
    pub is_told: Arc<Notify>,
}

impl Launch for Watched {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        let (progress, path, is_told) =
            (Arc::clone(&order.progress), self.path.clone(), Arc::clone(&self.is_told));
        let run = self.jailed.launch(order);
        Box::pin(async move {
            let watching = async {
                while !progress.current().1.listed.iter().any(|refused| refused.describe().contains(&path)) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                is_told.notify_one();
                std::future::pending::<CommandOutcome>().await
            };
            tokio::select! {
                ended = run => ended,
                ended = watching => ended,
            }
        })
    }
}

/// The caller disconnects before the command ends, which it never does.
fn denials_of_a_dropped_call_are_recorded() {
    let world = World::new();
    let secret = world.root().join("outside/passwd").display().to_string();
    let cli = format!("command: wc, args: ['-l', {secret}, /dev/zero], timeout: 20000");
    let manifest = tried("classification: read", &cli, "timeout: 20000");
    let is_told = Arc::new(Notify::new());
    let watched = Watched { jailed: launcher(), path: secret.clone(), is_told: Arc::clone(&is_told) };
    let tool = world.handlers(Arc::new(watched)).runnable(world.load(&manifest).unwrap());
    let arguments = serde_json::Map::new();
    let unreported = UnreportedEffects::default();
    let survey = Arc::clone(&tool).survey(&arguments, &StopFlag::default()).unwrap();
    runtime().block_on(async {
        tokio::select! {
            report = survey.call.run(RunRequest { unreported: &unreported, ..request(&arguments) }) => panic!("it ended: {report:?}"),
            () = is_told.notified() => {}
        }
    });
    let unreported = format!("{unreported:?}");
    assert!(unreported.contains(&format!("reading `{secret}`")), "{unreported}");
}

/// A filter that only `.git/info/attributes` names, and that needs only a shell, which every jail has.
fn repository_attributes_run_nothing() {
    let world = World::new();
    repository(&world);
    git(&world.at(""), &["config", "filter.evil.clean", "sed s/changed/forged/"]);
    world.write("workspace/.git/info/attributes", "* filter=evil\n");
    world.write("workspace/docs/readme.md", "# changed\n");
    let diff = git(&world.at(""), &["diff"]);
    assert!(diff.contains("+# forged"), "the trap works: {diff}");
    let diff = check(&world, &manifest("git_diff"), &json!({}));
    assert!(diff.contains("+# changed") && !diff.contains("forged"), "{diff}");
}

/// A repository can claim that it, or its objects, are elsewhere.
fn repository_elsewhere_is_not_reached() {
    let world = World::new();
    repository(&world);
    let own = world.root().join("workspace/.git");
    let elsewhere = world.root().join("outside/repository");
    fs::rename(&own, &elsewhere).unwrap();
    fs::write(&own, format!("gitdir: {}\n", elsewhere.display())).unwrap();
    assert_eq!(git(&world.at(""), &["rev-list", "--count", "HEAD"]), "2");
    fails(&world, &manifest("git_log"), &json!({ "count": 1 }), Reason::CommandFailed);
    fs::remove_file(&own).unwrap();
    fs::create_dir_all(own.join("objects/info")).unwrap();
    fs::create_dir_all(own.join("refs/heads")).unwrap();
    fs::copy(elsewhere.join("HEAD"), own.join("HEAD")).unwrap();
    fs::copy(elsewhere.join("refs/heads/main"), own.join("refs/heads/main")).unwrap();
    let objects = elsewhere.join("objects").display().to_string();
    fs::write(own.join("objects/info/alternates"), format!("{objects}\n")).unwrap();
    assert_eq!(git(&world.at(""), &["rev-list", "--count", "HEAD"]), "2");
    fails(&world, &manifest("git_log"), &json!({ "count": 1 }), Reason::CommandFailed);
}

/// The client below, as a tool that may reach `hosts`.
fn client(world: &World, how: &str, network: &str) -> CliTool {
    client_of(world, how, network, "", "")
}

fn client_of(world: &World, how: &str, network: &str, statics: &str, env: &str) -> CliTool {
    let text = format!(
        "
name: tried
description: Is tried. Returns text.
classification: read
params: [{{name: target, type: STRING, required: true, testValue: x}}]
{statics}
handler: {{cli: {{command: fetch, args: [{}, {how}, '{{target}}']{env}}}}}
capability: {{network: {network}, execution: {{timeout: 20000}}}}
",
        client::ROLE
    );
    let (spec, policy) = resolve(&text);
    let program = env::current_exe().unwrap();
    let tool = CliTool::new(with_command(&spec, &program), &policy, &world.host()).unwrap();
    // A test binary needs more memory than a tool has by default.
    tool.with_limits(|limits, _| limits.memory_bytes = 512 << 20)
}

/// Answers one request and returns it.
fn server() -> (String, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 1024];
        let length = stream.read(&mut asked).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello").unwrap();
        String::from_utf8_lossy(&asked[..length]).into_owned()
    });
    (address, serving)
}

const LOOPBACK: &str = "{access: limited, allowedHosts: ['127.0.0.1'], blockPrivateIPs: false}";

fn allowed_hosts_are_reached() {
    let world = World::new();
    let (address, serving) = server();
    let tool = world.handlers(launcher()).runnable(client(&world, "proxied", LOOPBACK));
    let report = call(&tool, &json!({ "target": format!("http://{address}/a") })).unwrap();
    let answer = report.outcome.unwrap().unwrap();
    assert!(answer.as_str().unwrap().ends_with("hello\n"), "{answer}");
    assert!(serving.join().unwrap().starts_with("GET /a HTTP/1.1"));
    let effect = &report.effects[0];
    assert_eq!(
        (effect.what.as_str(), effect.target.as_str(), effect.outcome.as_str()),
        ("http GET", address.as_str(), "ok")
    );
}

fn other_hosts_are_not_reached() {
    let world = World::new();
    let (address, _serving) = server();
    let tool = world.handlers(launcher()).runnable(client(
        &world,
        "proxied",
        "{access: limited, allowedHosts: [api.example.com]}",
    ));
    let report = call(&tool, &json!({ "target": format!("http://{address}/a") })).unwrap();
    let answer = report.outcome.unwrap().unwrap();
    assert!(answer.as_str().unwrap().contains("403"), "{answer}");
    assert_eq!(report.refused, [format!("reaching `{address}`")]);
    // Bypassing the proxy fails, even if the rules allow the host.
    let around = world.handlers(launcher()).runnable(client(&world, "direct", LOOPBACK));
    let report = call(&around, &json!({ "target": address })).unwrap();
    assert!(report.outcome.unwrap_err().message.contains("exit code 3"));
}

fn secret_is_sent_only_if_it_was_given() {
    let mut world = World::new();
    let token =
        |digit: &str| format!("xox{}-48123679502{digit}-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
    let (address, serving) = server();
    let tool = world.handlers(launcher()).runnable(client(&world, "proxied", LOOPBACK));
    let report = call(&tool, &json!({ "target": format!("http://{address}/?k={}", token("1")) })).unwrap();
    let answer = report.outcome.unwrap().unwrap();
    assert!(answer.as_str().unwrap().contains("403"), "{answer}");
    assert_eq!(report.refused, [format!("sending a secret to `{address}`")]);
    assert_eq!(report.effects[0].outcome, "content-refused");

    world.secrets.insert("KEY".to_owned(), token("3"));
    let own_secrets =
        client_of(&world, "proxied", LOOPBACK, "staticVariables: [{key: '${KEY}'}]", ", env: {KEY: '{key}'}");
    let tool = world.handlers(launcher()).runnable(own_secrets);
    let report = call(&tool, &json!({ "target": format!("http://{address}/?k=") })).unwrap();
    assert_eq!(report.effects[0].outcome, "ok", "{:?}", report.refused);
    assert!(serving.join().unwrap().contains(&token("3")));
}

fn method_is_not_sent_without_approval() {
    let world = World::new();
    // Without a tunnel, so the proxy sees the request.
    let network =
        "{access: limited, allowedHosts: ['127.0.0.1'], blockPrivateIPs: false, blockedPorts: [443]}";
    let asking = |methods: &str| {
        let capability = format!("{network}, approval: {{askForMethods: [{methods}]}}");
        let tool = client_of(&world, "proxied", &capability, "", ", env: {METHOD: POST}");
        world.handlers(launcher()).runnable(tool)
    };
    let (address, serving) = server();
    let target = json!({ "target": format!("http://{address}/a") });
    let report = call(&asking("POST"), &target).unwrap();
    let answer = report.outcome.unwrap().unwrap();
    assert!(answer.as_str().unwrap().contains("403 toolgate refused: method-needs-approval"), "{answer}");
    assert_eq!(report.refused, [format!("sending `POST` to `{address}` without approval")]);
    assert_eq!(report.effects[0].outcome, "method-needs-approval");

    let report = call(&asking("DELETE"), &target).unwrap();
    assert_eq!(report.effects[0].outcome, "ok", "{:?}", report.refused);
    assert!(serving.join().unwrap().starts_with("POST /a HTTP/1.1"));
}

fn tool_without_network_reaches_nothing() {
    let world = World::new();
    let (address, _serving) = server();
    let tool = world.handlers(launcher()).runnable(client(&world, "direct", "{access: none}"));
    let report = call(&tool, &json!({ "target": address })).unwrap();
    assert!(report.outcome.unwrap_err().message.contains("exit code 3"));
    assert!(!report.refused.is_empty());
}
