//! MCP over a pair of pipes, for the one caller who started the process.

mod lines;

use std::{fmt, sync::Arc};

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{Gate, Standing};
use toolgate_policy::Caller;

use self::lines::LineTransport;
use super::{
    McpSettings,
    tools::{CallerSource, Door, Shared},
};
use crate::http::DoorEvents;

/// The caller of this moment: whoever started the process, as the configuration has them now.
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

/// The local caller is still the one who made a call, with the same permissions.
pub(super) struct SameCaller {
    pub then: Caller,
    pub now: CallerNow,
}

impl Standing for SameCaller {
    fn holds(&self) -> bool {
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
    let door = Door::new(Shared::new(gate, settings), source);
    match serve_server_with_ct(door, transport, shutdown).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(StdioError(error.to_string())),
        },
        // A client that leaves before it has said anything is no mistake.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(StdioError(error.to_string())),
    }
}

/// Not to be guessed: what is remembered for one connection is nothing to the next one of the same caller.
fn new_conversation() -> Result<String, StdioError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StdioError(format!("there is no randomness: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Why the conversation ended other than by either side's wish.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StdioError(String);

impl fmt::Display for StdioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the client's messages cannot be served: {}", self.0)
    }
}

impl std::error::Error for StdioError {}
