//! The shipped `bash` passes its test run in a container, and reaches a host only after approval.
//!
//! Runs with Podman and with Docker, and fails if one of them cannot run containers. `TOOLGATE_TESTS_NO_CONTAINERS=1` skips it with a
//! message.

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
    for runtime in RUNTIMES {
        let Some((_, said)) = in_a_container("the test run of `bash`", runtime, TEST_RUN, &[]) else {
            continue;
        };
        assert!(said.contains("pass  bash\n") && said.contains("1 tool passed, 0 failed"), "{said}");
    }
}

/// No host before the approval; afterwards one host for one call.
#[test]
fn approval_lets_bash_reach_one_host() {
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
    for runtime in RUNTIMES {
        asked.lock().unwrap().clear();
        check_approvals(runtime, &port, &asked);
    }
}

#[track_caller]
fn check_approvals(runtime: &'static [&'static str], port: &str, asked: &Mutex<Vec<String>>) {
    let Some((world, said)) = in_a_container("the way out of `bash`", runtime, APPROVALS, &[port]) else {
        return;
    };
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

/// Runs a script with the first runtime setup that works. Returns its directory and output; `None` if skipped.
fn in_a_container(what: &str, ways: &[&str], script: &str, words: &[&str]) -> Option<(TempDir, String)> {
    if env::var_os("TOOLGATE_TESTS_NO_CONTAINERS").is_some_and(|value| value == "1") {
        // `eprintln!` would be shown only for failed tests.
        let _ = writeln!(io::stderr(), "LEFT OUT: {what} in a container (TOOLGATE_TESTS_NO_CONTAINERS=1)");
        return None;
    }
    if ways == DOCKER && !is_root() {
        let _ = writeln!(io::stderr(), "LEFT OUT: {what} with Docker, whose daemon only root can start");
        return None;
    }
    let mut reasons = String::new();
    for way in ways {
        let world = tempfile::tempdir().unwrap();
        let output = run(world.path(), way, script, words);
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        if output.status.code() == Some(NO_RUNTIME) {
            reasons.push_str(&said);
            continue;
        }
        assert!(output.status.success(), "{said}");
        return Some((world, said));
    }
    panic!(
        "no container runs here by {ways:?}; `scripts/setup-podman` and `scripts/setup-docker` help, and TOOLGATE_TESTS_NO_CONTAINERS=1 leaves this out:\n{reasons}"
    );
}

fn run(world: &Path, way: &str, script: &str, words: &[&str]) -> Output {
    let mut command = if is_root() {
        let mut apart = Command::new("unshare");
        apart.args(["--mount", "sh"]);
        apart
    } else {
        Command::new("sh")
    };
    command
        .args([
            "-c",
            &[IMAGE, runtime_of(way), WORKSPACE, script].concat(),
            "sh",
            way,
            env!("CARGO_BIN_EXE_toolgate"),
        ])
        .args(words)
        .env("DOCKER", concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/docker/usr"))
        .current_dir(world)
        .env_remove("TOOLGATE_CONFIG")
        .output()
        .unwrap()
}

fn runtime_of(way: &str) -> &'static str {
    if DOCKER.contains(&way) { OF_DOCKER } else { OF_PODMAN }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// All journal files as one text.
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

/// Alternative setups per runtime, because not every OCI runtime supports every kernel's cgroups.
const RUNTIMES: [&[&str]; 2] = [&["crun", "runc"], DOCKER];
const DOCKER: &[&str] = &["docker"];

/// Exit code of a script whose setup cannot run containers, with or without Toolgate.
const NO_RUNTIME: i32 = 77;

const IMAGE: &str = r#"set -e
image=localhost/toolgate-bash:1
mkdir -p image/bin image/dev image/etc image/proc image/run image/sys image/tmp workspace/tools
chmod 1777 image/tmp
cp /bin/bash image/bin/bash
for library in $(ldd /bin/bash | grep -o '/[^ )]*'); do
  mkdir -p "image$(dirname "$library")"
  cp -L "$library" "image$library"
done
tar --owner=0 --group=0 --numeric-owner -C image -cf image.tar .
"#;

/// The gateway calls Podman without options, so the storage is set in Podman's configuration: in `/etc` for root, in the
/// home directory for other users.
const OF_PODMAN: &str = r#"podman=/usr/bin/podman
[ -x $podman ] || { echo "there is no $podman"; exit 77; }
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
$podman import --quiet image.tar $image > /dev/null || exit 77
$podman run --rm --network=none --pull=never --ulimit=nofile=256:256 --ulimit=nproc=64:64 $image /bin/bash -c true || {
  $podman rm --all --force --time=0 > /dev/null 2>&1
  exit 77
}
"#;

/// A private machine with Docker but no Podman, and a daemon at the default socket.
const OF_DOCKER: &str = r#"[ -x "$DOCKER/sbin/dockerd" ] || { echo "there is no $DOCKER/sbin/dockerd"; exit 77; }
[ ! -e /usr/bin/podman ] || mount --bind /dev/null /usr/bin/podman
mkdir -p etc home
cp -a /etc/. etc/
mount --bind etc /etc
mount -t tmpfs none /run
mount -t tmpfs none /opt
mkdir -p /opt/podman/bin
cp "$DOCKER/bin/docker" /opt/podman/bin/docker
export HOME="$PWD/home" PATH="$DOCKER/sbin:$DOCKER/bin:$PATH"
echo '{}' > daemon.json
setpriv --pdeathsig TERM -- dockerd --config-file="$PWD/daemon.json" --data-root="$PWD/data" --exec-root="$PWD/exec" --pidfile="$PWD/pid" \
  --bridge=none --iptables=false --ip6tables=false --ip-forward=false --storage-driver=vfs > log 2>&1 &
daemon=$!
trap 'kill $daemon; wait $daemon' EXIT
tries=0
until docker version > /dev/null 2>&1; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || { tail -n 5 log; exit 77; }
  sleep 0.2
done
docker import image.tar $image > /dev/null || exit 77
docker run --rm --network=none --pull=never $image /bin/bash -c true || exit 77
"#;

const WORKSPACE: &str = r#"cd workspace
printf 'version: 1\ncommands: {image: "%s"}\ncatalog: {include: {names: [bash]}}\npolicy: {overrides: overrides.yaml}\n' "$image" > toolgate.yaml
"#;

const TEST_RUN: &str = r#"echo 'tools: {}' > overrides.yaml
"$2" test
"#;

/// Calls, approves the question and calls again. `$3` is the port of the only server, which has two names.
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
