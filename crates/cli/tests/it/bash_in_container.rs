//! The shipped `bash` passes its test run, in a container from an image that is made here, where Podman runs.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::{Command, Output},
};

#[test]
fn bash_passes_in_a_container() {
    if let Some(why) = missing() {
        return left_out(&why);
    }
    // One of them does not know every kernel's control groups.
    for low_level in ["crun", "runc"] {
        let world = tempfile::tempdir().unwrap();
        let output = run(world.path(), low_level);
        if output.status.code() == Some(NO_PODMAN) {
            continue;
        }
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        let is_passed = said.contains("pass  bash\n") && said.contains("1 tool passed, 0 failed");
        assert!(output.status.success() && is_passed, "{said}");
        return;
    }
    left_out("Podman runs no container here");
}

fn missing() -> Option<String> {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let programs = ["/usr/bin/podman", "/bin/bash"];
    let absent = programs.iter().find(|program| !Path::new(program).exists());
    match absent {
        Some(program) => Some(format!("there is no `{program}`; `scripts/setup-podman` helps")),
        None => (!is_root).then(|| "only root can give Podman a storage of the test's own".to_owned()),
    }
}

fn left_out(why: &str) {
    // Not `eprintln!`, which is only shown for tests that fail.
    let _ = writeln!(io::stderr(), "LEFT OUT: the test run of `bash`, for {why}");
}

fn run(world: &Path, low_level: &str) -> Output {
    Command::new("unshare")
        .args(["--mount", "sh", "-c", SCRIPT, "sh", low_level, env!("CARGO_BIN_EXE_toolgate")])
        .current_dir(world)
        .env_remove("TOOLGATE_CONFIG")
        .output()
        .unwrap()
}

/// Says that this low-level runtime does not run a container, with Toolgate or without.
const NO_PODMAN: i32 = 77;

/// The gateway asks Podman without options, so that its storage is chosen where Podman looks for it.
const SCRIPT: &str = r#"set -e
mkdir -p image/bin image/dev image/etc image/proc image/run image/sys image/tmp etc workspace/tools
chmod 1777 image/tmp
cp /bin/bash image/bin/bash
for library in $(ldd /bin/bash | grep -o '/[^ )]*'); do
  mkdir -p "image$(dirname "$library")"
  cp -L "$library" "image$library"
done
tar --owner=0 --group=0 --numeric-owner -C image -cf image.tar .
cp -a /etc/. etc/
mkdir -p etc/containers
printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_backend = "none"\nruntime = "%s"\n' "$1" > etc/containers/containers.conf
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/run"\n' "$PWD" "$PWD" > etc/containers/storage.conf
mount --bind etc /etc
podman=/usr/bin/podman
image=localhost/toolgate-bash:1
$podman import --quiet image.tar $image > /dev/null || exit 77
$podman run --rm --network=none --pull=never --ulimit=nofile=256:256 --ulimit=nproc=64:64 $image /bin/bash -c true || {
  $podman rm --all --force --time=0 > /dev/null 2>&1
  exit 77
}
cd workspace
printf 'version: 1\ncommands: {image: "%s"}\ncatalog: {include: {names: [bash]}}\n' "$image" > toolgate.yaml
"$2" test
"#;
