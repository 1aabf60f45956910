//! What every command around a gateway needs: the configuration, and the gateway put together from it.

use std::{future::Future, ops::Deref, path::Path};

use toolgate::{Config, Extras, Toolgate, Writes};
use toolgate_config::{Overrides, config_path};

use crate::{
    Failure,
    args::ConfigArgs,
    terminal::{Terminal, visible},
};

impl ConfigArgs {
    /// The configuration in force; what is wrong with it is a failure that names every place.
    pub fn load(&self, overrides: &Overrides) -> Result<Config, Failure> {
        let path = config_path(self.config.as_deref(), &environment);
        if !path.exists() {
            return Err(missing(&path));
        }
        Config::load(&path, &environment, overrides).map_err(|errors| {
            let told: Vec<String> =
                errors.iter().map(|error| format!("\n  {}", visible(&error.to_string()))).collect();
            Failure::Told(format!("`{}` has errors:{}", visible(&path.to_string_lossy()), told.concat()))
        })
    }

    /// The gateway as a command uses it, beside one that may be running.
    pub async fn open(&self) -> Result<Opened, Failure> {
        open(self.load(&Overrides::default())?, Writes::Command).await.map(Opened)
    }
}

/// A gateway for the length of a command: its journal is closed in the end, however the command ends.
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
        // Where this fails, the next one to open the journal sees that it was not closed, and says so in it.
        let _ = self.0.close();
    }
}

pub async fn open(config: Config, writes: Writes) -> Result<Toolgate, Failure> {
    open_with(config, Extras { writes, ..Extras::default() }, Terminal::note).await
}

/// `say` is for what nobody may miss, however little they want to hear.
pub async fn open_with(config: Config, extras: Extras, say: impl Fn(&str)) -> Result<Toolgate, Failure> {
    // Before it is opened, for tools are tried while it is.
    if config.audit.debug {
        say(
            "audit.debug is on: arguments and outputs are written to the journal, and not only their digests",
        );
    }
    // On the heap: the future of a whole gateway would be a part of every command's.
    let opened = Box::pin(Toolgate::open(config, extras)).await;
    let toolgate = opened.map_err(|error| Failure::new(visible(&error.to_string())))?;
    for said in unlisted_journals(&toolgate).into_iter().chain(older_state(&toolgate)) {
        say(&said);
    }
    Ok(toolgate)
}

/// The warning about a state that is older than the journal.
pub fn older_state(toolgate: &Toolgate) -> Option<String> {
    let revived = toolgate.revived();
    (!revived.is_empty()).then(|| {
        format!(
            "the state is older than the journal, as after restoring a backup of state.db; withdrawn again, with all approvals: {}",
            visible(&revived.describe())
        )
    })
}

/// What is to be said about journals that were passed over.
fn unlisted_journals(toolgate: &Toolgate) -> Vec<String> {
    let say = |name: &String| {
        format!(
            "the journal `{}` is not in the list of journals and was passed over: an older version began it, or \
             somebody put it there; `toolgate audit verify` reports it until it is moved out of the state folder",
            visible(name)
        )
    };
    toolgate.unlisted_journals().iter().map(say).collect()
}

/// Runs a command that waits for something.
pub fn wait<T>(job: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("no runtime: {error}")))?;
    let outcome = runtime.block_on(job);
    // Threads that read standard input or a database do not keep a finished command from ending.
    runtime.shutdown_background();
    outcome
}

/// Writes down what a command is about to do.
pub fn note(config: &Config, entry: &serde_json::Value) -> Result<(), Failure> {
    toolgate::note_command(config, entry).map_err(|error| Failure::new(visible(&error.to_string())))
}

/// Who runs this command, by number; names in the environment are anybody's to set.
pub fn operator() -> String {
    use std::os::unix::fs::MetadataExt;
    let user = std::fs::metadata("/proc/self").map(|own| own.uid().to_string());
    format!("operator uid {}", user.unwrap_or_else(|_| "unknown".to_owned()))
}

fn missing(path: &Path) -> Failure {
    Failure::at(path, "there is no configuration here; `toolgate init` makes one")
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Far more than `limits.looks` can be: however many of them hang on a disk, journal, approvals and reports find theirs.
const BLOCKING_THREADS: usize = 512;
