//! The first lines of an embedding program: the worker hook and the runtime.

use std::{
    fs,
    future::Future,
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::open::OpenError;

/// Turns this process into a worker or a jailer if it was started as one. Call it first in `main`, before any thread exists.
/// Tools run in processes that execute the same program file under another name. [`block_on`] calls it.
pub fn run_if_worker() {
    toolgate_sandbox::run_if_jailer();
    toolgate_worker::run_if_worker();
    THREADS.store(threads(), Ordering::Relaxed);
}

/// Replaces `#[tokio::main]`: calls [`run_if_worker`], starts a multi-threaded Tokio runtime, and runs `program` on it.
///
/// `#[tokio::main]` starts its threads before the body of `main`. A worker must have one thread when it enters its sandbox.
pub fn block_on<P: Future>(program: P) -> io::Result<P::Output> {
    run_if_worker();
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(program))
}

/// Fails unless this program can act as its own worker. Otherwise each worker would run the whole program again.
pub fn check() -> Result<(), OpenError> {
    let problem = match THREADS.load(Ordering::Relaxed) {
        NOT_CALLED => NO_HOOK.to_owned(),
        1 => return Ok(()),
        threads => {
            format!("`toolgate::run_if_worker()` was called when the program had {threads} threads; {LATE}")
        }
    };
    Err(OpenError { part: "worker", problem })
}

/// The number of threads. The maximum if it cannot be read, because then the program must not start workers.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(usize::MAX, Iterator::count)
}

/// The number of threads at the last call of `run_if_worker`.
static THREADS: AtomicUsize = AtomicUsize::new(NOT_CALLED);
const NOT_CALLED: usize = 0;
const NO_HOOK: &str = "`toolgate::run_if_worker()` was not called; call it first in `main`, or use `toolgate::block_on`. Tools run \
     in processes that execute the same program file under another name";
const LATE: &str = "call it before any thread exists. `#[tokio::main]` starts threads before the body of `main`; write \
     `fn main() { toolgate::block_on(async { … }) }` instead, or call it before you start the runtime";
