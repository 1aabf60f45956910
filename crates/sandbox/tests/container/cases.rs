//! What a command gets: its words, its input, its files, its user.

use std::{fs, os::unix::fs::MetadataExt};

use toolgate_sandbox::{
    Access, ContainerJail, ContainerWall, Ending, ImageName, RuntimeKind, SpawnError, probe_runtime,
};

use crate::driver::{
    CAPS, Case, ODD_IMAGE, USER, ask, bind, expected, finish, finish_with, folder, is_empty_of_containers,
    jail, jail_of, kind, on_runtime, output, refusal, runtime, runtime_through, wait_until,
    without_a_runtime,
};
use crate::engines::VOLUME_IMAGE;

pub const ALL: &[Case] = &[
    Case { name: "a_command_is_fed_and_heard", body: a_command_is_fed_and_heard },
    Case { name: "codes_are_the_programs_own", body: codes_are_the_programs_own },
    Case {
        name: "a_program_that_is_not_there_is_told_before",
        body: a_program_that_is_not_there_is_told_before,
    },
    Case {
        name: "an_image_that_is_not_there_is_never_fetched",
        body: an_image_that_is_not_there_is_never_fetched,
    },
    Case { name: "the_strength_is_what_holds", body: the_strength_is_what_holds },
    Case { name: "a_wall_that_is_missing_refuses", body: a_wall_that_is_missing_refuses },
    Case { name: "a_host_without_a_bound_refuses", body: a_host_without_a_bound_refuses },
    Case {
        name: "variables_arrive_and_are_seen_by_nobody_else",
        body: variables_arrive_and_are_seen_by_nobody_else,
    },
    Case { name: "binds_are_read_or_written_as_granted", body: binds_are_read_or_written_as_granted },
    Case { name: "an_images_own_wishes_do_not_count", body: an_images_own_wishes_do_not_count },
    Case { name: "a_client_that_is_found_answers", body: a_client_that_is_found_answers },
    Case { name: "without_a_runtime_the_tests_fail", body: without_a_runtime_the_tests_fail },
];

fn a_command_is_fed_and_heard() {
    let mut one = jail("cat; echo fault >&2; pwd; hostname; id -u; id -g; exit 3");
    one.cwd = "/tmp".into();
    let report = finish_with(one, b"input\n", CAPS);
    assert_eq!(report.ending, Ending::Exited(3));
    assert_eq!(String::from_utf8(report.stdout).unwrap(), format!("input\n/tmp\ntool\n{USER}\n{USER}\n"));
    assert_eq!((report.stderr.as_slice(), report.stderr_cut), (b"fault\n".as_slice(), false));
}

fn codes_are_the_programs_own() {
    for code in [0, 1, 125, 126, 127, 137, 255] {
        assert_eq!(finish(jail(&format!("exit {code}"))).ending, Ending::Exited(code));
    }
}

fn a_program_that_is_not_there_is_told_before() {
    for program in ["/bin/absent", "--privileged", "/etc"] {
        let SpawnError::Failed(why) = refusal(jail_of(&[program, "--volume=/:/host"])) else {
            panic!("{program}")
        };
        assert!(why.starts_with(&format!("{}: ", kind().name())) && !why.contains('\n'), "{why}");
    }
}

fn an_image_that_is_not_there_is_never_fetched() {
    let mut one = jail("true");
    one.image = ImageName::parse("localhost:1/absent:1").unwrap();
    let SpawnError::Failed(why) = refusal(one) else { panic!("it is there") };
    assert!(why.contains("absent"), "{why}");
}

fn the_strength_is_what_holds() {
    let report =
        finish(jail("grep -E 'CapEff|CapBnd|NoNewPrivs|^Seccomp:' /proc/self/status; ls /sys/class/net"));
    let text = String::from_utf8(report.stdout).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let none = "0000000000000000";
    assert_eq!(words, ["CapEff:", none, "CapBnd:", none, "NoNewPrivs:", "1", "Seccomp:", "2", "lo"]);
    let missing: Vec<_> = expected().into_iter().filter(|wall| !report.strength.has(*wall)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(report.strength.names()[0], format!("container:{}", kind().name()));
}

fn a_wall_that_is_missing_refuses() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root's containers lack a user namespace");
        return;
    }
    let mut one = jail("true");
    one.required = &[ContainerWall::MemoryLimit, ContainerWall::UserNamespace];
    let SpawnError::TooWeak { missing } = refusal(one) else { panic!("it is strong enough") };
    assert_eq!(missing, ["user-namespace"]);
}

/// A host whose control groups do not bound memory.
fn a_host_without_a_bound_refuses() {
    let folder = folder();
    let unbounded = runtime_through(folder.path(), UNBOUNDED);
    let spawn = |required| {
        let one = ContainerJail { required, ..jail("true") };
        on_runtime(async {
            unbounded.spawn(one).await.map(|made| made.strength().has(ContainerWall::MemoryLimit))
        })
    };
    let Err(SpawnError::TooWeak { missing }) = spawn(ContainerWall::BOUNDED) else { panic!("it was made") };
    assert_eq!(missing, ["memory-limit"]);
    // Whoever does not ask for it gets a container, and is told that the wall is not there.
    assert!(matches!(spawn(&[]), Ok(false)));
    // It is removed by way of the script, which goes with its folder.
    wait_until("the end of the container", is_empty_of_containers);
}

const UNBOUNDED: &str = r#"case " $* " in
  *" info "*) CLIENT "$@" | sed 's/"memory"/"absent"/; s/"MemoryLimit":true/"MemoryLimit":false/' ;;
  *) exec CLIENT "$@" ;;
esac
"#;

fn variables_arrive_and_are_seen_by_nobody_else() {
    let mut one = jail("env; while [ ! -e /w/go ]; do sleep 0.1; done");
    let folder = folder();
    one.view.binds.push(bind(folder.path(), "/w", Access::Write));
    // Names that would steer the runtime's client, and values that look like lines of its files.
    let variables = [
        ("TOKEN", "s3cr3t-value \"'$#=\\ x  "),
        ("LD_PRELOAD", "/w/evil.so"),
        ("CONTAINER_HOST", "tcp://attacker:1"),
        ("CONTAINERS_CONF", "/w/evil.conf"),
        ("EMPTY", ""),
        ("HASH", "# no comment"),
    ];
    one.env = variables.map(|(name, value)| (name.into(), value.into())).to_vec();
    let container = on_runtime(async {
        let container = runtime().spawn(one).await.unwrap();
        let names = crate::driver::processes_with("s3cr3t-value");
        assert!(names.is_empty(), "{names:?}");
        if kind() == RuntimeKind::Podman {
            let stored = ask(&["inspect", "--latest", "--format", "{{.Config.CreateCommand}}"]);
            assert!(stored.contains("create") && !stored.contains("s3cr3t-value"), "{stored}");
        }
        fs::write(folder.path().join("go"), "").unwrap();
        container.finish(Vec::new(), CAPS).await
    });
    let text = String::from_utf8(container.stdout).unwrap();
    for (name, value) in variables {
        assert!(text.lines().any(|line| line == format!("{name}={value}")), "{name} in {text}");
    }
    assert!(!text.contains("_proxy="), "{text}");
}

fn binds_are_read_or_written_as_granted() {
    let (read, write, run) = (folder(), folder(), folder());
    fs::write(read.path().join("file"), "content").unwrap();
    fs::copy("/bin/busybox", run.path().join("true")).unwrap();
    let mut one = jail(
        "cat /r/file; touch /r/new && echo read-only was written; echo kept > /w/new; \
         cp /bin/busybox /w/true; /w/true && echo written was run; /x/true && echo ran",
    );
    one.view.binds.push(bind(read.path(), "/r", Access::Read));
    one.view.binds.push(bind(write.path(), "/w", Access::Write));
    one.view.binds.push(bind(run.path(), "/x", Access::Execute));
    // Docker has no option against it; the strength says so.
    let was_run = if kind() == RuntimeKind::Podman { "" } else { "written was run\n" };
    assert_eq!(output(one), format!("content{was_run}ran\n"));
    assert_eq!(fs::read_to_string(write.path().join("new")).unwrap(), "kept\n");
    if rustix::process::geteuid().is_root() {
        assert_eq!(fs::metadata(write.path().join("new")).unwrap().uid(), USER);
    }
}

fn an_images_own_wishes_do_not_count() {
    let of = |image| {
        let mut one = jail("echo $FROM_IMAGE; touch /data/x && echo a volume; ls /tmp | wc -l");
        one.image = ImageName::parse(image).unwrap();
        one
    };
    assert_eq!(output(of(ODD_IMAGE)), "yes\n0\n");
    // Docker cannot make a container of such an image without the volume.
    match kind() {
        RuntimeKind::Podman => assert_eq!(output(of(VOLUME_IMAGE)), "yes\n0\n"),
        RuntimeKind::Docker => {
            let SpawnError::Failed(why) = refusal(of(VOLUME_IMAGE)) else { panic!("it was made otherwise") };
            assert!(why.contains("there is an unexpected volume at `/data`"), "{why}");
        }
    }
}

fn a_client_that_is_found_answers() {
    match probe_runtime() {
        Ok(found) => assert!(found.to_string().contains('.')),
        Err(why) => assert!(why.to_string().starts_with("no container runtime: ")),
    }
}

/// A wall that nobody tried must not look like one that held.
fn without_a_runtime_the_tests_fail() {
    let (is_content, said) = without_a_runtime(false);
    assert!(!is_content && said.contains("FAILED"), "{said}");
    let (is_content, said) = without_a_runtime(true);
    assert!(is_content && said.contains("LEFT OUT"), "{said}");
}
