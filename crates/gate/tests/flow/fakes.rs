//! A gate with in-memory fakes.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Condvar, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use toolgate_gate::{
    Answer, Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalSettings, ApprovalState,
    ApprovalStore, ArgumentLimits, Ask, Binding, Call, CallJournal, CallLimits, CallRecord, ClientInfo,
    Clock, ConsumedApproval, Decider, DiskCheckLimits, EffectEntry, Gate, GateParts, Handlers, JournalDetail,
    LiveSet, LiveTool, NewApproval, Observer, OnJournalFailure, Outcome, PassStore, Prompt, Publisher,
    Reason, Refusal, RunFailure, RunFuture, RunReport, RunRequest, RunUsage, Runnable, StopFlag, StoredPass,
    Survey, SurveyQuestion, Surveyed, Touch, Trust, UnreportedEffects,
};
use toolgate_policy::{
    ALLOW_ALL, AskThreshold, Caller, EffectivePolicy, Mask, PolicySet, RiskLevel, ToolPolicy,
};
use toolgate_spec::{Format, ToolCheck, check_text, model::ToolSpec};

use crate::disk_checks::BlockingDisk;

/// The behaviour of a fake tool.
#[derive(Clone, Debug)]
pub enum Does {
    Returns(Value),
    EchoesArguments,
    Fails(Reason, &'static str),
    /// Fails with error output that its message does not repeat.
    FailsHeard(&'static str),
    NeverEnds,
}

#[derive(Debug)]
pub struct FakeTool {
    pub does: Does,
    pub runs: AtomicUsize,
    pub secrets: Vec<String>,
    /// The effects and denials that every run reports.
    pub effects: Mutex<(Vec<EffectEntry>, Vec<String>)>,
    /// The number of further effects that it reports.
    pub effects_dropped: AtomicU32,
    /// The number of further denials that it reports.
    pub refused_dropped: AtomicU64,
    /// The lines that every run writes to its console.
    pub console: Mutex<Vec<(&'static str, String)>>,
    /// The probable secrets that the latest run may send.
    pub approved_secrets: Mutex<Vec<String>>,
    /// One permit per worker.
    pub workers: Arc<Semaphore>,
    /// Whether calls wait for a worker instead of being refused, and whether one is waiting.
    pub workers_are_waited_for: AtomicBool,
    pub is_waited_for: AtomicBool,
    survey: Mutex<Result<FakeSurvey, Refusal>>,
    /// If set, surveys block on it.
    pub disk: OnceLock<BlockingDisk>,
}

/// Adds the effects of a run that is dropped.
struct EffectsOnDrop<'f> {
    effects: &'f Mutex<(Vec<EffectEntry>, Vec<String>)>,
    dropped: (u32, u64),
    unreported: &'f UnreportedEffects,
}

impl Drop for EffectsOnDrop<'_> {
    fn drop(&mut self) {
        let (effects, refused) = self.effects.lock().unwrap().clone();
        self.unreported.add(effects, self.dropped.0);
        self.unreported.add_refused(refused, self.dropped.1);
    }
}

impl FakeTool {
    pub fn new(does: Does) -> Arc<Self> {
        Arc::new(Self {
            does,
            runs: AtomicUsize::new(0),
            secrets: vec!["s3cr3t-value".to_owned()],
            effects: Mutex::default(),
            effects_dropped: AtomicU32::new(0),
            refused_dropped: AtomicU64::new(0),
            console: Mutex::default(),
            approved_secrets: Mutex::default(),
            workers: Arc::new(Semaphore::new(WORKERS as usize)),
            workers_are_waited_for: AtomicBool::new(false),
            is_waited_for: AtomicBool::new(false),
            survey: Mutex::new(Ok(FakeSurvey::default())),
            disk: OnceLock::new(),
        })
    }

    /// The survey result of the next calls.
    pub fn survey_with(&self, survey: Result<FakeSurvey, Refusal>) {
        *self.survey.lock().unwrap() = survey;
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    fn look(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<FakeSurvey, Refusal> {
        if let Some(disk) = self.disk.get() {
            disk.look(arguments, stop);
        }
        self.survey.lock().unwrap().clone()
    }

    fn free_worker(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.workers).try_acquire_owned().ok()
    }
}

fn busy() -> RunFailure {
    RunFailure {
        reason: Reason::Busy,
        message: "every worker is busy".to_owned(),
        stack: Vec::new(),
        helper: None,
        unredacted: None,
    }
}

/// More than any test needs.
pub const WORKERS: u32 = 1_000;

impl Runnable for FakeTool {
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal> {
        let FakeSurvey { touches, widened, questions } = self.look(arguments, stop)?;
        Ok(Survey {
            touches,
            widened,
            questions,
            built: Vec::new(),
            call: Box::new(FakeCall { tool: self, worker: None }),
        })
    }

    fn survey_waits_for_disk(&self) -> bool {
        self.disk.get().is_some()
    }

    fn mask(&self) -> Mask {
        Mask::new(&self.secrets)
    }
}

/// The survey result of a fake tool.
#[derive(Clone, Debug, Default)]
pub struct FakeSurvey {
    pub touches: Vec<Touch>,
    pub widened: Vec<String>,
    pub questions: Vec<SurveyQuestion>,
}

#[derive(Debug)]
struct FakeCall {
    tool: Arc<FakeTool>,
    worker: Option<OwnedSemaphorePermit>,
}

impl Surveyed for FakeCall {
    fn reserve<'r>(&'r mut self, _: &'r str) -> RunFuture<'r, Result<(), RunFailure>> {
        Box::pin(async move {
            let tool = &self.tool;
            let worker = if tool.workers_are_waited_for.load(Ordering::SeqCst) {
                tool.is_waited_for.store(true, Ordering::SeqCst);
                Arc::clone(&tool.workers).acquire_owned().await.ok()
            } else {
                tool.free_worker()
            };
            self.worker = Some(worker.ok_or_else(busy)?);
            Ok(())
        })
    }

    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        self.tool.look(arguments, stop).map(|survey| survey.touches)
    }

    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        let Self { tool, worker } = *self;
        tool.runs.fetch_add(1, Ordering::SeqCst);
        *tool.approved_secrets.lock().unwrap() = request.approved_secrets.values().to_vec();
        Box::pin(async move {
            let worker = worker.or_else(|| tool.free_worker());
            let outcome = match &tool.does {
                _ if worker.is_none() => Err(busy()),
                Does::Returns(value) => Ok(Some(value.clone())),
                Does::EchoesArguments => Ok(Some(Value::Object(request.arguments.clone()))),
                Does::Fails(reason, message) => Err(RunFailure {
                    reason: *reason,
                    message: (*message).to_owned(),
                    stack: Vec::new(),
                    helper: None,
                    unredacted: None,
                }),
                Does::FailsHeard(unredacted) => Err(RunFailure {
                    reason: Reason::CommandFailed,
                    message: "it failed".to_owned(),
                    stack: Vec::new(),
                    helper: None,
                    unredacted: Some((*unredacted).to_owned()),
                }),
                Does::NeverEnds => {
                    let dropped = (
                        tool.effects_dropped.load(Ordering::SeqCst),
                        tool.refused_dropped.load(Ordering::SeqCst),
                    );
                    let _leaving =
                        EffectsOnDrop { effects: &tool.effects, dropped, unreported: request.unreported };
                    std::future::pending().await
                }
            };
            let (effects, refused) = tool.effects.lock().unwrap().clone();
            RunReport {
                outcome,
                console: tool.console.lock().unwrap().clone(),
                console_dropped: 0,
                effects,
                effects_dropped: tool.effects_dropped.load(Ordering::SeqCst),
                usage: RunUsage::default(),
                layers: vec!["fake-layer".to_owned()],
                refused,
                refused_dropped: tool.refused_dropped.load(Ordering::SeqCst),
                withheld: Vec::new(),
                worker: Some(1),
            }
        })
    }
}

/// Returns the same fake for every document.
pub struct FakeHandlers(pub Arc<FakeTool>);

impl Handlers for FakeHandlers {
    fn prepare(&self, _: &Arc<ToolSpec>, _: &EffectivePolicy) -> Result<Arc<dyn Runnable>, String> {
        Ok(Arc::clone(&self.0) as Arc<dyn Runnable>)
    }
}

#[derive(Default)]
pub struct MemoryJournal {
    pub records: Mutex<Vec<Value>>,
    pub is_full: AtomicBool,
    /// Fails only after this many records.
    pub room: AtomicUsize,
    /// Refuses larger records, if not zero.
    pub largest: AtomicUsize,
    disk: SlowDisk,
}

/// Records of the held kind block.
#[derive(Default)]
struct SlowDisk {
    is_there: AtomicBool,
    held: Mutex<Option<&'static str>>,
    changed: Condvar,
    waiting: AtomicUsize,
}

impl MemoryJournal {
    pub fn records(&self) -> Vec<Value> {
        self.records.lock().unwrap().clone()
    }

    pub fn last(&self) -> Value {
        self.records().last().cloned().unwrap_or_default()
    }

    /// From now on records block on the disk, those of this kind until they are released.
    pub fn hold(&self, kind: &'static str) {
        self.disk.is_there.store(true, Ordering::SeqCst);
        *self.disk.held.lock().unwrap() = Some(kind);
    }

    pub fn let_go(&self) {
        *self.disk.held.lock().unwrap() = None;
        self.disk.changed.notify_all();
    }

    /// Waits until a record of the held kind blocks.
    pub async fn is_held(&self) {
        while self.disk.waiting.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    }
}

impl SlowDisk {
    fn wait(&self, kind: &str) {
        let held = self.held.lock().unwrap();
        if *held == Some(kind) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            // A timeout against hanging, not a measurement.
            let patience = Duration::from_mins(1);
            drop(self.changed.wait_timeout_while(held, patience, |held| held.is_some()).unwrap());
        }
    }
}

impl CallJournal for MemoryJournal {
    fn append(&self, record: &CallRecord) -> Result<(), String> {
        self.disk.wait(record.kind);
        let mut records = self.records.lock().unwrap();
        if self.is_full.load(Ordering::SeqCst) && records.len() >= self.room.load(Ordering::SeqCst) {
            return Err("no space left on device".to_owned());
        }
        assert!(toolgate_audit::is_in_order(record), "it takes twice as long to write: {record:?}");
        let value = serde_json::to_value(record).unwrap();
        let largest = self.largest.load(Ordering::SeqCst);
        if largest > 0 && value.to_string().len() > largest {
            return Err("the record is too large".to_owned());
        }
        records.push(value);
        Ok(())
    }

    fn waits_for_disk(&self) -> bool {
        self.disk.is_there.load(Ordering::SeqCst)
    }
}

/// A simple queue that follows the rules of the trait.
pub struct MemoryQueue {
    approvals: Mutex<Vec<Approval>>,
    declined_in: Mutex<Vec<(ApprovalId, String)>>,
    trusts: Mutex<Vec<Trust>>,
    changes: watch::Sender<u64>,
    pub is_down: AtomicBool,
    /// Keeps its thread busy for a moment after an approval was consumed.
    pub is_slow: AtomicBool,
}

impl Default for MemoryQueue {
    fn default() -> Self {
        Self {
            approvals: Mutex::default(),
            declined_in: Mutex::default(),
            trusts: Mutex::default(),
            changes: watch::Sender::new(0),
            is_down: AtomicBool::new(false),
            is_slow: AtomicBool::new(false),
        }
    }
}

impl MemoryQueue {
    fn up(&self) -> Result<(), ApprovalError> {
        if self.is_down.load(Ordering::SeqCst) {
            Err(ApprovalError::Unavailable("the disk is gone".to_owned()))
        } else {
            Ok(())
        }
    }

    pub fn only(&self) -> Approval {
        let approvals = self.approvals.lock().unwrap();
        assert_eq!(approvals.len(), 1, "{approvals:?}");
        approvals[0].clone()
    }

    pub fn all(&self) -> Vec<Approval> {
        self.approvals.lock().unwrap().clone()
    }
}

impl ApprovalStore for MemoryQueue {
    fn open(&self, question: NewApproval, now: SystemTime) -> Result<Approval, ApprovalError> {
        self.up()?;
        let mut approvals = self.approvals.lock().unwrap();
        let same = approvals.iter().find(|known| {
            known.state == ApprovalState::Pending
                && known.question.binding == question.binding
                && known.question.expires > now
        });
        if let Some(same) = same {
            return Ok(same.clone());
        }
        let number = u8::try_from(approvals.len()).unwrap();
        let approval = Approval {
            id: ApprovalId::from_random([number; 16]),
            state: ApprovalState::Pending,
            question,
            decided_by: None,
            decided_at: None,
            note: None,
            revealed_to: Vec::new(),
        };
        approvals.push(approval.clone());
        Ok(approval)
    }

    fn get(&self, id: &ApprovalId, now: SystemTime) -> Result<Approval, ApprovalError> {
        self.up()?;
        let approvals = self.approvals.lock().unwrap();
        let approval = approvals.iter().find(|known| known.id == *id).ok_or(ApprovalError::Unknown)?;
        if approval.question.expires <= now { Err(ApprovalError::Expired) } else { Ok(approval.clone()) }
    }

    fn consume(
        &self,
        binding: &Binding,
        id: Option<&ApprovalId>,
        now: SystemTime,
    ) -> Result<Option<ConsumedApproval>, ApprovalError> {
        self.up()?;
        let mut approvals = self.approvals.lock().unwrap();
        for approval in approvals.iter_mut() {
            match id {
                Some(id) if approval.id != *id => continue,
                Some(_) if approval.question.binding != *binding => return Err(ApprovalError::OtherCall),
                Some(_) if approval.question.expires <= now => return Err(ApprovalError::Expired),
                Some(_) if !matches!(approval.state, ApprovalState::Approved | ApprovalState::Pending) => {
                    return Err(ApprovalError::NotPending(approval.state));
                }
                _ => {}
            }
            let is_fresh = approval.state == ApprovalState::Approved && approval.question.expires > now;
            if is_fresh && approval.question.binding == *binding {
                approval.state = ApprovalState::Used;
                let decided_by = approval.decided_by.clone().unwrap_or_default();
                let remembers = approval.question.remembers.clone();
                let spent = ConsumedApproval { id: approval.id.clone(), decided_by, remembers };
                drop(approvals);
                if self.is_slow.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(100));
                }
                return Ok(Some(spent));
            }
        }
        Ok(None)
    }

    fn is_approved(&self, binding: &Binding, now: SystemTime) -> Result<bool, ApprovalError> {
        self.up()?;
        Ok(self.all().iter().any(|known| {
            known.state == ApprovalState::Approved
                && known.question.binding == *binding
                && known.question.expires > now
        }))
    }

    fn denial(
        &self,
        binding: &Binding,
        conversation: Option<&str>,
        now: SystemTime,
    ) -> Result<Option<Approval>, ApprovalError> {
        self.up()?;
        let declined = self.declined_in.lock().unwrap();
        let counts = |known: &Approval| {
            let own = conversation.map(|name| (known.id.clone(), name.to_owned()));
            !known.is_declined_by_client() || own.is_some_and(|own| declined.contains(&own))
        };
        Ok(self.all().into_iter().find(|known| {
            known.state == ApprovalState::Denied
                && known.question.binding == *binding
                && known.question.expires > now
                && counts(known)
        }))
    }

    fn is_trusted(&self, trust: &Trust, now: SystemTime) -> Result<bool, ApprovalError> {
        self.up()?;
        Ok(self.trusts.lock().unwrap().iter().any(|known| {
            known.caller == trust.caller
                && known.flow == trust.flow
                && known.tool_digest == trust.tool_digest
                && known.policy_digest == trust.policy_digest
                && known.expires > now
        }))
    }

    fn remember(&self, trust: &Trust) -> Result<(), ApprovalError> {
        self.trusts.lock().unwrap().push(trust.clone());
        Ok(())
    }
}

impl ApprovalQueue for MemoryQueue {
    fn ids_beginning(&self, prefix: &str, limit: usize) -> Result<Vec<ApprovalId>, ApprovalError> {
        let found = self.list(None, usize::MAX, SystemTime::now())?.into_iter().map(|one| one.id);
        Ok(found.filter(|id| id.as_str().starts_with(prefix)).take(limit).collect())
    }

    fn list(
        &self,
        state: Option<ApprovalState>,
        limit: usize,
        _: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError> {
        let all = self.all();
        Ok(all.into_iter().filter(|one| state.is_none_or(|state| one.state == state)).take(limit).collect())
    }

    fn decide(
        &self,
        id: &ApprovalId,
        state: ApprovalState,
        by: &Decider<'_>,
        _: Option<&str>,
        now: SystemTime,
    ) -> Result<Approval, ApprovalError> {
        self.up()?;
        let mut approvals = self.approvals.lock().unwrap();
        let approval = approvals.iter_mut().find(|known| known.id == *id).ok_or(ApprovalError::Unknown)?;
        approval.check_decision(state, by, now)?;
        approval.state = state;
        approval.decided_by = Some(by.name().to_owned());
        if let (ApprovalState::Denied, Decider::Client { conversation: Some(conversation) }) = (state, by) {
            self.declined_in.lock().unwrap().push((id.clone(), (*conversation).to_owned()));
        }
        let decided = approval.clone();
        drop(approvals);
        self.changes.send_modify(|tick| *tick += 1);
        Ok(decided)
    }

    fn reveal(&self, id: &ApprovalId, by: &Decider<'_>, _: SystemTime) -> Result<String, ApprovalError> {
        let mut approvals = self.approvals.lock().unwrap();
        let approval = approvals.iter_mut().find(|known| known.id == *id).ok_or(ApprovalError::Unknown)?;
        approval.revealed_to.push(by.name().to_owned());
        Ok(approval.question.hidden.whole.clone().unwrap_or_default())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

#[derive(Default)]
pub struct MemoryPasses(Mutex<HashMap<String, StoredPass>>, Mutex<HashMap<String, String>>);

impl PassStore for MemoryPasses {
    fn latest(&self, tool_id: &str) -> Result<Option<StoredPass>, String> {
        Ok(self.0.lock().unwrap().get(tool_id).cloned())
    }

    fn is_name_withdrawn(&self, name: &str, tool_id: &str) -> Result<bool, String> {
        let passes = self.0.lock().unwrap();
        let is_other = |id: &str, pass: &StoredPass| {
            id != tool_id && pass.name.as_deref() == Some(name) && pass.is_withdrawn
        };
        Ok(passes.iter().any(|(id, pass)| is_other(id, pass)))
    }

    fn revise(
        &self,
        tool_id: &str,
        change: &dyn Fn(Option<StoredPass>) -> Result<StoredPass, String>,
    ) -> Result<StoredPass, String> {
        let mut passes = self.0.lock().unwrap();
        let revised = change(passes.get(tool_id).cloned())?;
        passes.insert(tool_id.to_owned(), revised.clone());
        Ok(revised)
    }

    fn forget(&self, tool_id: &str) -> Result<(), String> {
        self.0.lock().unwrap().remove(tool_id);
        Ok(())
    }

    fn note_publication(&self, tool_id: &str, _: &str, settings: &str) -> Result<(), String> {
        self.1.lock().unwrap().insert(tool_id.to_owned(), settings.to_owned());
        Ok(())
    }

    fn last_publication(&self, tool_id: &str, _: &str) -> Result<Option<String>, String> {
        Ok(self.1.lock().unwrap().get(tool_id).cloned())
    }
}

/// A clock that tests set.
pub struct ManualClock(Mutex<SystemTime>);

impl ManualClock {
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().unwrap();
        *now += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }
}

/// A client that always gives the same answer, after this time.
pub struct AnsweringClient(pub Answer, pub Duration);

impl Ask for AnsweringClient {
    fn ask<'a>(&'a self, _: &'a Prompt) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            tokio::time::sleep(self.1).await;
            self.0
        })
    }
}

/// The shortest time that a person takes.
pub const A_THOUGHT: Duration = Duration::from_millis(1_010);

/// A client that gives no answer and records the question.
#[derive(Default)]
pub struct RecordingClient(pub Mutex<String>);

impl Ask for RecordingClient {
    fn ask<'a>(&'a self, prompt: &'a Prompt) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        self.0.lock().unwrap().clone_from(&prompt.text);
        Box::pin(std::future::ready(Answer::Lost))
    }
}

/// A client that never answers.
pub struct SilentClient;

impl Ask for SilentClient {
    fn ask<'a>(&'a self, _: &'a Prompt) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(std::future::pending())
    }
}

/// A gate and everything around it.
pub struct World {
    pub gate: Gate,
    pub journal: Arc<MemoryJournal>,
    pub queue: Arc<MemoryQueue>,
    pub clock: Arc<ManualClock>,
    pub fake: Arc<FakeTool>,
    pub publisher: Publisher,
}

pub struct Settings {
    pub approvals: ApprovalSettings,
    pub on_failure: OnJournalFailure,
    pub calls: CallLimits,
    pub policy: Arc<dyn ToolPolicy>,
    pub journal_detail: JournalDetail,
    pub observer: Option<Arc<dyn Observer>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            approvals: ApprovalSettings {
                ask_from: AskThreshold::From(RiskLevel::L1),
                client_may_answer: true,
                self_approval: false,
                timeout: Duration::from_mins(2),
                expires: Duration::from_mins(15),
                trust: Duration::from_hours(1),
            },
            on_failure: OnJournalFailure::Refuse,
            calls: CallLimits {
                calls: 8,
                calls_per_caller: 4,
                waiting: 8,
                wait_timeout: Duration::from_mins(1),
                asking: 8,
                asking_per_caller: 4,
            },
            policy: Arc::new(ALLOW_ALL),
            journal_detail: JournalDetail::Digests,
            observer: None,
        }
    }
}

impl World {
    /// A world with these documents live, each with this behaviour.
    pub fn new(does: Does, documents: &[Value]) -> Self {
        Self::with(does, documents, Settings::default())
    }

    pub fn with(does: Does, documents: &[Value], settings: Settings) -> Self {
        let (journal, queue) = (Arc::<MemoryJournal>::default(), Arc::<MemoryQueue>::default());
        let clock = Arc::new(ManualClock(Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_hours(500_000))));
        let parts = GateParts {
            journal: Arc::clone(&journal) as Arc<dyn CallJournal>,
            on_journal_failure: settings.on_failure,
            journal_detail: settings.journal_detail,
            queue: Arc::clone(&queue) as Arc<dyn ApprovalQueue>,
            approvals: settings.approvals,
            arguments: ArgumentLimits { bytes: 4_096, depth: 8 },
            calls: settings.calls,
            disk_checks: DiskCheckLimits::default(),
            secrets: toolgate_secrets::Detector::shipped().unwrap(),
        };
        let gate =
            Gate::with(parts, settings.policy, Arc::clone(&clock) as Arc<dyn Clock>, settings.observer);
        let fake = FakeTool::new(does);
        let publisher = Publisher {
            policies: Arc::new(PolicySet::shipped().unwrap()),
            overrides: None,
            handlers: Arc::new(FakeHandlers(Arc::clone(&fake))),
            passes: Arc::<MemoryPasses>::default(),
            secrets: Arc::new(|_: &str| None),
        };
        let world = Self { gate, journal, queue, clock, fake, publisher };
        world.make_live(documents);
        world
    }

    pub fn make_live(&self, documents: &[Value]) {
        let tools = documents.iter().map(|document| self.tool(document));
        let (set, doubled) = LiveSet::new(tools.collect::<Vec<_>>());
        assert!(doubled.is_empty());
        self.gate.replace(set);
    }

    pub fn tool(&self, document: &Value) -> Arc<LiveTool> {
        self.publisher.assess(&checked(document)).unwrap().tool
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.gate.handle(call(tool, arguments)).await
    }

    /// Checks that opening and closing records pair up.
    #[track_caller]
    pub fn assert_paired(&self) {
        let mut open: Vec<String> = Vec::new();
        for record in self.journal.records() {
            let id = record["callId"].as_str().unwrap().to_owned();
            match record["kind"].as_str().unwrap() {
                "call.opened" => open.push(id),
                "call.closed" => {
                    let at = open.iter().position(|known| *known == id).expect("closed without being opened");
                    open.remove(at);
                }
                other => panic!("unknown kind {other}"),
            }
        }
        assert!(open.is_empty(), "never closed: {open:?}");
    }
}

pub fn checked(document: &Value) -> ToolCheck {
    let file = check_text(&document.to_string(), Format::Json);
    let tool = file.tools.into_iter().next().unwrap();
    assert!(tool.spec.is_some(), "{:?}", tool.findings);
    tool
}

/// A call by `ann` from a client that cannot be asked.
pub fn call(tool: &str, arguments: Value) -> Call {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    Call {
        tool: tool.to_owned(),
        arguments,
        caller: Caller::new("ann", ["reader"]),
        client: ClientInfo { transport: "library", ..ClientInfo::default() },
        answer: None,
        ask: None,
        auth_status: None,
    }
}

/// A valid document with the changes in `change`.
pub fn document(name: &str, change: &Value) -> Value {
    let mut document = json!({
        "name": name,
        "description": "AnsweringClient what it was told, for tests.",
        "codeType": "Javascript",
        "code": "return text",
        "params": [
            { "name": "text", "description": "What to say", "type": "STRING", "required": true, "testValue": "hi" },
            { "name": "count", "description": "How often", "type": "INTEGER", "required": false, "testValue": "2" },
            { "name": "extra", "description": "More", "type": "OBJECT", "required": false, "testValue": "{}" },
        ],
    });
    for (key, value) in change.as_object().unwrap_or(&Map::new()) {
        document[key] = value.clone();
    }
    document
}

/// `code: text`, or `released: value`.
pub fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Released(end) => format!("released: {}", end.value),
        Outcome::Pending(end) => format!("pending: {}", end.prompt),
        Outcome::Refused(end) => format!("{}: {}", end.reason, end.to_caller),
        Outcome::Failed(end) => format!("{}: {}", end.reason, end.to_caller),
        Outcome::Broken(end) => format!("{}: {}", end.reason, end.to_operator),
    }
}
