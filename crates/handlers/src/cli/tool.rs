//! How is a command tool made ready, and what becomes of a call before anybody is asked?

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
            self, Values, arg::refused, code_command, danger_texts, path_arguments, search_terms,
            short_options, static_variables,
        },
        program::{AllowedCommands, Program, conventions::Known},
        report::{
            output::{OutputParser, Reader, Shape},
            search_results::{self, Sought},
        },
        run::launch::OrderLimits,
        view::{
            self, NamesPaths, ViewPlan,
            environment::{self, GatewayEnvironment},
        },
    },
    grants,
    places::Places,
    survey::{CallGrants, CallSurvey, Surveyor, WithoutNetwork},
};

/// What this gateway offers to commands.
#[derive(Clone, Debug)]
pub struct CommandHost {
    pub places: Places,
    pub allowed: AllowedCommands,
    pub environment: GatewayEnvironment,
    /// Whether a command in a container can reach out, or why not.
    pub way_out_of_containers: Result<(), &'static str>,
}

/// A command tool made ready once, for any number of calls.
#[derive(Debug)]
pub struct CliTool {
    pub(super) spec: Arc<ToolSpec>,
    pub(super) program: Program,
    pub(super) known: &'static Known,
    pub(super) body: CommandBody,
    pub(super) view: Arc<ViewPlan>,
    pub(super) environment: BTreeMap<String, OsString>,
    pub(super) network: Option<EgressRules>,
    pub(super) sandbox: SandboxKind,
    pub(super) children: Children,
    pub(super) limits: OrderLimits,
    pub(super) deadline: Duration,
    pub(super) reader: Reader,
    veils: Veils,
    surveyor: Surveyor,
    paths: BTreeSet<String>,
    literals: Map<String, Value>,
}

/// Are secrets kept from whoever has it search for them?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Veils {
    Yes,
    /// Its results are not looked through, or no text of a caller's is searched for.
    No,
}

/// Who makes the command line?
pub(super) enum CommandBody {
    Manifest(CliHandler),
    Code(CliCommand),
}

/// What was settled before the run, and what it holds open.
#[derive(Debug)]
pub struct Settled {
    /// Without `argv[0]`.
    pub line: Vec<String>,
    pub granted: Arc<CallGrants>,
}

impl CliTool {
    /// Says why not where the tool is no command, or this gateway cannot or may not run it.
    pub fn new(spec: Arc<ToolSpec>, policy: &EffectivePolicy, host: &CommandHost) -> Result<Self, String> {
        let Body::Handler(Handler::Cli(cli)) = &spec.body else {
            return Err("it is no command; its handler is another one".to_owned());
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
        let known = known_ways(&program)?;
        check_way_out(policy, host)?;
        let surveyor =
            Surveyor::new(&spec, policy, &host.places, without_network(policy, host)).of_a_command();
        let paths = path_arguments::names(&spec, &surveyor)?;
        check_program(written, &program)?;
        check_shell(&written.command, policy)?;
        match &body {
            CommandBody::Manifest(cli) => {
                check_elements(cli, known)?;
                if !known.ends_options_at_dashes() {
                    short_options::check(cli, &spec, &paths)?;
                }
                check_secrets(cli, &spec)?;
            }
            CommandBody::Code(_) => code_command::check(written, &spec)?,
        }
        let names_paths = if paths.is_empty() { NamesPaths::No } else { NamesPaths::Yes };
        let has_network = policy.network.mode.value != NetworkMode::Blocked;
        let shape = if spec.governance.output.is_some() { Shape::Object } else { Shape::Free };
        // Where the handler is silent it is the policy's, whose default is the baseline's: what is shown is what is enforced.
        let allowed = policy.execution.timeout_ms.value;
        let deadline = written.timeout_ms.map_or(allowed, |own| own.min(allowed)).min(MOST_TIMEOUT_MS);
        let may_search = match &body {
            CommandBody::Manifest(cli) => search_terms::is_by_callers(cli, &spec, &paths),
            CommandBody::Code(_) => true,
        };
        let veils = if policy.data.sanitize_output.value && may_search { Veils::Yes } else { Veils::No };
        if let (CommandBody::Manifest(cli), Veils::Yes) = (&body, veils) {
            let texts: Vec<String> = arguments(cli).map(|one| one.template.text().to_owned()).collect();
            search_results::check_form(known, &texts, &cli.output)?;
        }
        Ok(Self {
            veils,
            view: Arc::new(ViewPlan::new(policy, &host.places, written.cwd.as_deref(), names_paths)?),
            environment: environment::base(&policy.execution, &host.environment)?,
            network: has_network.then(|| grants::rules(&policy.network)),
            sandbox: policy.execution.sandbox.value,
            children: children(written, policy)?,
            limits: limits(policy, deadline),
            deadline: Duration::from_millis(deadline),
            reader: Reader::new(&written.output, shape)?,
            surveyor,
            literals: literals(&spec, written, &host.places),
            paths,
            known,
            program,
            body,
            spec,
        })
    }

    /// What a call would touch, and its command line: what cannot be handed over is refused here, before anybody is asked.
    pub fn survey(
        &self,
        arguments: &Map<String, Value>,
        stop: &StopFlag,
    ) -> Result<CallSurvey<Settled>, Refusal> {
        let CallSurvey { touches, widened, questions, granted, .. } =
            self.surveyor.survey(arguments, stop)?;
        let values = self.values(&self.literals, arguments, &granted);
        let written = self.body.written();
        // Only whether they can be filled in; secrets are looked up when it runs.
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
                code_command::check_elements(&made, self.known)?;
                made
            }
        };
        let line = line::settle(&elements, self.known)?;
        let given = written.env.iter().map(|variable| &variable.value).chain(&written.stdin);
        let mut built = danger_texts::templates(given, &values)?;
        built.extend(danger_texts::elements(&elements, self.known, &line));
        if self.veils == Veils::Yes {
            search_results::check_form(self.known, &line, self.reader.form(&written.output))
                .map_err(|why| refused(why, "the author of the tool chooses another form"))?;
        }
        let granted = Settled { line, granted: Arc::new(granted) };
        Ok(CallSurvey { touches, widened, questions, built, granted })
    }

    /// Reads the output by code. Refused for a command that searches for a caller's text: lines with a secret in them are left
    /// out of its answer, and code could still tell how many were found.
    pub(super) fn set_parser(&mut self, parser: OutputParser) -> Result<(), String> {
        self.reader.set_parser(parser);
        if let (CommandBody::Manifest(cli), Veils::Yes) = (&self.body, self.veils) {
            let texts: Vec<String> = arguments(cli).map(|one| one.template.text().to_owned()).collect();
            search_results::check_form(self.known, &texts, self.reader.form(&cli.output))?;
        }
        Ok(())
    }

    /// What the command line searches for.
    pub(super) fn sought(&self, line: &[String]) -> Sought {
        match self.veils {
            Veils::Yes => Sought::by(self.known, line),
            Veils::No => Sought::Nothing,
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
    ) -> Values<'c> {
        Values { statics, arguments, paths: &self.paths, granted }
    }

    pub(super) fn refused_methods(&self, granted: &CallGrants) -> Vec<String> {
        self.surveyor.methods_not_asked_for(granted)
    }

    /// Other limits than the policy's, for tests and for operators who know why.
    #[must_use]
    pub fn with_limits(mut self, change: impl FnOnce(&mut OrderLimits, &mut Duration)) -> Self {
        change(&mut self.limits, &mut self.deadline);
        self
    }
}

impl CommandBody {
    /// What is written down of it; of one in code everything but the arguments.
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

/// The jail refuses children by its filter; a container has no such filter.
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

/// The author's own values, and the gateway's files below the working folder.
fn literals(spec: &ToolSpec, written: &CliHandler, places: &Places) -> Map<String, Value> {
    let mut literals = static_variables::literals(spec);
    if let Some(cwd) = &written.cwd {
        let folder = view::place(cwd, &places.workspace, &places.home);
        literals.insert(GATEWAY_FILES.to_owned(), relative_to(&folder, &places.guarded).into());
    }
    literals
}

/// Those of the paths that lie below the folder, by every name that they have.
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

/// Nobody is asked for what nobody could open.
fn without_network(policy: &EffectivePolicy, host: &CommandHost) -> WithoutNetwork {
    let has_way_out =
        policy.execution.sandbox.value != SandboxKind::Container || host.way_out_of_containers.is_ok();
    if policy.network.proxy_on_approval.value && has_way_out {
        WithoutNetwork::Ask
    } else {
        WithoutNetwork::Refuse
    }
}

/// What tools can write to: nothing in there is a program to be trusted.
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

/// What a command is known for is known by either name.
fn known_ways(program: &Program) -> Result<&'static Known, String> {
    let file = program.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Known::of(&program.name, file).ok_or_else(|| {
        format!(
            "`{}` leads to `{}`, a program that takes its arguments in other ways; name the program itself",
            program.name,
            program.file.display()
        )
    })
}

/// The name that the links lead to is judged as the one that the document gives was.
fn check_program(cli: &CliHandler, program: &Program) -> Result<(), String> {
    let name = program.file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match toolgate_spec::refuse_program_file(cli, name) {
        Some(why) => Err(format!("`{}` leads to `{}`, {why}", cli.command, program.file.display())),
        None => Ok(()),
    }
}

/// Whatever the document says, or a set of shipped settings: only the operator takes the question or the wall away
/// from a program that runs what the agent writes.
fn check_shell(command: &str, policy: &EffectivePolicy) -> Result<(), String> {
    if !toolgate_spec::starts_other_programs(command) {
        return Ok(());
    }
    let (level, sandbox) = (&policy.approval.level, &policy.execution.sandbox);
    if level.value == ApprovalLevel::Auto && level.origin != SettingOrigin::User {
        return Err(format!(
            "`{command}` runs what the agent writes, and nobody would be asked; set `approval.level` to `ask` or `always`, or let the operator's overrides say `auto`"
        ));
    }
    if sandbox.value != SandboxKind::Container && sandbox.origin != SettingOrigin::User {
        return Err(format!(
            "`{command}` runs what the agent writes, and not in a container; set `execution.sandbox` to `container`, or let the operator's overrides say otherwise"
        ));
    }
    Ok(())
}

/// Better no tool than one whose every call is refused.
fn check_way_out(policy: &EffectivePolicy, host: &CommandHost) -> Result<(), String> {
    let mode = policy.network.mode.value;
    if mode == NetworkMode::Blocked || policy.execution.sandbox.value != SandboxKind::Container {
        return Ok(());
    }
    host.way_out_of_containers.map_err(|why| {
        format!(
            "it has a network (`{}`) and runs in a container: {why} (for a shell, in the operator's overrides), or set `network.access` to `none`",
            mode.name()
        )
    })
}

/// What this very command would take for something else than the author meant.
fn check_elements(cli: &CliHandler, known: &Known) -> Result<(), String> {
    for (index, argument) in arguments(cli).enumerate() {
        let text = argument.template.text();
        match argument.template.parts() {
            [ArgPart::Variable(_), ..] if index == 0 && known.reads_first_as_options() => {
                return Err(format!(
                    "`{}` takes its first argument for options, so `{text}` lets the caller choose them; write the options out",
                    cli.command
                ));
            }
            [ArgPart::Literal(start), ArgPart::Variable(_), ..] if known.glues_options(start) => {
                return Err(format!(
                    "`{}` takes what follows `{start}` for more options, so `{text}` lets the caller choose them; write two arguments",
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
            "`{name}` is a secret and stands in an argument, where every process can read it; pass it in `env` or `stdin`"
        )),
        None => Ok(()),
    }
}

/// What is written on its command line.
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
        // The filter stage judges what is released; colours, and what a selection leaves out, come on top of that.
        stdout_bytes: output.saturating_mul(4).clamp(64 << 10, 16 << 20),
        stderr_bytes: 64 << 10,
    }
}

/// A day: nobody waits longer, and clocks can be added up to it.
const MOST_TIMEOUT_MS: u64 = 86_400_000;
