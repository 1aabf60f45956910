//! Shared by commands around a gateway: loads the configuration, opens the gateway, waits for signals.

use std::{future::Future, io, ops::Deref, path::Path, task::Poll, time::Duration};

use tokio::{
    runtime::{Handle, Runtime},
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};
use toolgate::{Config, Extras, JournalOwner, Toolgate};
use toolgate_config::{Overrides, config_path};

use crate::{
    Failure,
    args::ConfigArgs,
    passphrase,
    terminal::{Terminal, visible},
};

impl ConfigArgs {
    /// Loads the configuration. A failure lists all errors with their positions.
    pub fn load(&self, overrides: &Overrides) -> Result<Config, Failure> {
        let path = config_path(self.config.as_deref(), &environment);
        if !path.exists() {
            return Err(missing(&path));
        }
        Config::load(&path, &environment, overrides).map_err(|errors| {
            let lines: Vec<String> =
                errors.iter().map(|error| format!("\n  {}", visible(&error.to_string()))).collect();
            Failure::Message(format!("`{}` has errors:{}", visible(&path.to_string_lossy()), lines.concat()))
        })
    }

    /// Whether no configuration is named and the current directory has none.
    pub fn names_none(&self) -> bool {
        let is_named = self.config.is_some() || environment("TOOLGATE_CONFIG").is_some();
        !is_named && !config_path(None, &environment).exists()
    }

    /// Opens the gateway for a command. Another gateway process may be running.
    pub async fn open(&self) -> Result<Opened, Failure> {
        open(self.load(&Overrides::default())?, JournalOwner::Command).await.map(Opened)
    }
}

/// A gateway for one command. Dropping it closes the journal, also after a failure.
#[derive(Debug)]
pub struct Opened(pub Toolgate);

impl Deref for Opened {
    type Target = Toolgate;

    fn deref(&self) -> &Toolgate {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // If this fails, the next process that opens the journal records that it was not closed.
        let _ = self.0.close();
    }
}

pub async fn open(config: Config, journal_owner: JournalOwner) -> Result<Toolgate, Failure> {
    let passphrase = Some(passphrase::of(&config));
    open_with(config, Extras { journal_owner, passphrase, ..Extras::default() }, Terminal::note).await
}

/// `say` prints warnings that must always appear, at any log level.
pub async fn open_with(config: Config, extras: Extras, say: impl Fn(&str)) -> Result<Toolgate, Failure> {
    // Warn before opening, because opening runs tools.
    if config.audit.debug {
        say("audit.debug is on: the journal contains full arguments and outputs, not only their digests");
    }
    // Boxed, because the future is large and would be part of every command's future.
    let opened = Box::pin(Toolgate::open(config, extras)).await;
    let toolgate = opened.map_err(|error| Failure::new(visible(&error.to_string())))?;
    for warning in unlisted_journals(&toolgate).into_iter().chain(older_state(&toolgate)) {
        say(&warning);
    }
    if let Some(problem) = toolgate.secret_values().problem() {
        say(&visible(&problem));
    }
    if let Some(behind) = toolgate.clock_behind() {
        say(&toolgate::clock_is_behind(behind));
    }
    Ok(toolgate)
}

/// The warning about a state that is older than the journal.
pub fn older_state(toolgate: &Toolgate) -> Option<String> {
    let rollback = toolgate.rollback();
    (!rollback.is_empty()).then(|| {
        format!(
            "state.db is older than the journal (was a backup restored?); withdrawn again, together with all approvals: {}",
            visible(&rollback.describe())
        )
    })
}

/// Warnings about journals that were skipped.
fn unlisted_journals(toolgate: &Toolgate) -> Vec<String> {
    let say = |name: &String| {
        format!(
            "the journal `{}` is not in the list of journals and was skipped: an older version created it, or it was \
             copied there; move it out of the state directory, or `toolgate audit verify` keeps reporting it",
            visible(name)
        )
    };
    toolgate.unlisted_journals().iter().map(say).collect()
}

/// Runs an asynchronous command. A signal drops the job: a running call gets its closing record, and the journal is
/// closed. A second signal ends the process at once.
#[expect(clippy::exit, reason = "after a second signal nothing else may run")]
pub fn wait<T>(job: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let (mut first, mut second) = (EndSignals::listen()?, EndSignals::listen()?);
        let watchdog = tokio::spawn(async move {
            second.received().await;
            // The command may be stuck in a system call and cannot be dropped.
            std::process::exit(Failure::Interrupted(second.received().await).exit_code().into());
        });
        let outcome = tokio::select! {
            biased;
            outcome = job => outcome,
            signal = first.received() => Err(Failure::Interrupted(signal)),
        };
        watchdog.abort();
        outcome
    });
    if matches!(outcome, Err(Failure::Interrupted(_))) {
        // A record may not be on disk yet.
        runtime.shutdown_timeout(LAST_RECORDS);
    } else {
        runtime.shutdown_background();
    }
    outcome
}

/// Runs a gateway, which handles signals itself.
pub fn wait_without_signals<T>(job: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(job);
    // Do not wait for threads that read standard input or a database.
    runtime.shutdown_background();
    outcome
}

fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("no runtime: {error}")))
}

/// The signals that end a command: SIGHUP, SIGINT and SIGTERM.
struct EndSignals([(u8, Signal); 3]);

impl EndSignals {
    fn listen() -> Result<Self, Failure> {
        let listen = |number: u8| {
            let listening = signal(SignalKind::from_raw(number.into()));
            let listening = listening.map_err(|error| Failure::new(format!("no signal handler: {error}")))?;
            Ok::<_, Failure>((number, listening))
        };
        Ok(Self([listen(1)?, listen(2)?, listen(15)?]))
    }

    /// The number of the signal.
    async fn received(&mut self) -> u8 {
        std::future::poll_fn(|context| {
            let number = self.0.iter_mut().find_map(|(number, signal)| match signal.poll_recv(context) {
                Poll::Ready(_) => Some(*number),
                Poll::Pending => None,
            });
            number.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Reads a line from standard input, for a command within [`wait`]. A signal ends the wait.
pub fn read_line() -> Result<String, Failure> {
    let (send, line) = oneshot::channel();
    // Not a runtime thread: the runtime waits for its threads, and this one may never end.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line).map(|_| line);
        let _ = send.send(read);
    });
    tokio::task::block_in_place(|| {
        Handle::current().block_on(async {
            let mut signals = EndSignals::listen()?;
            tokio::select! {
                line = line => Ok(line.map_err(io::Error::other)??),
                signal = signals.received() => Err(Failure::Interrupted(signal)),
            }
        })
    })
}

/// Records in the journal what a command is about to do.
pub fn note(config: &Config, entry: &serde_json::Value) -> Result<(), Failure> {
    toolgate::note_command(config, entry).map_err(|error| Failure::new(visible(&error.to_string())))
}

/// The user who runs this command, by number. Anyone can set the names in the environment.
pub fn operator() -> String {
    use std::os::unix::fs::MetadataExt;
    let user = std::fs::metadata("/proc/self").map(|own| own.uid().to_string());
    format!("operator uid {}", user.unwrap_or_else(|_| "unknown".to_owned()))
}

fn missing(path: &Path) -> Failure {
    Failure::at(path, "no configuration found; run `toolgate init` to create one")
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Far more than `limits.disk_checks` allows: journal, approvals and reports get threads even if all disk checks hang.
const BLOCKING_THREADS: usize = 512;
/// How long an interrupted command waits for records to reach the disk.
const LAST_RECORDS: Duration = Duration::from_secs(1);
