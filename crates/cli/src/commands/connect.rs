//! How does a client find this gateway? Its configuration names it; what else stands there stays.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toml_edit::DocumentMut;
use toolgate_config::{Config, Overrides};
use toolgate_server::UNATTENDED_HEADER;
use toolgate_store::{NewToken, Role};

use crate::{
    Ending, Failure,
    args::{ClientKind, ConnectArgs, TransportKind},
    commands::approvals,
    gateway,
    terminal::{Terminal, json_pretty, visible},
    tokens::{self, Revoked},
    write::{self, PrivateFile},
};

pub fn run(args: &ConnectArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let config = args.config.load(&Overrides::default())?;
    let (path, key) = place(args.client);
    let backup = Backup::of(&config, args.client);
    let client = args.client;
    let attendance = Attendance::of(args, terminal)?;
    if args.print {
        return print(&path, key, &server(&config, args, attendance)?, client, terminal);
    }
    check_links(client, &path)?;
    if args.transport == TransportKind::Http {
        check_token_place(&config, &path)?;
    }
    let before = read(&path)?;
    // Everything that can be refused is refused now: a file that cannot be extended must not cost the client its token.
    extended(client, &path, key, before.as_deref(), &started(&config, attendance)?)?;
    make_ready(&path, &backup, terminal)?;
    let file = PrivateFile::begin(&path)?;
    let server = server(&config, args, attendance)?;
    let written = extended(client, &path, key, before.as_deref(), &server)
        .and_then(|after| file.finish(after.as_bytes()));
    written.map_err(|failure| match args.transport {
        TransportKind::Stdio => failure,
        TransportKind::Http => unwritten(&config, client, &failure),
    })?;
    writeln!(terminal, "wrote    {}", visible(&path.to_string_lossy()))?;
    if args.transport == TransportKind::Http && is_of_a_project(client) {
        Terminal::note(&format!(
            "`{}` holds a token now, and is a file that people commit: leave it out (`.gitignore`), and use `toolgate token revoke {}` if it got out",
            visible(&path.to_string_lossy()),
            token_name(client)
        ));
    }
    Ok(Ending::Clean)
}

/// A token that opens nothing helps nobody; one that every tool can read is everybody's.
fn check_token_place(config: &Config, path: &Path) -> Result<(), Failure> {
    if !config.auth.tokens {
        return Err(Failure::new(
            "`auth.tokens` is false, so a token would open nothing; set it to true, or use --transport stdio",
        ));
    }
    let real = real_place(path);
    let workspace = real_place(&config.workspace);
    let is_guarded = config.guarded_paths().iter().any(|own| real.starts_with(real_place(own)));
    if !real.starts_with(&workspace) || is_guarded {
        return Ok(());
    }
    Err(Failure::at(
        path,
        format!(
            "every tool that reads files could read the token there, in the workspace; run this in `{}`, whose client files no tool reads, or use --transport stdio",
            workspace.display()
        ),
    ))
}

/// Where it is, or will be: its folder as the system knows it, as far as that is there.
fn real_place(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut rest = Vec::new();
    let mut there = whole.as_path();
    loop {
        if let Ok(real) = there.canonicalize() {
            return rest.iter().rev().fold(real, |real, part| real.join(part));
        }
        match (there.parent(), there.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                there = parent;
            }
            _ => return whole,
        }
    }
}

/// What the file would hold; where it cannot be extended, what is to be put into it.
fn print(
    path: &Path,
    key: &str,
    server: &Value,
    client: ClientKind,
    terminal: &mut Terminal,
) -> Result<Ending, Failure> {
    if client == ClientKind::Codex {
        write!(terminal, "{}", codex_table(server))?;
        return Ok(Ending::Clean);
    }
    let before = read(path).ok().flatten();
    let whole = with_server(path, key, before.as_deref(), server);
    let shown = whole.or_else(|_| with_server(path, key, None, server))?;
    writeln!(terminal, "{}", json_pretty(&shown))?;
    Ok(Ending::Clean)
}

/// Does a person sit before the client and answer its questions?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Attendance {
    Attended,
    /// The gateway puts no questions to the client; they go to the queue.
    Unattended,
}

impl Attendance {
    /// From the flags, or asked on the terminal. Without both, a person may be missing, and the queue is the safe choice.
    fn of(args: &ConnectArgs, terminal: &mut Terminal) -> Result<Self, Failure> {
        match (args.attended, args.unattended) {
            (true, _) => return Ok(Self::Attended),
            (_, true) => return Ok(Self::Unattended),
            (false, false) => {}
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            Terminal::note(
                "connected as unattended: questions about calls go to `toolgate approvals`; \
                 use --attended if a person answers in this client",
            );
            return Ok(Self::Unattended);
        }
        terminal.flush()?;
        let mut stderr = io::stderr();
        write!(stderr, "Does a person sit before this client and answer its questions? [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(if matches!(answer.trim(), "y" | "Y" | "yes") { Self::Attended } else { Self::Unattended })
    }
}

fn server(config: &Config, args: &ConnectArgs, attendance: Attendance) -> Result<Value, Failure> {
    let server = match args.transport {
        TransportKind::Stdio => started(config, attendance),
        TransportKind::Http => reached(config, args, attendance),
    }?;
    Ok(if args.client == ClientKind::Gemini { for_gemini(server) } else { server })
}

/// Gemini CLI has no `type`; it knows a Streamable HTTP server by `httpUrl`.
fn for_gemini(mut server: Value) -> Value {
    if let Some(members) = server.as_object_mut() {
        members.remove("type");
        if let Some(url) = members.remove("url") {
            members.insert("httpUrl".to_owned(), url);
        }
    }
    server
}

/// The snippet that `serve` prints: what most clients take under `mcpServers`.
pub fn snippet(url: &str, token: &str) -> Value {
    json!({ "mcpServers": { NAME: { "type": "http", "url": url, "headers": { "Authorization": format!("Bearer {token}") } } } })
}

fn started(config: &Config, attendance: Attendance) -> Result<Value, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("this program cannot be found: {error}")))?;
    let file = config.file.clone().unwrap_or_else(|| PathBuf::from("toolgate.yaml"));
    let mut args = vec![json!("serve"), json!("--stdio"), json!("--config"), json!(file)];
    if attendance == Attendance::Unattended {
        args.push(json!("--unattended"));
    }
    Ok(json!({ "type": "stdio", "command": program, "args": args }))
}

/// A token for this client alone, so that it can be taken back alone.
fn reached(config: &Config, args: &ConnectArgs, attendance: Attendance) -> Result<Value, Failure> {
    let base = config.server.public_url.clone().unwrap_or_else(|| format!("http://{}", config.server.listen));
    let token = if args.print {
        "TOKEN".to_owned()
    } else {
        let name = token_name(args.client);
        let state = approvals::state(config)?;
        let note = |entry: &Value| gateway::note(config, entry);
        tokens::revoke(&state, &name, note)?.map(Revoked::recorded).transpose()?;
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
    let mut server = servers.pointer_mut("/mcpServers/toolgate").map(Value::take).unwrap_or_default();
    let headers = server.get_mut("headers").and_then(Value::as_object_mut);
    if let (Attendance::Unattended, Some(headers)) = (attendance, headers) {
        headers.insert(UNATTENDED_HEADER.to_owned(), "true".into());
    }
    Ok(server)
}

/// The token that was made for the file is in no file, and nobody knows it.
fn unwritten(config: &Config, client: ClientKind, failure: &Failure) -> Failure {
    let name = token_name(client);
    let taken_back = approvals::state(config)
        .and_then(|state| tokens::revoke(&state, &name, |entry| gateway::note(config, entry)));
    Failure::new(match taken_back {
        Ok(_) => format!("{failure}; the token `{name}`, which was made for it, is revoked again"),
        Err(problem) => {
            format!("{failure}; the token `{name}`, which was made for it, is still good: {problem}")
        }
    })
}

fn token_name(client: ClientKind) -> String {
    format!("client-{}", client_name(client))
}

/// The client's file, and the member that holds its servers.
fn place(client: ClientKind) -> (PathBuf, &'static str) {
    match client {
        ClientKind::Claude => (PathBuf::from(".mcp.json"), "mcpServers"),
        ClientKind::Cursor => (PathBuf::from(".cursor/mcp.json"), "mcpServers"),
        ClientKind::Vscode => (PathBuf::from(".vscode/mcp.json"), "servers"),
        ClientKind::Codex => (codex_file(), "mcp_servers"),
        ClientKind::Gemini => (PathBuf::from(".gemini/settings.json"), "mcpServers"),
    }
}

const fn client_name(client: ClientKind) -> &'static str {
    match client {
        ClientKind::Claude => "claude",
        ClientKind::Cursor => "cursor",
        ClientKind::Vscode => "vscode",
        ClientKind::Codex => "codex",
        ClientKind::Gemini => "gemini",
    }
}

/// `None`: there is no such file yet.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    fs::read_to_string(path).map(Some).map_err(|error| Failure::at(path, error))
}

/// The file with the server in it; refused where it cannot take one more.
fn extended(
    client: ClientKind,
    path: &Path,
    key: &str,
    before: Option<&str>,
    server: &Value,
) -> Result<String, Failure> {
    if client == ClientKind::Codex {
        return with_table(path, key, before.unwrap_or_default(), server);
    }
    Ok(format!("{:#}\n", with_server(path, key, before, server)?))
}

fn with_server(path: &Path, key: &str, before: Option<&str>, server: &Value) -> Result<Value, Failure> {
    let no_object = |what: &str| Failure::at(path, format!("{what} is no object; use --print"));
    let whole = before.map_or_else(|| Ok(Value::Object(Map::new())), serde_json::from_str);
    let whole = whole.map_err(|error| {
        Failure::at(path, format!("it is no JSON that can be extended: {error}; use --print"))
    })?;
    let Value::Object(mut whole) = whole else { return Err(no_object("it")) };
    let servers = whole.entry(key).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(servers) = servers else { return Err(no_object(&format!("`{key}`"))) };
    servers.insert(NAME.to_owned(), server.clone());
    Ok(Value::Object(whole))
}

/// Codex writes TOML: its table is added at the end, where that changes nothing else. What comes of it is read again, for
/// an inline table, say, cannot be extended from outside.
fn with_table(path: &Path, key: &str, before: &str, server: &Value) -> Result<String, Failure> {
    let parsed = |text: &str| {
        text.parse::<DocumentMut>().map_err(|error| {
            Failure::at(path, format!("it is no TOML that can be extended: {}; use --print", error.message()))
        })
    };
    if parsed(before)?.get(key).is_some_and(|servers| servers.get(NAME).is_some()) {
        return Err(Failure::at(path, "it names toolgate already; change it there, or use --print"));
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let after = format!("{before}{gap}\n{}", codex_table(server));
    parsed(&after)?;
    Ok(after)
}

fn codex_table(server: &Value) -> String {
    let text = |pointer: &str| server.pointer(pointer).map(Value::to_string).unwrap_or_default();
    let table = if server.get("command").is_some() {
        format!("command = {}\nargs = {}\n", text("/command"), text("/args"))
    } else {
        let headers = server.get("headers").and_then(Value::as_object).into_iter().flatten();
        let headers: Vec<String> = headers.map(|(name, value)| format!("{name} = {value}")).collect();
        format!("url = {}\nhttp_headers = {{ {} }}\n", text("/url"), headers.join(", "))
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

/// Links are not followed, nor one in the place of the client's folder: who wrote this project may not choose another of the
/// user's files.
fn check_links(client: ClientKind, path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| is_of_a_project(client) && !folder.as_os_str().is_empty());
    match folder.into_iter().chain([path]).find(|place| place.is_symlink()) {
        Some(link) => Err(Failure::at(link, "this is a link, and is not written through; use --print")),
        None => Ok(()),
    }
}

/// Is the client's file one of the folder that this is run in, and not of its user?
const fn is_of_a_project(client: ClientKind) -> bool {
    match client {
        ClientKind::Claude | ClientKind::Cursor | ClientKind::Vscode | ClientKind::Gemini => true,
        ClientKind::Codex => false,
    }
}

/// A copy of the file as it is, or the folder that it will be in.
fn make_ready(path: &Path, backup: &Backup, terminal: &mut Terminal) -> Result<(), Failure> {
    if path.exists() {
        let backup = write::write_private_copy(path, &backup.folder, backup.name)?;
        writeln!(terminal, "backup   {}", visible(&backup.to_string_lossy()))?;
    } else if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        write::create_folder(folder)?;
    }
    Ok(())
}

/// What clients know this gateway by.
const NAME: &str = "toolgate";
