//! MCP over a pair of pipes, for the one caller who started the process.

use std::{fmt, sync::Arc};

use rmcp::{
    service::{RoleServer, ServerInitializeError, serve_server_with_ct},
    transport::async_rw::AsyncRwTransport,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{Gate, Standing};
use toolgate_policy::Caller;

use super::{
    McpSettings,
    one_reading::Lines,
    tools::{CallerSource, Door, Shared},
};

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
/// answer, then ended. A line longer than a message may be is skipped.
pub async fn serve_stdio<R, W>(
    gate: Gate,
    settings: &McpSettings,
    caller: impl Into<CallerNow>,
    (read, write): (R, W),
    shutdown: CancellationToken,
) -> Result<(), StdioError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let source = CallerSource::Configured { caller: caller.into(), conversation: new_conversation()? };
    let door = Door::new(Shared::new(gate, settings), source);
    let read = Lines::new(read, settings.message_bytes);
    let transport =
        AsyncRwTransport::<RoleServer, _, W>::new(read, write).with_max_line_length(settings.message_bytes);
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
