//! Runs one call: a fresh instance of the snapshot, the tool's image copied over it, one entry point. The instance is
//! dropped afterwards.

mod call;
mod host;
mod image;
mod limits;
mod ticker;

pub use call::{CallState, EffectPort, LinkLost};
pub use image::Image;
use toolgate_sandbox::wire::{Done, Load, RunLimits, RunScript, ScriptEnding, ScriptUsage};
use wasmtime::{
    Enabled, Engine, Instance, InstanceAllocationStrategy, InstancePre, Linker, Memory,
    PoolingAllocationConfig, Store, Trap, TypedFunc,
};

use self::{call::CallStop, ticker::Ticker};

/// The engine, loaded once per worker process.
pub struct ScriptMachine {
    engine: Engine,
    prepared: InstancePre<CallState>,
    ticker: Ticker,
}

/// A fresh instance that has not run anything. Good for one call.
pub struct FreshInstance {
    store: Store<CallState>,
    instance: Instance,
    memory: Memory,
    alloc: TypedFunc<u32, u32>,
    run: TypedFunc<(u32, u32, u64, u32), u32>,
}

/// The error type of the engine.
pub type MachineError = wasmtime::Error;

impl ScriptMachine {
    pub fn new() -> Result<Self, MachineError> {
        let mut config = toolgate_engine::config();
        let mut pool = PoolingAllocationConfig::new();
        // One instance: calls run one after another, and every instance that was ever used keeps its image resident.
        pool.total_core_instances(1).total_memories(1).total_tables(1);
        pool.max_memory_size(toolgate_engine::MAX_LINEAR_MEMORY).table_elements(TABLE_ELEMENTS);
        // The image stays resident and is restored by copying. Returning pages to the kernel would cost more.
        pool.linear_memory_keep_resident(toolgate_engine::snapshot_bytes()).table_keep_resident(1 << 16);
        // PAGEMAP_SCAN needs a file and a system call that the sandbox does not allow.
        pool.pagemap_scan(Enabled::No);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config)?;
        let module = toolgate_engine::load(&engine).map_err(wasmtime::Error::new)?;
        let mut linker = Linker::new(&engine);
        host::define(&mut linker)?;
        linker.define_unknown_imports_as_traps(&module)?;
        let prepared = linker.instantiate_pre(&module)?;
        let ticker = Ticker::start(engine.clone())?;
        Ok(Self { engine, prepared, ticker })
    }

    /// Creates an instance before the request arrives, so requests do not wait for it.
    pub fn fresh(&self) -> Result<FreshInstance, MachineError> {
        let mut store = Store::new(&self.engine, CallState::idle());
        store.limiter(|call| call);
        store.set_fuel(u64::MAX)?;
        store.set_epoch_deadline(u64::MAX / 2);
        let instance = self.prepared.instantiate(&mut store)?;
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or_else(|| wasmtime::format_err!("the engine exports no memory"))?;
        let alloc = instance.get_typed_func::<u32, u32>(&mut store, "engine_alloc")?;
        let run = instance.get_typed_func(&mut store, "engine_run")?;
        Ok(FreshInstance { store, instance, memory, alloc, run })
    }

    /// Evaluates a tool once and keeps the pages that this changed. The code has no effects here, and the limits of its
    /// call apply. No other instance may exist at the same time.
    pub fn load(&self, load: &Load, limits: &RunLimits) -> Result<Image, ScriptEnding> {
        let broken = |error: MachineError| ScriptEnding::Trapped(format!("{error:#}"));
        let mut fresh = self.fresh().map_err(broken)?;
        let busy = self.ticker.busy();
        fresh.limit(limits).map_err(broken)?;
        let outcome = fresh.enter_load(load);
        drop(busy);
        match fresh.ending(outcome) {
            ScriptEnding::Value(_) => {
                Ok(Image::difference(toolgate_engine::snapshot_memory(), fresh.memory.data(&fresh.store)))
            }
            ScriptEnding::Threw(error) => Err(ScriptEnding::Invalid(error)),
            other => Err(other),
        }
    }

    /// Runs the tool of `image` in `fresh`.
    pub fn run(
        &self,
        mut fresh: FreshInstance,
        image: &Image,
        run: &RunScript,
        effects: Box<dyn EffectPort>,
    ) -> (Done, FreshInstance) {
        let busy = self.ticker.busy();
        let outcome = fresh
            .limit(&run.limits)
            .and_then(|()| fresh.apply_image(image))
            .and_then(|()| fresh.enter_run(run, effects));
        drop(busy);
        let ending = fresh.ending(outcome);
        (fresh.done(ending, &run.limits), fresh)
    }

    /// Loads and runs in one step, without a worker process.
    pub fn evaluate(
        &self,
        load: &Load,
        run: &RunScript,
        effects: Box<dyn EffectPort>,
    ) -> Result<Done, MachineError> {
        Ok(match self.load(load, &run.limits) {
            Ok(image) => self.run(self.fresh()?, &image, run, effects).0,
            Err(ending) => {
                Done { ending, console: Vec::new(), console_dropped: 0, usage: ScriptUsage::default() }
            }
        })
    }
}

/// The result structure that the C glue leaves in memory.
struct EngineOutcome {
    kind: u32,
    text: Option<Vec<u8>>,
}

impl FreshInstance {
    fn limit(&mut self, limits: &RunLimits) -> Result<(), MachineError> {
        self.store.set_fuel(limits.fuel)?;
        self.store.set_epoch_deadline(ticker::ticks(limits.timeout_ms));
        self.store.data_mut().begin(limits);
        Ok(())
    }

    fn apply_image(&mut self, image: &Image) -> Result<(), MachineError> {
        let missing = image.memory_pages().saturating_sub(self.memory.size(&self.store));
        if missing > 0 {
            self.memory.grow(&mut self.store, missing)?;
        }
        image.apply_to(self.memory.data_mut(&mut self.store))
    }

    fn enter_load(&mut self, load: &Load) -> Result<EngineOutcome, MachineError> {
        let (source, source_len) = self.copy_in(load.source.as_bytes())?;
        let (names, names_len) = self.copy_in(load.names.as_bytes())?;
        let enter =
            self.instance.get_typed_func::<(u32, u32, u32, u32, u32), u32>(&mut self.store, "engine_load")?;
        let at = enter.call(&mut self.store, (source, source_len, names, names_len, load.grants))?;
        self.outcome(at)
    }

    fn enter_run(
        &mut self,
        run: &RunScript,
        effects: Box<dyn EffectPort>,
    ) -> Result<EngineOutcome, MachineError> {
        let (arguments, len) = self.copy_in(run.arguments.as_bytes())?;
        self.store.data_mut().connect(effects);
        let heap = limits::heap(&run.limits);
        let at = self.run.call(&mut self.store, (arguments, len, run.seed, heap))?;
        self.outcome(at)
    }

    /// Copies `bytes` into the linear memory, with the trailing NUL that QuickJS needs.
    fn copy_in(&mut self, bytes: &[u8]) -> Result<(u32, u32), MachineError> {
        let len = u32::try_from(bytes.len())?;
        let at = self.alloc.call(&mut self.store, len.saturating_add(1))?;
        if at == 0 {
            return Err(CallStop(ScriptEnding::Memory).into());
        }
        self.memory.write(&mut self.store, at as usize, bytes)?;
        self.memory.write(&mut self.store, at as usize + bytes.len(), &[0])?;
        Ok((at, len))
    }

    /// Untrusted code may have written anything there, so every pointer is checked.
    fn outcome(&self, at: u32) -> Result<EngineOutcome, MachineError> {
        let data = self.memory.data(&self.store);
        let word = |offset: usize| -> Option<u32> {
            let bytes = data.get((at as usize).checked_add(offset)?..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let words = (word(0), word(4), word(8));
        let (Some(kind), Some(text), Some(len)) = words else {
            wasmtime::bail!("the engine's result is outside its memory");
        };
        if text == 0 {
            return Ok(EngineOutcome { kind, text: None });
        }
        if len > self.store.data().result_limit() {
            return Err(CallStop(ScriptEnding::ResultTooLarge).into());
        }
        let range = text as usize..(text as usize).saturating_add(len as usize);
        match data.get(range) {
            Some(bytes) => Ok(EngineOutcome { kind, text: Some(bytes.to_vec()) }),
            None => wasmtime::bail!("the engine's result is outside its memory"),
        }
    }

    fn ending(&self, outcome: Result<EngineOutcome, MachineError>) -> ScriptEnding {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return Self::stopped(&error),
        };
        let text = outcome.text.map(call::text_of).map(limits::scalar_text);
        let heap_is_full = self.store.data().was_refused_memory();
        match (outcome.kind, text) {
            (0, text) => ScriptEnding::Value(text.unwrap_or_default()),
            (1, _) => ScriptEnding::Undefined,
            (2, None) => ScriptEnding::Memory,
            // Settling a promise may have failed for lack of memory, too.
            (4, None) | (3, _) if heap_is_full => ScriptEnding::Memory,
            (2, Some(error)) => limits::classify(error),
            (3, _) => ScriptEnding::Unsettled,
            (4, None) => ScriptEnding::NotData(String::new()),
            // A result can be data and still exceed the limit when it is serialised.
            (4, Some(error)) => match limits::classify(error) {
                ScriptEnding::Threw(error) => ScriptEnding::NotData(error),
                limit => limit,
            },
            (5, _) => ScriptEnding::Escaped,
            (kind, _) => ScriptEnding::Trapped(format!("the engine returned the unknown result kind {kind}")),
        }
    }

    fn stopped(error: &MachineError) -> ScriptEnding {
        if let Some(CallStop(ending)) = error.downcast_ref::<CallStop>() {
            return ending.clone();
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => ScriptEnding::Statements,
            Some(Trap::Interrupt) => ScriptEnding::Timeout,
            Some(Trap::StackOverflow) => ScriptEnding::Stack,
            _ => ScriptEnding::Trapped(format!("{error:#}")),
        }
    }

    fn done(&mut self, ending: ScriptEnding, limits: &RunLimits) -> Done {
        let left = self.store.get_fuel().unwrap_or(0);
        self.store.data_mut().finish(ending, limits.fuel.saturating_sub(left))
    }
}

impl std::fmt::Debug for ScriptMachine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ScriptMachine").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for FreshInstance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FreshInstance").finish_non_exhaustive()
    }
}

const TABLE_ELEMENTS: usize = 20_000;
