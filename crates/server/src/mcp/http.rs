//! MCP over Streamable HTTP at `/mcp`, behind a front that has found out who calls.

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
    direct::{self, Kind, Maker},
    envelope::Rejection,
    negotiation::JSON,
    session::{ASKER, Asker, OwnedSessions, SessionRefusal},
    streams::{Place, Streams, holding},
    tools::{CallerSource, Door, Shared},
};
use crate::{
    auth::CallerStanding,
    http::{DoorCode, Rejected},
};

/// Serves `/mcp` to requests that carry a [`CallerIdentity`] in their extensions. Host and Origin are the front's to
/// check. `shutdown` ends open streams and requests at once: let the gate finish its calls first.
pub fn router(gate: Gate, settings: &McpSettings, shutdown: CancellationToken) -> Router {
    let shared = Shared::new(gate, settings);
    let sessions = Arc::new(OwnedSessions::new(settings.sessions));
    let streams = Arc::clone(&shared.streams);
    let config = StreamableHttpServerConfig::default()
        // One place checks them, and knows the names under which the gateway is reached.
        .disable_allowed_hosts()
        // Plain JSON for what has nothing to tell on the way.
        .with_json_response(true)
        .with_sse_retry(None)
        .with_max_request_body_bytes(settings.message_bytes)
        .with_cancellation_token(shutdown.clone());
    let for_doors = Arc::clone(&shared);
    let door = move || Ok(Door::new(Arc::clone(&for_doors), CallerSource::Request));
    let service = StreamableHttpService::new(door, Arc::clone(&sessions), config);
    let message_bytes = settings.message_bytes;
    let mcp = Arc::new(Mcp { service, sessions, streams, shared, shutdown, message_bytes });
    Router::new().route("/mcp", any(serve)).with_state(mcp)
}

struct Mcp {
    service: StreamableHttpService<Door, OwnedSessions>,
    sessions: Arc<OwnedSessions>,
    streams: Arc<Streams>,
    shared: Arc<Shared>,
    shutdown: CancellationToken,
    message_bytes: usize,
}

async fn serve(State(mcp): State<Arc<Mcp>>, request: Request) -> Response {
    let Some(CallerIdentity { caller }) = request.extensions().get::<CallerIdentity>().cloned() else {
        return (StatusCode::UNAUTHORIZED, "nobody is known to make this request").into_response();
    };
    let standing = request.extensions().get::<CallerStanding>().map(|known| Arc::clone(&known.0));
    let session = |id: &str| mcp.sessions.find(id, &caller.subject);
    let request = match direct::kind_of(request, mcp.message_bytes, session).await {
        Kind::Plain(call) => {
            let maker = Maker { caller, standing };
            return without_caching(direct::answer(&mcp.shared, maker, *call, &mcp.shutdown).await);
        }
        Kind::Other(request) => *request,
        Kind::TooLong => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Kind::Rejected(status, rejection) => return without_caching(rejection.over_http(status)),
    };
    let is_delete = request.method() == Method::DELETE;
    if is_delete && !names_own_session(&mcp.sessions, &request, &caller.subject) {
        return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
    }
    let place = match listens(&mcp.streams, &request, &caller.quota()) {
        Ok(place) => place,
        Err(Full) => return too_many("you hold too many streams open; close one, then try again"),
    };
    let refused = Arc::<OnceLock<SessionRefusal>>::default();
    let asker = Asker { caller, refused: Arc::clone(&refused) };
    let response = ASKER.scope(asker, mcp.service.handle(request)).await;
    match refused.get() {
        None => {}
        Some(SessionRefusal::Full) => return too_many("too many sessions are open; try again in a while"),
        Some(SessionRefusal::DuplicateId(id)) => {
            let rejection = Rejection::duplicate_id(id.clone());
            return without_caching(rejection.over_http(StatusCode::BAD_REQUEST));
        }
    }
    // There is nothing to come, and some clients take any other status for a failure.
    if is_delete && response.status() == StatusCode::ACCEPTED {
        return StatusCode::NO_CONTENT.into_response();
    }
    let response = without_caching(in_json(response.into_response()).await);
    match place {
        // Anything else has ended already.
        Some(place) if response.status() == StatusCode::OK => holding(response, place, standing),
        _ => response,
    }
}

/// Puts what the SDK says in plain text about a bad request into a JSON-RPC error, as for every other bad request.
async fn in_json(mut response: Response) -> Response {
    let is_about_the_request = matches!(
        response.status(),
        StatusCode::BAD_REQUEST
            | StatusCode::NOT_ACCEPTABLE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    );
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    if !is_about_the_request {
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

/// A stream that only tells of changes needs a place. What a POST opens ends with its request.
fn listens(streams: &Arc<Streams>, request: &Request, subject: &str) -> Result<Option<Place>, Full> {
    if request.method() == Method::GET { streams.enter(subject).map(Some).ok_or(Full) } else { Ok(None) }
}

/// The caller has as many streams as one may have.
struct Full;

/// One that names none at all is told so by the SDK.
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

/// An answer is for its caller alone, whatever stands between.
fn without_caching(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The SDK's texts are one line.
const LONGEST_TEXT: usize = 1_000;
