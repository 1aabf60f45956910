//! `toolgate secret`: values are encrypted, reach only their tools, and are never shown.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::place::{Place, Serving, token, until};

const CANARY: &str = "canary-Zq4T9xKe2LmV7cRw1YbN8sHd";

/// A workspace, and a home directory with the key.
struct SecretPlace {
    place: Place,
    home: TempDir,
}

impl SecretPlace {
    fn new(config: &str) -> Self {
        let (mut place, home) = (Place::new(), tempfile::tempdir().unwrap());
        place.set("HOME", home.path().to_str().unwrap());
        place.set("XDG_CONFIG_HOME", home.path().join("config").to_str().unwrap());
        place.set("PATH", "/usr/bin:/bin");
        place.configure(&format!("approvals: {{ask_from: never}}\n{config}"));
        Self { place, home }
    }

    /// A tool that returns `KEY` in several forms, and one that returns its length.
    fn with_tools(config: &str) -> Self {
        let new = Self::new(config);
        let statics = json!([{ "key": "${KEY}" }]);
        let code = "console.log(key); if (text === 'fail') { throw new Error(key) } return { key, again: key + text }";
        new.place.write_tool("echo", &json!({ "staticVariables": statics, "code": code }));
        new.place.write_tool("size", &json!({ "staticVariables": statics, "code": "return key.length" }));
        new
    }

    fn given(&self, arguments: &[&str], input: &str) -> Output {
        let home = self.home.path();
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(arguments)
            .current_dir(self.place.path())
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("PATH", "/usr/bin:/bin")
            .env_remove("TOOLGATE_CONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    fn set(&self, arguments: &[&str]) -> String {
        let output = self.given(&[&["secret", "set"], arguments].concat(), &format!("{CANARY}\n"));
        assert!(output.status.success(), "{output:?}");
        shown(&output)
    }

    /// No file below the directory contains the value, plain or as Base64.
    #[track_caller]
    fn holds_no_canary(dir: &Path) {
        let encoded = "Y2FuYXJ5LVpxNFQ5eEtlMkxtVjdjUncx";
        let mut files = 0;
        for entry in walkdir(dir) {
            let bytes = fs::read(&entry).unwrap_or_default();
            for needle in [CANARY, encoded] {
                let is_there = bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
                assert!(!is_there, "{} contains the value", entry.display());
            }
            files += 1;
        }
        assert!(files > 3, "{files} files in {}", dir.display());
    }
}

fn walkdir(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files.extend(walkdir(&entry));
        } else if entry.is_file() {
            files.push(entry);
        }
    }
    files
}

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn secret_reaches_its_tool_and_nobody_else() {
    let ground = SecretPlace::with_tools("");
    let place = &ground.place;
    let said = ground.set(&["KEY"]);
    assert!(said.contains("set      KEY") && said.contains("key      in the key file"), "{said}");
    assert!(said.contains("any program that runs as you"), "{said}");
    let mut all = said;
    all += &place.ok(&["publish", "--yes"]);
    assert_eq!(place.ok(&["call", "size", "text=x"]).trim(), CANARY.len().to_string());
    all += &place.ok(&["call", "echo", "text=x"]);
    all += &place.fails(&["call", "echo", "text=fail"], 1);
    all += &shown(&place.toolgate(&["run", "tools/echo.json", "text=fail"]));
    all += &place.ok(&["run", "tools/echo.json", "text=x"]);
    for arguments in
        [vec!["secret", "list"], vec!["secret", "list", "--format", "json"], vec!["list"], vec!["doctor"]]
    {
        all += &shown(&place.toolgate(&arguments));
    }
    all += &place.ok(&["secret", "rotate"]);
    assert!(all.contains("KEY  all that name it  set "), "{all}");
    assert!(all.contains("secret store") && all.contains("its key is in the key file"), "{all}");
    assert!(!all.contains(CANARY), "{all}");
    assert_eq!(place.ok(&["call", "size", "text=x"]).trim(), CANARY.len().to_string(), "after the rotation");
    let kinds: Vec<Value> = walkdir(&place.path().join(".toolgate"))
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "jsonl"))
        .flat_map(|file| fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| serde_json::from_str::<Value>(&line).unwrap()["entry"]["kind"].take())
        .collect();
    for kind in ["secret.set", "secret.rotated"] {
        assert!(kinds.contains(&json!(kind)), "{kinds:?}");
    }
    // A copied disk without the key.
    SecretPlace::holds_no_canary(place.path());
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.path().join(".toolgate/secrets/store")), 0o600);
    assert_eq!(mode(&ground.home.path().join("config/toolgate/secrets.key")), 0o600);
    fs::remove_dir_all(ground.home.path().join("config")).unwrap();
    let said = place.fails(&["secret", "list"], 2);
    assert!(said.contains("was not found"), "{said}");
    assert!(place.fails(&["call", "size", "text=x"], 1).contains("`size`"));
}

#[test]
fn scoped_secret_is_missing_for_other_tools() {
    let mut ground = SecretPlace::with_tools("");
    ground.set(&["KEY", "--tool", "size"]);
    // The environment does not replace what the operator restricted.
    ground.place.set("KEY", "from the environment");
    let place = &ground.place;
    place.toolgate(&["publish", "--yes"]);
    assert_eq!(place.ok(&["call", "size", "text=x"]).trim(), CANARY.len().to_string());
    let listed = place.ok(&["list"]);
    let echo = listed.lines().find(|line| line.contains("echo")).unwrap();
    assert!(!echo.contains("ACTIVE"), "{listed}");
    assert!(place.ok(&["secret", "list"]).contains("KEY  tool size  set "));
    // A new value keeps the restriction.
    ground.set(&["KEY"]);
    assert!(place.ok(&["secret", "list"]).contains("KEY  tool size  set "));
}

#[test]
fn removal_makes_the_tool_vanish_from_a_live_session() {
    let ground = SecretPlace::with_tools("");
    ground.set(&["KEY"]);
    let place = &ground.place;
    place.ok(&["publish", "--yes"]);
    let own = token(place, &[]);
    let serving = Serving::start(place);
    assert_eq!(serving.names(&own), ["echo", "size", "word_count"]);
    let mut session = StdioSession::start(place);
    assert_eq!(session.names(), ["echo", "size", "word_count"]);
    place.ok(&["secret", "remove", "KEY"]);
    session.wait_for_change();
    assert_eq!(session.names(), ["word_count"]);
    until("the tools are gone", || serving.names(&own) == ["word_count"]);
    let said = serving.wait_for("is no longer served");
    assert!(said.contains("not set: KEY"), "{said}");
    // A remote caller does not learn the name.
    let answer = serving.call_text(&own, "size", &json!({ "text": "x" }));
    assert!(!answer.contains("KEY"), "{answer}");
    assert!(place.ok(&["list"]).contains("not set: KEY"));
    ground.set(&["KEY"]);
    session.wait_for_change();
    assert_eq!(session.names(), ["echo", "size", "word_count"]);
    until("the tools are back", || serving.names(&own).len() == 3);
    let answer = serving.call_text(&own, "size", &json!({ "text": "x" }));
    assert!(answer.contains(&CANARY.len().to_string()), "{answer}");
    session.stop();
    serving.stop();
    SecretPlace::holds_no_canary(place.path());
}

/// An MCP client over stdio that keeps its session.
struct StdioSession {
    child: Child,
    lines: mpsc::Receiver<Value>,
    id: u64,
}

impl StdioSession {
    fn start(place: &Place) -> Self {
        let mut child = place.serve_stdio();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).unwrap());
            }
        });
        let mut session = Self { child, lines, id: 0 };
        session.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
        );
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        session
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.wait(|message| message["id"] == id)
    }

    fn wait(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.lines.recv_timeout(Duration::from_mins(1)).expect("an answer");
            if is_it(&message) {
                return message;
            }
        }
    }

    fn wait_for_change(&self) {
        self.wait(|message| message["method"] == "notifications/tools/list_changed");
    }

    fn names(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn stop(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

#[test]
fn value_is_never_an_argument_and_names_are_checked() {
    let ground = SecretPlace::new("");
    let output = ground.given(&["secret", "set", "KEY", CANARY], "");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    for (name, why) in [("key", "upper-case"), ("TOOLGATE_KEY", "gateway itself")] {
        let output = ground.given(&["secret", "set", name], CANARY);
        assert!(!output.status.success() && shown(&output).contains(why), "{output:?}");
        assert!(!shown(&output).contains(CANARY));
    }
    let output = ground.given(&["secret", "set", "KEY"], "\n");
    assert!(shown(&output).contains("the value is empty"), "{output:?}");
    assert!(ground.place.fails(&["secret", "remove", "KEY"], 2).contains("unknown secret `KEY`"));
    assert!(ground.place.ok(&["secret", "list"]).contains("no secrets yet"));
}

#[test]
fn environment_is_imported_and_the_store_comes_first() {
    let mut ground = SecretPlace::with_tools("");
    ground.place.set("KEY", CANARY);
    let said = ground.place.fails(&["secret", "import-env", "KEY", "MISSING_ONE"], 2);
    assert!(said.contains("`MISSING_ONE` is not set"), "{said}");
    assert!(ground.place.ok(&["secret", "list"]).contains("no secrets yet"), "nothing was imported");
    ground.place.ok(&["secret", "import-env", "KEY"]);
    ground.place.set("KEY", "another value");
    ground.place.ok(&["publish", "--yes", "size"]);
    assert_eq!(ground.place.ok(&["call", "size", "text=x"]).trim(), CANARY.len().to_string());
}

#[test]
fn keyring_is_used_through_secret_tool() {
    let mut ground = SecretPlace::with_tools("");
    let (bin, ring) = (ground.home.path().join("bin"), ground.home.path().join("ring"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&ring).unwrap();
    // A stand-in that keeps each secret in a file named by its attributes.
    let program = format!(
        "#!/bin/sh\ncommand=$1; shift; [ \"$command\" = store ] && shift\nfile='{}'/$4\ncase $command in\n\
         store) cat > \"$file\";;\nlookup) cat \"$file\";;\nclear) rm \"$file\";;\nesac\n",
        ring.display()
    );
    fs::write(bin.join("secret-tool"), program).unwrap();
    fs::set_permissions(bin.join("secret-tool"), fs::Permissions::from_mode(0o700)).unwrap();
    ground.place.set("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    ground.place.set("KEY", CANARY);
    let said = ground.place.ok(&["secret", "import-env", "KEY"]);
    assert!(said.contains("key      in the keyring"), "{said}");
    assert!(!ground.home.path().join("config/toolgate/secrets.key").exists());
    let keys = || fs::read_dir(&ring).unwrap().map(|file| file.unwrap().file_name()).collect::<Vec<_>>();
    let before = keys();
    assert_eq!(before.len(), 1);
    ground.place.ok(&["secret", "rotate"]);
    assert!(keys().len() == 1 && keys() != before, "{:?}", keys());
    assert!(ground.place.ok(&["secret", "list"]).contains("KEY"));
    ground.place.ok(&["publish", "--yes", "size"]);
    assert_eq!(ground.place.ok(&["call", "size", "text=x"]).trim(), CANARY.len().to_string());
    SecretPlace::holds_no_canary(ground.place.path());
}

#[test]
fn passphrase_comes_from_a_private_file_elsewhere() {
    let mut ground = SecretPlace::with_tools("secrets: {key: passphrase}\n");
    let file = ground.home.path().join("passphrase");
    fs::write(&file, "correct horse\n").unwrap();
    ground.place.set("KEY", CANARY);
    assert!(ground.place.fails(&["secret", "import-env", "KEY"], 2).contains("TOOLGATE_PASSPHRASE_FILE"));
    ground.place.set("TOOLGATE_PASSPHRASE_FILE", file.to_str().unwrap());
    assert!(ground.place.fails(&["secret", "import-env", "KEY"], 2).contains("chmod 600"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let said = ground.place.ok(&["secret", "import-env", "KEY"]);
    assert!(said.contains("key      in a passphrase"), "{said}");
    assert!(ground.place.ok(&["secret", "list"]).contains("KEY"));
    fs::write(&file, "wrong horse\n").unwrap();
    assert!(ground.place.fails(&["secret", "list"], 2).contains("wrong passphrase"));
}

#[test]
fn providers_are_asked_in_order_after_the_store() {
    let mut ground = SecretPlace::with_tools("");
    let path = ground.place.path().to_owned();
    let script = ground.home.path().join("provider");
    fs::write(&script, "#!/bin/sh\n[ \"$1\" = secret/KEY ] && [ -z \"$HIDDEN\" ] && echo from-command\n")
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    ground.place.set("HIDDEN", "yes");
    ground.place.set("KEY", "env");
    ground.place.configure(&format!(
        "approvals: {{ask_from: never}}\nsecrets:\n  providers:\n  - {{name: files, kind: file, path: {home}/.env}}\n  \
         - {{name: program, kind: command, command: ['{script}', 'secret/{{name}}']}}\n  - {{name: rest, kind: env}}\n",
        home = ground.home.path().display(),
        script = script.display(),
    ));
    ground.place.ok(&["publish", "--yes", "size"]);
    let size = |ground: &SecretPlace| ground.place.ok(&["call", "size", "text=x"]).trim().to_owned();
    assert_eq!(size(&ground), "from-command".len().to_string());
    fs::write(ground.home.path().join(".env"), "KEY=file1\n").unwrap();
    assert_eq!(size(&ground), "file1".len().to_string());
    ground.set(&["KEY"]);
    assert_eq!(size(&ground), CANARY.len().to_string());
    // A tool cannot read the files of providers, nor the key.
    assert!(path.join(".toolgate/secrets/store").exists());
}

#[test]
fn key_file_in_the_workspace_is_refused() {
    let ground = SecretPlace::new("secrets: {key: file, key_file: my.key}\n");
    let output = ground.given(&["secret", "set", "KEY"], CANARY);
    assert!(!output.status.success() && shown(&output).contains("is inside"), "{output:?}");
    assert!(!ground.place.path().join("my.key").exists());
}
