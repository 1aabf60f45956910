//! Serves one HTTP/1.1 connection, with timeouts.

use std::{
    convert::Infallible,
    error::Error,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    BoxError,
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use http::Request;
use http_body_util::BodyExt;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::{
    HttpLimits,
    activity::{Activity, ConnectionWatch, Overdue, SharedSocket, WatchEvent, WatchedSocket},
    door::Door,
    head::HeadViolation,
    problem::DoorCode,
};

/// The address of the client, in the extensions of its requests. Behind a reverse proxy it is the proxy's address:
/// `X-Forwarded-For` is ignored, because clients can forge it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Peer(pub SocketAddr);

/// Signals that end a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionStop {
    /// After the request that is being served.
    pub(super) softly: CancellationToken,
    /// Now.
    pub(super) hard: CancellationToken,
}

/// How a connection ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ConnectionEnd {
    /// Regularly, or because the client disconnected.
    Closed,
    /// By the gateway, because of the client.
    Refused(DoorCode, String),
    /// During a request, because the gateway stopped.
    Cut,
}

impl ConnectionEnd {
    /// Adds the reason of `HeadGuard` if it refused a head: hyper reports only invalid HTTP.
    fn because(self, violation: Option<HeadViolation>) -> Self {
        match (self, violation) {
            (Self::Refused(code @ DoorCode::Malformed, _), Some(why)) => Self::Refused(code, why.to_owned()),
            (ended, _) => ended,
        }
    }
}

/// A socket with `TCP_NODELAY`. Without it, an answer in two writes waits 40 ms for the client's delayed acknowledgement.
pub(super) struct NoDelayStream(TcpStream);

impl NoDelayStream {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }
}

pub(super) async fn serve(
    NoDelayStream(stream): NoDelayStream,
    peer: Peer,
    door: Arc<Door>,
    limits: HttpLimits,
    stop: ConnectionStop,
) -> ConnectionEnd {
    let activity = Activity::new(&limits);
    let line = SharedSocket::new(stream);
    let socket = TokioIo::new(WatchedSocket::new(line.clone(), Arc::clone(&activity), &limits));
    let service = TowerToHyperService::new(TrackedService { door, peer, activity: Arc::clone(&activity) });
    let builder = protocol(&limits);
    let mut connection = pin!(builder.serve_connection(socket, service));
    let (mut hard, mut softly) = (pin!(stop.hard.cancelled()), pin!(stop.softly.cancelled()));
    let mut watch = ConnectionWatch::over(&activity, &line);
    let mut is_stopping = false;
    // INVARIANT: the connection makes progress only when polled here, so polling the watch afterwards sees every change.
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                let ended = result.map_or_else(|error| ended(error.as_ref()), |()| ConnectionEnd::Closed);
                return Poll::Ready(ended.because(activity.violation()));
            }
            if hard.as_mut().poll(cx).is_ready() {
                return Poll::Ready(ConnectionEnd::Cut);
            }
            if is_stopping || softly.as_mut().poll(cx).is_pending() {
                break;
            }
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
            activity.last_call();
        }
        watch.poll(cx).map(|seen| match seen {
            WatchEvent::Gone | WatchEvent::Overdue(Overdue::NextRequest) => ConnectionEnd::Closed,
            WatchEvent::Overdue(Overdue::Headers) => {
                ConnectionEnd::Refused(DoorCode::Timeout, LATE_HEADERS.into())
            }
        })
    })
    .await
}

/// Disables hyper's header timeout, which does not distinguish idle from slow. `ConnectionWatch` replaces it.
fn protocol(limits: &HttpLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(limits.header_count)
        .max_buf_size(limits.header_limit());
    builder
}

/// Disconnects are normal; invalid HTTP is a refusal.
fn ended(error: &(dyn Error + 'static)) -> ConnectionEnd {
    let mut cause = Some(error);
    while let Some(known) = cause {
        match known.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::TimedOut) => {
                return ConnectionEnd::Refused(
                    DoorCode::Timeout,
                    "the client did not read the answer".into(),
                );
            }
            Some(_) => return ConnectionEnd::Closed,
            None => cause = known.source(),
        }
    }
    let said = error.to_string();
    if said.contains("connection closed") {
        ConnectionEnd::Closed
    } else {
        ConnectionEnd::Refused(DoorCode::Malformed, said)
    }
}

/// Serves the requests of a connection, and records in `Activity` while one is being served.
#[derive(Clone)]
struct TrackedService {
    door: Arc<Door>,
    peer: Peer,
    activity: Arc<Activity>,
}

impl<B> Service<Request<B>> for TrackedService
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let serving = self.activity.serve();
        let door = Arc::clone(&self.door);
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer);
        Box::pin(async move {
            let response = door.answer(request).await;
            // The body holds the guard: the request is being served until its last byte is handed over.
            Ok(response.map(|body| {
                Body::new(body.map_err(move |error| {
                    let _until_dropped = &serving;
                    error
                }))
            }))
        })
    }
}

const LATE_HEADERS: &str = "the headers did not arrive in time";

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn answers_are_sent_without_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        assert!(!stream.nodelay().unwrap());
        let NoDelayStream(stream) = NoDelayStream::new(stream).unwrap();
        assert!(stream.nodelay().unwrap());
    }
}
