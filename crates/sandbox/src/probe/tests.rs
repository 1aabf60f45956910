use tempfile::TempDir;

use super::*;

/// A host with these files.
fn host(files: &[(&str, &str)]) -> (TempDir, HostFiles) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = folder.path().to_owned();
    (folder, HostFiles { root })
}

#[track_caller]
fn check(row: &HostRow, state: HostState, why: &str) {
    assert_eq!(row.state, state, "{row:?}");
    assert!(row.why.contains(why), "{row:?}");
    assert_eq!(
        row.state != HostState::Enforced,
        !row.remedy.is_empty(),
        "everything missing has a remedy: {row:?}"
    );
}

#[test]
fn empty_host_enforces_nothing() {
    let (_folder, host) = host(&[]);
    for row in
        [host.seccomp(), host.user_namespaces(&Ok(())), host.network_namespaces(&Ok(())), host.cgroups()]
    {
        check(&row, HostState::Missing, "");
    }
    check(&landlock(None), HostState::Missing, "not enabled");
    check(&guarded_paths(false), HostState::Missing, "refused");
}

#[test]
fn seccomp_needs_the_action_that_kills_the_process() {
    let file = "proc/sys/kernel/seccomp/actions_avail";
    let (_folder, good) = host(&[(file, "kill_process kill_thread trap errno log allow\n")]);
    check(&good.seccomp(), HostState::Enforced, "");
    let (_folder, old) = host(&[(file, "kill trap errno trace allow\n")]);
    check(&old.seccomp(), HostState::Missing, "cannot kill");
}

fn refused() -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::EPERM))
}

#[test]
fn cause_of_denied_user_namespaces_is_named() {
    for (path, value, why, remedy) in [
        ("proc/sys/user/max_user_namespaces", "0\n", "max_user_namespaces", MORE_NAMESPACES),
        ("proc/sys/kernel/unprivileged_userns_clone", "0\n", "unprivileged_userns_clone", ALLOW_NAMESPACES),
        ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "AppArmor", APPARMOR_PROFILE),
        // As in a container: no setting forbids them.
        ("proc/sys/user/max_user_namespaces", "9\n", "not permitted", NAMESPACES_IN_CONTAINER),
    ] {
        let (_folder, host) = host(&[("proc/self/ns/user", ""), (path, value)]);
        let row = host.user_namespaces(&refused());
        check(&row, HostState::Missing, why);
        assert_eq!(row.remedy, remedy);
        // A successful attempt counts, whatever the settings say.
        check(&host.user_namespaces(&Ok(())), HostState::Enforced, "tried");
    }
}

#[test]
fn cause_of_denied_network_namespaces_is_named() {
    let (_folder, none) = host(&[("proc/self/ns/net", ""), ("proc/sys/user/max_net_namespaces", "0")]);
    check(&none.network_namespaces(&refused()), HostState::Missing, "max_net_namespaces");
    let (_folder, some) = host(&[("proc/self/ns/net", "")]);
    check(&some.network_namespaces(&refused()), HostState::Missing, "not permitted");
    check(&some.network_namespaces(&Ok(())), HostState::Enforced, "tried");
}

#[test]
fn cgroups_are_version_two_or_missing() {
    let (_folder, two) = host(&[("sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")]);
    check(&two.cgroups(), HostState::Enforced, "cpu memory pids");
}

#[test]
fn landlock_row_names_what_its_version_covers() {
    check(&landlock(Some(3)), HostState::Partly, "files, not ports");
    assert_eq!(landlock(Some(3)).remedy, NEWER_KERNEL);
    assert_eq!(landlock(Some(4)).state, HostState::Enforced);
    assert!(landlock(Some(4)).why.ends_with("files and ports"));
    assert!(landlock(Some(6)).why.ends_with("signals"));
}

#[test]
fn running_host_fills_every_row() {
    let found = probe();
    assert!(!found.kernel.is_empty());
    let names: Vec<&str> = found.rows.iter().map(|row| row.name).collect();
    assert_eq!(
        names,
        [
            "landlock",
            "seccomp",
            "user namespaces",
            "network namespaces",
            "cgroups v2",
            "openat2",
            "container runtime",
            "jail for commands",
            "process limit",
            "memory limit",
            "control group for commands",
            "signal isolation",
            "denial reports"
        ]
    );
    assert!(found.rows.iter().all(|row| !row.why.is_empty()));
}

#[test]
fn denied_jail_for_commands_names_its_remedy() {
    let restricted = "proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    for (files, remedy) in [
        (&[(restricted, "1\n")], APPARMOR_TEXT),
        (&[("proc/sys/user/max_user_namespaces", "0\n")], MORE_NAMESPACES),
        (&[("proc/sys/kernel/unprivileged_userns_clone", "0\n")], ALLOW_NAMESPACES),
        (&[("proc/version", "x")], NAMESPACES_IN_CONTAINER),
    ] {
        let (_folder, host) = host(files);
        let row = host.jail_for_commands(&refused());
        check(&row, HostState::Missing, "not permitted");
        assert_eq!(row.remedy, remedy);
    }
    let (_folder, open) = host(&[]);
    check(&open.jail_for_commands(&Ok(())), HostState::Enforced, "tried");
}

#[test]
fn roots_processes_are_limited_by_newer_kernels_and_in_namespaces_only() {
    let status = |uid: u32| format!("Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
    for (uid, release, jail, state) in [
        (0, "6.14.2", Ok(()), HostState::Enforced),
        (0, "6.14.2", refused(), HostState::Missing),
        (0, "6.13.9", Ok(()), HostState::Missing),
        (1000, "5.15.0", Ok(()), HostState::Enforced),
        (1000, "5.15.0", refused(), HostState::Partly),
    ] {
        let (_folder, host) =
            host(&[("proc/self/status", &status(uid)), ("proc/sys/kernel/osrelease", release)]);
        let row = host.process_limit(&Ok(()), &jail);
        check(&row, state, "");
        let of_namespaces = host.jail_for_commands(&refused()).remedy;
        for remedy in [row.remedy, of_namespaces] {
            assert!(uid != 0 || !remedy.contains("as root"), "it is root: {remedy}");
        }
    }
}

/// A row must take the results of the other attempts into account.
#[test]
fn missing_user_namespaces_are_explained_to_ordinary_users() {
    let (_folder, host) = host(&[
        ("proc/self/ns/user", ""),
        ("proc/self/ns/net", ""),
        ("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n"),
        ("proc/sys/user/max_user_namespaces", "0\n"),
    ]);
    let limit = host.process_limit(&refused(), &refused());
    check(&limit, HostState::Partly, "across all its processes");
    let network = host.network_namespaces(&refused());
    check(&network, HostState::Missing, "`user.max_user_namespaces` is 0");
    assert_eq!([limit.remedy, network.remedy], [MORE_NAMESPACES; 2]);
}

#[test]
fn delegated_group_and_its_absence_are_reported() {
    let group = "sys/fs/cgroup/service";
    let (folder, ours) = host(&[
        ("proc/self/cgroup", "0::/service/gateway\n"),
        ("proc/self/status", "Uid:\t0\t0\t0\t0\n"),
        ("proc/sys/kernel/osrelease", "6.13.9"),
        (&format!("{group}/cgroup.controllers"), "memory pids\n"),
        (&format!("{group}/cgroup.procs"), ""),
    ]);
    control_group::mark(&folder.path().join(group));
    check(&ours.control_group(), HostState::Enforced, "service");
    check(&ours.process_limit(&refused(), &refused()), HostState::Enforced, "control group");
    check(&ours.memory_limit(&refused(), &refused()), HostState::Enforced, "control group");
    let (_folder, none) = host(&[("proc/self/cgroup", "0::/\n")]);
    check(&none.control_group(), HostState::Missing, "polling");
}

#[test]
fn invisible_processes_are_explained() {
    let own = ("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
    let children = ("proc/thread-self/children", "");
    let mounted = |options: &str| format!("22 1 0:20 / /proc rw,nosuid - proc proc rw{options}\n");
    let (hidden, open) = (mounted(",gid=7,hidepid=invisible"), mounted(""));
    let (_folder, none) = host(&[own]);
    check(&none.memory_limit(&Ok(()), &refused()), HostState::Missing, "does not list child processes");
    check(&none.memory_limit(&Ok(()), &Ok(())), HostState::Enforced, "the `/proc` of each command");
    let (_folder, masked) = host(&[own, children, ("proc/self/mountinfo", &hidden)]);
    check(&masked.memory_limit(&Ok(()), &refused()), HostState::Missing, "hidepid");
    check(&masked.memory_limit(&refused(), &refused()), HostState::Enforced, "the host's");
    let (_folder, unhidden) = host(&[own, children, ("proc/self/mountinfo", &open)]);
    check(&unhidden.memory_limit(&Ok(()), &refused()), HostState::Enforced, "the host's");
}

#[test]
fn signals_and_reports_need_recent_kernels() {
    check(&signals(Some(6)), HostState::Enforced, "Landlock");
    check(&signals(Some(5)), HostState::Missing, "");
    check(&signals(None), HostState::Missing, "");
    let file = "proc/sys/kernel/seccomp/actions_avail";
    let (_folder, new) = host(&[(file, "kill_process user_notif allow\n")]);
    check(&new.reports(), HostState::Enforced, "");
    let (_folder, old) = host(&[(file, "kill_process allow\n")]);
    check(&old.reports(), HostState::Missing, "");
}
