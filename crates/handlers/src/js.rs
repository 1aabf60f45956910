//! How is a JavaScript tool run? Wrapped, loaded into a jailed worker, its effects done here with the call's grants.

mod effects;
mod failure;
mod grants;
mod helpers;
mod port;
mod report;
mod secrets;
mod source;

use std::{path::PathBuf, sync::Arc, time::Duration};

pub use effects::EffectRecord;
pub use failure::{Failure, FailureCode};
pub use helpers::missing_helpers;
pub use port::JsHandlers;
pub use report::{ConsoleLevel, ConsoleLine, JsReport, JsUsage, Returned};
pub use secrets::{EnvironmentSecrets, SecretSource};
use serde_json::{Map, Value};
use toolgate_egress::{Egress, Rules};
use toolgate_policy::EffectivePolicy;
use toolgate_sandbox::{
    Pool, Tenant,
    wire::{Load, Run, RunLimits},
};
use toolgate_spec::model::{Body, ToolSpec};

use self::effects::CallEffects;
use crate::files::FileGrants;

/// Runs JavaScript tools. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JsRunner {
    pool: Pool,
    egress: Option<Egress>,
}

/// Where this gateway keeps things.
#[derive(Clone, Debug)]
pub struct Places {
    /// What `$WORKSPACE` stands for.
    pub workspace: PathBuf,
    /// What `$HOME` stands for.
    pub home: Option<PathBuf>,
    /// The gateway's own files: state, configuration, policies, documents. No tool sees them, whatever it is granted.
    pub guarded: Vec<PathBuf>,
}

/// A tool made ready once, for any number of calls.
#[derive(Clone, Debug)]
pub struct JsTool {
    load: Arc<Load>,
    spec: Arc<ToolSpec>,
    limits: RunLimits,
    rules: Arc<Rules>,
    files: Option<Arc<FileGrants>>,
    prefix: usize,
}

impl JsTool {
    /// A tool whose body is not JavaScript has no `JsTool`.
    pub fn new(spec: Arc<ToolSpec>, policy: &EffectivePolicy, places: &Places) -> Option<Self> {
        let Body::JavaScript { code } = &spec.body else { return None };
        let names = source::names(&spec);
        let wrapped = source::wrap(code, &names);
        let rules = grants::rules(&policy.network);
        let files = grants::files(&policy.files, places);
        let bits = grants::bits(&policy.network, &policy.files);
        let names = Value::from(names).to_string();
        let load =
            Load { key: source::key(&wrapped.text, &names, bits), grants: bits, names, source: wrapped.text };
        Some(Self {
            load: Arc::new(load),
            limits: limits(policy),
            rules: Arc::new(rules),
            files: files.map(Arc::new),
            prefix: wrapped.prefix,
            spec,
        })
    }

    /// Other limits than the policy's, for tests and for operators who know why.
    #[must_use]
    pub fn with_limits(mut self, change: impl FnOnce(&mut RunLimits)) -> Self {
        change(&mut self.limits);
        self
    }
}

impl JsRunner {
    /// Without a way out every fetch is refused.
    pub fn new(pool: Pool, egress: Option<Egress>) -> Self {
        Self { pool, egress }
    }

    /// One call. Dropping the future kills the worker.
    pub async fn run(
        &self,
        tool: &JsTool,
        arguments: &Map<String, Value>,
        secrets: &dyn SecretSource,
        caller: &str,
    ) -> JsReport {
        let bound = match secrets::bind(&tool.spec, arguments, secrets) {
            Ok(bound) => bound,
            Err(failure) => return JsReport::without_a_run(failure),
        };
        let run = Run {
            key: tool.load.key,
            limits: tool.limits,
            seed: source::seed(),
            arguments: Value::Object(bound.values).to_string(),
        };
        let tenant = Tenant { caller: caller.to_owned(), tool: tool.load.key };
        let lease = match self.pool.lease(&tenant).await {
            Ok(lease) => lease,
            Err(failure) => return JsReport::without_a_run(Failure::from(failure)),
        };
        let time = Duration::from_millis(u64::from(tool.limits.timeout_ms));
        let mut effects = CallEffects::new(
            self.egress.clone(),
            Arc::clone(&tool.rules),
            tool.files.clone(),
            &bound.sent,
            time,
        );
        let outcome = lease.run(&tool.load, run, &mut effects).await;
        report::make(outcome, effects.into_records(), &bound.mask, tool)
    }
}

/// One declared statement is worth this much fuel. See `docs/runtime.md`.
pub const FUEL_PER_STATEMENT: u64 = 20_000;

fn limits(policy: &EffectivePolicy) -> RunLimits {
    let execution = &policy.execution;
    let bounded = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    RunLimits {
        timeout_ms: bounded(execution.timeout_ms.value),
        fuel: execution.max_statements.value.saturating_mul(FUEL_PER_STATEMENT),
        memory_bytes: execution.memory_bytes.value,
        console_lines: 1_000,
        console_bytes: 64 << 10,
        // The filter stage judges the released output; this only bounds what crosses the socket.
        result_bytes: bounded(execution.max_output_bytes.value.saturating_mul(4)).min(16 << 20),
        host_calls: 1_000,
        host_bytes: 64 << 20,
    }
}
