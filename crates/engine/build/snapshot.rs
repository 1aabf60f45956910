//! Takes a snapshot of the initialised engine as a module, and compiles it.

use std::{
    error::Error,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use wasmtime::{Caller, Config, Engine, Extern, Linker, Module, Store};
use wasmtime_wizer::Wizer;

use crate::config;

pub struct Snapshot {
    pub wasm: Vec<u8>,
    /// The memory of an instance that has not run anything.
    pub memory: Vec<u8>,
}

/// Runs `engine_init` with the prelude and keeps the resulting memory.
pub fn take(wasm: &[u8], prelude: &str) -> Result<Snapshot, Box<dyn Error>> {
    let engine = Engine::new(settings().consume_fuel(false).epoch_interruption(false))?;
    let mut store = Store::new(&engine, SnapshotBuild { prelude: prelude.to_owned(), complaint: None });
    let mut wizer = Wizer::new();
    wizer.init_func("engine_init");
    let made = block_on(wizer.run(&mut store, wasm, async |store, module| {
        linker(store.engine(), module)?.instantiate_async(store, module).await
    }));
    let wasm = match (made, &store.data().complaint) {
        (Err(_), Some(complaint)) => return Err(format!("the prelude does not run: {complaint}").into()),
        (made, _) => made?,
    };
    let memory = block_on(untouched_memory(&engine, &wasm))?;
    Ok(Snapshot { wasm, memory })
}

async fn untouched_memory(engine: &Engine, wasm: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let module = Module::new(engine, wasm)?;
    let mut store = Store::new(engine, SnapshotBuild { prelude: String::new(), complaint: None });
    let instance = linker(engine, &module)?.instantiate_async(&mut store, &module).await?;
    let memory = instance.get_memory(&mut store, "memory").ok_or("the engine exports no memory")?;
    Ok(memory.data(&store).to_vec())
}

/// Compiles for `target` in general, not for this processor, so the binary also runs on other machines.
pub fn compile(wasm: &[u8], target: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut config = settings();
    config.target(target)?;
    Ok(Engine::new(&config)?.precompile_module(wasm)?)
}

/// The snapshot tool uses all features of Wasmtime; the worker has no garbage collector, threads or components.
fn settings() -> Config {
    let mut settings = config::config();
    settings.gc_support(false).wasm_threads(false).wasm_component_model(false).wasm_exceptions(false);
    settings
}

struct SnapshotBuild {
    prelude: String,
    complaint: Option<String>,
}

fn linker(engine: &Engine, module: &Module) -> wasmtime::Result<Linker<SnapshotBuild>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(
        "toolgate",
        "prelude",
        |mut caller: Caller<'_, SnapshotBuild>, into: u32, capacity: u32| {
            let prelude = caller.data().prelude.clone();
            if prelude.len() > capacity as usize {
                wasmtime::bail!("the prelude is longer than the glue's buffer");
            }
            let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
                wasmtime::bail!("the engine exports no memory");
            };
            memory.write(&mut caller, into as usize, prelude.as_bytes())?;
            Ok(u32::try_from(prelude.len())?)
        },
    )?;
    linker.func_wrap(
        "toolgate",
        "call",
        |mut caller: Caller<'_, SnapshotBuild>,
         op: i32,
         text: u32,
         text_len: u32,
         bytes: u32,
         bytes_len: u32|
         -> u64 {
            let read = |caller: &mut Caller<'_, SnapshotBuild>, from: u32, len: u32| {
                let Some(Extern::Memory(memory)) = caller.get_export("memory") else { return String::new() };
                let from = from as usize;
                let range = memory.data(&caller).get(from..from + len as usize).unwrap_or_default();
                String::from_utf8_lossy(range).into_owned()
            };
            let (text, bytes) = (read(&mut caller, text, text_len), read(&mut caller, bytes, bytes_len));
            caller.data_mut().complaint = Some(format!("(op {op}) {text}\n{bytes}"));
            0
        },
    )?;
    linker.func_wrap(
        "wasi_snapshot_preview1",
        "clock_time_get",
        |mut caller: Caller<'_, SnapshotBuild>, _clock: i32, _precision: i64, into: u32| -> i32 {
            let Some(Extern::Memory(memory)) = caller.get_export("memory") else { return 28 };
            memory.write(&mut caller, into as usize, &0u64.to_le_bytes()).map_or(28, |()| 0)
        },
    )?;
    linker.define_unknown_imports_as_traps(module)?;
    Ok(linker)
}

/// The future never waits, so a loop is a sufficient executor.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
