//! MCP over Streamable HTTP at `/mcp`, behind the HTTP front, which authenticates callers.

use std::sync::{Arc, OnceLock};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Gate;

use super::{
    CallerIdentity, McpSettings, SESSION_HEADER,
    call::CallAuthor,
    direct::{self, RequestKind},
    envelope::Rejection,
    handler::{CallerSource, GatewayHandler, McpShared},
    negotiation::JSON,
    session::{OwnedSessions, SESSION_CALLER, SessionCaller, SessionRefusal},
    streams::{StreamSlot, Streams, holding},
};
use crate::{
    auth::CallerStanding,
    http::{DoorCode, Rejected},
};

/// Serves `/mcp` to requests that carry a [`CallerIdentity`] in their extensions. The front checks `Host` and `Origin`.
/// `shutdown` ends open streams and requests at once: let the gate finish its calls first.
pub fn router(gate: Gate, settings: &McpSettings, shutdown: CancellationToken) -> Router {
    let shared = McpShared::new(gate, settings);
    let sessions = Arc::new(OwnedSessions::new(settings.sessions));
    let streams = Arc::clone(&shared.streams);
    let config = StreamableHttpServerConfig::default()
        // The front has checked `Host`.
        .disable_allowed_hosts()
        // Plain JSON for requests that send nothing before their answer.
        .with_json_response(true)
        .with_sse_retry(None)
        .with_max_request_body_bytes(settings.message_bytes)
        .with_cancellation_token(shutdown.clone());
    let for_handlers = Arc::clone(&shared);
    let handler = move || Ok(GatewayHandler::new(Arc::clone(&for_handlers), CallerSource::Request));
    let service = StreamableHttpService::new(handler, Arc::clone(&sessions), config);
    let message_bytes = settings.message_bytes;
    let mcp = Arc::new(Mcp { service, sessions, streams, shared, shutdown, message_bytes });
    Router::new().route("/mcp", any(serve)).with_state(mcp)
}

struct Mcp {
    service: StreamableHttpService<GatewayHandler, OwnedSessions>,
    sessions: Arc<OwnedSessions>,
    streams: Arc<Streams>,
    shared: Arc<McpShared>,
    shutdown: CancellationToken,
    message_bytes: usize,
}

async fn serve(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    let Some(CallerIdentity { caller }) = request.extensions().get::<CallerIdentity>().cloned() else {
        return (StatusCode::UNAUTHORIZED, "not authenticated").into_response();
    };
    let auth_status = request.extensions().get::<CallerStanding>().map(|known| Arc::clone(&known.0));
    let session = |id: &str| mcp.sessions.find(id, &caller.subject);
    let request = match direct::kind_of(request, mcp.message_bytes, session).await {
        RequestKind::Direct(call) => {
            let author = CallAuthor { caller, auth_status };
            return without_caching(direct::answer(&mcp.shared, author, *call, &mcp.shutdown).await);
        }
        RequestKind::Sdk(request) => *request,
        RequestKind::TooLong => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        RequestKind::Rejected(status, rejection) => return without_caching(rejection.over_http(status)),
    };
    let is_delete = request.method() == Method::DELETE;
    if is_delete && !names_own_session(&mcp.sessions, &request, &caller.subject) {
        return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
    }
    let slot = match stream_slot(&mcp.streams, &request, &caller.quota()) {
        Ok(slot) => slot,
        Err(TooManyStreams) => return too_many("too many open streams; close one, then try again"),
    };
    let refused = Arc::<OnceLock<SessionRefusal>>::default();
    let asker = SessionCaller { caller, refused: Arc::clone(&refused) };
    let response = SESSION_CALLER.scope(asker, mcp.service.handle(request)).await;
    match refused.get() {
        None => {}
        Some(SessionRefusal::Full) => return too_many("too many open sessions; try again later"),
        Some(SessionRefusal::DuplicateId(id)) => {
            let rejection = Rejection::duplicate_id(id.clone());
            return without_caching(rejection.over_http(StatusCode::BAD_REQUEST));
        }
    }
    // Some clients take any status but 204 for a failure.
    if is_delete && response.status() == StatusCode::ACCEPTED {
        return StatusCode::NO_CONTENT.into_response();
    }
    let response = without_caching(in_json(response.into_response()).await);
    match slot {
        // Only a successful answer is an open stream.
        Some(slot) if response.status() == StatusCode::OK => holding(response, slot, auth_status),
        _ => response,
    }
}

/// Turns the SDK's plain-text answers to bad requests into JSON-RPC errors.
async fn in_json(mut response: Response) -> Response {
    let is_bad_request = matches!(
        response.status(),
        StatusCode::BAD_REQUEST
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    );
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    if !is_bad_request {
        return response;
    }
    let status = response.status();
    if is_json {
        let rejected = Rejected { code: DoorCode::MessageInvalid, detail: format!("answered with {status}") };
        response.extensions_mut().insert(rejected);
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), LONGEST_TEXT).await.unwrap_or_default();
    Rejection::invalid_request(String::from_utf8_lossy(&text)).over_http(status)
}

/// Takes a slot for a GET, whose stream stays open for notifications. The stream of a POST ends with its request.
fn stream_slot(
    streams: &Arc<Streams>,
    request: &Request,
    subject: &str,
) -> Result<Option<StreamSlot>, TooManyStreams> {
    if request.method() == Method::GET {
        streams.enter(subject).map(Some).ok_or(TooManyStreams)
    } else {
        Ok(None)
    }
}

/// The caller has reached the limit of open streams.
struct TooManyStreams;

/// True without the header too: the SDK rejects such requests.
fn names_own_session(sessions: &OwnedSessions, request: &Request, subject: &str) -> bool {
    match request.headers().get(SESSION_HEADER) {
        None => true,
        Some(id) => id.to_str().is_ok_and(|id| sessions.is_of(id, subject)),
    }
}

fn too_many(message: &'static str) -> Response {
    let retry = [(header::RETRY_AFTER, HeaderValue::from_static("30"))];
    (StatusCode::SERVICE_UNAVAILABLE, retry, message).into_response()
}

/// Answers are for one caller; no cache may keep them.
fn without_caching(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Bytes of an error text of the SDK, which is one line.
const LONGEST_TEXT: usize = 1_000;
