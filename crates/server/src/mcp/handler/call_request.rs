//! Translates a `tools/call` request of the SDK into a [`ToolCall`].

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse},
    service::RequestContext,
};
use toolgate_gate::ClientInfo;

use super::{CallerSource, GatewayHandler, ProtocolMode};
use crate::mcp::{
    SESSION_HEADER,
    call::{self, CallAuthor, CallError, LONGEST_NAME, RepeatedCall, ToolCall, describe_client},
    elicitation,
    logging::{ClientConnection, MinimumLevel},
    notify,
};

pub async fn call_tool(
    handler: &GatewayHandler,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let caller = handler.caller_of(&context)?;
    let client = client_of(handler, &context)?;
    let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
    let mode = ProtocolMode::of(&context);
    let minimum = match mode {
        ProtocolMode::Sessions => MinimumLevel::Session(&handler.threshold),
        ProtocolMode::Stateless => MinimumLevel::Request(context.meta.log_level()),
    };
    let call = ToolCall {
        tool: name.into_owned(),
        arguments: arguments.unwrap_or_default(),
        author: CallAuthor { auth_status: handler.standing_of(&caller, &context), caller },
        client,
        mode,
        shows_forms: shows_forms(&context),
        repeated: request_state.map(|state| RepeatedCall { state, responses: input_responses }),
        connection: Some(ClientConnection { peer: &context.peer, minimum }),
    };
    let work = call::run(&handler.shared, call, context.ct.cancelled());
    match Box::pin(notify::with_progress(&context.peer, context.meta.get_progress_token(), work)).await {
        Ok(response) => Ok(response),
        Err(CallError::Protocol(error)) => Err(error),
        // The SDK does not send this: the client cancelled the request.
        Err(CallError::Aborted(())) => Err(ErrorData::internal_error("the call was cancelled", None)),
    }
}

fn shows_forms(context: &RequestContext<RoleServer>) -> bool {
    let is_unattended =
        context.extensions.get::<Parts>().is_some_and(|parts| elicitation::is_unattended(&parts.headers));
    !is_unattended && context.client_capabilities().is_some_and(|can| elicitation::shows_forms(&can))
}

fn client_of(
    handler: &GatewayHandler,
    context: &RequestContext<RoleServer>,
) -> Result<ClientInfo, ErrorData> {
    let transport = match handler.caller {
        CallerSource::Request => "http",
        CallerSource::Configured { .. } => "stdio",
    };
    let conversation = conversation_of(handler, context)?;
    let protocol = context.protocol_version();
    let protocol = protocol.as_ref().map(rmcp::model::ProtocolVersion::as_str);
    Ok(describe_client(transport, protocol, context.client_info().as_ref(), conversation))
}

/// A session is a conversation, and so is a stdio connection. A stateless HTTP client may name one in `_meta`.
fn conversation_of(
    handler: &GatewayHandler,
    context: &RequestContext<RoleServer>,
) -> Result<Option<String>, ErrorData> {
    if ProtocolMode::of(context) == ProtocolMode::Sessions
        && let Some(parts) = context.extensions.get::<Parts>()
        && let Some(session) = parts.headers.get(SESSION_HEADER)
    {
        return Ok(session.to_str().ok().map(str::to_owned));
    }
    let connection = match &handler.caller {
        CallerSource::Configured { conversation, .. } => Some(conversation),
        CallerSource::Request => None,
    };
    let Some(named) = context.meta.get(CONVERSATION_KEY) else { return Ok(connection.cloned()) };
    let name = named.as_str().filter(|name| (1..=LONGEST_NAME).contains(&name.len()));
    let name = name.ok_or_else(|| {
        let message = format!("`_meta` `{CONVERSATION_KEY}` must be a string of 1 to {LONGEST_NAME} bytes");
        ErrorData::invalid_params(message, None)
    })?;
    // The prefix keeps a named conversation within its connection.
    Ok(Some(connection.map_or_else(|| name.to_owned(), |connection| format!("{connection}/{name}"))))
}

/// Member of `_meta`: the conversation that a call belongs to.
const CONVERSATION_KEY: &str = "dev.toolgate/conversation";
