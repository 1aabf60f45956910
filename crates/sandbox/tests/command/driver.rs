//! The gateway's side: creates jails, runs cases in them, reports failures.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    os::unix::process::CommandExt,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{Mutex, OnceLock},
    time::Duration,
};

use toolgate_sandbox::{
    Access, Bind, Children, CommandJail, CommandLimits, CommandReport, JailKind, Jailer, LayerSet,
    Namespaces, Network, OutputCaps, Running, Source, SpawnError, Trace, View,
};

/// One test.
pub struct Case {
    pub name: String,
    pub body: Box<dyn Fn()>,
}

/// The kind of jail in which a case runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tier {
    /// Namespaces, a view, Landlock, seccomp.
    Namespaces,
    /// A host that forbids namespaces.
    Landlock,
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
    let passed = failed.is_empty() && as_ordinary_user(filter);
    FOLDERS.lock().unwrap().clear();
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

pub fn list(cases: &[Case]) -> ExitCode {
    for case in cases {
        println!("{}: test", case.name);
    }
    ExitCode::SUCCESS
}

/// As root, runs everything again as an ordinary user.
fn as_ordinary_user(filter: &str) -> bool {
    if !is_root() {
        return true;
    }
    println!("\nonce more as an ordinary user");
    let mut command = Command::new(program());
    command.env(PLACED, "1").uid(ORDINARY_USER).gid(ORDINARY_USER).arg(filter);
    command.status().unwrap().success()
}

/// A jail that grants only system programs and this program.
pub fn jail(tier: Tier, program: impl Into<PathBuf>, argv: &[&str]) -> CommandJail {
    let program = program.into();
    let name = program.as_os_str().to_owned();
    CommandJail {
        argv: std::iter::once(name).chain(argv.iter().map(OsString::from)).collect(),
        program,
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/".into(),
        view: View {
            binds: vec![bind(self::program().parent().unwrap(), Access::Execute)],
            hidden: Vec::new(),
            hidden_large: Vec::new(),
            tmp_bytes: 16 << 20,
        },
        network: Network::None,
        limits: LIMITS,
        children: Children::Allowed,
        required: required(tier),
        namespaces: namespaces(tier),
        trace: Trace::Refusals,
    }
}

/// This program in a jail, in a role of `inside.rs` or as an attack of `attacks.rs`.
pub fn inside(tier: Tier, role: &str) -> CommandJail {
    jail(tier, program(), &[INSIDE, role])
}

pub fn bind(path: &Path, access: Access) -> Bind {
    Bind { source: Source::Path(path.to_owned()), at: path.to_owned(), access }
}

fn required(tier: Tier) -> LayerSet {
    match tier {
        Tier::Namespaces => JailKind::Command.hardened(),
        Tier::Landlock => JailKind::Command.minimum(),
    }
}

fn namespaces(tier: Tier) -> Namespaces {
    match tier {
        Tier::Namespaces => Namespaces::Enter,
        Tier::Landlock => Namespaces::DangerouslySkip,
    }
}

/// Runs a command to its end.
#[track_caller]
pub fn finish(jail: CommandJail) -> CommandReport {
    finish_with(jail, b"", CAPS, PATIENCE)
}

#[track_caller]
pub fn finish_with(jail: CommandJail, stdin: &[u8], caps: OutputCaps, deadline: Duration) -> CommandReport {
    on_runtime(async {
        let running = spawn(jail).await.unwrap_or_else(|error| panic!("{error}"));
        running.finish(stdin.to_vec(), caps, deadline).await
    })
}

pub fn refusal(jail: CommandJail) -> SpawnError {
    on_runtime(async {
        match spawn(jail).await {
            Ok(_) => panic!("it started"),
            Err(error) => error,
        }
    })
}

/// In a prepared jail, like most calls of a gateway.
pub async fn spawn(jail: CommandJail) -> Result<Running, SpawnError> {
    jailer().prepare(&jail).unwrap();
    jailer().spawn(jail).await
}

pub fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

pub fn jailer() -> &'static Jailer {
    static JAILER: OnceLock<Jailer> = OnceLock::new();
    JAILER.get_or_init(|| Jailer::start(program()).unwrap())
}

/// A copy that an ordinary user can reach: build directories are often private.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let here = std::env::current_exe().unwrap();
        if std::env::var_os(PLACED).is_some() {
            return here;
        }
        let folder = folder();
        let program = folder.join("command");
        fs::copy(here, &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    })
}

/// A new directory that everyone may enter; removed at the end.
pub fn folder() -> PathBuf {
    let folder = tempfile::Builder::new().prefix("toolgate-command-").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().to_owned();
    FOLDERS.lock().unwrap().push(folder);
    path
}

static FOLDERS: Mutex<Vec<tempfile::TempDir>> = Mutex::new(Vec::new());

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub const INSIDE: &str = "--inside";
pub const GATEWAY: &str = "--gateway";
pub const MOUNTER: &str = "--mounter";
pub const HIDER: &str = "--hider";
pub const HANGER: &str = "--hanger";
pub const CHANGER: &str = "--changer";
/// Timeout against hanging; nothing is measured with it.
pub const PATIENCE: Duration = Duration::from_mins(1);
pub const CAPS: OutputCaps = OutputCaps { stdout: 1 << 20, stderr: 1 << 16 };
pub const LIMITS: CommandLimits = CommandLimits {
    memory_bytes: 256 << 20,
    cpu_seconds: 30,
    processes: 64,
    open_files: 256,
    file_bytes: 32 << 20,
};
/// Tells a child that it already is the reachable copy.
pub const PLACED: &str = "TOOLGATE_TEST_PLACED";
pub const ORDINARY_USER: u32 = 12_345;
