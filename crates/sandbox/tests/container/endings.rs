//! Tests that everything in a container ends, however the container ends.

use std::{
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use toolgate_sandbox::{Access, ContainerJail, Ending, Layer, OutputCaps, Shortage, SpawnError};

use crate::driver::{
    CAPS, Case, IMAGE, another_gateway, ask, bind, finish, finish_with, folder, is_empty_of_containers, jail,
    on_runtime, processes_with, runtime, runtime_with, wait_until,
};

pub const ALL: &[Case] = &[
    Case { name: "a_late_command_is_killed_with_its_container", body: command_is_killed_at_its_deadline },
    Case { name: "dropped_future_kills_the_container", body: dropped_future_kills_the_container },
    Case {
        name: "future_dropped_during_creation_leaves_nothing",
        body: future_dropped_during_creation_leaves_nothing,
    },
    Case { name: "deadline_during_creation_leaves_nothing", body: deadline_during_creation_leaves_nothing },
    Case {
        name: "container_that_is_never_started_is_removed",
        body: container_that_is_never_started_is_removed,
    },
    Case { name: "excessive_output_kills_the_command", body: excessive_output_kills_the_command },
    Case { name: "stderr_is_truncated", body: stderr_is_truncated },
    Case { name: "memory_shortage_is_reported", body: memory_shortage_is_reported },
    Case { name: "process_shortage_is_reported", body: process_shortage_is_reported },
    Case {
        name: "background_processes_end_with_the_command",
        body: background_processes_end_with_the_command,
    },
    Case {
        name: "containers_of_a_crashed_gateway_are_swept",
        body: containers_of_a_crashed_gateway_are_swept,
    },
    Case { name: "concurrent_containers_do_not_mix", body: concurrent_containers_do_not_mix },
    Case {
        name: "created_containers_of_ended_gateways_are_swept",
        body: created_containers_of_ended_gateways_are_swept,
    },
];

/// Runs a command that does not end.
pub fn be_a_gateway(folder: &str, client: &str, options: &[&str]) -> ExitCode {
    on_runtime(async {
        let writer = writer_to(Path::new(folder), "crashed-word");
        let container = runtime_with(client, options).spawn(writer).await.unwrap();
        container.finish(Vec::new(), CAPS).await
    });
    ExitCode::FAILURE
}

/// A command that writes until it is killed, and the directory it writes to.
fn writer(word: &str) -> (ContainerJail, TempDir) {
    let folder = folder();
    (writer_to(folder.path(), word), folder)
}

fn writer_to(folder: &Path, word: &str) -> ContainerJail {
    let mut one = jail(&format!(
        "trap '' TERM INT HUP; (while :; do echo x >> /w/child; sleep 0.01; done) & while :; do echo {word} >> /w/log; sleep 0.01; done"
    ));
    one.view.binds.push(bind(folder, "/w", Access::Write));
    one
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

#[track_caller]
fn assert_nothing_writes(word: &str, folder: &TempDir) {
    wait_until("the end of the container", is_empty_of_containers);
    assert_eq!(processes_with(word), Vec::<String>::new());
    let sizes = || (size(&folder.path().join("log")), size(&folder.path().join("child")));
    let before = sizes();
    assert!(before.0 > 0, "it never ran");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(sizes(), before, "somebody goes on writing");
}

fn command_is_killed_at_its_deadline() {
    let (mut one, folder) = writer("late-word");
    // The time includes creation, and must leave the command time to start.
    let before = Instant::now();
    drop(on_runtime(async { runtime().spawn(jail("true")).await.unwrap() }));
    one.deadline = before.elapsed() * 4 + Duration::from_secs(2);
    let report = finish(one);
    assert_eq!(report.ending, Ending::TimedOut);
    assert_nothing_writes("late-word", &folder);
}

fn dropped_future_kills_the_container() {
    let (one, folder) = writer("dropped-word");
    on_runtime(async {
        let container = runtime().spawn(one).await.unwrap();
        let running = container.finish(Vec::new(), CAPS);
        let log = folder.path().join("log");
        let written = async {
            while size(&log) == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert!(!processes_with("dropped-word").is_empty(), "the command cannot be seen");
        };
        tokio::select! { report = running => panic!("it ended: {report:?}"), () = written => {} }
    });
    assert_nothing_writes("dropped-word", &folder);
}

fn future_dropped_during_creation_leaves_nothing() {
    for patience in [0, 20, 150, 400] {
        on_runtime(async {
            let making = runtime().spawn(jail("sleep 1000"));
            let _ = tokio::time::timeout(Duration::from_millis(patience), making).await;
        });
        wait_until("the end of the container", is_empty_of_containers);
    }
}

fn deadline_during_creation_leaves_nothing() {
    for patience in [0, 20, 150] {
        let mut one = jail("sleep 1000");
        one.deadline = Duration::from_millis(patience);
        let made = on_runtime(async { runtime().spawn(one).await.map(drop) });
        let is_late = matches!(made, Err(SpawnError::Late));
        assert!(is_late || (made.is_ok() && patience > 0), "{made:?}");
        wait_until("the end of the container", is_empty_of_containers);
    }
}

fn container_that_is_never_started_is_removed() {
    let container = on_runtime(async { runtime().spawn(jail("sleep 1000")).await.unwrap() });
    assert!(!is_empty_of_containers());
    drop(container);
    wait_until("the end of the container", is_empty_of_containers);
}

fn excessive_output_kills_the_command() {
    let report =
        finish_with(jail("while :; do echo flood; done"), b"", OutputCaps { stdout: 1000, stderr: 10 });
    assert_eq!((report.ending, report.stdout.len()), (Ending::OutputTooLarge, 1000));
    wait_until("the end of the container", is_empty_of_containers);
}

fn stderr_is_truncated() {
    let report =
        finish_with(jail("echo 0123456789abcdef >&2; echo done"), b"", OutputCaps { stdout: 100, stderr: 4 });
    assert_eq!((report.ending, report.stdout.as_slice()), (Ending::Exited(0), b"done\n".as_slice()));
    assert_eq!((report.stderr.as_slice(), report.stderr_cut), (b"0123".as_slice(), true));
}

fn memory_shortage_is_reported() {
    let report = finish(jail("x=0123456789abcdef; while :; do x=$x$x; done"));
    assert_eq!(report.ending, Ending::OutOfMemory);
    assert!(report.shortages.contains(&Shortage::Memory), "{:?}", report.shortages);
    // Another process ran out of memory, which the program survives.
    let report = finish(jail("sh -c 'x=0123456789abcdef; while :; do x=$x$x; done' 2>/dev/null; exit 5"));
    assert_eq!(report.ending, Ending::Exited(5));
    assert_eq!(finish(jail("exit 5")).shortages, []);
}

fn process_shortage_is_reported() {
    let report = finish(jail(
        "for i in 0 1 2 3 4 5 6 7; do sleep 9 & sleep 9 & sleep 9 & sleep 9 & sleep 9 & done; exit 6",
    ));
    // Without control groups, processes are neither limited nor counted.
    let is_bounded = report.strength.has(Layer::ProcessLimit);
    assert_eq!(report.shortages.contains(&Shortage::Processes), is_bounded, "{report:?}");
}

fn background_processes_end_with_the_command() {
    let folder = folder();
    let mut one = jail(
        "(trap '' HUP TERM; while :; do echo x >> /w/log; sleep 0.01; done) & while [ ! -s /w/log ]; do :; done",
    );
    one.view.binds.push(bind(folder.path(), "/w", Access::Write));
    assert_eq!(finish(one).ending, Ending::Exited(0));
    assert_nothing_writes("no such word", &folder);
}

fn containers_of_a_crashed_gateway_are_swept() {
    let folder = folder();
    let mut gateway = another_gateway(folder.path());
    wait_until("the start of the command", || size(&folder.path().join("log")) > 0);
    assert_eq!(runtime().sweep(), Ok(0), "the other gateway is alive");
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    assert!(!processes_with("crashed-word").is_empty(), "nothing was left behind");
    assert_eq!(runtime().sweep(), Ok(1));
    assert_nothing_writes("crashed-word", &folder);
}

fn concurrent_containers_do_not_mix() {
    let one = async |word: &str| {
        let container =
            runtime().spawn(jail("cat; sleep 0.2; cat /tmp/*; hostname > /tmp/mine")).await.unwrap();
        container.finish(word.as_bytes().to_vec(), CAPS).await
    };
    let reports = on_runtime(async { tokio::join!(one("first"), one("second"), one("third")) });
    for (report, word) in [(reports.0, "first"), (reports.1, "second"), (reports.2, "third")] {
        assert_eq!((report.ending, report.stdout.as_slice()), (Ending::Exited(0), word.as_bytes()));
    }
}

fn created_containers_of_ended_gateways_are_swept() {
    let create = |labels: &[&str]| {
        let options: Vec<&str> = ["create", "--network=none", "--ulimit=nofile=64:64"]
            .into_iter()
            .chain(labels.iter().copied())
            .collect();
        ask(&[options.as_slice(), &[IMAGE, "/bin/true"]].concat())
    };
    let dead =
        create(&["--label=toolgate.owner=1.1.another-boot.pid1", "--label=toolgate.expires=99999999999"]);
    let late = create(&["--label=toolgate.owner=1.1.x.y", "--label=toolgate.expires=1"]);
    let strange = create(&["--label=toolgate.owner=whoever"]);
    let foreign = create(&[]);
    let (living, left) = on_runtime(async {
        let living = runtime().spawn(jail("true")).await.unwrap();
        assert_eq!(runtime().sweep(), Ok(2));
        let left = ask(&["ps", "--all", "--quiet", "--no-trunc"]);
        (living.finish(Vec::new(), CAPS).await, left)
    });
    assert_eq!(living.ending, Ending::Exited(0));
    let left: Vec<&str> = left.lines().collect();
    assert_eq!(left.len(), 3);
    assert!(left.contains(&strange.as_str()) && left.contains(&foreign.as_str()));
    assert!(!left.contains(&dead.as_str()) && !left.contains(&late.as_str()));
    ask(&["rm", "--force", &strange, &foreign]);
}
