//! Gets a person's approval of exactly this call: an earlier one, the client's, or one from the queue.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{Checked, Decision, question};
use crate::{
    approval::{Approval, ApprovalError, ApprovalId, ApprovalState, Binding, Decider, NewApproval, Trust},
    call::support::{
        queue::{how_to_approve, invalid, may_ask_client, on_queue, on_queue_raw, open, pending, queue_full},
        recheck,
        stop::{AnsweredQuestion, StoppedCall},
    },
    gate::{ClientAnswer, GateInner},
    ports::{Answer, Ask, Prompt},
    reason::Reason,
};

/// Whether a call needs an approval, and which one it has.
#[derive(Debug)]
pub enum Consent {
    NotNeeded,
    /// An earlier approval is remembered for this conversation.
    Remembered,
    /// Approved, and not consumed yet: `execute` does that once the call has a run slot.
    Approved(Box<GivenApproval>),
}

#[derive(Debug)]
pub struct GivenApproval {
    pub binding: Binding,
    pub source: ApprovalSource,
    /// The approval to remember, if the question offered that.
    pub trust: Option<Trust>,
}

impl GivenApproval {
    /// `None`: any approval of exactly this call will do.
    pub const fn id(&self) -> Option<&ApprovalId> {
        match &self.source {
            ApprovalSource::Own(id) => Some(id),
            ApprovalSource::Earlier { .. } => None,
        }
    }
}

/// The origin of an approval.
#[derive(Debug)]
pub enum ApprovalSource {
    /// The answer to the question that this call asked.
    Own(ApprovalId),
    /// An earlier question about exactly this call. If another call consumes that approval first, a new question is
    /// asked.
    Earlier { otherwise: Box<NewApproval> },
}

pub async fn ask(
    gate: &GateInner,
    checked: &Checked,
    decisions: &[Decision],
) -> Result<Consent, StoppedCall> {
    let now = gate.clock.now();
    let admitted = &checked.bound.admitted;
    let binding = question::binding(checked);
    // A denial counts until its question expires, whatever else was approved.
    let (refused, conversation) = (binding.clone(), admitted.call.client.conversation.clone());
    let denial = on_queue(gate, move |queue| queue.denial(&refused, conversation.as_deref(), now)).await?;
    if let Some(denial) = denial {
        return Err(denied(&denial).with_answer(&denial));
    }
    let trust = question::trust_of(checked, decisions, &binding, now);
    if let Some(trust) = trust.clone()
        && admitted.call.answer.is_none()
        && on_queue(gate, move |queue| queue.is_trusted(&trust, now)).await?
    {
        return Ok(Consent::Remembered);
    }
    let may_answer = admitted.live_config.approvals.client_may_answer;
    let source = if let (Some(given), true) = (&admitted.call.answer, may_answer) {
        ApprovalSource::Own(answered(gate, checked, &binding, given).await?)
    } else {
        let question = question::question(gate, checked, decisions, (&binding, trust.as_ref()), now);
        if was_approved(gate, &binding).await? {
            ApprovalSource::Earlier { otherwise: Box::new(question) }
        } else {
            ApprovalSource::Own(open_and_wait(gate, checked, question, now).await?)
        }
    };
    Ok(Consent::Approved(Box::new(GivenApproval { binding, source, trust })))
}

/// Whether an operator has approved this call since the caller made it first.
async fn was_approved(gate: &GateInner, binding: &Binding) -> Result<bool, StoppedCall> {
    let (wanted, now) = (binding.clone(), gate.clock.now());
    on_queue(gate, move |queue| queue.is_approved(&wanted, now)).await
}

/// The client repeats the call with its user's answer.
async fn answered(
    gate: &GateInner,
    checked: &Checked,
    binding: &Binding,
    given: &ClientAnswer,
) -> Result<ApprovalId, StoppedCall> {
    let (known, now) = (given.approval.clone(), gate.clock.now());
    // An answer counts only for the question about exactly this call.
    let approval = on_queue(gate, move |queue| queue.get(&known, now)).await?;
    if approval.question.binding != *binding {
        return Err(invalid(&ApprovalError::OtherCall));
    }
    checked.notes.asked(&approval);
    record(gate, checked, &approval, (given.answer, given.answered_after)).await?;
    approved(gate, checked, &approval).await
}

/// Puts the question into the queue, and waits if the client can ask its user at once.
async fn open_and_wait(
    gate: &GateInner,
    checked: &Checked,
    question: NewApproval,
    now: SystemTime,
) -> Result<ApprovalId, StoppedCall> {
    let call = &checked.bound.admitted.call;
    let settings = checked.bound.admitted.live_config.approvals;
    let may_ask = may_ask_client(settings, &question);
    let asker = call.ask.clone().filter(|_| may_ask);
    // First, because a call that may not wait must not ask a question.
    let permit = asker
        .as_ref()
        .map(|_| gate.limiter.ask(&call.caller.quota()))
        .transpose()
        .map_err(|full| queue_full(&full))?;
    let approval = open(gate, &checked.notes, question, now).await?;
    let Some(asker) = asker else { return Err(pending(approval, may_ask)) };
    let mut changes = gate.queue.changes();
    let begun = Instant::now();
    let wait_end = timeout(settings.timeout, async {
        tokio::select! {
            answer = put_to_client(asker, &approval) => WaitEnd::Client(answer),
            () = decided_elsewhere(gate, &approval.id, &mut changes) => WaitEnd::Queue,
            () = recheck::until_lapse(call.auth_status.clone()) => WaitEnd::Lapse,
        }
    })
    .await;
    drop(permit);
    match wait_end {
        Ok(WaitEnd::Client(answer)) => {
            record(gate, checked, &approval, (answer, Some(begun.elapsed()))).await?;
        }
        Ok(WaitEnd::Queue) => {}
        Ok(WaitEnd::Lapse) => return Err(recheck::lapsed().with_answer(&approval)),
        Err(_) => {
            return Err(StoppedCall::new(
                Reason::ApprovalTimeout,
                "no one answered in time; the call was not run",
            )
            .with_remedy(how_to_approve(&approval.id))
            .with_answer(&approval));
        }
    }
    approved(gate, checked, &approval).await
}

/// The event that ended the wait for a person.
enum WaitEnd {
    Client(Answer),
    /// An operator answered in the queue.
    Queue,
    /// The caller's token is no longer valid.
    Lapse,
}

async fn put_to_client(asker: Arc<dyn Ask>, approval: &Approval) -> Answer {
    asker.ask(&Prompt { approval: approval.id.clone(), text: approval.question.text() }).await
}

/// Ends when an operator has answered in the queue. An unreadable queue never answers.
async fn decided_elsewhere(gate: &GateInner, id: &ApprovalId, changes: &mut watch::Receiver<u64>) {
    loop {
        let (known, now) = (id.clone(), gate.clock.now());
        let seen = on_queue_raw(gate, move |queue| queue.get(&known, now)).await;
        if seen.is_ok_and(|approval| approval.state != ApprovalState::Pending) {
            return;
        }
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Records the client's answer. Only an explicit yes continues.
///
/// `cancel` means that the question was dismissed, and no person declines within a second. Agents that run without a
/// person send either one. Both leave the question in the queue, as if the client could not ask.
async fn record(
    gate: &GateInner,
    checked: &Checked,
    approval: &Approval,
    (answer, after): (Answer, Option<Duration>),
) -> Result<(), StoppedCall> {
    let is_instant = after.is_some_and(|after| after < SHORTEST_THOUGHT);
    let state = match answer {
        Answer::Accept => ApprovalState::Approved,
        Answer::Decline if !is_instant => ApprovalState::Denied,
        Answer::Decline | Answer::Cancel => return Err(dismissed(approval.clone())),
        // The question can be asked again.
        Answer::Lost => return Err(pending(approval.clone(), true)),
    };
    let (id, now) = (approval.id.clone(), gate.clock.now());
    let conversation = checked.bound.admitted.call.client.conversation.clone();
    let decided = on_queue_raw(gate, move |queue| {
        let by = Decider::Client { conversation: conversation.as_deref() };
        queue.decide(&id, state, &by, None, now)
    });
    match (decided.await, state) {
        // If an operator was faster, that answer counts; `approved` reads it.
        (Ok(_) | Err(ApprovalError::NotPending(_)), ApprovalState::Approved) => Ok(()),
        (Err(ApprovalError::Unrevealed(_)), _) => Err(pending(approval.clone(), false)),
        (Err(problem), ApprovalState::Approved) => Err(invalid(&problem)),
        _ => Err(declined(&approval.id).with_answer(AnsweredQuestion {
            id: approval.id.clone(),
            state,
            by: Some(Decider::Client { conversation: None }.name().to_owned()),
        })),
    }
}

/// Reads the current answer from the queue. Only an approval continues.
async fn approved(gate: &GateInner, checked: &Checked, asked: &Approval) -> Result<ApprovalId, StoppedCall> {
    let (known, now) = (asked.id.clone(), gate.clock.now());
    let answered = on_queue(gate, move |queue| queue.get(&known, now)).await?;
    checked.notes.asked(&answered);
    match answered.state {
        ApprovalState::Approved => Ok(answered.id),
        ApprovalState::Expired => Err(invalid(&ApprovalError::Expired).with_answer(&answered)),
        ApprovalState::Denied => Err(denied(&answered).with_answer(&answered)),
        state => Err(invalid(&ApprovalError::NotPending(state)).with_answer(&answered)),
    }
}

fn dismissed(approval: Approval) -> StoppedCall {
    let message = "the client sent no person's answer: `cancel`, or `decline` within a second of the question; \
                   the call waits in the queue";
    pending(approval, false).for_operator(message)
}

fn denied(denial: &Approval) -> StoppedCall {
    if denial.is_declined_by_client() {
        return declined(&denial.id);
    }
    let message = "an operator denied this call; it was not run; do not repeat it";
    StoppedCall::new(Reason::ApprovalDenied, message)
}

/// Only the client knows whether a person gave its answer.
fn declined(id: &ApprovalId) -> StoppedCall {
    let message = "your client answered no to this call; it was not run; do not repeat it";
    StoppedCall::new(Reason::ApprovalDenied, message)
        .with_remedy(format!("an operator can overturn this with `toolgate approvals approve {id}`"))
}

/// A `decline` that comes sooner was not sent by a person.
const SHORTEST_THOUGHT: Duration = Duration::from_secs(1);
