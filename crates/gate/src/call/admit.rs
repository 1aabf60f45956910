//! Stage A: finds the live tool and checks that this caller may see it.

use std::sync::Arc;

use super::support::stop::StoppedCall;
use crate::{
    call::Purpose,
    gate::{Call, GateInner},
    live::LiveTool,
    reason::Reason,
    registry::LiveConfig,
};

/// A call of a tool that its caller may see. The tool is fixed from here on: edits apply to later calls.
#[derive(Debug)]
pub struct Admitted {
    pub call: Call,
    pub tool: Arc<LiveTool>,
    /// The set that the tool comes from, with its policies and settings.
    pub(crate) live_config: Arc<LiveConfig>,
    pub purpose: Purpose,
    _sealed: (),
}

pub fn admit(gate: &GateInner, call: Call, draft: Option<Arc<LiveTool>>) -> Result<Admitted, StoppedCall> {
    if gate.is_closing() {
        return Err(StoppedCall::new(Reason::ShuttingDown, "the gateway is stopping; call again in a while"));
    }
    if let Some(tool) = draft {
        let live_config = gate.live_config();
        return Ok(Admitted { call, tool, live_config, purpose: Purpose::LocalPass, _sealed: () });
    }
    let live_config = gate.live_config();
    let set = &live_config.set;
    let unknown = |why: String| {
        // The same answer for a tool that does not exist and for one that this caller may not see.
        StoppedCall::new(Reason::UnknownTool, format!("there is no tool `{}`", shown(&call.tool)))
            .with_remedy("list the tools again and call one of them by its listed name")
            .for_operator(why)
    };
    let Some(tool) = set.get(&call.tool) else {
        return Err(unknown(format!("no live tool is called `{}`", shown(&call.tool))));
    };
    let missing = tool.permissions.missing_always(&call.caller.permissions);
    if !missing.is_empty() {
        return Err(unknown(format!(
            "the tool is hidden from `{}`, which lacks `{}`",
            shown(&call.caller.subject),
            missing.join("`, `")
        )));
    }
    if !set.shows(&tool, &call.caller, gate.policy.as_ref()) {
        return Err(unknown(format!(
            "the tool is hidden from `{}`, because no policy could ever permit the call",
            shown(&call.caller.subject)
        )));
    }
    Ok(Admitted { tool, live_config, call, purpose: Purpose::Call, _sealed: () })
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}
