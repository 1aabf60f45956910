//! Compares the container that the runtime reports with the requested one, and derives its isolation layers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::Deserialize;

use super::{
    RuntimeKind,
    observation::{FileComparison, Observation},
    plan::Plan,
    runtime::{Offer, Runtime, RuntimeOwner},
};
use crate::{Access, Layer, LayerSet};

/// The fields of both runtimes' `inspect` output that we use.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Inspected {
    pub(super) id: String,
    path: String,
    #[serde(default)]
    args: Option<Vec<String>>,
    pub(super) state: InspectedState,
    #[serde(default)]
    mounts: Option<Vec<Mounted>>,
    config: InspectedConfig,
    host_config: HostConfig,
    /// Path of the OCI configuration that Podman passes to the low-level runtime. Set once the container is
    /// initialised.
    #[serde(rename = "OCIConfigPath", default)]
    pub(super) low_level_path: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct InspectedState {
    pub(super) pid: i32,
    exit_code: i32,
    #[serde(rename = "OOMKilled", default)]
    pub(super) oom_killed: bool,
    started_at: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Mounted {
    r#type: String,
    source: String,
    destination: String,
    #[serde(rename = "RW")]
    writable: bool,
    #[serde(default)]
    options: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InspectedConfig {
    #[serde(default)]
    user: String,
    #[serde(default)]
    env: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HostConfig {
    network_mode: String,
    privileged: bool,
    readonly_rootfs: bool,
    #[serde(default)]
    cap_add: Option<Vec<String>>,
    #[serde(default)]
    cap_drop: Option<Vec<String>>,
    #[serde(default)]
    security_opt: Option<Vec<String>>,
    #[serde(default)]
    tmpfs: Option<BTreeMap<String, String>>,
    #[serde(default)]
    devices: Option<Vec<serde_json::Value>>,
    #[serde(default)]
    ulimits: Option<Vec<Ulimit>>,
    memory: i64,
    memory_swap: i64,
    nano_cpus: i64,
    #[serde(default)]
    pids_limit: Option<i64>,
    #[serde(default)]
    pid_mode: String,
    #[serde(default)]
    ipc_mode: String,
    #[serde(rename = "UTSMode", default)]
    uts_mode: String,
    #[serde(default)]
    userns_mode: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Ulimit {
    name: String,
    soft: i64,
    hard: i64,
}

/// The OCI configuration for the low-level runtime. The most reliable source after the kernel.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LowLevel {
    process: OciProcess,
    root: OciRoot,
    linux: OciLinux,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciProcess {
    args: Vec<String>,
    #[serde(default)]
    env: Option<Vec<String>>,
    #[serde(default)]
    no_new_privileges: bool,
    #[serde(default)]
    capabilities: Option<BTreeMap<String, Option<Vec<String>>>>,
    user: OciUser,
}

#[derive(Debug, Deserialize)]
struct OciUser {
    uid: u32,
    gid: u32,
}

#[derive(Debug, Deserialize)]
struct OciRoot {
    #[serde(default)]
    readonly: bool,
}

#[derive(Debug, Deserialize)]
struct OciLinux {
    #[serde(default)]
    seccomp: Option<OciSeccomp>,
    namespaces: Vec<OciNamespace>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciSeccomp {
    default_action: String,
}

#[derive(Debug, Deserialize)]
struct OciNamespace {
    r#type: String,
}

impl Inspected {
    pub(super) fn ask(runtime: &Runtime, name: &str, timeout: Duration) -> Result<Self, String> {
        let question = ["inspect".to_owned(), "--type=container".to_owned(), name.to_owned()];
        Self::read(&runtime.run(&question, timeout)?)
    }

    fn read(text: &[u8]) -> Result<Self, String> {
        let [one]: [Self; 1] = serde_json::from_slice(text).map_err(|error| {
            format!(
                "cannot parse the runtime's description of the container: {error}; use a supported version"
            )
        })?;
        Ok(one)
    }

    /// The first difference from the request; if there is one, the container must not start.
    pub(super) fn difference(&self, plan: &Plan, low_level: Option<&LowLevel>) -> Option<String> {
        // In `inspect`, Podman lists a program without arguments a second time, as its own argument.
        let command: Vec<&String> = match low_level {
            Some(low_level) => low_level.process.args.iter().collect(),
            None => std::iter::once(&self.path).chain(self.args.iter().flatten()).collect(),
        };
        if !command.into_iter().eq(&plan.command()) {
            return Some("the command differs".to_owned());
        }
        let env = low_level.map_or(&self.config.env, |low_level| &low_level.process.env);
        let env: BTreeSet<&str> = env.iter().flatten().map(String::as_str).collect();
        let lost = plan.env.iter().find(|(name, value)| !env.contains(format!("{name}={value}").as_str()));
        if let Some((name, _)) = lost {
            return Some(format!("the variable `{name}` has another value"));
        }
        let asked: BTreeSet<(&str, &str, bool)> = plan
            .mounts
            .iter()
            .map(|mount| (mount.source.as_str(), mount.target.as_str(), mount.access == Access::Write))
            .collect();
        let made = self.mounts.iter().flatten();
        if let Some(other) = made.clone().find(|mount| mount.r#type != "bind") {
            return Some(format!("there is an unexpected {} at `{}`", other.r#type, other.destination));
        }
        let made: BTreeSet<(&str, &str, bool)> =
            made.map(|mount| (mount.source.as_str(), mount.destination.as_str(), mount.writable)).collect();
        if let Some((_, target, _)) = made.symmetric_difference(&asked).next() {
            return Some(format!("the bind at `{target}` differs"));
        }
        let host = &self.host_config;
        let tmpfs: Vec<&str> = host.tmpfs.iter().flatten().map(|(place, _)| place.as_str()).collect();
        if tmpfs != ["/tmp"] {
            return Some(format!("there are other writable file systems: {}", tmpfs.join(", ")));
        }
        let has_devices = host.devices.as_ref().is_some_and(|devices| !devices.is_empty());
        (host.privileged || has_devices).then(|| "it is privileged, or has devices".to_owned())
    }

    /// The isolation layers that the runtime reports. Anything it does not report counts as missing.
    pub(super) fn layers(
        &self,
        runtime: &Runtime,
        plan: &Plan,
        low_level: Option<&LowLevel>,
        seen: &Observation,
    ) -> LayerSet {
        let host = &self.host_config;
        let mut layers = match runtime.program.kind {
            RuntimeKind::Podman => low_level.map_or(LayerSet::NONE, |low_level| low_level.layers(plan)),
            RuntimeKind::Docker => self.docker_layers(runtime, plan),
        };
        let mut add = |layer: Layer, holds: bool| {
            layers.remove(layer);
            layers.add_if(layer, holds);
        };
        let limits = &plan.limits;
        let memory = i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX);
        add(Layer::MemoryLimit, host.memory == memory && host.memory_swap == memory);
        add(Layer::ProcessLimit, host.pids_limit == Some(limits.processes.into()));
        add(Layer::CpuLimit, host.nano_cpus == i64::from(limits.millicpus) * 1_000_000);
        let file_bytes = i64::try_from(limits.file_bytes).unwrap_or(i64::MAX);
        let has_limits = self.has_limit("nofile", limits.open_files.into())
            && self.has_limit("fsize", file_bytes)
            && self.has_limit("core", 0);
        add(Layer::Limits, has_limits);
        add(Layer::NoExecution, self.binds_are_noexec(plan));
        add(Layer::SameFiles, seen.files == FileComparison::Same);
        if host.network_mode != "none" {
            add(Layer::NetworkNone, false);
        }
        seen.absent.iter().for_each(|layer| layers.remove(layer));
        layers
    }

    fn docker_layers(&self, runtime: &Runtime, plan: &Plan) -> LayerSet {
        let host = &self.host_config;
        let is_all = |name: &String| name == "ALL" || name == "CAP_ALL";
        let security: Vec<&str> = host.security_opt.iter().flatten().map(String::as_str).collect();
        let is_filtered = security.iter().all(|option| !option.starts_with("seccomp"));
        let user = format!("{}:{}", plan.user.uid, plan.user.gid);
        let no_additions = host.cap_add.as_ref().is_none_or(Vec::is_empty);
        let rows = [
            (Layer::NetworkNone, host.network_mode == "none"),
            (Layer::ReadOnlyRoot, host.readonly_rootfs),
            (Layer::NoCapabilities, no_additions && host.cap_drop.iter().flatten().any(is_all)),
            (
                Layer::NoNewPrivileges,
                security
                    .iter()
                    .any(|option| matches!(*option, "no-new-privileges" | "no-new-privileges:true")),
            ),
            (Layer::RuntimeSeccomp, runtime.offers.seccomp == Offer::There && is_filtered),
            (Layer::PidNamespace, matches!(host.pid_mode.as_str(), "" | "private")),
            (Layer::IpcNamespace, matches!(host.ipc_mode.as_str(), "none" | "private")),
            (Layer::UtsNamespace, matches!(host.uts_mode.as_str(), "" | "private")),
            (Layer::UnprivilegedUser, self.config.user == user),
            (
                Layer::UserNamespace,
                runtime.offers.owner == RuntimeOwner::OrdinaryUser && host.userns_mode != "host",
            ),
        ];
        rows.into_iter().filter(|(_, holds)| *holds).map(|(layer, _)| layer).collect()
    }

    fn has_limit(&self, name: &str, value: i64) -> bool {
        let is_it = |limit: &&Ulimit| limit.name.to_lowercase().trim_start_matches("rlimit_") == name;
        let found = self.host_config.ulimits.iter().flatten().find(is_it);
        found.is_some_and(|limit| limit.soft == value && limit.hard == value)
    }

    fn binds_are_noexec(&self, plan: &Plan) -> bool {
        let is_closed = |target: &str| {
            let mut made = self.mounts.iter().flatten().filter(|mount| mount.destination == target);
            made.any(|mount| mount.options.iter().flatten().any(|option| option == "noexec"))
        };
        let mut asked = plan.mounts.iter().filter(|mount| mount.access != Access::Execute);
        asked.all(|mount| is_closed(&mount.target))
    }
}

impl InspectedState {
    /// The program's exit code; `None` if it never ran.
    pub(super) fn code(&self) -> Option<u8> {
        if self.started_at.starts_with(NEVER) {
            return None;
        }
        u8::try_from(self.exit_code).ok()
    }
}

impl LowLevel {
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    fn layers(&self, plan: &Plan) -> LayerSet {
        let Self { process, root, linux } = self;
        let namespace = |name: &str| linux.namespaces.iter().any(|namespace| namespace.r#type == name);
        let mut kept = process.capabilities.iter().flat_map(BTreeMap::values).flatten();
        let refuses = |seccomp: &OciSeccomp| {
            seccomp.default_action != "SCMP_ACT_ALLOW" && seccomp.default_action != "SCMP_ACT_LOG"
        };
        let rows = [
            (Layer::NetworkNone, namespace("network")),
            (Layer::ReadOnlyRoot, root.readonly),
            (Layer::NoCapabilities, kept.all(Vec::is_empty)),
            (Layer::NoNewPrivileges, process.no_new_privileges),
            (Layer::RuntimeSeccomp, linux.seccomp.as_ref().is_some_and(refuses)),
            (Layer::PidNamespace, namespace("pid")),
            (Layer::IpcNamespace, namespace("ipc")),
            (Layer::UtsNamespace, namespace("uts")),
            (Layer::UserNamespace, namespace("user")),
            (Layer::UnprivilegedUser, (process.user.uid, process.user.gid) == (plan.user.uid, plan.user.gid)),
        ];
        rows.into_iter().filter(|(_, holds)| *holds).map(|(layer, _)| layer).collect()
    }
}

/// How both runtimes write an unset time.
const NEVER: &str = "0001-01-01T00:00:00";

#[cfg(test)]
mod tests;
