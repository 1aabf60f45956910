//! Command-line arguments for the runtime. Pure: the same plan gives the same arguments.

use super::{
    RuntimeKind,
    owner::{EXPIRY_LABEL, OWNER_LABEL},
    plan::{ContainerMount, Plan},
    runtime::{Offer, Runtime, RuntimeOwner, Version},
};
use crate::Access;

/// Name and labels of a container.
#[derive(Debug)]
pub(super) struct Badge {
    pub(super) name: String,
    pub(super) owner: String,
    pub(super) expires: u64,
}

impl Runtime {
    /// The arguments that create a container. Each option includes its value in the same argument, and all of them
    /// precede `--`: nothing from a tool can become an option.
    pub(super) fn creation(&self, plan: &Plan, badge: &Badge) -> Vec<String> {
        let mut arguments = vec!["create".to_owned(), "--interactive".to_owned(), "--pull=never".to_owned()];
        arguments.push(format!("--name={}", badge.name));
        arguments.push(format!("--label={OWNER_LABEL}={}", badge.owner));
        arguments.push(format!("--label={EXPIRY_LABEL}={}", badge.expires));
        arguments.extend(LAYERS.map(str::to_owned));
        arguments.extend(self.own_layers(plan));
        arguments.extend(self.limits(plan));
        arguments.push(format!("--user={}:{}", plan.user.uid, plan.user.gid));
        arguments.push(format!("--workdir={}", plan.cwd));
        arguments.push(format!(
            "--tmpfs=/tmp:rw,noexec,nosuid,nodev,size={},mode=1777{}",
            plan.tmp_bytes,
            self.empty_tmp()
        ));
        arguments.push(format!("--shm-size={}", plan.tmp_bytes));
        arguments.extend(plan.mounts.iter().map(|mount| format!("--mount={}", self.mount(mount))));
        arguments.extend(["--entrypoint=", "--env-file=/dev/stdin", "--"].map(str::to_owned));
        arguments.push(plan.image.clone());
        arguments.extend(plan.command());
        arguments
    }

    /// The arguments that remove a container, even a running one.
    pub(super) fn removal(&self, name: &str) -> Vec<String> {
        let arguments: &[&str] = match self.program.kind {
            RuntimeKind::Podman => &["rm", "--force", "--ignore", "--time=0", "--volumes", "--"],
            RuntimeKind::Docker => &["rm", "--force", "--volumes", "--"],
        };
        arguments.iter().copied().chain([name]).map(str::to_owned).collect()
    }

    fn own_layers(&self, plan: &Plan) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.program.kind == RuntimeKind::Docker {
            arguments.extend(DOCKER_LAYERS.map(str::to_owned));
            return arguments;
        }
        arguments.extend(PODMAN_LAYERS.map(str::to_owned));
        // If the gateway dies, the container's monitor still ends it.
        let longest =
            u32::try_from(plan.deadline.as_secs()).unwrap_or(u32::MAX).saturating_add(GRACE_SECONDS);
        arguments.push(format!("--timeout={longest}"));
        if self.offers.owner == RuntimeOwner::OrdinaryUser {
            arguments.push(format!("--userns=keep-id:uid={},gid={}", plan.user.uid, plan.user.gid));
        }
        arguments
    }

    /// Omits limits that this host cannot enforce: the runtime would fail, or drop them with a warning. They are
    /// then missing in the strength.
    fn limits(&self, plan: &Plan) -> Vec<String> {
        let (limits, offers) = (&plan.limits, &self.offers);
        let mut arguments = vec![
            format!("--ulimit=nofile={0}:{0}", limits.open_files),
            format!("--ulimit=fsize={0}:{0}", limits.file_bytes),
            "--ulimit=core=0:0".to_owned(),
        ];
        if offers.memory == Offer::There {
            arguments.push(format!("--memory={}", limits.memory_bytes));
            arguments.push(format!("--memory-swap={}", limits.memory_bytes));
        }
        if offers.cpu == Offer::There {
            arguments.push(format!("--cpus={}.{:03}", limits.millicpus / 1000, limits.millicpus % 1000));
        }
        // `nproc` counts all processes of the user on the host, so it is only the fallback. It is still set for
        // Podman, whose default may exceed what Podman can grant.
        match offers.processes {
            Offer::There => arguments.push(format!("--pids-limit={}", limits.processes)),
            Offer::Missing => arguments.push(format!("--ulimit=nproc={0}:{0}", limits.processes)),
        }
        if offers.processes == Offer::There && self.program.kind == RuntimeKind::Podman {
            arguments.push(format!("--ulimit=nproc={0}:{0}", self.ceiling));
        }
        let none = [offers.memory, offers.cpu, offers.processes].iter().all(|offer| *offer == Offer::Missing);
        arguments.push(match (self.program.kind, none) {
            (RuntimeKind::Podman, true) => "--cgroups=disabled".to_owned(),
            _ => "--cgroupns=private".to_owned(),
        });
        arguments
    }

    /// Podman would copy the image's `/tmp`.
    fn empty_tmp(&self) -> &'static str {
        match self.program.kind {
            RuntimeKind::Podman => ",notmpcopyup",
            RuntimeKind::Docker => "",
        }
    }

    /// A comma-separated line with CSV quoting. Never recursive: mounts below the source would be neither checked
    /// nor, in a read-only bind, protected from writing.
    fn mount(&self, mount: &ContainerMount) -> String {
        let mut fields = vec![
            "type=bind".to_owned(),
            quoted(&format!("source={}", mount.source)),
            quoted(&format!("target={}", mount.target)),
        ];
        let mut word = |text: &str| fields.push(text.to_owned());
        if mount.access != Access::Write {
            word("readonly");
        }
        match self.program.kind {
            RuntimeKind::Podman => {
                ["bind-nonrecursive", "nosuid", "nodev"].into_iter().for_each(&mut word);
                if mount.access != Access::Execute {
                    word("noexec");
                }
            }
            RuntimeKind::Docker if self.version >= RECURSION_NAMED => word("bind-recursive=disabled"),
            RuntimeKind::Docker => word("bind-nonrecursive"),
        }
        fields.join(",")
    }
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

/// The runtime's default seccomp filter applies, because none is named.
const LAYERS: [&str; 11] = [
    "--network=none",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--ipc=private",
    "--hostname=tool",
    "--log-driver=none",
    "--no-healthcheck",
    "--restart=no",
    "--stop-timeout=0",
    "--init=false",
];

/// Disables what Podman adds by default: writable file systems besides `/tmp`, more of them for programs called
/// `init`, the gateway's proxy variables, the host's `/etc/hosts`, and volumes declared by the image.
const PODMAN_LAYERS: [&str; 8] = [
    "--pid=private",
    "--uts=private",
    "--read-only-tmpfs=false",
    "--systemd=false",
    "--sdnotify=ignore",
    "--http-proxy=false",
    "--no-hosts",
    "--image-volume=ignore",
];

/// Hides the host's DNS servers, which Docker would copy into the container.
const DOCKER_LAYERS: [&str; 2] = ["--dns=127.0.0.1", "--dns-search=."];

const GRACE_SECONDS: u32 = 30;

/// Docker renamed the option in this version.
const RECURSION_NAMED: Version = Version(25, 0);

#[cfg(test)]
mod tests;
