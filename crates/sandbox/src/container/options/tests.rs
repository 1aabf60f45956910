//! Snapshots of the arguments, and hostile values in every position.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::container::{ContainerLimits, ContainerUser, RuntimeProgram, runtime::Offers};

fn runtime(kind: RuntimeKind, version: Version, offer: Offer, owner: RuntimeOwner) -> Runtime {
    let program = RuntimeProgram { kind, path: "/usr/bin/x".into(), options: Vec::new() };
    let offers = Offers { memory: offer, cpu: offer, processes: offer, seccomp: Offer::There, owner };
    Runtime { program, version, offers, ceiling: 5000 }
}

fn podman() -> Runtime {
    runtime(RuntimeKind::Podman, Version(4, 3), Offer::There, RuntimeOwner::Root)
}

fn docker() -> Runtime {
    runtime(RuntimeKind::Docker, Version(27, 0), Offer::There, RuntimeOwner::Root)
}

fn plan(argv: &[&str], mounts: Vec<ContainerMount>) -> Plan {
    let limits = ContainerLimits {
        memory_bytes: 1 << 26,
        millicpus: 1500,
        processes: 64,
        open_files: 256,
        file_bytes: 1 << 20,
    };
    Plan::for_tests("localhost/tool:1", argv, ContainerUser { uid: 1000, gid: 1000 }, limits, mounts)
}

fn badge() -> Badge {
    Badge { name: "toolgate-1".to_owned(), owner: "7.8.boot.pid9".to_owned(), expires: 99 }
}

fn mount(source: &str, target: &str, access: Access) -> ContainerMount {
    ContainerMount::for_tests(source, target, access)
}

#[track_caller]
fn check(runtime: &Runtime, plan: &Plan, expect: &str) {
    let arguments = runtime.creation(plan, &badge()).join("\n");
    assert_eq!(arguments, expect.trim(), "\n{arguments}\n");
}

#[test]
fn arguments_for_podman() {
    let mounts = vec![mount("/srv/in", "/in", Access::Read), mount("/srv/out", "/out", Access::Write)];
    check(&podman(), &plan(&["/bin/echo", "--privileged"], mounts), include_str!("podman.txt"));
}

#[test]
fn arguments_for_docker() {
    let mounts = vec![mount("/srv/in", "/in", Access::Execute), mount("/srv/out", "/out", Access::Write)];
    check(&docker(), &plan(&["/bin/echo", "-v"], mounts).with_latch(), include_str!("docker.txt"));
    let old = runtime(RuntimeKind::Docker, Version(24, 9), Offer::There, RuntimeOwner::Root);
    assert!(old.mount(&mount("/a", "/b", Access::Write)).ends_with(",bind-nonrecursive"));
}

#[test]
fn rootless_podman_without_cgroups_requests_available_limits_only() {
    let weak = runtime(RuntimeKind::Podman, Version(5, 0), Offer::Missing, RuntimeOwner::OrdinaryUser);
    let arguments = weak.creation(&plan(&["/bin/true"], Vec::new()), &badge());
    let has = |word: &str| arguments.iter().any(|other| other == word);
    assert!(
        has("--userns=keep-id:uid=1000,gid=1000") && has("--cgroups=disabled") && has("--ulimit=nproc=64:64")
    );
    for limit in ["--memory", "--cpus", "--pids-limit", "--cgroupns"] {
        assert!(!arguments.iter().any(|word| word.starts_with(limit)), "{limit}");
    }
    for layer in LAYERS {
        assert!(has(layer), "{layer}");
    }
}

#[test]
fn seccomp_is_never_disabled_and_nothing_is_privileged() {
    for runtime in [podman(), docker()] {
        let arguments = runtime.creation(&plan(&["/bin/true"], Vec::new()), &badge());
        for word in &arguments {
            for bad in ["seccomp", "unconfined", "privileged", "unmask", "cap-add", "--device", "=host"] {
                assert!(!word.contains(bad), "{word}");
            }
        }
    }
}

#[test]
fn egress_requires_root_and_a_rootful_runtime() {
    let ordinary = |kind| runtime(kind, Version(27, 0), Offer::There, RuntimeOwner::OrdinaryUser);
    for runtime in [podman(), docker()] {
        assert_eq!(runtime.check_egress().is_ok(), rustix::process::geteuid().is_root());
    }
    for kind in [RuntimeKind::Podman, RuntimeKind::Docker] {
        let why = ordinary(kind).check_egress().unwrap_err();
        assert!(why.contains("as root") && why.contains("sandbox: process"), "{why}");
    }
}

#[test]
fn monitor_deadline_is_slightly_later_and_never_wraps() {
    let mut long = plan(&["/bin/true"], Vec::new());
    long.deadline = Duration::MAX;
    assert!(podman().creation(&long, &badge()).contains(&format!("--timeout={}", u32::MAX)));
}

/// Parses the value of `--mount` like the runtimes do: one record of RFC 4180.
fn read_record(text: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let at_start = fields.last()?.is_empty();
        match letter {
            ',' => fields.push(String::new()),
            '"' if at_start => loop {
                match letters.next()? {
                    '"' if letters.peek() == Some(&'"') => fields.last_mut()?.push(letters.next()?),
                    '"' => break,
                    other => fields.last_mut()?.push(other),
                }
            },
            '"' => return None,
            other => fields.last_mut()?.push(other),
        }
    }
    Some(fields)
}

fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("--privileged".to_owned()),
        Just("--".to_owned()),
        Just(",readonly=false".to_owned()),
        Just(",target=/etc".to_owned()),
        Just("\"".to_owned()),
        Just(":rw".to_owned()),
        Just("-v/:/host".to_owned()),
        Just("=".to_owned()),
        Just(" ".to_owned()),
        "[^\\p{C}/]{0,6}",
    ];
    prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_argument_changes_the_options(argv in prop::collection::vec(hostile(), 1..8)) {
        for runtime in [podman(), docker()] {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            let arguments = runtime.creation(&plan(&argv, Vec::new()), &badge());
            let plain = runtime.creation(&plan(&[], Vec::new()), &badge());
            let (head, tail) = arguments.split_at(plain.len());
            prop_assert_eq!(head, plain.as_slice());
            prop_assert_eq!(tail, argv.as_slice());
        }
    }

    #[test]
    fn no_bind_path_changes_its_options(source in hostile(), target in hostile()) {
        let (source, target) = (format!("/{source}"), format!("/{target}"));
        for runtime in [podman(), docker()] {
            for access in [Access::Read, Access::Write] {
                let hostile = runtime.creation(&plan(&[], vec![mount(&source, &target, access)]), &badge());
                let plain = runtime.creation(&plan(&[], vec![mount("/s", "/t", access)]), &badge());
                prop_assert_eq!(hostile.len(), plain.len());
                for (word, plain) in hostile.iter().zip(&plain) {
                    let Some(record) = plain.strip_prefix("--mount=") else {
                        prop_assert_eq!(word, plain);
                        continue;
                    };
                    let expected = record.replace("source=/s", "\0").replace("target=/t", "\u{1}");
                    let fields = read_record(word.strip_prefix("--mount=").unwrap()).unwrap();
                    let asked: Vec<String> = expected
                        .split(',')
                        .map(|field| field.replace('\0', &format!("source={source}")).replace('\u{1}', &format!("target={target}")))
                        .collect();
                    prop_assert_eq!(fields, asked);
                }
            }
        }
    }

    #[test]
    fn no_variable_is_in_the_arguments(name in "[A-Z_]{1,8}", value in "[a-z0-9]{12,20}") {
        let mut with = plan(&["/bin/true"], Vec::new());
        with.env = vec![(name, value)];
        let without = plan(&["/bin/true"], Vec::new());
        prop_assert_eq!(podman().creation(&with, &badge()), podman().creation(&without, &badge()));
    }
}
