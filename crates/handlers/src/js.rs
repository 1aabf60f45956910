//! Runs JavaScript tools: wraps the code, loads it into a jailed worker and performs its effects with the grants of
//! the call.

mod effects;
mod file_calls;
mod helpers;
mod port;
mod report;
pub(crate) mod secrets;
mod source;
pub(crate) mod values;

use std::{sync::Arc, time::Duration};

pub use helpers::missing_helpers;
pub use port::JsHandlers;
pub use secrets::check_variables;
use serde_json::{Map, Value};
use toolgate_egress::{Egress, EgressRules};
use toolgate_gate::{
    ApprovedSecrets, DiskCheckPermits, Purpose, Refusal, RunFailure, RunReport, RunRequest, StopFlag,
    UnreportedEffects,
};
use toolgate_policy::{EffectivePolicy, Mask, SecretSource, policy_digest};
use toolgate_sandbox::{
    Lease, Pool, Tenant,
    wire::{Load, RunLimits, RunScript},
};
use toolgate_secrets::Detector;
use toolgate_spec::model::{Body, ToolSpec};

use self::effects::{CallEffects, EffectScope};
use crate::{
    files::{FileGrants, RedactedReads, SecretRedactor},
    grants,
    guard::SecretGuard,
    places::Places,
    survey::{CallGrants, CallSurvey, NetworkUpgrade, Surveyor},
};

/// Runs JavaScript tools. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JsRunner {
    pool: Pool,
    egress: Option<Egress>,
    detector: Arc<Detector>,
}

/// A prepared tool, for any number of calls.
#[derive(Clone, Debug)]
pub struct JsTool {
    load: Arc<Load>,
    identity: [u8; 32],
    spec: Arc<ToolSpec>,
    limits: RunLimits,
    rules: Arc<EgressRules>,
    files: Option<Arc<FileGrants>>,
    redacted_reads: Option<RedactedReads>,
    surveyor: Arc<Surveyor>,
    prefix: usize,
}

impl JsTool {
    /// `None` if the body is not JavaScript.
    pub fn new(spec: Arc<ToolSpec>, policy: &EffectivePolicy, places: &Places) -> Option<Self> {
        let Body::JavaScript { code } = &spec.body else { return None };
        let names = source::names(&spec);
        let wrapped = source::wrap(code, &names);
        let rules = grants::rules(&policy.network);
        let files = grants::files(policy, places);
        let bits = grants::bits(&policy.network, &policy.files);
        let names = Value::from(names).to_string();
        let load =
            Load { key: source::key(&wrapped.text, &names, bits), grants: bits, names, source: wrapped.text };
        Some(Self {
            identity: source::identity(&spec, &load.key, &policy_digest(policy)),
            load: Arc::new(load),
            limits: limits(policy),
            rules: Arc::new(rules),
            files: files.map(Arc::new),
            redacted_reads: grants::redacted_reads(policy),
            surveyor: Arc::new(Surveyor::new(&spec, policy, places, NetworkUpgrade::Refuse)),
            prefix: wrapped.prefix,
            spec,
        })
    }

    /// Resolves what a call with these arguments would touch.
    pub fn survey(
        &self,
        arguments: &Map<String, Value>,
        stop: &StopFlag,
    ) -> Result<CallSurvey<CallGrants>, Refusal> {
        self.surveyor.survey(arguments, stop)
    }

    pub fn survey_waits_for_disk(&self) -> bool {
        self.surveyor.waits_for_disk()
    }

    /// Changes the limits of the policy, for tests and for operators who know why.
    #[must_use]
    pub fn with_limits(mut self, change: impl FnOnce(&mut RunLimits)) -> Self {
        change(&mut self.limits);
        self
    }
}

impl JsRunner {
    /// Without egress every fetch is denied. The detector scans requests and files.
    pub fn new(pool: Pool, egress: Option<Egress>, detector: Arc<Detector>) -> Self {
        Self { pool, egress, detector }
    }

    /// Leases a worker for one call of the tool.
    pub async fn lease(&self, tool: &JsTool, caller: &str) -> Result<Lease, RunFailure> {
        let tenant = Tenant { caller: caller.to_owned(), tool: tool.identity };
        self.pool.lease(&tenant).await.map_err(|failure| report::worker_failure(&failure))
    }

    /// Ends idle workers, and returns when their ends have been reported.
    pub fn retire_idle(&self) {
        self.pool.retire_idle();
    }

    /// Runs one call. Dropping the future kills the worker.
    pub async fn run(
        &self,
        tool: &JsTool,
        arguments: &Map<String, Value>,
        granted: &CallGrants,
        secrets: &dyn SecretSource,
        caller: &str,
    ) -> RunReport {
        let request = RunRequest {
            arguments,
            approved_secrets: &ApprovedSecrets::default(),
            unreported: &UnreportedEffects::default(),
            caller,
            purpose: Purpose::Call,
            disk_checks: &DiskCheckPermits::default(),
        };
        self.run_in(None, tool, granted, request, secrets).await
    }

    /// Runs one call in the worker that was leased for it.
    pub async fn run_in(
        &self,
        leased: Option<Lease>,
        tool: &JsTool,
        granted: &CallGrants,
        request: RunRequest<'_>,
        secrets: &dyn SecretSource,
    ) -> RunReport {
        let RunRequest { arguments, approved_secrets: agreed, unreported: left, caller, disk_checks, .. } =
            request;
        let bound = match secrets::bind(&tool.spec, arguments, secrets) {
            Ok(bound) => bound,
            Err(failure) => return report::without_a_run(failure),
        };
        let run = RunScript {
            key: tool.load.key,
            limits: tool.limits,
            seed: source::seed(),
            arguments: Value::Object(bound.values).to_string(),
        };
        let leased = match leased {
            Some(lease) => Ok(lease),
            None => self.lease(tool, caller).await,
        };
        let lease = match leased {
            Ok(lease) => lease,
            Err(failure) => return report::without_a_run(failure),
        };
        let worker = lease.worker();
        let time = Duration::from_millis(u64::from(tool.limits.timeout_ms));
        let scope = EffectScope {
            egress: self.egress.as_ref().map(|egress| {
                egress.with_guard(Arc::new(SecretGuard::new(&self.detector, &bound.sent, agreed)))
            }),
            rules: Arc::clone(granted.rules.as_ref().unwrap_or(&tool.rules)),
            methods_to_ask_for: tool.surveyor.unapproved_methods(granted),
            files: tool.files.clone(),
            judged: granted.judged_paths(),
            redactor: tool.redacted_reads.map(|reads| SecretRedactor::new(&self.detector, reads)),
            disk_checks: disk_checks.clone(),
            caller: caller.to_owned(),
        };
        let effects = CallEffects::new(scope, &bound.sent, time);
        let mut running = JsRun { effects, mask: &bound.mask, left };
        let outcome = lease.run(&tool.load, run, &mut running.effects).await;
        let (records, withheld) = (running.effects.take_records(), running.effects.take_found());
        let report = report::make(outcome, records, &bound.mask, tool);
        // Set even if the worker died, because alerts identify a call by its worker.
        RunReport { withheld, worker, ..report }
    }
}

/// If it is dropped during the call, it hands the effects to the journal.
struct JsRun<'r> {
    effects: CallEffects,
    mask: &'r Mask,
    left: &'r UnreportedEffects,
}

impl Drop for JsRun<'_> {
    fn drop(&mut self) {
        let records = self.effects.take_records().into_iter();
        let told = records.map(|entry| effects::masked(&entry, self.mask)).collect();
        // A call makes few enough helper calls to list all of them.
        let dropped = 0;
        self.left.add(told, dropped);
    }
}

/// Fuel per declared statement. See `docs/runtime.md`.
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
        // The filter stage checks the final size; this only bounds what crosses the socket.
        result_bytes: bounded(execution.max_output_bytes.value.saturating_mul(4)).min(16 << 20),
        host_calls: 1_000,
        host_bytes: 64 << 20,
    }
}
