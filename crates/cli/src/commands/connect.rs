//! How does a client find this gateway? Its configuration names it; what else stands there stays.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toolgate_config::{Config, Overrides};
use toolgate_store::{NewToken, Role};

use crate::{
    Ending, Failure,
    args::{ClientKind, ConnectArgs, TransportKind},
    commands::approvals,
    gateway,
    terminal::{Terminal, json_pretty, visible},
    tokens, write,
};

pub fn run(args: &ConnectArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let config = args.config.load(&Overrides::default())?;
    // Before anything is changed, for a file that cannot be extended must not cost the client its token.
    let before = if args.client == ClientKind::Codex { Value::Null } else { read(&place(args.client).0)? };
    let server = match args.transport {
        TransportKind::Stdio => started(&config)?,
        TransportKind::Http => reached(&config, args)?,
    };
    if args.client == ClientKind::Codex {
        return codex(&server, &config, args, terminal);
    }
    let (path, key) = place(args.client);
    let after = with_server(before, key, &server)?;
    let text = format!("{after:#}\n");
    if args.print {
        writeln!(terminal, "{}", json_pretty(&after))?;
        return Ok(Ending::Clean);
    }
    put(&path, &text, &Backup::of(&config, args.client), terminal)?;
    Ok(Ending::Clean)
}

/// The snippet that `serve` prints: what most clients take under `mcpServers`.
pub fn snippet(url: &str, token: &str) -> Value {
    json!({ "mcpServers": { NAME: { "type": "http", "url": url, "headers": { "Authorization": format!("Bearer {token}") } } } })
}

fn started(config: &Config) -> Result<Value, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("this program cannot be found: {error}")))?;
    let file = config.file.clone().unwrap_or_else(|| PathBuf::from("toolgate.yaml"));
    Ok(json!({
        "type": "stdio",
        "command": program,
        "args": ["serve", "--stdio", "--config", file],
    }))
}

/// A token for this client alone, so that it can be taken back alone.
fn reached(config: &Config, args: &ConnectArgs) -> Result<Value, Failure> {
    let base = config.server.public_url.clone().unwrap_or_else(|| format!("http://{}", config.server.listen));
    let token = if args.print {
        "TOKEN".to_owned()
    } else {
        let name = format!("client-{}", client_name(args.client));
        let state = approvals::state(config)?;
        let note = |entry: &Value| gateway::note(config, entry);
        tokens::revoke(&state, &name, note)?;
        let new = NewToken {
            subject: config.auth.local.subject.clone(),
            permissions: config.auth.local.permissions.clone(),
            name,
            role: Role::Caller,
            expires: None,
        };
        tokens::create(&state, new, note)?.as_str().to_owned()
    };
    let mut servers = snippet(&format!("{base}/mcp"), &token);
    Ok(servers.pointer_mut("/mcpServers/toolgate").map(Value::take).unwrap_or_default())
}

/// The client's file, and the member that holds its servers.
fn place(client: ClientKind) -> (PathBuf, &'static str) {
    match client {
        ClientKind::Claude => (PathBuf::from(".mcp.json"), "mcpServers"),
        ClientKind::Cursor => (PathBuf::from(".cursor/mcp.json"), "mcpServers"),
        ClientKind::Vscode => (PathBuf::from(".vscode/mcp.json"), "servers"),
        ClientKind::Codex => (codex_file(), "mcp_servers"),
    }
}

const fn client_name(client: ClientKind) -> &'static str {
    match client {
        ClientKind::Claude => "claude",
        ClientKind::Cursor => "cursor",
        ClientKind::Vscode => "vscode",
        ClientKind::Codex => "codex",
    }
}

fn read(path: &Path) -> Result<Value, Failure> {
    if !path.exists() {
        return Ok(Value::Object(Map::new()));
    }
    let text = fs::read_to_string(path).map_err(|error| Failure::at(path, error))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::at(path, format!("it is no JSON that can be extended: {error}; use --print"))
    })
}

fn with_server(before: Value, key: &str, server: &Value) -> Result<Value, Failure> {
    let refuse = || Failure::new(format!("`{key}` of the client's file is no object; use --print"));
    let Value::Object(mut whole) = before else { return Err(refuse()) };
    let servers = whole.entry(key).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(servers) = servers else { return Err(refuse()) };
    servers.insert(NAME.to_owned(), server.clone());
    Ok(Value::Object(whole))
}

/// Codex writes TOML: its table is added at the end, where that changes nothing else.
fn codex(
    server: &Value,
    config: &Config,
    args: &ConnectArgs,
    terminal: &mut Terminal,
) -> Result<Ending, Failure> {
    let table = codex_table(server);
    if args.print {
        write!(terminal, "{table}")?;
        return Ok(Ending::Clean);
    }
    let path = codex_file();
    let before = if path.exists() {
        fs::read_to_string(&path).map_err(|error| Failure::at(&path, error))?
    } else {
        String::new()
    };
    if before.contains("[mcp_servers.toolgate]") {
        return Err(Failure::at(&path, "it names toolgate already; change it there, or use --print"));
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    put(&path, &format!("{before}{gap}\n{table}"), &Backup::of(config, args.client), terminal)?;
    Ok(Ending::Clean)
}

fn codex_table(server: &Value) -> String {
    let text = |pointer: &str| server.pointer(pointer).map(Value::to_string).unwrap_or_default();
    let table = if server.get("command").is_some() {
        format!("command = {}\nargs = {}\n", text("/command"), text("/args"))
    } else {
        format!(
            "url = {}\nhttp_headers = {{ Authorization = {} }}\n",
            text("/url"),
            text("/headers/Authorization")
        )
    };
    format!("[mcp_servers.toolgate]\n{table}")
}

fn codex_file() -> PathBuf {
    let home = std::env::var_os("CODEX_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".codex")));
    home.unwrap_or_else(|| PathBuf::from(".codex")).join("config.toml")
}

/// Where the file as it was is kept. An earlier token may stand in it, so that it lies where no tool can look.
struct Backup {
    folder: PathBuf,
    name: &'static str,
}

impl Backup {
    fn of(config: &Config, client: ClientKind) -> Self {
        Self { folder: config.state.join("backups"), name: client_name(client) }
    }
}

/// A token may stand in it, so that it is this user's alone. Links are not followed: who wrote this folder may not choose
/// another of the user's files.
fn put(path: &Path, text: &str, backup: &Backup, terminal: &mut Terminal) -> Result<(), Failure> {
    if path.is_symlink() {
        return Err(Failure::at(path, "this is a link, and is not written through; use --print"));
    }
    if path.exists() {
        let backup = write::write_private_copy(path, &backup.folder, backup.name)?;
        writeln!(terminal, "backup   {}", visible(&backup.to_string_lossy()))?;
    } else if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        write::create_folder(folder)?;
    }
    write::write_private(path, text.as_bytes())?;
    writeln!(terminal, "wrote    {}", visible(&path.to_string_lossy()))?;
    Ok(())
}

/// What clients know this gateway by.
const NAME: &str = "toolgate";
