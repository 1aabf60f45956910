//! The order for one command and its outcome: plain data between the tool and a launcher.

use std::{
    ffi::OsString,
    fmt,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::io::{AsyncRead, AsyncWrite};
use toolgate_egress::{BodyGuard, EgressRules};
use toolgate_gate::EffectEntry;
use toolgate_sandbox::{Children, CommandUsage, Ending, Trace, View};
use toolgate_spec::model::SandboxKind;

use crate::cli::report::denial::Denials;

/// Creates a jail and runs one command in it. Dropping the future kills the command and all processes it started.
pub trait Launch: Send + Sync {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>>;

    /// Starts a command that runs until its [`ServiceProcess`] is dropped. The order's standard input and deadline are not used.
    fn start(&self, _order: CommandOrder) -> ServiceStart {
        let why = "this sandbox runs no long-lived commands; set `execution.sandbox` to `process`";
        Box::pin(std::future::ready(Err(why.to_owned())))
    }
}

pub type ServiceStart = Pin<Box<dyn Future<Output = Result<ServiceProcess, String>> + Send>>;

/// A long-lived command in its jail. Dropping it kills the command and all of its descendants.
pub struct ServiceProcess {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The isolation layers in force.
    pub layers: Vec<String>,
    /// Connections and denials so far.
    pub progress: Arc<RunProgress>,
    /// Ends the command when it is dropped.
    pub handle: Box<dyn Send + Sync>,
}

impl fmt::Debug for ServiceProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServiceProcess").field("layers", &self.layers).finish_non_exhaustive()
    }
}

/// One command and its surroundings. The command has only what is listed here.
#[derive(Debug)]
pub struct CommandOrder {
    /// Absolute and without symlinks; for a container, the name to look up in the image.
    pub program: PathBuf,
    /// Includes `argv[0]`.
    pub argv: Vec<String>,
    pub env: Vec<(String, OsString)>,
    pub stdin: Vec<u8>,
    pub cwd: PathBuf,
    /// Binds are sorted from outer to inner paths. Each holds the file that was checked, so the jail resolves no path again.
    pub view: View,
    /// `None`: no network.
    pub network: Option<EgressGrant>,
    pub sandbox: SandboxKind,
    pub children: Children,
    pub limits: OrderLimits,
    pub deadline: Duration,
    pub trace: Trace,
    pub progress: Arc<RunProgress>,
}

/// Effects and denials so far, for a call that is dropped before its command ends. The launcher sets their source.
#[derive(Default)]
pub struct RunProgress(Mutex<Option<Box<ProgressSource>>>);

type ProgressSource = dyn Fn() -> (NetworkEffects, Denials) + Send;

impl RunProgress {
    pub fn set_source(&self, source: impl Fn() -> (NetworkEffects, Denials) + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(source));
    }

    pub fn current(&self) -> (NetworkEffects, Denials) {
        let source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        source.as_ref().map(|source| source()).unwrap_or_default()
    }
}

impl fmt::Debug for RunProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunProgress").finish_non_exhaustive()
    }
}

/// The hosts a command may reach through the egress proxy, and the guard that scans what it sends.
#[derive(Clone)]
pub struct EgressGrant {
    pub rules: EgressRules,
    pub guard: Arc<dyn BodyGuard>,
    /// Methods that need approval and were not approved for this call.
    pub refused_methods: Vec<String>,
}

impl fmt::Debug for EgressGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressGrant")
            .field("rules", &self.rules)
            .field("refused_methods", &self.refused_methods)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OrderLimits {
    pub memory_bytes: u64,
    pub cpu_seconds: u64,
    pub processes: u64,
    pub open_files: u64,
    pub file_bytes: u64,
    pub tmp_bytes: u64,
    /// A command that writes more is killed.
    pub stdout_bytes: usize,
    /// Further output is discarded.
    pub stderr_bytes: usize,
}

/// How a command ended, and what it wrote, reached and was denied.
#[derive(Clone, Debug)]
pub struct CommandOutcome {
    pub ending: Ending,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub refused: Denials,
    /// The isolation layers that were in force.
    pub layers: Vec<String>,
    pub effects: NetworkEffects,
    pub usage: CommandUsage,
}

/// Requests and connections of a command through the egress proxy.
#[derive(Clone, Debug, Default)]
pub struct NetworkEffects {
    pub listed: Vec<EffectEntry>,
    /// Number of exchanges that are not listed, and their bytes.
    pub dropped: u32,
    pub dropped_bytes: u64,
}

impl CommandOutcome {
    /// The outcome of a command that did not run, or about which nothing else is known.
    pub fn at_once(ending: Ending) -> Self {
        Self {
            ending,
            stdout: Vec::new(),
            stderr: Vec::new(),
            refused: Denials::default(),
            layers: Vec::new(),
            effects: NetworkEffects::default(),
            usage: CommandUsage::default(),
        }
    }
}
