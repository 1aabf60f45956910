//! Detects Docker or Podman and what they can enforce.

use std::{fmt, path::PathBuf, time::Duration};

use rustix::process::Resource;
use serde::Deserialize;

use super::client;
use crate::{HostRow, HostState};

/// Looks for Podman, then for Docker, in system directories only, because `PATH` is not trusted.
pub fn probe_runtime() -> Result<Runtime, NoRuntime> {
    let mut reasons = Vec::new();
    for kind in [RuntimeKind::Podman, RuntimeKind::Docker] {
        let Some(path) = installed(kind) else {
            reasons.push(format!("no `{}` in {}", kind.name(), DIRS.join(", ")));
            continue;
        };
        match Runtime::ask(RuntimeProgram { kind, path, options: Vec::new() }) {
            Ok(runtime) => return Ok(runtime),
            Err(NoRuntime(why)) => reasons.push(why),
        }
    }
    Err(NoRuntime(reasons.join("; ")))
}

/// Path of the runtime's program, whether it works or not.
fn installed(kind: RuntimeKind) -> Option<PathBuf> {
    DIRS.iter().map(|dir| PathBuf::from(dir).join(kind.name())).find(|path| path.is_file())
}

/// The row for `toolgate doctor`.
pub fn container_row(found: &Result<Runtime, NoRuntime>) -> HostRow {
    let row = |state, why, remedy| HostRow { name: "container runtime", state, why, remedy };
    match found {
        Ok(runtime) if runtime.offers.seccomp == Offer::Missing => {
            row(HostState::Missing, format!("{runtime} does not filter system calls"), FILTER_REMEDY)
        }
        Ok(runtime) => {
            let lacking = runtime.offers.lacking();
            match lacking.as_slice() {
                [] => row(HostState::Enforced, format!("{runtime}"), ""),
                some => row(
                    HostState::Partly,
                    format!("{runtime}; cannot limit {}", some.join(", ")),
                    LIMITS_REMEDY,
                ),
            }
        }
        Err(NoRuntime(why)) => row(HostState::Missing, why.clone(), INSTALL_REMEDY),
    }
}

/// A working runtime.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub(super) program: RuntimeProgram,
    pub(super) version: Version,
    pub(super) offers: Offers,
    /// Highest process limit for a user that the runtime can grant.
    pub(super) ceiling: u64,
}

/// The program to run, and its global options, such as `--root` with an image directory.
#[derive(Clone, Debug)]
pub struct RuntimeProgram {
    pub kind: RuntimeKind,
    pub path: PathBuf,
    /// From the operator, never from a tool.
    pub options: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RuntimeKind {
    Docker,
    Podman,
}

/// Why no runtime is available.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NoRuntime(pub(super) String);

/// Features that the runtime can use on this host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Offers {
    pub(super) memory: Offer,
    pub(super) cpu: Offer,
    pub(super) processes: Offer,
    pub(super) seccomp: Offer,
    pub(super) owner: RuntimeOwner,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Offer {
    There,
    Missing,
}

/// The user that runs the runtime.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RuntimeOwner {
    Root,
    /// Root in a container is an ordinary user outside.
    OrdinaryUser,
}

/// Major and minor.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Version(pub(super) u32, pub(super) u32);

impl Runtime {
    /// Queries one program. A client without a responding server does not count.
    pub fn ask(program: RuntimeProgram) -> Result<Self, NoRuntime> {
        let no = |why: String| NoRuntime(format!("`{}`: {why}", program.path.display()));
        let format = match program.kind {
            RuntimeKind::Podman => "json",
            RuntimeKind::Docker => "{{json .}}",
        };
        let question = ["info".to_owned(), "--format".to_owned(), format.to_owned()];
        let answer =
            client::ask(&program, &question, b"", PATIENCE).map_err(|error| no(error.to_string()))?;
        let text = answer.success_output().map_err(no)?;
        let (version, offers) = match program.kind {
            RuntimeKind::Podman => read_podman(&text),
            RuntimeKind::Docker => read_docker(&text),
        }
        .map_err(no)?;
        let ours = rustix::process::getrlimit(Resource::Nproc).maximum;
        let ceiling = ours.map_or(MONITORS_CEILING, |ours| ours.min(MONITORS_CEILING));
        Ok(Self { program, version, offers, ceiling })
    }

    pub fn kind(&self) -> RuntimeKind {
        self.program.kind
    }
}

impl RuntimeKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version(major, minor) = self.version;
        let owner = match self.offers.owner {
            RuntimeOwner::Root => "",
            RuntimeOwner::OrdinaryUser => " (rootless)",
        };
        write!(formatter, "{} {major}.{minor}{owner}", self.program.kind.name())
    }
}

impl fmt::Display for NoRuntime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "no container runtime: {}", self.0)
    }
}

impl std::error::Error for NoRuntime {}

impl Offers {
    fn lacking(self) -> Vec<&'static str> {
        let all = [(self.memory, "memory"), (self.cpu, "CPU time"), (self.processes, "processes")];
        all.into_iter().filter(|(offer, _)| *offer == Offer::Missing).map(|(_, name)| name).collect()
    }
}

impl Offer {
    fn when(there: bool) -> Self {
        if there { Self::There } else { Self::Missing }
    }
}

impl Version {
    fn read(text: &str) -> Result<Self, String> {
        let mut numbers = text.split(['.', '-', '+']).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Self(major, minor)),
            _ => Err(format!("cannot parse the version `{}`", text.escape_debug())),
        }
    }
}

fn read_podman(text: &[u8]) -> Result<(Version, Offers), String> {
    #[derive(Deserialize)]
    struct PodmanInfo {
        host: PodmanHost,
        version: PodmanVersion,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct PodmanHost {
        #[serde(default)]
        cgroup_controllers: Option<Vec<String>>,
        security: PodmanSecurity,
        #[serde(default)]
        service_is_remote: bool,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct PodmanSecurity {
        rootless: bool,
        seccomp_enabled: bool,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct PodmanVersion {
        version: String,
    }
    let PodmanInfo { host, version } =
        serde_json::from_slice(text).map_err(|_| "not a response of Podman".to_owned())?;
    if host.service_is_remote {
        return Err(
            "it runs containers on another machine, which lacks our files; use a local Podman".to_owned()
        );
    }
    let version = Version::read(&version.version)?;
    if version < OLDEST_PODMAN {
        return Err(format!("version {}.{} is too old; use 4.3 or later", version.0, version.1));
    }
    let controllers = host.cgroup_controllers.unwrap_or_default();
    let controller = |name: &str| Offer::when(controllers.iter().any(|controller| controller == name));
    let offers = Offers {
        memory: controller("memory"),
        cpu: controller("cpu"),
        processes: controller("pids"),
        seccomp: Offer::when(host.security.seccomp_enabled),
        owner: if host.security.rootless { RuntimeOwner::OrdinaryUser } else { RuntimeOwner::Root },
    };
    Ok((version, offers))
}

fn read_docker(text: &[u8]) -> Result<(Version, Offers), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct DockerInfo {
        #[serde(default)]
        server_version: String,
        #[serde(default)]
        server_errors: Vec<String>,
        #[serde(rename = "OSType", default)]
        os_type: String,
        #[serde(default)]
        memory_limit: bool,
        #[serde(default)]
        pids_limit: bool,
        #[serde(rename = "CpuCfsQuota", alias = "CPUCfsQuota", default)]
        cpu_quota: bool,
        #[serde(default)]
        security_options: Vec<String>,
    }
    let info: DockerInfo = serde_json::from_slice(text).map_err(|_| "not a response of Docker".to_owned())?;
    if let Some(error) = info.server_errors.first() {
        return Err(client::error_line(error.as_bytes()));
    }
    if info.os_type != "linux" {
        return Err("no Docker daemon for Linux responds".to_owned());
    }
    let version = Version::read(&info.server_version)?;
    if version < OLDEST_DOCKER {
        return Err(format!("version {}.{} is too old; use 20.10 or later", version.0, version.1));
    }
    let option =
        |name: &str| info.security_options.iter().find(|option| option.split(',').any(|word| word == name));
    let seccomp = option("name=seccomp").is_some_and(|option| !option.contains("unconfined"));
    let is_mapped = option("name=rootless").or(option("name=userns")).is_some();
    let offers = Offers {
        memory: Offer::when(info.memory_limit),
        cpu: Offer::when(info.cpu_quota),
        processes: Offer::when(info.pids_limit),
        seccomp: Offer::when(seccomp),
        owner: if is_mapped { RuntimeOwner::OrdinaryUser } else { RuntimeOwner::Root },
    };
    Ok((version, offers))
}

const DIRS: [&str; 4] = ["/usr/bin", "/usr/local/bin", "/bin", "/opt/podman/bin"];
const PATIENCE: Duration = Duration::from_secs(20);

/// Process limit of Podman's container monitor, which the container inherits.
const MONITORS_CEILING: u64 = 32_768;

/// First version with user and group numbers in `keep-id`.
const OLDEST_PODMAN: Version = Version(4, 3);
/// First version with private cgroup namespaces.
const OLDEST_DOCKER: Version = Version(20, 10);

const INSTALL_REMEDY: &str = "install Podman (`apt-get install podman`), or start the Docker daemon";
const LIMITS_REMEDY: &str = "use cgroup version 2, delegated to this user; until then tools run in containers only if \
    `commands.danger_unbounded_containers` is set";
const FILTER_REMEDY: &str =
    "use a runtime built with seccomp, and remove `unconfined` from its configuration";

#[cfg(test)]
mod tests;
