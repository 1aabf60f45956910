//! Implements the gate's handler port for command tools: builds the order of a call, launches it and reports the
//! outcome.

pub mod container;
pub mod egress;
pub mod jailed;
pub mod order;
pub mod service;

use std::{collections::BTreeMap, ffi::OsString, fmt, fs::File, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout_at},
};
use toolgate_egress::BodyGuard;
use toolgate_gate::{
    Handlers, Purpose, Reason, Refusal, RunFuture, RunReport, RunRequest, Runnable, StopFlag, Survey,
    Surveyed, Touch, UnreportedEffects,
};
use toolgate_policy::{EffectivePolicy, Mask, SecretConsumer, SecretSource};
use toolgate_sandbox::{Access, Bind, Ending, Source, Trace};
use toolgate_secrets::Detector;
use toolgate_spec::model::ToolSpec;

use self::order::{CommandOrder, CommandOutcome, EgressGrant, Launch, NetworkEffects, RunProgress};
use crate::{
    cli::{
        command::CliCommand,
        line::{
            self,
            static_variables::{self, Statics},
        },
        report::{
            self, RunProblem,
            audience::{CallerTexts, DenialAudience},
            denial::Denial,
            denial_format::DenialFormatter,
            missing_paths::NOT_THERE,
            output::OutputParser,
        },
        tool::{CliTool, CommandHost, PreparedCall},
        view::{
            CommandView, environment,
            hidden_paths::{DENIED, HiddenPaths},
            quarantine::BlockedPathWatch,
        },
    },
    guard::SecretGuard,
    js::secrets,
};

/// The handler of command tools.
#[derive(Clone)]
pub struct CliHandlers {
    pub launcher: Arc<dyn Launch>,
    pub host: CommandHost,
    pub secrets: Arc<dyn SecretSource>,
    /// Scans readable requests of commands for secrets.
    pub detector: Arc<Detector>,
    /// Commands defined in code by the embedding program, by tool name.
    pub commands: BTreeMap<String, CliCommand>,
    /// Output parsers of the embedding program, by tool name.
    pub parsers: BTreeMap<String, OutputParser>,
}

impl CliHandlers {
    /// Makes a prepared tool callable.
    pub fn runnable(&self, tool: CliTool) -> Arc<dyn Runnable> {
        Arc::new(self.prepared(tool))
    }

    fn prepared(&self, mut tool: CliTool) -> PreparedCommand {
        for secret in environment::secret_variables(&tool.environment, &self.detector) {
            tool.environment.remove(&secret);
        }
        PreparedCommand {
            tool: Arc::new(tool),
            launcher: Arc::clone(&self.launcher),
            secrets: Arc::clone(&self.secrets),
            detector: Arc::clone(&self.detector),
        }
    }
}

impl Handlers for CliHandlers {
    fn prepare(&self, spec: &Arc<ToolSpec>, policy: &EffectivePolicy) -> Result<Arc<dyn Runnable>, String> {
        secrets::check_variables(spec, self.secrets.as_ref())?;
        let spec = Arc::clone(spec);
        let parser = self.parsers.get(&spec.name).cloned();
        let mut tool = match self.commands.get(&spec.name) {
            Some(command) => command.clone().in_place_of_args(spec, policy, &self.host)?,
            None => CliTool::new(spec, policy, &self.host)?,
        };
        if let Some(parser) = parser {
            tool.set_parser(parser)?;
        }
        environment::check_values(&policy.execution, &tool.environment, &self.detector)?;
        Ok(self.runnable(tool))
    }
}

struct PreparedCommand {
    tool: Arc<CliTool>,
    launcher: Arc<dyn Launch>,
    secrets: Arc<dyn SecretSource>,
    detector: Arc<Detector>,
}

impl Runnable for PreparedCommand {
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal> {
        let survey = self.tool.survey(arguments, stop)?;
        Ok(survey.into_survey(|settled| SurveyedCommand { prepared: self, settled }))
    }

    fn survey_waits_for_disk(&self) -> bool {
        self.tool.survey_waits_for_disk()
    }

    fn mask(&self) -> Mask {
        secrets::mask_of(&self.tool.spec, self.consumer(), self.secrets.as_ref())
    }
}

/// A command that is ready to run, with its command line and its open paths.
#[derive(Debug)]
struct SurveyedCommand {
    prepared: Arc<PreparedCommand>,
    settled: PreparedCall,
}

impl Surveyed for SurveyedCommand {
    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        self.prepared.tool.survey(arguments, stop).map(|survey| survey.touches)
    }

    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        Box::pin(async move { self.prepared.run(&self.settled, request).await })
    }
}

impl PreparedCommand {
    fn consumer(&self) -> SecretConsumer<'_> {
        SecretConsumer::Tool(&self.tool.spec.name)
    }

    async fn run(&self, settled: &PreparedCall, request: RunRequest<'_>) -> RunReport {
        // Path checks count towards the deadline of the call.
        let due = Instant::now() + self.tool.deadline;
        let statics = match static_variables::resolve(&self.tool.spec, self.consumer(), self.secrets.as_ref())
        {
            Ok(statics) => statics,
            Err(problem) => return report::without_a_run(problem, &Mask::new(&[])),
        };
        let guard = SecretGuard::new(&self.detector, &statics.sent, request.approved_secrets);
        let ordered = order(&self.tool, settled, &statics, request, Arc::new(guard), due).await;
        match ordered {
            Ok((order, mut watch)) => {
                let hidden_paths = HiddenPaths::of(&order, &self.tool.view);
                let audience = match request.purpose {
                    Purpose::LocalPass => DenialAudience::Author,
                    Purpose::Call => {
                        DenialAudience::Caller(CallerTexts::of(&self.tool, &order, request.arguments))
                    }
                };
                let mask = Arc::new(statics.mask);
                let left = request.unreported;
                let mut leaving = EffectsOnDrop {
                    progress: Some(Arc::clone(&order.progress)),
                    mask: Arc::clone(&mask),
                    left,
                };
                watch.command_starts();
                let ended = self.launcher.launch(order).await;
                leaving.has_ended(&ended);
                let made = watch.end(request.disk_checks, request.caller).await;
                let (tool, detector) = (Arc::clone(&self.tool), Arc::clone(&self.detector));
                let line = settled.line.clone();
                let search_output = tool.search_output(&line);
                let work = ReportWork::of(&ended, &self.tool);
                let make_report = move || {
                    let call = report::ReportedCall { tool: &tool, line: &line, search_output };
                    let formatter = DenialFormatter {
                        mask: &mask,
                        detector: &detector,
                        hidden_paths: &hidden_paths,
                        audience: &audience,
                    };
                    report::make(ended, made, &call, formatter)
                };
                let reported = report_on(make_report, work, request).await;
                let report = reported.unwrap_or_else(|| leaving.without_its_end());
                leaving.progress = None;
                report
            }
            Err(problem) => report::without_a_run(problem, &statics.mask),
        }
    }
}

/// If it is dropped before a report exists, it hands the command's effects and denials to the journal.
struct EffectsOnDrop<'r> {
    /// `None` once a report contains them.
    progress: Option<Arc<RunProgress>>,
    mask: Arc<Mask>,
    left: &'r UnreportedEffects,
}

impl EffectsOnDrop<'_> {
    fn has_ended(&self, ended: &CommandOutcome) {
        let (effects, refused) = (ended.effects.clone(), ended.refused.clone());
        if let Some(progress) = &self.progress {
            progress.set_source(move || (effects.clone(), refused.clone()));
        }
    }

    /// The report of a command whose outcome was lost.
    fn without_its_end(&self) -> RunReport {
        let seen = self.progress.as_deref().map(|progress| self.masked(progress));
        let (effects, refused, dropped) = seen.unwrap_or_default();
        report::lost(effects, refused, dropped)
    }

    fn masked(&self, progress: &RunProgress) -> (NetworkEffects, Vec<String>, u64) {
        let (effects, mut refused) = progress.current();
        refused.put_in_order();
        let told = refused.listed.iter().filter(|refused| !matches!(refused, Denial::Bounds(_)));
        (
            NetworkEffects { listed: report::masked(effects.listed, &self.mask), ..effects },
            told.map(|refused| self.mask.text(&refused.describe())).collect(),
            refused.dropped,
        )
    }
}

impl Drop for EffectsOnDrop<'_> {
    fn drop(&mut self) {
        let Some(progress) = &self.progress else { return };
        let (effects, refused, refused_dropped) = self.masked(progress);
        self.left.add(effects.listed, effects.dropped);
        self.left.add_refused(refused, refused_dropped);
    }
}

async fn order(
    tool: &Arc<CliTool>,
    settled: &PreparedCall,
    statics: &Statics,
    request: RunRequest<'_>,
    guard: Arc<dyn BodyGuard>,
    due: Instant,
) -> Result<(CommandOrder, BlockedPathWatch), RunProblem> {
    let granted = settled.granted.as_ref();
    let values = tool.values(&statics.values, request.arguments, granted);
    let unfilled = |refusal: Refusal| RunProblem { reason: Reason::CommandFailed, message: refusal.message };
    let mut env = tool.environment.clone();
    let mut stdin = Vec::new();
    let written = tool.body.written();
    for variable in &written.env {
        if let Some(text) = line::text(&variable.value, &values).map_err(unfilled)? {
            env.insert(variable.name.clone(), OsString::from(text));
        }
    }
    if let Some(template) = &written.stdin {
        stdin = line::text(template, &values).map_err(unfilled)?.unwrap_or_default().into_bytes();
    }
    let (view, program) = view(tool, settled, request, due).await?;
    let mut files = view.files;
    if let Some(held) = program
        && !tool.program.is_in_system()
    {
        let source = Source::Opened(held.into());
        files.binds.push(Bind { source, at: tool.program.file.clone(), access: Access::Execute });
    }
    let order = CommandOrder {
        program: tool.program.file.clone(),
        argv: std::iter::once(&tool.program.name).chain(&settled.line).cloned().collect(),
        env: env.into_iter().collect(),
        stdin,
        cwd: view.cwd,
        view: files,
        network: granted.rules.as_deref().or(tool.network.as_ref()).map(|rules| EgressGrant {
            rules: rules.clone(),
            guard,
            refused_methods: tool.refused_methods(granted),
        }),
        sandbox: tool.sandbox,
        children: tool.children,
        limits: tool.limits,
        deadline: rest(tool, due)?,
        trace: Trace::Refusals,
        progress: Arc::default(),
    };
    Ok((order, view.watch))
}

fn rest(tool: &CliTool, due: Instant) -> Result<Duration, RunProblem> {
    let rest = due.saturating_duration_since(Instant::now());
    if rest.is_zero() { Err(RunProblem::late(tool)) } else { Ok(rest) }
}

/// Checks the paths of the view. Checks that may wait for a disk run on the blocking pool with a permit, and stop
/// when the caller stops waiting. A thread that hangs on a disk keeps its permit. Other checks take less time than a
/// switch to the pool.
async fn view(
    tool: &Arc<CliTool>,
    settled: &PreparedCall,
    request: RunRequest<'_>,
    due: Instant,
) -> Result<(CommandView, Option<File>), RunProblem> {
    let stop = StopFlag::default();
    let _waiting = stop.stop_on_drop();
    let waits = tool.view.waits_for_disk(&settled.granted) || tool.program.waits_for_disk();
    let (own, granted) = (Arc::clone(tool), Arc::clone(&settled.granted));
    let look = move || {
        let program = own.program.hold()?;
        Ok((own.view.view(&granted, own.limits.tmp_bytes, &stop)?, program))
    };
    if !waits {
        return look().map_err(RunProblem::jail);
    }
    let place = request.disk_checks.enter(request.caller, due).await;
    let looked = place.ok_or_else(RunProblem::no_place)?.spawn(look);
    let looked = timeout_at(due, looked).await.map_err(|_| RunProblem::late(tool))?;
    let looked = looked.map_err(|error| RunProblem::jail(error.to_string()))?;
    looked.map_err(RunProblem::jail)
}

/// Parses, compares and masks the output. This runs on the blocking pool if the output is long or a disk is needed.
/// `None` if the disk does not respond.
async fn report_on(
    make_report: impl FnOnce() -> RunReport + Send + 'static,
    work: ReportWork,
    request: RunRequest<'_>,
) -> Option<RunReport> {
    match work {
        ReportWork::Short => return Some(make_report()),
        ReportWork::Long => return spawn_blocking(make_report).await.ok(),
        ReportWork::WithDisk => {}
    }
    let due = Instant::now() + request.disk_checks.timeout();
    let place = request.disk_checks.enter(request.caller, due).await?;
    timeout_at(due, place.spawn(make_report)).await.ok()?.ok()
}

/// How much work a report takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReportWork {
    Short,
    Long,
    WithDisk,
}

impl ReportWork {
    fn of(ended: &CommandOutcome, tool: &CliTool) -> Self {
        let bytes = ended.stdout.len().saturating_add(ended.stderr.len());
        if needs_disk(ended) {
            Self::WithDisk
        } else if bytes <= SHORT_OUTPUT && !tool.reader.runs_code() {
            Self::Short
        } else {
            Self::Long
        }
    }
}

/// Whether the report looks up paths that the command could not find or read.
fn needs_disk(ended: &CommandOutcome) -> bool {
    let complains = |of: &str| ended.stderr.windows(of.len()).any(|part| part == of.as_bytes());
    matches!(ended.ending, Ending::Exited(1..)) && (complains(NOT_THERE) || complains(DENIED))
}

impl fmt::Debug for CliHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CliHandlers").field("host", &self.host).finish_non_exhaustive()
    }
}

impl fmt::Debug for PreparedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedCommand").field("tool", &self.tool.spec.name).finish_non_exhaustive()
    }
}

/// In bytes.
const SHORT_OUTPUT: usize = 4096;

#[cfg(test)]
mod tests {
    use toolgate_gate::{EffectEntry, EffectKind};

    use super::*;
    use crate::cli::report::denial::{Denial, Denials, HostDenial};

    /// The command ran, so its effects belong in the journal.
    #[test]
    fn lost_report_still_lists_effects() {
        let progress = RunProgress::default();
        progress.set_source(|| {
            let effect = EffectEntry {
                kind: EffectKind::Fetch,
                what: "connect".to_owned(),
                target: "s3cr3t-value.example.com:443".to_owned(),
                to: None,
                outcome: "ok".to_owned(),
                bytes: 7,
                elapsed: Duration::ZERO,
            };
            let effects = NetworkEffects { listed: vec![effect], dropped: 2, dropped_bytes: 30 };
            let host = |target: &str| Denial::Host { target: target.to_owned(), why: HostDenial::NotListed };
            let told = vec![Denial::Other("call".to_owned()), host("s3cr3t-value.test:443")];
            (effects, Denials { listed: told, dropped: 40, dropped_paths: 0 })
        });
        let left = UnreportedEffects::default();
        let mask = Arc::new(Mask::new(&["s3cr3t-value".to_owned()]));
        let leaving = EffectsOnDrop { progress: Some(Arc::new(progress)), mask, left: &left };
        let report = leaving.without_its_end();
        assert_eq!(report.outcome.unwrap_err().reason, Reason::CommandFailed);
        let targets: Vec<&str> = report.effects.iter().map(|effect| effect.target.as_str()).collect();
        assert_eq!(targets, ["***.example.com:443"]);
        assert_eq!(report.refused, ["reaching `***.test:443`", "call"]);
        assert_eq!(report.refused_dropped, 40);
        assert_eq!((report.usage.host_calls, report.usage.host_bytes), (3, 37));
        assert_eq!(report.effects_dropped, 2);
    }
}
