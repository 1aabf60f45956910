//! Who may call, and with which token?

use std::{io::Write, time::SystemTime};

use toolgate_config::Overrides;
use toolgate_store::{NewToken, Role, State};

use crate::{
    Ending, Failure,
    args::{TokenArgs, TokenCommand},
    commands::approvals,
    gateway,
    terminal::{Terminal, visible},
    time, tokens,
};

pub fn run(args: &TokenArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let config = args.config.load(&Overrides::default())?;
    let state = approvals::state(&config)?;
    match &args.command {
        TokenCommand::Create { name, subject, permissions, expires, admin } => {
            let now = SystemTime::now();
            let expires = match expires.as_deref() {
                None => None,
                Some(text) => Some(
                    now + time::span(text).ok_or_else(|| {
                        Failure::new(format!(
                            "`{}` is no time; write one such as 30d, 12h, 15m or 90s",
                            visible(text)
                        ))
                    })?,
                ),
            };
            let new = NewToken {
                name: name.clone(),
                subject: subject.clone().unwrap_or_else(|| name.clone()),
                permissions: permissions.clone(),
                role: if *admin { Role::Admin } else { Role::Caller },
                expires,
            };
            let text = tokens::create(&state, new, |entry| gateway::note(&config, entry))?;
            Terminal::note("This token is shown once; keep it where secrets are kept.");
            writeln!(terminal, "{}", text.as_str())?;
            Ok(Ending::Clean)
        }
        TokenCommand::List => list(&state, terminal),
        TokenCommand::Revoke { token } => {
            match tokens::revoke(&state, token, |entry| gateway::note(&config, entry))? {
                Some(revoked) => {
                    writeln!(terminal, "revoked  {}", visible(&revoked.recorded()?.name))?;
                    Ok(Ending::Clean)
                }
                None => Err(Failure::new(format!("there is no token `{}`", visible(token)))),
            }
        }
    }
}

fn list(state: &State, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let tokens = state.list_tokens().map_err(|error| Failure::new(visible(&error.to_string())))?;
    if tokens.is_empty() {
        writeln!(terminal, "no tokens yet; `toolgate token create NAME` makes one")?;
    }
    for token in tokens {
        let permissions: Vec<&str> = token.permissions.iter().map(String::as_str).collect();
        let state = match (token.revoked, token.expires) {
            (Some(_), _) => "revoked".to_owned(),
            (None, Some(at)) if at <= SystemTime::now() => "expired".to_owned(),
            (None, Some(at)) => format!("until {}", time::minute(at)),
            (None, None) => "no end".to_owned(),
        };
        writeln!(
            terminal,
            "{}  {}  {}  {}  [{}]  last used {}",
            visible(&token.name),
            visible(&token.subject),
            token.role.name(),
            state,
            visible(&permissions.join(", ")),
            token.last_used.map_or_else(|| "never".to_owned(), time::minute)
        )?;
    }
    Ok(Ending::Clean)
}
