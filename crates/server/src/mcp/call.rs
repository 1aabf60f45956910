//! `tools/call`: from a request to a call of the gate, and back.

use std::sync::Arc;

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse},
    service::RequestContext,
};
use toolgate_gate::{Ask, Call, Client, ClientAnswer, Outcome, caught};

use super::{
    ClientAnswers, SESSION_HEADER, ask, logging, notify, reply,
    seal::Bound,
    tools::{CallerSource, Door, Era, Shared},
};

/// Dropped, or told to stop by the client, it ends the call, which the gate writes down.
pub async fn call(
    door: &Door,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let caller = door.caller_of(&context)?;
    let client = client_of(door, &context)?;
    let asking = Asking::of(door, &context);
    let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
    let (tool, arguments) = (name.into_owned(), arguments.unwrap_or_default());
    let bound = match asking {
        Asking::ByResult => Bound::to(&caller.subject, &tool, &arguments),
        Asking::InTheMiddle | Asking::Impossible => None,
    };
    let answer = match (bound, request_state) {
        (Some(bound), Some(state)) => {
            let (approval, since) = door.shared.seal.open(&state, bound).map_err(|_| bad_state())?;
            let answer = ask::answer_in(input_responses.as_ref());
            answer.map(|answer| ClientAnswer { approval, answer, answered_after: Some(since) })
        }
        // What cannot have been asked cannot be answered.
        (None, Some(_)) if Era::of(&context) == Era::Stateless => return Err(bad_state()),
        // Without a state an answer is to no question of ours, and counts for nothing.
        _ => None,
    };
    let ask: Option<Arc<dyn Ask>> = match asking {
        Asking::InTheMiddle => Some(Arc::new(ask::Elicitation(context.peer.clone()))),
        Asking::ByResult | Asking::Impossible => None,
    };
    let standing = door.standing_of(&caller, &context);
    let call = Call { tool: tool.clone(), arguments, caller, client, answer, ask, standing };
    // A panic around the stages, where the gate does not catch it: the SDK would leave the client waiting for ever.
    let work = caught(door.shared.gate.handle_with_console(call));
    let outcome = tokio::select! {
        outcome = notify::with_progress(&context.peer, context.meta.get_progress_token(), work) => outcome,
        () = context.ct.cancelled() => return Err(cancelled()),
    };
    let (outcome, console) = outcome.ok_or_else(ill)?;
    let is_question =
        bound.is_some() && matches!(&outcome, Outcome::Pending(pending) if pending.client_may_answer);
    if !is_question {
        tell(door, &context, (tool.as_str(), console), &outcome).await;
    }
    conclude(&door.shared, outcome, bound)
}

/// What the client reads. Where it can be asked by a result, a question is one.
pub fn conclude(
    shared: &Shared,
    outcome: Outcome,
    bound: Option<Bound>,
) -> Result<CallToolResponse, ErrorData> {
    match (outcome, bound) {
        (Outcome::Pending(pending), Some(bound)) if pending.client_may_answer => {
            let state = shared.seal.close(&pending.approval, bound, pending.expires);
            Ok(ask::input_required(&pending, state).into())
        }
        (outcome, _) => reply::reply(outcome).map(Into::into),
    }
}

/// How can the person behind this client be asked?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asking {
    InTheMiddle,
    ByResult,
    Impossible,
}

impl Asking {
    fn of(door: &Door, context: &RequestContext<RoleServer>) -> Self {
        let is_unattended =
            context.extensions.get::<Parts>().is_some_and(|parts| ask::is_unattended(&parts.headers));
        let shows_forms = context.client_capabilities().is_some_and(|can| ask::shows_forms(&can));
        let can = shows_forms && !is_unattended;
        match (door.shared.answers, can, Era::of(context)) {
            (ClientAnswers::QueueOnly, _, _) | (_, false, _) => Self::Impossible,
            (ClientAnswers::Taken, true, Era::Sessions) => Self::InTheMiddle,
            (ClientAnswers::Taken, true, Era::Stateless) => Self::ByResult,
        }
    }
}

/// For the journal, except the conversation, which keeps one caller's flows apart.
fn client_of(door: &Door, context: &RequestContext<RoleServer>) -> Result<Client, ErrorData> {
    let said = context.client_info();
    Ok(Client {
        transport: match door.caller {
            CallerSource::Request => "http",
            CallerSource::Configured { .. } => "stdio",
        },
        protocol: context.protocol_version().map(|version| plain(version.as_str())),
        name: said.as_ref().map(|said| plain(&said.name)),
        version: said.as_ref().map(|said| plain(&said.version)),
        conversation: conversation_of(door, context)?,
    })
}

/// A session is a conversation, and so is a pair of pipes. Elsewhere the client may name one.
fn conversation_of(door: &Door, context: &RequestContext<RoleServer>) -> Result<Option<String>, ErrorData> {
    if Era::of(context) == Era::Sessions
        && let Some(parts) = context.extensions.get::<Parts>()
        && let Some(session) = parts.headers.get(SESSION_HEADER)
    {
        return Ok(session.to_str().ok().map(str::to_owned));
    }
    let pipes = match &door.caller {
        CallerSource::Configured { conversation, .. } => Some(conversation),
        CallerSource::Request => None,
    };
    let Some(named) = context.meta.get(CONVERSATION_KEY) else { return Ok(pipes.cloned()) };
    let name = named.as_str().filter(|name| (1..=LONGEST_NAME).contains(&name.len()));
    let name = name.ok_or_else(|| {
        let message = format!("`_meta` `{CONVERSATION_KEY}` is not a text of 1 to {LONGEST_NAME} bytes");
        ErrorData::invalid_params(message, None)
    })?;
    // A name keeps conversations over the same pipes apart; it joins none that is held over others.
    Ok(Some(pipes.map_or_else(|| name.to_owned(), |pipes| format!("{pipes}/{name}"))))
}

async fn tell(
    door: &Door,
    context: &RequestContext<RoleServer>,
    (tool, console): (&str, Vec<(&'static str, String)>),
    outcome: &Outcome,
) {
    let era = Era::of(context);
    logging::tell(&context.peer, (tool, console), outcome, |level| match era {
        Era::Sessions => door.threshold.lets_through(level),
        Era::Stateless => context.meta.log_level().is_some_and(|wanted| level as u8 >= wanted as u8),
    })
    .await;
}

/// A name that a client gave itself, made harmless for a line of the journal.
pub fn plain(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(LONGEST_NAME).collect()
}

fn bad_state() -> ErrorData {
    let message =
        "`requestState` is not the state of this call, or has expired; make the call again without it";
    ErrorData::invalid_params(message, None)
}

/// A panic outside the stages of a call, which is not known by an id then, or is closed already.
pub fn ill() -> ErrorData {
    ErrorData::internal_error("the gateway could not carry out the call", None)
}

/// Nobody reads this: the client has given the request up.
fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}

/// Of `_meta`: which conversation a call belongs to.
const CONVERSATION_KEY: &str = "dev.toolgate/conversation";
const LONGEST_NAME: usize = 200;
