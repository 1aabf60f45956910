//! The gateway's side of an attack: what is at stake, and what is visible outside afterwards.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, UdpSocket},
    os::unix::fs::PermissionsExt,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use toolgate_sandbox::{Access, CommandJail, CommandReport, Ending, Network};

use super::{
    Attack, Ends, Hole, Inside, Wires,
    watching::{Listeners, Shared, life_of},
};
use crate::driver::{
    CAPS, INSIDE, PATIENCE, Tier, bind, folder, inside, jail, jailer, on_runtime, program, spawn,
};

/// Runs the attack in a jail. It must report a denial, and nothing may have changed outside.
#[track_caller]
pub fn must_hold(attack: &Attack, tier: Tier) {
    let stage = Stage::set(attack.target);
    let jailer_before = jailers();
    let (report, mut harm) = stage.run(attack, stage.jail(attack, tier));
    harm.extend((attack.harm)(&stage, &report));
    if attack.ends == Ends::Saying {
        let said = String::from_utf8_lossy(&report.stdout);
        if report.ending != Ending::Exited(0) || !said.starts_with("held ") {
            harm.push(format!("it did not say that it was refused: {said}"));
        }
    }
    if matches!(report.ending, Ending::JailFailed(_)) {
        harm.push("the jail failed".into());
    }
    if jailers() != jailer_before {
        harm.push("the jailer is not who it was".into());
    }
    assert!(harm.is_empty(), "{}: {harm:?} {report:?}", attack.what);
    until("nobody is left", || left_of(attack.name) == 0);
}

/// Runs the same attack without the jail. It must work, which proves that a success would be detected.
#[track_caller]
pub fn must_break(attack: &Attack) {
    let stage = Stage::set(if attack.target == Target::ThisProcess { Target::Decoy } else { attack.target });
    let attempt = || match attack.hole {
        Hole::Cut(cut) => {
            let mut order = stage.jail(attack, Tier::Namespaces);
            cut(&mut order, &stage);
            let (report, mut harm) = stage.run(attack, order);
            harm.extend((attack.harm)(&stage, &report));
            (report.stdout, harm)
        }
        _ => stage.run_unjailed(attack),
    };
    // A race is not always won at once on a busy machine.
    let started = Instant::now();
    let (mut said, mut harm) = attempt();
    while harm.is_empty() && started.elapsed() < PATIENCE {
        (said, harm) = attempt();
    }
    assert!(!harm.is_empty(), "{} is not seen: {}", attack.what, String::from_utf8_lossy(&said));
}

/// The process that the attacker targets.
#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Target {
    ThisProcess,
    /// A process whose death does not matter.
    Decoy,
    /// A process that sleeps until a harmless signal wakes it.
    StoppedDecoy,
}

/// Everything at stake in one attack.
pub struct Stage {
    pub folder: PathBuf,
    /// Unknown inside the jail.
    pub secret: String,
    pub listeners: Listeners,
    shared: Shared,
    target: i32,
    secret_at: usize,
    decoy: Option<Child>,
    guarded: BTreeMap<PathBuf, String>,
    host: String,
}

impl Stage {
    fn set(target: Target) -> Self {
        let folder = folder();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let secret = format!("secret-{}-{}", std::process::id(), now.as_nanos());
        let files = [
            "outside/canary",
            "work/plain",
            "work/hidden/key",
            "work/deep/hidden/key",
            "work/.env",
            "work/fixed/settled",
            "work/outer/middle/inner/settled",
            "read/text",
        ];
        for file in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let is_open = ["plain", "settled", "text"].iter().any(|name| file.ends_with(name));
            fs::write(&path, if is_open { "granted" } else { &secret }).unwrap();
        }
        let canary = folder.join("outside/canary");
        rustix::fs::setxattr(canary, ATTRIBUTE, secret.as_bytes(), rustix::fs::XattrFlags::empty()).unwrap();
        fs::create_dir(folder.join("work/free")).unwrap();
        place_tools(&folder.join("tools"));
        let listeners = Listeners::open(&folder);
        let shared = Shared::make(&secret);
        let (target, secret_at, decoy) = match target {
            Target::ThisProcess => {
                (std::process::id().cast_signed(), secret.as_ptr().expose_provenance(), None)
            }
            Target::Decoy => start_decoy(&secret),
            Target::StoppedDecoy => {
                let decoy = start_decoy(&secret);
                let process = rustix::process::Pid::from_raw(decoy.0).unwrap();
                rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
                until("it stops", || life_of(decoy.0).starts_with("stopped"));
                decoy
            }
        };
        let mut stage = Self {
            guarded: BTreeMap::new(),
            host: String::new(),
            folder,
            secret,
            listeners,
            shared,
            target,
            secret_at,
            decoy,
        };
        // The jailer must exist before the state is recorded.
        let _ = jailer();
        (stage.guarded, stage.host) = (stage.guarded_now(), stage.host_now());
        stage
    }

    /// The jail that every attacker gets.
    fn jail(&self, attack: &Attack, tier: Tier) -> CommandJail {
        let mut order = inside(tier, attack.name);
        let own = |name: &str, access| bind(&self.folder.join(name), access);
        order.view.binds.push(own("work", Access::Write));
        order.view.binds.push(own("work/fixed", Access::Read));
        order.view.binds.push(own("work/outer/middle/inner", Access::Read));
        order.view.binds.push(own("read", Access::Read));
        order.view.binds.push(own("tools", Access::Execute));
        order.view.hidden =
            ["work/hidden", "work/deep/hidden", "work/.env"].map(|name| self.folder.join(name)).into();
        order.env.extend(self.knowledge().map(|(name, value)| (name.into(), value.into())));
        if attack.network == Wires::Proxied {
            order.network = Network::Proxied { http_port: OWN_PROXY };
        }
        (attack.change)(&mut order, self);
        order
    }

    fn knowledge(&self) -> [(&'static str, String); 11] {
        let handle = Shared::handle_of(&self.folder.join("outside/canary"));
        [
            ("STAGE_FOLDER", self.folder.to_str().unwrap().to_owned()),
            ("STAGE_GATEWAY", self.target.to_string()),
            ("STAGE_SECRET_AT", self.secret_at.to_string()),
            ("STAGE_HOST", host_address().to_string()),
            ("STAGE_TCP", self.listeners.tcp_port().to_string()),
            ("STAGE_UDP", self.listeners.udp_port().to_string()),
            ("STAGE_OTHER_PROXY", OTHER_PROXY.to_string()),
            ("STAGE_ABSTRACT", self.listeners.abstract_name.clone()),
            ("STAGE_TERMINAL", self.listeners.terminal.to_str().unwrap().to_owned()),
            ("STAGE_HANDLE", in_hex(&handle)),
            ("STAGE_KEY", self.shared.key.to_string()),
        ]
    }

    /// Runs it to its end, with the concurrent activity outside.
    fn run(&self, attack: &Attack, order: CommandJail) -> (CommandReport, Vec<String>) {
        let (report, heard) = self.while_that_goes_on(attack, || {
            on_runtime(async {
                let other = if attack.network == Wires::Proxied { Some(other_proxy().await) } else { None };
                let running = spawn(order).await.unwrap_or_else(|error| panic!("{error}"));
                let report = running.finish(Vec::new(), CAPS, attack.deadline).await;
                let is_heard = other.is_some_and(|(_jail, sockets)| {
                    sockets.http.set_nonblocking(true).unwrap();
                    sockets.http.accept().is_ok()
                });
                (report, is_heard)
            })
        });
        let mut harm = self.harm(&report.stdout, &report.stderr);
        harm.extend(heard.then(|| "the proxy of another jail was reached".into()));
        (report, harm)
    }

    fn run_unjailed(&self, attack: &Attack) -> (Vec<u8>, Vec<String>) {
        let mut command = Command::new(program());
        command.args([INSIDE, attack.name]).env_clear().envs(self.knowledge()).env("PATH", "/usr/bin:/bin");
        command.current_dir("/").stdin(Stdio::null()).process_group(0);
        let output = self.while_that_goes_on(attack, || command.output().unwrap());
        let harm = self.harm(&output.stdout, &output.stderr);
        (output.stdout, harm)
    }

    fn while_that_goes_on<T>(&self, attack: &Attack, run: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            if let Some(meanwhile) = attack.meanwhile {
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Ordering::SeqCst) {
                        meanwhile(self);
                    }
                });
            }
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            is_over.store(true, Ordering::SeqCst);
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Signs of harm that are visible outside.
    fn harm(&self, stdout: &[u8], stderr: &[u8]) -> Vec<String> {
        let mut harm = Vec::new();
        for output in [stdout, stderr] {
            let text = String::from_utf8_lossy(output);
            harm.extend(text.contains(&self.secret).then(|| "the secret was told".into()));
            harm.extend(text.lines().find(|line| line.contains("broke ")).map(str::to_owned));
        }
        let guarded = self.guarded_now();
        for (path, before) in &self.guarded {
            let now = guarded.get(path).map_or("gone", String::as_str);
            if now != before {
                harm.push(format!("{} was {before} and is {now}", path.display()));
            }
        }
        harm.extend(self.listeners.heard());
        harm.extend(self.shared.harm());
        let host = self.host_now();
        if host != self.host {
            harm.push(format!("the host was {} and is {host}", self.host));
        }
        harm
    }

    /// Contents, attributes and names of files that must not change.
    fn guarded_now(&self) -> BTreeMap<PathBuf, String> {
        let mut seen = BTreeMap::new();
        for folder in [
            "outside",
            "read",
            "tools",
            "work/hidden",
            "work/deep/hidden",
            "work/fixed",
            "work/outer/middle/inner",
        ] {
            let folder = self.folder.join(folder);
            let mut names = Vec::new();
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                names.push(entry.file_name());
                seen.insert(entry.path(), state_of(&entry.path()));
            }
            names.sort();
            seen.insert(folder, format!("{names:?}"));
        }
        let file = self.folder.join("work/.env");
        seen.insert(file.clone(), state_of(&file));
        seen
    }

    /// State of the host and of the attacked process that an attacker could change.
    fn host_now(&self) -> String {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let mounts = text("/proc/self/mountinfo");
        let mounts = mounts.lines().filter(|line| line.contains(self.folder.to_str().unwrap())).count();
        let planted = PLANTED.iter().filter(|path| Path::new(path).exists()).count();
        format!(
            "{} {} {} {} mounts={mounts} planted={planted} target={}",
            text("/proc/sys/kernel/hostname"),
            text("/proc/sys/kernel/core_pattern"),
            text("/proc/sys/kernel/pid_max"),
            text("/proc/swaps").lines().count(),
            life_of(self.target)
        )
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(decoy) = &mut self.decoy {
            let _ = decoy.kill();
            let _ = decoy.wait();
        }
    }
}

/// Content, mode, link count and change time of a file, as one text.
fn state_of(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let Ok(about) = fs::symlink_metadata(path) else { return "gone".into() };
    let content = if about.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
    let sum = content.iter().fold(17_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    format!("{sum:x} {:o} {} {}.{}", about.mode(), about.nlink(), about.ctime(), about.ctime_nsec())
}

/// Small programs to attack: one to overwrite, and as root two that would grant privileges.
fn place_tools(folder: &Path) {
    fs::create_dir(folder).unwrap();
    for (name, mode) in [("tool", 0o755), ("set-group", 0o2755), ("with-rights", 0o755)] {
        let tool = folder.join(name);
        fs::copy("/usr/bin/cat", &tool).unwrap();
        if crate::driver::is_root() && name == "set-group" {
            std::os::unix::fs::chown(&tool, Some(0), Some(STRANGE_GROUP)).unwrap();
        }
        fs::set_permissions(&tool, fs::Permissions::from_mode(mode)).unwrap();
        if crate::driver::is_root() && name == "with-rights" {
            // Version 2, effective: the capability to read and search everything.
            let rights: [u32; 5] = [0x0200_0001, 1 << 2, 0, 0, 0];
            let rights: Vec<u8> = rights.iter().flat_map(|word| word.to_le_bytes()).collect();
            rustix::fs::setxattr(&tool, "security.capability", &rights, rustix::fs::XattrFlags::empty())
                .unwrap();
        }
    }
}

fn in_hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn start_decoy(secret: &str) -> (i32, usize, Option<Child>) {
    let mut decoy = Command::new(program());
    decoy.args([INSIDE, DECOY]).env(SECRET, secret).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut decoy = decoy.spawn().unwrap();
    let mut line = String::new();
    let mut said = std::io::BufReader::new(decoy.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    (decoy.id().cast_signed(), line.trim().parse().unwrap(), Some(decoy))
}

/// Holds a secret in its memory and environment, and waits.
pub fn be_a_decoy() -> ExitCode {
    let secret = std::env::var(SECRET).unwrap();
    println!("{}", secret.as_ptr().expose_provenance());
    thread::sleep(Duration::from_mins(2));
    drop(secret);
    ExitCode::SUCCESS
}

async fn other_proxy() -> (toolgate_sandbox::Running, toolgate_sandbox::ProxySockets) {
    let mut order = jail(Tier::Namespaces, "/bin/sleep", &["60"]);
    order.network = Network::Proxied { http_port: OTHER_PROXY };
    let mut running = spawn(order).await.unwrap();
    let sockets = running.take_sockets().unwrap();
    (running, sockets)
}

/// An address of this host other than loopback, if there is one. Nothing is sent.
fn host_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let address = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    address.map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip())
}

/// The jailers of this process.
fn jailers() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let all: Vec<String> =
        children.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let is_jailer = |id: &String| {
        fs::read_to_string(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| line.starts_with(toolgate_sandbox::JAILER_NAME))
    };
    all.into_iter().filter(is_jailer).collect()
}

/// Number of processes with this role.
fn left_of(role: &str) -> usize {
    let start = format!("{}\0{INSIDE}\0{role}\0", program().display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(start.as_bytes())).count()
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

impl Inside {
    pub fn from_environment() -> Self {
        let text = |name: &str| std::env::var(format!("STAGE_{name}")).unwrap_or_default();
        let handle = text("HANDLE");
        let digits = |at: usize| u8::from_str_radix(&handle[at..at + 2], 16).unwrap();
        Self {
            folder: text("FOLDER").into(),
            gateway: text("GATEWAY").parse().unwrap_or(i32::MAX),
            secret_at: text("SECRET_AT").parse().unwrap_or(0),
            host: text("HOST").parse().unwrap_or(IpAddr::from([127, 0, 0, 1])),
            tcp: text("TCP").parse().unwrap_or(0),
            udp: text("UDP").parse().unwrap_or(0),
            other_proxy: text("OTHER_PROXY").parse().unwrap_or(0),
            abstract_name: text("ABSTRACT"),
            terminal: text("TERMINAL").into(),
            handle: (0..handle.len()).step_by(2).map(digits).collect(),
            key: text("KEY").parse().unwrap_or(0),
            has_own_processes: std::os::unix::process::parent_id() <= 1,
        }
    }
}

pub const DECOY: &str = "decoy";
/// An extended attribute of a file that is not granted.
pub const ATTRIBUTE: &str = "user.toolgate";
pub const STRANGE_GROUP: u32 = 54_321;
/// Paths at which attackers try to create files in the host's directories.
pub const PLANTED: [&str; 6] = [
    "/usr/toolgate-planted",
    "/usr/bin/toolgate-planted",
    "/etc/toolgate-planted",
    "/lib/toolgate-planted",
    "/var/toolgate-planted",
    "/toolgate-planted",
];
const SECRET: &str = "TOOLGATE_TEST_SECRET";
const OWN_PROXY: u16 = 3128;
const OTHER_PROXY: u16 = 3129;
