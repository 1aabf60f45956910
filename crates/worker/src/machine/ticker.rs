//! When is it time to look at the clock? Every few milliseconds while a call runs, and never while none does.

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

/// Advances the engine's epoch. It sleeps for good once nothing has run for a while, so that idle workers cost nothing.
pub struct Ticker {
    state: Arc<State>,
    thread: thread::Thread,
}

#[derive(Default)]
struct State {
    running: AtomicBool,
    started: AtomicU64,
    parked: AtomicBool,
}

/// While this lives, the epoch advances.
pub struct Busy<'a>(&'a State);

impl Ticker {
    pub fn start(engine: Engine) -> io::Result<Self> {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let (signal, started) = mpsc::channel();
        let handle = thread::Builder::new().name("ticker".to_owned()).stack_size(STACK).spawn(move || {
            // Nobody listens any more where starting was given up.
            let _ = signal.send(());
            tick(&engine, &shared);
        })?;
        // What a thread does to begin (its name, its signal stack) the jail forbids: it must have begun before the seal.
        started.recv().map_err(|_| io::Error::other("the ticker did not begin"))?;
        Ok(Self { state, thread: handle.thread().clone() })
    }

    pub fn busy(&self) -> Busy<'_> {
        self.state.running.store(true, Ordering::SeqCst);
        self.state.started.fetch_add(1, Ordering::SeqCst);
        if self.state.parked.swap(false, Ordering::SeqCst) {
            self.thread.unpark();
        }
        Busy(&self.state)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::SeqCst);
    }
}

/// A deadline in ticks. One more than it takes, for the tick under way is shorter than the others.
pub fn ticks(timeout_ms: u32) -> u64 {
    u64::from(timeout_ms).div_ceil(TICK_MS) + 1
}

fn tick(engine: &Engine, state: &State) {
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
        // A call that began before the flag was up has not seen it; one that begins now will wake us.
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
