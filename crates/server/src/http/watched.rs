//! Is a connection doing anything? A socket that knows when a request began, and gives up on clients that do not read.

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
    head::{HeadGuard, Violation},
};

/// What a connection is doing, shared by its socket, its requests and whoever watches over it.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    header_time: Duration,
    idle_time: Duration,
}

#[derive(Clone, Copy, Debug)]
struct State {
    doing: Doing,
    last_call: Option<Instant>,
    /// Why the last head was refused.
    violation: Option<Violation>,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    /// Before its first request: nobody knows who it is, and it holds a place.
    New { since: Instant },
    /// Between requests.
    Idle { since: Instant },
    /// The first bytes of a request are here.
    Reading { since: Instant },
    /// The headers are here; the answer is not out yet.
    Serving,
}

/// What did not come in time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Overdue {
    NextRequest,
    Headers,
}

impl Activity {
    pub(super) fn new(limits: &HttpLimits) -> Arc<Self> {
        let doing = Doing::New { since: Instant::now() };
        let state = Mutex::new(State { doing, last_call: None, violation: None });
        let (header_time, idle_time) = (limits.header_time, limits.idle_time);
        Arc::new(Self { state, header_time, idle_time })
    }

    /// `None` while a request is being served: its body and its answer have their own limits.
    fn deadline(&self) -> Option<Instant> {
        let state = self.lock();
        match state.doing {
            Doing::New { since } => Some(since + self.idle_time.min(self.header_time)),
            Doing::Idle { since } => Some(since + self.idle_time),
            Doing::Reading { since } => {
                let last = since + self.header_time;
                Some(state.last_call.map_or(last, |call| last.min(call)))
            }
            Doing::Serving => None,
        }
    }

    /// We stop: half a request that is here already gets a moment, not its whole time.
    pub(super) fn last_call(&self) {
        self.lock().last_call = Some(Instant::now() + LAST_CALL);
    }

    fn overdue(&self) -> Option<Overdue> {
        let is_late = self.deadline().is_some_and(|deadline| deadline <= Instant::now());
        let state = self.lock();
        match state.doing {
            Doing::New { .. } | Doing::Idle { .. } if is_late => Some(Overdue::NextRequest),
            Doing::Reading { .. } if is_late && state.last_call.is_some() => Some(Overdue::NextRequest),
            Doing::Reading { .. } if is_late => Some(Overdue::Headers),
            _ => None,
        }
    }

    /// The request is served for as long as what this returns lives.
    pub(super) fn serve(self: &Arc<Self>) -> Serving {
        self.set(Doing::Serving);
        Serving(Arc::clone(self))
    }

    fn note(&self, violation: Violation) {
        self.lock().violation = Some(violation);
    }

    /// Why the head was refused that ended the connection, if one was.
    pub(super) fn violation(&self) -> Option<Violation> {
        self.lock().violation
    }

    fn received(&self) {
        if matches!(self.lock().doing, Doing::New { .. } | Doing::Idle { .. }) {
            self.set(Doing::Reading { since: Instant::now() });
        }
    }

    fn set(&self, doing: Doing) {
        self.lock().doing = doing;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Serving(Arc<Activity>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.set(Doing::Idle { since: Instant::now() });
    }
}

/// Looks after a connection, beside whoever serves it and in the same task. To be polled after every poll of the connection.
pub(super) struct Watch {
    activity: Arc<Activity>,
    line: Line,
    /// Never later than what is due. It mostly fires for something that is long done, and is set anew then: to set it with every
    /// request would cost more than the rest of the watch.
    alarm: Pin<Box<Sleep>>,
    /// While a request is served that takes its time.
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// What ends a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Seen {
    Gone,
    Overdue(Overdue),
}

impl Watch {
    pub(super) fn over(activity: &Arc<Activity>, line: &Line) -> Self {
        let first = activity.deadline().unwrap_or_else(Instant::now);
        Self {
            activity: Arc::clone(activity),
            line: line.clone(),
            alarm: Box::pin(sleep_until(first)),
            gone: None,
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Seen> {
        while let Some(deadline) = self.activity.deadline() {
            // Between requests the library reads, and finds the end by itself.
            self.gone = None;
            if deadline < self.alarm.deadline() {
                self.alarm.as_mut().reset(deadline);
            }
            if self.alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if let Some(overdue) = self.activity.overdue() {
                return Poll::Ready(Seen::Overdue(overdue));
            }
            self.alarm.as_mut().reset(deadline);
        }
        let gone = self.gone.get_or_insert_with(|| {
            let line = self.line.clone();
            Box::pin(async move { line.gone().await })
        });
        gone.as_mut().poll(cx).map(|()| Seen::Gone)
    }
}

/// A socket, for whoever serves it and whoever watches it. Both are one task, so that nobody ever waits for the lock.
#[derive(Clone, Debug)]
pub(super) struct Line(Arc<Mutex<TcpStream>>);

impl Line {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Ends when the client has closed its end. While a request is served, the library reads on only until it holds
    /// something of the next one; what comes after that, and be it the end, it does not see.
    pub(super) async fn gone(&self) {
        // Nothing wakes a connection on which nothing arrives.
        while poll_fn(|cx| self.lock().poll_read_ready(cx)).await.is_ok() {
            // What waits to be read goes on waiting, and the library is given time to find the end by itself.
            sleep(LOOK_AGAIN).await;
            if self.is_closed() {
                return;
            }
        }
    }

    /// What is known already, without waiting for more.
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

/// A socket under watch.
#[derive(Debug)]
pub(super) struct Watched {
    line: Line,
    activity: Arc<Activity>,
    write_time: Duration,
    /// Runs while the client leaves what we write unread.
    stalled: Option<Pin<Box<Sleep>>>,
    guard: HeadGuard,
}

impl Watched {
    pub(super) fn new(line: Line, activity: Arc<Activity>, limits: &HttpLimits) -> Self {
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

impl AsyncRead for Watched {
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

impl AsyncWrite for Watched {
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

/// Read from the socket at once.
const PIECE: usize = 8 * 1024;
const LAST_CALL: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_millis(250);
