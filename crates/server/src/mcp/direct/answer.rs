//! Makes a plain call, and writes its answer: as JSON where it is there soon, as a stream where the client has to wait.

use std::{future::Future, pin::Pin, sync::Arc};

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use rmcp::model::{ServerJsonRpcMessage, ServerResult};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{Call, Standing, caught};
use toolgate_policy::Caller;

use super::{PlainCall, told};
use crate::mcp::{
    ClientAnswers,
    call::{conclude, ill},
    in_flight::IdReservation,
    negotiation::JSON,
    notify::Pace,
    seal::Bound,
    tools::{Era, Shared},
};

/// Who makes the call, as the front knows.
pub struct Maker {
    pub caller: Caller,
    pub standing: Option<Arc<dyn Standing>>,
}

/// A call on its way. Dropped, it is cancelled.
pub type Work = Pin<Box<dyn Future<Output = End> + Send>>;

/// How it ended for the client.
#[derive(Debug)]
pub enum End {
    /// With a message, as JSON.
    Answered(Vec<u8>),
    /// The client cancelled it, or ended its session: nobody reads an answer.
    GivenUp,
    /// The gateway stopped, or could not write its answer.
    Unanswered,
}

/// Makes the call. `shutdown` ends it at once, as it does with the SDK's.
pub async fn answer(
    shared: &Arc<Shared>,
    maker: Maker,
    call: PlainCall,
    shutdown: &CancellationToken,
) -> Response {
    let pace = Pace::new(call.progress.clone());
    let mut work: Work = Box::pin(work(Arc::clone(shared), maker, call, shutdown.clone()));
    match timeout(pace.pause(), &mut work).await {
        Ok(End::Answered(message)) => json(message),
        Ok(End::GivenUp) => told::nothing(),
        Ok(End::Unanswered) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(_) => told::response(work, pace),
    }
}

async fn work(shared: Arc<Shared>, maker: Maker, call: PlainCall, shutdown: CancellationToken) -> End {
    let Maker { caller, standing } = maker;
    let PlainCall { id, tool, arguments, client, shows_forms, reservation, .. } = call;
    let era = if reservation.is_some() { Era::Sessions } else { Era::Stateless };
    let can_answer = shared.answers == ClientAnswers::Taken && shows_forms;
    let bound = if can_answer { Bound::to(&caller.subject, &tool, &arguments) } else { None };
    let call = Call { tool, arguments, caller, client, answer: None, ask: None, standing };
    // The call first: the others register a waker, which a call that is done at once does not need.
    let outcome = tokio::select! {
        biased;
        outcome = caught(shared.gate.handle(call)) => outcome,
        () = given_up(reservation.as_ref()) => return End::GivenUp,
        () = shutdown.cancelled() => return End::Unanswered,
    };
    let response = outcome.ok_or_else(ill).and_then(|outcome| conclude(&shared, outcome, bound));
    let message = match response {
        Ok(response) => ServerJsonRpcMessage::response(in_the_words_of(era, response.into()), id),
        Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
    };
    serde_json::to_vec(&message).map_or(End::Unanswered, End::Answered)
}

/// As the SDK does for those who know no other kind of result.
fn in_the_words_of(era: Era, mut result: ServerResult) -> ServerResult {
    match era {
        Era::Sessions => result.strip_result_type_for_legacy_peer(),
        Era::Stateless => {}
    }
    result
}

async fn given_up(reservation: Option<&IdReservation>) {
    match reservation {
        Some(reservation) => reservation.cancelled().await,
        None => std::future::pending().await,
    }
}

fn json(message: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(JSON))], message).into_response()
}
