//! What is bound is exchanged for something else, after it was checked and before the command starts.

use std::{
    fs,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use toolgate_sandbox::{
    Access, ContainerJail, ContainerUser, ContainerWall, Ending, RuntimeKind, SpawnError,
};

use crate::driver::{
    CAPS, Case, USER, bind, folder, gateway_of, is_empty_of_containers, jail, kind, on_runtime,
    runtime_through, runtime_with, wait_until,
};

pub const ALL: &[Case] = &[
    Case { name: "an_exchanged_bind_is_not_shown", body: an_exchanged_bind_is_not_shown },
    Case { name: "a_cover_that_is_led_astray_is_noticed", body: a_cover_that_is_led_astray_is_noticed },
    Case {
        name: "an_ordinary_users_gateway_sees_what_is_bound",
        body: an_ordinary_users_gateway_sees_what_is_bound,
    },
];

/// Another tool, which may write to the folder above, exchanges it for a link when the runtime has been told its name.
fn an_exchanged_bind_is_not_shown() {
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

/// Where the runtime takes up what is bound.
fn last_step() -> &'static str {
    if kind() == RuntimeKind::Podman { "init" } else { "start" }
}

/// The folder's `inner` is bound, and holds nothing secret when it is looked at.
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

/// A folder above something hidden becomes a link: the cover would lie elsewhere, and what it hides be seen where the link leads.
fn a_cover_that_is_led_astray_is_noticed() {
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

/// Docker's daemon is root's, and whoever may ask it cannot look into its containers. The latch looks for them.
fn an_ordinary_users_gateway_sees_what_is_bound() {
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

/// As another user: containers run and are seen, and an exchange is noticed.
pub fn be_an_ordinary_gateway(folder: &str, client: &str, options: &[&str]) -> ExitCode {
    let top = Path::new(folder);
    // Other than the gateway, as it is where the folder is somebody else's.
    let user = ContainerUser { uid: USER + 1, gid: USER + 1 };
    let runtime = runtime_with(client, options);
    let plain = shown(&top.join("plain"), user);
    fs::write(top.join("plain/inner/key"), "plain").unwrap();
    let report = on_runtime(async {
        let container = runtime.spawn(plain).await.unwrap();
        assert!(container.strength().has(ContainerWall::SameFiles), "{:?}", container.strength());
        container.finish(Vec::new(), CAPS).await
    });
    assert_eq!(String::from_utf8_lossy(&report.stdout), "plain", "{report:?}");
    // It may not kill a process of that user, and the daemon does it.
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
    // What is given up is removed by a thread, which would end with this process.
    wait_until("the end of the containers", || {
        let left = Command::new(client).args(options).args(["ps", "--all", "--quiet"]).output().unwrap();
        left.stdout.is_empty()
    });
    ExitCode::SUCCESS
}

/// Makes this program a gateway of an ordinary user.
pub const ORDINARY: &str = "--be-an-ordinary-gateway";
