//! All configured upstream servers: calls, listings and status.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, OnceLock},
};

use serde_json::{Map, Value};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};
use toolgate_gate::{DiskCheckPermits, EffectEntry};
use toolgate_policy::Mask;
use toolgate_spec::model::McpHandler;
use toolgate_upstream::{ServerIdentity, ToolDefinition, UpstreamError};

use super::{
    answer::CallFailure,
    server::{LiveConnection, RunningServer, UpstreamServer, UpstreamTransport, lock},
};

/// The configured servers. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Upstreams(Arc<Shared>);

#[derive(Default)]
struct Shared {
    servers: Mutex<BTreeMap<String, Arc<RunningServer>>>,
    observer: OnceLock<Box<dyn ListingObserver>>,
    disk_checks: DiskCheckPermits,
}

/// Learns what servers list. It may block, and is called on the blocking pool.
pub trait ListingObserver: Send + Sync {
    fn listed(&self, upstream: &str, tools: &[ToolDefinition]);
}

/// The state of one server, for operators.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UpstreamStatus {
    pub name: String,
    pub connections: usize,
    /// Why the server cannot be used, if so.
    pub unusable: Option<String>,
}

/// The end of a call, and the behaviour of the server meanwhile.
pub(super) struct FinishedCall {
    pub answer: Result<Value, CallFailure>,
    pub layers: Vec<String>,
    /// Connections of the server during the call. With concurrent calls, those of the others are among them.
    pub effects: Vec<EffectEntry>,
    pub denied: Vec<String>,
}

impl Upstreams {
    /// Sets who learns of listings. Only the first call counts.
    pub fn observe(&self, observer: impl ListingObserver + 'static) {
        let _ = self.0.observer.set(Box::new(observer));
    }

    /// Replaces the configured servers. Those whose settings did not change keep running.
    pub fn configure(&self, servers: Vec<UpstreamServer>) {
        let mut known = lock(&self.0.servers);
        let mut before = std::mem::take(&mut *known);
        for settings in servers {
            let kept = before
                .remove(&settings.name)
                .filter(|server| server.settings.fingerprint == settings.fingerprint);
            let server = kept.unwrap_or_else(|| Arc::new(RunningServer::new(settings.clone())));
            known.insert(settings.name, server);
        }
        drop(known);
        for server in before.values() {
            server.stop();
        }
    }

    /// `Err` if no such server is configured, or it cannot be used.
    pub fn check(&self, upstream: &str) -> Result<(), String> {
        match lock(&self.0.servers).get(upstream).map(|server| &server.settings.transport) {
            Some(UpstreamTransport::Unusable(why)) => Err(format!("upstream server `{upstream}`: {why}")),
            Some(UpstreamTransport::Stdio(_)) => Ok(()),
            None => {
                Err(format!("no upstream server `{upstream}` is configured; run `toolgate upstream list`"))
            }
        }
    }

    /// Connects and lists the tools of a server.
    pub async fn list(&self, upstream: &str) -> Result<(ServerIdentity, Vec<ToolDefinition>), String> {
        let server = self.server(upstream).map_err(|failure| failure.to_string())?;
        let connected = server.connect(LISTING_CALLER, &self.0.disk_checks).await;
        let (live, tools) = connected.map_err(|failure| failure.to_string())?;
        let tools = match tools {
            Some(tools) => tools,
            None => live.connection.list_tools().await.map_err(|error| error.to_string())?,
        };
        self.report(upstream, tools.clone());
        Ok((live.identity().clone(), tools))
    }

    /// Stops the processes of a server. The next call starts it again.
    pub fn restart(&self, upstream: &str) -> Result<(), String> {
        self.server(upstream).map_err(|failure| failure.to_string())?.stop();
        Ok(())
    }

    pub fn status(&self) -> Vec<UpstreamStatus> {
        let servers: Vec<Arc<RunningServer>> = lock(&self.0.servers).values().cloned().collect();
        let status = servers.iter().map(|server| UpstreamStatus {
            name: server.settings.name.clone(),
            connections: server.connections(),
            unusable: match &server.settings.transport {
                UpstreamTransport::Unusable(why) => Some(why.clone()),
                UpstreamTransport::Stdio(_) => None,
            },
        });
        status.collect()
    }

    /// Hides the current values of the server's secrets.
    pub(super) fn mask(&self, upstream: &str) -> Mask {
        match lock(&self.0.servers).get(upstream).map(|server| &server.settings.transport) {
            Some(UpstreamTransport::Stdio(plan)) => plan.mask(),
            Some(UpstreamTransport::Unusable(_)) | None => Mask::new(&[]),
        }
    }

    pub(super) async fn call(
        &self,
        handler: &McpHandler,
        arguments: &Map<String, Value>,
        caller: &str,
        due: Instant,
    ) -> FinishedCall {
        let connected = async {
            let server = self.server(&handler.upstream)?;
            self.ready(server, handler, caller).await
        };
        let ready = timeout_at(due, connected).await;
        let (live, _permit) = match ready.unwrap_or_else(|_| Err(CallFailure::Protocol(late(due)))) {
            Ok(live) => live,
            Err(failure) => return FinishedCall::without_a_run(failure),
        };
        let behaviour =
            || live.process.as_ref().map(|process| process.progress.current()).unwrap_or_default();
        let (before, denied_before) = behaviour();
        let answer = live.call(&handler.tool, arguments, due).await;
        let (after, denied_after) = behaviour();
        FinishedCall {
            answer: answer.map_err(CallFailure::Protocol),
            layers: live.layers.clone(),
            effects: after.listed.into_iter().skip(before.listed.len()).collect(),
            denied: denied_after
                .listed
                .iter()
                .skip(denied_before.listed.len())
                .map(crate::cli::Denial::describe)
                .collect(),
        }
    }

    /// A connection on which the tool is exactly as it was approved, and the permit for a call.
    async fn ready(
        &self,
        server: Arc<RunningServer>,
        handler: &McpHandler,
        caller: &str,
    ) -> Result<(Arc<LiveConnection>, Option<OwnedSemaphorePermit>), CallFailure> {
        let McpHandler { upstream, tool, .. } = handler;
        // Fails only for a closed semaphore, and this one is never closed.
        let permit = Arc::clone(&server.permits).acquire_owned().await.ok();
        let (live, listed) = server.connect(caller, &self.0.disk_checks).await?;
        let listed = match listed {
            Some(listed) => Some(listed),
            None => live.refresh().await.map_err(CallFailure::Protocol)?,
        };
        if let Some(listed) = listed {
            self.report(upstream, listed);
        }
        let review = format!("an operator must run `toolgate upstream review {upstream}`");
        match live.pin(tool) {
            None => Err(CallFailure::Changed(format!("the server no longer lists `{tool}`; {review}"))),
            Some(now) if now.as_str() != handler.pin => {
                Err(CallFailure::Changed(format!("the server changed `{tool}` since its review; {review}")))
            }
            Some(_) => Ok((live, permit)),
        }
    }

    fn server(&self, upstream: &str) -> Result<Arc<RunningServer>, CallFailure> {
        let server = lock(&self.0.servers).get(upstream).cloned();
        server.ok_or_else(|| {
            CallFailure::Unavailable(format!("no upstream server `{upstream}` is configured any more"))
        })
    }

    fn report(&self, upstream: &str, tools: Vec<ToolDefinition>) {
        let (shared, upstream) = (Arc::clone(&self.0), upstream.to_owned());
        tokio::task::spawn_blocking(move || {
            if let Some(observer) = shared.observer.get() {
                observer.listed(&upstream, &tools);
            }
        });
    }
}

impl FinishedCall {
    fn without_a_run(failure: CallFailure) -> Self {
        let (layers, effects, denied) = Default::default();
        Self { answer: Err(failure), layers, effects, denied }
    }
}

fn late(due: Instant) -> UpstreamError {
    UpstreamError::TimedOut { method: "initialize".to_owned(), after: due.elapsed() }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// The caller of listings, for servers with a process per caller.
const LISTING_CALLER: &str = "toolgate:listing";
