//! The gateway as a process: doors open, files watched, and an orderly end.

use std::{
    io::IsTerminal,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use toolgate::{Config, Extras, Origin, Toolgate};
use toolgate_config::{Overrides, Writable};
use toolgate_gate::{Observer, SystemClock};
use toolgate_server::{
    AllTools, Authenticator, Bound, CallerNow, ClientAnswers, DoorEvents, Doors, HttpFront, HttpLimits,
    HttpSettings, Identity, McpSettings, Metrics, Readiness, Role, SessionLimits, StateKey, StdioError,
    admin_routes, mcp_routes, serve_stdio,
};
use toolgate_store::{NewToken, secret_bytes};

use crate::{
    Ending, Failure,
    args::ServeArgs,
    commands::connect,
    gateway,
    isolation::HostLayers,
    serve::{
        auth::{Callers, Tokenless},
        freshness::{Followers, Watching, keep_fresh, warn_of_anonymous, warn_of_unheeded},
        input::InputEnd,
        local::LocalDoor,
        log::Log,
        refusals::RefusalRecords,
        stopping::{StopSignals, close_fronts, connection_grace, finish_calls, seal},
        telemetry,
    },
    terminal::{Terminal, json_pretty, visible},
    tokens::{self, Revoked},
};

pub fn run(args: &ServeArgs, _: &mut Terminal) -> Result<Ending, Failure> {
    let overrides = Overrides {
        listen: args.listen.clone(),
        public_url: args.public_url.clone(),
        log: args.log.clone(),
        log_format: args.log_format.clone(),
    };
    let mut config = args.config.load(&overrides)?;
    if args.autonomous || args.unattended {
        config.approvals.client_may_answer = false;
    }
    // Before anything is opened.
    if args.autonomous && !args.stdio {
        Tokenless::Local.check(&config)?;
    }
    gateway::wait_without_signals(serve(config, args, overrides))
}

async fn serve(config: Config, args: &ServeArgs, overrides: Overrides) -> Result<Ending, Failure> {
    let log = Log::new(&config.log);
    // Before anything is read, so that no edit falls between reading and watching.
    let watching = Watching::start(&config, log);
    let layers = HostLayers::look();
    let telemetry = telemetry::start(&config, &layers)?;
    let extras =
        Extras { observer: telemetry.clone().map(|one| one as Arc<dyn Observer>), ..Extras::default() };
    let mut signals =
        StopSignals::hear().map_err(|error| Failure::new(format!("signals cannot be heard: {error}")))?;
    let opened = tokio::select! {
        opened = gateway::open_with(config, extras, |said| log.error(said)) => opened?,
        // Test runs of shipped tools are dropped, which gives them their closing records.
        () = signals.asked() => {
            log.info("stopped before it served");
            return Ok(Ending::Clean);
        }
    };
    let toolgate = Arc::new(opened);
    announce(&toolgate, &layers, log);
    let outcome = open_doors(&toolgate, args, (watching, layers), overrides, log, &mut signals).await;
    toolgate.gate().begin_shutdown();
    seal(toolgate.gate(), log).await;
    if let Some(telemetry) = telemetry {
        telemetry.shutdown().await;
    }
    toolgate.deliver_alerts().await;
    toolgate.close().map_err(|error| Failure::new(visible(&error.to_string())))?;
    log.info("stopped");
    outcome.map(|()| Ending::Clean)
}

async fn open_doors(
    toolgate: &Arc<Toolgate>,
    args: &ServeArgs,
    (watching, layers): (Watching, HostLayers),
    overrides: Overrides,
    log: Log,
    signals: &mut StopSignals,
) -> Result<(), Failure> {
    let tokenless = if args.autonomous { Tokenless::Local } else { Tokenless::AsConfigured };
    let callers = if args.stdio { None } else { Some(Callers::new(toolgate, tokenless)?) };
    let door = callers.as_ref().map(|callers| Arc::clone(&callers.authenticator));
    let followers = Followers { watching, callers, log };
    let stop = CancellationToken::new();
    let freshness = tokio::spawn(keep_fresh(Arc::clone(toolgate), followers, overrides, stop.clone()));
    let local = LocalDoor::open(toolgate, log, stop.clone()).await;
    let outcome = match door {
        None => over_stdio(toolgate, log, signals, &stop).await,
        Some(authenticator) => {
            over_http(toolgate, (authenticator, tokenless, layers), log, signals, &stop).await
        }
    };
    toolgate.gate().begin_shutdown();
    stop.cancel();
    // It has nothing to say any more, and ends at its next look at `stop`.
    let _ = freshness.await;
    local.close().await;
    outcome
}

fn announce(toolgate: &Toolgate, layers: &HostLayers, log: Log) {
    toolgate.gate().metrics().set_isolation(layers.gauges());
    for warning in layers.warnings() {
        log.warn(&warning);
    }
    let loaded = toolgate.loaded();
    for problem in &loaded.problems {
        log.error(&problem.to_string());
    }
    warn_of_unheeded(&loaded, log);
    let (live, found) = (toolgate.gate().live_count(), loaded.tools.len());
    let rest = if live < found { "; `toolgate list` says why the others are not" } else { "" };
    log.info(&format!("{live} of {found} tools are live{rest}"));
    let config = toolgate.config();
    log.info(if config.approvals.client_may_answer { CLIENTS_ANSWER } else { QUEUE_ANSWERS });
    warn_of_anonymous(&config, log);
    let documents = loaded.tools.iter().filter_map(|tool| match &tool.origin {
        Origin::File(file) => Writable::check(file),
        Origin::Shipped => None,
    });
    for open in config.writable_by_others().into_iter().chain(documents) {
        log.warn(&open.to_string());
    }
}

async fn over_stdio(
    toolgate: &Arc<Toolgate>,
    log: Log,
    signals: &mut StopSignals,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let config = toolgate.config();
    let caller = {
        let toolgate = Arc::clone(toolgate);
        CallerNow::new(move || {
            let local = &toolgate.config().auth.local;
            Identity::local(&local.subject, local.permissions.clone(), Role::Caller).caller
        })
    };
    let settings = mcp_settings(&config)?;
    let gate = toolgate.gate();
    let input = InputEnd::default();
    let pipes = (input.hold(tokio::io::stdin()), tokio::io::stdout());
    let records = RefusalRecords::start(toolgate, log);
    let events = Arc::clone(&records.refusals) as Arc<dyn DoorEvents>;
    let mut serving = pin!(serve_stdio(gate.clone(), &settings, caller, pipes, events, stop.child_token()));
    let told = |error: StdioError| Failure::new(visible(&error.to_string()));
    tokio::select! {
        ended = &mut serving => {
            records.finish().await;
            return ended.map_err(told);
        }
        () = signals.asked() => gate.begin_shutdown(),
        // What was sent before the end is still served; the last of it may be on its way to the gate.
        () = input.seen() => sleep(ON_ITS_WAY).await,
    }
    finish_calls(gate, config.server.shutdown_grace, signals, log).await;
    input.release();
    // A client that reads no more does not keep us.
    let ended = timeout(LAST_MESSAGES, serving).await.unwrap_or(Ok(()));
    records.finish().await;
    ended.map_err(told)
}

async fn over_http(
    toolgate: &Arc<Toolgate>,
    (authenticator, tokenless, layers): (Arc<Authenticator>, Tokenless, HostLayers),
    log: Log,
    signals: &mut StopSignals,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let config = toolgate.config();
    let register = async |address| toolgate.register_listener(address);
    let front = HttpFront::bind(http_settings(&config), register).await.map_err(|error| {
        Failure::new(format!(
            "cannot listen on {}: {error}; choose another with --listen",
            config.server.listen
        ))
    })?;
    let admin_front = bind_admin_front(toolgate, &config).await?;
    let settings = mcp_settings(&config)?;
    let base = config.server.public_url.clone().unwrap_or_else(|| format!("http://{}", front.local_addr()));
    // When everything is there that could be missing: whoever reads that we serve relies on it.
    let _token = greet(toolgate, &base, tokenless, log)?;
    let all: AllTools = {
        let toolgate = Arc::clone(toolgate);
        Arc::new(move || toolgate.gate().all())
    };
    let ready = readiness(toolgate, &layers);
    let records = RefusalRecords::start(toolgate, log);
    let closing = CancellationToken::new();
    let accepting = stop.child_token();
    let shown = config.metrics.prometheus.then(|| Metrics::Shown(Arc::clone(&records.refusals)));
    let admin = admin_routes(toolgate.gate(), &all, shown.unwrap_or(Metrics::Hidden));
    let mcp = mcp_routes(toolgate.gate(), &settings, closing.clone());
    let doors = |routes| Doors {
        routes,
        authenticator: Arc::clone(&authenticator),
        ready: Arc::clone(&ready),
        events: Arc::clone(&records.refusals) as Arc<dyn DoorEvents>,
        clock: Arc::new(SystemClock),
    };
    let mut serving = JoinSet::new();
    if let Some(own) = admin_front {
        log.info(&format!("serving admins at http://{}/admin/v1", own.local_addr()));
        serving.spawn(own.serve(doors(admin), accepting.clone()));
        serving.spawn(front.serve(doors(mcp), accepting.clone()));
    } else {
        serving.spawn(front.serve(doors(mcp.merge(admin)), accepting.clone()));
    }
    signals.asked().await;
    log.info("stopping: running calls may finish");
    toolgate.gate().begin_shutdown();
    accepting.cancel();
    finish_calls(toolgate.gate(), config.server.shutdown_grace, signals, log).await;
    close_fronts(serving, &closing, log).await;
    records.finish().await;
    Ok(())
}

/// Where admins have a door of their own.
async fn bind_admin_front(toolgate: &Toolgate, config: &Config) -> Result<Option<Bound>, Failure> {
    let Some(listen) = config.admin.listen else { return Ok(None) };
    let settings = HttpSettings { listen, public_url: None, ..http_settings(config) };
    let register = async |address| toolgate.register_listener(address);
    let bound = HttpFront::bind(settings, register).await.map_err(|error| {
        Failure::new(format!("cannot listen on {listen} for admins: {error}; change `admin.listen`"))
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

/// A token that lives as long as this process, so that something can be tried at once.
struct SessionToken {
    toolgate: Arc<Toolgate>,
    name: String,
}

impl Drop for SessionToken {
    fn drop(&mut self) {
        // Where this fails, the token still expires.
        let _ = tokens::revoke(self.toolgate.state(), &self.name, |entry| note(&self.toolgate, entry));
    }
}

fn greet(
    toolgate: &Arc<Toolgate>,
    base: &str,
    tokenless: Tokenless,
    log: Log,
) -> Result<Option<SessionToken>, Failure> {
    let config = toolgate.config();
    log.info(&format!("serving MCP at {base}/mcp"));
    if tokenless == Tokenless::Local {
        log.warn("--autonomous is on: whoever reaches the port may call tools as the caller of auth.local");
        return Ok(None);
    }
    if !config.auth.tokens || !std::io::stderr().is_terminal() {
        log.info("callers need a token: `toolgate token create NAME`, or `toolgate connect CLIENT --transport http`");
        return Ok(None);
    }
    let name = format!("serve-{}", std::process::id());
    let former = tokens::revoke(toolgate.state(), &name, |entry| note(toolgate, entry))?;
    former.map(Revoked::recorded).transpose()?;
    let new = NewToken {
        name: name.clone(),
        subject: config.auth.local.subject.clone(),
        permissions: config.auth.local.permissions.clone(),
        role: toolgate_store::Role::Caller,
        expires: Some(SystemTime::now() + SESSION_TOKEN),
    };
    let text = tokens::create(toolgate.state(), new, |entry| note(toolgate, entry))?;
    let snippet = json_pretty(&connect::snippet(&format!("{base}/mcp"), text.as_str()));
    Terminal::note(&format!("\nFor clients, good until this process ends:\n{snippet}\n"));
    Ok(Some(SessionToken { toolgate: Arc::clone(toolgate), name }))
}

fn note(toolgate: &Toolgate, entry: &serde_json::Value) -> Result<(), Failure> {
    toolgate.note(entry).map_err(|error| Failure::new(visible(&error.to_string())))
}

fn http_settings(config: &Config) -> HttpSettings {
    let server = &config.server;
    HttpSettings {
        listen: server.listen,
        public_url: server.public_url.clone(),
        hosts: server.allowed_hosts.clone(),
        origins: server.allowed_origins.clone(),
        limits: HttpLimits {
            connections: server.max_connections as usize,
            connections_per_address: server.connections_per_address() as usize,
            body_bytes: usize::try_from(server.max_request).unwrap_or(usize::MAX),
            header_time: server.header_timeout,
            body_time: server.request_timeout,
            idle_time: server.idle_timeout,
            grace: connection_grace(server.shutdown_grace),
            ..HttpLimits::default()
        },
    }
}

fn mcp_settings(config: &Config) -> Result<McpSettings, Failure> {
    let key = secret_bytes(&config.state.join("keys"), "request-state")
        .map_err(|error| Failure::new(visible(&error.to_string())))?;
    Ok(McpSettings {
        page_size: config.server.page_size as usize,
        answers: if config.approvals.client_may_answer {
            ClientAnswers::Taken
        } else {
            ClientAnswers::QueueOnly
        },
        state_key: StateKey(key),
        message_bytes: usize::try_from(config.server.max_request).unwrap_or(usize::MAX),
        sessions: SessionLimits {
            in_all: config.server.max_connections as usize * 4,
            per_caller: 64,
            streams_per_caller: 64,
            // In the order in which a call may wait and work.
            idle: config.limits.wait_timeout
                + MOST_CHECKS
                + config.approvals.timeout
                + LONGEST_RUN.max(config.server.request_timeout),
        },
    })
}

/// Longer than everything else that a call waits for.
const MOST_CHECKS: Duration = Duration::from_mins(1);
/// The longest time that a tool can be given.
const LONGEST_RUN: Duration = Duration::from_mins(10);
const SESSION_TOKEN: Duration = Duration::from_hours(24);
/// From a message that was read to the call that it asks for.
const ON_ITS_WAY: Duration = Duration::from_millis(50);
/// Longer than the SDK waits for answers that are on their way out.
const LAST_MESSAGES: Duration = Duration::from_secs(6);
/// Whoever starts a gateway for agents that nobody sits before reads here that they could answer themselves.
const CLIENTS_ANSWER: &str = "clients that can ask their user answer for them; `approvals.client_may_answer: false` or `--autonomous` \
    leaves all answers to the queue";
const QUEUE_ANSWERS: &str = "only the queue answers questions about calls; see `toolgate approvals`";
