//! MCP over stdio, for the user who started the process.

mod lines;

use std::{fmt, sync::Arc};

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{AuthStatus, Gate};
use toolgate_policy::Caller;

use self::lines::LineTransport;
use super::{
    McpSettings,
    handler::{CallerSource, GatewayHandler, McpShared},
};
use crate::http::DoorEvents;

/// The local caller, with the permissions of the active configuration.
#[derive(Clone)]
pub struct CallerNow(Arc<dyn Fn() -> Caller + Send + Sync>);

impl CallerNow {
    pub fn new(caller: impl Fn() -> Caller + Send + Sync + 'static) -> Self {
        Self(Arc::new(caller))
    }

    pub(super) fn get(&self) -> Caller {
        (self.0)()
    }
}

/// Checks that the local caller and its permissions are unchanged since the call.
pub(super) struct SameCaller {
    pub then: Caller,
    pub now: CallerNow,
}

impl AuthStatus for SameCaller {
    fn is_valid(&self) -> bool {
        self.now.get() == self.then
    }
}

impl From<Caller> for CallerNow {
    fn from(caller: Caller) -> Self {
        Self::new(move || caller.clone())
    }
}

impl fmt::Debug for CallerNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallerNow").field(&self.get()).finish()
    }
}

/// Serves until the client closes its end or `shutdown` is cancelled. Calls that still run are given a few seconds to
/// answer, then ended. Malformed lines are answered with an error and reported to `events`.
pub async fn serve_stdio<R, W>(
    gate: Gate,
    settings: &McpSettings,
    caller: impl Into<CallerNow>,
    pipes: (R, W),
    events: Arc<dyn DoorEvents>,
    shutdown: CancellationToken,
) -> Result<(), StdioError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let caller = caller.into();
    let transport = LineTransport::new(pipes, settings.message_bytes, caller.clone(), events);
    let source = CallerSource::Configured { caller, conversation: new_conversation()? };
    let door = GatewayHandler::new(McpShared::new(gate, settings), source);
    match serve_server_with_ct(door, transport, shutdown).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(StdioError(error.to_string())),
        },
        // A client that disconnects before the handshake is not an error.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(StdioError(error.to_string())),
    }
}

/// Random, because data remembered for one connection must not be used by another.
fn new_conversation() -> Result<String, StdioError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StdioError(format!("there is no randomness: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Why the connection ended with an error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StdioError(String);

impl fmt::Display for StdioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the client's messages cannot be served: {}", self.0)
    }
}

impl std::error::Error for StdioError {}
