//! The parsed configuration: choices are enums, paths are resolved, numbers are within their bounds.
//!
//! The table in `keys.rs` and `docs/config.md` describe each key.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::{
    entry::ConfigEntry,
    quantity::{duration_of, size_of},
    variables::OwnNames,
    web::{WebAddress, is_loopback},
};

mod auth;
mod secrets;
mod upstream;

pub use auth::{AnonymousAccess, Auth, IssuerAlgorithm, JwtIssuer, JwtKey, LocalCaller};
pub use secrets::{SecretKeyPlace, SecretProvider, SecretProviderKind, SecretSettings, default_key_file};
pub use upstream::{CallerIsolation, MaxRisk, Upstream, UpstreamApproval, UpstreamToolSettings};

/// The settings from `toolgate.yaml`, the environment and the command line together.
///
/// INVARIANT: fields and keys are the same. The reader fills in every key of the table; an unknown or missing field is an error.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub version: u64,
    pub workspace: PathBuf,
    pub state: PathBuf,
    pub tools: Vec<PathBuf>,
    pub catalog: Catalog,
    pub exposure: Exposure,
    pub policy: PolicyFiles,
    pub server: ServerSettings,
    pub auth: Auth,
    pub approvals: Approvals,
    pub audit: Audit,
    pub commands: CommandSettings,
    /// INVARIANT: names are unique.
    pub upstreams: Vec<Upstream>,
    pub secrets: SecretSettings,
    pub worker: WorkerSettings,
    pub limits: LimitSettings,
    pub metrics: MetricsSettings,
    pub admin: AdminSettings,
    pub log: LogSettings,
    /// The file that was loaded; `None` if a text was parsed.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// Further paths that tools must not touch: the files of another gateway that serves the same workspace.
    #[serde(skip)]
    pub also_guarded: Vec<PathBuf>,
    /// Further variables that tools must not read: those of another gateway that serves the same workspace.
    #[serde(skip)]
    pub also_own: OwnNames,
    #[serde(skip)]
    pub(crate) entries: Vec<ConfigEntry>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    pub preset: CatalogPreset,
    pub include: CatalogSelection,
    pub exclude: CatalogSelection,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum CatalogPreset {
    None,
    Starter,
    Files,
    Dev,
    Agent,
    Platform,
    Everything,
}

impl CatalogPreset {
    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Starter => "starter",
            Self::Files => "files",
            Self::Dev => "dev",
            Self::Agent => "agent",
            Self::Platform => "platform",
            Self::Everything => "everything",
        }
    }
}

/// Selects a tool if any of these matches.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CatalogSelection {
    pub names: Vec<String>,
    pub tags: Vec<String>,
    pub categories: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Exposure {
    pub auto_add: bool,
    pub exposed: Vec<String>,
    pub excluded: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PolicyFiles {
    pub baseline: Option<PathBuf>,
    pub profiles: Option<PathBuf>,
    pub overrides: Option<PathBuf>,
    pub cedar: Vec<PathBuf>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    #[serde(deserialize_with = "address::required")]
    pub listen: SocketAddr,
    /// Without a trailing slash.
    #[serde(deserialize_with = "address::base_url")]
    pub public_url: Option<String>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    #[serde(deserialize_with = "size_of")]
    pub max_request: u64,
    pub max_connections: u32,
    /// 0 if not set; see `connections_per_address`.
    pub max_connections_per_address: u32,
    #[serde(deserialize_with = "duration_of")]
    pub header_timeout: Duration,
    #[serde(deserialize_with = "duration_of")]
    pub request_timeout: Duration,
    #[serde(deserialize_with = "duration_of")]
    pub idle_timeout: Duration,
    #[serde(deserialize_with = "duration_of")]
    pub shutdown_grace: Duration,
    pub page_size: u32,
}

impl ServerSettings {
    /// Returns the address, or the host of `public_url`, under which other machines can reach the server, if any.
    pub fn beyond_loopback(&self) -> Option<String> {
        if !is_loopback(self.listen.ip()) {
            return Some(self.listen.to_string());
        }
        let public = self.public_url.as_deref()?;
        // Treat an address that does not parse as public.
        let is_here = WebAddress::parse(public).is_ok_and(|public| public.is_loopback());
        (!is_here).then(|| public.to_owned())
    }

    /// Defaults to a quarter of all connections, but at least as many as one busy client on loopback needs.
    pub fn connections_per_address(&self) -> u32 {
        match self.max_connections_per_address {
            0 => (self.max_connections / 4).max(64),
            stated => stated,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    pub ask_from: AskFrom,
    pub client_may_answer: bool,
    pub self_approval: bool,
    #[serde(deserialize_with = "duration_of")]
    pub timeout: Duration,
    #[serde(deserialize_with = "duration_of")]
    pub expires: Duration,
    #[serde(deserialize_with = "duration_of")]
    pub trust: Duration,
    pub max_pending: u32,
    pub max_pending_per_caller: u32,
}

/// The risk level from which the gateway requires approval by itself. An earlier variant is stricter.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum AskFrom {
    /// Every call of every tool.
    #[serde(rename = "always")]
    Always,
    /// Tools of this risk level and above that do not configure approval.
    L1,
    L2,
    L3,
    L4,
    L5,
    #[serde(rename = "never")]
    Never,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    pub on_failure: OnAuditFailure,
    pub sync: AuditSync,
    pub checkpoint_every: u64,
    pub debug: bool,
    pub webhook: Option<Webhook>,
}

/// The URL that receives alerts.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: String,
    pub token_env: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CommandSettings {
    /// Names or absolute paths; `None` allows every program that a tool names.
    pub allowed: Option<Vec<String>>,
    /// The image for tools that run in a container.
    pub image: Option<String>,
    /// Runs containers without limits, which can then consume all memory and CPU of the host.
    pub danger_unbounded_containers: bool,
    /// 0 turns prepared jails off.
    pub prepared_jails: usize,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum OnAuditFailure {
    Refuse,
    Continue,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum AuditSync {
    Write,
    Disk,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WorkerSettings {
    /// `None`: derived from the number of CPUs.
    pub count: Option<u32>,
    pub isolation: WorkerIsolation,
    pub recycle_after: u32,
    pub queue: u32,
    pub required: RequiredJail,
}

/// Which calls may share a worker process.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerIsolation {
    Shared,
    PerCaller,
    PerTool,
    PerCall,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum RequiredJail {
    Minimum,
    Hardened,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    pub calls: u32,
    pub calls_per_caller: u32,
    pub waiting: u32,
    #[serde(deserialize_with = "duration_of")]
    pub wait_timeout: Duration,
    #[serde(deserialize_with = "size_of")]
    pub arguments: u64,
    pub depth: u32,
    pub disk_checks: u32,
    pub disk_checks_per_caller: u32,
    #[serde(deserialize_with = "duration_of")]
    pub disk_check_timeout: Duration,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MetricsSettings {
    pub prometheus: bool,
    pub otlp: Option<Otlp>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Otlp {
    pub endpoint: String,
    pub headers_env: Option<String>,
    #[serde(deserialize_with = "duration_of")]
    pub interval: Duration,
    pub traces: bool,
    pub metrics: bool,
}

impl Otlp {
    /// Exports traces and metrics, with the defaults of the configuration file.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers_env: None,
            interval: Duration::from_secs(15),
            traces: true,
            metrics: true,
        }
    }
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct AdminSettings {
    /// `None`: the server's listener, under `/admin`.
    #[serde(deserialize_with = "address::optional")]
    pub listen: Option<SocketAddr>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    pub level: LogLevel,
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Text,
    Json,
}

mod address {
    use std::net::SocketAddr;

    use serde::{Deserialize, Deserializer, de::Error};

    use crate::web::listen_address;

    pub fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
        let text = String::deserialize(deserializer)?;
        listen_address(&text).ok_or_else(|| D::Error::custom("not an address"))
    }

    pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        listen_address(&text).map(Some).ok_or_else(|| D::Error::custom("not an address"))
    }

    /// Removes the trailing slash, because callers append paths.
    pub fn base_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.map(|text| text.trim_end_matches('/').to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Overrides;

    #[test]
    fn settings_made_in_code_have_the_defaults_of_the_file() {
        let text = "version: 1
auth: {jwt: [{issuer: 'https://a.example/', audience: x, key: {jwks_url: 'https://a.example/keys'}}]}
metrics: {otlp: {endpoint: 'https://c.example'}}
";
        let folder = std::env::temp_dir();
        let config = Config::parse(text, &folder, &|_| None, &Overrides::default()).unwrap();
        let key = JwtKey::JwksUrl("https://a.example/keys".to_owned());
        assert_eq!(config.auth.jwt, [JwtIssuer::new("https://a.example/", "x", key)]);
        assert_eq!(config.metrics.otlp, Some(Otlp::new("https://c.example")));
    }
}
