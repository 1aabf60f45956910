use serde_json::json;

use super::*;

fn entry() -> Map<String, Value> {
    json!({ "command": "toolgate", "args": ["serve", "--stdio"] }).as_object().unwrap().clone()
}

/// Adding twice is adding once, and removing gives back the text.
#[track_caller]
fn round_trip(format: ClientFormat, key: &str, before: &str) -> String {
    let connected = with_entry(format, before, key, &entry()).unwrap();
    assert_eq!(with_entry(format, &connected, key, &entry()).unwrap(), connected, "twice");
    let back = without_entry(format, &connected, key).unwrap().unwrap();
    assert_eq!(back, before);
    assert_eq!(without_entry(format, before, key), Ok(None));
    connected
}

#[test]
fn comments_and_layout_of_json_survive() {
    for before in [
        "{\n  // mine\n  \"servers\": {\n    \"a\": {\"x\": 1}, // why\n    // last\n  },\n}\n",
        "{\n\t\"servers\": {\n\t\t\"a\": 1 /* b */\n\t},\n\t\"inputs\": [ 1,2 ]\n}",
        "{\r\n  \"servers\": {\r\n    \"a\": 1\r\n  }\r\n}\r\n",
        "{\"servers\":{}}",
    ] {
        let connected = round_trip(ClientFormat::Jsonc, "servers", before);
        assert!(connected.contains("\"toolgate\": {"), "{connected}");
    }
    let new = with_entry(ClientFormat::Jsonc, "", "servers", &entry()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&new).unwrap()["servers"]["toolgate"], Value::Object(entry()));
    assert!(new.ends_with("}\n"), "{new}");
}

#[test]
fn comments_and_layout_of_toml_survive() {
    for before in [
        "model = \"m\" # mine\n\n# other\n[mcp_servers.other]\ncommand   = \"x\"\n\n",
        "a = 1\r\n[mcp_servers.other]\r\ncommand = \"x\"\r\n\r\n",
    ] {
        let connected = with_entry(ClientFormat::Toml, before, "mcp_servers", &entry()).unwrap();
        assert!(connected.starts_with(before), "{connected}");
        assert_eq!(with_entry(ClientFormat::Toml, &connected, "mcp_servers", &entry()).unwrap(), connected);
        let back = without_entry(ClientFormat::Toml, &connected, "mcp_servers").unwrap().unwrap();
        assert_eq!(back.trim_end(), before.trim_end());
    }
    let own = "a = 1\n# of the user\n[mcp_servers.toolgate] # ours\nurl = \"x\"\n[mcp_servers.toolgate.env]\nA = \"1\"\n\n# next\n[b]\nc   =  [ 1,2 ]\n";
    let updated = with_entry(ClientFormat::Toml, own, "mcp_servers", &entry()).unwrap();
    assert!(
        updated.contains("# of the user\n[mcp_servers.toolgate] # ours\ncommand = \"toolgate\"\n"),
        "{updated}"
    );
    assert!(!updated.contains("A = ") && !updated.contains("url"), "{updated}");
    let back = without_entry(ClientFormat::Toml, own, "mcp_servers").unwrap().unwrap();
    assert_eq!(back, "a = 1\n# of the user\n\n# next\n[b]\nc   =  [ 1,2 ]\n");
}

#[test]
fn entry_in_any_notation_is_updated_and_removed() {
    for before in [
        "[ mcp_servers . \"toolgate\" ]\n",
        "mcp_servers.toolgate.url = \"x\"\nb = 1\n",
        "mcp_servers = { toolgate = { url = \"x\" }, other = { url = \"y\" } }\n",
    ] {
        let updated = with_entry(ClientFormat::Toml, before, "mcp_servers", &entry()).unwrap();
        let whole = values(ClientFormat::Toml, &updated).unwrap();
        assert_eq!(whole["mcp_servers"]["toolgate"], Value::Object(entry()), "{updated}");
        assert!(without_entry(ClientFormat::Toml, before, "mcp_servers").unwrap().is_some(), "{before}");
    }
    // The last line need not end.
    let open = "[mcp_servers.toolgate]\nurl = \"x\"";
    let updated = with_entry(ClientFormat::Toml, open, "mcp_servers", &entry()).unwrap();
    assert_eq!(updated, "[mcp_servers.toolgate]\ncommand = \"toolgate\"\nargs = [\"serve\", \"--stdio\"]");
    assert_eq!(without_entry(ClientFormat::Toml, open, "mcp_servers").unwrap().unwrap(), "");
    // A table between the parts of ours is not cut out with it.
    let split = "[mcp_servers.toolgate]\nurl = \"x\"\n[b]\nc = 1\n[mcp_servers.toolgate.env]\nA = \"1\"\n";
    assert_eq!(without_entry(ClientFormat::Toml, split, "mcp_servers").unwrap().unwrap(), "[b]\nc = 1\n");
}

#[test]
fn foreign_members_of_an_old_entry_go() {
    let before =
        "{\"mcpServers\": {\"toolgate\": {\"type\": \"http\", \"url\": \"x\", \"env\": {\"A\": \"1\"}}}}";
    let after = with_entry(ClientFormat::Jsonc, before, "mcpServers", &entry()).unwrap();
    let whole: Value = serde_json::from_str(&after).unwrap();
    let expect = json!({ "command": "toolgate", "args": ["serve", "--stdio"] });
    assert_eq!(whole["mcpServers"]["toolgate"], expect);
}

#[test]
fn text_that_cannot_be_edited_is_refused() {
    for (format, text) in [
        (ClientFormat::Jsonc, "[]"),
        (ClientFormat::Jsonc, "{"),
        (ClientFormat::Jsonc, "{mcp_servers: {}}"),
        (ClientFormat::Jsonc, "{\"mcp_servers\": []}"),
        // Clients take the last of two members with one name.
        (ClientFormat::Jsonc, "{\"mcp_servers\": {}, \"mcp_servers\": {\"a\": 1}}"),
        (ClientFormat::Toml, "not toml"),
        (ClientFormat::Toml, "mcp_servers = 5\n"),
        (ClientFormat::Toml, "mcp_servers = { other = { url = \"x\" } }\n"),
    ] {
        assert!(with_entry(format, text, "mcp_servers", &entry()).is_err(), "{text}");
    }
}
