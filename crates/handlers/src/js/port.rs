//! How does the gate run JavaScript? Through this: a tool made ready, and its report in the gate's words.

use std::{future::Future, pin::Pin, sync::Arc};

use serde_json::{Map, Value};
use toolgate_gate::{
    EffectEntry, EffectKind, Handlers, Reason, Refusal, Room, RunFailure, RunReport, RunRequest, RunUsage,
    Runnable, Survey,
};
use toolgate_policy::{EffectivePolicy, Mask};
use toolgate_sandbox::Lease;
use toolgate_spec::model::ToolSpec;

use super::{
    EffectRecord, Failure, JsReport, JsRunner, JsTool, Returned, SecretSource, missing_helpers, secrets,
};
use crate::places::Places;

/// The handler of JavaScript tools.
#[derive(Clone)]
pub struct JsHandlers {
    pub runner: JsRunner,
    pub places: Places,
    pub secrets: Arc<dyn SecretSource>,
}

impl Handlers for JsHandlers {
    fn prepare(&self, spec: &Arc<ToolSpec>, policy: &EffectivePolicy) -> Result<Arc<dyn Runnable>, String> {
        if let Some(helper) = missing_helpers(spec).first() {
            return Err(format!("it asks for the helper `{helper}`, which is not offered here"));
        }
        let tool = JsTool::new(Arc::clone(spec), policy, &self.places)
            .ok_or("it is no JavaScript; its handler is another one")?;
        Ok(Arc::new(Prepared {
            tool,
            spec: Arc::clone(spec),
            runner: self.runner.clone(),
            secrets: Arc::clone(&self.secrets),
        }))
    }
}

struct Prepared {
    tool: JsTool,
    spec: Arc<ToolSpec>,
    runner: JsRunner,
    secrets: Arc<dyn SecretSource>,
}

impl Runnable for Prepared {
    fn survey(&self, arguments: &Map<String, Value>) -> Result<Survey, Refusal> {
        self.tool.survey(arguments)
    }

    fn make_room<'r>(
        &'r self,
        caller: &'r str,
    ) -> Pin<Box<dyn Future<Output = Result<Room, RunFailure>> + Send + 'r>> {
        Box::pin(async move { self.runner.lease(&self.tool, caller).await.map(Room::new).map_err(failed) })
    }

    fn run<'r>(&'r self, request: RunRequest<'r>) -> Pin<Box<dyn Future<Output = RunReport> + Send + 'r>> {
        Box::pin(async move {
            let RunRequest { arguments, survey, caller, room, .. } = request;
            let leased = room.and_then(Room::take::<Lease>);
            let secrets = self.secrets.as_ref();
            translate(self.runner.run_in(leased, &self.tool, arguments, survey, secrets, caller).await)
        })
    }

    fn mask(&self) -> Mask {
        secrets::mask_of(&self.spec, self.secrets.as_ref())
    }
}

fn translate(report: JsReport) -> RunReport {
    let usage = report.usage;
    RunReport {
        outcome: match report.outcome {
            Ok(Returned::Value(value)) => Ok(Some(value)),
            Ok(Returned::Undefined) => Ok(None),
            Err(failure) => Err(failed(failure)),
        },
        console: report.console.into_iter().map(|line| (line.level.name(), line.text)).collect(),
        console_dropped: report.console_dropped,
        effects: report.effects.into_iter().map(effect).collect(),
        usage: RunUsage {
            statements: usage.statements,
            memory_bytes: usage.memory_bytes,
            host_calls: usage.host_calls,
            host_bytes: usage.host_bytes,
            elapsed_us: usage.elapsed_us,
            helpers: usage.helpers,
        },
        walls: report.strength.map(toolgate_sandbox::Strength::names).unwrap_or_default(),
        refused: Vec::new(),
        withheld: report.withheld,
        worker: report.worker,
    }
}

fn failed(failure: Failure) -> RunFailure {
    let helper = failure.helper.map(|helper| [helper.kind, helper.helper, helper.reason]);
    RunFailure {
        reason: Reason::from_code(failure.code.code()).unwrap_or(Reason::WorkerMisbehaved),
        message: failure.message,
        stack: failure.stack,
        helper,
        heard: None,
    }
}

pub(super) fn effect(record: EffectRecord) -> EffectEntry {
    let kind = match record.what.strip_prefix("safety.fs.") {
        None => EffectKind::Fetch,
        Some(function) if WRITING.contains(&function) => EffectKind::Write,
        Some(_) => EffectKind::Read,
    };
    EffectEntry {
        kind,
        what: record.what,
        target: record.target,
        to: record.to,
        outcome: record.outcome,
        bytes: record.bytes,
        elapsed: record.elapsed,
    }
}

impl std::fmt::Debug for JsHandlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsHandlers").field("places", &self.places).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("tool", &self.spec.name).finish_non_exhaustive()
    }
}

const WRITING: &[&str] = &["writeText", "appendText", "editText", "copy", "move", "delete", "deleteDir"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::js::FailureCode;

    #[test]
    fn every_failure_has_a_reason_of_its_own() {
        for code in FailureCode::ALL {
            assert!(Reason::from_code(code.code()).is_some(), "{}", code.code());
        }
    }
}
