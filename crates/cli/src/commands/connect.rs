//! Adds the gateway to a client's configuration file, or removes it. All other content stays as it is.

mod client;
mod edit;

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::{Component, Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toolgate_config::{Config, Overrides};
use toolgate_server::UNATTENDED_HEADER;
use toolgate_store::{NewToken, TokenRole};

use self::{
    client::ClientFile,
    edit::{ClientFormat, toml_table, with_entry, without_entry},
};
use crate::{
    CommandExit, Failure,
    args::{ClientKind, ConnectArgs, DisconnectArgs, ScopeKind, TransportKind},
    commands::approvals,
    gateway,
    terminal::{Terminal, visible},
    tokens::{self, Revoked},
    write::{self, PrivateFile},
};

pub fn run(args: &ConnectArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let config = args.config.load(&Overrides::default())?;
    let link = ClientLink::new(&config, args.client, args.scope)?;
    let attendance = Attendance::of(args, terminal)?;
    if args.print {
        let entry = link.entry(args.transport, attendance, &|| Ok("TOKEN".to_owned()))?;
        return link.print(&entry, terminal);
    }
    link.check_links()?;
    if args.transport == TransportKind::Http {
        check_token_path(&config, &link.file.path)?;
    }
    let before = read(&link.file.path)?;
    // Check that the file can be edited before the client's old token is revoked.
    let trial = link.entry(args.transport, attendance, &|| Ok("TOKEN".to_owned()))?;
    let after = link.edited(before.as_deref(), &trial)?;
    if args.transport == TransportKind::Stdio && before.as_deref() == Some(after.as_str()) {
        writeln!(terminal, "unchanged {}", visible(&link.file.path.to_string_lossy()))?;
        return Ok(CommandExit::Clean);
    }
    link.make_ready(terminal)?;
    let file = PrivateFile::begin(&link.file.path)?;
    let entry = link.entry(args.transport, attendance, &|| link.new_token())?;
    let written = link.edited(before.as_deref(), &entry).and_then(|after| file.finish(after.as_bytes()));
    written.map_err(|failure| match args.transport {
        TransportKind::Stdio => failure,
        TransportKind::Http => link.write_failure(&failure),
    })?;
    writeln!(terminal, "wrote    {}", visible(&link.file.path.to_string_lossy()))?;
    link.note(args.transport);
    Ok(CommandExit::Clean)
}

/// Removes our entry from the client's file, and revokes its token. Everything else in the file stays.
pub fn disconnect(args: &DisconnectArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let config = args.config.load(&Overrides::default())?;
    let link = ClientLink::new(&config, args.client, args.scope)?;
    link.check_links()?;
    let path = visible(&link.file.path.to_string_lossy()).into_owned();
    let before = read(&link.file.path)?.unwrap_or_default();
    let after = without_entry(link.file.format, &before, link.file.key)
        .map_err(|problem| Failure::at(&link.file.path, format!("{problem}; remove `{NAME}` by hand")))?;
    match after {
        None => writeln!(terminal, "unchanged {path}: it has no entry `{NAME}`")?,
        Some(after) => {
            link.make_ready(terminal)?;
            PrivateFile::begin(&link.file.path)?.finish(after.as_bytes())?;
            writeln!(terminal, "removed  {NAME} from {path}")?;
        }
    }
    // Copies of the file may still contain the token.
    if link.revoke_token()? {
        writeln!(terminal, "revoked  token {}", link.token_name())?;
    }
    Ok(CommandExit::Clean)
}

/// The entry for this gateway in one client's file.
struct ClientLink<'a> {
    config: &'a Config,
    client: ClientKind,
    scope: ScopeKind,
    file: ClientFile,
}

impl<'a> ClientLink<'a> {
    fn new(config: &'a Config, client: ClientKind, scope: Option<ScopeKind>) -> Result<Self, Failure> {
        let scope = scope.unwrap_or_else(|| client.usual_scope());
        Ok(Self { config, client, scope, file: ClientFile::of(client, scope)? })
    }

    fn entry(
        &self,
        transport: TransportKind,
        attendance: Attendance,
        token: &dyn Fn() -> Result<String, Failure>,
    ) -> Result<Map<String, Value>, Failure> {
        let entry = match transport {
            TransportKind::Stdio => self.started(attendance)?,
            TransportKind::Http if self.client == ClientKind::ClaudeDesktop => {
                return Err(Failure::new("Claude Desktop starts its servers; use --transport stdio"));
            }
            TransportKind::Http => self.reached(attendance, &token()?),
        };
        let Value::Object(entry) = entry else {
            return Err(Failure::new("the entry is not an object; report this"));
        };
        Ok(self.client.in_its_format(entry))
    }

    /// The entry for stdio. A team may share a project's file, so it contains no absolute paths.
    fn started(&self, attendance: Attendance) -> Result<Value, Failure> {
        let (program, file) = match self.scope {
            ScopeKind::User => {
                let program = std::env::current_exe()
                    .map_err(|error| Failure::new(format!("the path of this program is unknown: {error}")))?;
                (program.to_string_lossy().into_owned(), self.config_file().to_string_lossy().into_owned())
            }
            ScopeKind::Project => (NAME.to_owned(), self.config_in_project()?),
        };
        let mut args = vec!["serve", "--stdio", "--config", &file];
        if attendance == Attendance::Unattended {
            args.push("--unattended");
        }
        Ok(json!({ "type": "stdio", "command": program, "args": args }))
    }

    fn config_file(&self) -> PathBuf {
        let file = self.config.file.clone().unwrap_or_else(|| PathBuf::from("toolgate.yaml"));
        resolved_path(&file)
    }

    fn config_in_project(&self) -> Result<String, Failure> {
        let file = self.config_file();
        let relative = relative_to(&resolved_path(Path::new(".")), &file).ok_or_else(|| {
            Failure::at(
                &file,
                "it is outside this directory and its parents, and a shared file cannot name it; \
                 run this command in its directory, or use --scope user",
            )
        })?;
        let relative = relative.to_string_lossy();
        Ok(match self.client.project_variable() {
            Some(variable) => format!("{variable}/{relative}"),
            None => relative.into_owned(),
        })
    }

    fn reached(&self, attendance: Attendance, token: &str) -> Value {
        let server = &self.config.server;
        let base = server.public_url.clone().unwrap_or_else(|| format!("http://{}", server.listen));
        let mut servers = snippet(&format!("{base}/mcp"), token);
        let mut entry = servers.pointer_mut("/mcpServers/toolgate").map(Value::take).unwrap_or_default();
        let headers = entry.get_mut("headers").and_then(Value::as_object_mut);
        if let (Attendance::Unattended, Some(headers)) = (attendance, headers) {
            headers.insert(UNATTENDED_HEADER.to_owned(), "true".into());
        }
        entry
    }

    /// Each client and scope has its own token, which can be revoked alone.
    fn token_name(&self) -> String {
        let client = self.client.name();
        match self.scope {
            scope if scope == self.client.usual_scope() => format!("client-{client}"),
            ScopeKind::User => format!("client-{client}-user"),
            ScopeKind::Project => format!("client-{client}-project"),
        }
    }

    fn new_token(&self) -> Result<String, Failure> {
        self.revoke_token()?;
        let local = &self.config.auth.local;
        let new = NewToken {
            subject: local.subject.clone(),
            permissions: local.permissions.clone(),
            name: self.token_name(),
            role: TokenRole::Caller,
            expires: None,
        };
        let state = approvals::state(self.config)?;
        let token = tokens::create(&state, new, |entry| gateway::note(self.config, entry))?;
        Ok(token.as_str().to_owned())
    }

    /// Returns whether there was a token.
    fn revoke_token(&self) -> Result<bool, Failure> {
        let state = approvals::state(self.config)?;
        let revoked = tokens::revoke(&state, &self.token_name(), |entry| gateway::note(self.config, entry))?;
        Ok(revoked.map(Revoked::recorded).transpose()?.is_some())
    }

    /// Revokes the new token after the file could not be written.
    fn write_failure(&self, failure: &Failure) -> Failure {
        let name = self.token_name();
        Failure::new(match self.revoke_token() {
            Ok(_) => format!("{failure}; its new token `{name}` is revoked again"),
            Err(problem) => {
                format!("{failure}; its new token `{name}` is still valid: {problem}")
            }
        })
    }

    fn edited(&self, before: Option<&str>, entry: &Map<String, Value>) -> Result<String, Failure> {
        with_entry(self.file.format, before.unwrap_or_default(), self.file.key, entry)
            .map_err(|problem| Failure::at(&self.file.path, format!("{problem}; use --print")))
    }

    /// Prints the edited file. If the file cannot be edited, prints a file with our entry alone.
    fn print(&self, entry: &Map<String, Value>, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
        if self.file.format == ClientFormat::Toml {
            write!(terminal, "{}", toml_table(self.file.key, entry))?;
            return Ok(CommandExit::Clean);
        }
        let before = read(&self.file.path).ok().flatten();
        let whole = self.edited(before.as_deref(), entry).or_else(|_| self.edited(None, entry))?;
        for line in whole.lines() {
            let shown: Vec<_> = line.split('\t').map(visible).collect();
            writeln!(terminal, "{}", shown.join("\t"))?;
        }
        Ok(CommandExit::Clean)
    }

    /// Refuses symlinks, also for the client's directory in a project. Otherwise the author of a project could redirect the
    /// write to another file of the user.
    fn check_links(&self) -> Result<(), Failure> {
        let path = &self.file.path;
        let folder =
            path.parent().filter(|folder| self.scope == ScopeKind::Project && !folder.as_os_str().is_empty());
        match folder.into_iter().chain([path.as_path()]).find(|path| path.is_symlink()) {
            Some(link) => Err(Failure::at(
                link,
                "this is a symlink, which is not followed; use --print and edit the file by hand",
            )),
            None => Ok(()),
        }
    }

    /// Backs an existing file up, or creates its directory. Tools cannot read the backups, which may contain tokens.
    fn make_ready(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let path = &self.file.path;
        if path.exists() {
            let backup =
                write::write_private_copy(path, &self.config.state.join("backups"), self.client.name())?;
            writeln!(terminal, "backup   {}", visible(&backup.to_string_lossy()))?;
        } else if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            write::create_folder(folder)?;
        }
        Ok(())
    }

    fn note(&self, transport: TransportKind) {
        if transport == TransportKind::Stdio {
            Terminal::note(
                "secrets of tools: run `toolgate secret set NAME`; the client's configuration does not need them",
            );
        }
        match (transport, self.scope) {
            (TransportKind::Http, ScopeKind::Project) => Terminal::note(&format!(
                "`{}` now contains a token and may be committed by accident: add it to `.gitignore`; if it leaks, run `toolgate token revoke {}`",
                visible(&self.file.path.to_string_lossy()),
                self.token_name()
            )),
            (TransportKind::Stdio, ScopeKind::Project) if !is_on_path() => Terminal::note(&format!(
                "`{NAME}` is not on your PATH, where the client looks for it; `make install` puts it there"
            )),
            _ => {}
        }
    }
}

fn is_on_path() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(NAME).is_file())
}

/// The path of `file` relative to `folder`, if one of the two directories contains the other. Both are absolute.
fn relative_to(folder: &Path, file: &Path) -> Option<PathBuf> {
    if let Ok(below) = file.strip_prefix(folder) {
        return Some(below.to_owned());
    }
    let above = folder.strip_prefix(file.parent()?).ok()?;
    let up = above.components().filter(|part| matches!(part, Component::Normal(_))).map(|_| "..");
    Some(up.collect::<PathBuf>().join(file.file_name()?))
}

/// Refuses to write a token that is not accepted, or to a file that tools can read.
fn check_token_path(config: &Config, path: &Path) -> Result<(), Failure> {
    if !config.auth.tokens {
        return Err(Failure::new(
            "`auth.tokens` is false, so the gateway accepts no tokens; set it to true, or use --transport stdio",
        ));
    }
    let real = resolved_path(path);
    let workspace = resolved_path(&config.workspace);
    let is_guarded = config.guarded_paths().iter().any(|own| real.starts_with(resolved_path(own)));
    if !real.starts_with(&workspace) || is_guarded {
        return Ok(());
    }
    Err(Failure::at(
        path,
        format!(
            "this file is in the workspace, where tools could read the token; run this command in `{}`, whose client files are hidden from tools, or use --transport stdio",
            workspace.display()
        ),
    ))
}

/// The absolute path with symlinks resolved, as far as it exists.
fn resolved_path(path: &Path) -> PathBuf {
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

/// Whether a person uses the client and answers its questions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Attendance {
    Attended,
    /// The gateway sends all questions to the queue.
    Unattended,
}

impl Attendance {
    /// From the flags, or asked on the terminal. Otherwise unattended, which is the safe choice.
    fn of(args: &ConnectArgs, terminal: &mut Terminal) -> Result<Self, Failure> {
        match (args.attended, args.unattended) {
            (true, _) => return Ok(Self::Attended),
            (_, true) => return Ok(Self::Unattended),
            (false, false) => {}
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            Terminal::note(
                "connected as unattended: approval questions go to `toolgate approvals`; \
                 use --attended if a person answers them in this client",
            );
            return Ok(Self::Unattended);
        }
        terminal.flush()?;
        let mut stderr = io::stderr();
        write!(stderr, "Does a person use this client and answer its questions? [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(if matches!(answer.trim(), "y" | "Y" | "yes") { Self::Attended } else { Self::Unattended })
    }
}

/// The configuration that `serve` prints. Most clients accept it.
pub fn snippet(url: &str, token: &str) -> Value {
    json!({ "mcpServers": { NAME: { "type": "http", "url": url, "headers": { "Authorization": format!("Bearer {token}") } } } })
}

/// `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    fs::read_to_string(path).map(Some).map_err(|error| Failure::at(path, error))
}

/// The name of our entry.
const NAME: &str = "toolgate";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::relative_to;

    #[test]
    fn configuration_path_is_relative_to_the_project() {
        let check = |folder: &str, file: &str, expect: Option<&str>| {
            assert_eq!(relative_to(Path::new(folder), Path::new(file)).as_deref(), expect.map(Path::new));
        };
        check("/p", "/p/toolgate.yaml", Some("toolgate.yaml"));
        check("/p", "/p/gate/toolgate.yaml", Some("gate/toolgate.yaml"));
        check("/p/packages/web", "/p/toolgate.yaml", Some("../../toolgate.yaml"));
        check("/p", "/etc/toolgate/toolgate.yaml", None);
    }
}
