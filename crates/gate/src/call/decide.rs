//! Stage D: collects the decisions about a call and asks a person if one of them requires it. The strictest decision
//! wins.

mod ask;
mod notes;
mod question;

use toolgate_policy::{DecisionSource, Verdict, questions_of_every_call};

pub use self::{
    ask::{ApprovalSource, Consent, GivenApproval},
    notes::DecisionNotes,
};
use super::{
    check::Checked,
    support::{
        recheck::{denied_by_program, forbidden_by_program},
        stop::StoppedCall,
    },
};
use crate::{call::Purpose, gate::GateInner, reason::Reason};

/// A call that may run.
#[derive(Debug)]
pub struct Decided {
    pub checked: Checked,
    pub decisions: Vec<Decision>,
    pub consent: Consent,
    _sealed: (),
}

/// The decision of one source. Goes into the journal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decision {
    pub source: DecisionSource,
    pub verdict: Verdict,
    pub why: String,
}

pub async fn decide(gate: &GateInner, checked: Checked) -> Result<Decided, StoppedCall> {
    // A Local Pass is the author's test: no person is asked, and no caller's permissions apply.
    if checked.bound.admitted.purpose == Purpose::LocalPass {
        let (source, why) = (DecisionSource::LocalPass, "a test run".to_owned());
        let decisions = vec![Decision { source, verdict: Verdict::Permit, why }];
        return Ok(Decided { checked, decisions, consent: Consent::NotNeeded, _sealed: () });
    }
    let decisions = decisions(gate, &checked);
    match consent(gate, &checked, &decisions).await {
        Ok(consent) => Ok(Decided { checked, decisions, consent, _sealed: () }),
        Err(stop) => Err(stop.with_decisions(decisions)),
    }
}

async fn consent(
    gate: &GateInner,
    checked: &Checked,
    decisions: &[Decision],
) -> Result<Consent, StoppedCall> {
    if let Some(against) = decisions.iter().find(|decision| decision.verdict == Verdict::Forbid) {
        return Err(forbidden(against));
    }
    if Verdict::strictest(decisions.iter().map(|decision| decision.verdict)) == Verdict::Permit {
        return Ok(Consent::NotNeeded);
    }
    checked.notes.decided(decisions);
    ask::ask(gate, checked, decisions).await
}

fn decisions(gate: &GateInner, checked: &Checked) -> Vec<Decision> {
    let admitted = &checked.bound.admitted;
    let (tool, caller) = (&admitted.tool, &admitted.call.caller);
    let arguments = checked.bound.arguments.members();
    let missing = tool.permissions.missing(&caller.permissions, arguments);
    let (verdict, why) = if missing.is_empty() {
        (Verdict::Permit, "all held".to_owned())
    } else {
        (Verdict::Forbid, format!("missing `{}`", missing.join("`, `")))
    };
    let mut decisions = vec![Decision { source: DecisionSource::Permissions, verdict, why }];
    if let Some(why) = denied_by_program(gate, &checked.bound) {
        let source = DecisionSource::ProgramPolicy;
        decisions.push(Decision { source, verdict: Verdict::Forbid, why });
    }
    if let Some(cedar) = admitted.live_config.set.policies() {
        let ruling = cedar.decide(caller, &tool.wire_name, arguments);
        let source = DecisionSource::Cedar;
        decisions.push(Decision { source, verdict: ruling.verdict, why: ruling.why });
    }
    decisions.extend(questions(checked));
    decisions
}

/// The sources that require an approval.
fn questions(checked: &Checked) -> Vec<Decision> {
    let admitted = &checked.bound.admitted;
    let (tool, threshold) = (&admitted.tool, admitted.live_config.approvals.ask_from);
    let ask = |source, why: String| Decision { source, verdict: Verdict::Ask, why };
    let of_every_call = questions_of_every_call(&tool.spec, &tool.policy, tool.level, threshold);
    let mut decisions: Vec<Decision> =
        of_every_call.into_iter().map(|question| ask(question.source, question.why)).collect();
    decisions.extend(checked.questions().map(|question| ask(question.source, question.why.clone())));
    if !checked.dangers.is_empty() {
        let why = format!("the arguments match `{}`", checked.dangers.join("`, `"));
        decisions.push(ask(DecisionSource::DangerPattern, why));
    }
    decisions
}

fn forbidden(against: &Decision) -> StoppedCall {
    match against.source {
        DecisionSource::Permissions => StoppedCall::new(
            Reason::MissingPermission,
            format!("this call needs more permissions: {}", against.why),
        )
        .with_remedy("ask the operator for the permission, or call with other arguments"),
        // Callers do not see the names and texts of the operator's rules.
        DecisionSource::Cedar => {
            StoppedCall::new(Reason::PolicyForbids, "the operator's policies forbid this call")
                .for_operator(format!("the policies forbid it: {}", against.why))
        }
        _ => forbidden_by_program(&against.why),
    }
}
