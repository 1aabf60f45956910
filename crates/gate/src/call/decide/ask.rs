//! Did a person say yes to exactly this call? Every other answer means that it is not run.

use std::{fmt, sync::Arc, time::SystemTime};

use tokio::{sync::watch, time::timeout};
use toolgate_policy::Verdict;

use super::{Checked, Opinion};
use crate::{
    approval::{
        Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, Binding, NewApproval, Spent, Trust,
    },
    call::{
        execute::{self, Place},
        prompt, secrets, standing,
        stop::{Answered, Stop},
        survey,
    },
    digest,
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
    let question = question(gate, checked, opinions, now);
    let binding = question.binding.clone();
    // A no stands until its question would have expired, whatever was said about other calls.
    let refused = binding.clone();
    if on_queue(gate, move |queue| queue.is_denied(&refused, now)).await? {
        return Err(denied_before(gate, binding, now).await);
    }
    let trust = trust_of(checked, opinions, &binding, now);
    if let Some(trust) = trust.clone()
        && checked.bound.admitted.call.answer.is_none()
        && on_queue(gate, move |queue| queue.is_trusted(&trust, now)).await?
    {
        return Ok(Consent::Trusted);
    }
    let admitted = &checked.bound.admitted;
    let earlier = match (&admitted.call.answer, admitted.in_force.approvals.client_may_answer) {
        (Some(given), true) => Some(answered(gate, checked, &binding, given).await?),
        _ => given_earlier(gate, checked, &binding).await?,
    };
    let (spent, place) = match earlier {
        Some(earlier) => earlier,
        None => open_and_wait(gate, checked, question, now).await?,
    };
    take_effect(gate, checked, trust).await.map_err(|stop| stop.with_answer(&spent))?;
    Ok(Consent::Approved { spent, place })
}

async fn take_effect(gate: &Inner, checked: &Checked, trust: Option<Trust>) -> Result<(), Stop> {
    // Once more, after the yes is spent: a person may have taken minutes.
    standing::is_unchanged(gate, &checked.bound.admitted)?;
    if gate.is_closing() {
        return Err(standing::changed());
    }
    match trust {
        Some(trust) => on_queue(gate, move |queue| queue.remember(&trust)).await,
        None => Ok(()),
    }
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
    record(gate, &approval, given.answer, now).await?;
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
    let asker = call.ask.clone().filter(|_| settings.client_may_answer);
    // Before the question is put: nobody is to be asked about a call that may not wait for the answer.
    let place = asker
        .as_ref()
        .map(|_| gate.limiter.ask(&call.caller.subject))
        .transpose()
        .map_err(|full| busy(&full))?;
    let hearing = Arc::clone(&checked.hearing);
    let opened = on_queue(gate, move |queue| {
        hearing.change(|| queue.open(question, now), |approval| Some(approval.into()))
    });
    let approval = opened.await?;
    let Some(asker) = asker else { return Err(pending(approval)) };
    let mut changes = gate.queue.changes();
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
        Ok(Heard::Client(answer)) => record(gate, &approval, answer, gate.clock.now()).await?,
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

/// Writes down what the client's person said. Only an explicit yes goes on.
async fn record(gate: &Inner, approval: &Approval, answer: Answer, now: SystemTime) -> Result<(), Stop> {
    let state = match answer {
        Answer::Accept => ApprovalState::Approved,
        Answer::Decline | Answer::Cancel => ApprovalState::Denied,
        // Nobody said anything: the question stays in the queue for somebody who can.
        Answer::Lost => return Err(pending(approval.clone())),
    };
    let id = approval.id.clone();
    let decided = on_queue_raw(gate, move |queue| queue.decide(&id, state, BY_CLIENT, None, now)).await;
    match (decided, state) {
        // Where somebody was faster, what they said counts, and spending will see it.
        (Ok(_) | Err(ApprovalError::NotPending(_)), ApprovalState::Approved) => Ok(()),
        (Err(problem), ApprovalState::Approved) => Err(invalid(&problem)),
        _ => Err(denied().with_answer(Answered {
            id: approval.id.clone(),
            state,
            by: Some(BY_CLIENT.to_owned()),
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

fn question(gate: &Inner, checked: &Checked, opinions: &[Opinion], now: SystemTime) -> NewApproval {
    let bound = &checked.bound;
    let tool = &bound.admitted.tool;
    let asking = opinions.iter().filter(|opinion| opinion.verdict == Verdict::Ask);
    let by_policy = asking.clone().filter(|opinion| opinion.source == "cedar");
    let by_policy = by_policy.map(|opinion| opinion.why.as_str());
    // The arguments do not show it.
    let widened = checked.survey.widened.iter().map(String::as_str);
    let reasons: Vec<&str> = by_policy.chain(widened.clone()).collect();
    let mask = tool.runnable.mask();
    // What is personal stays: whoever decides about a call decides about all of it.
    let shown = prompt::without_secrets(&bound.arguments, &mask, &gate.secrets);
    NewApproval {
        binding: Binding {
            caller: bound.admitted.call.caller.subject.clone(),
            tool: tool.wire_name.clone(),
            tool_digest: tool.digest.clone(),
            arguments_digest: what_is_asked(checked),
            policy_digest: match bound.admitted.in_force.set.policies() {
                Some(cedar) => format!("{} {}", tool.policy_digest, cedar.digest()),
                None => tool.policy_digest.clone(),
            },
        },
        prompt: prompt::text(&tool.spec, &tool.wire_name, &shown, &reasons, &mask, &gate.secrets),
        arguments: Some(prompt::arguments(&shown, &mask)),
        because: asking
            .map(|opinion| (opinion.source, opinion.why.as_str()))
            .chain(widened.map(|why| ("touches", why)))
            .map(|(source, why)| {
                let why = secrets::without_secrets(&gate.secrets, &mask.text(why));
                format!("{source}: {why}")
            })
            .collect(),
        risk: tool.level.name().to_owned(),
        created: now,
        expires: now + bound.admitted.in_force.approvals.expires,
    }
}

/// The arguments, and what they lead to now: a link that is set elsewhere after the yes makes it another call.
fn what_is_asked(checked: &Checked) -> String {
    let arguments = &checked.bound.arguments_digest;
    let touches = &checked.survey.touches;
    if touches.is_empty() {
        return arguments.clone();
    }
    let touches: Vec<[&str; 2]> = touches.iter().map(|touch| [touch.kind.name(), &touch.target]).collect();
    format!("{arguments} {}", digest::of(&touches))
}

/// Trust answers only where the tool lets it, and never where every call is to be confirmed or danger was seen.
/// It holds within one conversation: of calls that belong to none nobody knows whether they have anything to do with each
/// other, and so none is given or taken there.
fn trust_of(checked: &Checked, opinions: &[Opinion], binding: &Binding, now: SystemTime) -> Option<Trust> {
    let admitted = &checked.bound.admitted;
    let flow = admitted.call.client.conversation.clone()?;
    let approval = &admitted.tool.policy.approval;
    // Only these two are about the tool as such. Every other voice asks about this very call.
    let is_about_the_tool = |opinion: &Opinion| {
        opinion.verdict != Verdict::Ask || matches!(opinion.source, "capability" | "risk")
    };
    let may_trust = approval.trust_after_approval.value
        && !approval.is_required()
        && opinions.iter().all(is_about_the_tool);
    may_trust.then(|| Trust {
        caller: binding.caller.clone(),
        flow,
        tool_digest: binding.tool_digest.clone(),
        policy_digest: binding.policy_digest.clone(),
        expires: now + admitted.in_force.approvals.trust,
    })
}

fn pending(approval: Approval) -> Stop {
    let remedy = how_to_approve(&approval.id);
    let message = format!("a person has to approve this call first; {remedy}, then make the same call again");
    let mut stop = Stop::new(Reason::ApprovalPending, message).with_remedy(remedy);
    stop.asked = Some(Box::new(approval));
    stop
}

fn denied() -> Stop {
    let message = "a person declined this call; it was not run, and is not to be tried again";
    Stop::new(Reason::ApprovalDenied, message)
}

/// Somebody said no to this call earlier. Who it was is for the journal alone: where it is not found, the no stands.
async fn denied_before(gate: &Inner, binding: Binding, now: SystemTime) -> Stop {
    let found = on_queue_raw(gate, move |queue| {
        let denied = queue.list(Some(ApprovalState::Denied), MOST_DENIALS_LOOKED_AT, now)?;
        let is_this = |approval: &Approval| approval.question.binding == binding;
        Ok(denied.into_iter().find(|approval| is_this(approval) && approval.question.expires > now))
    });
    match found.await {
        Ok(Some(approval)) => denied().with_answer(&approval),
        _ => denied(),
    }
}

fn how_to_approve(id: &ApprovalId) -> String {
    format!("an operator can approve it with `toolgate approvals approve {id}`")
}

fn invalid(problem: &ApprovalError) -> Stop {
    match problem {
        ApprovalError::NotPending(ApprovalState::Denied) => denied(),
        ApprovalError::Unavailable(why) => {
            Stop::new(Reason::ApprovalsUnavailable, "approvals cannot be read").for_operator(why.clone())
        }
        ApprovalError::QueueFull => busy(problem),
        _ => Stop::new(Reason::ApprovalInvalid, format!("{problem}; the call was not run"))
            .with_remedy("make the call again without an answer, so that it is asked for anew"),
    }
}

/// Too many wait for a person already.
fn busy(problem: &dyn fmt::Display) -> Stop {
    Stop::new(Reason::Busy, problem.to_string())
        .with_remedy("wait until some of the waiting calls have been answered")
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

const BY_CLIENT: &str = "client";
const MOST_DENIALS_LOOKED_AT: usize = 200;
