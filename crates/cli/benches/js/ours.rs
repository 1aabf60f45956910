//! Toolgate's worker pool as the gateway uses it, from the lease to the report.

use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::runtime::Runtime;
use toolgate_sandbox::{
    Effects, Isolation, JailKind, Namespaces, Pool, PoolConfig, ScriptReport, Tenant,
    wire::{Effect, EffectAnswer, JsonAnswer, Load, RunLimits, RunScript, ScriptEnding},
};

use crate::{
    variant::{EngineVariant, VariantKind},
    work::{ANSWER, BenchBody, HostAccess},
};

pub struct WorkerPool {
    runtime: Runtime,
    pool: Pool,
}

/// The request to a worker.
#[derive(Clone, Debug)]
pub struct BenchTool {
    load: Load,
    arguments: String,
}

impl BenchTool {
    pub fn new(work: &BenchBody) -> Self {
        let names = Value::from(work.names).to_string();
        let grants = match work.host {
            HostAccess::None => 0,
            HostAccess::ReadText => READ_GRANT,
        };
        let load = Load { key: key_of(&work.source), grants, names, source: work.source.clone() };
        Self { load, arguments: work.arguments.clone() }
    }

    /// The same tool under a new name, which no worker has cached.
    pub fn renamed(mut self, number: u64) -> Self {
        if let Some(place) = self.load.key.first_chunk_mut::<8>() {
            *place = number.to_le_bytes();
        }
        self
    }
}

impl WorkerPool {
    /// As in production: workers are replaced, and one is spare.
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// One worker that is never replaced.
    pub fn of_one_worker() -> Self {
        Self::with(|config| {
            config.workers = 1;
            config.spares = 0;
            config.recycle_after = u32::MAX;
        })
    }

    fn with(change: impl FnOnce(&mut PoolConfig)) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut config = PoolConfig {
            program: PathBuf::from(env!("CARGO_BIN_EXE_toolgate")),
            workers: 4 * CALLERS,
            processors: CALLERS,
            spares: 1,
            waiting: 8,
            recycle_after: 1_000,
            isolation: Isolation::PerCaller,
            required: JailKind::Worker.minimum(),
            namespaces: Namespaces::Enter,
            cpu_seconds: 3_600,
        };
        change(&mut config);
        let pool = Pool::new(config).expect("a pool");
        runtime.block_on(pool.warm()).expect("workers start here");
        Self { runtime, pool }
    }

    pub fn run(&self, tool: &BenchTool, limits: RunLimits) -> (Duration, ScriptReport) {
        let begin = Instant::now();
        let report = self.runtime.block_on(one_call(&self.pool, tool, limits));
        (begin.elapsed(), report)
    }

    pub fn value(&self, tool: &BenchTool) -> (Duration, String) {
        let (time, report) = self.run(tool, generous());
        (time, value_of(report))
    }
}

impl EngineVariant for WorkerPool {
    fn kind(&self) -> VariantKind {
        VariantKind::Ours
    }

    fn call(&mut self, work: &BenchBody) -> (Duration, String) {
        self.value(&BenchTool::new(work))
    }

    fn rate(&mut self, work: &BenchBody, span: Duration) -> f64 {
        let begin = Instant::now();
        let calls = self.runtime.block_on(async {
            let caller = || {
                let (pool, tool) = (self.pool.clone(), BenchTool::new(work));
                async move {
                    let mut calls = 0_u32;
                    while begin.elapsed() < span {
                        value_of(one_call(&pool, &tool, generous()).await);
                        calls += 1;
                    }
                    calls
                }
            };
            let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(caller())).collect();
            let mut calls = 0;
            for caller in callers {
                calls += caller.await.expect("a caller ends well");
            }
            calls
        });
        f64::from(calls) / begin.elapsed().as_secs_f64()
    }
}

async fn one_call(pool: &Pool, tool: &BenchTool, limits: RunLimits) -> ScriptReport {
    let tenant = Tenant { caller: "bench".to_owned(), tool: tool.load.key };
    let lease = pool.lease(&tenant).await.expect("a worker is free");
    let run = RunScript { key: tool.load.key, limits, seed: 1, arguments: tool.arguments.clone() };
    lease.run(&tool.load, run, &mut OneNote).await.expect("the worker answers")
}

fn value_of(report: ScriptReport) -> String {
    match report.done.ending {
        ScriptEnding::Value(text) => text,
        other => panic!("no value but {other:?}"),
    }
}

/// A host with one file.
struct OneNote;

impl Effects for OneNote {
    fn perform(&mut self, effect: Effect) -> Pin<Box<dyn Future<Output = EffectAnswer> + Send + '_>> {
        assert!(
            matches!(effect, Effect::File(call) if call.function == "readText"),
            "another effect was asked for"
        );
        let text = Value::from(ANSWER.as_str()).to_string();
        Box::pin(async { EffectAnswer::Json(JsonAnswer { text, moved: 0 }) })
    }
}

pub fn generous() -> RunLimits {
    RunLimits {
        timeout_ms: 10_000,
        fuel: u64::MAX / 2,
        memory_bytes: 64 << 20,
        console_lines: 1_000,
        console_bytes: 64 << 10,
        result_bytes: 1 << 20,
        host_calls: 1_000,
        host_bytes: 64 << 20,
    }
}

fn key_of(source: &str) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(source.as_bytes()).into()
}

const CALLERS: usize = 2;
const READ_GRANT: u32 = 2;
