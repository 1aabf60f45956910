//! The files and entry formats of the clients.

use std::{env, path::PathBuf};

use serde_json::{Map, Value};

use super::edit::ClientFormat;
use crate::{
    Failure,
    args::{ClientKind, ScopeKind},
};

/// A client's configuration file.
#[derive(Debug)]
pub struct ClientFile {
    pub path: PathBuf,
    /// The member that holds the servers.
    pub key: &'static str,
    pub format: ClientFormat,
}

impl ClientFile {
    pub fn of(client: ClientKind, scope: ScopeKind) -> Result<Self, Failure> {
        let key = match client {
            ClientKind::Vscode => "servers",
            ClientKind::Codex => "mcp_servers",
            ClientKind::Zed => "context_servers",
            ClientKind::Claude
            | ClientKind::ClaudeDesktop
            | ClientKind::Cursor
            | ClientKind::Gemini
            | ClientKind::Windsurf => "mcpServers",
        };
        let format = if client == ClientKind::Codex { ClientFormat::Toml } else { ClientFormat::Jsonc };
        let path = match scope {
            ScopeKind::Project => project_file(client)?,
            ScopeKind::User => user_file(client)?,
        };
        Ok(Self { path, key, format })
    }
}

impl ClientKind {
    /// The default scope: the project's file, if that is usual for the client.
    pub const fn usual_scope(self) -> ScopeKind {
        match self {
            Self::Claude | Self::Cursor | Self::Vscode | Self::Gemini | Self::Zed => ScopeKind::Project,
            Self::ClaudeDesktop | Self::Codex | Self::Windsurf => ScopeKind::User,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
        }
    }

    /// The client's variable for the project directory. Clients without one start servers in that directory.
    pub const fn project_variable(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("${CLAUDE_PROJECT_DIR:-.}"),
            Self::Cursor | Self::Vscode => Some("${workspaceFolder}"),
            Self::ClaudeDesktop | Self::Codex | Self::Gemini | Self::Windsurf | Self::Zed => None,
        }
    }

    /// Converts the common entry format to this client's format.
    pub fn in_its_format(self, mut entry: Map<String, Value>) -> Map<String, Value> {
        if matches!(self, Self::Claude | Self::Cursor | Self::Vscode) {
            return entry;
        }
        entry.remove("type");
        let renamed: &[(&str, &str)] = match self {
            Self::Gemini => &[("url", "httpUrl")],
            Self::Windsurf => &[("url", "serverUrl")],
            Self::Codex => &[("headers", "http_headers")],
            _ => &[],
        };
        for (from, to) in renamed {
            if let Some(value) = entry.remove(*from) {
                entry.insert((*to).to_owned(), value);
            }
        }
        entry
    }
}

fn project_file(client: ClientKind) -> Result<PathBuf, Failure> {
    Ok(PathBuf::from(match client {
        ClientKind::Claude => ".mcp.json",
        ClientKind::Cursor => ".cursor/mcp.json",
        ClientKind::Vscode => ".vscode/mcp.json",
        ClientKind::Codex => ".codex/config.toml",
        ClientKind::Gemini => ".gemini/settings.json",
        ClientKind::Zed => ".zed/settings.json",
        ClientKind::ClaudeDesktop | ClientKind::Windsurf => {
            return Err(Failure::new(format!("{} has no project file; use --scope user", client.name())));
        }
    }))
}

fn user_file(client: ClientKind) -> Result<PathBuf, Failure> {
    let home = || {
        folder("HOME").ok_or_else(|| Failure::new("`HOME` is not set, so the user's files cannot be found"))
    };
    let config = || match folder("XDG_CONFIG_HOME") {
        Some(config) => Ok(config),
        None => home().map(|home| home.join(".config")),
    };
    Ok(match client {
        ClientKind::Claude => folder("CLAUDE_CONFIG_DIR").map_or_else(home, Ok)?.join(".claude.json"),
        ClientKind::ClaudeDesktop => config()?.join("Claude/claude_desktop_config.json"),
        ClientKind::Cursor => home()?.join(".cursor/mcp.json"),
        ClientKind::Vscode => config()?.join("Code/User/mcp.json"),
        ClientKind::Codex => match folder("CODEX_HOME") {
            Some(codex) => codex.join("config.toml"),
            None => home()?.join(".codex/config.toml"),
        },
        ClientKind::Gemini => home()?.join(".gemini/settings.json"),
        ClientKind::Windsurf => home()?.join(".codeium/windsurf/mcp_config.json"),
        ClientKind::Zed => config()?.join("zed/settings.json"),
    })
}

fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
