//! Settings of upstream MCP servers.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::quantity::duration_of;

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    pub name: String,
    pub source: String,
    pub args: Vec<String>,
    /// Each as `NAME=VALUE`, where `${SECRET}` is not resolved yet.
    pub env: Vec<String>,
    pub prefix: Option<String>,
    pub prefixed: bool,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub hosts: Vec<String>,
    pub isolation: CallerIsolation,
    pub max_risk: MaxRisk,
    pub tools: Vec<UpstreamToolSettings>,
    #[serde(deserialize_with = "duration_of")]
    pub start_timeout: Duration,
    #[serde(deserialize_with = "duration_of")]
    pub idle_timeout: Duration,
    pub concurrent_calls: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum CallerIsolation {
    Shared,
    Caller,
}

/// The highest risk level that is served.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum MaxRisk {
    L0,
    L1,
    L2,
    L3,
    L4,
    L5,
}

/// The operator's settings for one tool of a server.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct UpstreamToolSettings {
    pub tool: String,
    pub alias: Option<String>,
    pub description: Option<String>,
    pub approval: Option<UpstreamApproval>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamApproval {
    Auto,
    Ask,
    Always,
}

impl UpstreamApproval {
    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Ask => "ask",
            Self::Always => "always",
        }
    }
}

impl Upstream {
    /// The part of a tool's name that precedes the server's name for it.
    pub fn tool_prefix(&self) -> String {
        match &self.prefix {
            _ if !self.prefixed => String::new(),
            Some(prefix) => prefix.clone(),
            None => format!("{}_", self.name),
        }
    }
}
