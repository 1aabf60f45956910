//! Implements the gate's handler port for JavaScript tools.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_gate::{
    Handlers, Refusal, RunFailure, RunFuture, RunReport, RunRequest, Runnable, StopFlag, Survey, Surveyed,
    Touch,
};
use toolgate_policy::{EffectivePolicy, Mask, SecretConsumer, SecretSource};
use toolgate_sandbox::Lease;
use toolgate_spec::model::{SandboxKind, ToolSpec};

use super::{JsRunner, JsTool, missing_helpers, secrets};
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
            return Err(format!("it declares the helper `{helper}`, which this gateway does not offer"));
        }
        check_sandbox(policy)?;
        secrets::check_variables(spec, self.secrets.as_ref())?;
        let tool =
            JsTool::new(Arc::clone(spec), policy, &self.places).ok_or("it is not a JavaScript tool")?;
        Ok(Arc::new(PreparedJs {
            tool,
            spec: Arc::clone(spec),
            runner: self.runner.clone(),
            secrets: Arc::clone(&self.secrets),
        }))
    }
}

struct PreparedJs {
    tool: JsTool,
    spec: Arc<ToolSpec>,
    runner: JsRunner,
    secrets: Arc<dyn SecretSource>,
}

impl Runnable for PreparedJs {
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal> {
        let survey = self.tool.survey(arguments, stop)?;
        Ok(survey.into_survey(|granted| SurveyedJs { prepared: self, granted, lease: None }))
    }

    fn survey_waits_for_disk(&self) -> bool {
        self.tool.survey_waits_for_disk()
    }

    fn mask(&self) -> Mask {
        secrets::mask_of(&self.spec, SecretConsumer::Tool(&self.spec.name), self.secrets.as_ref())
    }
}

/// A JavaScript call that is ready to run.
#[derive(Debug)]
struct SurveyedJs {
    prepared: Arc<PreparedJs>,
    granted: CallGrants,
    lease: Option<Lease>,
}

impl Surveyed for SurveyedJs {
    fn reserve<'r>(&'r mut self, caller: &'r str) -> RunFuture<'r, Result<(), RunFailure>> {
        Box::pin(async move {
            let PreparedJs { runner, tool, .. } = self.prepared.as_ref();
            self.lease = Some(runner.lease(tool, caller).await?);
            Ok(())
        })
    }

    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        self.prepared.tool.survey(arguments, stop).map(|survey| survey.touches)
    }

    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        Box::pin(async move {
            let Self { prepared, granted, lease } = *self;
            let PreparedJs { runner, tool, secrets, .. } = prepared.as_ref();
            runner.run_in(lease, tool, &granted, request, secrets.as_ref()).await
        })
    }
}

/// Rejects `container`: the setting would be displayed, but the tool would run in a worker. `none` also gets the
/// worker's isolation layers.
fn check_sandbox(policy: &EffectivePolicy) -> Result<(), String> {
    let sandbox = &policy.execution.sandbox;
    match sandbox.value {
        SandboxKind::Process | SandboxKind::None => Ok(()),
        SandboxKind::Container => Err(format!(
            "only commands run in containers; JavaScript runs in a jailed worker, but `execution.sandbox` is `container` ({}); set it to `process`, or leave it out; `worker.isolation: per-call` gives each call its own worker",
            sandbox.origin
        )),
    }
}

impl std::fmt::Debug for JsHandlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsHandlers").field("places", &self.places).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PreparedJs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedJs").field("tool", &self.spec.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_policy::{PolicySet, UserOverrides};
    use toolgate_sandbox::{Isolation, JailKind, Namespaces, Pool, PoolConfig};
    use toolgate_secrets::Detector;
    use toolgate_spec::Format;

    use super::*;

    /// Prepares a tool with this operator setting of `execution.sandbox`. No worker is started.
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
            required: JailKind::Worker.minimum(),
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

    /// Otherwise the operator would see `container` although the tool runs in a worker.
    #[test]
    fn javascript_with_a_container_sandbox_is_rejected() {
        for (extends, sandbox, origin) in
            [(None, Some("container"), "user"), (Some("bash"), None, "defaults:bash")]
        {
            let why = prepare(extends, sandbox).unwrap_err();
            assert!(
                why.starts_with("only commands run in containers; JavaScript runs in a jailed worker"),
                "{why}"
            );
            assert!(why.contains(&format!("`container` ({origin})")) && why.contains("`process`"), "{why}");
        }
        for sandbox in [None, Some("process"), Some("none")] {
            assert_eq!(prepare(None, sandbox), Ok(()));
        }
        assert_eq!(prepare(Some("bash"), Some("process")), Ok(()));
    }
}
