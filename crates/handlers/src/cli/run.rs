//! How does the gate run a command? Through this: the order is made from what was settled before, and what came of it is
//! told in the gate's words.

use std::{collections::BTreeMap, ffi::OsString, fmt, fs::File, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout_at},
};
use toolgate_egress::BodyGuard;
use toolgate_gate::{
    Handlers, LeftEffects, Purpose, Reason, Refusal, RunFuture, RunReport, RunRequest, Runnable, StopFlag,
    Survey, Surveyed, Touch,
};
use toolgate_policy::{EffectivePolicy, Mask, SecretSource};
use toolgate_secrets::Detector;
use toolgate_spec::model::ToolSpec;

use super::{
    command::CliCommand,
    environment,
    launch::{Access, Bind, Ended, Ending, Launch, Order, Reached, Refused, SoFar, Trace, WayOut},
    line,
    made::Watch,
    missed::NOT_THERE,
    named::{Given, Hearer},
    output::OutputParser,
    report::{self, Problem},
    statics,
    statics::Statics,
    stop::Stop,
    tell::Teller,
    tool::{CliTool, CommandHost, Settled},
    unseen::{DENIED, Unseen},
    view::View,
};
use crate::{guard::SecretGuard, js::secrets};

/// The handler of command tools.
#[derive(Clone)]
pub struct CliHandlers {
    pub launcher: Arc<dyn Launch>,
    pub host: CommandHost,
    pub secrets: Arc<dyn SecretSource>,
    /// Looks through what commands send where it can be read.
    pub detector: Arc<Detector>,
    /// Those that the program which embeds the gateway makes in code, by the names of their tools.
    pub commands: BTreeMap<String, CliCommand>,
    /// Parsers of the embedding program for the output of commands, by the names of their tools.
    pub parsers: BTreeMap<String, OutputParser>,
}

impl CliHandlers {
    /// A tool that was made ready, to be called.
    pub fn runnable(&self, mut tool: CliTool) -> Arc<dyn Runnable> {
        for secret in environment::secret_ones(&tool.environment, &self.detector) {
            tool.environment.remove(&secret);
        }
        Arc::new(Prepared {
            tool: Arc::new(tool),
            launcher: Arc::clone(&self.launcher),
            secrets: Arc::clone(&self.secrets),
            detector: Arc::clone(&self.detector),
        })
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

struct Prepared {
    tool: Arc<CliTool>,
    launcher: Arc<dyn Launch>,
    secrets: Arc<dyn SecretSource>,
    detector: Arc<Detector>,
}

impl Runnable for Prepared {
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal> {
        let survey = self.tool.survey(arguments, stop)?;
        Ok(survey.into_survey(|settled| SurveyedCommand { prepared: self, settled }))
    }

    fn survey_waits_for_disk(&self) -> bool {
        self.tool.survey_waits_for_disk()
    }

    fn mask(&self) -> Mask {
        secrets::mask_of(&self.tool.spec, self.secrets.as_ref())
    }
}

/// A command that is ready to run, with its command line and the paths that it holds open.
#[derive(Debug)]
struct SurveyedCommand {
    prepared: Arc<Prepared>,
    settled: Settled,
}

impl Surveyed for SurveyedCommand {
    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        self.prepared.tool.survey(arguments, stop).map(|survey| survey.touches)
    }

    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        Box::pin(async move { self.prepared.run(&self.settled, request).await })
    }
}

impl Prepared {
    async fn run(&self, settled: &Settled, request: RunRequest<'_>) -> RunReport {
        // Looking at the tree counts: a call has one deadline.
        let due = Instant::now() + self.tool.deadline;
        let statics = match statics::resolve(&self.tool.spec, self.secrets.as_ref()) {
            Ok(statics) => statics,
            Err(problem) => return report::without_a_run(problem, &Mask::new(&[])),
        };
        let guard = SecretGuard::new(&self.detector, &statics.sent, request.agreed);
        let ordered = order(&self.tool, settled, &statics, request, Arc::new(guard), due).await;
        match ordered {
            Ok((order, mut watch)) => {
                let unseen = Unseen::of(&order, &self.tool.view);
                let hearer = match request.purpose {
                    Purpose::LocalPass => Hearer::Author,
                    Purpose::Call => Hearer::Caller(Given::of(&self.tool, &order, request.arguments)),
                };
                let mask = Arc::new(statics.mask);
                let left = request.left;
                let mut leaving =
                    Leaving { so_far: Some(Arc::clone(&order.so_far)), mask: Arc::clone(&mask), left };
                watch.command_begins();
                let ended = self.launcher.launch(order).await;
                leaving.has_ended(&ended);
                let made = watch.end(request.looks, request.caller).await;
                let (tool, detector) = (Arc::clone(&self.tool), Arc::clone(&self.detector));
                let line = settled.line.clone();
                let sought = tool.sought(&line);
                let work = TellWork::of(&ended, &self.tool);
                let told = move || {
                    let call = report::Call { tool: &tool, line: &line, sought };
                    let teller =
                        Teller { mask: &mask, detector: &detector, unseen: &unseen, hearer: &hearer };
                    report::make(ended, made, &call, teller)
                };
                let told = tell(told, work, request).await;
                let report = told.unwrap_or_else(|| leaving.without_its_end());
                leaving.so_far = None;
                report
            }
            Err(problem) => report::without_a_run(problem, &statics.mask),
        }
    }
}

/// Dropped before there is a report, it leaves for the journal what the command did and what was refused to it.
struct Leaving<'r> {
    /// `None` when all of it is in a report.
    so_far: Option<Arc<SoFar>>,
    mask: Arc<Mask>,
    left: &'r LeftEffects,
}

impl Leaving<'_> {
    fn has_ended(&self, ended: &Ended) {
        let (effects, refused) = (ended.effects.clone(), ended.refused.clone());
        if let Some(so_far) = &self.so_far {
            so_far.told_by(move || (effects.clone(), refused.clone()));
        }
    }

    /// The report of a command that has ended, and of whose end nothing can be told.
    fn without_its_end(&self) -> RunReport {
        let told = self.so_far.as_deref().map(|so_far| self.masked(so_far));
        let (effects, refused, dropped) = told.unwrap_or_default();
        report::lost(effects, refused, dropped)
    }

    fn masked(&self, so_far: &SoFar) -> (Reached, Vec<String>, u64) {
        let (effects, mut refused) = so_far.tell();
        refused.put_in_order();
        let told = refused.told.iter().filter(|refused| !matches!(refused, Refused::Lack(_)));
        (
            Reached { told: report::masked(effects.told, &self.mask), ..effects },
            told.map(|refused| self.mask.text(&refused.describe())).collect(),
            refused.dropped,
        )
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let Some(so_far) = &self.so_far else { return };
        let (effects, refused, refused_dropped) = self.masked(so_far);
        self.left.leave(effects.told, effects.dropped);
        self.left.leave_refused(refused, refused_dropped);
    }
}

async fn order(
    tool: &Arc<CliTool>,
    settled: &Settled,
    statics: &Statics,
    request: RunRequest<'_>,
    guard: Arc<dyn BodyGuard>,
    due: Instant,
) -> Result<(Order, Watch), Problem> {
    let granted = settled.granted.as_ref();
    let values = tool.values(&statics.values, request.arguments, granted);
    let unfilled = |refusal: Refusal| Problem { reason: Reason::CommandFailed, message: refusal.message };
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
    let mut binds = view.binds;
    if let Some(held) = program
        && !tool.program.is_part_of_the_system()
    {
        binds.push(Bind { path: tool.program.file.clone(), access: Access::Execute, held });
    }
    let order = Order {
        program: tool.program.file.clone(),
        argv: std::iter::once(&tool.program.name).chain(&settled.line).cloned().collect(),
        env: env.into_iter().collect(),
        stdin,
        cwd: view.cwd,
        binds,
        hidden: view.hidden,
        hidden_large: view.hidden_large,
        network: granted.rules.as_deref().or(tool.network.as_ref()).map(|rules| WayOut {
            rules: rules.clone(),
            guard,
            refused_methods: tool.refused_methods(granted),
        }),
        sandbox: tool.sandbox,
        children: tool.children,
        limits: tool.limits,
        deadline: rest(tool, due)?,
        trace: Trace::Refusals,
        so_far: Arc::default(),
    };
    Ok((order, view.watch))
}

fn rest(tool: &CliTool, due: Instant) -> Result<Duration, Problem> {
    let rest = due.saturating_duration_since(Instant::now());
    if rest.is_zero() { Err(Problem::late(tool)) } else { Ok(rest) }
}

/// Path checks that may wait for a disk run on the blocking pool with a permit, and end when the caller stops waiting; unless the disk
/// does not answer. Then the thread stays, and keeps its permit. All other checks are shorter than the way to that pool.
async fn view(
    tool: &Arc<CliTool>,
    settled: &Settled,
    request: RunRequest<'_>,
    due: Instant,
) -> Result<(View, Option<File>), Problem> {
    let stop = Stop::default();
    let _waiting = stop.waiting();
    let waits = tool.view.waits_for_disk(&settled.granted) || tool.program.waits_for_disk();
    let (own, granted) = (Arc::clone(tool), Arc::clone(&settled.granted));
    let look = move || {
        let program = own.program.hold()?;
        Ok((own.view.view(&granted, &stop)?, program))
    };
    if !waits {
        return look().map_err(Problem::jail);
    }
    let place = request.looks.enter(request.caller, due).await;
    let looked = place.ok_or_else(Problem::no_place)?.spawn(look);
    let looked = timeout_at(due, looked).await.map_err(|_| Problem::late(tool))?;
    let looked = looked.map_err(|error| Problem::jail(error.to_string()))?;
    looked.map_err(Problem::jail)
}

/// Reads, compares and masks the output. A long output takes long, so this runs on the blocking pool; a short one is done sooner than a
/// thread of the pool would begin. `None` if a disk that it needs does not answer.
async fn tell(
    told: impl FnOnce() -> RunReport + Send + 'static,
    work: TellWork,
    request: RunRequest<'_>,
) -> Option<RunReport> {
    match work {
        TellWork::Short => return Some(told()),
        TellWork::Long => return spawn_blocking(told).await.ok(),
        TellWork::WithDisk => {}
    }
    let due = Instant::now() + request.looks.longest();
    let place = request.looks.enter(request.caller, due).await?;
    timeout_at(due, place.spawn(told)).await.ok()?.ok()
}

/// How long it takes to make a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TellWork {
    Short,
    Long,
    WithDisk,
}

impl TellWork {
    fn of(ended: &Ended, tool: &CliTool) -> Self {
        let bytes = ended.stdout.len().saturating_add(ended.stderr.len());
        if is_told_by_looking(ended) {
            Self::WithDisk
        } else if bytes <= SHORT_OUTPUT && !tool.reader.runs_code() {
            Self::Short
        } else {
            Self::Long
        }
    }
}

/// Does the report look at what the command says it could not find or read?
fn is_told_by_looking(ended: &Ended) -> bool {
    let complains = |of: &str| ended.stderr.windows(of.len()).any(|part| part == of.as_bytes());
    matches!(ended.ending, Ending::Exited(1..)) && (complains(NOT_THERE) || complains(DENIED))
}

impl fmt::Debug for CliHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CliHandlers").field("host", &self.host).finish_non_exhaustive()
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("tool", &self.tool.spec.name).finish_non_exhaustive()
    }
}

/// In bytes.
const SHORT_OUTPUT: usize = 4096;

#[cfg(test)]
mod tests {
    use toolgate_gate::{EffectEntry, EffectKind};

    use super::*;
    use crate::cli::launch::{NotReached, Refusals};

    /// It ran, and what it reached belongs in the journal.
    #[test]
    fn a_report_that_cannot_be_made_still_says_what_the_command_did() {
        let so_far = SoFar::default();
        so_far.told_by(|| {
            let effect = EffectEntry {
                kind: EffectKind::Fetch,
                what: "connect".to_owned(),
                target: "s3cr3t-value.example.com:443".to_owned(),
                to: None,
                outcome: "ok".to_owned(),
                bytes: 7,
                elapsed: Duration::ZERO,
            };
            let effects = Reached { told: vec![effect], dropped: 2, dropped_bytes: 30 };
            let host = |target: &str| Refused::Host { target: target.to_owned(), why: NotReached::NotListed };
            let told = vec![Refused::Other("call".to_owned()), host("s3cr3t-value.test:443")];
            (effects, Refusals { told, dropped: 40, dropped_paths: 0 })
        });
        let left = LeftEffects::default();
        let mask = Arc::new(Mask::new(&["s3cr3t-value".to_owned()]));
        let leaving = Leaving { so_far: Some(Arc::new(so_far)), mask, left: &left };
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
