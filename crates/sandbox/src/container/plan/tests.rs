//! Rejected container requests, and masks.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::*;
use crate::{LayerSet, View, container::ImageName};

impl Plan {
    pub(in crate::container) fn for_tests(
        image: &str,
        argv: &[&str],
        user: ContainerUser,
        limits: ContainerLimits,
        mounts: Vec<ContainerMount>,
    ) -> Self {
        Self {
            image: image.to_owned(),
            argv: argv.iter().map(ToString::to_string).collect(),
            env: Vec::new(),
            cwd: "/".to_owned(),
            user,
            tmp_bytes: 1 << 20,
            limits,
            network: Network::None,
            deadline: Duration::from_secs(10),
            mounts,
            _masks: None,
            _names: None,
            latch: None,
        }
    }
}

impl Plan {
    pub(in crate::container) fn with_latch(mut self) -> Self {
        self.latch = Some(Latch::make().unwrap());
        self
    }
}

impl ContainerMount {
    pub(in crate::container) fn for_tests(source: &str, target: &str, access: Access) -> Self {
        let id = fs::metadata(source).map(|about| masks::id(&about)).unwrap_or_default();
        Self { source: source.to_owned(), target: target.to_owned(), access, id, _open: None }
    }
}

fn jail() -> ContainerJail {
    ContainerJail {
        image: ImageName::parse("localhost/tool").unwrap(),
        argv: vec!["/bin/true".into()],
        env: Vec::new(),
        cwd: "/".into(),
        user: ContainerUser { uid: 1000, gid: 1000 },
        view: View { binds: Vec::new(), hidden: Vec::new(), hidden_large: Vec::new(), tmp_bytes: 1 << 20 },
        network: Network::None,
        limits: LIMITS,
        required: LayerSet::NONE,
        deadline: Duration::from_secs(10),
    }
}

#[track_caller]
fn check_refused(change: impl FnOnce(&mut ContainerJail), expect: &str) {
    let mut jail = jail();
    change(&mut jail);
    let error = Plan::check(jail, RuntimeKind::Podman).expect_err("it is accepted").to_string();
    assert!(error.contains(expect) && !error.contains('\n'), "{error}");
}

fn bind(source: &Path, at: &str, access: Access) -> Bind {
    Bind { source: Source::Path(source.to_owned()), at: at.into(), access }
}

#[test]
fn valid_jail_is_accepted() {
    let plan = Plan::check(jail(), RuntimeKind::Podman).unwrap();
    assert_eq!((plan.argv.as_slice(), plan.cwd.as_str()), (["/bin/true".to_owned()].as_slice(), "/"));
    assert!(plan.mounts.is_empty());
}

#[test]
fn root_missing_port_and_missing_program_are_rejected() {
    check_refused(|jail| jail.user.uid = 0, "root");
    check_refused(|jail| jail.user.gid = 0, "root");
    check_refused(|jail| jail.network = Network::Proxied { http_port: 0 }, "port is 0");
    check_refused(|jail| jail.argv.clear(), "no program");
    check_refused(|jail| jail.argv = vec!["".into()], "no program");
    check_refused(|jail| jail.argv.push("a\0b".into()), "not valid text");
    check_refused(|jail| jail.argv.push(OsString::from_vec(vec![0xff])), "not valid text");
}

#[test]
fn zero_limits_are_rejected() {
    check_refused(|jail| jail.limits.memory_bytes = 0, "memory");
    check_refused(|jail| jail.limits.millicpus = 0, "CPU time");
    check_refused(|jail| jail.limits.processes = 0, "processes");
    check_refused(|jail| jail.limits.open_files = 0, "open files");
    check_refused(|jail| jail.limits.file_bytes = u64::MAX, "size of files");
    check_refused(|jail| jail.view.tmp_bytes = 0, "/tmp");
}

#[test]
fn ambiguous_variables_are_rejected_without_showing_values() {
    for name in ["", "A=B", "A B", "#A", "A*", "1A", "A\n", "ä", "-e"] {
        check_refused(|jail| jail.env = vec![(name.into(), "secret".into())], "is not a valid variable name");
    }
    for value in ["a\nINJECTED=1", "a\r", &"x".repeat(MAX_VALUE + 1)] {
        let mut jail = jail();
        jail.env = vec![("A".into(), value.into())];
        let error = Plan::check(jail, RuntimeKind::Podman).unwrap_err().to_string();
        assert!(error.contains("`A`") && !error.contains(value), "{error}");
    }
    check_refused(|jail| jail.env = vec![("A".into(), "1".into()), ("A".into(), "2".into())], "twice");
}

#[test]
fn targets_are_absolute_plain_and_not_reserved() {
    let dir = tempfile::tempdir().unwrap();
    for at in ["relative", "/a/../b", "", "/a\nb"] {
        check_refused(
            |jail| jail.view.binds.push(bind(dir.path(), at, Access::Read)),
            "is not an absolute, normalised",
        );
        check_refused(|jail| jail.cwd = at.into(), "is not an absolute, normalised");
    }
    for at in ["/", "/tmp", "/proc", "/proc/1", "/sys/fs", "/dev/shm", "/tmp/"] {
        check_refused(
            |jail| jail.view.binds.push(bind(dir.path(), at, Access::Read)),
            "container reserves it",
        );
    }
    let twice = |jail: &mut ContainerJail| {
        jail.view.binds.push(bind(dir.path(), "/w", Access::Read));
        jail.view.binds.push(bind(dir.path(), "/w/", Access::Write));
    };
    check_refused(twice, "two binds");
}

#[test]
fn egress_brings_its_own_resolv_conf() {
    let mut proxied = jail();
    proxied.network = Network::Proxied { http_port: 3128 };
    let plan = Plan::check(proxied, RuntimeKind::Podman).unwrap();
    let [names] = plan.mounts.as_slice() else { panic!("{:?}", plan.mounts) };
    assert_eq!((names.target.as_str(), names.access), ("/etc/resolv.conf", Access::Read));
    assert!(fs::read_to_string(&names.source).unwrap().starts_with("nameserver 127.0.0.1\n"));
    let dir = tempfile::tempdir().unwrap();
    let taken = |jail: &mut ContainerJail| {
        jail.network = Network::Proxied { http_port: 3128 };
        jail.view.binds.push(bind(dir.path(), "/etc/resolv.conf", Access::Read));
    };
    check_refused(taken, "egress proxy");
}

#[test]
fn only_directories_and_files_can_be_bound() {
    let dir = tempfile::tempdir().unwrap();
    let take = |source: &Path| {
        let mut jail = jail();
        jail.view.binds.push(bind(source, "/w", Access::Read));
        Plan::check(jail, RuntimeKind::Podman)
    };
    check_refused(
        |jail| jail.view.binds.push(bind(&dir.path().join("absent"), "/w", Access::Read)),
        "absent",
    );
    check_refused(
        |jail| jail.view.binds.push(bind(Path::new("/dev/null"), "/w", Access::Read)),
        "cannot be bound",
    );
    check_refused(
        |jail| jail.view.binds.push(bind(Path::new("/proc/self"), "/w", Access::Read)),
        "cannot be bound",
    );
    let odd = dir.path().join("a\nb");
    fs::write(&odd, "").unwrap();
    check_refused(|jail| jail.view.binds.push(bind(&odd, "/w", Access::Read)), "plain-text");
    // A symlink is resolved once, now.
    std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
    let plan = take(&dir.path().join("link")).unwrap();
    assert_eq!(plan.mounts[0].source, fs::canonicalize(dir.path()).unwrap().to_str().unwrap());
}

/// Creates `keys/key`, `.env` and `open/file`, and returns the targets of the masks.
fn covered(binds: &[(&str, &str)], hidden: &[&str]) -> Result<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| fs::canonicalize(dir.path()).unwrap().join(name);
    for name in ["keys", "open"] {
        fs::create_dir(path(name)).unwrap();
    }
    for name in ["keys/key", ".env", "open/file"] {
        fs::write(path(name), "x").unwrap();
    }
    let mut jail = jail();
    jail.view.binds = binds.iter().map(|(source, at)| bind(&path(source), at, Access::Write)).collect();
    jail.view.hidden = hidden.iter().map(|name| path(name)).collect();
    let plan = Plan::check(jail, RuntimeKind::Podman).map_err(|error| error.to_string())?;
    let is_cover = |mount: &&ContainerMount| mount.source.contains("toolgate-masks-");
    let covers: Vec<String> = plan.mounts.iter().filter(is_cover).map(|mount| mount.target.clone()).collect();
    assert!(plan.mounts.iter().filter(is_cover).all(|mount| mount.access == Access::Read));
    Ok(covers)
}

#[test]
fn hidden_paths_are_masked_at_each_target() {
    let covers = covered(&[("", "/w"), ("keys", "/k")], &["keys/key", ".env", "absent"]);
    assert_eq!(covers, Ok(vec!["/k/key".to_owned(), "/w/.env".to_owned(), "/w/keys/key".to_owned()]));
}

#[test]
fn directories_above_masks_and_binds_are_pinned_in_writable_binds() {
    let dir = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(dir.path()).unwrap();
    fs::create_dir_all(top.join("config/cedar")).unwrap();
    fs::create_dir_all(top.join("a/inner")).unwrap();
    fs::write(top.join("config/cedar/main.cedar"), "x").unwrap();
    let targets = |access: Access| {
        let mut jail = jail();
        jail.view.binds =
            vec![bind(&top, "/w", access), bind(&top.join("a/inner"), "/w/a/inner", Access::Read)];
        jail.view.hidden = vec![top.join("config/cedar/main.cedar")];
        let plan = Plan::check(jail, RuntimeKind::Podman).unwrap();
        let is_pin = |mount: &&ContainerMount| {
            ["/w/a", "/w/config", "/w/config/cedar"].contains(&mount.target.as_str())
        };
        for pin in plan.mounts.iter().filter(is_pin) {
            assert_eq!(pin.source, pin.target.replace("/w", top.to_str().unwrap()));
            assert_eq!(pin.access, Access::Write);
        }
        plan.mounts.into_iter().map(|mount| mount.target).collect::<Vec<String>>()
    };
    let pinned = ["/w", "/w/a", "/w/a/inner", "/w/config", "/w/config/cedar", "/w/config/cedar/main.cedar"];
    assert_eq!(targets(Access::Write), pinned);
    // Nothing can be moved in a read-only bind.
    assert_eq!(targets(Access::Read), ["/w", "/w/a/inner", "/w/config/cedar/main.cedar"]);
}

#[test]
fn bind_of_a_hidden_path_is_masked() {
    assert_eq!(covered(&[("keys", "/k"), ("open", "/o")], &["keys"]), Ok(vec!["/k".to_owned()]));
    assert_eq!(covered(&[("keys/key", "/k")], &["keys"]), Ok(vec!["/k".to_owned()]));
    // One mask is enough.
    assert_eq!(covered(&[("", "/w")], &["keys", "keys/key"]), Ok(vec!["/w/keys".to_owned()]));
}

#[test]
fn bind_over_a_hidden_path_needs_no_mask_and_one_inside_is_rejected() {
    assert_eq!(covered(&[("", "/w"), ("open", "/w/keys")], &["keys"]), Ok(Vec::new()));
    let error = covered(&[("", "/w"), ("open", "/w/keys/inner")], &["keys"]).unwrap_err();
    assert!(error.contains("`/w/keys/inner` is inside the hidden path `/w/keys`"), "{error}");
}

const LIMITS: ContainerLimits = ContainerLimits {
    memory_bytes: 1 << 26,
    millicpus: 1000,
    processes: 64,
    open_files: 256,
    file_bytes: 1 << 20,
};

#[test]
fn docker_commands_start_behind_the_latch() {
    let plan = Plan::check(jail(), RuntimeKind::Docker).unwrap();
    let [latch] = plan.mounts.as_slice() else { panic!("{:?}", plan.mounts) };
    assert_eq!((latch.target.as_str(), latch.access), (latch::PATH, Access::Execute));
    assert_eq!(plan.command(), [latch::PATH, "1", "l/.toolgate-latch", "/bin/true"]);
    assert_eq!(Plan::check(jail(), RuntimeKind::Podman).unwrap().command(), ["/bin/true"]);
    for at in [latch::PATH, "/.toolgate-latch/below"] {
        let mut taken = jail();
        let source = Source::Path("/etc".into());
        taken.view.binds.push(Bind { source, at: at.into(), access: Access::Read });
        let why = Plan::check(taken, RuntimeKind::Docker).unwrap_err().to_string();
        assert!(why.contains("reserved for the start of the command"), "{why}");
    }
}
