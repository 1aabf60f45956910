//! Runs the gateway as a process, with its log and a token for first steps.

use std::{
    any::Any,
    io::IsTerminal,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio_util::sync::CancellationToken;
use toolgate::{
    Config, ConfigWatch, Extras, LogLevel, ServeError, ServeLog, ServeOptions, ServeTransport, StopSignals,
    TokenlessCaller, Toolgate,
};
use toolgate_config::Overrides;
use toolgate_gate::Observer;
use toolgate_store::NewToken;

use crate::{
    CommandExit, Failure,
    args::ServeArgs,
    commands::connect,
    gateway, passphrase,
    serve::{calls::CallLog, local::LocalSocket, log::Log},
    terminal::{Terminal, json_pretty, visible},
    tokens::{self, Revoked},
};

pub fn run(args: &ServeArgs, _: &mut Terminal) -> Result<CommandExit, Failure> {
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
    // Check before anything is opened.
    if args.autonomous && !args.stdio {
        TokenlessCaller::Local.check(&config).map_err(|error| serve_failure(&error))?;
    }
    gateway::wait_without_signals(serve(config, args, overrides))
}

async fn serve(config: Config, args: &ServeArgs, overrides: Overrides) -> Result<CommandExit, Failure> {
    let log = Log::new(&config.log);
    let lines = ServeLog::new(move |level, message| match level {
        LogLevel::Error => log.error(message),
        LogLevel::Warn => log.warn(message),
        LogLevel::Info | LogLevel::Debug => log.info(message),
    });
    // Watch before reading; otherwise an edit in between would be missed.
    let watching = ConfigWatch::start(&config, &lines);
    let calls = CallLog::start(log, None);
    let observer: Arc<dyn Observer> = Arc::<CallLog>::clone(&calls);
    let passphrase = Some(passphrase::of(&config));
    let extras = Extras { observer: Some(observer), passphrase, ..Extras::default() };
    let mut signals =
        StopSignals::install().map_err(|error| Failure::new(format!("no signal handler: {error}")))?;
    let opened = tokio::select! {
        opened = gateway::open_with(config, extras, |warning| log.error(warning)) => opened?,
        // Dropping the test runs of shipped tools writes their closing records.
        () = signals.asked() => {
            log.info("stopped before serving");
            return Ok(CommandExit::Clean);
        }
    };
    let tokenless = if args.autonomous { TokenlessCaller::Local } else { TokenlessCaller::AsConfigured };
    let options = ServeOptions {
        log: lines,
        tokenless,
        overrides,
        watching: Some(watching),
        reload_on_hangup: true,
        on_listening: Some(Box::new(move |toolgate, base| {
            let token = announce_base_url(toolgate, base, tokenless, log)
                .map_err(|error| ServeError::new(error.to_string()))?;
            Ok(Box::new(token) as Box<dyn Any + Send>)
        })),
    };
    let front = if args.stdio { ServeTransport::Stdio } else { ServeTransport::Http };
    let toolgate = Arc::new(opened);
    let stop = CancellationToken::new();
    let local = LocalSocket::open(&toolgate, log, stop.clone()).await;
    let served = toolgate.serve_until_signal(front, options, &mut signals).await;
    stop.cancel();
    local.close().await;
    calls.close();
    served.map(|()| CommandExit::Clean).map_err(|error| serve_failure(&error))
}

fn serve_failure(error: &ServeError) -> Failure {
    Failure::new(visible(&error.to_string()))
}

/// A token for trying the gateway. It is revoked when this process ends.
struct SessionToken {
    toolgate: Arc<Toolgate>,
    name: String,
}

impl Drop for SessionToken {
    fn drop(&mut self) {
        // If this fails, the token still expires.
        let _ = tokens::revoke(self.toolgate.state(), &self.name, |entry| note(&self.toolgate, entry));
    }
}

fn announce_base_url(
    toolgate: &Arc<Toolgate>,
    base: &str,
    tokenless: TokenlessCaller,
    log: Log,
) -> Result<Option<SessionToken>, Failure> {
    let config = toolgate.config();
    if tokenless == TokenlessCaller::Local {
        log.warn("--autonomous is on: anyone who reaches the port can call tools as auth.local");
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
        role: toolgate_store::TokenRole::Caller,
        expires: Some(SystemTime::now() + SESSION_TOKEN),
    };
    let text = tokens::create(toolgate.state(), new, |entry| note(toolgate, entry))?;
    let snippet = json_pretty(&connect::snippet(&format!("{base}/mcp"), text.as_str()));
    Terminal::note(&format!("\nClient configuration, valid until this process ends:\n{snippet}\n"));
    Ok(Some(SessionToken { toolgate: Arc::clone(toolgate), name }))
}

fn note(toolgate: &Toolgate, entry: &serde_json::Value) -> Result<(), Failure> {
    toolgate.note(entry).map_err(|error| Failure::new(visible(&error.to_string())))
}

const SESSION_TOKEN: Duration = Duration::from_hours(24);
