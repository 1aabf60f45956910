//! `toolgate connect` and `disconnect`: client files, backups and tokens.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::place::Place;

#[test]
fn clients_are_configured_with_a_backup() {
    let place = Place::new();
    fs::write(place.path().join(".mcp.json"), r#"{"mcpServers": {"other": {"command": "x"}}, "more": 1}"#)
        .unwrap();
    place.ok(&["connect", "claude"]);
    let written: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join(".mcp.json")).unwrap()).unwrap();
    assert_eq!(written["mcpServers"]["other"]["command"], "x");
    assert_eq!(written["more"], 1);
    assert_eq!(written["mcpServers"]["toolgate"]["args"][0], "serve");
    assert!(place.path().join(".toolgate/backups/claude-1").exists());
    place.ok(&["connect", "cursor", "--transport", "http"]);
    let written = fs::read_to_string(place.path().join(".cursor/mcp.json")).unwrap();
    assert!(written.contains("Bearer tg_"), "{written}");
    assert!(place.ok(&["token", "list"]).contains("client-cursor"));
    place.ok(&["connect", "cursor", "--transport", "http"]);
    let records = place.journal("journal-commands");
    let tokens: Vec<(&str, &str)> = records
        .iter()
        .filter_map(|record| Some((record["kind"].as_str()?, record["token"].as_str()?)))
        .collect();
    let (created, revoked) = (("token.created", "client-cursor"), ("token.revoked", "client-cursor"));
    assert_eq!(tokens, [created, revoked, created], "a new token, and then another in its place");
}

/// `claude -p` and `codex exec` answer every question by themselves, so the gateway asks only clients that have a person.
#[test]
fn client_is_asked_only_if_a_person_uses_it() {
    let place = Place::new();
    let written = |arguments: &[&str]| -> (Value, String) {
        let output = place.toolgate(arguments);
        assert!(output.status.success(), "{output:?}");
        let text = fs::read_to_string(place.path().join(".mcp.json")).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        (whole["mcpServers"]["toolgate"].clone(), String::from_utf8(output.stderr).unwrap())
    };
    let is_unattended = |server: &Value| server["args"].to_string().contains("--unattended");
    let (server, said) = written(&["connect", "claude"]);
    assert!(is_unattended(&server) && said.contains("connected as unattended"), "{server} {said}");
    let (server, said) = written(&["connect", "claude", "--unattended"]);
    assert!(is_unattended(&server) && !said.contains("connected as"), "{server} {said}");
    let (server, said) = written(&["connect", "claude", "--attended"]);
    assert!(!is_unattended(&server) && !said.contains("connected as"), "{server} {said}");
    place.fails(&["connect", "claude", "--attended", "--unattended"], 2);
    // `serve` accepts the flag and does not ask the client.
    let said = place.toolgate(&["serve", "--stdio", "--unattended"]).stderr;
    assert!(String::from_utf8_lossy(&said).contains("calls are approved in the queue only"));

    place.ok(&["connect", "cursor", "--transport", "http", "--unattended"]);
    let text = fs::read_to_string(place.path().join(".cursor/mcp.json")).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(whole["mcpServers"]["toolgate"]["headers"]["toolgate-unattended"], "true");
    assert!(connect_codex(&place, &["--transport", "http", "--unattended"]).status.success());
    let codex = fs::read_to_string(place.path().join(".codex/config.toml")).unwrap();
    assert!(codex.contains("toolgate-unattended = \"true\" }"), "{codex}");
}

/// Runs the command with `CODEX_HOME` in this workspace.
fn connect_codex(place: &Place, more: &[&str]) -> std::process::Output {
    connect_codex_at(place, &place.path().join(".codex"), more)
}

fn connect_codex_at(place: &Place, home: &Path, more: &[&str]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["connect", "codex"])
        .args(more)
        .current_dir(place.path())
        .env_remove("TOOLGATE_CONFIG")
        .env("CODEX_HOME", home)
        .output()
        .unwrap()
}

/// The token events in the journal.
fn tokens_of(place: &Place) -> Vec<(String, String)> {
    let records = place.journal("journal-commands");
    let text = |record: &Value, key: &str| record[key].as_str().map(str::to_owned);
    records.iter().filter_map(|record| Some((text(record, "kind")?, text(record, "token")?))).collect()
}

#[test]
fn gemini_entry_uses_its_own_field_names() {
    let place = Place::new();
    let file = place.path().join(".gemini/settings.json");
    fs::create_dir(place.path().join(".gemini")).unwrap();
    fs::write(&file, r#"{"theme": "Dracula", "mcpServers": {"other": {"command": "x"}}}"#).unwrap();
    place.ok(&["connect", "gemini"]);
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        (&written["theme"], &written["mcpServers"]["other"]["command"]),
        (&json!("Dracula"), &json!("x"))
    );
    let server = &written["mcpServers"]["toolgate"];
    assert_eq!((&server["args"][0], &server["args"][1]), (&json!("serve"), &json!("--stdio")), "{server}");
    assert!(server["command"].is_string() && server.get("type").is_none(), "{server}");
    place.ok(&["connect", "gemini", "--transport", "http"]);
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let server = &written["mcpServers"]["toolgate"];
    assert!(server["httpUrl"].as_str().unwrap().ends_with("/mcp"), "{server}");
    assert!(server["headers"]["Authorization"].as_str().unwrap().starts_with("Bearer tg_"), "{server}");
    assert!(server.get("type").is_none() && server.get("url").is_none(), "{server}");
    assert!(place.ok(&["token", "list"]).contains("client-gemini"));
}

#[test]
fn vscode_and_codex_files_have_their_own_formats() {
    let place = Place::new();
    fs::create_dir(place.path().join(".vscode")).unwrap();
    fs::write(place.path().join(".vscode/mcp.json"), r#"{"inputs": [], "servers": {"other": {"url": "x"}}}"#)
        .unwrap();
    place.ok(&["connect", "vscode"]);
    let written = fs::read_to_string(place.path().join(".vscode/mcp.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&written["inputs"], &written["servers"]["other"]["url"]), (&json!([]), &json!("x")));
    assert_eq!(written["servers"]["toolgate"]["args"][0], "serve");
    assert!(place.path().join(".toolgate/backups/vscode-1").exists());

    let file = place.path().join(".codex/config.toml");
    let before = "model = \"m\" # mine\n[mcp_servers.other]\ncommand = \"x\"";
    fs::create_dir(place.path().join(".codex")).unwrap();
    fs::write(&file, before).unwrap();
    assert!(connect_codex(&place, &["--transport", "http"]).status.success());
    let written = fs::read_to_string(&file).unwrap();
    assert!(
        written.starts_with(&format!("{before}\n\n[mcp_servers.toolgate]\nurl = \"http://")),
        "{written}"
    );
    assert!(written.contains("http_headers = { Authorization = \"Bearer tg_"), "{written}");
    assert_eq!(fs::read_to_string(place.path().join(".toolgate/backups/codex-1")).unwrap(), before);
    fs::remove_file(&file).unwrap();
    assert!(connect_codex(&place, &[]).status.success());
    assert!(fs::read_to_string(&file).unwrap().contains("\nargs = [\"serve\", \"--stdio\""));
}

/// A working client keeps working if its file cannot be rewritten.
#[test]
fn refused_connect_keeps_the_old_token() {
    let place = Place::new();
    let (json, codex) = (place.path().join(".cursor/mcp.json"), place.path().join(".codex/config.toml"));
    place.ok(&["connect", "cursor", "--transport", "http"]);
    assert!(connect_codex(&place, &["--transport", "http"]).status.success());
    let tokens = tokens_of(&place);
    assert_eq!(tokens.len(), 2, "{tokens:?}");
    for (before, said) in [
        ("{ broken", "this is not valid JSON"),
        ("[]", "the top level is not an object"),
        (r#"{"mcpServers": []}"#, "`mcpServers` is not an object"),
    ] {
        fs::write(&json, before).unwrap();
        let refused = place.fails(&["connect", "cursor", "--transport", "http"], 2);
        assert!(refused.contains(said), "{before}: {refused}");
        assert_eq!(fs::read_to_string(&json).unwrap(), before);
        assert!(place.ok(&["connect", "cursor", "--print"]).contains("toolgate"), "as the refusal says");
    }
    for (before, said) in [
        ("mcp_servers = { other = { url = \"x\" } }\n", "without changing other parts"),
        ("mcp_servers = 5\n", "`mcp_servers` is not an object"),
        ("not toml", "this is not valid TOML"),
    ] {
        fs::write(&codex, before).unwrap();
        let output = connect_codex(&place, &["--transport", "http"]);
        let refused = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && refused.contains(said), "{before}: {refused}");
        assert_eq!(fs::read_to_string(&codex).unwrap(), before);
    }
    for (file, other) in [(&json, "{}"), (&codex, "")] {
        let elsewhere = file.with_extension("elsewhere");
        fs::write(&elsewhere, other).unwrap();
        fs::remove_file(file).unwrap();
        std::os::unix::fs::symlink(&elsewhere, file).unwrap();
    }
    assert!(place.fails(&["connect", "cursor", "--transport", "http"], 2).contains("this is a symlink"));
    assert!(!connect_codex(&place, &["--transport", "http"]).status.success());
    assert_eq!(tokens_of(&place), tokens, "neither taken back nor made anew");
    let listed = place.ok(&["token", "list"]);
    assert!(listed.contains("client-cursor") && listed.contains("client-codex"), "{listed}");
}

#[test]
fn unwritable_directory_keeps_the_old_token() {
    let place = Place::new();
    assert!(connect_codex(&place, &["--transport", "http"]).status.success());
    let tokens = tokens_of(&place);
    assert_eq!(tokens.len(), 1, "{tokens:?}");
    // Not even root can create a file there.
    let output = connect_codex_at(&place, Path::new("/proc"), &["--transport", "http"]);
    let refused = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && refused.contains("/proc/config.toml"), "{refused}");
    assert_eq!(tokens_of(&place), tokens, "neither taken back nor made anew");
}

/// Tools can read the workspace, except the client files at its root.
#[test]
fn token_is_not_written_where_tools_can_read_it() {
    let place = Place::new();
    let below = place.path().join("packages/web");
    fs::create_dir_all(&below).unwrap();
    let config = place.path().join("toolgate.yaml");
    let connect = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .arg("connect")
            .args(arguments)
            .args(["--config".as_ref(), config.as_os_str()])
            .current_dir(&below)
            .env_remove("TOOLGATE_CONFIG")
            .env("CODEX_HOME", below.join("codex"))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for client in ["claude", "cursor", "vscode", "codex", "gemini", "zed"] {
        let (code, said) = connect(&[client, "--transport", "http"]);
        assert_eq!(code, Some(2), "{client}: {said}");
        assert!(said.contains("could read the token") && said.contains("--transport stdio"), "{said}");
        assert_eq!(connect(&[client]).0, Some(0), "without a token there is nothing to read");
    }
    assert!(place.ok(&["token", "list"]).contains("no tokens yet"));
    place.ok(&["connect", "claude", "--transport", "http"]);
}

#[test]
fn symlinked_directory_is_not_followed() {
    let place = Place::new();
    for (client, folder) in
        [("cursor", ".cursor"), ("vscode", ".vscode"), ("gemini", ".gemini"), ("zed", ".zed")]
    {
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), place.path().join(folder)).unwrap();
        for transport in ["stdio", "http"] {
            let said = place.fails(&["connect", client, "--transport", transport], 2);
            assert!(said.contains(&format!("`{folder}`: this is a symlink")), "{said}");
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
    assert!(place.ok(&["token", "list"]).contains("no tokens yet"));
}

#[test]
fn token_is_created_only_if_accepted_and_with_a_warning() {
    let place = Place::new();
    let output = place.toolgate(&["connect", "claude", "--transport", "http"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains(".gitignore"), "{said}");
    assert!(said.contains("toolgate token revoke client-claude"), "{said}");
    place.configure("auth: {tokens: false}\n");
    let said = place.fails(&["connect", "cursor", "--transport", "http"], 2);
    assert!(said.contains("`auth.tokens` is false"), "{said}");
    assert!(!place.ok(&["token", "list"]).contains("client-cursor"));
}

/// Runs the command with `home` as the home directory.
#[track_caller]
fn as_user(place: &Place, home: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(arguments)
        .current_dir(place.path())
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap() + &said
}

const USER_FILES: [(&str, &str, &str); 7] = [
    ("claude", ".claude.json", "mcpServers"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("vscode", ".config/Code/User/mcp.json", "servers"),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    ("zed", ".config/zed/settings.json", "context_servers"),
];

#[test]
fn user_scope_writes_the_users_file_with_absolute_paths() {
    let (place, home) = (Place::new(), tempfile::tempdir().unwrap());
    for (client, file, key) in USER_FILES {
        as_user(&place, home.path(), &["connect", client, "--scope", "user"]);
        let text = fs::read_to_string(home.path().join(file)).unwrap();
        let server = serde_json::from_str::<Value>(&text).unwrap()[key]["toolgate"].take();
        let command = server["command"].as_str().unwrap();
        assert!(Path::new(command).is_absolute(), "{client}: {server}");
        let config = server["args"][3].as_str().unwrap();
        assert!(Path::new(config).is_absolute() && Path::new(config).exists(), "{client}: {server}");
        as_user(&place, home.path(), &["disconnect", client, "--scope", "user"]);
        let text = fs::read_to_string(home.path().join(file)).unwrap();
        assert!(!text.contains("\"toolgate\""), "{client}: {text}");
    }
    as_user(&place, home.path(), &["connect", "codex"]);
    assert!(home.path().join(".codex/config.toml").exists());
    for client in ["claude-desktop", "windsurf"] {
        let said = place.fails(&["connect", client, "--scope", "project"], 2);
        assert!(said.contains("use --scope user"), "{said}");
    }
    as_user(&place, home.path(), &["connect", "windsurf", "--transport", "http"]);
    let text = fs::read_to_string(home.path().join(".codeium/windsurf/mcp_config.json")).unwrap();
    assert!(text.contains("\"serverUrl\": \"http://") && text.contains("Bearer tg_"), "{text}");
    let said = place.fails(&["connect", "claude-desktop", "--transport", "http"], 2);
    assert!(said.contains("--transport stdio"), "{said}");
}

#[test]
fn shared_files_hold_no_absolute_path() {
    let place = Place::new();
    for (client, file, config) in [
        ("claude", ".mcp.json", "${CLAUDE_PROJECT_DIR:-.}/toolgate.yaml"),
        ("cursor", ".cursor/mcp.json", "${workspaceFolder}/toolgate.yaml"),
        ("vscode", ".vscode/mcp.json", "${workspaceFolder}/toolgate.yaml"),
        ("gemini", ".gemini/settings.json", "toolgate.yaml"),
        ("zed", ".zed/settings.json", "toolgate.yaml"),
        ("codex", ".codex/config.toml", "toolgate.yaml"),
    ] {
        place.ok(&["connect", client, "--scope", "project"]);
        let text = fs::read_to_string(place.path().join(file)).unwrap();
        assert!(text.contains(&format!("\"{config}\"")) && text.contains("\"toolgate\""), "{client}: {text}");
        assert!(
            !text.contains(&*place.path().to_string_lossy()) && !text.contains("\"/"),
            "{client}: {text}"
        );
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let config = elsewhere.path().join("toolgate.yaml");
    fs::write(&config, "version: 1\n").unwrap();
    let said = place.fails(&["connect", "claude", "--config", &config.to_string_lossy()], 2);
    assert!(said.contains("--scope user"), "{said}");
}

#[test]
fn comments_in_a_clients_file_survive_connect_and_disconnect() {
    let place = Place::new();
    let before = "{\n  // shared by the team\n  \"servers\": {\n    \"other\": { \"url\": \"x\" }, // why\n  },\n  \"inputs\": [],\n}\n";
    fs::create_dir(place.path().join(".vscode")).unwrap();
    let file = place.path().join(".vscode/mcp.json");
    fs::write(&file, before).unwrap();
    place.ok(&["connect", "vscode"]);
    let connected = fs::read_to_string(&file).unwrap();
    assert!(connected.contains("// shared by the team") && connected.contains("// why"), "{connected}");
    assert!(connected.contains("\"toolgate\": {"), "{connected}");
    let again = place.ok(&["connect", "vscode"]);
    assert!(again.contains("unchanged"), "{again}");
    assert_eq!(fs::read_to_string(&file).unwrap(), connected);
    let said = place.ok(&["disconnect", "vscode"]);
    assert!(said.contains("backup ") && said.contains("removed  toolgate from .vscode/mcp.json"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert!(place.ok(&["disconnect", "vscode"]).contains("unchanged"));
}

#[test]
fn repeated_connect_codex_changes_nothing_and_disconnect_removes_one_table() {
    let place = Place::new();
    let file = place.path().join(".codex/config.toml");
    let before = "model = \"m\" # mine\n\n[mcp_servers.other]\ncommand = \"x\"\n";
    fs::create_dir(place.path().join(".codex")).unwrap();
    fs::write(&file, before).unwrap();
    assert!(connect_codex(&place, &[]).status.success());
    let connected = fs::read_to_string(&file).unwrap();
    let again = connect_codex(&place, &[]);
    assert!(again.status.success() && String::from_utf8_lossy(&again.stdout).contains("unchanged"));
    assert_eq!(fs::read_to_string(&file).unwrap(), connected);
    // Another transport replaces the entry.
    assert!(connect_codex(&place, &["--transport", "http"]).status.success());
    let http = fs::read_to_string(&file).unwrap();
    assert!(http.contains("url = ") && !http.contains("args = ") && http.starts_with(before), "{http}");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["disconnect", "codex"])
        .current_dir(place.path())
        .env_remove("TOOLGATE_CONFIG")
        .env("CODEX_HOME", place.path().join(".codex"))
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("revoked  token client-codex"), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap().trim_end(), before.trim_end());
    assert_eq!(tokens_of(&place).last().unwrap().0, "token.revoked");
}
