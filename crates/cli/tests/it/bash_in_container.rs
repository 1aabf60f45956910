//! The shipped `bash` passes its test run, in a container from an image that is made here.
//!
//! Where Podman runs no container this fails, unless `TOOLGATE_TESTS_NO_CONTAINERS=1` chose to leave it out; then it says so.

use std::{
    env, fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::{Command, Output},
};

#[test]
fn bash_passes_in_a_container() {
    if env::var_os("TOOLGATE_TESTS_NO_CONTAINERS").is_some_and(|value| value == "1") {
        // Not `eprintln!`, which is only shown for tests that fail.
        let _ = writeln!(
            io::stderr(),
            "LEFT OUT: the test run of `bash` in a container (TOOLGATE_TESTS_NO_CONTAINERS=1)"
        );
        return;
    }
    let mut reasons = String::new();
    // One of them does not know every kernel's control groups.
    for low_level in ["crun", "runc"] {
        let world = tempfile::tempdir().unwrap();
        let output = run(world.path(), low_level);
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        if output.status.code() == Some(NO_PODMAN) {
            reasons.push_str(&said);
            continue;
        }
        let is_passed = said.contains("pass  bash\n") && said.contains("1 tool passed, 0 failed");
        assert!(output.status.success() && is_passed, "{said}");
        return;
    }
    panic!(
        "Podman runs no container here; `scripts/setup-podman` says why, and TOOLGATE_TESTS_NO_CONTAINERS=1 leaves this out:\n{reasons}"
    );
}

fn run(world: &Path, low_level: &str) -> Output {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = if is_root {
        let mut apart = Command::new("unshare");
        apart.args(["--mount", "sh"]);
        apart
    } else {
        Command::new("sh")
    };
    command
        .args(["-c", SCRIPT, "sh", low_level, env!("CARGO_BIN_EXE_toolgate")])
        .current_dir(world)
        .env_remove("TOOLGATE_CONFIG")
        .output()
        .unwrap()
}

/// Says that this low-level runtime does not run a container, with Toolgate or without.
const NO_PODMAN: i32 = 77;

/// The gateway asks Podman without options, so that its storage is chosen where Podman looks for it: for root that is `/etc`,
/// for an ordinary user the home.
const SCRIPT: &str = r#"set -e
podman=/usr/bin/podman
[ -x $podman ] || { echo "there is no $podman"; exit 77; }
mkdir -p image/bin image/dev image/etc image/proc image/run image/sys image/tmp workspace/tools
chmod 1777 image/tmp
cp /bin/bash image/bin/bash
for library in $(ldd /bin/bash | grep -o '/[^ )]*'); do
  mkdir -p "image$(dirname "$library")"
  cp -L "$library" "image$library"
done
tar --owner=0 --group=0 --numeric-owner -C image -cf image.tar .
if [ "$(id -u)" -eq 0 ]; then
  settings=etc/containers
  mkdir -p etc
  cp -a /etc/. etc/
else
  settings=home/.config/containers
  export HOME="$PWD/home"
  unset XDG_CONFIG_HOME
fi
mkdir -p "$settings"
printf '[engine]\ncgroup_manager = "cgroupfs"\nevents_backend = "none"\nruntime = "%s"\n' "$1" > "$settings/containers.conf"
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/run"\n' "$PWD" "$PWD" > "$settings/storage.conf"
[ "$(id -u)" -ne 0 ] || mount --bind etc /etc
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
