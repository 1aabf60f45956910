//! Sets, lists, removes and re-encrypts the secrets of tools.

use std::{
    io::{self, IsTerminal as _, Read as _, Write},
    time::SystemTime,
};

use serde_json::{Value, json};
use toolgate::{Config, own_variables};
use toolgate_config::Overrides;
use toolgate_store::{KeyOrigin, ListedSecret, SecretScope, SecretVault, VaultError};
use zeroize::Zeroizing;

use crate::{
    CommandExit, Failure,
    args::{OutputFormat, SecretArgs, SecretCommand},
    gateway, passphrase,
    terminal::{Terminal, visible},
    time,
};

pub fn run(args: &SecretArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let config = args.config.load(&Overrides::default())?;
    let vault = passphrase::vault(&config);
    match &args.command {
        SecretCommand::Set { name, tools, upstreams } => {
            check_name(&config, name)?;
            let scope = SecretScope { tools: tools.clone(), upstreams: upstreams.clone() };
            let value = read_value(name)?;
            let is_first = !vault.exists();
            let origin = set(&config, &vault, name, value, scope)?;
            writeln!(terminal, "set      {}", visible(name))?;
            if is_first {
                describe(&origin, terminal)?;
            }
        }
        SecretCommand::List { format } => list(&vault, *format, terminal)?,
        SecretCommand::Remove { name } => {
            if !vault.remove(name).map_err(|error| failure(&error))? {
                return Err(Failure::new(format!(
                    "unknown secret `{}`; list all with `toolgate secret list`",
                    visible(name)
                )));
            }
            // Recorded afterwards: a full disk must not keep a leaked value in use.
            note(&config, &json!({ "kind": "secret.removed", "secret": name, "by": gateway::operator() }))?;
            writeln!(terminal, "removed  {}", visible(name))?;
        }
        SecretCommand::Rotate => {
            let origin = vault.rotate().map_err(|error| failure(&error))?;
            note(&config, &json!({ "kind": "secret.rotated", "by": gateway::operator() }))?;
            writeln!(terminal, "rotated  all secrets have a new key")?;
            describe(&origin, terminal)?;
        }
        SecretCommand::ImportEnv { names } => import(&config, &vault, names, terminal)?,
    }
    Ok(CommandExit::Clean)
}

fn set(
    config: &Config,
    vault: &SecretVault,
    name: &str,
    value: Zeroizing<String>,
    scope: SecretScope,
) -> Result<KeyOrigin, Failure> {
    let record = json!({
        "kind": "secret.set", "secret": name, "tools": scope.tools, "upstreams": scope.upstreams,
        "by": gateway::operator(),
    });
    let origin = vault.set(name, value, scope, SystemTime::now()).map_err(|error| failure(&error))?;
    note(config, &record)?;
    Ok(origin)
}

fn import(
    config: &Config,
    vault: &SecretVault,
    names: &[String],
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let mut values = Vec::new();
    for name in names {
        check_name(config, name)?;
        let value = std::env::var(name).ok().map(Zeroizing::new).filter(|value| !value.trim().is_empty());
        let value = value.ok_or_else(|| {
            Failure::new(format!("`{}` is not set in this environment; nothing was imported", visible(name)))
        })?;
        values.push((name, value));
    }
    let is_first = !vault.exists();
    let mut place = None;
    for (name, value) in values {
        place = Some(set(config, vault, name, value, SecretScope::default())?);
        writeln!(terminal, "set      {}", visible(name))?;
    }
    if let Some(origin) = place.filter(|_| is_first) {
        describe(&origin, terminal)?;
    }
    Terminal::note("remove these variables from where the gateway is started; the store comes first");
    Ok(())
}

/// A secret of this name would never reach a tool.
fn check_name(config: &Config, name: &str) -> Result<(), Failure> {
    let own = own_variables(config.own_variables());
    if own.contains(name) { Err(Failure::new(visible(&own.refusal(name)).into_owned())) } else { Ok(()) }
}

/// From a hidden prompt, or the whole standard input without its last line break.
fn read_value(name: &str) -> Result<Zeroizing<String>, Failure> {
    if io::stdin().is_terminal() {
        return Ok(passphrase::hidden_line(&format!("Value of {}: ", visible(name)))?);
    }
    let mut text = Zeroizing::new(String::with_capacity(MAX_INPUT));
    let most = u64::try_from(MAX_INPUT).unwrap_or(u64::MAX);
    io::stdin()
        .lock()
        .take(most)
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("standard input cannot be read as text: {error}")))?;
    if text.len() == MAX_INPUT {
        return Err(Failure::new("the value on standard input is too long"));
    }
    let value = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    Ok(Zeroizing::new(value.to_owned()))
}

/// Says where the key is, and what that does not protect against.
fn describe(origin: &KeyOrigin, terminal: &mut Terminal) -> Result<(), Failure> {
    writeln!(terminal, "key      in {}", visible(&origin.to_string()))?;
    if let KeyOrigin::File(_) = origin {
        Terminal::note(
            "a copy of the workspace and the state directory reveals nothing, but a copy of your home directory does, and so \
             does any program that runs as you; `secrets.key` names stronger places",
        );
    }
    Ok(())
}

fn list(vault: &SecretVault, format: OutputFormat, terminal: &mut Terminal) -> Result<(), Failure> {
    let secrets = vault.list().map_err(|error| failure(&error))?;
    if format == OutputFormat::Json {
        let secrets: Vec<Value> = secrets.iter().map(to_json).collect();
        terminal.data(json!({ "secrets": secrets }));
        return Ok(());
    }
    if secrets.is_empty() {
        writeln!(terminal, "no secrets yet; set one with `toolgate secret set NAME`")?;
    }
    for secret in secrets {
        let ListedSecret { name, scope, set } = secret;
        let users: Vec<String> = [("tool", &scope.tools), ("upstream", &scope.upstreams)]
            .into_iter()
            .flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind} {name}")))
            .collect();
        let users = if users.is_empty() { "all that name it".to_owned() } else { users.join(", ") };
        writeln!(terminal, "{}  {}  set {}", visible(&name), visible(&users), time::minute(set))?;
    }
    Ok(())
}

fn to_json(secret: &ListedSecret) -> Value {
    json!({
        "name": secret.name,
        "tools": secret.scope.tools,
        "upstreams": secret.scope.upstreams,
        "set": time::rfc3339(secret.set),
    })
}

fn note(config: &Config, entry: &Value) -> Result<(), Failure> {
    gateway::note(config, entry)
        .map_err(|problem| Failure::new(format!("done, but the journal could not record it: {problem}")))
}

fn failure(error: &VaultError) -> Failure {
    Failure::new(visible(&error.to_string()).into_owned())
}

/// More than the longest value.
const MAX_INPUT: usize = 64 << 10;
