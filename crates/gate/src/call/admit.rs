//! A. Is there such a live tool, and may this caller know of it?

use std::sync::Arc;

use toolgate_policy::Caller;

use super::stop::Stop;
use crate::{
    call::Purpose,
    gate::{Call, Inner},
    live::LiveTool,
    reason::Reason,
};

/// A call of a tool that exists for its caller. The tool is frozen: what is edited meanwhile counts for later calls.
#[derive(Debug)]
pub struct Admitted {
    pub call: Call,
    pub tool: Arc<LiveTool>,
    pub purpose: Purpose,
    _sealed: (),
}

pub fn admit(gate: &Inner, call: Call, draft: Option<Arc<LiveTool>>) -> Result<Admitted, Stop> {
    if gate.is_closing() {
        return Err(Stop::new(Reason::ShuttingDown, "the gateway is stopping; call again in a while"));
    }
    if let Some(tool) = draft {
        return Ok(Admitted { call, tool, purpose: Purpose::LocalPass, _sealed: () });
    }
    let unknown = |why: String| {
        // One answer for what is not there and for what this caller may not know of.
        Stop::new(Reason::UnknownTool, format!("there is no tool `{}`", shown(&call.tool)))
            .with_remedy("list the tools again and call one of them by its listed name")
            .for_operator(why)
    };
    let Some(tool) = gate.live().get(&call.tool) else {
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
    Ok(Admitted { tool, call, purpose: Purpose::Call, _sealed: () })
}

/// Would `admit` let this caller through?
pub fn is_visible(tool: &LiveTool, caller: &Caller) -> bool {
    tool.permissions.missing_always(&caller.permissions).is_empty()
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}
