//! Tests binds that are replaced after they were checked and before the command starts.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use toolgate_sandbox::{Access, ContainerJail, ContainerUser, Ending, Layer, RuntimeKind, SpawnError};

use crate::driver::{
    CAPS, Case, USER, bind, folder, gateway_of, is_empty_of_containers, jail, kind, on_runtime,
    runtime_through, runtime_with, wait_until,
};

pub const ALL: &[Case] = &[
    Case { name: "replaced_bind_is_rejected", body: replaced_bind_is_rejected },
    Case { name: "redirected_mask_is_detected", body: redirected_mask_is_detected },
    Case { name: "ordinary_users_gateway_verifies_binds", body: ordinary_users_gateway_verifies_binds },
];

/// Another tool with write access to the parent directory replaces the bind by a symlink after the runtime got its
/// path.
fn replaced_bind_is_rejected() {
    for (word, step) in [("the runtime makes it", "create"), ("the runtime starts it", last_step())] {
        let top = folder();
        let script = exchange(top.path(), step);
        let runtime = runtime_through(top.path(), &script);
        let one = shown(top.path(), ContainerUser { uid: USER, gid: USER });
        let made = on_runtime(async { runtime.spawn(one).await.map(drop) });
        assert!(top.path().join("moved").exists(), "{word}: nothing was exchanged");
        let Err(SpawnError::Failed(why)) = made else { panic!("{word}: it was made") };
        assert!(why.contains("it was replaced meanwhile"), "{word}: {why}");
        wait_until("the end of the container", is_empty_of_containers);
    }
}

/// The step in which the runtime opens the binds.
fn last_step() -> &'static str {
    if kind() == RuntimeKind::Podman { "init" } else { "start" }
}

/// The directory's `inner` is bound, and contains nothing secret when it is checked.
fn shown(top: &Path, user: ContainerUser) -> ContainerJail {
    let (inner, secret) = (top.join("inner"), top.join("secret"));
    for folder in [&inner, &secret] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(secret.join("key"), "SECRET").unwrap();
    let mut one = jail("cat /w/key");
    one.user = user;
    one.view.binds.push(bind(&inner, "/w", Access::Read));
    one
}

fn exchange(top: &Path, step: &str) -> String {
    let top = top.display();
    format!(
        r#"case " $* " in
  *" {step} "*) [ -e {top}/moved ] || {{ mv {top}/inner {top}/moved; ln -s secret {top}/inner; }} ;;
esac
exec CLIENT "$@"
"#
    )
}

/// A directory above a hidden path becomes a symlink: the mask would be mounted elsewhere, and the hidden file
/// would be visible at the symlink's target.
fn redirected_mask_is_detected() {
    let top = folder();
    fs::create_dir_all(top.path().join("ws/keys")).unwrap();
    fs::create_dir_all(top.path().join("ws/decoy")).unwrap();
    for name in ["keys", "decoy"] {
        fs::write(top.path().join("ws").join(name).join("key"), "SECRET").unwrap();
    }
    let mut one = jail("cat /w/moved/key");
    one.view.binds.push(bind(&top.path().join("ws"), "/w", Access::Read));
    one.view.hidden = vec![top.path().join("ws/keys/key")];
    let script = format!(
        r#"case " $* " in
  *" {} "*) [ -e {top}/moved ] || {{ mv {top}/keys {top}/moved; ln -s decoy {top}/keys; }} ;;
esac
exec CLIENT "$@"
"#,
        last_step(),
        top = top.path().join("ws").display(),
    );
    let runtime = runtime_through(top.path(), &script);
    let made = on_runtime(async { runtime.spawn(one).await.map(drop) });
    assert!(top.path().join("ws/moved").exists(), "nothing was exchanged");
    assert!(matches!(made, Err(SpawnError::Failed(_))), "{made:?}");
    wait_until("the end of the container", is_empty_of_containers);
}

/// Docker's daemon runs as root, and a user who may use it cannot inspect its containers. The latch inspects them
/// instead.
fn ordinary_users_gateway_verifies_binds() {
    if kind() != RuntimeKind::Docker {
        println!("skipped: an ordinary user's Podman is an ordinary user's");
        return;
    }
    let top = folder();
    let said = gateway_of(USER, ORDINARY, top.path()).output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{text}\n{errors}");
    wait_until("the end of the containers", is_empty_of_containers);
}

/// As another user: containers run and are inspected, and a replacement is detected.
pub fn be_an_ordinary_gateway(folder: &str, client: &str, options: &[&str]) -> ExitCode {
    let top = Path::new(folder);
    // Another user than the gateway's, as when the directory belongs to someone else.
    let user = ContainerUser { uid: USER + 1, gid: USER + 1 };
    let runtime = runtime_with(client, options);
    let plain = shown(&top.join("plain"), user);
    fs::write(top.join("plain/inner/key"), "plain").unwrap();
    let report = on_runtime(async {
        let container = runtime.spawn(plain).await.unwrap();
        assert!(container.strength().has(Layer::SameFiles), "{:?}", container.strength());
        container.finish(Vec::new(), CAPS).await
    });
    assert_eq!(String::from_utf8_lossy(&report.stdout), "plain", "{report:?}");
    // The gateway may not kill a process of that user, so the daemon does.
    let late = ContainerJail { deadline: Duration::from_secs(5), user, ..jail("sleep 1000") };
    let report = on_runtime(async { runtime.spawn(late).await.unwrap().finish(Vec::new(), CAPS).await });
    assert_eq!(report.ending, Ending::TimedOut);
    let other = top.join("other");
    let one = shown(&other, user);
    let script = top.join("script");
    fs::write(&script, exchange(&other, "start").replace("CLIENT", client)).unwrap();
    let script = script.display().to_string();
    let through: Vec<&str> = [script.as_str()].into_iter().chain(options.iter().copied()).collect();
    let runtime = runtime_with("/bin/sh", &through);
    let made = on_runtime(async { runtime.spawn(one).await.map(drop) });
    assert!(other.join("moved").exists(), "nothing was exchanged");
    let Err(SpawnError::Failed(why)) = made else { panic!("it was made") };
    assert!(why.contains("it was replaced meanwhile"), "{why}");
    // Abandoned containers are removed by a thread, which would end with this process.
    wait_until("the end of the containers", || {
        let left = Command::new(client).args(options).args(["ps", "--all", "--quiet"]).output().unwrap();
        left.stdout.is_empty()
    });
    ExitCode::SUCCESS
}

/// Makes this program a gateway of an ordinary user.
pub const ORDINARY: &str = "--be-an-ordinary-gateway";
