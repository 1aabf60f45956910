//! Finds a Podman that runs here, or fails; makes an image for it, runs cases, says what failed.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode},
    sync::OnceLock,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use toolgate_sandbox::{
    Access, Bind, ContainerJail, ContainerLimits, ContainerReport, ContainerUser, ContainerWall, Ending,
    ImageName, Network, OutputCaps, Runtime, RuntimeKind, RuntimeProgram, Source, SpawnError, View,
};

/// One test.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub body: fn(),
}

pub fn run(cases: &[Case], filter: &str) -> ExitCode {
    let chosen: Vec<&Case> = cases.iter().filter(|case| case.name.contains(filter)).collect();
    if env::var_os(LEAVE_OUT).is_some_and(|value| value == "1") {
        println!("LEFT OUT: {} cases of containers ({LEAVE_OUT}=1)", chosen.len());
        return ExitCode::SUCCESS;
    }
    if let Err(why) = host() {
        println!(
            "FAILED: {} cases of containers, for {why}; `scripts/setup-podman` helps, and {LEAVE_OUT}=1 leaves them out",
            chosen.len()
        );
        return ExitCode::FAILURE;
    }
    println!("running {} tests", chosen.len());
    let mut failed = Vec::new();
    for case in &chosen {
        let passed = panic::catch_unwind(AssertUnwindSafe(case.body)).is_ok();
        println!("test {} ... {}", case.name, if passed { "ok" } else { "FAILED" });
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
        required: &[],
        deadline: PATIENCE,
    }
}

pub fn bind(source: &Path, at: &str, access: Access) -> Bind {
    Bind { source: Source::Path(source.to_owned()), at: at.into(), access }
}

/// Shows this program, and what it is linked to, as `/attacker`.
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

/// The output of a script that ends well.
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
    &host().as_ref().unwrap().runtime
}

/// A folder that the container's user may write to, and that everybody may read.
pub fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("toolgate-container-").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// This program as another gateway with the same storage.
pub fn another_gateway(folder: &Path) -> Child {
    let program = env::current_exe().unwrap();
    Command::new(program).arg(GATEWAY).arg(folder).args(&host().as_ref().unwrap().options).spawn().unwrap()
}

/// This program on a machine without Podman: whether it is content, and what it says.
pub fn without_podman(is_chosen: bool) -> (bool, String) {
    let mut again = Command::new(env::current_exe().unwrap());
    again.arg(WITHOUT_PODMAN).env_remove(LEAVE_OUT);
    if is_chosen {
        again.env(LEAVE_OUT, "1");
    }
    let output = again.output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

/// The runtime of a gateway that was given these options.
pub fn runtime_with(options: &[&str]) -> Runtime {
    let options = options.iter().map(ToString::to_string).collect();
    Runtime::ask(RuntimeProgram { kind: RuntimeKind::Podman, path: PODMAN.into(), options }).unwrap()
}

/// The same Podman behind a script that a shell reads: a file that was just written cannot always be run at once.
pub fn runtime_through(script: &Path) -> Runtime {
    let own = host().as_ref().unwrap().options.iter().map(ToString::to_string);
    let options = std::iter::once(script.display().to_string()).chain(own).collect();
    Runtime::ask(RuntimeProgram { kind: RuntimeKind::Podman, path: "/bin/sh".into(), options }).unwrap()
}

/// Podman itself, in the same storage.
pub fn podman(arguments: &[&str]) -> String {
    let host = host().as_ref().unwrap();
    let output = Command::new(PODMAN).args(&host.options).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Waits until something holds; fails after a long while.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < patience, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Processes of the host with this word in their command line, clients of the runtime aside.
pub fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.unwrap().path().join("cmdline")).ok());
    let lines = entries.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    lines.filter(|line| line.contains(word) && !line.contains("podman")).collect()
}

pub fn is_empty_of_containers() -> bool {
    podman(&["ps", "--all", "--quiet"]).is_empty()
}

fn wait_for_no_containers() -> String {
    let patience = Instant::now() + PATIENCE;
    while !is_empty_of_containers() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(50));
    }
    podman(&["ps", "--all"]).lines().skip(1).collect::<Vec<_>>().join("; ")
}

/// Clears away what was made for whoever asked for a runtime; waits for containers that are on their way out.
pub fn leave() -> String {
    if HOST.get().is_none_or(Result::is_err) {
        return String::new();
    }
    let left = wait_for_no_containers();
    clear_away();
    left
}

struct Host {
    runtime: Runtime,
    options: Vec<String>,
    folder: PathBuf,
}

static HOST: OnceLock<Result<Host, String>> = OnceLock::new();

fn host() -> &'static Result<Host, String> {
    HOST.get_or_init(find)
}

/// A Podman with storage of its own and a low-level runtime that works on this kernel.
fn find() -> Result<Host, String> {
    if env::args().any(|word| word == WITHOUT_PODMAN) {
        return Err("it was told to find none".to_owned());
    }
    for needed in [PODMAN, BUSYBOX] {
        if !Path::new(needed).exists() {
            return Err(format!("there is no `{needed}`"));
        }
    }
    let folder = tempfile::Builder::new().prefix("toolgate-podman-").tempdir().unwrap().keep();
    let tar = image(&folder);
    let mut reasons = Vec::new();
    for low_level in ["crun", "runc"] {
        let options = options(&folder.join(low_level), low_level);
        match try_out(&options, &tar) {
            Ok(runtime) => return Ok(Host { runtime, options, folder }),
            Err(why) => {
                reasons.push(format!("{low_level}: {why}"));
                let _ =
                    Command::new(PODMAN).args(&options).args(["rm", "--all", "--force", "--time=0"]).output();
            }
        }
    }
    let _ = fs::remove_dir_all(&folder);
    Err(format!("Podman does not run here ({})", reasons.join("; ")))
}

fn options(folder: &Path, low_level: &str) -> Vec<String> {
    let (root, run) = (folder.join("root"), folder.join("run"));
    let (root, run) = (root.to_string_lossy(), run.to_string_lossy());
    let words = ["--root", &root, "--runroot", &run, "--runtime", low_level];
    let fixed = ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"];
    words.iter().chain(&fixed).map(ToString::to_string).collect()
}

fn try_out(options: &[String], tar: &Path) -> Result<Runtime, String> {
    let program =
        RuntimeProgram { kind: RuntimeKind::Podman, path: PODMAN.into(), options: options.to_vec() };
    let runtime = Runtime::ask(program).map_err(|error| error.to_string())?;
    let tar = tar.to_string_lossy();
    let odd = [
        "VOLUME /data",
        "ENTRYPOINT [\"/bin/false\"]",
        "ENV FROM_IMAGE=yes",
        "ENV http_proxy=http://192.0.2.1:8080",
        "ENV NO_PROXY=*",
        "CMD [\"/bin/false\"]",
    ];
    let odd: Vec<&str> = odd.iter().flat_map(|change| ["--change", change]).collect();
    for (changes, name) in [(&[][..], IMAGE), (odd.as_slice(), ODD_IMAGE)] {
        let import = Command::new(PODMAN)
            .args(options)
            .args(["import", "--quiet"])
            .args(changes)
            .args([&tar, name])
            .output();
        let import = import.map_err(|error| error.to_string())?;
        if !import.status.success() {
            return Err(String::from_utf8_lossy(&import.stderr)
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned());
        }
    }
    on_runtime(async { runtime.spawn(jail_of(&["/bin/true"])).await.map(drop) })
        .map_err(|error| error.to_string())?;
    Ok(runtime)
}

/// A root file system: one program with many names, and an `init` that is a script.
fn image(folder: &Path) -> PathBuf {
    let root = folder.join("image");
    for name in ["bin", "sbin", "dev", "etc", "proc", "run", "sys", "tmp", "var/tmp", "data"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy(BUSYBOX, root.join("bin/busybox")).unwrap();
    for name in PROGRAMS {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    for name in ["tmp", "var/tmp", "run", "data"] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o1777)).unwrap();
    }
    fs::write(root.join("tmp/of-the-image"), "x").unwrap();
    fs::write(root.join("etc/resolv.conf"), "nameserver 192.0.2.53\n").unwrap();
    fs::write(root.join("sbin/init"), "#!/bin/sh\ncat /proc/mounts\n").unwrap();
    fs::set_permissions(root.join("sbin/init"), fs::Permissions::from_mode(0o755)).unwrap();
    let tar = folder.join("image.tar");
    let mut tar_up = Command::new("tar");
    // An ordinary user's containers know no other owner.
    tar_up.args(["--owner=0", "--group=0", "--numeric-owner", "-C"]).arg(&root).arg("-cf").arg(&tar).arg(".");
    let made = tar_up.status().unwrap();
    assert!(made.success());
    tar
}

fn clear_away() {
    podman(&["rm", "--all", "--force", "--time=0"]);
    let _ = fs::remove_dir_all(&host().as_ref().unwrap().folder);
}

pub const CAPS: OutputCaps = OutputCaps { stdout: 1 << 20, stderr: 1 << 16 };

/// A guard against hanging, nothing else.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Makes this program another gateway.
pub const GATEWAY: &str = "--be-a-gateway";

/// Makes this program find no Podman.
const WITHOUT_PODMAN: &str = "--without-podman";

/// Chosen by whoever has a machine that runs no containers.
const LEAVE_OUT: &str = "TOOLGATE_TESTS_NO_CONTAINERS";

pub const IMAGE: &str = "localhost/toolgate-test:1";
/// With an entry point, a volume and variables of its own.
pub const ODD_IMAGE: &str = "localhost/toolgate-odd:1";

/// Nobody's on most machines, so that the host's own processes are not counted.
pub const USER: u32 = 61_234;

/// What a host with control groups must give.
pub const EXPECTED: [ContainerWall; 15] = [
    ContainerWall::NetworkNone,
    ContainerWall::ReadOnlyRoot,
    ContainerWall::NoCapabilities,
    ContainerWall::NoNewPrivileges,
    ContainerWall::Seccomp,
    ContainerWall::PidNamespace,
    ContainerWall::IpcNamespace,
    ContainerWall::UtsNamespace,
    ContainerWall::UnprivilegedUser,
    ContainerWall::Limits,
    ContainerWall::MemoryLimit,
    ContainerWall::ProcessLimit,
    ContainerWall::CpuLimit,
    ContainerWall::NoExecution,
    ContainerWall::SameFiles,
];

const PODMAN: &str = "/usr/bin/podman";
const BUSYBOX: &str = "/bin/busybox";
const PROGRAMS: [&str; 29] = [
    "cat", "chmod", "cp", "dd", "echo", "env", "false", "grep", "head", "id", "kill", "ln", "ls", "mkdir",
    "mount", "mv", "pwd", "rm", "sh", "sleep", "touch", "true", "wc", "hostname", "nc", "nslookup", "ping",
    "sort", "wget",
];
