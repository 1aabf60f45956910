//! Creates, lists and revokes access tokens.

use std::{io::Write, time::SystemTime};

use serde_json::{Value, json};
use toolgate_config::Overrides;
use toolgate_store::{NewToken, StateDb, StoredToken, TokenRole};

use crate::{
    CommandExit, Failure,
    args::{OutputFormat, TokenArgs, TokenCommand},
    commands::approvals,
    gateway,
    terminal::{Terminal, visible},
    time, tokens,
};

pub fn run(args: &TokenArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let config = args.config.load(&Overrides::default())?;
    let state = approvals::state(&config)?;
    match &args.command {
        TokenCommand::Create { name, subject, permissions, expires, admin, format } => {
            let now = SystemTime::now();
            let expires = match expires.as_deref() {
                None => None,
                Some(text) => Some(
                    now + time::span(text).ok_or_else(|| {
                        Failure::new(format!(
                            "invalid duration `{}`; write for example 30d, 12h, 15m or 90s",
                            visible(text)
                        ))
                    })?,
                ),
            };
            let new = NewToken {
                name: name.clone(),
                subject: subject.clone().unwrap_or_else(|| name.clone()),
                permissions: permissions.clone(),
                role: if *admin { TokenRole::Admin } else { TokenRole::Caller },
                expires,
            };
            let text = tokens::create(&state, new, |entry| gateway::note(&config, entry))?;
            Terminal::note("this token is shown only once; store it with your secrets");
            match format {
                OutputFormat::Json => terminal.data(json!({ "name": name, "token": text.as_str() })),
                OutputFormat::Text => writeln!(terminal, "{}", text.as_str())?,
            }
            Ok(CommandExit::Clean)
        }
        TokenCommand::List { format } => list(&state, *format, terminal),
        TokenCommand::Revoke { token, format } => {
            match tokens::revoke(&state, token, |entry| gateway::note(&config, entry))? {
                Some(revoked) => {
                    let name = revoked.recorded()?.name;
                    match format {
                        OutputFormat::Json => terminal.data(json!({ "revoked": name })),
                        OutputFormat::Text => writeln!(terminal, "revoked  {}", visible(&name))?,
                    }
                    Ok(CommandExit::Clean)
                }
                None => Err(Failure::new(format!(
                    "unknown token `{}`; list all with `toolgate token list`",
                    visible(token)
                ))),
            }
        }
    }
}

fn list(state: &StateDb, format: OutputFormat, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let tokens = state.list_tokens().map_err(|error| Failure::new(visible(&error.to_string())))?;
    if format == OutputFormat::Json {
        let tokens: Vec<Value> = tokens.iter().map(to_json).collect();
        terminal.data(json!({ "tokens": tokens }));
        return Ok(CommandExit::Clean);
    }
    if tokens.is_empty() {
        writeln!(terminal, "no tokens yet; create one with `toolgate token create NAME`")?;
    }
    for token in tokens {
        let permissions: Vec<&str> = token.permissions.iter().map(String::as_str).collect();
        let state = match (state_of(&token), token.expires) {
            ("valid", Some(at)) => format!("until {}", time::minute(at)),
            ("valid", None) => "no expiry".to_owned(),
            (ended, _) => ended.to_owned(),
        };
        let style = terminal.palette.of(&state);
        writeln!(
            terminal,
            "{}  {}  {}  {style}{state}{style:#}  [{}]  last used {}",
            visible(&token.name),
            visible(&token.subject),
            token.role.name(),
            visible(&permissions.join(", ")),
            token.last_used.map_or_else(|| "never".to_owned(), time::minute)
        )?;
    }
    Ok(CommandExit::Clean)
}

fn state_of(token: &StoredToken) -> &'static str {
    match (token.revoked, token.expires) {
        (Some(_), _) => "revoked",
        (None, Some(at)) if at <= SystemTime::now() => "expired",
        (None, _) => "valid",
    }
}

fn to_json(token: &StoredToken) -> Value {
    json!({
        "name": token.name,
        "subject": token.subject,
        "role": token.role.name(),
        "permissions": token.permissions,
        "state": state_of(token),
        "expires": token.expires.map(time::rfc3339),
        "lastUsed": token.last_used.map(time::rfc3339),
    })
}
