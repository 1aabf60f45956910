//! How does the gate run JavaScript? Through this: a tool made ready, and its report in the gate's words.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_gate::{
    EffectEntry, EffectKind, Handlers, Reason, Refusal, RunFailure, RunFuture, RunReport, RunRequest,
    RunUsage, Runnable, StopFlag, Survey, Surveyed, Touch,
};
use toolgate_policy::{EffectivePolicy, Mask, SecretSource};
use toolgate_sandbox::Lease;
use toolgate_spec::model::{SandboxKind, ToolSpec};

use super::{EffectRecord, Failure, JsReport, JsRunner, JsTool, Returned, missing_helpers, secrets};
use crate::{places::Places, survey::CallGrants};

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
        check_sandbox(policy)?;
        secrets::check_variables(spec, self.secrets.as_ref())?;
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
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal> {
        let survey = self.tool.survey(arguments, stop)?;
        Ok(survey.into_survey(|granted| SurveyedJs { prepared: self, granted, lease: None }))
    }

    fn survey_waits_for_disk(&self) -> bool {
        self.tool.survey_waits_for_disk()
    }

    fn mask(&self) -> Mask {
        secrets::mask_of(&self.spec, self.secrets.as_ref())
    }
}

/// A JavaScript call that is ready to run.
#[derive(Debug)]
struct SurveyedJs {
    prepared: Arc<Prepared>,
    granted: CallGrants,
    lease: Option<Lease>,
}

impl Surveyed for SurveyedJs {
    fn reserve<'r>(&'r mut self, caller: &'r str) -> RunFuture<'r, Result<(), RunFailure>> {
        Box::pin(async move {
            let Prepared { runner, tool, .. } = self.prepared.as_ref();
            self.lease = Some(runner.lease(tool, caller).await.map_err(failed)?);
            Ok(())
        })
    }

    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        self.prepared.tool.survey(arguments, stop).map(|survey| survey.touches)
    }

    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        Box::pin(async move {
            let Self { prepared, granted, lease } = *self;
            let Prepared { runner, tool, secrets, .. } = prepared.as_ref();
            translate(runner.run_in(lease, tool, &granted, request, secrets.as_ref()).await)
        })
    }
}

/// Whoever asks for a container would be shown one, and the tool would run in a worker like any other. `none` asks for no
/// wall and gets the worker's, which are no less.
fn check_sandbox(policy: &EffectivePolicy) -> Result<(), String> {
    let sandbox = &policy.execution.sandbox;
    match sandbox.value {
        SandboxKind::Process | SandboxKind::None => Ok(()),
        SandboxKind::Container => Err(format!(
            "a container is for commands; JavaScript runs in a worker with a jail of its own, and `execution.sandbox` is `container` ({}); set it to `process`, or leave it out, and `worker.isolation: per-call` gives each call a worker of its own",
            sandbox.origin
        )),
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
        // The calls of helpers are few enough to be told one by one.
        effects_dropped: 0,
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
        refused_dropped: 0,
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
    use serde_json::json;
    use toolgate_policy::{PolicySet, UserOverrides};
    use toolgate_sandbox::{Isolation, Namespaces, Pool, PoolConfig, Required};
    use toolgate_secrets::Detector;
    use toolgate_spec::Format;

    use super::*;
    use crate::js::FailureCode;

    /// Makes ready a tool for which the operator has set `execution.sandbox`. No worker is started for that.
    fn prepare(extends: Option<&str>, sandbox: Option<&str>) -> Result<(), String> {
        let mut document = json!({
            "name": "probe", "description": "Answers. Returns nothing.", "codeType": "Javascript",
            "code": "return null", "params": [],
        });
        if let Some(extends) = extends {
            document["x-toolgate-capability"] = json!({ "extends": extends });
        }
        let checked = toolgate_spec::check(document.to_string().as_bytes(), Format::Json);
        let spec = checked.tools.into_iter().next().and_then(|tool| tool.spec).unwrap();
        let user = sandbox.map(|kind| {
            let capability = json!({ "execution": { "sandbox": kind } });
            let text = json!({ "tools": { "probe": { "capability": capability } } }).to_string();
            UserOverrides::parse(&text, Format::Json).unwrap()
        });
        let policy =
            toolgate_policy::resolve(&spec, PolicySet::shipped().as_ref().unwrap(), user.as_ref()).unwrap();
        let pool = PoolConfig {
            program: "/bin/false".into(),
            workers: 1,
            processors: 1,
            spares: 0,
            waiting: 1,
            recycle_after: 1,
            isolation: Isolation::Shared,
            required: Required::MINIMUM,
            namespaces: Namespaces::Enter,
            cpu_seconds: 1,
        };
        let handlers = JsHandlers {
            runner: JsRunner::new(Pool::new(pool).unwrap(), None, Detector::shipped().unwrap()),
            places: Places {
                workspace: "/tmp".into(),
                home: "/tmp/home".into(),
                state: "/tmp/state".into(),
                guarded: Vec::new(),
            },
            secrets: Arc::new(|name: &str| std::env::var(name).ok()),
        };
        handlers.prepare(&Arc::new(spec), &policy).map(|_| ())
    }

    /// Shown as `container` and run in a worker: whoever asked for the stronger wall would not know that it is not there.
    #[test]
    fn javascript_that_is_to_run_in_a_container_is_not_made_ready() {
        for (extends, sandbox, origin) in
            [(None, Some("container"), "user"), (Some("bash"), None, "defaults:bash")]
        {
            let why = prepare(extends, sandbox).unwrap_err();
            assert!(why.starts_with("a container is for commands; JavaScript runs in a worker"), "{why}");
            assert!(why.contains(&format!("`container` ({origin})")) && why.contains("`process`"), "{why}");
        }
        for sandbox in [None, Some("process"), Some("none")] {
            assert_eq!(prepare(None, sandbox), Ok(()));
        }
        assert_eq!(prepare(Some("bash"), Some("process")), Ok(()));
    }

    #[test]
    fn every_failure_has_a_reason_of_its_own() {
        for code in FailureCode::ALL {
            assert!(Reason::from_code(code.code()).is_some(), "{}", code.code());
        }
    }
}
