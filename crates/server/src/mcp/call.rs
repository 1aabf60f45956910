//! `tools/call`: the one implementation for all protocol versions and transports.
//!
//! Two entrances parse requests into a [`ToolCall`]: `handler/call_request.rs` for calls that arrive through the SDK, and
//! `direct.rs` for HTTP calls that need nothing else of the protocol.

use std::{future::Future, sync::Arc};

use rmcp::model::{CallToolResponse, ErrorData, Implementation, InputResponses};
use serde_json::{Map, Value};
use toolgate_gate::{Answer, Ask, AuthStatus, Call, ClientAnswer, ClientInfo, Outcome, catch_panic};
use toolgate_policy::Caller;

use super::{
    ClientAnswers,
    elicitation::{self, Elicitation},
    handler::{McpShared, ProtocolMode},
    logging::{self, ClientConnection},
    reply,
    request_state::StateBinding,
};

/// A parsed `tools/call` request.
pub struct ToolCall<'c> {
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub author: CallAuthor,
    pub client: ClientInfo,
    pub mode: ProtocolMode,
    /// The client can show a form to a person.
    pub shows_forms: bool,
    /// Set if the client repeats a call to answer a question.
    pub repeated: Option<RepeatedCall>,
    /// `None` if the client receives the result only: no questions during the call, no log messages.
    pub connection: Option<ClientConnection<'c>>,
}

/// The authenticated caller.
pub struct CallAuthor {
    pub caller: Caller,
    /// Reports whether the caller's token is still valid. `None` if it cannot end before the call does.
    pub auth_status: Option<Arc<dyn AuthStatus>>,
}

/// `requestState` and `inputResponses` of a call that the client repeats (multi round-trip requests).
pub struct RepeatedCall {
    pub state: String,
    pub responses: Option<InputResponses>,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError<A> {
    /// A JSON-RPC error for the client.
    Protocol(ErrorData),
    /// The call was aborted. Carries the output of the `aborted` future.
    Aborted(A),
}

impl<A> From<ErrorData> for CallError<A> {
    fn from(error: ErrorData) -> Self {
        Self::Protocol(error)
    }
}

/// Runs the call and returns what the client reads. Ends the call if `aborted` completes first or if this future is dropped;
/// the gate records either.
pub async fn run<A>(
    shared: &McpShared,
    call: ToolCall<'_>,
    aborted: impl Future<Output = A>,
) -> Result<CallToolResponse, CallError<A>> {
    let ToolCall { tool, arguments, author, client, mode, shows_forms, repeated, connection } = call;
    let CallAuthor { caller, auth_status } = author;
    let channel = QuestionChannel::choose(shared.answers, shows_forms, mode);
    let binding = match channel {
        QuestionChannel::InputRequired => StateBinding::to(&caller.subject, &tool, &arguments),
        QuestionChannel::Elicitation | QuestionChannel::None => None,
    };
    let answer = client_answer(shared, mode, binding, repeated)?;
    let ask: Option<Arc<dyn Ask>> = match (channel, &connection) {
        (QuestionChannel::Elicitation, Some(connection)) => {
            Some(Arc::new(Elicitation(connection.peer.clone())))
        }
        _ => None,
    };
    let log = connection.map(|connection| (connection, tool.clone()));
    let call = Call { tool, arguments, caller, client, answer, ask, auth_status };
    // Poll the call first: polling `aborted` registers a waker, which a call that finishes at once does not need.
    let finished = tokio::select! {
        biased;
        // The gate catches panics of its stages. Without this one a panic around them would leave the client without an answer.
        finished = catch_panic(shared.gate.handle_with_console(call)) => finished,
        abort = aborted => return Err(CallError::Aborted(abort)),
    };
    let (outcome, console) = finished.ok_or_else(internal_error)?;
    if let (Outcome::Pending(pending), Some(binding)) = (&outcome, binding)
        && pending.client_may_answer
    {
        let state = shared.seal.close(&pending.approval, binding, pending.expires);
        return Ok(elicitation::input_required(pending, state).into());
    }
    if let Some((connection, tool)) = log {
        // Boxed to keep this future small: most calls send no messages.
        Box::pin(logging::send(&connection, (&tool, console), &outcome)).await;
    }
    Ok(reply::reply(outcome)?.into())
}

/// How the client's user can be asked for an approval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum QuestionChannel {
    /// By a request to the client during the call.
    Elicitation,
    /// By a result that makes the client repeat the call with the answer.
    InputRequired,
    /// Not at all; only the approval queue can answer.
    None,
}

impl QuestionChannel {
    const fn choose(answers: ClientAnswers, shows_forms: bool, mode: ProtocolMode) -> Self {
        match (answers, shows_forms, mode) {
            (ClientAnswers::QueueOnly, _, _) | (_, false, _) => Self::None,
            (ClientAnswers::Taken, true, ProtocolMode::Sessions) => Self::Elicitation,
            (ClientAnswers::Taken, true, ProtocolMode::Stateless) => Self::InputRequired,
        }
    }
}

/// Reads the answer to an earlier question. `None` puts the question again.
fn client_answer(
    shared: &McpShared,
    mode: ProtocolMode,
    binding: Option<StateBinding>,
    repeated: Option<RepeatedCall>,
) -> Result<Option<ClientAnswer>, ErrorData> {
    let Some(RepeatedCall { state, responses }) = repeated else { return Ok(None) };
    let Some(binding) = binding else {
        // A client that cannot be asked cannot hold a valid state. Protocol versions with sessions have no states.
        return if mode == ProtocolMode::Stateless { Err(invalid_state()) } else { Ok(None) };
    };
    let (approval, since) = shared.seal.open(&state, binding).map_err(|_| invalid_state())?;
    let answer: Option<Answer> = elicitation::answer_in(responses.as_ref());
    Ok(answer.map(|answer| ClientAnswer { approval, answer, answered_after: Some(since) }))
}

/// Describes a client for the journal. `conversation` separates the data flows of one caller.
pub fn describe_client(
    transport: &'static str,
    protocol: Option<&str>,
    info: Option<&Implementation>,
    conversation: Option<String>,
) -> ClientInfo {
    ClientInfo {
        transport,
        protocol: protocol.map(printable),
        name: info.map(|info| printable(&info.name)),
        version: info.map(|info| printable(&info.version)),
        conversation,
    }
}

/// Removes control characters from a text of the client and cuts it, because the journal keeps it.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(LONGEST_NAME).collect()
}

fn invalid_state() -> ErrorData {
    let message = "`requestState` does not belong to this call or has expired; repeat the call without it";
    ErrorData::invalid_params(message, None)
}

/// For a panic outside the stages. The error names no call id: the call has none yet, or is already closed.
fn internal_error() -> ErrorData {
    ErrorData::internal_error("internal error of the gateway; the call has no result", None)
}

/// Characters of a client's name or version, and bytes of a conversation's name.
pub const LONGEST_NAME: usize = 200;
