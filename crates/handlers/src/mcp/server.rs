//! One configured upstream server: how it is started, and its connections.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    sync::Semaphore,
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use toolgate_gate::DiskCheckPermits;
use toolgate_upstream::{
    ClientIdentity, Connection, ConnectionLimits, Pin, ServerIdentity, ToolDefinition, UpstreamError,
};

use super::answer::CallFailure;
use crate::cli::{ServicePlan, ServiceProcess};

/// An upstream server as the operator configured it.
#[derive(Clone, Debug)]
pub struct UpstreamServer {
    pub name: String,
    pub transport: UpstreamTransport,
    pub isolation: UpstreamIsolation,
    pub limits: UpstreamLimits,
    /// All settings as text. A server whose settings did not change keeps running across reloads.
    pub fingerprint: String,
}

/// How the gateway talks to a server.
#[derive(Clone, Debug)]
pub enum UpstreamTransport {
    /// A program in a jail, over its standard input and output.
    Stdio(ServicePlan),
    /// The server cannot be used, and why.
    Unusable(String),
}

/// Whether callers share a process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UpstreamIsolation {
    Shared,
    PerCaller,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UpstreamLimits {
    /// For starting the server, its handshake and its listing.
    pub start: Duration,
    /// A server without calls is stopped after this time.
    pub idle: Duration,
    /// Calls at the same time. Further ones wait.
    pub concurrent_calls: usize,
}

/// A server and its connections.
pub(super) struct RunningServer {
    pub settings: UpstreamServer,
    slots: Mutex<HashMap<String, Arc<ConnectionSlot>>>,
    /// One permit per running call.
    pub permits: Arc<Semaphore>,
}

/// The place of one connection: one for all callers, or one per caller.
#[derive(Default)]
pub(super) struct ConnectionSlot(tokio::sync::Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    live: Option<Arc<LiveConnection>>,
    /// Failed attempts to connect since the last success.
    failures: u32,
    retry_at: Option<Instant>,
}

/// A connection that is initialized and whose tools are known.
pub(super) struct LiveConnection {
    pub connection: Connection,
    /// The isolation layers of the process.
    pub layers: Vec<String>,
    pub process: Option<ServerProcess>,
    pins: Mutex<HashMap<String, Pin>>,
    /// The value of the change counter when the tools were listed.
    listed_at: AtomicU64,
    pub calls: AtomicUsize,
    last_used: Mutex<Instant>,
}

/// The parts of a process that live as long as its connection.
pub(super) struct ServerProcess {
    pub progress: Arc<crate::cli::RunProgress>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_reader: JoinHandle<()>,
    _handle: Box<dyn Send + Sync>,
}

impl RunningServer {
    pub fn new(settings: UpstreamServer) -> Self {
        let permits = Arc::new(Semaphore::new(settings.limits.concurrent_calls.max(1)));
        Self { settings, slots: Mutex::default(), permits }
    }

    /// The connection for a caller. Waits while another call connects; a server that failed is not tried again at once.
    pub async fn connect(
        &self,
        caller: &str,
        disk_checks: &DiskCheckPermits,
    ) -> Result<(Arc<LiveConnection>, Option<Vec<ToolDefinition>>), CallFailure> {
        let slot = self.slot(caller);
        let mut state = slot.0.lock().await;
        if let Some(live) = state.live.as_ref().filter(|live| live.connection.is_open()) {
            return Ok((Arc::clone(live), None));
        }
        state.live = None;
        if let Some(rest) = state.retry_at.and_then(|at| at.checked_duration_since(Instant::now())) {
            return Err(CallFailure::Unavailable(format!(
                "the upstream server `{}` failed to start; the next attempt is possible in {} s",
                self.settings.name,
                rest.as_secs().saturating_add(1)
            )));
        }
        let started = timeout(self.settings.limits.start, self.open(caller, disk_checks)).await;
        let started = started
            .unwrap_or_else(|_| Err(format!("not ready within {} s", self.settings.limits.start.as_secs())));
        match started {
            Ok((live, tools)) => {
                let live = Arc::new(live);
                *state = SlotState { live: Some(Arc::clone(&live)), failures: 0, retry_at: None };
                drop(state);
                self.stop_when_idle(&slot, &live);
                Ok((live, Some(tools)))
            }
            Err(why) => {
                state.failures = state.failures.saturating_add(1);
                state.retry_at = Some(Instant::now() + back_off(state.failures));
                let name = &self.settings.name;
                Err(CallFailure::Unavailable(format!("the upstream server `{name}` cannot be used: {why}")))
            }
        }
    }

    async fn open(
        &self,
        caller: &str,
        disk_checks: &DiskCheckPermits,
    ) -> Result<(LiveConnection, Vec<ToolDefinition>), String> {
        let identity =
            ClientIdentity { name: "toolgate".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let limits = ConnectionLimits { setup: self.settings.limits.start, ..ConnectionLimits::default() };
        let plan = match &self.settings.transport {
            UpstreamTransport::Stdio(plan) => plan,
            UpstreamTransport::Unusable(why) => return Err(why.clone()),
        };
        let ServiceProcess { stdin, stdout, stderr, layers, progress, handle } =
            plan.start(disk_checks, caller).await?;
        let process = ServerProcess::new(progress, stderr, handle);
        let opened = Connection::open(stdout, stdin, &identity, limits).await;
        let connection = opened.map_err(|error| process.explain(&error))?;
        let listed_at = *connection.listing_changes().borrow();
        let tools = connection.list_tools().await.map_err(|error| process.explain(&error))?;
        let live = LiveConnection {
            connection,
            layers,
            process: Some(process),
            pins: Mutex::new(pins(&tools)),
            listed_at: AtomicU64::new(listed_at),
            calls: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
        };
        Ok((live, tools))
    }

    /// Stops every process of this server. Calls in flight fail.
    pub fn stop(&self) {
        lock(&self.slots).clear();
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        let slots: Vec<Arc<ConnectionSlot>> = lock(&self.slots).values().cloned().collect();
        let is_live = |slot: &&Arc<ConnectionSlot>| {
            slot.0
                .try_lock()
                .is_ok_and(|state| state.live.as_ref().is_some_and(|live| live.connection.is_open()))
        };
        slots.iter().filter(is_live).count()
    }

    fn slot(&self, caller: &str) -> Arc<ConnectionSlot> {
        let key = match self.settings.isolation {
            UpstreamIsolation::Shared => "",
            UpstreamIsolation::PerCaller => caller,
        };
        Arc::clone(lock(&self.slots).entry(key.to_owned()).or_default())
    }

    fn stop_when_idle(&self, slot: &Arc<ConnectionSlot>, live: &Arc<LiveConnection>) {
        let (slot, live, idle) = (Arc::downgrade(slot), Arc::downgrade(live), self.settings.limits.idle);
        tokio::spawn(async move {
            loop {
                let due = match live.upgrade() {
                    Some(live) => *lock(&live.last_used) + idle,
                    None => return,
                };
                sleep_until(due).await;
                let (Some(slot), Some(live)) = (slot.upgrade(), live.upgrade()) else { return };
                let mut state = slot.0.lock().await;
                let is_idle = live.calls.load(Ordering::Acquire) == 0
                    && *lock(&live.last_used) + idle <= Instant::now();
                if !live.connection.is_open() || is_idle {
                    if state.live.as_ref().is_some_and(|current| Arc::ptr_eq(current, &live)) {
                        state.live = None;
                    }
                    return;
                }
                drop(state);
                // A call is running: look again after another idle time.
                *lock(&live.last_used) = Instant::now();
            }
        });
    }
}

impl LiveConnection {
    /// Lists the tools again if the server announced a change. Returns the new list.
    pub async fn refresh(&self) -> Result<Option<Vec<ToolDefinition>>, UpstreamError> {
        let announced = *self.connection.listing_changes().borrow();
        if announced == self.listed_at.load(Ordering::Acquire) {
            return Ok(None);
        }
        let tools = self.connection.list_tools().await?;
        *lock(&self.pins) = pins(&tools);
        self.listed_at.store(announced, Ordering::Release);
        Ok(Some(tools))
    }

    pub fn pin(&self, tool: &str) -> Option<Pin> {
        lock(&self.pins).get(tool).cloned()
    }

    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        due: Instant,
    ) -> Result<Value, UpstreamError> {
        let _running = RunningCall::begin(self);
        let rest = due.saturating_duration_since(Instant::now());
        self.connection.call_tool(tool, arguments, rest).await
    }

    pub fn identity(&self) -> &ServerIdentity {
        self.connection.server()
    }
}

/// Counts a call, also if its future is dropped.
struct RunningCall<'c>(&'c LiveConnection);

impl<'c> RunningCall<'c> {
    fn begin(live: &'c LiveConnection) -> Self {
        live.calls.fetch_add(1, Ordering::AcqRel);
        Self(live)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        *lock(&self.0.last_used) = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ServerProcess {
    fn new(
        progress: Arc<crate::cli::RunProgress>,
        mut stderr: Box<dyn AsyncRead + Send + Unpin>,
        handle: Box<dyn Send + Sync>,
    ) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&kept);
        let stderr_reader = tokio::spawn(async move {
            let mut piece = [0; 4096];
            while let Ok(got @ 1..) = stderr.read(&mut piece).await {
                let mut kept = lock(&writer);
                kept.extend_from_slice(piece.get(..got).unwrap_or_default());
                let surplus = kept.len().saturating_sub(STDERR_BYTES);
                kept.drain(..surplus);
            }
        });
        Self { progress, stderr: kept, stderr_reader, _handle: handle }
    }

    /// The error with the last lines that the server wrote to standard error, escaped.
    fn explain(&self, error: &UpstreamError) -> String {
        let text = String::from_utf8_lossy(&lock(&self.stderr)).into_owned();
        let mut lines: Vec<String> =
            text.lines().rev().take(STDERR_LINES).map(|line| line.escape_debug().to_string()).collect();
        lines.reverse();
        if lines.is_empty() { error.to_string() } else { format!("{error}; it wrote: {}", lines.join(" | ")) }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.stderr_reader.abort();
    }
}

fn pins(tools: &[ToolDefinition]) -> HashMap<String, Pin> {
    tools.iter().map(|tool| (tool.name.clone(), Pin::of(tool))).collect()
}

/// Doubles with every failure, up to a minute.
fn back_off(failures: u32) -> Duration {
    let doubled = FIRST_BACK_OFF.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    doubled.min(MOST_BACK_OFF)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for RunningServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RunningServer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

const FIRST_BACK_OFF: Duration = Duration::from_millis(500);
const MOST_BACK_OFF: Duration = Duration::from_mins(1);
const STDERR_BYTES: usize = 8 * 1024;
const STDERR_LINES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_a_minute() {
        assert_eq!(
            [1, 2, 3, 7, 8, 40].map(|failures| back_off(failures).as_millis()),
            [500, 1000, 2000, 32_000, 60_000, 60_000]
        );
    }
}
