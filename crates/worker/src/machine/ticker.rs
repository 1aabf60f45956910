//! Ticker thread that advances the engine's epoch while a call runs, and sleeps otherwise.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use wasmtime::Engine;

/// Advances the engine's epoch, which enforces deadlines. Parks after a while without calls, so idle workers use no
/// CPU.
pub struct Ticker {
    state: Arc<TickerState>,
    thread: thread::Thread,
}

#[derive(Default)]
struct TickerState {
    running: AtomicBool,
    started: AtomicU64,
    parked: AtomicBool,
}

/// While this value lives, the epoch advances.
pub struct TickerGuard<'a>(&'a TickerState);

impl Ticker {
    pub fn start(engine: Engine) -> io::Result<Self> {
        let state = Arc::new(TickerState::default());
        let shared = Arc::clone(&state);
        let (signal, started) = mpsc::channel();
        let handle = thread::Builder::new().name("ticker".to_owned()).stack_size(STACK).spawn(move || {
            // The receiver is gone if starting was abandoned.
            let _ = signal.send(());
            tick(&engine, &shared);
        })?;
        // Wait until the thread runs: its start (name, signal stack) needs system calls that the sandbox forbids later.
        started.recv().map_err(|_| io::Error::other("the ticker thread did not start"))?;
        Ok(Self { state, thread: handle.thread().clone() })
    }

    pub fn busy(&self) -> TickerGuard<'_> {
        self.state.running.store(true, Ordering::SeqCst);
        self.state.started.fetch_add(1, Ordering::SeqCst);
        if self.state.parked.swap(false, Ordering::SeqCst) {
            self.thread.unpark();
        }
        TickerGuard(&self.state)
    }
}

impl Drop for TickerGuard<'_> {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::SeqCst);
    }
}

/// Converts a timeout to ticks. Adds one, because the current tick is partly over.
pub fn ticks(timeout_ms: u32) -> u64 {
    u64::from(timeout_ms).div_ceil(TICK_MS) + 1
}

fn tick(engine: &Engine, state: &TickerState) {
    let (mut seen, mut idle) = (0, 0);
    loop {
        thread::sleep(TICK);
        engine.increment_epoch();
        let started = state.started.load(Ordering::SeqCst);
        idle = if started == seen && !state.running.load(Ordering::SeqCst) { idle + 1 } else { 0 };
        seen = started;
        if idle < IDLE_TICKS {
            continue;
        }
        state.parked.store(true, Ordering::SeqCst);
        // A call that started before the flag was set did not see it; a later one wakes this thread.
        if state.started.load(Ordering::SeqCst) == seen {
            thread::park();
        }
        state.parked.store(false, Ordering::SeqCst);
        idle = 0;
    }
}

const TICK_MS: u64 = 5;
const TICK: Duration = Duration::from_millis(TICK_MS);
const IDLE_TICKS: u32 = 100;
const STACK: usize = 64 << 10;
