//! D. What do permissions, policy and, where asked, a person say? The strictest wins.

mod ask;
mod hearing;
mod question;

use toolgate_policy::{Ruling, Verdict, questions_of_every_call};

pub use self::hearing::Hearing;
use super::{check::Checked, execute::Place, stop::Stop};
use crate::{approval::Spent, call::Purpose, gate::Inner, reason::Reason};

/// A call that may run.
#[derive(Debug)]
pub struct Decided {
    pub checked: Checked,
    /// Who had a say, and what they said.
    pub opinions: Vec<Opinion>,
    /// The approval that this call used up.
    pub approval: Option<Spent>,
    /// Where an approval was used up, the place to run in was there before.
    pub place: Option<Place>,
    /// A remembered approval answered instead of a person.
    pub was_trusted: bool,
    _sealed: (),
}

/// One voice: its name is stable and goes into the journal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Opinion {
    pub source: &'static str,
    pub verdict: Verdict,
    pub why: String,
}

pub async fn decide(gate: &Inner, checked: Checked) -> Result<Decided, Stop> {
    // A Local Pass is the author's own test: nobody is asked, and no caller's permissions are meant.
    if checked.bound.admitted.purpose == Purpose::LocalPass {
        let own = Opinion { source: "local_pass", verdict: Verdict::Permit, why: "a test run".to_owned() };
        let opinions = vec![own];
        return Ok(Decided {
            checked,
            opinions,
            approval: None,
            place: None,
            was_trusted: false,
            _sealed: (),
        });
    }
    let opinions = opinions(gate, &checked);
    let (approval, place, was_trusted) = match weigh(gate, &checked, &opinions).await {
        Ok(None) => (None, None, false),
        Ok(Some(ask::Consent::Approved { spent, place })) => (Some(spent), Some(place), false),
        Ok(Some(ask::Consent::Trusted)) => (None, None, true),
        // A no is written down with the voices that led to it, like a yes.
        Err(stop) => return Err(stop.with_opinions(opinions)),
    };
    Ok(Decided { checked, opinions, approval, place, was_trusted, _sealed: () })
}

/// `None`: nobody had to be asked.
async fn weigh(gate: &Inner, checked: &Checked, opinions: &[Opinion]) -> Result<Option<ask::Consent>, Stop> {
    if let Some(against) = opinions.iter().find(|opinion| opinion.verdict == Verdict::Forbid) {
        return Err(forbidden(against));
    }
    if Verdict::strictest(opinions.iter().map(|opinion| opinion.verdict)) == Verdict::Permit {
        return Ok(None);
    }
    checked.hearing.heard(opinions);
    ask::ask(gate, checked, opinions).await.map(Some)
}

fn opinions(gate: &Inner, checked: &Checked) -> Vec<Opinion> {
    let admitted = &checked.bound.admitted;
    let (tool, caller) = (&admitted.tool, &admitted.call.caller);
    let arguments = checked.bound.arguments.members();
    let missing = tool.permissions.missing(&caller.permissions, arguments);
    let mut opinions = vec![if missing.is_empty() {
        Opinion { source: "permissions", verdict: Verdict::Permit, why: "all held".to_owned() }
    } else {
        let why = format!("missing `{}`", missing.join("`, `"));
        Opinion { source: "permissions", verdict: Verdict::Forbid, why }
    }];
    opinions.extend(policy_in_code(gate, checked));
    if let Some(cedar) = admitted.in_force.set.policies() {
        let ruling = cedar.decide(caller, &tool.wire_name, arguments);
        opinions.push(Opinion { source: "cedar", verdict: ruling.verdict, why: ruling.why });
    }
    opinions.extend(approval_opinions(checked));
    opinions
}

/// The denial of an embedding program's own policy.
fn policy_in_code(gate: &Inner, checked: &Checked) -> Option<Opinion> {
    let (admitted, arguments) = (&checked.bound.admitted, &checked.bound.arguments);
    match gate.policy.check(&admitted.call.caller, &admitted.tool.wire_name, arguments) {
        Ruling::Deny { reason } => Some(Opinion { source: "policy", verdict: Verdict::Forbid, why: reason }),
        Ruling::Allow => None,
    }
}

/// For a call that has waited: such a policy may answer differently by now.
pub fn policy_in_code_permits(gate: &Inner, checked: &Checked) -> Result<(), Stop> {
    policy_in_code(gate, checked).map_or(Ok(()), |against| Err(forbidden(&against)))
}

/// The decision sources that want a person to be asked.
fn approval_opinions(checked: &Checked) -> Vec<Opinion> {
    let admitted = &checked.bound.admitted;
    let (tool, threshold) = (&admitted.tool, admitted.in_force.approvals.ask_from);
    let ask = |source, why: String| Opinion { source, verdict: Verdict::Ask, why };
    let standing = questions_of_every_call(&tool.spec, &tool.policy, tool.level, threshold);
    let mut opinions: Vec<Opinion> =
        standing.into_iter().map(|question| ask(question.source, question.why)).collect();
    opinions.extend(checked.survey.questions.iter().map(|asked| ask(asked.source, asked.why.clone())));
    if !checked.dangers.is_empty() {
        opinions
            .push(ask("danger_pattern", format!("the arguments match `{}`", checked.dangers.join("`, `"))));
    }
    opinions
}

fn forbidden(against: &Opinion) -> Stop {
    if against.source == "permissions" {
        Stop::new(Reason::MissingPermission, format!("this call needs more permissions: {}", against.why))
            .with_remedy("ask the operator for the permission, or call with other arguments")
    } else if against.source == "cedar" {
        // What a rule is called and says is the operator's; the caller learns that there is one.
        Stop::new(Reason::PolicyForbids, "the operator's policies forbid this call")
            .for_operator(format!("the policies forbid it: {}", against.why))
    } else {
        Stop::new(Reason::PolicyForbids, format!("a policy forbids this call: {}", against.why))
    }
}
