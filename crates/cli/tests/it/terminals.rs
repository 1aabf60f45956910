//! Interactive use on a terminal: output, prompts and typed answers.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use serde_json::{Value, json};

use crate::place::{Place, Serving, until};

/// Both ends of a pseudo-terminal, ours first.
fn terminal() -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
    (File::from(ours), theirs)
}

fn toolgate(place: &Place, arguments: &[&str], terminal: OwnedFd) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command
        .args(arguments)
        .current_dir(place.path())
        .env_remove("TOOLGATE_CONFIG")
        .stdin(terminal.try_clone().unwrap())
        .stdout(Stdio::piped())
        .stderr(terminal);
    command
}

/// Runs a command with typed input. Returns its output and the terminal's content.
fn on_a_terminal(place: &Place, arguments: &[&str], typed: &str) -> (String, String) {
    let (mut ours, theirs) = terminal();
    ours.write_all(typed.as_bytes()).unwrap();
    let child = toolgate(place, arguments, theirs).spawn().unwrap();
    let printed = child.wait_with_output().unwrap().stdout;
    let mut shown = Vec::new();
    // Reading a closed pseudo-terminal fails after its last output.
    let _ = ours.read_to_end(&mut shown);
    (String::from_utf8_lossy(&printed).into_owned(), String::from_utf8_lossy(&shown).into_owned())
}

/// Like `on_a_terminal`, with standard output on the terminal, too, and this width.
fn on_a_screen(place: &Place, arguments: &[&str], columns: &str) -> String {
    let (mut ours, theirs) = terminal();
    let mut command = toolgate(place, arguments, theirs.try_clone().unwrap());
    command.stdout(theirs).env("COLUMNS", columns).env("TERM", "xterm").env_remove("NO_COLOR");
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut shown = Vec::new();
    let _ = ours.read_to_end(&mut shown);
    child.wait().unwrap();
    String::from_utf8_lossy(&shown).replace('\r', "")
}

/// Without colours.
fn plain(shown: &str) -> String {
    let mut text = String::new();
    for (number, part) in shown.split("\u{1b}[").enumerate() {
        text.push_str(if number == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) });
    }
    text
}

#[test]
fn output_fits_the_terminal_and_is_coloured_there_only() {
    let place = Place::new();
    place.write_tool(
        "broken_one",
        &json!({ "sandboxOverrides": { "networkmode": "open", "hostsAllow": ["http://api.example.com"] } }),
    );
    for arguments in [
        &["list"][..],
        &["doctor"],
        &["check", "tools"],
        &["explain"],
        &["explain", "check.path_outside_roots"],
        &["resolve", "tools/word_count.json"],
        &["config", "show", "--origin"],
        &["--help"],
        &["connect", "--help"],
    ] {
        let shown = on_a_screen(&place, arguments, "60");
        assert!(shown.contains("\u{1b}["), "{arguments:?} has colours: {shown}");
        for line in plain(&shown).lines() {
            // Only a long word such as a path may exceed the width.
            let (rest, word) = line.rsplit_once(' ').unwrap_or(("", line));
            let is_long_word = rest.trim_end().chars().count() <= 60 && word.chars().count() > 24;
            assert!(line.chars().count() <= 60 || is_long_word, "{arguments:?}: {line}");
        }
        let piped = place.toolgate(arguments);
        let piped = String::from_utf8_lossy(&piped.stdout).into_owned();
        assert!(!piped.contains('\u{1b}'), "{arguments:?}: {piped}");
    }
    let long = |text: &str| text.lines().any(|line| line.chars().count() > 60);
    assert!(long(&place.ok(&["explain"])), "a pipe gets whole lines");
    let json = on_a_screen(&place, &["list", "--format", "json"], "60");
    assert!(serde_json::from_str::<Value>(&json).is_ok() && long(&json), "programs get whole lines: {json}");
}

#[test]
fn publishing_a_slow_tool_shows_progress() {
    let place = Place::new();
    place.write_tool(
        "slow",
        &json!({ "code": "await new Promise((done) => setTimeout(done, 1500)); return text" }),
    );
    let (printed, shown) = on_a_terminal(&place, &["publish", "slow"], "");
    assert!(shown.contains("testing slow"), "{shown:?}");
    assert!(printed.contains("published  slow"), "{printed}");
    assert!(!place.ok(&["publish", "slow"]).contains("testing"));
}

/// The first JSON value in the following lines.
fn shown_json(serving: &Serving) -> Value {
    let mut text = String::new();
    loop {
        text.push_str(serving.line().trim_end());
        if let Ok(value) = serde_json::from_str(&text) {
            return value;
        }
    }
}

#[test]
fn gateway_shows_a_token_that_is_revoked_at_exit() {
    let place = Place::new();
    place.ok(&["publish"]);
    let (ours, theirs) = terminal();
    let arguments = ["serve", "--listen", "127.0.0.1:0"];
    let child = toolgate(&place, &arguments, theirs).stdout(Stdio::null()).spawn().unwrap();
    let serving = Serving::heard(child, ours);
    serving.wait_for("valid until this process ends");
    let server = shown_json(&serving)["mcpServers"]["toolgate"].take();
    assert_eq!(server["type"], "http");
    assert_eq!(server["url"], format!("http://{}/mcp", serving.address));
    let token = server["headers"]["Authorization"].as_str().unwrap().strip_prefix("Bearer ").unwrap();
    assert_eq!(serving.names(token), ["word_count"]);
    let result = serving.call(token, "word_count", &json!({ "text": "to be" }));
    assert_eq!(result["structuredContent"]["words"], 2, "{result}");
    let own = format!("serve-{}", serving.child.id());
    serving.stop();
    let revoked: Vec<Value> = place.journal("journal");
    let revoked: Vec<&Value> = revoked.iter().filter(|record| record["kind"] == "token.revoked").collect();
    assert_eq!(revoked.len(), 1, "{revoked:?}");
    assert!(revoked[0].to_string().contains(&own), "{revoked:?}");
    let next = Serving::start(&place);
    assert_eq!(next.ask(Some(token), "tools/list", json!({})).0, 401, "taken back when the process ended");
    next.stop();
}

/// A gateway in a new session. `--ctty` makes this its controlling terminal, as a terminal window does for its shell.
fn serve_in_own_session(place: &Place, flags: &[&str], terminal: OwnedFd) -> Child {
    Command::new("setsid")
        .args(flags)
        .args([env!("CARGO_BIN_EXE_toolgate"), "serve", "--listen", "127.0.0.1:0"])
        .current_dir(place.path())
        .env_remove("TOOLGATE_CONFIG")
        .stdin(terminal.try_clone().unwrap())
        .stdout(Stdio::null())
        .stderr(terminal)
        .spawn()
        .unwrap()
}

/// Reads until the text appears.
fn wait_for(terminal: &mut File, text: &str) {
    let (mut shown, mut piece) = (String::new(), [0; 4096]);
    while !shown.contains(text) {
        let length = terminal.read(&mut piece).unwrap();
        shown.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
}

#[test]
fn closing_the_terminal_stops_the_gateway() {
    let place = Place::new();
    let (mut ours, theirs) = terminal();
    let mut child = serve_in_own_session(&place, &["--ctty"], theirs);
    wait_for(&mut ours, "valid until this process ends");
    drop(ours);
    let mut status = None;
    until("the gateway stops with its terminal", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success(), "{status:?}");
    let kinds: Vec<Value> =
        place.journal("journal").into_iter().map(|mut record| record["kind"].take()).collect();
    assert!(kinds.contains(&json!("token.revoked")), "it stopped gracefully: {kinds:?}");
}

#[test]
fn hangup_reloads_a_gateway_without_a_controlling_terminal() {
    let place = Place::new();
    let (ours, theirs) = terminal();
    let serving = Serving::heard(serve_in_own_session(&place, &[], theirs), ours);
    serving.wait_for("valid until this process ends");
    let pid = serving.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    serving.wait_for("reloaded:");
    serving.stop();
}

#[test]
fn risky_tool_is_published_only_after_confirmation() {
    let place = Place::new();
    place.write_tool("writes", &json!({ "sandboxOverrides": { "fileWrite": true } }));
    for no in ["n\n", "\n", "maybe\n", "\u{4}"] {
        let (printed, shown) = on_a_terminal(&place, &["publish", "writes"], no);
        assert!(shown.contains("`writes`: it is rated L4. Test and publish it? [y/N]"), "{no:?}: {shown}");
        assert!(printed.contains("was not confirmed; nothing was run"), "{no:?}: {printed}");
        assert!(!place.ok(&["list"]).contains("ACTIVE"), "{no:?}");
    }
    let (printed, shown) = on_a_terminal(&place, &["publish", "writes"], "y\n");
    assert!(shown.contains("[y/N]") && printed.contains("published  writes (L4)"), "{shown}{printed}");
    assert!(place.ok(&["list"]).contains("ACTIVE"));
}

/// Reads from the terminal until this text appears.
fn shown_until(ours: &mut File, wanted: &str, shown: &mut String) {
    let mut buffer = [0; 4_096];
    while !shown.contains(wanted) {
        let count = ours.read(&mut buffer).unwrap();
        shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

#[test]
fn watch_asks_one_question_at_a_time() {
    let place = Place::new();
    place.write_tool("say", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    place.ok(&["publish", "say"]);
    place.fails(&["call", "say", "text=one"], 1);
    place.fails(&["call", "say", "text=two"], 1);
    let (mut ours, theirs) = terminal();
    // Typed before a question is shown, so it answers none.
    ours.write_all(b"y\n").unwrap();
    let child = toolgate(&place, &["approvals", "watch"], theirs).spawn().unwrap();
    let mut shown = String::new();
    for answer in ["d\n", "y\n", "n\n"] {
        shown.clear();
        shown_until(&mut ours, "[q]uit: ", &mut shown);
        std::thread::sleep(std::time::Duration::from_millis(700));
        ours.write_all(answer.as_bytes()).unwrap();
    }
    shown.clear();
    shown_until(&mut ours, "no pending questions", &mut shown);
    // End of input.
    ours.write_all(&[4]).unwrap();
    let printed = String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned();
    assert_eq!(printed.matches(" calls say").count(), 2, "{printed}");
    let list = place.ok(&["approvals", "list", "--all"]);
    assert!(list.contains("  approved  ") && list.contains("  denied  "), "{list}");
    // A unique prefix of an id is enough.
    let id = list.lines().find_map(|line| line.split("apr_").nth(1)).unwrap();
    place.ok(&["approvals", "show", &id[..10]]);
    let said = place.fails(&["approvals", "show", "apr_12"], 2);
    assert!(said.contains("at least 4 characters"), "{said}");
}

#[test]
fn question_is_not_shown_if_the_answer_would_not_count() {
    let place = Place::new();
    place.write_tool("say", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    place.ok(&["publish", "say"]);
    let (printed, shown) = on_a_terminal(&place, &["call", "say", "text=hi"], "y\n");
    assert!(shown.contains("[y/N]") && printed == "hi!\n", "{shown}{printed}");
    place.configure("catalog:\n  preset: none\napprovals:\n  client_may_answer: false\n");
    let (printed, shown) = on_a_terminal(&place, &["call", "say", "text=hi"], "y\n");
    assert!(!shown.contains("[y/N]"), "{shown}");
    assert!(printed.contains("toolgate approvals approve apr_"), "{printed}");
}
