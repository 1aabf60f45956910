//! Builds the question about a call: its binding, its text, and whether an approval is remembered.

use std::time::SystemTime;

use toolgate_policy::{DecisionSource, Verdict};

use super::{Checked, Decision};
use crate::{
    approval::{Binding, NewApproval, RememberScope, Trust},
    call::support::prompt,
    digest,
    gate::GateInner,
};

/// The binding of an approval of this call.
pub fn binding(checked: &Checked) -> Binding {
    let admitted = &checked.bound.admitted;
    let tool = &admitted.tool;
    Binding {
        caller: admitted.call.caller.subject.clone(),
        tool: tool.wire_name.clone(),
        tool_digest: tool.digest.clone(),
        arguments_digest: asked_digest(checked),
        policy_digest: match admitted.live_config.set.policies() {
            Some(cedar) => format!("{} {}", tool.policy_digest, cedar.digest()),
            None => tool.policy_digest.clone(),
        },
    }
}

/// The digest of the arguments and of the paths and hosts that they lead to now. If a symlink changes after the
/// approval, the digest differs.
fn asked_digest(checked: &Checked) -> String {
    let arguments = &checked.bound.arguments_digest;
    let touches = &checked.touches;
    if touches.is_empty() {
        return arguments.clone();
    }
    let touches: Vec<[&str; 2]> = touches.iter().map(|touch| [touch.kind.name(), &touch.target]).collect();
    format!("{arguments} {}", digest::of(&touches))
}

/// The reasons of the operator's policies come first, because a client may cut the end of a long text.
pub fn question(
    gate: &GateInner,
    checked: &Checked,
    decisions: &[Decision],
    (binding, trust): (&Binding, Option<&Trust>),
    now: SystemTime,
) -> NewApproval {
    let bound = &checked.bound;
    let tool = &bound.admitted.tool;
    let mask = tool.runnable.mask();
    let mut asking: Vec<(&str, &str)> = decisions
        .iter()
        .filter(|decision| decision.verdict == Verdict::Ask)
        .map(|decision| (decision.source.name(), decision.why.as_str()))
        // The arguments do not show these effects.
        .chain(checked.widened.iter().map(|why| ("touches", why.as_str())))
        .collect();
    asking.sort_by_key(|(source, _)| *source != DecisionSource::Cedar.name());
    // Personal data is shown: the approver decides about the whole call.
    let shown = prompt::shown(bound.arguments.members(), &mask, &gate.secrets);
    NewApproval {
        binding: binding.clone(),
        quota: bound.admitted.call.caller.quota().into_owned(),
        prompt: prompt::text(&tool.spec, &tool.wire_name, &shown.members, &mask),
        because: asking.iter().map(|reason| prompt::reason(*reason, &mask, &gate.secrets)).collect(),
        arguments: Some(shown.text),
        hidden: shown.hidden,
        remembers: trust
            .map(|trust| RememberScope { conversation: trust.flow.clone(), until: trust.expires }),
        risk: tool.level.name().to_owned(),
        created: now,
        expires: now + bound.admitted.live_config.approvals.expires,
    }
}

/// A remembered approval is used only if the tool allows it, and never if every call needs an approval or an argument
/// is dangerous. It holds within one conversation. Calls without a conversation may come from anywhere, so they neither
/// create nor use one.
pub fn trust_of(
    checked: &Checked,
    decisions: &[Decision],
    binding: &Binding,
    now: SystemTime,
) -> Option<Trust> {
    let admitted = &checked.bound.admitted;
    let flow = admitted.call.client.conversation.clone()?;
    let approval = &admitted.tool.policy.approval;
    // Only these two sources concern the tool. Every other one concerns this call.
    let is_about_the_tool = |decision: &Decision| {
        decision.verdict != Verdict::Ask
            || matches!(decision.source, DecisionSource::Capability | DecisionSource::Risk)
    };
    let may_trust = approval.trust_after_approval.value
        && !approval.is_required()
        && decisions.iter().all(is_about_the_tool);
    may_trust.then(|| Trust {
        caller: binding.caller.clone(),
        flow,
        tool_digest: binding.tool_digest.clone(),
        policy_digest: binding.policy_digest.clone(),
        expires: now + admitted.live_config.approvals.trust,
    })
}
