//! One connection from its first byte to its last: HTTP/1.1, watched.

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
    door::Door,
    head::Violation,
    problem::DoorCode,
    watched::{Activity, Line, Overdue, Seen, Watch, Watched},
};

/// The address a request came from, in its extensions. Behind a reverse proxy it is the proxy's: what a client writes into
/// `X-Forwarded-For` is not believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Peer(pub SocketAddr);

/// Tells a connection to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    /// After the request that is being served.
    pub(super) softly: CancellationToken,
    /// Now.
    pub(super) hard: CancellationToken,
}

/// How a connection ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Ended {
    /// As both sides wanted, or because the client went away.
    Closed,
    /// By us, for something the client did or did not do.
    Refused(DoorCode, String),
    /// In the middle, because we stopped.
    Cut,
}

impl Ended {
    /// The guard's reason, where it refused a head: hyper only knows that it was not HTTP.
    fn because(self, violation: Option<Violation>) -> Self {
        match (self, violation) {
            (Self::Refused(code @ DoorCode::Malformed, _), Some(why)) => Self::Refused(code, why.to_owned()),
            (ended, _) => ended,
        }
    }
}

/// A socket that sends what is written at once. Only such a one is served: on any other an answer in two writes waits 40 ms
/// for the client's delayed acknowledgement.
pub(super) struct Prompt(TcpStream);

impl Prompt {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }
}

pub(super) async fn serve(
    Prompt(stream): Prompt,
    peer: Peer,
    door: Arc<Door>,
    limits: HttpLimits,
    stop: Stop,
) -> Ended {
    let activity = Activity::new(&limits);
    let line = Line::new(stream);
    let socket = TokioIo::new(Watched::new(line.clone(), Arc::clone(&activity), &limits));
    let service = TowerToHyperService::new(Counted { door, peer, activity: Arc::clone(&activity) });
    let builder = protocol(&limits);
    let mut connection = pin!(builder.serve_connection(socket, service));
    let (mut hard, mut softly) = (pin!(stop.hard.cancelled()), pin!(stop.softly.cancelled()));
    let mut watch = Watch::over(&activity, &line);
    let mut is_stopping = false;
    // INVARIANT: the connection does all that it does when it is polled here, so that whoever looks after it need not be told.
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                let ended = result.map_or_else(|error| ended(error.as_ref()), |()| Ended::Closed);
                return Poll::Ready(ended.because(activity.violation()));
            }
            if hard.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ended::Cut);
            }
            if is_stopping || softly.as_mut().poll(cx).is_pending() {
                break;
            }
            is_stopping = true;
            connection.as_mut().graceful_shutdown();
            activity.last_call();
        }
        watch.poll(cx).map(|seen| match seen {
            Seen::Gone | Seen::Overdue(Overdue::NextRequest) => Ended::Closed,
            Seen::Overdue(Overdue::Headers) => Ended::Refused(DoorCode::Timeout, LATE_HEADERS.into()),
        })
    })
    .await
}

/// Our own watch takes the place of the library's header timeout, which does not tell idle from slow.
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

/// Clients go away all the time; what they send that is no HTTP is another matter.
fn ended(error: &(dyn Error + 'static)) -> Ended {
    let mut cause = Some(error);
    while let Some(known) = cause {
        match known.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::TimedOut) => {
                return Ended::Refused(DoorCode::Timeout, "the client did not read the answer".into());
            }
            Some(_) => return Ended::Closed,
            None => cause = known.source(),
        }
    }
    let said = error.to_string();
    if said.contains("connection closed") { Ended::Closed } else { Ended::Refused(DoorCode::Malformed, said) }
}

/// Serves the requests of a connection, and notes while one is being served.
#[derive(Clone)]
struct Counted {
    door: Arc<Door>,
    peer: Peer,
    activity: Arc<Activity>,
}

impl<B> Service<Request<B>> for Counted
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
            // The answer's body carries the note: the request is served until its last byte is handed over.
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
        let Prompt(stream) = Prompt::new(stream).unwrap();
        assert!(stream.nodelay().unwrap());
    }
}
