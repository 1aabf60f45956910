//! Tests a container runtime that hangs.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use serde_json::json;
use toolgate_handlers::{CommandOrder, ContainerLauncher, Launch as _};
use toolgate_sandbox::Ending;
use toolgate_sandbox::{ContainerUser, ImageName, LayerSet, Runtime, RuntimeKind, RuntimeProgram};
use toolgate_spec::model::SandboxKind;

use crate::{
    argv::manifest,
    world::{World, runtime},
};

/// A fake Podman that never answers one command, and logs what it is asked.
fn hanging_in(question: &str, folder: &Path) -> ContainerLauncher {
    let script = folder.join(question);
    let log = log(question, folder);
    fs::write(
        &script,
        format!(
            r#"echo "$*" >> '{}'
case $1 in
  info) echo '{{"host":{{"security":{{"rootless":false,"seccompEnabled":true}}}},"version":{{"Version":"4.3.1"}}}}' ;;
  {question}) exec sleep 1000 ;;
esac
"#,
            log.display()
        ),
    )
    .unwrap();
    // The script is passed to a shell, because a file that was just written cannot always be executed.
    let options = vec![script.display().to_string()];
    let program = RuntimeProgram { kind: RuntimeKind::Podman, path: "/bin/sh".into(), options };
    ContainerLauncher {
        runtime: Arc::new(Runtime::ask(program).unwrap()),
        egress: None,
        image: ImageName::parse("localhost/tried:1").unwrap(),
        user: ContainerUser { uid: 1000, gid: 1000 },
        required: LayerSet::NONE,
    }
}

fn log(question: &str, folder: &Path) -> PathBuf {
    folder.join(format!("{question}.log"))
}

#[test]
fn hanging_runtime_does_not_exceed_the_deadline() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let questions = ["create", "init", "inspect"];
    let ready = questions.map(|question| (hanging_in(question, folder.path()), order(&world)));
    runtime().block_on(async {
        let calls = ready.map(|(launcher, order)| tokio::spawn(launcher.launch(order)));
        for (call, question) in calls.into_iter().zip(questions) {
            assert_eq!(call.await.unwrap().ending, Ending::TimedOut, "{question}");
        }
    });
    for question in questions {
        wait_for_removal(&log(question, folder.path()));
    }
}

fn order(world: &World) -> CommandOrder {
    let mut order = world.order(&manifest("echo", "'{text}'"), &json!({ "text": "x" }));
    order.sandbox = SandboxKind::Container;
    order.deadline = Duration::from_secs(1);
    order
}

#[track_caller]
fn wait_for_removal(log: &Path) {
    for _ in 0..600 {
        let said = fs::read_to_string(log).unwrap();
        if said.lines().any(|line| line.starts_with("rm --force") && line.contains("-- toolgate-")) {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing was removed: {}", fs::read_to_string(log).unwrap());
}
