//! Consumes the approval of a call that is about to run.

use std::{sync::Arc, time::SystemTime};

use crate::{
    approval::{ApprovalError, ApprovalState, ConsumedApproval, RememberScope, Trust},
    call::{
        bind::BoundCall,
        decide::{ApprovalSource, Consent, DecisionNotes, GivenApproval},
        support::{
            queue::{invalid, may_ask_client, on_queue, on_queue_raw, open, pending},
            recheck,
            stop::{AnsweredQuestion, StoppedCall},
        },
    },
    gate::GateInner,
};

/// `None` if the call needed no approval, or a remembered one was enough.
pub async fn consume(
    gate: &GateInner,
    bound: &BoundCall,
    notes: &Arc<DecisionNotes>,
    consent: Consent,
) -> Result<Option<ConsumedApproval>, StoppedCall> {
    let Consent::Approved(given) = consent else { return Ok(None) };
    let (binding, id, now) = (given.binding.clone(), given.id().cloned(), gate.clock.now());
    let shared = Arc::clone(notes);
    let consumed = on_queue(gate, move |queue| {
        shared.change(
            || queue.consume(&binding, id.as_ref(), now),
            |spent| spent.as_ref().map(AnsweredQuestion::from),
        )
    });
    let mut consumed = match consumed.await {
        Ok(Some(consumed)) => consumed,
        Ok(None) => return Err(not_there(gate, bound, notes, *given, now).await),
        Err(stop) => return Err(with_state_of(gate, &given, stop).await),
    };
    consumed.remembers =
        remember(gate, bound, given.trust, &consumed).await.map_err(|stop| stop.with_answer(&consumed))?;
    Ok(Some(consumed))
}

/// Another call consumed the approval first. If this call relied on an earlier approval, a new question is asked.
async fn not_there(
    gate: &GateInner,
    bound: &BoundCall,
    notes: &Arc<DecisionNotes>,
    given: GivenApproval,
    now: SystemTime,
) -> StoppedCall {
    let ApprovalSource::Earlier { otherwise: question } = given.source else {
        let stop = invalid(&ApprovalError::NotPending(ApprovalState::Pending));
        return with_state_of(gate, &given, stop).await;
    };
    let may_ask = may_ask_client(bound.admitted.live_config.approvals, &question);
    match open(gate, notes, *question, now).await {
        Ok(approval) => pending(approval, may_ask),
        Err(stop) => stop,
    }
}

/// Remembers the approval as its question offered: in that conversation, until that time.
async fn remember(
    gate: &GateInner,
    bound: &BoundCall,
    trust: Option<Trust>,
    consumed: &ConsumedApproval,
) -> Result<Option<RememberScope>, StoppedCall> {
    // Check again after the approval is consumed: the tool may have changed while the queue was locked.
    recheck::is_unchanged(gate, &bound.admitted)?;
    if gate.is_closing() {
        return Err(recheck::changed());
    }
    let now = gate.clock.now();
    let (Some(trust), Some(offered)) = (trust, consumed.remembers.clone()) else { return Ok(None) };
    if offered.conversation != trust.flow || offered.until <= now {
        return Ok(None);
    }
    let trust = Trust { expires: offered.until, ..trust };
    on_queue(gate, move |queue| queue.remember(&trust)).await?;
    Ok(Some(offered))
}

/// Adds the state of the approval to the record of a call that stops before it consumes the approval.
pub async fn with_state(gate: &GateInner, consent: &Consent, stop: StoppedCall) -> StoppedCall {
    match consent {
        Consent::Approved(given) => with_state_of(gate, given, stop).await,
        Consent::NotNeeded | Consent::Remembered => stop,
    }
}

async fn with_state_of(gate: &GateInner, given: &GivenApproval, stop: StoppedCall) -> StoppedCall {
    let Some(id) = given.id().cloned() else { return stop };
    let now = gate.clock.now();
    match on_queue_raw(gate, move |queue| queue.get(&id, now)).await {
        Ok(approval) => stop.with_answer(&approval),
        Err(_) => stop,
    }
}
