//! Converts the configuration to settings of the HTTP and MCP fronts.

use std::time::Duration;

use toolgate_config::Config;
use toolgate_server::{ClientAnswers, HttpLimits, HttpSettings, McpSettings, SessionLimits, StateKey};
use toolgate_store::secret_bytes;

use super::{ServeError, stopping::connection_grace};

pub fn http_settings(config: &Config) -> HttpSettings {
    let server = &config.server;
    HttpSettings {
        listen: server.listen,
        public_url: server.public_url.clone(),
        hosts: server.allowed_hosts.clone(),
        origins: server.allowed_origins.clone(),
        limits: HttpLimits {
            connections: server.max_connections as usize,
            connections_per_address: server.connections_per_address() as usize,
            body_bytes: usize::try_from(server.max_request).unwrap_or(usize::MAX),
            header_time: server.header_timeout,
            body_time: server.request_timeout,
            idle_time: server.idle_timeout,
            grace: connection_grace(server.shutdown_grace),
            ..HttpLimits::default()
        },
    }
}

pub fn mcp_settings(config: &Config) -> Result<McpSettings, ServeError> {
    let key = secret_bytes(&config.state.join("keys"), "request-state")
        .map_err(|error| ServeError::new(error.to_string()))?;
    Ok(McpSettings {
        page_size: config.server.page_size as usize,
        answers: if config.approvals.client_may_answer {
            ClientAnswers::Taken
        } else {
            ClientAnswers::QueueOnly
        },
        state_key: StateKey(key),
        message_bytes: usize::try_from(config.server.max_request).unwrap_or(usize::MAX),
        sessions: SessionLimits {
            in_all: config.server.max_connections as usize * 4,
            per_caller: 64,
            streams_per_caller: 64,
            // A call may wait for a slot, then for an approval, then run.
            idle: MOST_QUEUEING + config.approvals.timeout + LONGEST_RUN.max(config.server.request_timeout),
        },
    })
}

/// Longer than a call waits for a run slot.
const MOST_QUEUEING: Duration = Duration::from_mins(2);
/// The longest timeout that a tool can have.
const LONGEST_RUN: Duration = Duration::from_mins(10);
