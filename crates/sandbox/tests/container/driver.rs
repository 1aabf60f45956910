//! Finds a runtime that works here, or fails; runs cases with it, reports failures.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    panic::{self, AssertUnwindSafe},
    path::Path,
    process::{Child, Command, ExitCode},
    sync::OnceLock,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use toolgate_sandbox::{
    Access, Bind, ContainerJail, ContainerLimits, ContainerReport, ContainerUser, Ending, ImageName, Layer,
    LayerSet, Network, OutputCaps, Runtime, RuntimeKind, RuntimeProgram, Source, SpawnError, View,
};

pub use crate::engines::{Engine, IMAGE, ODD_IMAGE};

/// One test.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub body: fn(),
}

/// The runtime that this process tests.
pub fn kind() -> RuntimeKind {
    if env::var_os(DOCKER_IS_TRIED).is_some() { RuntimeKind::Docker } else { RuntimeKind::Podman }
}

/// Runs the cases with Podman in this process, then with Docker in another one.
pub fn run_with_both(cases: &[Case], filter: &str) -> ExitCode {
    if kind() == RuntimeKind::Docker {
        return run(cases, filter);
    }
    let of_podman = run(cases, filter);
    let mut again = Command::new(env::current_exe().unwrap());
    let of_docker = again.args(env::args_os().skip(1)).env(DOCKER_IS_TRIED, "1").status().unwrap();
    if of_docker.success() { of_podman } else { ExitCode::FAILURE }
}

fn run(cases: &[Case], filter: &str) -> ExitCode {
    let chosen: Vec<&Case> = cases.iter().filter(|case| case.name.contains(filter)).collect();
    let (count, name) = (chosen.len(), kind().name());
    if env::var_os(LEAVE_OUT).is_some_and(|value| value == "1") {
        println!("LEFT OUT: {count} cases of containers with {name} ({LEAVE_OUT}=1)");
        return ExitCode::SUCCESS;
    }
    if kind() == RuntimeKind::Docker && !rustix::process::geteuid().is_root() {
        println!("LEFT OUT: {count} cases of containers with docker, whose daemon only root can start");
        return ExitCode::SUCCESS;
    }
    if let Err(why) = engine() {
        println!(
            "FAILED: {count} cases of containers with {name}, for {why}; `scripts/setup-podman` helps, and {LEAVE_OUT}=1 leaves them out"
        );
        return ExitCode::FAILURE;
    }
    println!("running {} tests", chosen.len());
    let mut failed = Vec::new();
    for case in &chosen {
        let passed = panic::catch_unwind(AssertUnwindSafe(case.body)).is_ok();
        println!("test {name}::{} ... {}", case.name, if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(case.name);
        }
    }
    let left = leave();
    println!("\n{} passed, {} failed, containers left: {left:?}", chosen.len() - failed.len(), failed.len());
    if failed.is_empty() && left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

pub fn list(cases: &[Case]) -> ExitCode {
    for case in cases {
        println!("{}: test", case.name);
    }
    ExitCode::SUCCESS
}

/// A container in which a shell runs this script, with nothing granted.
pub fn jail(script: &str) -> ContainerJail {
    jail_of(&["/bin/sh", "-c", script])
}

pub fn jail_of(argv: &[&str]) -> ContainerJail {
    ContainerJail {
        image: ImageName::parse(IMAGE).unwrap(),
        argv: argv.iter().map(OsString::from).collect(),
        env: Vec::new(),
        cwd: "/".into(),
        user: ContainerUser { uid: USER, gid: USER },
        view: View { binds: Vec::new(), hidden: Vec::new(), hidden_large: Vec::new(), tmp_bytes: 1 << 20 },
        network: Network::None,
        limits: ContainerLimits {
            memory_bytes: 64 << 20,
            millicpus: 1000,
            processes: 32,
            open_files: 64,
            file_bytes: 8 << 20,
        },
        required: LayerSet::NONE,
        deadline: PATIENCE,
    }
}

pub fn bind(source: &Path, at: &str, access: Access) -> Bind {
    Bind { source: Source::Path(source.to_owned()), at: at.into(), access }
}

/// Shows this program, and its shared libraries, as `/attacker`.
pub fn with_attacker(mut jail: ContainerJail) -> ContainerJail {
    jail.view.binds.push(bind(&env::current_exe().unwrap(), "/attacker", Access::Execute));
    for place in ["/lib", "/lib64", "/usr/lib"].into_iter().filter(|place| Path::new(place).exists()) {
        jail.view.binds.push(bind(Path::new(place), place, Access::Execute));
    }
    jail
}

#[track_caller]
pub fn finish(jail: ContainerJail) -> ContainerReport {
    finish_with(jail, b"", CAPS)
}

#[track_caller]
pub fn finish_with(jail: ContainerJail, stdin: &[u8], caps: OutputCaps) -> ContainerReport {
    on_runtime(async {
        let container = runtime().spawn(jail).await.unwrap_or_else(|error| panic!("{error}"));
        container.finish(stdin.to_vec(), caps).await
    })
}

/// The output of a script that succeeds.
#[track_caller]
pub fn output(jail: ContainerJail) -> String {
    let report = finish(jail);
    let (out, err) = (String::from_utf8_lossy(&report.stdout), String::from_utf8_lossy(&report.stderr));
    assert_eq!(report.ending, Ending::Exited(0), "{out}\n{err}");
    out.into_owned()
}

#[track_caller]
pub fn refusal(jail: ContainerJail) -> SpawnError {
    on_runtime(async {
        match runtime().spawn(jail).await {
            Ok(_) => panic!("it was made"),
            Err(error) => error,
        }
    })
}

pub fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

pub fn runtime() -> &'static Runtime {
    &engine().as_ref().unwrap().runtime
}

/// A directory that the container's user may write and everyone may read.
pub fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("toolgate-container-").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// This program as another gateway with the same storage.
pub fn another_gateway(folder: &Path) -> Child {
    let engine = engine().as_ref().unwrap();
    let mut gateway = Command::new(env::current_exe().unwrap());
    gateway.arg(GATEWAY).arg(folder).arg(&engine.client).args(&engine.options).spawn().unwrap()
}

/// This program on a machine without the runtime: whether it succeeds, and its output.
pub fn without_a_runtime(is_chosen: bool) -> (bool, String) {
    let mut again = Command::new(env::current_exe().unwrap());
    again.arg(WITHOUT_A_RUNTIME).env_remove(LEAVE_OUT);
    if is_chosen {
        again.env(LEAVE_OUT, "1");
    }
    let output = again.output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

/// The runtime of a gateway that was given this client and these options.
pub fn runtime_with(client: &str, options: &[&str]) -> Runtime {
    let options = options.iter().map(ToString::to_string).collect();
    Runtime::ask(RuntimeProgram { kind: kind(), path: client.into(), options }).unwrap()
}

/// The same runtime behind a script in this directory, in which `CLIENT` is its client. A shell runs it, because a
/// file that was just written cannot always be executed at once.
pub fn runtime_through(folder: &Path, script: &str) -> Runtime {
    let engine = engine().as_ref().unwrap();
    let path = folder.join("runtime");
    fs::write(&path, script.replace("CLIENT", &engine.client.display().to_string())).unwrap();
    let own = engine.options.iter().map(ToString::to_string);
    let options = std::iter::once(path.display().to_string()).chain(own).collect();
    Runtime::ask(RuntimeProgram { kind: kind(), path: "/bin/sh".into(), options }).unwrap()
}

/// Runs the client itself, with the same storage.
#[track_caller]
pub fn ask(arguments: &[&str]) -> String {
    engine().as_ref().unwrap().ask(arguments)
}

/// This program as a gateway of an ordinary user who may use the daemon.
pub fn gateway_of(user: u32, word: &str, folder: &Path) -> Command {
    let engine = engine().as_ref().unwrap();
    // The original file may be in a directory that this user cannot enter.
    let mut gateway = Command::new("/proc/self/exe");
    gateway.arg(word).arg(folder).arg(engine.open_to(user)).args(&engine.options).uid(user).gid(user);
    gateway
}

/// Waits until a condition holds; fails after a long time.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < patience, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Processes of the host with this word in their command line, except clients of the runtime.
pub fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.unwrap().path().join("cmdline")).ok());
    let lines = entries.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    lines
        .filter(|line| line.contains(word) && !["podman", "docker"].iter().any(|name| line.contains(name)))
        .collect()
}

pub fn is_empty_of_containers() -> bool {
    ask(&["ps", "--all", "--quiet"]).is_empty()
}

fn wait_for_no_containers() -> String {
    let patience = Instant::now() + PATIENCE;
    while !is_empty_of_containers() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(50));
    }
    ask(&["ps", "--all"]).lines().skip(1).collect::<Vec<_>>().join("; ")
}

/// Removes everything created for the runtime; waits for containers that are ending.
pub fn leave() -> String {
    let Some(Ok(engine)) = ENGINE.get() else { return String::new() };
    let left = wait_for_no_containers();
    engine.clear_away();
    left
}

static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();

fn engine() -> &'static Result<Engine, String> {
    ENGINE.get_or_init(|| {
        if env::args().any(|word| word == WITHOUT_A_RUNTIME) {
            return Err("it was told to find none".to_owned());
        }
        Engine::find(kind(), &|runtime| {
            on_runtime(async { runtime.spawn(jail_of(&["/bin/true"])).await.map(drop) })
                .map_err(|error| error.to_string())
        })
    })
}

pub const CAPS: OutputCaps = OutputCaps { stdout: 1 << 20, stderr: 1 << 16 };

/// Timeout against hanging, nothing else.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Makes this program another gateway.
pub const GATEWAY: &str = "--be-a-gateway";

/// Makes this program find no runtime.
const WITHOUT_A_RUNTIME: &str = "--without-a-runtime";

/// Makes this program test Docker.
const DOCKER_IS_TRIED: &str = "TOOLGATE_TESTS_OF_DOCKER";

/// Set on machines that cannot run containers.
const LEAVE_OUT: &str = "TOOLGATE_TESTS_NO_CONTAINERS";

/// Unused on most machines, so the host's own processes are not counted.
pub const USER: u32 = 61_234;

/// The layers that a host with control groups must provide. Docker cannot forbid executing programs in binds.
pub fn expected() -> Vec<Layer> {
    let own: &[Layer] = if kind() == RuntimeKind::Podman { &[Layer::NoExecution] } else { &[] };
    [&EXPECTED, own].concat()
}

const EXPECTED: [Layer; 14] = [
    Layer::NetworkNone,
    Layer::ReadOnlyRoot,
    Layer::NoCapabilities,
    Layer::NoNewPrivileges,
    Layer::RuntimeSeccomp,
    Layer::PidNamespace,
    Layer::IpcNamespace,
    Layer::UtsNamespace,
    Layer::UnprivilegedUser,
    Layer::Limits,
    Layer::MemoryLimit,
    Layer::ProcessLimit,
    Layer::CpuLimit,
    Layer::SameFiles,
];
