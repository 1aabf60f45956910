//! Tests what a command in a container gets: arguments, input, files, user.

use std::{fs, os::unix::fs::MetadataExt};

use toolgate_sandbox::{
    Access, ContainerJail, Ending, ImageName, JailKind, Layer, LayerSet, RuntimeKind, SpawnError,
    probe_runtime,
};

use crate::driver::{
    CAPS, Case, ODD_IMAGE, USER, ask, bind, expected, finish, finish_with, folder, is_empty_of_containers,
    jail, jail_of, kind, on_runtime, output, refusal, runtime, runtime_through, wait_until,
    without_a_runtime,
};
use crate::engines::VOLUME_IMAGE;

pub const ALL: &[Case] = &[
    Case {
        name: "command_gets_input_and_output_is_captured",
        body: command_gets_input_and_output_is_captured,
    },
    Case { name: "exit_codes_are_passed_through", body: exit_codes_are_passed_through },
    Case {
        name: "missing_program_is_reported_before_the_start",
        body: missing_program_is_reported_before_the_start,
    },
    Case { name: "missing_image_is_never_pulled", body: missing_image_is_never_pulled },
    Case { name: "strength_lists_the_layers_in_force", body: strength_lists_the_layers_in_force },
    Case {
        name: "missing_required_layer_prevents_the_start",
        body: missing_required_layer_prevents_the_start,
    },
    Case { name: "host_without_limits_prevents_the_start", body: host_without_limits_prevents_the_start },
    Case { name: "variables_arrive_and_stay_private", body: variables_arrive_and_stay_private },
    Case {
        name: "binds_are_readable_or_writable_as_granted",
        body: binds_are_readable_or_writable_as_granted,
    },
    Case { name: "image_settings_are_ignored", body: image_settings_are_ignored },
    Case { name: "detected_runtime_responds", body: detected_runtime_responds },
    Case { name: "tests_fail_without_a_runtime", body: tests_fail_without_a_runtime },
];

fn command_gets_input_and_output_is_captured() {
    let mut one = jail("cat; echo fault >&2; pwd; hostname; id -u; id -g; exit 3");
    one.cwd = "/tmp".into();
    let report = finish_with(one, b"input\n", CAPS);
    assert_eq!(report.ending, Ending::Exited(3));
    assert_eq!(String::from_utf8(report.stdout).unwrap(), format!("input\n/tmp\ntool\n{USER}\n{USER}\n"));
    assert_eq!((report.stderr.as_slice(), report.stderr_cut), (b"fault\n".as_slice(), false));
}

fn exit_codes_are_passed_through() {
    for code in [0, 1, 125, 126, 127, 137, 255] {
        assert_eq!(finish(jail(&format!("exit {code}"))).ending, Ending::Exited(code));
    }
}

fn missing_program_is_reported_before_the_start() {
    for program in ["/bin/absent", "--privileged", "/etc"] {
        let SpawnError::Failed(why) = refusal(jail_of(&[program, "--volume=/:/host"])) else {
            panic!("{program}")
        };
        assert!(why.starts_with(&format!("{}: ", kind().name())) && !why.contains('\n'), "{why}");
    }
}

fn missing_image_is_never_pulled() {
    let mut one = jail("true");
    one.image = ImageName::parse("localhost:1/absent:1").unwrap();
    let SpawnError::Failed(why) = refusal(one) else { panic!("it is there") };
    assert!(why.contains("absent"), "{why}");
}

fn strength_lists_the_layers_in_force() {
    let report =
        finish(jail("grep -E 'CapEff|CapBnd|NoNewPrivs|^Seccomp:' /proc/self/status; ls /sys/class/net"));
    let text = String::from_utf8(report.stdout).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let none = "0000000000000000";
    assert_eq!(words, ["CapEff:", none, "CapBnd:", none, "NoNewPrivs:", "1", "Seccomp:", "2", "lo"]);
    let missing: Vec<_> = expected().into_iter().filter(|layer| !report.strength.has(*layer)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(report.strength.names()[0], format!("container:{}", kind().name()));
}

fn missing_required_layer_prevents_the_start() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root's containers lack a user namespace");
        return;
    }
    let mut one = jail("true");
    one.required = LayerSet::of(&[Layer::MemoryLimit, Layer::UserNamespace]);
    let SpawnError::TooWeak { missing } = refusal(one) else { panic!("it is strong enough") };
    assert_eq!(missing, ["user-namespace"]);
}

/// A host whose control groups do not limit memory.
fn host_without_limits_prevents_the_start() {
    let folder = folder();
    let unbounded = runtime_through(folder.path(), UNBOUNDED);
    let spawn = |required| {
        let one = ContainerJail { required, ..jail("true") };
        on_runtime(async { unbounded.spawn(one).await.map(|made| made.strength().has(Layer::MemoryLimit)) })
    };
    let Err(SpawnError::TooWeak { missing }) = spawn(JailKind::Container.hardened()) else {
        panic!("it was made")
    };
    assert_eq!(missing, ["memory-limit"]);
    // A caller that does not require the limit gets a container, and its strength lacks the layer.
    assert!(matches!(spawn(LayerSet::NONE), Ok(false)));
    // The removal uses the script, which is deleted with its directory.
    wait_until("the end of the container", is_empty_of_containers);
}

const UNBOUNDED: &str = r#"case " $* " in
  *" info "*) CLIENT "$@" | sed 's/"memory"/"absent"/; s/"MemoryLimit":true/"MemoryLimit":false/' ;;
  *) exec CLIENT "$@" ;;
esac
"#;

fn variables_arrive_and_stay_private() {
    let mut one = jail("env; while [ ! -e /w/go ]; do sleep 0.1; done");
    let folder = folder();
    one.view.binds.push(bind(folder.path(), "/w", Access::Write));
    // Names that would affect the runtime's client, and values that look like lines of its files.
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

fn binds_are_readable_or_writable_as_granted() {
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
    // Docker has no option for this; the strength reports it.
    let was_run = if kind() == RuntimeKind::Podman { "" } else { "written was run\n" };
    assert_eq!(output(one), format!("content{was_run}ran\n"));
    assert_eq!(fs::read_to_string(write.path().join("new")).unwrap(), "kept\n");
    if rustix::process::geteuid().is_root() {
        assert_eq!(fs::metadata(write.path().join("new")).unwrap().uid(), USER);
    }
}

fn image_settings_are_ignored() {
    let of = |image| {
        let mut one = jail("echo $FROM_IMAGE; touch /data/x && echo a volume; ls /tmp | wc -l");
        one.image = ImageName::parse(image).unwrap();
        one
    };
    assert_eq!(output(of(ODD_IMAGE)), "yes\n0\n");
    // Docker cannot create a container of such an image without the volume.
    match kind() {
        RuntimeKind::Podman => assert_eq!(output(of(VOLUME_IMAGE)), "yes\n0\n"),
        RuntimeKind::Docker => {
            let SpawnError::Failed(why) = refusal(of(VOLUME_IMAGE)) else { panic!("it was made otherwise") };
            assert!(why.contains("there is an unexpected volume at `/data`"), "{why}");
        }
    }
}

fn detected_runtime_responds() {
    match probe_runtime() {
        Ok(found) => assert!(found.to_string().contains('.')),
        Err(why) => assert!(why.to_string().starts_with("no container runtime: ")),
    }
}

/// A layer that was not tested must not look like one that held.
fn tests_fail_without_a_runtime() {
    let (is_content, said) = without_a_runtime(false);
    assert!(!is_content && said.contains("FAILED"), "{said}");
    let (is_content, said) = without_a_runtime(true);
    assert!(is_content && said.contains("LEFT OUT"), "{said}");
}
