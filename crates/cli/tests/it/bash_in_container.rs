//! The shipped `bash` passes its test run, in a container from an image that is made here, and reaches what a person lets it reach.
//!
//! Where Podman runs no container this fails, unless `TOOLGATE_TESTS_NO_CONTAINERS=1` chose to leave it out; then it says so.

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::{Command, Output},
    sync::{Arc, Mutex},
    thread,
};

use tempfile::TempDir;

#[test]
fn bash_passes_in_a_container() {
    let Some((_, said)) = in_a_container("the test run of `bash`", TEST_RUN, &[]) else { return };
    assert!(said.contains("pass  bash\n") && said.contains("1 tool passed, 0 failed"), "{said}");
}

/// Nothing before the yes, one host after it, and for one call.
#[test]
fn a_person_lets_bash_reach_one_host() {
    if !is_root() {
        let _ = writeln!(io::stderr(), "LEFT OUT: the way out of a container, which only root can open");
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    thread::spawn(move || {
        for mut stream in server.incoming().map_while(Result::ok) {
            let mut line = String::new();
            let _ = BufReader::new(&stream).read_line(&mut line);
            heard.lock().unwrap().push(line.trim().to_owned());
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let Some((world, said)) = in_a_container("the way out of `bash`", APPROVALS, &[&port]) else { return };
    let steps = [
        "asked for a host: 1",
        "said: HTTP/1.1 200 OK",
        "asked again: 1",
        "said: HTTP/1.1 403 toolgate refused: host-not-in-allowlist",
        "without a host: 1",
    ];
    let lines: Vec<&str> = said.lines().filter(|line| steps.contains(line)).collect();
    assert_eq!(lines, steps, "{said}");
    assert_eq!(*asked.lock().unwrap(), ["GET /first HTTP/1.1"], "{said}");
    let journal = journal(world.path());
    let reached = format!(r#""target":"allowed.test:{port}""#);
    for part in [reached.as_str(), "network-namespace", "network-none", "host-not-in-allowlist"] {
        assert!(journal.contains(part), "{part} in {journal}");
    }
}

/// The world that a script left and what it said, with the first low-level runtime that works; `None` where that was left out.
fn in_a_container(what: &str, script: &str, words: &[&str]) -> Option<(TempDir, String)> {
    if env::var_os("TOOLGATE_TESTS_NO_CONTAINERS").is_some_and(|value| value == "1") {
        // Not `eprintln!`, which is only shown for tests that fail.
        let _ = writeln!(io::stderr(), "LEFT OUT: {what} in a container (TOOLGATE_TESTS_NO_CONTAINERS=1)");
        return None;
    }
    let mut reasons = String::new();
    // One of them does not know every kernel's control groups.
    for low_level in ["crun", "runc"] {
        let world = tempfile::tempdir().unwrap();
        let output = run(world.path(), low_level, script, words);
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        if output.status.code() == Some(NO_PODMAN) {
            reasons.push_str(&said);
            continue;
        }
        assert!(output.status.success(), "{said}");
        return Some((world, said));
    }
    panic!(
        "Podman runs no container here; `scripts/setup-podman` says why, and TOOLGATE_TESTS_NO_CONTAINERS=1 leaves this out:\n{reasons}"
    );
}

fn run(world: &Path, low_level: &str, script: &str, words: &[&str]) -> Output {
    let mut command = if is_root() {
        let mut apart = Command::new("unshare");
        apart.args(["--mount", "sh"]);
        apart
    } else {
        Command::new("sh")
    };
    command
        .args(["-c", &format!("{WORLD}{script}"), "sh", low_level, env!("CARGO_BIN_EXE_toolgate")])
        .args(words)
        .current_dir(world)
        .env_remove("TOOLGATE_CONFIG")
        .output()
        .unwrap()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// What the calls left, in one text.
fn journal(world: &Path) -> String {
    let mut text = String::new();
    let mut folders = vec![world.join("workspace/.toolgate")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|ending| ending == "jsonl") => {
                    text.push_str(&fs::read_to_string(path).unwrap());
                }
                _ => {}
            }
        }
    }
    text
}

/// Says that this low-level runtime does not run a container, with Toolgate or without.
const NO_PODMAN: i32 = 77;

/// The gateway asks Podman without options, so that its storage is chosen where Podman looks for it: for root that is `/etc`,
/// for an ordinary user the home.
const WORLD: &str = r#"set -e
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
printf 'version: 1\ncommands: {image: "%s"}\ncatalog: {include: {names: [bash]}}\npolicy: {overrides: overrides.yaml}\n' "$image" > toolgate.yaml
"#;

const TEST_RUN: &str = r#"echo 'tools: {}' > overrides.yaml
"$2" test
"#;

/// Calls, says yes where a person is asked, and calls again. `$3` is the port of the one server there is, which has two names.
const APPROVALS: &str = r#"echo '127.0.0.1 allowed.test other.test' >> /etc/hosts
echo 'tools: {bash: {capability: {network: {blockPrivateIPs: false}}}}' > overrides.yaml
echo 'auth: {local: {permissions: [allow_destructive]}}' >> toolgate.yaml
"$2" test
get() {
  printf '%s' "exec 3<>/dev/tcp/127.0.0.1/3128 || exit 1; printf 'GET http://$1 HTTP/1.1\r\nHost: ${1%%/*}\r\n\r\n' >&3; read -r line <&3; echo \"said: \${line%?}\""
}
call() {
  code=0
  "$toolgate" call bash "$@" > said 2>&1 || code=$?
}
agree() {
  id=$(grep -o 'apr_[A-Za-z0-9_-]*' said | head -n 1)
  "$toolgate" approvals approve "$id"
}
toolgate=$2
call "command=$(get "allowed.test:$3/first")" host=allowed.test
echo "asked for a host: $code"
agree
call "command=$(get "allowed.test:$3/first")" host=allowed.test
cat said
call "command=$(get "allowed.test:$3/first")" host=allowed.test
echo "asked again: $code"
call "command=$(get "other.test:$3/second")" host=allowed.test
agree
call "command=$(get "other.test:$3/second")" host=allowed.test
cat said
call "command=$(get "allowed.test:$3/third")"
agree
call "command=$(get "allowed.test:$3/third")"
echo "without a host: $code"
cat said
"#;
