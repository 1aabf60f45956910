//! Runs a direct call and writes its answer: as JSON if it finishes soon, otherwise as an event stream.

use std::{future::Future, pin::Pin, sync::Arc};

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use rmcp::model::{ServerJsonRpcMessage, ServerResult};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{DirectCall, event_stream};
use crate::mcp::{
    call::{self, CallAuthor, CallError, ToolCall},
    handler::{McpShared, ProtocolMode},
    in_flight::IdReservation,
    negotiation::JSON,
    notify::ProgressSchedule,
};

/// A running call. Dropping it cancels the call.
pub type Work = Pin<Box<dyn Future<Output = CallEnd> + Send>>;

/// How a call ended for the client.
#[derive(Debug)]
pub enum CallEnd {
    /// With a JSON-RPC message.
    Answered(Vec<u8>),
    /// The client cancelled the call or ended its session, and reads no answer.
    Cancelled,
    /// The gateway stopped, or could not serialize the answer.
    Unanswered,
}

/// Runs the call. `shutdown` ends it at once, as it does for calls through the SDK.
pub async fn answer(
    shared: &Arc<McpShared>,
    author: CallAuthor,
    call: DirectCall,
    shutdown: &CancellationToken,
) -> Response {
    let schedule = ProgressSchedule::new(call.progress.clone());
    let mut work: Work = Box::pin(work(Arc::clone(shared), author, call, shutdown.clone()));
    match timeout(schedule.pause(), &mut work).await {
        Ok(CallEnd::Answered(message)) => json(message),
        Ok(CallEnd::Cancelled) => event_stream::empty(),
        Ok(CallEnd::Unanswered) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(_) => event_stream::response(work, schedule),
    }
}

async fn work(
    shared: Arc<McpShared>,
    author: CallAuthor,
    call: DirectCall,
    shutdown: CancellationToken,
) -> CallEnd {
    let DirectCall { id, tool, arguments, client, shows_forms, reservation, .. } = call;
    let mode = if reservation.is_some() { ProtocolMode::Sessions } else { ProtocolMode::Stateless };
    let call =
        ToolCall { tool, arguments, author, client, mode, shows_forms, repeated: None, connection: None };
    let message = match Box::pin(call::run(&shared, call, aborted(reservation.as_ref(), &shutdown))).await {
        Ok(response) => ServerJsonRpcMessage::response(for_mode(mode, response.into()), id),
        Err(CallError::Protocol(error)) => ServerJsonRpcMessage::error(error, Some(id)),
        Err(CallError::Aborted(end)) => return end,
    };
    serde_json::to_vec(&message).map_or(CallEnd::Unanswered, CallEnd::Answered)
}

/// Removes `resultType`, which protocol versions with sessions do not have. The SDK does the same.
fn for_mode(mode: ProtocolMode, mut result: ServerResult) -> ServerResult {
    match mode {
        ProtocolMode::Sessions => result.strip_result_type_for_legacy_peer(),
        ProtocolMode::Stateless => {}
    }
    result
}

async fn aborted(reservation: Option<&IdReservation>, shutdown: &CancellationToken) -> CallEnd {
    let cancelled = async {
        match reservation {
            Some(reservation) => reservation.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancelled => CallEnd::Cancelled,
        () = shutdown.cancelled() => CallEnd::Unanswered,
    }
}

fn json(message: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(JSON))], message).into_response()
}
