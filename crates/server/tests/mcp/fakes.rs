//! A queue, a journal and tools that live in memory.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use serde_json::{Map, Value};
use tokio::sync::watch;
use toolgate_gate::{
    Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, ApprovalStore, Binding, CallJournal,
    CallRecord, ConsumedApproval, Decider, NewApproval, Reason, Refusal, RunFailure, RunFuture, RunReport,
    RunRequest, RunUsage, Runnable, StopFlag, Survey, Surveyed, Touch, Trust,
};
use toolgate_policy::Mask;

#[derive(Debug, Default)]
pub struct MemoryJournal(pub Mutex<Vec<CallRecord>>);

impl CallJournal for MemoryJournal {
    fn append(&self, record: &CallRecord) -> Result<(), String> {
        self.0.lock().unwrap().push(record.clone());
        Ok(())
    }

    fn waits_for_disk(&self) -> bool {
        false
    }
}

impl MemoryJournal {
    /// Every closing record: tool and reason.
    pub fn ends(&self) -> Vec<(String, Option<&'static str>)> {
        let records = self.0.lock().unwrap();
        let closed = records.iter().filter(|record| record.kind == "call.closed");
        closed.map(|record| (record.tool["name"].as_str().unwrap().to_owned(), record.reason)).collect()
    }

    pub fn clients(&self) -> Vec<Value> {
        let records = self.0.lock().unwrap();
        records
            .iter()
            .filter(|record| record.kind == "call.opened")
            .map(|record| serde_json::to_value(&record.client).unwrap())
            .collect()
    }
}

pub struct MemoryQueue {
    approvals: Mutex<BTreeMap<ApprovalId, Approval>>,
    trusts: Mutex<Vec<Trust>>,
    changes: watch::Sender<u64>,
}

impl Default for MemoryQueue {
    fn default() -> Self {
        Self { approvals: Mutex::default(), trusts: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl MemoryQueue {
    pub fn ids(&self) -> Vec<ApprovalId> {
        self.approvals.lock().unwrap().keys().cloned().collect()
    }

    fn tick(&self) {
        self.changes.send_modify(|version| *version += 1);
    }
}

fn aged(mut approval: Approval, now: SystemTime) -> Approval {
    let is_open = matches!(approval.state, ApprovalState::Pending | ApprovalState::Approved);
    if is_open && approval.question.expires <= now {
        approval.state = ApprovalState::Expired;
    }
    approval
}

impl ApprovalStore for MemoryQueue {
    fn open(&self, question: NewApproval, now: SystemTime) -> Result<Approval, ApprovalError> {
        let mut approvals = self.approvals.lock().unwrap();
        let same = approvals.values().map(|known| aged(known.clone(), now)).find(|known| {
            known.state == ApprovalState::Pending && known.question.binding == question.binding
        });
        if let Some(same) = same {
            return Ok(same);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).unwrap();
        let id = ApprovalId::from_random(bytes);
        let state = ApprovalState::Pending;
        let approval = Approval {
            id: id.clone(),
            state,
            question,
            decided_by: None,
            decided_at: None,
            note: None,
            revealed_to: Vec::new(),
        };
        approvals.insert(id, approval.clone());
        drop(approvals);
        self.tick();
        Ok(approval)
    }

    fn get(&self, id: &ApprovalId, now: SystemTime) -> Result<Approval, ApprovalError> {
        let approvals = self.approvals.lock().unwrap();
        approvals.get(id).cloned().map(|found| aged(found, now)).ok_or(ApprovalError::Unknown)
    }

    fn consume(
        &self,
        binding: &Binding,
        id: Option<&ApprovalId>,
        now: SystemTime,
    ) -> Result<Option<ConsumedApproval>, ApprovalError> {
        let mut approvals = self.approvals.lock().unwrap();
        let found = approvals.values_mut().find(|known| match id {
            Some(id) => known.id == *id,
            None => known.question.binding == *binding && known.state == ApprovalState::Approved,
        });
        let Some(found) = found else {
            return if id.is_some() { Err(ApprovalError::Unknown) } else { Ok(None) };
        };
        if found.question.binding != *binding {
            return Err(ApprovalError::OtherCall);
        }
        match aged(found.clone(), now).state {
            ApprovalState::Approved => {
                found.state = ApprovalState::Used;
                Ok(Some(ConsumedApproval {
                    id: found.id.clone(),
                    decided_by: found.decided_by.clone().unwrap(),
                    remembers: found.question.remembers.clone(),
                }))
            }
            ApprovalState::Expired => Err(ApprovalError::Expired),
            state => Err(ApprovalError::NotPending(state)),
        }
    }

    fn is_approved(&self, binding: &Binding, now: SystemTime) -> Result<bool, ApprovalError> {
        let approvals = self.approvals.lock().unwrap();
        Ok(approvals
            .values()
            .map(|known| aged(known.clone(), now))
            .any(|known| known.state == ApprovalState::Approved && known.question.binding == *binding))
    }

    fn denial(&self, _: &Binding, _: Option<&str>, _: SystemTime) -> Result<Option<Approval>, ApprovalError> {
        Ok(None)
    }

    fn is_trusted(&self, trust: &Trust, now: SystemTime) -> Result<bool, ApprovalError> {
        let trusts = self.trusts.lock().unwrap();
        let is_this = |known: &Trust| Trust { expires: known.expires, ..trust.clone() } == *known;
        Ok(trusts.iter().any(|known| is_this(known) && known.expires > now))
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
        now: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError> {
        let approvals = self.approvals.lock().unwrap();
        let mut found: Vec<Approval> = approvals.values().map(|known| aged(known.clone(), now)).collect();
        found.retain(|approval| state.is_none_or(|state| approval.state == state));
        found.sort_by_key(|approval| std::cmp::Reverse(approval.question.created));
        found.truncate(limit);
        Ok(found)
    }

    fn decide(
        &self,
        id: &ApprovalId,
        state: ApprovalState,
        by: &Decider<'_>,
        note: Option<&str>,
        now: SystemTime,
    ) -> Result<Approval, ApprovalError> {
        let mut approvals = self.approvals.lock().unwrap();
        let found = approvals.get_mut(id).ok_or(ApprovalError::Unknown)?;
        aged(found.clone(), now).check_decision(state, by, now)?;
        found.state = state;
        found.decided_by = Some(by.name().to_owned());
        found.decided_at = Some(now);
        found.note = note.map(str::to_owned);
        let decided = found.clone();
        drop(approvals);
        self.tick();
        Ok(decided)
    }

    fn reveal(&self, id: &ApprovalId, by: &Decider<'_>, now: SystemTime) -> Result<String, ApprovalError> {
        let mut approvals = self.approvals.lock().unwrap();
        let found = approvals.get_mut(id).ok_or(ApprovalError::Unknown)?;
        found.check_open(by, now)?;
        found.revealed_to.push(by.name().to_owned());
        Ok(found.question.hidden.whole.clone().unwrap_or_default())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// The behaviour of a fake tool.
#[derive(Clone)]
pub enum Does {
    /// Returns its arguments.
    Echo,
    Returns(Value),
    Throws(&'static str),
    /// Writes these lines to its console, level first, and returns a text.
    Logs(&'static [(&'static str, &'static str)]),
    Panics,
    /// Never returns; only being dropped ends it.
    Hangs,
    /// Returns after so many milliseconds.
    Sleeps(u64),
}

/// Counts how often it has begun and how often it was dropped before its end.
pub struct FakeTool {
    pub does: Does,
    pub begun: AtomicUsize,
    pub dropped: AtomicUsize,
}

impl FakeTool {
    pub fn new(does: Does) -> Arc<Self> {
        Arc::new(Self { does, begun: AtomicUsize::new(0), dropped: AtomicUsize::new(0) })
    }

    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    pub fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for FakeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeTool")
    }
}

struct CountsDrop<'t>(&'t FakeTool);

impl Drop for CountsDrop<'_> {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Runnable for FakeTool {
    fn survey(self: Arc<Self>, _: &Map<String, Value>, _: &StopFlag) -> Result<Survey, Refusal> {
        Ok(Survey::of_nothing(FakeCall(self)))
    }

    fn survey_waits_for_disk(&self) -> bool {
        false
    }

    fn mask(&self) -> Mask {
        Mask::new(&[])
    }
}

#[derive(Debug)]
struct FakeCall(Arc<FakeTool>);

impl Surveyed for FakeCall {
    fn recheck(&self, _: &Map<String, Value>, _: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        Ok(Vec::new())
    }

    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        Box::pin(async move {
            let tool = &self.0;
            tool.begun.fetch_add(1, Ordering::SeqCst);
            let guard = CountsDrop(tool);
            let outcome = outcome(&tool.does, request.arguments).await;
            std::mem::forget(guard);
            RunReport {
                outcome,
                console: console(&tool.does),
                console_dropped: 0,
                effects: Vec::new(),
                effects_dropped: 0,
                usage: RunUsage::default(),
                layers: vec!["fake".to_owned()],
                refused: Vec::new(),
                refused_dropped: 0,
                withheld: Vec::new(),
                worker: None,
            }
        })
    }
}

fn console(does: &Does) -> Vec<(&'static str, String)> {
    let Does::Logs(lines) = does else { return Vec::new() };
    lines.iter().map(|(level, text)| (*level, (*text).to_owned())).collect()
}

async fn outcome(does: &Does, arguments: &Map<String, Value>) -> Result<Option<Value>, RunFailure> {
    match does {
        Does::Echo => Ok(Some(Value::Object(arguments.clone()))),
        Does::Returns(value) => Ok(Some(value.clone())),
        Does::Throws(message) => Err(RunFailure {
            reason: Reason::ToolFailed,
            message: (*message).to_owned(),
            stack: Vec::new(),
            helper: None,
            unredacted: None,
        }),
        Does::Logs(_) => Ok(Some(Value::String("logged".to_owned()))),
        Does::Panics => panic!("on purpose"),
        Does::Hangs => std::future::pending().await,
        Does::Sleeps(milliseconds) => {
            tokio::time::sleep(std::time::Duration::from_millis(*milliseconds)).await;
            Ok(Some(Value::String("rested".to_owned())))
        }
    }
}
