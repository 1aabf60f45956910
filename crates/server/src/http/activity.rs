//! Timeouts of a connection: tracks what it is doing, and closes it if the client is too slow, does not read, or is gone.

use std::{
    future::{Future, poll_fn},
    io,
    mem::MaybeUninit,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep, sleep_until},
};

use super::{
    HttpLimits,
    head::{HeadGuard, HeadViolation},
};

/// What a connection is doing. Shared by its socket, its requests and its watch.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<ActivityState>,
    header_time: Duration,
    idle_time: Duration,
}

#[derive(Clone, Copy, Debug)]
struct ActivityState {
    doing: ConnectionPhase,
    last_call: Option<Instant>,
    /// Why the last head was refused.
    violation: Option<HeadViolation>,
}

#[derive(Clone, Copy, Debug)]
enum ConnectionPhase {
    /// Before the first request: the client is not authenticated, and already occupies a connection.
    New { since: Instant },
    /// Between requests.
    Idle { since: Instant },
    /// The first bytes of a request have arrived.
    Reading { since: Instant },
    /// The headers have arrived; the answer is not sent yet.
    Serving,
}

/// What did not arrive in time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Overdue {
    NextRequest,
    Headers,
}

impl Activity {
    pub(super) fn new(limits: &HttpLimits) -> Arc<Self> {
        let doing = ConnectionPhase::New { since: Instant::now() };
        let state = Mutex::new(ActivityState { doing, last_call: None, violation: None });
        let (header_time, idle_time) = (limits.header_time, limits.idle_time);
        Arc::new(Self { state, header_time, idle_time })
    }

    /// `None` while a request is being served: its body and its answer have their own limits.
    fn deadline(&self) -> Option<Instant> {
        let state = self.lock();
        match state.doing {
            ConnectionPhase::New { since } => Some(since + self.idle_time.min(self.header_time)),
            ConnectionPhase::Idle { since } => Some(since + self.idle_time),
            ConnectionPhase::Reading { since } => {
                let last = since + self.header_time;
                Some(state.last_call.map_or(last, |call| last.min(call)))
            }
            ConnectionPhase::Serving => None,
        }
    }

    /// The gateway stops: a request that has arrived in part gets a short time to complete.
    pub(super) fn last_call(&self) {
        self.lock().last_call = Some(Instant::now() + LAST_CALL);
    }

    fn overdue(&self) -> Option<Overdue> {
        let is_late = self.deadline().is_some_and(|deadline| deadline <= Instant::now());
        let state = self.lock();
        match state.doing {
            ConnectionPhase::New { .. } | ConnectionPhase::Idle { .. } if is_late => {
                Some(Overdue::NextRequest)
            }
            ConnectionPhase::Reading { .. } if is_late && state.last_call.is_some() => {
                Some(Overdue::NextRequest)
            }
            ConnectionPhase::Reading { .. } if is_late => Some(Overdue::Headers),
            _ => None,
        }
    }

    /// The request counts as being served until the returned guard is dropped.
    pub(super) fn serve(self: &Arc<Self>) -> Serving {
        self.set(ConnectionPhase::Serving);
        Serving(Arc::clone(self))
    }

    fn note(&self, violation: HeadViolation) {
        self.lock().violation = Some(violation);
    }

    /// Why the last head was refused, if the connection ended for that.
    pub(super) fn violation(&self) -> Option<HeadViolation> {
        self.lock().violation
    }

    fn received(&self) {
        if matches!(self.lock().doing, ConnectionPhase::New { .. } | ConnectionPhase::Idle { .. }) {
            self.set(ConnectionPhase::Reading { since: Instant::now() });
        }
    }

    fn set(&self, doing: ConnectionPhase) {
        self.lock().doing = doing;
    }

    fn lock(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Serving(Arc<Activity>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.set(ConnectionPhase::Idle { since: Instant::now() });
    }
}

/// Watches a connection in the task that serves it. Poll it after every poll of the connection.
pub(super) struct ConnectionWatch {
    activity: Arc<Activity>,
    line: SharedSocket,
    /// Fires at the deadline or earlier. It is reset only when it fires: resetting it with every request would cost more than
    /// the rest of the watch.
    alarm: Pin<Box<Sleep>>,
    /// Set while a request is being served.
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Why a watch ends its connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WatchEvent {
    Gone,
    Overdue(Overdue),
}

impl ConnectionWatch {
    pub(super) fn over(activity: &Arc<Activity>, line: &SharedSocket) -> Self {
        let first = activity.deadline().unwrap_or_else(Instant::now);
        Self {
            activity: Arc::clone(activity),
            line: line.clone(),
            alarm: Box::pin(sleep_until(first)),
            gone: None,
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<WatchEvent> {
        while let Some(deadline) = self.activity.deadline() {
            // Between requests hyper reads the socket and notices its end by itself.
            self.gone = None;
            if deadline < self.alarm.deadline() {
                self.alarm.as_mut().reset(deadline);
            }
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if let Some(overdue) = self.activity.overdue() {
                return Poll::Ready(WatchEvent::Overdue(overdue));
            }
            self.alarm.as_mut().reset(deadline);
        }
        let gone = self.gone.get_or_insert_with(|| {
            let line = self.line.clone();
            Box::pin(async move { line.gone().await })
        });
        gone.as_mut().poll(cx).map(|()| WatchEvent::Gone)
    }
}

/// A socket, shared by its server and its watch. Both run in one task, so the lock is never contended.
#[derive(Clone, Debug)]
pub(super) struct SharedSocket(Arc<Mutex<TcpStream>>);

impl SharedSocket {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Returns when the client has closed the connection. While a request is served, hyper stops reading once it holds bytes
    /// of the next one, so it would not notice.
    pub(super) async fn gone(&self) {
        // This wakes only if bytes or the end arrive.
        while poll_fn(|cx| self.lock().poll_read_ready(cx)).await.is_ok() {
            // Unread bytes stay in the socket. Meanwhile hyper may notice the end by itself.
            sleep(LOOK_AGAIN).await;
            if self.is_closed() {
                return;
            }
        }
    }

    /// Whether the close is already known, without waiting.
    fn is_closed(&self) -> bool {
        let stream = self.lock();
        let mut state = pin!(stream.ready(Interest::READABLE));
        match state.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, TcpStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket that reports its activity and fails writes to clients that do not read.
#[derive(Debug)]
pub(super) struct WatchedSocket {
    line: SharedSocket,
    activity: Arc<Activity>,
    write_time: Duration,
    /// Runs while the client does not read.
    stalled: Option<Pin<Box<Sleep>>>,
    guard: HeadGuard,
}

impl WatchedSocket {
    pub(super) fn new(line: SharedSocket, activity: Arc<Activity>, limits: &HttpLimits) -> Self {
        let guard = HeadGuard::new(limits.header_limit());
        Self { line, activity, write_time: limits.write_time, stalled: None, guard }
    }

    fn unless_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let time = self.write_time;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(sleep(time)));
        timer
            .as_mut()
            .poll(cx)
            .map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for WatchedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while !this.guard.fill(buffer) {
            let mut bytes = [MaybeUninit::uninit(); PIECE];
            let mut piece = ReadBuf::uninit(&mut bytes);
            ready!(Pin::new(&mut *this.line.lock()).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                this.guard.end();
                continue;
            }
            this.activity.received();
            if let Err(violation) = this.guard.push(piece.filled()) {
                this.activity.note(violation);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut *this.line.lock()).poll_write(cx, bytes);
        this.unless_stalled(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut *this.line.lock()).poll_write_vectored(cx, slices);
        this.unless_stalled(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.line.lock().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.line.lock()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.line.lock()).poll_shutdown(cx)
    }
}

/// Bytes per read from the socket.
const PIECE: usize = 8 * 1024;
const LAST_CALL: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(250);
