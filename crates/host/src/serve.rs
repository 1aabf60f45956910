//! Serves a gateway over stdio or HTTP, reloads edits, and shuts down in order.

mod auth;
mod freshness;
mod input;
mod log;
mod refusals;
mod settings;
mod stopping;

use std::{
    any::Any,
    fmt,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use toolgate_config::{Config, Overrides, Writable, model::Auth};
use toolgate_gate::SystemClock;
use toolgate_policy::Caller;
use toolgate_server::{
    AllTools, AuthIdentity, Authenticator, BoundFront, CallerNow, DoorEvents, FrontParts, HttpFront,
    HttpSettings, MetricsRoute, Readiness, Role, StdioError, admin_routes, mcp_routes, serve_stdio,
};

use self::{
    auth::HttpAuthentication,
    freshness::{FreshnessParts, keep_fresh, warn_of_anonymous, warn_of_unused_settings},
    input::InputEnd,
    refusals::RefusalRecords,
    settings::{http_settings, mcp_settings},
    stopping::{StopFuture, StopSource, close_fronts, finish_calls, seal},
};
pub use self::{
    auth::TokenlessCaller,
    freshness::{ConfigWatch, clock_is_behind, rounded},
    log::ServeLog,
    stopping::StopSignals,
};
use crate::{HostLayers, ToolOrigin, Toolgate};

/// Why a gateway cannot be served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServeError(String);

impl ServeError {
    pub fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

/// The transport of MCP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServeTransport {
    /// Standard input and output of this process. The caller is the one of `auth.local`.
    Stdio,
    /// The address of `server.listen`, with the admin API. Callers authenticate as configured in `auth`.
    Http,
}

/// Called with the base URL once the gateway listens. The returned value is dropped when the gateway has stopped.
pub type OnListening =
    Box<dyn FnOnce(&Arc<Toolgate>, &str) -> Result<Box<dyn Any + Send>, ServeError> + Send>;

/// How a gateway is served.
pub struct ServeOptions {
    pub log: ServeLog,
    /// The caller of HTTP requests without a token.
    pub tokenless: TokenlessCaller,
    /// Settings that override the configuration file, also after it is edited.
    pub overrides: Overrides,
    /// The watch that started before the files were read. `None`: a new watch starts.
    pub watching: Option<ConfigWatch>,
    /// Whether SIGHUP reloads.
    pub reload_on_hangup: bool,
    pub on_listening: Option<OnListening>,
}

impl Default for ServeOptions {
    /// Logs nothing and handles no signals.
    fn default() -> Self {
        Self {
            log: ServeLog::silent(),
            tokenless: TokenlessCaller::AsConfigured,
            overrides: Overrides::default(),
            watching: None,
            reload_on_hangup: false,
            on_listening: None,
        }
    }
}

impl Toolgate {
    /// Serves MCP over standard input and output until the client closes its end or `stop` completes. Then closes the gateway.
    pub async fn serve_stdio(
        self: Arc<Self>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        self.serve(ServeTransport::Stdio, ServeOptions::default(), &mut StopFuture::new(stop)).await
    }

    /// Serves MCP over HTTP at `server.listen` until `stop` completes. Then running calls get `server.shutdown_grace` to finish,
    /// and the gateway is closed.
    pub async fn serve_http(
        self: Arc<Self>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        self.serve(ServeTransport::Http, ServeOptions::default(), &mut StopFuture::new(stop)).await
    }

    /// Like `serve_stdio` and `serve_http`, with a log and other options.
    pub async fn serve_with(
        self: Arc<Self>,
        front: ServeTransport,
        options: ServeOptions,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        self.serve(front, options, &mut StopFuture::new(stop)).await
    }

    /// Like `serve_with`, until a signal stops the process.
    pub async fn serve_until_signal(
        self: Arc<Self>,
        front: ServeTransport,
        options: ServeOptions,
        signals: &mut StopSignals,
    ) -> Result<(), ServeError> {
        self.serve(front, options, signals).await
    }

    async fn serve(
        self: Arc<Self>,
        front: ServeTransport,
        mut options: ServeOptions,
        stop_source: &mut impl StopSource,
    ) -> Result<(), ServeError> {
        let log = options.log.clone();
        let layers = HostLayers::probe();
        let watching = options.watching.take().unwrap_or_else(|| ConfigWatch::start(&self.config(), &log));
        announce(&self, &layers, &log);
        let outcome = open_doors(&self, front, (watching, layers), options, stop_source).await;
        self.gate().begin_shutdown();
        seal(self.gate(), &log).await;
        self.deliver_alerts().await;
        self.close().map_err(|error| ServeError::new(error.to_string()))?;
        log.info("stopped");
        outcome
    }

    /// The caller of a bearer token: a token of this gateway's state, or a JWT of an issuer in `auth.jwt`.
    pub async fn authenticate(&self, token: &str) -> Result<Caller, NotAuthenticated> {
        let unusable =
            |error: ServeError| NotAuthenticated { detail: UNUSABLE, to_operator: error.to_string() };
        let authenticator = self.authenticator().map_err(unusable)?;
        match authenticator.verify(token, SystemTime::now()).await {
            Ok(identity) => Ok(identity.caller),
            Err(wrong) => Err(NotAuthenticated { detail: wrong.detail, to_operator: wrong.to_operator }),
        }
    }

    /// The authenticator for the current settings. It is cached together with its fetched key sets until the settings change.
    fn authenticator(&self) -> Result<Arc<Authenticator>, ServeError> {
        let config = self.config();
        let mut known = self.proofs.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((auth, authenticator)) = &*known
            && *auth == config.auth
        {
            return Ok(Arc::clone(authenticator));
        }
        let mut settings = auth::settings(&config, self, TokenlessCaller::AsConfigured)?;
        // `authenticate` always needs a token.
        settings.danger_anonymous = None;
        let made = Arc::new(Authenticator::new(settings).map_err(|error| auth::serve_error(&error))?);
        *known = Some((config.auth.clone(), Arc::clone(&made)));
        Ok(made)
    }
}

/// The authenticator of `Toolgate::authenticate`, with its settings.
#[derive(Debug, Default)]
pub(crate) struct CachedAuthenticator(Mutex<Option<(Auth, Arc<Authenticator>)>>);

/// A token that was not accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NotAuthenticated {
    /// For the caller. It contains nothing from the token.
    pub detail: &'static str,
    /// For the operator: the issuer and the failed check.
    pub to_operator: String,
}

impl fmt::Display for NotAuthenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail)
    }
}

impl std::error::Error for NotAuthenticated {}

async fn open_doors(
    toolgate: &Arc<Toolgate>,
    front: ServeTransport,
    (watching, layers): (ConfigWatch, HostLayers),
    options: ServeOptions,
    stop_source: &mut impl StopSource,
) -> Result<(), ServeError> {
    let ServeOptions { log, tokenless, overrides, reload_on_hangup, on_listening, .. } = options;
    let callers = match front {
        ServeTransport::Stdio => None,
        ServeTransport::Http => Some(HttpAuthentication::new(toolgate, tokenless)?),
    };
    let door = callers.as_ref().map(|callers| Arc::clone(&callers.authenticator));
    let followers = FreshnessParts { watching, callers, reload_on_hangup, log: log.clone() };
    let stop = CancellationToken::new();
    let freshness = tokio::spawn(keep_fresh(Arc::clone(toolgate), followers, overrides, stop.clone()));
    let outcome = match door {
        None => over_stdio(toolgate, &log, stop_source, &stop).await,
        Some(authenticator) => {
            over_http(toolgate, (authenticator, &layers, on_listening), &log, stop_source, &stop).await
        }
    };
    toolgate.gate().begin_shutdown();
    stop.cancel();
    // It ends when it sees that `stop` is cancelled.
    let _ = freshness.await;
    outcome
}

fn announce(toolgate: &Toolgate, layers: &HostLayers, log: &ServeLog) {
    toolgate.gate().metrics().set_isolation(layers.gauges());
    for warning in layers.warnings() {
        log.warn(&warning);
    }
    let loaded = toolgate.loaded();
    for problem in &loaded.problems {
        log.error(&problem.to_string());
    }
    warn_of_unused_settings(&loaded, log);
    let (live, found) = (toolgate.gate().live_count(), loaded.tools.len());
    let rest = if live < found { "; `toolgate list` shows why the others are not" } else { "" };
    log.info(&format!("{live} of {found} tools are live{rest}"));
    let config = toolgate.config();
    log.info(if config.approvals.client_may_answer { CLIENTS_ANSWER } else { QUEUE_ANSWERS });
    warn_of_anonymous(&config, log);
    let documents = loaded.tools.iter().filter_map(|tool| match &tool.origin {
        ToolOrigin::File(file) => Writable::check(file),
        ToolOrigin::Shipped | ToolOrigin::Program => None,
    });
    for open in config.writable_by_others().into_iter().chain(documents) {
        log.warn(&open.to_string());
    }
}

async fn over_stdio(
    toolgate: &Arc<Toolgate>,
    log: &ServeLog,
    stop_source: &mut impl StopSource,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let config = toolgate.config();
    let caller = {
        let toolgate = Arc::clone(toolgate);
        CallerNow::new(move || {
            let local = &toolgate.config().auth.local;
            AuthIdentity::local(&local.subject, local.permissions.clone(), Role::Caller).caller
        })
    };
    let settings = mcp_settings(&config)?;
    let gate = toolgate.gate();
    let input = InputEnd::default();
    let pipes = (input.hold(tokio::io::stdin()), tokio::io::stdout());
    let records = RefusalRecords::start(toolgate, log);
    let events = Arc::clone(&records.refusals) as Arc<dyn DoorEvents>;
    let mut serving = pin!(serve_stdio(gate.clone(), &settings, caller, pipes, events, stop.child_token()));
    let failed = |error: StdioError| ServeError::new(error.to_string());
    tokio::select! {
        ended = &mut serving => {
            records.finish().await;
            return ended.map_err(failed);
        }
        () = stop_source.asked() => gate.begin_shutdown(),
        // Messages before the end are still served. The last one may not have reached the gate yet.
        () = input.seen() => sleep(ON_ITS_WAY).await,
    }
    finish_calls(gate, config.server.shutdown_grace, stop_source, log).await;
    input.release();
    // Do not wait for a client that stopped reading.
    let ended = timeout(LAST_MESSAGES, serving).await.unwrap_or(Ok(()));
    records.finish().await;
    ended.map_err(failed)
}

async fn over_http(
    toolgate: &Arc<Toolgate>,
    (authenticator, layers, on_listening): (Arc<Authenticator>, &HostLayers, Option<OnListening>),
    log: &ServeLog,
    stop_source: &mut impl StopSource,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    let config = toolgate.config();
    let register = async |address| toolgate.register_listener(address);
    let front = HttpFront::bind(http_settings(&config), register).await.map_err(|error| {
        ServeError::new(format!(
            "cannot listen on {}: {error}; choose another with --listen",
            config.server.listen
        ))
    })?;
    let admin_front = bind_admin_front(toolgate, &config).await?;
    let settings = mcp_settings(&config)?;
    let base = config.server.public_url.clone().unwrap_or_else(|| format!("http://{}", front.local_addr()));
    // Log this last, because scripts wait for this line before they connect.
    log.info(&format!("serving MCP at {base}/mcp"));
    let _kept = on_listening.map(|on_listening| on_listening(toolgate, &base)).transpose()?;
    let all: AllTools = {
        let toolgate = Arc::clone(toolgate);
        Arc::new(move || toolgate.gate().all())
    };
    let ready = readiness(toolgate, layers);
    let records = RefusalRecords::start(toolgate, log);
    let closing = CancellationToken::new();
    let accepting = stop.child_token();
    let shown = config.metrics.prometheus.then(|| MetricsRoute::Shown(Arc::clone(&records.refusals)));
    let admin = admin_routes(toolgate.gate(), &all, shown.unwrap_or(MetricsRoute::Hidden));
    let mcp = mcp_routes(toolgate.gate(), &settings, closing.clone());
    let doors = |routes| FrontParts {
        routes,
        authenticator: Arc::clone(&authenticator),
        ready: Arc::clone(&ready),
        events: Arc::clone(&records.refusals) as Arc<dyn DoorEvents>,
        clock: Arc::new(SystemClock),
    };
    let mut serving = JoinSet::new();
    if let Some(own) = admin_front {
        log.info(&format!("serving the admin API at http://{}/admin/v1", own.local_addr()));
        serving.spawn(own.serve(doors(admin), accepting.clone()));
        serving.spawn(front.serve(doors(mcp), accepting.clone()));
    } else {
        serving.spawn(front.serve(doors(mcp.merge(admin)), accepting.clone()));
    }
    stop_source.asked().await;
    log.info("stopping: running calls may finish");
    toolgate.gate().begin_shutdown();
    accepting.cancel();
    finish_calls(toolgate.gate(), config.server.shutdown_grace, stop_source, log).await;
    close_fronts(serving, &closing, log).await;
    records.finish().await;
    Ok(())
}

/// The separate listener for admins, if one is configured.
async fn bind_admin_front(toolgate: &Toolgate, config: &Config) -> Result<Option<BoundFront>, ServeError> {
    let Some(listen) = config.admin.listen else { return Ok(None) };
    let settings = HttpSettings { listen, public_url: None, ..http_settings(config) };
    let register = async |address| toolgate.register_listener(address);
    let bound = HttpFront::bind(settings, register).await.map_err(|error| {
        ServeError::new(format!(
            "cannot listen on {listen} for the admin API: {error}; change `admin.listen`"
        ))
    })?;
    Ok(Some(bound))
}

fn readiness(toolgate: &Arc<Toolgate>, layers: &HostLayers) -> Arc<dyn Fn() -> Readiness + Send + Sync> {
    let toolgate = Arc::clone(toolgate);
    let ready = layers.summary().map_or(Readiness::Ready, Readiness::Degraded);
    Arc::new(move || {
        let is_ready = !toolgate.gate().is_closing()
            && toolgate.journal_problem().is_none()
            && toolgate.state().check().is_ok();
        if is_ready { ready.clone() } else { Readiness::NotReady }
    })
}

const UNUSABLE: &str = "this gateway cannot check tokens now";
/// Time for a message to become a call after it was read.
const ON_ITS_WAY: Duration = Duration::from_millis(50);
/// Longer than the SDK waits for its last responses.
const LAST_MESSAGES: Duration = Duration::from_secs(6);
/// Operators of unattended agents should know this: such a client could approve its own calls.
const CLIENTS_ANSWER: &str = "clients that can show a question may approve calls for their user; to use only the queue, set \
    `approvals.client_may_answer: false` or start with `--autonomous`";
const QUEUE_ANSWERS: &str = "calls are approved in the queue only; see `toolgate approvals`";

impl fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeOptions").field("tokenless", &self.tokenless).finish_non_exhaustive()
    }
}
