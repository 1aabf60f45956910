//! The unjailed side: starts jailed processes, reads their reports, and determines their cause of death.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream, process::CommandExt},
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use toolgate_sandbox::{Death, JailKind, LayerSet, describe_exit, probe};

/// One test.
pub struct Case {
    pub name: String,
    pub body: Box<dyn Fn()>,
}

/// Who starts the worker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Starter {
    /// The user who runs the tests.
    Caller,
    /// An ordinary user; only root can start as one.
    Ordinary,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Inside {
    NewNamespaces,
    OurNamespaces,
}

pub fn run(cases: &[Case], filter: &str) -> ExitCode {
    let chosen: Vec<&Case> = cases.iter().filter(|case| case.name.contains(filter)).collect();
    println!("running {} tests", chosen.len());
    let mut failed = Vec::new();
    for case in &chosen {
        let passed = panic::catch_unwind(AssertUnwindSafe(|| (case.body)())).is_ok();
        println!("test {} ... {}", case.name, if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(case.name.as_str());
        }
    }
    println!("\n{} passed, {} failed", chosen.len() - failed.len(), failed.len());
    for name in &failed {
        println!("    {name}");
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

pub fn list(cases: &[Case]) -> ExitCode {
    for case in cases {
        println!("{}: test", case.name);
    }
    ExitCode::SUCCESS
}

/// A jailed process and the gateway's end of its socket.
pub struct Jailed {
    process: Child,
    socket: BufReader<UnixStream>,
}

impl Jailed {
    pub fn start(role: &str, starter: Starter, inside: Inside) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = command(starter);
        command.args([JAILED, role, inside.word()]);
        command.stdin(std::os::fd::OwnedFd::from(theirs));
        let process = command.spawn().unwrap();
        Self { process, socket: BufReader::new(ours) }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line of its report; empty at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(_) => line.trim_end().to_owned(),
            Err(error) => panic!("it neither speaks nor dies: {error}"),
        }
    }

    /// The first line, which every sealed process sends.
    pub fn strength(&mut self) -> LayerSet {
        let line = self.line();
        let bits = line.strip_prefix("sealed ").unwrap_or_else(|| panic!("not sealed: `{line}`"));
        LayerSet::from_bits(JailKind::Worker, bits.parse().unwrap()).unwrap()
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).unwrap();
    }

    pub fn receive(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.socket.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub fn signal(&self, signal: i32) {
        let id = i32::try_from(self.id()).unwrap();
        let signal = rustix::process::Signal::from_named_raw(signal).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// The cause of its death; a process that does not die is killed and fails the test.
    pub fn death(&mut self) -> Death {
        let started = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return describe_exit(status);
            }
            assert!(started.elapsed() < PATIENCE, "it does not die");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// A file of its `/proc` directory.
    pub fn about(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.id()))
    }

    pub fn status_line(&self, name: &str) -> String {
        let status = fs::read_to_string(self.about("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no line `{name}`")).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Jailed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Inside {
    pub fn word(self) -> &'static str {
        match self {
            Self::NewNamespaces => "enter",
            Self::OurNamespaces => "skip",
        }
    }
}

/// This program, to be started again by `starter`.
pub fn command(starter: Starter) -> Command {
    let mut command = Command::new(program());
    command.env_clear().stdout(Stdio::null()).stderr(Stdio::null());
    if starter == Starter::Ordinary {
        command.uid(ORDINARY_USER).gid(ORDINARY_USER);
    }
    command
}

/// A copy that an ordinary user can reach: build directories are often private.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join("jail");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, program)
    });
    program
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A process between us and a worker: creates the socket itself, or passes on the one it was given.
pub fn be_a_parent(socket: &str, role: &str, namespaces: &str) -> ExitCode {
    let mut worker = Command::new(std::env::current_exe().unwrap());
    worker.args([JAILED, role, namespaces]).stdout(Stdio::null()).stderr(Stdio::null());
    if socket == OF_ANOTHER {
        worker.stdin(Stdio::inherit()).spawn().unwrap().wait().unwrap();
        return ExitCode::SUCCESS;
    }
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut process = worker.stdin(std::os::fd::OwnedFd::from(theirs)).spawn().unwrap();
    // `command` keeps the other end open, and with it the connection.
    drop(worker);
    let mut line = String::new();
    BufReader::new(ours).read_line(&mut line).unwrap();
    println!("{} {}", process.id(), line.trim_end());
    process.wait().unwrap();
    ExitCode::SUCCESS
}

/// Prints the probe's result under a filter that denies new namespaces, as many containers do.
pub fn probe_without_unshare() -> ExitCode {
    let calls = BTreeMap::from([(libc::SYS_unshare, Vec::new())]);
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let machine = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, machine).unwrap();
    seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
    for row in probe().rows {
        println!("{}: {:?}, {}", row.name, row.state, row.why);
    }
    ExitCode::SUCCESS
}

pub const JAILED: &str = "--jailed";
pub const PROBE: &str = "--probe";
pub const PARENT: &str = "--parent";
pub const OF_ANOTHER: &str = "of-another";
pub const OF_ITS_OWN: &str = "of-its-own";
/// Timeout against hanging; nothing is measured with it.
pub const PATIENCE: Duration = Duration::from_secs(30);
const ORDINARY_USER: u32 = 12_345;
