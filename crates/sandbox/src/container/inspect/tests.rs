//! Descriptions of containers, each with one change.

use serde_json::{Value, json};

use super::*;
use crate::JailKind;
use crate::container::{
    ContainerLimits, ContainerUser, RuntimeProgram,
    plan::ContainerMount,
    runtime::{Offers, Version},
};

fn plan() -> Plan {
    let limits = ContainerLimits {
        memory_bytes: 1 << 26,
        millicpus: 1500,
        processes: 64,
        open_files: 256,
        file_bytes: 1 << 20,
    };
    let mounts = vec![ContainerMount::for_tests("/srv/in", "/in", Access::Read)];
    let mut plan =
        Plan::for_tests("tool", &["/bin/echo", "x"], ContainerUser { uid: 1000, gid: 1000 }, limits, mounts);
    plan.env = vec![("A".to_owned(), "b c".to_owned())];
    plan
}

fn runtime(kind: RuntimeKind) -> Runtime {
    let program = RuntimeProgram { kind, path: "/usr/bin/x".into(), options: Vec::new() };
    let there = Offer::There;
    let offers =
        Offers { memory: there, cpu: there, processes: there, seccomp: there, owner: RuntimeOwner::Root };
    Runtime { program, version: Version(27, 0), offers, ceiling: 5000 }
}

fn account() -> Value {
    json!({
        "Id": "0123", "Path": "/bin/echo", "Args": ["x"],
        "State": { "Pid": 0, "ExitCode": 0, "OOMKilled": false, "StartedAt": "0001-01-01T00:00:00Z" },
        "Mounts": [{ "Type": "bind", "Source": "/srv/in", "Destination": "/in", "RW": false, "Options": ["bind", "noexec"] }],
        "Config": { "User": "1000:1000", "Env": ["PATH=/bin", "A=b c"] },
        "HostConfig": {
            "NetworkMode": "none", "Privileged": false, "ReadonlyRootfs": true, "CapAdd": null, "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"], "Tmpfs": { "/tmp": "rw" }, "Devices": [],
            "Ulimits": [
                { "Name": "nofile", "Soft": 256, "Hard": 256 },
                { "Name": "RLIMIT_FSIZE", "Soft": 1_048_576, "Hard": 1_048_576 },
                { "Name": "core", "Soft": 0, "Hard": 0 },
            ],
            "Memory": 67_108_864, "MemorySwap": 67_108_864, "NanoCpus": 1_500_000_000_i64, "PidsLimit": 64,
            "PidMode": "", "IpcMode": "private", "UTSMode": "", "UsernsMode": "",
        },
    })
}

fn low_level() -> Value {
    let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|name| json!({ "type": name }));
    json!({
        "process": { "args": ["/bin/echo", "x"], "env": ["A=b c"], "noNewPrivileges": true, "capabilities": {},
            "user": { "uid": 1000, "gid": 1000 } },
        "root": { "readonly": true },
        "linux": { "seccomp": { "defaultAction": "SCMP_ACT_ERRNO" }, "namespaces": namespaces },
    })
}

fn read(account: &Value) -> Inspected {
    Inspected::read(&serde_json::to_vec(&json!([account])).unwrap()).unwrap()
}

/// The description with one field changed.
fn changed(mut account: Value, pointer: &str, value: Value) -> Value {
    *account.pointer_mut(pointer).unwrap() = value;
    account
}

fn missing_in_docker(account: &Value) -> Vec<String> {
    let layers = read(account).layers(&runtime(RuntimeKind::Docker), &plan(), None, &seen());
    missing(layers)
}

fn missing_in_podman(account: &Value, low_level: &Value) -> Vec<String> {
    let low_level = LowLevel::read(&serde_json::to_vec(low_level).unwrap());
    let layers = read(account).layers(&runtime(RuntimeKind::Podman), &plan(), low_level.as_ref(), &seen());
    missing(layers)
}

/// An observation that does not contradict the runtime.
fn seen() -> Observation {
    Observation { files: FileComparison::Same, ..Observation::default() }
}

fn missing(layers: LayerSet) -> Vec<String> {
    layers.missing(JailKind::Container, JailKind::Container.hardened()).names()
}

#[test]
fn container_as_requested_has_all_layers() {
    assert_eq!(missing_in_docker(&account()), Vec::<String>::new());
    assert_eq!(missing_in_podman(&account(), &low_level()), Vec::<String>::new());
    assert_eq!(read(&account()).difference(&plan(), None), None);
}

#[test]
fn layers_dropped_by_the_runtime_are_missing() {
    let rows = [
        ("/HostConfig/NetworkMode", json!("bridge"), "network-none"),
        ("/HostConfig/ReadonlyRootfs", json!(false), "read-only-root"),
        ("/HostConfig/CapDrop", json!(["CHOWN"]), "no-capabilities"),
        ("/HostConfig/CapAdd", json!(["SYS_ADMIN"]), "no-capabilities"),
        ("/HostConfig/SecurityOpt", json!([]), "no-new-privileges"),
        ("/HostConfig/SecurityOpt", json!(["no-new-privileges", "seccomp=unconfined"]), "seccomp-default"),
        ("/HostConfig/PidMode", json!("host"), "pid-namespace"),
        ("/HostConfig/IpcMode", json!("shareable"), "ipc-namespace"),
        ("/HostConfig/UTSMode", json!("host"), "uts-namespace"),
        ("/Config/User", json!(""), "unprivileged-user"),
        ("/HostConfig/Ulimits", json!(null), "limits"),
        ("/HostConfig/Memory", json!(0), "memory-limit"),
        ("/HostConfig/MemorySwap", json!(-1), "memory-limit"),
        ("/HostConfig/PidsLimit", json!(null), "process-limit"),
        ("/HostConfig/NanoCpus", json!(0), "cpu-limit"),
    ];
    for (pointer, value, layer) in rows {
        assert_eq!(missing_in_docker(&changed(account(), pointer, value)), [layer], "{pointer}");
    }
}

#[test]
fn podmans_oci_configuration_decides() {
    let rows = [
        ("/process/noNewPrivileges", json!(false), "no-new-privileges"),
        ("/process/capabilities", json!({ "bounding": ["CAP_CHOWN"] }), "no-capabilities"),
        ("/process/user", json!({ "uid": 0, "gid": 0 }), "unprivileged-user"),
        ("/root/readonly", json!(false), "read-only-root"),
        ("/linux/seccomp", json!(null), "seccomp-default"),
        ("/linux/seccomp/defaultAction", json!("SCMP_ACT_ALLOW"), "seccomp-default"),
    ];
    for (pointer, value, layer) in rows {
        assert_eq!(
            missing_in_podman(&account(), &changed(low_level(), pointer, value)),
            [layer],
            "{pointer}"
        );
    }
    let open = changed(low_level(), "/linux/namespaces", json!([{ "type": "mount" }]));
    assert_eq!(
        missing_in_podman(&account(), &open),
        ["network-none", "pid-namespace", "ipc-namespace", "uts-namespace"]
    );
    // Without the OCI configuration nothing is known.
    assert_eq!(
        missing_in_podman(&account(), &json!({})).len(),
        JailKind::Container.mandatory().iter().count() - 2
    );
    let bridged = changed(account(), "/HostConfig/NetworkMode", json!("bridge"));
    assert_eq!(missing_in_podman(&bridged, &low_level()), ["network-none"]);
}

#[test]
fn kernel_observation_overrides_the_runtime() {
    // This process shares all namespaces with itself.
    let plan = plan();
    let seen = Observation::take(i32::try_from(std::process::id()).unwrap(), "no such id", &plan);
    assert!(seen.handle.is_none(), "a process of another group would be killed");
    assert_eq!(seen.files, FileComparison::Other);
    let layers = read(&account()).layers(&runtime(RuntimeKind::Docker), &plan, None, &seen);
    assert_eq!(
        missing(layers),
        ["network-none", "pid-namespace", "ipc-namespace", "uts-namespace", "same-files"]
    );
}

/// A process without our container id is not trusted if there is a latch.
#[test]
fn process_of_another_container_is_not_trusted() {
    let seen =
        Observation::take(i32::try_from(std::process::id()).unwrap(), "no such id", &plan().with_latch());
    assert_eq!(seen.files, FileComparison::NotSeen);
    let layers =
        read(&account()).layers(&runtime(RuntimeKind::Docker), &plan(), None, &Observation::default());
    assert_eq!(missing(layers), ["same-files"]);
}

#[test]
fn files_are_compared_from_inside_the_container() {
    let dir = tempfile::tempdir().unwrap();
    let path = std::fs::canonicalize(dir.path()).unwrap();
    let text = path.to_str().unwrap();
    let mut plan = plan();
    plan.mounts = vec![ContainerMount::for_tests(text, text, Access::Read)];
    let pid = i32::try_from(std::process::id()).unwrap();
    assert_eq!(Observation::take(pid, "", &plan).files, FileComparison::Same);
    std::fs::rename(&path, path.with_extension("old")).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(Observation::take(pid, "", &plan).files, FileComparison::Other);
    std::fs::remove_dir(path.with_extension("old")).unwrap();
}

#[test]
fn differences_from_the_request_are_reported() {
    let rows = [
        ("/Path", json!("/bin/sh"), "command"),
        ("/Args", json!(["x", "y"]), "command"),
        ("/Config/Env", json!(["A=b"]), "`A`"),
        ("/Config/Env", json!(null), "`A`"),
        ("/Mounts", json!([]), "`/in`"),
        ("/Mounts/0/Source", json!("/etc"), "`/in`"),
        ("/Mounts/0/RW", json!(true), "`/in`"),
        ("/Mounts/0/Type", json!("volume"), "volume"),
        ("/HostConfig/Tmpfs", json!({ "/run": "", "/tmp": "" }), "/run"),
        ("/HostConfig/Tmpfs", json!(null), "writable file systems"),
        ("/HostConfig/Privileged", json!(true), "privileged"),
        ("/HostConfig/Devices", json!([{ "PathOnHost": "/dev/kvm" }]), "devices"),
    ];
    for (pointer, value, expect) in rows {
        let difference =
            read(&changed(account(), pointer, value)).difference(&plan(), None).unwrap_or_default();
        assert!(difference.contains(expect), "{pointer}: {difference}");
    }
}

#[test]
fn program_that_never_ran_has_no_exit_code() {
    assert_eq!(read(&account()).state.code(), None);
    let started = changed(account(), "/State/StartedAt", json!("2026-01-01T00:00:00Z"));
    assert_eq!(read(&started).state.code(), Some(0));
    let odd = changed(started, "/State/ExitCode", json!(-1));
    assert_eq!(read(&odd).state.code(), None);
}

#[test]
fn unparsable_description_is_an_error() {
    for text in ["", "[]", "{}", "[{}]", "[1,2]"] {
        assert!(Inspected::read(text.as_bytes()).unwrap_err().contains("cannot parse"), "{text}");
    }
}
