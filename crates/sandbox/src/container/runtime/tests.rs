//! Outputs of runtimes, as observed or documented.

use std::{fs, os::unix::fs::PermissionsExt};

use super::*;

#[test]
fn podman_output_is_parsed() {
    let text = br#"{"host":{"cgroupControllers":["cpu","memory","pids"],"serviceIsRemote":false,
        "security":{"rootless":false,"seccompEnabled":true}},"version":{"Version":"4.3.1"}}"#;
    let (version, offers) = read_podman(text).unwrap();
    assert_eq!(version, Version(4, 3));
    assert_eq!((offers.lacking(), offers.owner), (Vec::new(), RuntimeOwner::Root));
    assert_eq!(offers.seccomp, Offer::There);
}

#[test]
fn podman_without_cgroups_lacks_limits() {
    let text = br#"{"host":{"cgroupControllers":null,"security":{"rootless":true,"seccompEnabled":false}},
        "version":{"Version":"5.0.0-rc1"}}"#;
    let (_, offers) = read_podman(text).unwrap();
    assert_eq!(offers.lacking(), ["memory", "CPU time", "processes"]);
    assert_eq!((offers.owner, offers.seccomp), (RuntimeOwner::OrdinaryUser, Offer::Missing));
}

#[test]
fn remote_or_old_podman_is_rejected() {
    let remote = br#"{"host":{"serviceIsRemote":true,"security":{"rootless":false,"seccompEnabled":true}},
        "version":{"Version":"4.3.1"}}"#;
    assert!(read_podman(remote).unwrap_err().contains("another machine"));
    let old =
        br#"{"host":{"security":{"rootless":false,"seccompEnabled":true}},"version":{"Version":"3.4.4"}}"#;
    assert!(read_podman(old).unwrap_err().contains("too old"));
    assert!(read_podman(b"{}").is_err());
    assert!(Version::read("x.y").unwrap_err().contains("`x.y`"));
}

#[test]
fn docker_output_is_parsed() {
    let text = br#"{"ServerVersion":"27.5.1","OSType":"linux","MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true,
        "SecurityOptions":["name=apparmor","name=seccomp,profile=builtin","name=cgroupns"]}"#;
    let (version, offers) = read_docker(text).unwrap();
    assert_eq!((version, offers.lacking()), (Version(27, 5), Vec::new()));
    assert_eq!((offers.seccomp, offers.owner), (Offer::There, RuntimeOwner::Root));
    let open = br#"{"ServerVersion":"27.5.1","OSType":"linux","SecurityOptions":["name=seccomp,profile=unconfined"]}"#;
    assert_eq!(read_docker(open).unwrap().1.seccomp, Offer::Missing);
}

#[test]
fn docker_client_without_daemon_is_rejected() {
    let text = br#"{"ServerErrors":["Cannot connect to the Docker daemon"],"ServerVersion":""}"#;
    assert_eq!(read_docker(text).unwrap_err(), "Cannot connect to the Docker daemon");
    assert!(read_docker(b"{}").unwrap_err().contains("no Docker daemon"));
    // `docker` may be a symlink to Podman.
    assert!(read_docker(br#"{"host":{}}"#).is_err());
}

#[test]
fn failing_program_is_reported_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("docker");
    fs::write(&path, "#!/bin/sh\necho 'Cannot connect' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let program = RuntimeProgram { kind: RuntimeKind::Docker, path: path.clone(), options: Vec::new() };
    let found = Runtime::ask(program);
    let row = container_row(&found);
    assert_eq!(row.state, HostState::Missing);
    assert_eq!(row.why, format!("`{}`: Cannot connect", path.display()));
    assert_eq!(row.remedy, INSTALL_REMEDY);
}

#[test]
fn runtime_without_seccomp_is_reported_as_missing() {
    let offers = Offers {
        memory: Offer::There,
        cpu: Offer::Missing,
        processes: Offer::There,
        seccomp: Offer::There,
        owner: RuntimeOwner::Root,
    };
    let program =
        RuntimeProgram { kind: RuntimeKind::Podman, path: "/usr/bin/podman".into(), options: Vec::new() };
    let runtime = Runtime { program, version: Version(4, 9), offers, ceiling: 1000 };
    let row = container_row(&Ok(runtime.clone()));
    // A runtime without limits is only partly enforced, and the row names a remedy.
    assert_eq!(
        (row.state, row.why.as_str(), row.remedy),
        (HostState::Partly, "podman 4.9; cannot limit CPU time", LIMITS_REMEDY)
    );
    let whole = Runtime { offers: Offers { cpu: Offer::There, ..offers }, ..runtime.clone() };
    let row = container_row(&Ok(whole));
    assert_eq!((row.state, row.why.as_str(), row.remedy), (HostState::Enforced, "podman 4.9", ""));
    let open = Runtime { offers: Offers { seccomp: Offer::Missing, ..offers }, ..runtime };
    assert_eq!(container_row(&Ok(open)).state, HostState::Missing);
}
