//! How does a gateway stay what its files say? Everything is read anew when a file or a pass has changed; shipped tools are tried
//! beside that, and the journal is signed every minute.

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
    auth::Callers,
    log::ServeLog,
    stopping::{hung_up, in_terminal},
};
use crate::{Beside, Config, FileChanges, Loaded, Problem, Reloaded, ToTry, Toolgate, Watched};

/// The files that are watched, which the configuration itself can change.
pub struct Watching {
    paths: Vec<PathBuf>,
    changed: watch::Receiver<u64>,
    watch: Option<FileWatch>,
}

impl Watching {
    /// To be started before anything is read, so that no edit falls between reading and watching.
    pub fn start(config: &Config, log: &ServeLog) -> Self {
        Self::of(named_by(config), log)
    }

    fn of(paths: Vec<PathBuf>, log: &ServeLog) -> Self {
        let (ticks, changed) = watch::channel(0);
        let watch = FileWatch::start(paths.clone(), ticks)
            .inspect_err(|error| log.warn(&format!("{error}; edits are live after a restart or SIGHUP")))
            .ok();
        Self { paths, changed, watch }
    }

    /// The files that changed since the last call. Without a watch nothing is known of them.
    fn take_changes(&self) -> FileChanges {
        self.watch.as_ref().map_or(FileChanges::Everything, FileWatch::take_changes)
    }

    /// Watches what is in force and what was read: a file that keeps the latter from being in force may be mended.
    fn follow(&mut self, in_force: &Config, read: &Config, log: &ServeLog) -> Watched {
        let mut paths = named_by(in_force);
        paths.extend(named_by(read));
        paths.sort_unstable();
        paths.dedup();
        if paths == self.paths {
            return Watched::Already;
        }
        *self = Self::of(paths, log);
        Watched::FromNow
    }
}

/// In order, each once.
fn named_by(config: &Config) -> Vec<PathBuf> {
    let policy = &config.policy;
    let files = [&config.file, &policy.baseline, &policy.profiles, &policy.overrides];
    // Key sets are looked at by whoever verifies with them.
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

/// Who has to know of another configuration, beside the gateway.
pub struct Followers {
    pub watching: Watching,
    /// Of the HTTP front; over stdio there are none.
    pub callers: Option<Callers>,
    /// Does SIGHUP reload?
    pub hears_hangup: bool,
    pub log: ServeLog,
}

/// Test runs of shipped tools, beside everything else: what is tighter does not wait for them, and they give way to it.
struct Trials {
    running: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The tools that are tried, by id.
    of: BTreeSet<String>,
}

impl Trials {
    fn begin(toolgate: &Arc<Toolgate>, which: ToTry) -> Option<Self> {
        let of = toolgate.untried(which);
        if of.is_empty() {
            return None;
        }
        let toolgate = Arc::clone(toolgate);
        Some(Self { running: Box::pin(async move { toolgate.try_shipped(which).await }), of })
    }
}

/// Until `stop`.
pub async fn keep_fresh(
    toolgate: Arc<Toolgate>,
    followers: Followers,
    overrides: Overrides,
    stop: CancellationToken,
) {
    let Followers { mut watching, mut callers, hears_hangup, log } = followers;
    let mut hangups = (hears_hangup && !in_terminal()).then(|| signal(SignalKind::hangup()).ok()).flatten();
    let mut state = toolgate_gate::ApprovalQueue::changes(toolgate.state().as_ref());
    // At the start once more what has failed; beside the doors, for nobody waits for a host that may still be down.
    let mut to_try = ToTry::AlsoFailed;
    let mut trials = Trials::begin(&toolgate, to_try);
    let mut upkeep = Upkeep::new(&toolgate);
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
                // Approvals and tokens are in there too; only passes concern the tools. Trials also write passes, and a
                // reload follows them.
                let is_tried = |id: &String| trials.as_ref().is_some_and(|trials| trials.of.contains(id));
                if toolgate.changed_passes().is_ok_and(|changed| changed.iter().all(is_tried)) {
                    // What somebody took back while it is tried goes before the end of the trials.
                    if trials.is_some() {
                        toolgate.drop_taken_back();
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
                toolgate.forget_judgements();
                is_everything = true;
                true
            }
            // What could not be tried now is not tried again before something changes.
            () = ended(&mut trials) => {
                to_try = ToTry::Untried;
                false
            }
            () = upkeep.due(&toolgate, &log) => continue,
        };
        // They were for what was in force; what has passed is kept.
        trials = None;
        // Before anything is read: a change in the meantime is in the next batch.
        let changes = watching.take_changes();
        let changes = if is_everything { FileChanges::Everything } else { changes };
        let mut doors =
            Doors { toolgate: &toolgate, watching: &mut watching, callers: callers.as_mut(), log: &log };
        reload(&toolgate, &mut doors, (&overrides, changes), &log).await;
        if may_try {
            trials = Trials::begin(&toolgate, to_try);
        }
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").field("paths", &self.paths).finish_non_exhaustive()
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

/// What is done by the clock.
struct Upkeep {
    minute: Interval,
    second: Interval,
    /// What was last said of the journal.
    told: Option<String>,
    /// How many records could not be written at the last look.
    failures: u64,
    /// What was last said of the state.
    told_of_state: Option<String>,
    /// Was the clock behind the journal at the last look?
    is_clock_behind: bool,
}

impl Upkeep {
    /// A clock that is behind at the start was reported when the gateway was opened.
    fn new(toolgate: &Toolgate) -> Self {
        Self {
            minute: tokio::time::interval(Duration::from_mins(1)),
            second: tokio::time::interval(Duration::from_secs(1)),
            told: None,
            failures: 0,
            told_of_state: None,
            is_clock_behind: toolgate.clock_behind().is_some(),
        }
    }

    /// Ends after each thing that was done.
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
        if problem == self.told {
            // A failure that is over already, as on a disk that is nearly full: short records fit, and long ones do not.
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
        self.told = problem;
    }

    fn watch_state(&mut self, toolgate: &Toolgate, log: &ServeLog) {
        let problem = toolgate.state().check().err().map(|error| error.to_string());
        if problem == self.told_of_state {
            return;
        }
        match &problem {
            Some(problem) => log.error(&format!("callers with tokens are refused: {problem}")),
            None => log.info("the state can be read again"),
        }
        self.told_of_state = problem;
    }
}

/// What follows the configuration.
struct Doors<'g> {
    toolgate: &'g Toolgate,
    watching: &'g mut Watching,
    callers: Option<&'g mut Callers>,
    log: &'g ServeLog,
}

impl Beside for Doors<'_> {
    fn watch(&mut self, read: &Config) -> Watched {
        self.watching.follow(&self.toolgate.config(), read, self.log)
    }

    fn prepare(&mut self, config: &Config) -> Result<(), Problem> {
        let Some(callers) = &mut self.callers else { return Ok(()) };
        callers
            .prepare(config, self.toolgate)
            .map_err(|failure| Problem { place: "auth".to_owned(), what: failure.to_string() })
    }

    fn put_in_force(&mut self) {
        if let Some(callers) = &mut self.callers {
            callers.put_in_force();
        }
    }
}

/// Whoever comes without a token is worth a word whenever it begins.
pub fn warn_of_anonymous(config: &Config, log: &ServeLog) {
    if config.auth.anonymous.is_some() {
        log.warn("auth.anonymous is on: whoever reaches the port may call tools");
    }
}

/// An override that nobody heeds looks like a guard and is none.
pub fn warn_of_unheeded(loaded: &Loaded, log: &ServeLog) {
    for problem in &loaded.unheeded {
        log.warn(&problem.to_string());
    }
}

/// Names the tools that were live before a reload and are not any more, with the reason and the remedy.
fn report_gone(before: &LiveSet, toolgate: &Toolgate, loaded: &Loaded, log: &ServeLog) {
    let now = toolgate.gate().live();
    let gone = now.gone_since(before);
    for (position, tool) in gone.iter().take(MOST_GONE) {
        let name = tool.spec().name.as_str();
        // Usually the document is still in its file.
        let found = loaded.tools.at(position).filter(|tool| tool.name == name);
        let found = found.or_else(|| loaded.tools.iter().find(|tool| tool.name == name));
        let why = match found.map(|tool| (&tool.candidate, tool.is_exposed)) {
            None => "its document is gone".to_owned(),
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
        log.warn(&format!("`{name}` is not served any more: {why}"));
    }
    if gone.len() > MOST_GONE {
        log.warn(&format!(
            "{} more tools are not served any more; see `toolgate list`",
            gone.len() - MOST_GONE
        ));
    }
}

/// How many tools the log names after one reload.
const MOST_GONE: usize = 20;

async fn reload(
    toolgate: &Toolgate,
    doors: &mut Doors<'_>,
    (overrides, changes): (&Overrides, FileChanges),
    log: &ServeLog,
) {
    let was_open = toolgate.config().auth.anonymous.is_some();
    let before = toolgate.gate().live();
    match toolgate.reload_changed(overrides, doors, changes).await {
        Ok(Reloaded { loaded, unrecorded }) => {
            if !was_open {
                warn_of_anonymous(&toolgate.config(), log);
            }
            let count = toolgate.gate().live_count();
            log.info(&format!("reloaded: {count} {} live", if count == 1 { "tool is" } else { "tools are" }));
            report_gone(&before, toolgate, &loaded, log);
            warn_of_unheeded(&loaded, log);
            if let Some(problem) = unrecorded {
                log.error(&format!("the change is in force, and the journal has no record of it: {problem}"));
            }
            if !loaded.awaits_restart.is_empty() {
                let keys = loaded.awaits_restart.join(", ");
                log.warn(&format!("changed, and not in force before a restart: {keys}"));
            }
        }
        Err(problems) => {
            log.error("the change is not in force, except for what it takes away; mend these mistakes:");
            for problem in &problems {
                log.error(&problem.to_string());
            }
        }
    }
}

async fn ended(trials: &mut Option<Trials>) {
    match trials {
        Some(trials) => trials.running.as_mut().await,
        None => std::future::pending().await,
    }
}

/// The warning about a clock that was set back.
pub fn clock_is_behind(behind: Duration) -> String {
    format!(
        "the system clock is {} behind the newest journal record; check the clock. Until it catches up, records keep that `time` \
         and have the real one in `wallClock`",
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
