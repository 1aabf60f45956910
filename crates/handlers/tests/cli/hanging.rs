//! A disk that does not respond only delays calls that wait for it. The number of waiting threads is bounded.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Map, json};
use tokio::time::Instant;
use toolgate_gate::{
    DiskCheckLimits, DiskCheckPermit, DiskCheckPermits, Reason, RunReport, Runnable, StopFlag,
};
use toolgate_handlers::{CommandOrder, CommandOutcome, Launch};
use toolgate_sandbox::Ending;

use crate::world::{World, ended, request_with, runtime, said};

fn manifest(cli: &str, allowed: &str, classification: &str) -> String {
    format!(
        "
name: tried
description: Is tried. Returns text.
classification: {classification}
input: {{type: object, properties: {{}}}}
testInput: {{}}
handler: {{cli: {{command: echo, args: [/opt]{cli}}}}}
capability: {{execution: {{sandbox: process, allowedPaths: [{allowed}], blockedPaths: ['$WORKSPACE/**/.env']}}}}
"
    )
}

/// One permit in total, with a short timeout.
fn disk_checks() -> DiskCheckPermits {
    DiskCheckPermits::new(DiskCheckLimits { total: 1, per_caller: 1, timeout: Duration::from_millis(50) })
}

async fn enter(disk_checks: &DiskCheckPermits) -> DiskCheckPermit {
    disk_checks.enter("somebody else", Instant::now() + Duration::from_secs(20)).await.unwrap()
}

fn run(tool: &Arc<dyn Runnable>, disk_checks: &DiskCheckPermits) -> RunReport {
    let none = Map::new();
    let survey = Arc::clone(tool).survey(&none, &StopFlag::default()).unwrap();
    runtime().block_on(survey.call.run(request_with(&none, disk_checks)))
}

#[test]
fn command_without_a_disk_permit_is_rejected_and_others_run() {
    let (world, disk_checks) = (World::new(), disk_checks());
    let place = runtime().block_on(enter(&disk_checks));
    for (cli, allowed) in [(", cwd: $WORKSPACE", "$WORKSPACE"), ("", "$WORKSPACE")] {
        let (tool, recorder) = world.recorded(&manifest(cli, allowed, "read"), said("done"));
        let failure = run(&tool, &disk_checks).outcome.unwrap_err();
        assert_eq!(failure.reason, Reason::Busy, "{}", failure.message);
        assert!(failure.message.starts_with("too many file checks are running"), "{}", failure.message);
        assert!(recorder.is_unused(), "nothing is run");
    }
    let (tool, _) = world.recorded(&manifest("", "", "read"), said("done"));
    assert_eq!(run(&tool, &disk_checks).outcome.unwrap(), Some(json!("done")), "it is shown no folder");
    drop(place);
    let (tool, _) = world.recorded(&manifest("", "$WORKSPACE", "read"), said("done"));
    assert_eq!(run(&tool, &disk_checks).outcome.unwrap(), Some(json!("done")));
}

/// While its command runs, other calls start to hang.
struct Meanwhile {
    disk_checks: DiskCheckPermits,
    taken: Arc<Mutex<Option<DiskCheckPermit>>>,
    ended: CommandOutcome,
}

impl Launch for Meanwhile {
    fn launch(&self, _order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        let (disk_checks, taken, ended) =
            (self.disk_checks.clone(), Arc::clone(&self.taken), self.ended.clone());
        Box::pin(async move {
            *taken.lock().unwrap() = Some(enter(&disk_checks).await);
            ended
        })
    }
}

/// Runs a command with this outcome, and without a permit for the check after it.
fn run_and_hang(world: &World, manifest: &str, ended: CommandOutcome) -> RunReport {
    let disk_checks = disk_checks();
    let launcher = Meanwhile { disk_checks: disk_checks.clone(), taken: Arc::default(), ended };
    let tool = world.handlers(Arc::new(launcher)).runnable(world.load(manifest).unwrap());
    run(&tool, &disk_checks)
}

#[test]
fn missing_permit_for_the_final_check_is_reported() {
    let world = World::new();
    let writes = manifest("", "$WORKSPACE", "write");
    let failure = run_and_hang(&world, &writes, said("done")).outcome.unwrap_err();
    assert_eq!(failure.reason, Reason::BlockedPathMade);
    assert!(failure.message.contains("cannot check whether"), "{}", failure.message);
    let reads = manifest("", "", "read");
    let complaint = |words: &str| ended(Ending::Exited(2), "", words);
    let lost = run_and_hang(&world, &reads, complaint("ls: /opt: No such file or directory\n"));
    assert_eq!(lost.outcome.unwrap_err().message, "the outcome of the command was lost");
    let told = run_and_hang(&world, &reads, complaint("something else\n"));
    assert!(told.outcome.unwrap_err().message.contains("exit code 2: something else"));
}
