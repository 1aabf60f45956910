//! The runtimes of the cases: a Podman with separate storage, and a separate Docker daemon.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use toolgate_sandbox::{Runtime, RuntimeKind, RuntimeProgram};

/// A runtime that works here, with the images of the cases.
pub struct Engine {
    pub runtime: Runtime,
    /// The client and its global options.
    pub client: PathBuf,
    pub options: Vec<String>,
    folder: PathBuf,
    daemon: Option<Daemon>,
}

impl Engine {
    pub fn find(kind: RuntimeKind, try_out: &dyn Fn(&Runtime) -> Result<(), String>) -> Result<Self, String> {
        if !Path::new(BUSYBOX).exists() {
            return Err(format!("there is no `{BUSYBOX}`"));
        }
        let folder = tempfile::Builder::new().prefix("toolgate-containers-").tempdir().unwrap().keep();
        let found = match kind {
            RuntimeKind::Podman => Self::podman(&folder, try_out),
            RuntimeKind::Docker => Self::docker(&folder, try_out),
        };
        if found.is_err() {
            let _ = fs::remove_dir_all(&folder);
        }
        found
    }

    /// With a low-level runtime that works on this kernel.
    fn podman(folder: &Path, try_out: &dyn Fn(&Runtime) -> Result<(), String>) -> Result<Self, String> {
        let client = PathBuf::from("/usr/bin/podman");
        if !client.exists() {
            return Err(format!("there is no `{}`", client.display()));
        }
        let tar = image(folder);
        let mut reasons = Vec::new();
        for low_level in ["crun", "runc"] {
            let options = options_of_podman(&folder.join(low_level), low_level);
            let made = make(RuntimeKind::Podman, &client, &options, &tar);
            match made.and_then(|runtime| try_out(&runtime).map(|()| runtime)) {
                Ok(runtime) => {
                    return Ok(Self { runtime, client, options, folder: folder.to_owned(), daemon: None });
                }
                Err(why) => {
                    reasons.push(format!("{low_level}: {why}"));
                    let _ = ask(&client, &options, &["rm", "--all", "--force", "--time=0"]);
                }
            }
        }
        Err(format!("Podman does not run here ({})", reasons.join("; ")))
    }

    fn docker(folder: &Path, try_out: &dyn Fn(&Runtime) -> Result<(), String>) -> Result<Self, String> {
        let client = Path::new(DOCKER).join("usr/bin/docker");
        let (daemon, socket) = Daemon::start(folder)?;
        // The user's configuration could name another daemon.
        let config = folder.join("config").display().to_string();
        let options = vec![format!("--config={config}"), format!("--host=unix://{}", socket.display())];
        let answers = || ask(&client, &options, &["version"]).is_ok_and(|answer| answer.status.success());
        let patience = Instant::now() + Duration::from_mins(1);
        while !answers() {
            if Instant::now() > patience {
                return Err(format!("Docker does not run here: {}", daemon.last_words()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let runtime = make(RuntimeKind::Docker, &client, &options, &image(folder))?;
        try_out(&runtime).map_err(|why| format!("Docker does not run here ({why})"))?;
        Ok(Self { runtime, client, options, folder: folder.to_owned(), daemon: Some(daemon) })
    }

    /// Runs the client itself, with the same storage.
    #[track_caller]
    pub fn ask(&self, arguments: &[&str]) -> String {
        let output = ask(&self.client, &self.options, arguments).unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn clear_away(&self) {
        let all = self.ask(&["ps", "--all", "--quiet"]);
        for id in all.lines() {
            self.ask(&["rm", "--force", id]);
        }
        if let Some(daemon) = &self.daemon {
            daemon.end();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Lets an ordinary user use Docker's daemon, like members of its group. Returns the client for it.
    pub fn open_to(&self, user: u32) -> PathBuf {
        std::os::unix::fs::chown(self.folder.join(SOCKET), Some(user), Some(user)).unwrap();
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755)).unwrap();
        let client = self.folder.join("docker");
        fs::copy(&self.client, &client).unwrap();
        client
    }
}

/// A Docker daemon that nothing else uses.
struct Daemon {
    folder: PathBuf,
    process: Child,
}

impl Daemon {
    fn start(folder: &Path) -> Result<(Self, PathBuf), String> {
        let programs = ["usr/sbin", "usr/bin"].map(|name| Path::new(DOCKER).join(name));
        let daemon = programs[0].join("dockerd");
        if !daemon.exists() {
            return Err(format!("there is no `{}`", daemon.display()));
        }
        let at = |name: &str| folder.join(name).display().to_string();
        fs::write(at("daemon.json"), "{}").unwrap();
        let path = env::join_paths(programs.iter().chain(&SYSTEM.map(PathBuf::from))).unwrap();
        let mut command = Command::new("setpriv");
        // It ends with this test, however that ends.
        command.args(["--pdeathsig", "TERM", "--"]).arg(daemon);
        for (option, name) in [
            ("host", &format!("unix://{}", at(SOCKET))),
            ("data-root", &at("data")),
            ("exec-root", &at("exec")),
            ("pidfile", &at("pid")),
            ("config-file", &at("daemon.json")),
        ] {
            command.arg(format!("--{option}={name}"));
        }
        command.args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]);
        command.args(["--storage-driver=vfs", "--exec-opt=native.cgroupdriver=cgroupfs"]);
        let log = fs::File::create(at("log")).unwrap();
        command.env_clear().env("PATH", path).env("HOME", folder).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.stderr(log).spawn().map_err(|error| format!("`setpriv`: {error}"))?;
        Ok((Self { folder: folder.to_owned(), process }, folder.join(SOCKET)))
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        log.lines().last().unwrap_or_default().to_owned()
    }

    /// Asked to end, because it must end its own containerd.
    fn end(&self) {
        let pid = Pid::from_raw(self.process.id().cast_signed()).unwrap();
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        let patience = Instant::now() + Duration::from_secs(20);
        while self.folder.join("pid").exists() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
        let _ = self.process.wait();
    }
}

fn options_of_podman(folder: &Path, low_level: &str) -> Vec<String> {
    let (root, run) = (folder.join("root"), folder.join("run"));
    let (root, run) = (root.to_string_lossy(), run.to_string_lossy());
    let words = ["--root", &root, "--runroot", &run, "--runtime", low_level];
    let fixed = ["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none"];
    words.iter().chain(&fixed).map(ToString::to_string).collect()
}

fn ask(client: &Path, options: &[String], arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(client).args(options).args(arguments).output()
}

fn make(kind: RuntimeKind, client: &Path, options: &[String], tar: &Path) -> Result<Runtime, String> {
    let program = RuntimeProgram { kind, path: client.to_owned(), options: options.to_vec() };
    let runtime = Runtime::ask(program).map_err(|error| error.to_string())?;
    let tar = tar.to_string_lossy();
    let odd: Vec<&str> = ODD.iter().flat_map(|change| ["--change", change]).collect();
    let with_volume: Vec<&str> = [odd.as_slice(), &["--change", "VOLUME /data"]].concat();
    let images = [(&[][..], IMAGE), (odd.as_slice(), ODD_IMAGE), (with_volume.as_slice(), VOLUME_IMAGE)];
    for (changes, name) in images {
        let words = [&["import"], changes, &[&tar, name]].concat();
        let import = ask(client, options, &words).map_err(|error| error.to_string())?;
        if !import.status.success() {
            let said = String::from_utf8_lossy(&import.stderr);
            return Err(said.lines().last().unwrap_or_default().to_owned());
        }
    }
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
    // Containers of an ordinary user know no other owner.
    let owner: [OsString; 4] = ["--owner=0", "--group=0", "--numeric-owner", "-C"].map(OsString::from);
    let made = tar_up.args(owner).arg(&root).arg("-cf").arg(&tar).arg(".").status().unwrap();
    assert!(made.success());
    tar
}

pub const IMAGE: &str = "localhost/toolgate-test:1";
/// With an entry point and variables.
pub const ODD_IMAGE: &str = "localhost/toolgate-odd:1";
/// And with a volume.
pub const VOLUME_IMAGE: &str = "localhost/toolgate-volume:1";

const ODD: [&str; 5] = [
    "ENTRYPOINT [\"/bin/false\"]",
    "ENV FROM_IMAGE=yes",
    "ENV http_proxy=http://192.0.2.1:8080",
    "ENV NO_PROXY=*",
    "CMD [\"/bin/false\"]",
];

/// Path at which `scripts/setup-podman` puts Docker without installing it.
const DOCKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/docker");
const SOCKET: &str = "docker.sock";
const SYSTEM: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

const BUSYBOX: &str = "/bin/busybox";
const PROGRAMS: [&str; 29] = [
    "cat", "chmod", "cp", "dd", "echo", "env", "false", "grep", "head", "id", "kill", "ln", "ls", "mkdir",
    "mount", "mv", "pwd", "rm", "sh", "sleep", "touch", "true", "wc", "hostname", "nc", "nslookup", "ping",
    "sort", "wget",
];
