//! Gets a person's yes to exactly this call: an earlier one, the client's, or one from the queue. Nothing else runs it.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{Checked, Opinion, question};
use crate::{
    approval::{
        Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, Binding, Decider, NewApproval,
        Remembers, Spent, Trust,
    },
    call::{
        execute::{self, Place},
        standing,
        stop::{Answered, Stop},
        survey,
    },
    gate::{ClientAnswer, Inner},
    ports::{Answer, Ask, Prompt},
    reason::Reason,
};

pub enum Consent {
    /// Spent with a place to run in at hand: a yes that finds the gateway busy would have to be asked for again.
    Approved { spent: Spent, place: Place },
    /// A yes that is remembered.
    Trusted,
}

pub async fn ask(gate: &Inner, checked: &Checked, opinions: &[Opinion]) -> Result<Consent, Stop> {
    let now = gate.clock.now();
    let admitted = &checked.bound.admitted;
    let binding = question::binding(checked);
    // A no holds until its question expires, whatever was said about other calls.
    let (refused, conversation) = (binding.clone(), admitted.call.client.conversation.clone());
    let denial = on_queue(gate, move |queue| queue.denial(&refused, conversation.as_deref(), now)).await?;
    if let Some(denial) = denial {
        return Err(denied(&denial).with_answer(&denial));
    }
    let trust = question::trust_of(checked, opinions, &binding, now);
    if let Some(trust) = trust.clone()
        && admitted.call.answer.is_none()
        && on_queue(gate, move |queue| queue.is_trusted(&trust, now)).await?
    {
        return Ok(Consent::Trusted);
    }
    let earlier = match (&admitted.call.answer, admitted.in_force.approvals.client_may_answer) {
        (Some(given), true) => Some(answered(gate, checked, &binding, given).await?),
        _ => given_earlier(gate, checked, &binding).await?,
    };
    let (mut spent, place) = if let Some(earlier) = earlier {
        earlier
    } else {
        let question = question::question(gate, checked, opinions, (&binding, trust.as_ref()), now);
        open_and_wait(gate, checked, question, now).await?
    };
    spent.remembers =
        take_effect(gate, checked, trust, &spent).await.map_err(|stop| stop.with_answer(&spent))?;
    Ok(Consent::Approved { spent, place })
}

/// Remembers the yes only as far as its question said: in that conversation, until that time.
async fn take_effect(
    gate: &Inner,
    checked: &Checked,
    trust: Option<Trust>,
    spent: &Spent,
) -> Result<Option<Remembers>, Stop> {
    // Once more, after the yes is spent: a person may have taken minutes.
    standing::is_unchanged(gate, &checked.bound.admitted)?;
    if gate.is_closing() {
        return Err(standing::changed());
    }
    let now = gate.clock.now();
    let (Some(trust), Some(said)) = (trust, spent.remembers.clone()) else { return Ok(None) };
    if said.conversation != trust.flow || said.until <= now {
        return Ok(None);
    }
    let trust = Trust { expires: said.until, ..trust };
    on_queue(gate, move |queue| queue.remember(&trust)).await?;
    Ok(Some(said))
}

/// The yes is for what was shown. A link may have been set elsewhere while the person thought.
async fn leads_where_it_led(gate: &Inner, checked: &Checked) -> Result<(), Stop> {
    let message = "what the arguments lead to has changed since the question was asked; the call was not run";
    let changed = || Stop::new(Reason::ApprovalInvalid, message).with_remedy("make the call again");
    match survey::of(gate, &checked.bound).await {
        Ok(now) if now.touches == checked.survey.touches => Ok(()),
        Ok(_) => Err(changed()),
        // Nobody knows whether it has changed, and the yes is still there.
        Err(stop) if matches!(stop.reason, Reason::Busy | Reason::CallerLapsed) => Err(stop),
        Err(stop) => Err(changed().for_operator(format!("{message}: {}", stop.to_operator))),
    }
}

/// The call is made again, and somebody has approved it meanwhile. `None`: nobody has.
async fn given_earlier(
    gate: &Inner,
    checked: &Checked,
    binding: &Binding,
) -> Result<Option<(Spent, Place)>, Stop> {
    let (wanted, now) = (binding.clone(), gate.clock.now());
    // Looked at first: a call that is yet to be asked about needs no place to run in.
    if !on_queue(gate, move |queue| queue.is_approved(&wanted, now)).await? {
        return Ok(None);
    }
    let place = place_to_run(gate, checked).await?;
    // Another call may have been faster; then this one is asked for like any other.
    let spent = spend(gate, checked, binding, None).await?;
    Ok(spent.map(|spent| (spent, place)))
}

/// Taken before an approval is spent, and kept until the run has ended. The last look at the caller, too: a person may have
/// thought for minutes, and a yes for somebody who is no longer let in runs nothing. And the look at where the arguments lead:
/// a link that is elsewhere for a moment, or a disk that does not answer, must not cost the person a second answer. What the
/// arguments lead to after that, the run itself holds open or compares.
async fn place_to_run(gate: &Inner, checked: &Checked) -> Result<Place, Stop> {
    let place = execute::make_place(gate, checked).await?;
    leads_where_it_led(gate, checked).await?;
    standing::still_let_in(&checked.bound.admitted.call).await?;
    Ok(place)
}

/// The call is made again, and the person behind the client has answered.
async fn answered(
    gate: &Inner,
    checked: &Checked,
    binding: &Binding,
    given: &ClientAnswer,
) -> Result<(Spent, Place), Stop> {
    let (known, now) = (given.approval.clone(), gate.clock.now());
    // The question must be the one for this very call before any answer to it counts.
    let approval = on_queue(gate, move |queue| queue.get(&known, now)).await?;
    if approval.question.binding != *binding {
        return Err(invalid(&ApprovalError::OtherCall));
    }
    checked.hearing.asked(&approval);
    record(gate, checked, &approval, (given.answer, given.answered_after)).await?;
    spend_this(gate, checked, binding, &approval).await
}

/// Puts the question into the queue, and waits where the client can be asked at once.
async fn open_and_wait(
    gate: &Inner,
    checked: &Checked,
    question: NewApproval,
    now: SystemTime,
) -> Result<(Spent, Place), Stop> {
    let binding = question.binding.clone();
    let call = &checked.bound.admitted.call;
    let settings = checked.bound.admitted.in_force.approvals;
    // A client cannot reveal anything, so a question that hides something goes to the queue only.
    let may_ask = settings.client_may_answer && question.hidden.bytes == 0;
    let asker = call.ask.clone().filter(|_| may_ask);
    // Before the question is put: nobody is to be asked about a call that may not wait for the answer.
    let place = asker
        .as_ref()
        .map(|_| gate.limiter.ask(&call.caller.quota()))
        .transpose()
        .map_err(|full| queue_full(&full))?;
    let hearing = Arc::clone(&checked.hearing);
    let opened = on_queue(gate, move |queue| {
        hearing.change(|| queue.open(question, now), |approval| Some(approval.into()))
    });
    let approval = opened.await?;
    let Some(asker) = asker else { return Err(pending(approval, may_ask)) };
    let mut changes = gate.queue.changes();
    let begun = Instant::now();
    let heard = timeout(settings.timeout, async {
        tokio::select! {
            answer = put_to_client(asker, &approval) => Heard::Client(answer),
            () = decided_elsewhere(gate, &approval.id, &mut changes) => Heard::Queue,
            () = standing::until_lapse(call.standing.clone()) => Heard::Lapse,
        }
    })
    .await;
    drop(place);
    match heard {
        Ok(Heard::Client(answer)) => {
            record(gate, checked, &approval, (answer, Some(begun.elapsed()))).await?;
        }
        Ok(Heard::Queue) => {}
        Ok(Heard::Lapse) => return Err(standing::lapsed().with_answer(&approval)),
        Err(_) => {
            return Err(Stop::new(Reason::ApprovalTimeout, "nobody answered in time; the call was not run")
                .with_remedy(how_to_approve(&approval.id))
                .with_answer(&approval));
        }
    }
    spend_this(gate, checked, &binding, &approval).await
}

/// What ended the wait for a person.
enum Heard {
    Client(Answer),
    /// Somebody has answered there.
    Queue,
    /// The caller is no longer let in.
    Lapse,
}

async fn put_to_client(asker: Arc<dyn Ask>, approval: &Approval) -> Answer {
    asker.ask(&Prompt { approval: approval.id.clone(), text: approval.question.text() }).await
}

/// Ends when somebody has answered in the queue. A queue that cannot be read answers nothing.
async fn decided_elsewhere(gate: &Inner, id: &ApprovalId, changes: &mut watch::Receiver<u64>) {
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

/// Writes down the client's answer. Only an explicit yes goes on.
///
/// `cancel` means that the question was dismissed, and no person declines within a second of being asked. Agents that run
/// without a person send either one. Both leave the question in the queue, as if the client could not ask.
async fn record(
    gate: &Inner,
    checked: &Checked,
    approval: &Approval,
    (answer, after): (Answer, Option<Duration>),
) -> Result<(), Stop> {
    let is_instant = after.is_some_and(|after| after < SHORTEST_THOUGHT);
    let state = match answer {
        Answer::Accept => ApprovalState::Approved,
        Answer::Decline if !is_instant => ApprovalState::Denied,
        Answer::Decline | Answer::Cancel => return Err(dismissed(approval.clone())),
        // The question can be put again.
        Answer::Lost => return Err(pending(approval.clone(), true)),
    };
    let (id, now) = (approval.id.clone(), gate.clock.now());
    let conversation = checked.bound.admitted.call.client.conversation.clone();
    let decided = on_queue_raw(gate, move |queue| {
        let by = Decider::Client { conversation: conversation.as_deref() };
        queue.decide(&id, state, &by, None, now)
    });
    match (decided.await, state) {
        // If someone was faster, their answer counts, and spending will see it.
        (Ok(_) | Err(ApprovalError::NotPending(_)), ApprovalState::Approved) => Ok(()),
        (Err(ApprovalError::Unrevealed(_)), _) => Err(pending(approval.clone(), false)),
        (Err(problem), ApprovalState::Approved) => Err(invalid(&problem)),
        _ => Err(declined(&approval.id).with_answer(Answered {
            id: approval.id.clone(),
            state,
            by: Some(Decider::Client { conversation: None }.name().to_owned()),
        })),
    }
}

async fn spend_this(
    gate: &Inner,
    checked: &Checked,
    binding: &Binding,
    asked: &Approval,
) -> Result<(Spent, Place), Stop> {
    // The answer comes first: a no is told as one, also where the gateway has no place to run in.
    let (known, now) = (asked.id.clone(), gate.clock.now());
    let answered = on_queue(gate, move |queue| queue.get(&known, now)).await?;
    checked.hearing.asked(&answered);
    match answered.state {
        ApprovalState::Approved => {}
        ApprovalState::Expired => return Err(invalid(&ApprovalError::Expired).with_answer(&answered)),
        ApprovalState::Denied => return Err(denied(&answered).with_answer(&answered)),
        state => return Err(invalid(&ApprovalError::NotPending(state)).with_answer(&answered)),
    }
    let place = place_to_run(gate, checked).await;
    let stop = match place {
        Ok(place) => match spend(gate, checked, binding, Some(&asked.id)).await {
            Ok(Some(spent)) => return Ok((spent, place)),
            Ok(None) => invalid(&ApprovalError::NotPending(ApprovalState::Pending)),
            Err(stop) => stop,
        },
        Err(stop) => stop,
    };
    let (known, now) = (asked.id.clone(), gate.clock.now());
    let seen = on_queue_raw(gate, move |queue| queue.get(&known, now)).await;
    Err(match seen {
        Ok(approval) => stop.with_answer(&approval),
        Err(_) => stop,
    })
}

async fn spend(
    gate: &Inner,
    checked: &Checked,
    binding: &Binding,
    id: Option<&ApprovalId>,
) -> Result<Option<Spent>, Stop> {
    let (binding, id, now) = (binding.clone(), id.cloned(), gate.clock.now());
    let hearing = Arc::clone(&checked.hearing);
    on_queue(gate, move |queue| {
        hearing.change(|| queue.spend(&binding, id.as_ref(), now), |spent| spent.as_ref().map(Answered::from))
    })
    .await
}

fn pending(approval: Approval, client_may_answer: bool) -> Stop {
    let remedy = how_to_approve(&approval.id);
    let message = format!("a person has to approve this call first; {remedy}, then make the same call again");
    let mut stop = Stop::new(Reason::ApprovalPending, message).with_remedy(remedy);
    stop.asked = Some(Box::new(approval));
    stop.client_may_answer = client_may_answer;
    stop
}

fn dismissed(approval: Approval) -> Stop {
    let message = "the client sent no person's answer: `cancel`, or `decline` within a second of the question; \
                   the call waits in the queue";
    pending(approval, false).for_operator(message)
}

fn denied(denial: &Approval) -> Stop {
    if denial.is_declined_by_client() {
        return declined(&denial.id);
    }
    let message = "an operator denied this call; it was not run, and is not to be tried again";
    Stop::new(Reason::ApprovalDenied, message)
}

/// The client's word; only the client knows whether a person gave it.
fn declined(id: &ApprovalId) -> Stop {
    let message = "your client answered no to this call; it was not run, and is not to be tried again";
    Stop::new(Reason::ApprovalDenied, message)
        .with_remedy(format!("an operator can overturn this with `toolgate approvals approve {id}`"))
}

fn how_to_approve(id: &ApprovalId) -> String {
    format!("an operator can approve it with `toolgate approvals approve {id}`")
}

fn invalid(problem: &ApprovalError) -> Stop {
    match problem {
        ApprovalError::Unavailable(why) => {
            Stop::new(Reason::ApprovalsUnavailable, "approvals cannot be read").for_operator(why.clone())
        }
        ApprovalError::QueueFull(_) | ApprovalError::DeniedTooOften(_) => queue_full(problem),
        _ => Stop::new(Reason::ApprovalInvalid, format!("{problem}; the call was not run"))
            .with_remedy("make the call again without an answer, to be asked again"),
    }
}

/// Too many questions wait already. The call itself needs a person; calls that need none are not affected.
fn queue_full(problem: &dyn fmt::Display) -> Stop {
    Stop::new(Reason::QueueFull, problem.to_string()).with_remedy(
        "call again when some of the waiting calls have been answered: `toolgate approvals watch`",
    )
}

/// The queue is a database: it is asked beside the runtime's own threads.
async fn on_queue<T, F>(gate: &Inner, job: F) -> Result<T, Stop>
where
    T: Send + 'static,
    F: FnOnce(&dyn ApprovalQueue) -> Result<T, ApprovalError> + Send + 'static,
{
    on_queue_raw(gate, job).await.map_err(|problem| invalid(&problem))
}

async fn on_queue_raw<T, F>(gate: &Inner, job: F) -> Result<T, ApprovalError>
where
    T: Send + 'static,
    F: FnOnce(&dyn ApprovalQueue) -> Result<T, ApprovalError> + Send + 'static,
{
    let queue = Arc::clone(&gate.queue);
    tokio::task::spawn_blocking(move || job(queue.as_ref()))
        .await
        .unwrap_or_else(|_| Err(ApprovalError::Unavailable("the queue's thread ended".to_owned())))
}

/// A `decline` that comes sooner was not a person's.
const SHORTEST_THOUGHT: Duration = Duration::from_secs(1);
