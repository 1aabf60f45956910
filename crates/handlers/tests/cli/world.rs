//! A workspace, the gateway's policies, and launchers that replace the jail.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    future::Future,
    os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    pin::Pin,
    process::Stdio,
    sync::{Arc, LazyLock, Mutex},
};

use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt as _;
use toolgate_gate::{
    ApprovedSecrets, DiskCheckPermits, Handlers as _, Purpose, Refusal, RunReport, RunRequest, Runnable,
    StopFlag, UnreportedEffects,
};
use toolgate_handlers::{
    AllowedCommands, CliHandlers, CliTool, CommandHost, CommandOrder, CommandOutcome, Denials,
    GatewayEnvironment, Launch, NetworkEffects, OutputParser, OwnVariables, Places,
};
use toolgate_policy::{EffectivePolicy, PolicySet, SecretConsumer, SecretSource};
use toolgate_sandbox::{CommandUsage, Ending};
use toolgate_secrets::Detector;
use toolgate_spec::{
    Format,
    model::{Body, Handler, ToolSpec},
};
use zeroize::Zeroizing;

/// Loading all rules is slow.
static DETECTOR: LazyLock<Arc<Detector>> = LazyLock::new(|| Detector::shipped().unwrap());

static LOOKS: LazyLock<DiskCheckPermits> = LazyLock::new(DiskCheckPermits::default);

/// A workspace with a few files, and directories beside it.
pub struct World {
    pub folder: tempfile::TempDir,
    pub allowed: AllowedCommands,
    pub environment: Vec<(String, OsString)>,
    pub secrets: BTreeMap<String, String>,
    pub own: OwnVariables,
    pub container_egress: Result<(), &'static str>,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = Self {
            folder,
            allowed: AllowedCommands::Any,
            environment: Vec::new(),
            secrets: BTreeMap::new(),
            own: OwnVariables::named([]),
            container_egress: Ok(()),
        };
        for (path, text) in [
            ("workspace/docs/readme.md", "# The gate\nopens for those who are named\n"),
            ("workspace/src/main.rs", "fn main() {}\n"),
            ("workspace/src/.env", "TOKEN=1\n"),
            ("workspace/.toolgate/state", "x"),
            ("outside/passwd", "root:x\n"),
        ] {
            world.write(path, text);
        }
        world
    }

    pub fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap()
    }

    pub fn at(&self, path: &str) -> String {
        self.root().join("workspace").join(path).display().to_string()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn host(&self) -> CommandHost {
        let workspace = self.folder.path().join("workspace");
        CommandHost {
            places: Places {
                guarded: vec![workspace.join(".toolgate")],
                state: workspace.join(".toolgate"),
                home: self.folder.path().join("home"),
                workspace,
            },
            allowed: self.allowed.clone(),
            environment: GatewayEnvironment::of(self.environment.clone(), self.own.clone()),
            container_egress: self.container_egress,
        }
    }

    pub fn handlers(&self, launcher: Arc<dyn Launch>) -> CliHandlers {
        CliHandlers {
            launcher,
            host: self.host(),
            secrets: Arc::new(Secrets(self.secrets.clone())),
            detector: Arc::clone(&DETECTOR),
            commands: BTreeMap::new(),
            parsers: BTreeMap::new(),
        }
    }

    pub fn load(&self, manifest: &str) -> Result<CliTool, String> {
        let (spec, policy) = resolve(manifest);
        CliTool::new(spec, &policy, &self.host())
    }

    /// A tool whose launcher records orders and answers `ended`.
    #[track_caller]
    pub fn recorded(&self, manifest: &str, ended: CommandOutcome) -> (Arc<dyn Runnable>, Arc<Recorder>) {
        let recorder = Recorder::answering(ended);
        let tool = self.load(manifest).unwrap();
        (self.handlers(Arc::clone(&recorder) as Arc<dyn Launch>).runnable(tool), recorder)
    }

    /// The same for a program that need not be installed: a file with its name replaces it.
    #[track_caller]
    pub fn with_stand_in(&self, manifest: &str) -> (Arc<dyn Runnable>, Arc<Recorder>) {
        self.stand_in_for(manifest, said(""))
    }

    #[track_caller]
    pub fn stand_in_for(&self, manifest: &str, ended: CommandOutcome) -> (Arc<dyn Runnable>, Arc<Recorder>) {
        let tool = self.load_stand_in(manifest).unwrap();
        let recorder = Recorder::answering(ended);
        (self.handlers(Arc::clone(&recorder) as Arc<dyn Launch>).runnable(tool), recorder)
    }

    /// Why a tool is not loaded although its program exists.
    #[track_caller]
    pub fn loading_error(&self, manifest: &str) -> Option<String> {
        self.load_stand_in(manifest).err()
    }

    /// Why a tool with a parser in code is not loaded.
    #[track_caller]
    pub fn parsing_error(&self, manifest: &str) -> Option<String> {
        let (spec, policy) = resolve(manifest);
        let Body::Handler(Handler::Cli(cli)) = &spec.body else { panic!("a command") };
        let program = self.program(&cli.command, "#!/bin/true\n", 0o755);
        let mut handlers = self.handlers(Recorder::answering(said("")));
        handlers.parsers.insert(spec.name.clone(), OutputParser::new(|_| Ok(Value::Null)));
        handlers.prepare(&with_command(&spec, &program), &policy).err()
    }

    #[track_caller]
    fn load_stand_in(&self, manifest: &str) -> Result<CliTool, String> {
        let (spec, policy) = resolve(manifest);
        let Body::Handler(Handler::Cli(cli)) = &spec.body else { panic!("a command") };
        let program = self.program(&cli.command, "#!/bin/true\n", 0o755);
        CliTool::new(with_command(&spec, &program), &policy, &self.host())
    }

    /// A program in a directory next to the workspace, where only the operator writes.
    pub fn program(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        self.write(&format!("bin/{name}"), text);
        let path = self.root().join("bin").join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// The command line of a call, or why it was rejected.
    #[track_caller]
    pub fn line(&self, manifest: &str, arguments: &Value) -> Result<Vec<String>, Refusal> {
        let (tool, recorder) = self.with_stand_in(manifest);
        let line = call(&tool, arguments).map(|_| recorder.last().argv)?;
        let name = line[0].rsplit('/').next().unwrap().to_owned();
        Ok(std::iter::once(name).chain(line.into_iter().skip(1)).collect())
    }

    #[track_caller]
    pub fn order(&self, manifest: &str, arguments: &Value) -> CommandOrder {
        let (tool, recorder) = self.recorded(manifest, said(""));
        call(&tool, arguments).unwrap();
        recorder.last()
    }
}

/// A manifest without errors, and its policy.
#[track_caller]
pub fn resolve(manifest: &str) -> (Arc<ToolSpec>, EffectivePolicy) {
    let checked = toolgate_spec::check(manifest.as_bytes(), Format::Yaml);
    let tool =
        checked.tools.into_iter().next().unwrap_or_else(|| panic!("{manifest}\n{:#?}", checked.findings));
    let errors: Vec<_> = tool.findings.iter().filter(|finding| finding.is_error()).collect();
    assert!(errors.is_empty(), "{manifest}\n{errors:#?}");
    let spec = tool.spec.unwrap();
    let policy = toolgate_policy::resolve(&spec, PolicySet::shipped().as_ref().unwrap(), None).unwrap();
    (Arc::new(spec), policy)
}

/// The same tool with a stand-in as its program.
pub fn with_command(spec: &ToolSpec, program: &Path) -> Arc<ToolSpec> {
    let mut spec = spec.clone();
    if let Body::Handler(Handler::Cli(cli)) = &mut spec.body {
        cli.command = program.display().to_string();
    }
    Arc::new(spec)
}

/// Surveys and runs, as the gate does after its decision.
pub fn call(tool: &Arc<dyn Runnable>, arguments: &Value) -> Result<RunReport, Refusal> {
    let arguments = arguments.as_object().unwrap();
    let survey = Arc::clone(tool).survey(arguments, &StopFlag::default())?;
    Ok(runtime().block_on(survey.call.run(request(arguments))))
}

/// A request of the gate with these arguments.
pub fn request(arguments: &Map<String, Value>) -> RunRequest<'_> {
    request_with(arguments, &LOOKS)
}

/// The same, with these permits for disk checks.
pub fn request_with<'r>(
    arguments: &'r Map<String, Value>,
    disk_checks: &'r DiskCheckPermits,
) -> RunRequest<'r> {
    static AGREED: LazyLock<ApprovedSecrets> = LazyLock::new(ApprovedSecrets::default);
    static LEFT: LazyLock<UnreportedEffects> = LazyLock::new(UnreportedEffects::default);
    let (agreed, left) = (&*AGREED, &*LEFT);
    RunRequest {
        arguments,
        approved_secrets: agreed,
        unreported: left,
        caller: "tester",
        purpose: Purpose::Call,
        disk_checks,
    }
}

/// Nested directories until the innermost is too deep for any path.
pub fn nest_too_deep(around: &Path) {
    let mut folder = fs::File::open(around).unwrap();
    for _ in 0..25 {
        let (name, mode) = ("d".repeat(200), rustix::fs::Mode::from_raw_mode(0o755));
        rustix::fs::mkdirat(&folder, &name, mode).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        folder = rustix::fs::openat(&folder, &name, flags, rustix::fs::Mode::empty()).unwrap().into();
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub fn said(stdout: &str) -> CommandOutcome {
    ended(Ending::Exited(0), stdout, "")
}

pub fn ended(ending: Ending, stdout: &str, stderr: &str) -> CommandOutcome {
    CommandOutcome {
        ending,
        stdout: stdout.as_bytes().to_vec(),
        stderr: stderr.as_bytes().to_vec(),
        refused: Denials::default(),
        layers: vec!["recorder".to_owned()],
        effects: NetworkEffects::default(),
        usage: CommandUsage::default(),
    }
}

/// Keeps the orders, runs nothing.
pub struct Recorder {
    orders: Mutex<Vec<CommandOrder>>,
    ended: CommandOutcome,
}

impl Recorder {
    fn answering(ended: CommandOutcome) -> Arc<Self> {
        Arc::new(Self { orders: Mutex::new(Vec::new()), ended })
    }

    #[track_caller]
    pub fn last(&self) -> CommandOrder {
        self.orders.lock().unwrap().pop().expect("something was ordered")
    }

    pub fn is_unused(&self) -> bool {
        self.orders.lock().unwrap().is_empty()
    }
}

impl Launch for Recorder {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        self.orders.lock().unwrap().push(order);
        let ended = self.ended.clone();
        Box::pin(async move { ended })
    }
}

/// Starts the program without a jail, so the arguments must be harmless by themselves.
pub struct Unjailed;

impl Launch for Unjailed {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        Box::pin(async move {
            let mut command = tokio::process::Command::new(&order.program);
            command.arg0(&order.argv[0]).args(&order.argv[1..]).current_dir(&order.cwd);
            command.env_clear().envs(order.env).kill_on_drop(true);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(&order.stdin).await.unwrap();
            let Ok(output) = tokio::time::timeout(order.deadline, child.wait_with_output()).await else {
                return ended(Ending::TimedOut, "", "");
            };
            let output = output.unwrap();
            let ending = match (output.status.code(), output.status.signal()) {
                (Some(code), _) => Ending::Exited(u8::try_from(code).unwrap()),
                (None, signal) => Ending::Signalled(signal.unwrap()),
            };
            CommandOutcome { stdout: output.stdout, stderr: output.stderr, ..ended(ending, "", "") }
        })
    }
}

struct Secrets(BTreeMap<String, String>);

impl SecretSource for Secrets {
    fn secret(&self, name: &str, _consumer: SecretConsumer<'_>) -> Option<Zeroizing<String>> {
        self.0.get(name).cloned().map(Zeroizing::new)
    }
}
