//! Commands that run through the gateway have their own namespaces, although jails are prepared ahead.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::place::{Place, Serving, token, until};

const NAMESPACES: [&str; 7] = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

/// Linux uses the number of a namespace again when the namespace is gone. Both calls must therefore be alive when they are compared.
#[test]
fn two_calls_have_different_namespaces_from_each_other_and_from_the_gateway() {
    let place = Place::new();
    let document = "\
name: wait
description: Waits for some seconds, for tests. Returns nothing.
classification: read
params:
  - {name: seconds, type: NUMBER, required: true, description: How long., testValue: 0.01}
handler:
  cli: {command: sleep, args: ['{seconds}']}
capability:
  approval: {level: auto}
";
    fs::write(place.path().join("tools/wait.yaml"), document).unwrap();
    place.ok(&["publish", "--yes"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    // A prepared jail waits for the next call when these have ended.
    for _ in 0..2 {
        let answer = serving.call(&token, "wait", &json!({ "seconds": 0.01 }));
        assert_eq!(answer["isError"], false, "{answer}");
    }
    // No other process of this host waits for so many seconds.
    let seconds = [1, 2].map(|number| 1_000_000 + std::process::id() * 10 + number);
    let clients = seconds.map(|seconds| serving.begin(&token, "wait", &json!({ "seconds": seconds })));
    let [one, two] = seconds.map(|seconds| namespaces(&process(&format!("sleep\0{seconds}\0"))));
    let gateway = namespaces(&PathBuf::from(format!("/proc/{}", serving.child.id())));
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    for kind in NAMESPACES {
        // A jail of root has no user namespace.
        if kind == "user" && is_root {
            continue;
        }
        assert_ne!(one[kind], two[kind], "{kind}: the two calls");
        assert_ne!(one[kind], gateway[kind], "{kind}: the first call and the gateway");
        assert_ne!(two[kind], gateway[kind], "{kind}: the second call and the gateway");
    }
    drop(clients);
    serving.stop();
}

/// The directory in `/proc` of the process with this command line, which may still have to start.
fn process(command_line: &str) -> PathBuf {
    let mut found = None;
    until("the command runs", || {
        let mut all = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        found = all.find(|process| {
            fs::read(process.join("cmdline")).is_ok_and(|line| line == command_line.as_bytes())
        });
        found.is_some()
    });
    found.unwrap()
}

fn namespaces(process: &Path) -> BTreeMap<&'static str, PathBuf> {
    NAMESPACES.into_iter().map(|kind| (kind, fs::read_link(process.join("ns").join(kind)).unwrap())).collect()
}
