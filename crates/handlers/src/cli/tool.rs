//! Prepares command tools, and builds the command line of a call before anyone is asked for approval.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value};
use toolgate_egress::EgressRules;
use toolgate_gate::{Refusal, StopFlag};
use toolgate_policy::{EffectivePolicy, SettingOrigin};
use toolgate_sandbox::Children;
use toolgate_spec::{
    ArgPart,
    model::{
        ApprovalLevel, Argument, ArgumentGroup, Body, CliHandler, GATEWAY_FILES, Handler, NetworkMode,
        SandboxKind, ToolSpec,
    },
};

use crate::{
    cli::{
        command::CliCommand,
        line::{
            self, TemplateValues, arg::refused, code_command, danger_texts, path_arguments, search_terms,
            short_options, static_variables,
        },
        program::{AllowedCommands, Program, conventions::Conventions},
        report::{
            output::{OutputParser, OutputReader, ResultShape},
            search_results::{self, SearchOutput},
        },
        run::order::OrderLimits,
        view::{
            self, NamesPaths, ViewPlan,
            environment::{self, GatewayEnvironment},
        },
    },
    grants,
    places::Places,
    survey::{CallGrants, CallSurvey, NetworkUpgrade, Surveyor},
};

/// The settings of this gateway for commands.
#[derive(Clone, Debug)]
pub struct CommandHost {
    pub places: Places,
    pub allowed: AllowedCommands,
    pub environment: GatewayEnvironment,
    /// Whether containers have egress, or why not.
    pub container_egress: Result<(), &'static str>,
}

/// A prepared command tool, for any number of calls.
#[derive(Debug)]
pub struct CliTool {
    pub(super) spec: Arc<ToolSpec>,
    pub(super) program: Program,
    pub(super) conventions: &'static Conventions,
    pub(super) body: CommandBody,
    pub(super) view: Arc<ViewPlan>,
    pub(super) environment: BTreeMap<String, OsString>,
    pub(super) network: Option<EgressRules>,
    pub(super) sandbox: SandboxKind,
    pub(super) children: Children,
    pub(super) limits: OrderLimits,
    pub(super) deadline: Duration,
    pub(super) reader: OutputReader,
    search_redaction: SearchRedaction,
    surveyor: Surveyor,
    paths: BTreeSet<String>,
    literals: Map<String, Value>,
}

/// Whether matches that contain a secret are removed from search results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SearchRedaction {
    Yes,
    /// The policy does not filter results, or callers cannot choose what is searched for.
    No,
}

/// The source of the command line.
pub(super) enum CommandBody {
    Manifest(CliHandler),
    Code(CliCommand),
}

/// The result of the checks before a run, including open files.
#[derive(Debug)]
pub struct PreparedCall {
    /// Without `argv[0]`.
    pub line: Vec<String>,
    pub granted: Arc<CallGrants>,
}

impl CliTool {
    /// Fails if the tool is not a command, or if this gateway cannot or may not run it.
    pub fn new(spec: Arc<ToolSpec>, policy: &EffectivePolicy, host: &CommandHost) -> Result<Self, String> {
        let Body::Handler(Handler::Cli(cli)) = &spec.body else {
            return Err("it is not a command tool".to_owned());
        };
        let body = CommandBody::Manifest(cli.clone());
        Self::of(spec, body, policy, host)
    }

    pub(super) fn of(
        spec: Arc<ToolSpec>,
        body: CommandBody,
        policy: &EffectivePolicy,
        host: &CommandHost,
    ) -> Result<Self, String> {
        let written = body.written();
        let find = match policy.execution.sandbox.value {
            SandboxKind::Container => Program::in_image,
            SandboxKind::Process | SandboxKind::None => Program::find,
        };
        let program = find(&written.command, &host.allowed, &open_folders(policy, &host.places))?;
        let conventions = find_conventions(&program)?;
        check_egress(policy, host)?;
        let surveyor = Surveyor::new(&spec, policy, &host.places, upgrade(policy, host)).for_command();
        let paths = path_arguments::names(&spec, &surveyor)?;
        check_program(written, &program)?;
        check_shell(&written.command, policy)?;
        match &body {
            CommandBody::Manifest(cli) => {
                check_elements(cli, conventions)?;
                if !conventions.ends_options_at_dashes() {
                    short_options::check(cli, &spec, &paths)?;
                }
                check_secrets(cli, &spec)?;
            }
            CommandBody::Code(_) => code_command::check(written, &spec)?,
        }
        let names_paths = if paths.is_empty() { NamesPaths::No } else { NamesPaths::Yes };
        let has_network = policy.network.mode.value != NetworkMode::Blocked;
        let shape = if spec.governance.output.is_some() { ResultShape::Object } else { ResultShape::Free };
        // Without its own timeout, a handler uses the policy's, which defaults to the baseline. So the displayed
        // value is the enforced one.
        let allowed = policy.execution.timeout_ms.value;
        let deadline = written.timeout_ms.map_or(allowed, |own| own.min(allowed)).min(MOST_TIMEOUT_MS);
        let may_search = match &body {
            CommandBody::Manifest(cli) => search_terms::is_chosen_by_caller(cli, &spec, &paths),
            CommandBody::Code(_) => true,
        };
        let search_redaction = if policy.data.sanitize_output.value && may_search {
            SearchRedaction::Yes
        } else {
            SearchRedaction::No
        };
        if let (CommandBody::Manifest(cli), SearchRedaction::Yes) = (&body, search_redaction) {
            let texts: Vec<String> = arguments(cli).map(|one| one.template.text().to_owned()).collect();
            search_results::check_form(conventions, &texts, &cli.output)?;
        }
        Ok(Self {
            search_redaction,
            view: Arc::new(ViewPlan::new(policy, &host.places, written.cwd.as_deref(), names_paths)?),
            environment: environment::base(&policy.execution, &host.environment)?,
            network: has_network.then(|| grants::rules(&policy.network)),
            sandbox: policy.execution.sandbox.value,
            children: children(written, policy)?,
            limits: limits(policy, deadline),
            deadline: Duration::from_millis(deadline),
            reader: OutputReader::new(&written.output, shape)?,
            surveyor,
            literals: literals(&spec, written, &host.places),
            paths,
            conventions,
            program,
            body,
            spec,
        })
    }

    /// Resolves what a call would touch, and builds its command line. Values that cannot be passed on are rejected
    /// here, before anyone is asked.
    pub fn survey(
        &self,
        arguments: &Map<String, Value>,
        stop: &StopFlag,
    ) -> Result<CallSurvey<PreparedCall>, Refusal> {
        let CallSurvey { touches, widened, questions, granted, .. } =
            self.surveyor.survey(arguments, stop)?;
        let values = self.values(&self.literals, arguments, &granted);
        let written = self.body.written();
        // Only checks that they can be filled in; secrets are resolved when the command runs.
        for variable in &written.env {
            values.check_variable(&variable.value)?;
        }
        if let Some(template) = &written.stdin {
            values.check(template)?;
        }
        let elements = match &self.body {
            CommandBody::Manifest(cli) => line::fill(&cli.args, &values)?,
            CommandBody::Code(command) => {
                let made = command.elements(&path_arguments::found(arguments, &self.paths, &granted));
                code_command::check_elements(&made, self.conventions)?;
                made
            }
        };
        let line = line::settle(&elements, self.conventions)?;
        let given = written.env.iter().map(|variable| &variable.value).chain(&written.stdin);
        let mut built = danger_texts::templates(given, &values)?;
        built.extend(danger_texts::elements(&elements, self.conventions, &line));
        if self.search_redaction == SearchRedaction::Yes {
            search_results::check_form(self.conventions, &line, self.reader.form(&written.output))
                .map_err(|why| refused(why, "the tool's author must choose another output format"))?;
        }
        let granted = PreparedCall { line, granted: Arc::new(granted) };
        Ok(CallSurvey { touches, widened, questions, built, granted })
    }

    /// Sets a parser in code. It is rejected for commands that search for a caller's text: matches with a secret are
    /// removed from the output, but code could still reveal how many there were.
    pub(super) fn set_parser(&mut self, parser: OutputParser) -> Result<(), String> {
        self.reader.set_parser(parser);
        if let (CommandBody::Manifest(cli), SearchRedaction::Yes) = (&self.body, self.search_redaction) {
            let texts: Vec<String> = arguments(cli).map(|one| one.template.text().to_owned()).collect();
            search_results::check_form(self.conventions, &texts, self.reader.form(&cli.output))?;
        }
        Ok(())
    }

    /// The kind of search that the command line does.
    pub(super) fn search_output(&self, line: &[String]) -> SearchOutput {
        match self.search_redaction {
            SearchRedaction::Yes => SearchOutput::by(self.conventions, line),
            SearchRedaction::No => SearchOutput::Nothing,
        }
    }

    pub fn survey_waits_for_disk(&self) -> bool {
        self.surveyor.waits_for_disk()
    }

    pub(super) fn values<'c>(
        &'c self,
        statics: &'c Map<String, Value>,
        arguments: &'c Map<String, Value>,
        granted: &'c CallGrants,
    ) -> TemplateValues<'c> {
        TemplateValues { statics, arguments, paths: &self.paths, granted }
    }

    pub(super) fn refused_methods(&self, granted: &CallGrants) -> Vec<String> {
        self.surveyor.unapproved_methods(granted)
    }

    /// Changes the limits of the policy, for tests and for operators who know why.
    #[must_use]
    pub fn with_limits(mut self, change: impl FnOnce(&mut OrderLimits, &mut Duration)) -> Self {
        change(&mut self.limits, &mut self.deadline);
        self
    }
}

impl CommandBody {
    /// The manifest; for a command in code, everything except the arguments.
    pub(super) const fn written(&self) -> &CliHandler {
        match self {
            Self::Manifest(cli) => cli,
            Self::Code(command) => command.written(),
        }
    }
}

impl fmt::Debug for CommandBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CommandBody").field(&self.written().command).finish()
    }
}

/// The jail denies child processes with its filter; containers have no such filter.
fn children(written: &CliHandler, policy: &EffectivePolicy) -> Result<Children, String> {
    match (written.child_processes, policy.execution.sandbox.value) {
        (true, _) => Ok(Children::Allowed),
        (false, SandboxKind::Process | SandboxKind::None) => Ok(Children::Denied),
        (false, SandboxKind::Container) => Err(
            "`childProcesses: false` is not enforced in containers; set `execution.sandbox` to `process`, or leave it out"
                .to_owned(),
        ),
    }
}

/// The author's static values, and the gateway's files below the working directory.
fn literals(spec: &ToolSpec, written: &CliHandler, places: &Places) -> Map<String, Value> {
    let mut literals = static_variables::literals(spec);
    if let Some(cwd) = &written.cwd {
        let folder = view::place(cwd, &places.workspace, &places.home);
        literals.insert(GATEWAY_FILES.to_owned(), relative_to(&folder, &places.guarded).into());
    }
    literals
}

/// The paths below the directory, relative to it, under all their names.
fn relative_to(folder: &Path, paths: &[PathBuf]) -> Vec<String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folders = [folder.to_owned(), real(folder)];
    let names = paths.iter().flat_map(|path| [path.clone(), real(path)]);
    let below = names.filter_map(|path| {
        let inside = folders.iter().find_map(|folder| path.strip_prefix(folder).ok())?;
        inside.to_str().filter(|inside| !inside.is_empty()).map(str::to_owned)
    });
    let below: BTreeSet<String> = below.collect();
    below.into_iter().collect()
}

/// An approval is only requested for hosts that the command could then reach.
fn upgrade(policy: &EffectivePolicy, host: &CommandHost) -> NetworkUpgrade {
    let has_egress =
        policy.execution.sandbox.value != SandboxKind::Container || host.container_egress.is_ok();
    if policy.network.proxy_on_approval.value && has_egress {
        NetworkUpgrade::Ask
    } else {
        NetworkUpgrade::Refuse
    }
}

/// Directories that tools can write to. Programs in them are not trusted.
fn open_folders(policy: &EffectivePolicy, places: &Places) -> Vec<PathBuf> {
    let mut folders = vec![places.workspace.clone()];
    if policy.files.write.value
        && let Some(files) = grants::files(policy, places)
    {
        folders.push(files.workspace);
    }
    let real: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    folders.into_iter().chain(real).filter(|folder| folder.parent().is_some()).collect()
}

/// Looks up the conventions by the command name and by the real file name.
fn find_conventions(program: &Program) -> Result<&'static Conventions, String> {
    let file = program.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Conventions::of(&program.name, file).ok_or_else(|| {
        format!(
            "`{}` leads to `{}`, a program that reads its arguments differently; name the program itself",
            program.name,
            program.file.display()
        )
    })
}

/// Checks the real name of the program like the name in the document.
fn check_program(cli: &CliHandler, program: &Program) -> Result<(), String> {
    let name = program.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match toolgate_spec::refuse_program_file(cli, name) {
        Some(why) => Err(format!("`{}` leads to `{}`, {why}", cli.command, program.file.display())),
        None => Ok(()),
    }
}

/// Only the operator may drop the approval or the container for a program that runs code of the agent. Documents and
/// presets may not.
fn check_shell(command: &str, policy: &EffectivePolicy) -> Result<(), String> {
    if !toolgate_spec::starts_other_programs(command) {
        return Ok(());
    }
    let (level, sandbox) = (&policy.approval.level, &policy.execution.sandbox);
    if level.value == ApprovalLevel::Auto && level.origin != SettingOrigin::User {
        return Err(format!(
            "`{command}` runs code of the agent without approval; set `approval.level` to `ask` or `always`, or set `auto` in the operator's overrides"
        ));
    }
    if sandbox.value != SandboxKind::Container && sandbox.origin != SettingOrigin::User {
        return Err(format!(
            "`{command}` runs code of the agent outside a container; set `execution.sandbox` to `container`, or change it in the operator's overrides"
        ));
    }
    Ok(())
}

/// Rejects a tool whose every call would fail.
fn check_egress(policy: &EffectivePolicy, host: &CommandHost) -> Result<(), String> {
    let mode = policy.network.mode.value;
    if mode == NetworkMode::Blocked || policy.execution.sandbox.value != SandboxKind::Container {
        return Ok(());
    }
    host.container_egress.map_err(|why| {
        format!(
            "it has a network (`{}`) and runs in a container: {why} (for a shell, in the operator's overrides), or set `network.access` to `none`",
            mode.name()
        )
    })
}

/// Rejects elements that this program would read differently from what the author meant.
fn check_elements(cli: &CliHandler, conventions: &Conventions) -> Result<(), String> {
    for (index, argument) in arguments(cli).enumerate() {
        let text = argument.template.text();
        match argument.template.parts() {
            [ArgPart::Variable(_), ..] if index == 0 && conventions.reads_first_as_options() => {
                return Err(format!(
                    "`{}` reads its first argument as options, so `{text}` lets the caller choose them; write the options out",
                    cli.command
                ));
            }
            [ArgPart::Literal(start), ArgPart::Variable(_), ..] if conventions.glues_options(start) => {
                return Err(format!(
                    "`{}` reads the text after `{start}` as more options, so `{text}` lets the caller choose them; write two arguments",
                    cli.command
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_secrets(cli: &CliHandler, spec: &ToolSpec) -> Result<(), String> {
    let secret = static_variables::secret_names(spec);
    match arguments(cli).flat_map(|one| one.template.names()).find(|name| secret.contains(name)) {
        Some(name) => Err(format!(
            "`{name}` is a secret used in an argument, where every process can read it; pass it in `env` or `stdin`"
        )),
        None => Ok(()),
    }
}

/// All arguments of the command line.
pub(super) fn arguments(cli: &CliHandler) -> impl Iterator<Item = &Argument> {
    cli.args.iter().flat_map(|group| match group {
        ArgumentGroup::One(one) => std::slice::from_ref(one),
        ArgumentGroup::When { args, .. } | ArgumentGroup::Each { args, .. } => args.as_slice(),
    })
}

fn limits(policy: &EffectivePolicy, deadline_ms: u64) -> OrderLimits {
    let output = usize::try_from(policy.execution.max_output_bytes.value).unwrap_or(usize::MAX);
    OrderLimits {
        memory_bytes: policy.execution.memory_bytes.value,
        cpu_seconds: deadline_ms.div_ceil(1_000).saturating_add(1),
        processes: 128,
        open_files: 512,
        file_bytes: 256 << 20,
        tmp_bytes: 64 << 20,
        // The filter stage checks the final size. Colours, and values that a selection drops, come on top.
        stdout_bytes: output.saturating_mul(4).clamp(64 << 10, 16 << 20),
        stderr_bytes: 64 << 10,
    }
}

/// One day. Adding a deadline to a clock therefore cannot overflow.
const MOST_TIMEOUT_MS: u64 = 86_400_000;
