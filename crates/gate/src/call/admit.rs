//! A. Is there such a live tool, and may this caller know of it?

use std::sync::Arc;

use super::support::stop::Stop;
use crate::{
    call::Purpose,
    gate::{Call, Inner},
    live::LiveTool,
    reason::Reason,
    registry::InForce,
};

/// A call of a tool that exists for its caller. The tool is frozen: what is edited meanwhile counts for later calls.
#[derive(Debug)]
pub struct Admitted {
    pub call: Call,
    pub tool: Arc<LiveTool>,
    /// The set that the tool comes from, with the policies and the settings that were in force then.
    pub(crate) in_force: Arc<InForce>,
    pub purpose: Purpose,
    _sealed: (),
}

pub fn admit(gate: &Inner, call: Call, draft: Option<Arc<LiveTool>>) -> Result<Admitted, Stop> {
    if gate.is_closing() {
        return Err(Stop::new(Reason::ShuttingDown, "the gateway is stopping; call again in a while"));
    }
    if let Some(tool) = draft {
        let in_force = gate.in_force();
        return Ok(Admitted { call, tool, in_force, purpose: Purpose::LocalPass, _sealed: () });
    }
    let in_force = gate.in_force();
    let set = &in_force.set;
    let unknown = |why: String| {
        // One answer for what is not there and for what this caller may not know of.
        Stop::new(Reason::UnknownTool, format!("there is no tool `{}`", shown(&call.tool)))
            .with_remedy("list the tools again and call one of them by its listed name")
            .for_operator(why)
    };
    let Some(tool) = set.get(&call.tool) else {
        return Err(unknown(format!("no live tool is called `{}`", shown(&call.tool))));
    };
    let missing = tool.permissions.missing_always(&call.caller.permissions);
    if !missing.is_empty() {
        return Err(unknown(format!(
            "`{}` lacks `{}`, without which the tool is hidden",
            shown(&call.caller.subject),
            missing.join("`, `")
        )));
    }
    if !set.shows(&tool, &call.caller, gate.policy.as_ref()) {
        return Err(unknown(format!(
            "no policy could ever permit `{}` to call it, so that it is hidden",
            shown(&call.caller.subject)
        )));
    }
    Ok(Admitted { tool, in_force, call, purpose: Purpose::Call, _sealed: () })
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}
