//! The start of a connection, for servers of both protocol eras.
//!
//! Versions up to 2025-11-25 begin with `initialize`. From 2026-07-28 on there is no session: every request carries
//! its metadata. Most servers are of the first era and some of them fail on anything before `initialize`, so that
//! comes first; a server that rejects it is asked with `server/discover`.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use crate::{UpstreamError, connection::Requests};

/// How this client introduces itself.
#[derive(Clone, Debug)]
pub struct ClientIdentity {
    pub name: String,
    pub version: String,
}

/// The protocol era of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Era {
    /// `initialize` and a session.
    #[default]
    Session,
    /// Metadata in every request, no session.
    Stateless,
}

/// What the server said about itself. All of it is untrusted text.
#[derive(Clone, Debug, Default)]
pub struct ServerIdentity {
    pub name: String,
    pub version: String,
    pub protocol: String,
    pub era: Era,
    pub has_tools: bool,
    /// The `_meta` of every request in the stateless era.
    metadata: Value,
}

impl ServerIdentity {
    pub(crate) fn with_metadata(&self, mut params: Map<String, Value>) -> Map<String, Value> {
        if self.era == Era::Stateless {
            params.insert("_meta".to_owned(), self.metadata.clone());
        }
        params
    }
}

pub(crate) async fn perform(
    requests: &Arc<Requests>,
    identity: &ClientIdentity,
    deadline: Duration,
) -> Result<ServerIdentity, UpstreamError> {
    match initialize(requests, identity, deadline).await {
        Err(UpstreamError::Server { .. }) => discover(requests, identity, deadline).await,
        done => done,
    }
}

async fn initialize(
    requests: &Arc<Requests>,
    identity: &ClientIdentity,
    deadline: Duration,
) -> Result<ServerIdentity, UpstreamError> {
    let mut params = Map::new();
    params.insert("protocolVersion".to_owned(), Value::from(NEWEST_SESSION));
    params.insert("capabilities".to_owned(), json!({}));
    params.insert("clientInfo".to_owned(), client_info(identity));
    let result = requests.send("initialize", params, deadline).await?;
    let protocol = text(&result, "/protocolVersion");
    if !SESSION_VERSIONS.contains(&protocol.as_str()) {
        return Err(UpstreamError::Protocol(format!(
            "it speaks version `{}`, and this client {}",
            protocol.escape_debug(),
            SESSION_VERSIONS.join(", ")
        )));
    }
    requests.notify("notifications/initialized", json!({})).await?;
    Ok(ServerIdentity {
        name: text(&result, "/serverInfo/name"),
        version: text(&result, "/serverInfo/version"),
        protocol,
        era: Era::Session,
        has_tools: result.pointer("/capabilities/tools").is_some(),
        metadata: Value::Null,
    })
}

async fn discover(
    requests: &Arc<Requests>,
    identity: &ClientIdentity,
    deadline: Duration,
) -> Result<ServerIdentity, UpstreamError> {
    let metadata = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": client_info(identity),
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut params = Map::new();
    params.insert("_meta".to_owned(), metadata.clone());
    let result = requests.send("server/discover", params, deadline).await?;
    let versions = result.get("supportedVersions").and_then(Value::as_array);
    if !versions.is_some_and(|versions| versions.iter().any(|version| version == STATELESS)) {
        return Err(UpstreamError::Protocol(format!("it does not speak version {STATELESS}")));
    }
    Ok(ServerIdentity {
        name: text(&result, "/_meta/io.modelcontextprotocol~1serverInfo/name"),
        version: text(&result, "/_meta/io.modelcontextprotocol~1serverInfo/version"),
        protocol: STATELESS.to_owned(),
        era: Era::Stateless,
        has_tools: result.pointer("/capabilities/tools").is_some(),
        metadata,
    })
}

fn client_info(identity: &ClientIdentity) -> Value {
    json!({ "name": identity.name, "version": identity.version })
}

/// A text of the server, cut to a bounded length.
fn text(result: &Value, pointer: &str) -> String {
    let text = result.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    text.chars().take(IDENTITY_CHARS).collect()
}

const NEWEST_SESSION: &str = "2025-11-25";
pub(crate) const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST_SESSION];
pub(crate) const STATELESS: &str = "2026-07-28";
const IDENTITY_CHARS: usize = 200;
