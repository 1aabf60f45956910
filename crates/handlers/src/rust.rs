//! Runs tools that are functions of the program that embeds the gateway.
//!
//! They run in its process, without a sandbox. The gate checks their arguments, asks, filters and records as for every other
//! tool, and the report says that no isolation layer was in force.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout},
};
use toolgate_gate::{
    Handlers, Reason, Refusal, RunFailure, RunFuture, RunReport, RunRequest, RunUsage, Runnable, StopFlag,
    Survey, Surveyed, Touch,
};
use toolgate_policy::{EffectivePolicy, Mask};
use toolgate_spec::model::{SandboxKind, ToolSpec};

use crate::{
    places::Places,
    survey::{NetworkUpgrade, Surveyor},
};

type FunctionFuture = Pin<Box<dyn Future<Output = Result<Value, RunFailure>> + Send>>;

/// A function of the program: JSON arguments in, a JSON result or a message out.
#[derive(Clone)]
pub struct RustFunction(Arc<dyn Fn(Value) -> FunctionFuture + Send + Sync>);

impl RustFunction {
    /// `function` reports its own failures with [`RustFunction::failure`].
    pub fn new<F, R>(function: F) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, RunFailure>> + Send + 'static,
    {
        Self(Arc::new(move |arguments| Box::pin(function(arguments))))
    }

    pub fn failure(reason: Reason, message: impl Into<String>) -> RunFailure {
        RunFailure { reason, message: message.into(), stack: Vec::new(), helper: None, unredacted: None }
    }
}

/// The handler of tools that are functions of the program, by tool name.
#[derive(Clone, Debug)]
pub struct RustHandlers {
    pub places: Places,
    pub functions: BTreeMap<String, RustFunction>,
}

impl Handlers for RustHandlers {
    fn prepare(&self, spec: &Arc<ToolSpec>, policy: &EffectivePolicy) -> Result<Arc<dyn Runnable>, String> {
        let Some(function) = self.functions.get(&spec.name) else {
            return Err("it is a function of a program, and this program has none of that name".to_owned());
        };
        let sandbox = &policy.execution.sandbox;
        if sandbox.value != SandboxKind::None {
            return Err(format!(
                "it is code of this program and runs without a sandbox, and `execution.sandbox` is `{}` ({}); \
                 leave the setting out for this tool, or do not register it",
                sandbox.value.name(),
                sandbox.origin
            ));
        }
        Ok(Arc::new(PreparedFunction {
            name: spec.name.clone(),
            surveyor: Surveyor::new(spec, policy, &self.places, NetworkUpgrade::Refuse),
            function: function.clone(),
            deadline: Duration::from_millis(policy.execution.timeout_ms.value),
        }))
    }
}

struct PreparedFunction {
    name: String,
    surveyor: Surveyor,
    function: RustFunction,
    deadline: Duration,
}

impl Runnable for PreparedFunction {
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal> {
        let survey = self.surveyor.survey(arguments, stop)?;
        Ok(survey.into_survey(|_granted| SurveyedFunction(self)))
    }

    fn survey_waits_for_disk(&self) -> bool {
        self.surveyor.waits_for_disk()
    }

    fn mask(&self) -> Mask {
        Mask::new(&[])
    }
}

/// A call of a Rust function that is ready to run. The function opens its files by itself.
#[derive(Debug)]
struct SurveyedFunction(Arc<PreparedFunction>);

impl Surveyed for SurveyedFunction {
    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        self.0.surveyor.survey(arguments, stop).map(|survey| survey.touches)
    }

    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        let arguments = Value::Object(request.arguments.clone());
        Box::pin(async move {
            let tool = &self.0;
            let begun = Instant::now();
            // A separate task: a panic ends the task and not the call.
            let mut task = EndOnDrop(tokio::spawn((tool.function.0)(arguments)));
            let outcome = match timeout(tool.deadline, &mut task.0).await {
                Ok(Ok(outcome)) => outcome.map(Some),
                Ok(Err(_)) => Err(RustFunction::failure(Reason::ToolFailed, "the tool panicked")),
                Err(_) => Err(RustFunction::failure(
                    Reason::Timeout,
                    format!("not done within {} ms", tool.deadline.as_millis()),
                )),
            };
            report(outcome, begun.elapsed())
        })
    }
}

/// Aborts the task when the call ends, also at the deadline or if the caller disconnects.
struct EndOnDrop<T>(JoinHandle<T>);

impl<T> Drop for EndOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn report(outcome: Result<Option<Value>, RunFailure>, elapsed: Duration) -> RunReport {
    let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    RunReport {
        outcome,
        console: Vec::new(),
        console_dropped: 0,
        effects: Vec::new(),
        effects_dropped: 0,
        usage: RunUsage { elapsed_us, ..RunUsage::default() },
        layers: vec![NO_LAYER.to_owned()],
        refused: Vec::new(),
        refused_dropped: 0,
        withheld: Vec::new(),
        worker: None,
    }
}

/// Reported instead of isolation layers: the tool ran without any.
const NO_LAYER: &str = "none";

impl fmt::Debug for RustFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RustFunction")
    }
}

impl fmt::Debug for PreparedFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedFunction").field("tool", &self.name).finish_non_exhaustive()
    }
}
