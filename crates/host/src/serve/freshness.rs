//! The background task of a serving gateway: reloads after edits, tests shipped tools, and signs the journal every minute.

use std::{collections::BTreeSet, fmt, future::Future, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::{Interval, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;
use toolgate_config::{Overrides, model::JwtKey};
use toolgate_gate::LiveSet;
use toolgate_store::FileWatch;

use super::{
    auth::HttpAuthentication,
    log::ServeLog,
    stopping::{hung_up, in_terminal},
};
use crate::{
    Config, ConfigFollower, FileChanges, LoadProblem, Loaded, ReloadReport, Toolgate, TrialSelection,
    WatchStart,
};

/// The watch on the configuration and all files that it names.
pub struct ConfigWatch {
    paths: Vec<PathBuf>,
    changed: watch::Receiver<u64>,
    watch: Option<FileWatch>,
}

impl ConfigWatch {
    /// Start it before reading any file. Otherwise an edit between reading and watching would be missed.
    pub fn start(config: &Config, log: &ServeLog) -> Self {
        Self::of(named_by(config), log)
    }

    fn of(paths: Vec<PathBuf>, log: &ServeLog) -> Self {
        let (ticks, changed) = watch::channel(0);
        let watch = FileWatch::start(paths.clone(), ticks)
            .inspect_err(|error| log.warn(&format!("{error}; edits apply after a restart or SIGHUP")))
            .ok();
        Self { paths, changed, watch }
    }

    /// The files that changed since the last call. Without a watch, all files may have changed.
    fn take_changes(&self) -> FileChanges {
        self.watch.as_ref().map_or(FileChanges::Everything, FileWatch::take_changes)
    }

    /// Watches the files of both the active and the new configuration. If the new one has an error, a fix is noticed.
    fn follow(&mut self, in_force: &Config, read: &Config, log: &ServeLog) -> WatchStart {
        let mut paths = named_by(in_force);
        paths.extend(named_by(read));
        paths.sort_unstable();
        paths.dedup();
        if paths == self.paths {
            return WatchStart::Already;
        }
        *self = Self::of(paths, log);
        WatchStart::FromNow
    }
}

/// The files that a configuration names, sorted and without duplicates.
fn named_by(config: &Config) -> Vec<PathBuf> {
    let policy = &config.policy;
    let files = [&config.file, &policy.baseline, &policy.profiles, &policy.overrides];
    // The authenticator watches key sets itself.
    let keys = config.auth.jwt.iter().filter_map(|issuer| match &issuer.key {
        JwtKey::PemFile(path) => Some(path),
        JwtKey::SecretEnv(_) | JwtKey::JwksFile(_) | JwtKey::JwksUrl(_) => None,
    });
    let named = files.into_iter().flatten().chain(&config.tools).chain(&policy.cedar).chain(keys);
    let mut paths: Vec<PathBuf> = named.cloned().collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// The parts of `keep_fresh`.
pub struct FreshnessParts {
    pub watching: ConfigWatch,
    /// The authentication of the HTTP front. `None` over stdio.
    pub callers: Option<HttpAuthentication>,
    /// Whether SIGHUP reloads.
    pub reload_on_hangup: bool,
    pub log: ServeLog,
}

/// Test runs of shipped tools in the background. A reload does not wait for them; it cancels them.
struct ShippedToolTests {
    running: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The ids of the tools under test.
    of: BTreeSet<String>,
}

impl ShippedToolTests {
    fn begin(toolgate: &Arc<Toolgate>, which: TrialSelection) -> Option<Self> {
        let of = toolgate.untested(which);
        if of.is_empty() {
            return None;
        }
        let toolgate = Arc::clone(toolgate);
        Some(Self { running: Box::pin(async move { toolgate.test_shipped(which).await }), of })
    }
}

/// Runs until `stop` is cancelled.
pub async fn keep_fresh(
    toolgate: Arc<Toolgate>,
    followers: FreshnessParts,
    overrides: Overrides,
    stop: CancellationToken,
) {
    let FreshnessParts { mut watching, mut callers, reload_on_hangup, log } = followers;
    let mut hangups =
        (reload_on_hangup && !in_terminal()).then(|| signal(SignalKind::hangup()).ok()).flatten();
    let mut state = toolgate_gate::ApprovalQueue::changes(toolgate.state().as_ref());
    // At startup, failed tools are tested again. This runs in the background, because a host may still be down.
    let mut to_try = TrialSelection::UntestedOrFailed;
    let mut trials = ShippedToolTests::begin(&toolgate, to_try);
    let mut upkeep = PeriodicChecks::new(&toolgate);
    let mut secrets = tokio::time::interval(SECRETS_EVERY);
    secrets.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let mut is_everything = false;
        let may_try = tokio::select! {
            () = stop.cancelled() => {
                // Report failures since the last tick before the process ends.
                upkeep.watch_journal(&toolgate, &log);
                return;
            }
            Ok(()) = watching.changed.changed() => true,
            Ok(()) = state.changed() => {
                // Approvals and tokens also change the state, but only passes affect the tools. Test runs write passes too;
                // a reload follows when they end.
                let is_tried = |id: &String| trials.as_ref().is_some_and(|trials| trials.of.contains(id));
                if toolgate.changed_passes().is_ok_and(|changed| changed.iter().all(is_tried)) {
                    // Stop serving a tool that was unpublished during its test run.
                    if trials.is_some() {
                        toolgate.drop_unpublished();
                    }
                    continue;
                }
                true
            }
            () = new_secrets(&toolgate, &mut secrets) => {
                if let Some(problem) = toolgate.secret_values().problem() {
                    log.error(&problem);
                }
                true
            }
            () = hung_up(&mut hangups) => {
                toolgate.forget_assessments();
                is_everything = true;
                true
            }
            // Tools that failed are not tested again until something changes.
            () = ended(&mut trials) => {
                to_try = TrialSelection::Untested;
                false
            }
            () = upkeep.due(&toolgate, &log) => continue,
        };
        // Cancel the test runs, because they were for the previous configuration. Passes so far are kept.
        trials = None;
        // Take the changes before reading files. A later change is in the next batch.
        let changes = watching.take_changes();
        let changes = if is_everything { FileChanges::Everything } else { changes };
        let mut doors = FrontFollower {
            toolgate: &toolgate,
            watching: &mut watching,
            callers: callers.as_mut(),
            log: &log,
        };
        reload(&toolgate, &mut doors, (&overrides, changes), &log).await;
        if may_try {
            trials = ShippedToolTests::begin(&toolgate, to_try);
        }
    }
}

impl fmt::Debug for ConfigWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigWatch").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// Waits until a process has set or removed a secret. Opening the store may wait for the keyring, so a thread does it.
async fn new_secrets(toolgate: &Arc<Toolgate>, every: &mut Interval) {
    loop {
        every.tick().await;
        let toolgate = Arc::clone(toolgate);
        let checked = tokio::task::spawn_blocking(move || toolgate.has_new_secrets()).await;
        if checked.is_ok_and(|has_new| has_new) {
            return;
        }
    }
}

/// As often as the state is polled.
const SECRETS_EVERY: Duration = Duration::from_millis(200);

/// Checks that run every second or minute.
struct PeriodicChecks {
    minute: Interval,
    second: Interval,
    /// The problem of the journal that was logged last.
    journal_problem: Option<String>,
    /// The number of failed writes at the last check.
    failures: u64,
    /// The problem of the state that was logged last.
    state_problem: Option<String>,
    /// Whether the clock was behind the journal at the last check.
    is_clock_behind: bool,
}

impl PeriodicChecks {
    /// A clock that is behind at startup was reported when the gateway was opened.
    fn new(toolgate: &Toolgate) -> Self {
        Self {
            minute: tokio::time::interval(Duration::from_mins(1)),
            second: tokio::time::interval(Duration::from_secs(1)),
            journal_problem: None,
            failures: 0,
            state_problem: None,
            is_clock_behind: toolgate.clock_behind().is_some(),
        }
    }

    /// Returns after one check.
    async fn due(&mut self, toolgate: &Toolgate, log: &ServeLog) {
        tokio::select! {
            _ = self.second.tick() => {
                self.watch_journal(toolgate, log);
                self.watch_state(toolgate, log);
                self.watch_clock(toolgate, log);
            }
            _ = self.minute.tick() => {
                if let Err(error) = toolgate.checkpoint() {
                    log.error(&error.to_string());
                }
            }
        }
    }

    fn watch_clock(&mut self, toolgate: &Toolgate, log: &ServeLog) {
        let behind = toolgate.clock_behind();
        if behind.is_some() == self.is_clock_behind {
            return;
        }
        self.is_clock_behind = behind.is_some();
        match behind {
            Some(behind) => log.warn(&clock_is_behind(behind)),
            None => log.info("the system clock has caught up with the journal"),
        }
    }

    fn watch_journal(&mut self, toolgate: &Toolgate, log: &ServeLog) {
        let problem = toolgate.try_journal();
        let (failures, last) = toolgate.journal_failures();
        let has_failed = failures > std::mem::replace(&mut self.failures, failures);
        if problem == self.journal_problem {
            // The failure is already over. On a disk that is nearly full, short records fit and long ones do not.
            if let Some(last) = last.filter(|_| has_failed && problem.is_none()) {
                log.error(&format!("calls were refused: the journal could not be written: {last}"));
            }
            return;
        }
        match &problem {
            Some(problem) => {
                log.error(&format!("calls are refused: the journal cannot be written: {problem}"));
            }
            None => log.info("the journal can be written again"),
        }
        self.journal_problem = problem;
    }

    fn watch_state(&mut self, toolgate: &Toolgate, log: &ServeLog) {
        let problem = toolgate.state().check().err().map(|error| error.to_string());
        if problem == self.state_problem {
            return;
        }
        match &problem {
            Some(problem) => log.error(&format!("callers with tokens are refused: {problem}")),
            None => log.info("the state can be read again"),
        }
        self.state_problem = problem;
    }
}

/// The file watch and the HTTP authentication, which follow the configuration.
struct FrontFollower<'g> {
    toolgate: &'g Toolgate,
    watching: &'g mut ConfigWatch,
    callers: Option<&'g mut HttpAuthentication>,
    log: &'g ServeLog,
}

impl ConfigFollower for FrontFollower<'_> {
    fn watch(&mut self, read: &Config) -> WatchStart {
        self.watching.follow(&self.toolgate.config(), read, self.log)
    }

    fn prepare(&mut self, config: &Config) -> Result<(), LoadProblem> {
        let Some(callers) = &mut self.callers else { return Ok(()) };
        callers
            .prepare(config, self.toolgate)
            .map_err(|failure| LoadProblem { place: "auth".to_owned(), what: failure.to_string() })
    }

    fn activate(&mut self) {
        if let Some(callers) = &mut self.callers {
            callers.activate();
        }
    }
}

/// Warns about anonymous access, at startup and when a reload enables it.
pub fn warn_of_anonymous(config: &Config, log: &ServeLog) {
    if config.auth.anonymous.is_some() {
        log.warn("`auth.anonymous` is on: anyone who can reach the port may call tools");
    }
}

/// Warns about overrides and policies that have no effect.
pub fn warn_of_unused_settings(loaded: &Loaded, log: &ServeLog) {
    for problem in &loaded.unused_settings {
        log.warn(&problem.to_string());
    }
}

/// Logs the tools that a reload stopped serving, each with the reason and the remedy.
fn report_gone(before: &LiveSet, toolgate: &Toolgate, loaded: &Loaded, log: &ServeLog) {
    let now = toolgate.gate().live();
    let gone = now.gone_since(before);
    for (position, tool) in gone.iter().take(MOST_GONE) {
        let name = tool.spec().name.as_str();
        // Usually the document is still in the same file.
        let found = loaded.tools.at(position).filter(|tool| tool.name == name);
        let found = found.or_else(|| loaded.tools.iter().find(|tool| tool.name == name));
        let why = match found.map(|tool| (&tool.candidate, tool.is_exposed)) {
            None => "its document was removed".to_owned(),
            Some((Err(problem), _)) => problem.clone(),
            Some((Ok(_), false)) => "`exposure` or its document hides it".to_owned(),
            Some((Ok(candidate), true)) if !candidate.lifecycle.missing.is_empty() => {
                let missing = candidate.lifecycle.missing.join(", ");
                format!("not set: {missing}; run `toolgate secret set NAME`")
            }
            Some((Ok(candidate), true)) => {
                format!("{}; publish it with `toolgate publish {name}`", candidate.lifecycle.because)
            }
        };
        log.warn(&format!("`{name}` is no longer served: {why}"));
    }
    if gone.len() > MOST_GONE {
        log.warn(&format!("{} more tools are no longer served; see `toolgate list`", gone.len() - MOST_GONE));
    }
}

/// The maximum number of tools that the log names after one reload.
const MOST_GONE: usize = 20;

async fn reload(
    toolgate: &Toolgate,
    doors: &mut FrontFollower<'_>,
    (overrides, changes): (&Overrides, FileChanges),
    log: &ServeLog,
) {
    let was_open = toolgate.config().auth.anonymous.is_some();
    let before = toolgate.gate().live();
    match toolgate.reload_changed(overrides, doors, changes).await {
        Ok(ReloadReport { loaded, unrecorded }) => {
            if !was_open {
                warn_of_anonymous(&toolgate.config(), log);
            }
            let count = toolgate.gate().live_count();
            log.info(&format!("reloaded: {count} {} live", if count == 1 { "tool is" } else { "tools are" }));
            report_gone(&before, toolgate, &loaded, log);
            warn_of_unused_settings(&loaded, log);
            if let Some(problem) = unrecorded {
                log.error(&format!("the change is active, but the journal has no record of it: {problem}"));
            }
            if !loaded.awaits_restart.is_empty() {
                let keys = loaded.awaits_restart.join(", ");
                log.warn(&format!("restart the gateway to apply changes of: {keys}"));
            }
        }
        Err(problems) => {
            log.error("change rejected; only removals and stricter settings apply. Fix these problems:");
            for problem in &problems {
                log.error(&problem.to_string());
            }
        }
    }
}

async fn ended(trials: &mut Option<ShippedToolTests>) {
    match trials {
        Some(trials) => trials.running.as_mut().await,
        None => std::future::pending().await,
    }
}

/// The warning for a clock that was set back.
pub fn clock_is_behind(behind: Duration) -> String {
    format!(
        "the system clock is {} behind the newest journal record; check the clock. Until it catches up, records repeat that \
         `time` and have the real time in `wallClock`",
        rounded(behind)
    )
}

/// `3 days`, `1 hour`, `40 seconds`: the largest unit that fits, rounded down.
pub fn rounded(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [("day", 86_400), ("hour", 3_600), ("minute", 60)];
    let (unit, length) = units.into_iter().find(|(_, length)| seconds >= *length).unwrap_or(("second", 1));
    let count = seconds / length;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
