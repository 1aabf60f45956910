//! What does the host keep during one call? Its limits, what it has used of them, and its way to the gateway.

use std::{
    fmt,
    time::{Duration, Instant},
};

use toolgate_sandbox::wire::{Done, Effect, EffectAnswer, Ending, Helper, OUT_OF_TIME, RunLimits, Usage};
use wasmtime::ResourceLimiter;

use super::limits;

/// The way to the gateway.
pub trait EffectPort: Send {
    fn ask(&mut self, effect: Effect) -> Result<EffectAnswer, LinkLost>;
}

/// The gateway is gone or talks nonsense: nothing is left to do but to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkLost;

/// The data of a store.
pub struct Call {
    limits: Option<RunLimits>,
    effects: Option<Box<dyn EffectPort>>,
    /// The answer that the guest has been told of and will fetch.
    pub pending: Vec<u8>,
    /// Bodies that were fetched, by their number.
    pub bodies: Vec<Vec<u8>>,
    console: Vec<(u8, String)>,
    console_bytes: u32,
    console_dropped: u32,
    memory_cap: usize,
    memory_refused: bool,
    usage: Usage,
    started: Instant,
}

/// Ends the call from within a host function.
#[derive(Debug)]
pub struct Stop(pub Ending);

impl fmt::Display for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "stopped: {:?}", self.0)
    }
}

impl std::error::Error for Stop {}

impl Call {
    pub fn idle() -> Self {
        Self {
            limits: None,
            effects: None,
            pending: Vec::new(),
            bodies: Vec::new(),
            console: Vec::new(),
            console_bytes: 0,
            console_dropped: 0,
            memory_cap: toolgate_engine::MAX_LINEAR_MEMORY,
            memory_refused: false,
            usage: Usage::default(),
            started: Instant::now(),
        }
    }

    pub fn begin(&mut self, limits: &RunLimits) {
        self.limits = Some(*limits);
        self.memory_cap = limits::linear_memory(limits);
        self.started = Instant::now();
    }

    pub fn connect(&mut self, effects: Box<dyn EffectPort>) {
        self.effects = Some(effects);
    }

    pub fn result_limit(&self) -> u32 {
        self.limits.map_or(0, |limits| limits.result_bytes)
    }

    pub fn was_refused_memory(&self) -> bool {
        self.memory_refused
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// What is left of the time, in milliseconds.
    pub fn time_left(&self) -> u64 {
        let timeout = self.limits.map_or(0, |limits| u64::from(limits.timeout_ms));
        timeout.saturating_sub(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    pub fn asked(&mut self, helper: Helper) {
        self.usage.helpers |= helper.bit();
    }

    /// Lines beyond the limits are counted and dropped; the tool goes on.
    pub fn log(&mut self, level: u8, line: String) {
        let Some(limits) = self.limits else { return };
        let bytes = self.console_bytes.saturating_add(u32::try_from(line.len()).unwrap_or(u32::MAX));
        if self.console.len() >= limits.console_lines as usize || bytes > limits.console_bytes {
            self.console_dropped = self.console_dropped.saturating_add(1);
            return;
        }
        self.console_bytes = bytes;
        self.console.push((level, line));
    }

    /// Asks the gateway, within the limits of calls and bytes.
    pub fn ask(&mut self, effect: Effect, size: usize) -> Result<Option<EffectAnswer>, Stop> {
        let (Some(limits), Some(port)) = (self.limits, self.effects.as_mut()) else { return Ok(None) };
        self.usage.host_calls = self.usage.host_calls.saturating_add(1);
        self.usage.host_bytes = self.usage.host_bytes.saturating_add(size as u64);
        if self.usage.host_calls > limits.host_calls {
            return Err(Stop(Ending::HostCalls));
        }
        if self.usage.host_bytes > limits.host_bytes {
            return Err(Stop(Ending::HostBytes));
        }
        let answer =
            port.ask(effect).map_err(|LinkLost| Stop(Ending::Trapped("the gateway is gone".to_owned())))?;
        // Not an error that the tool could catch: its time is over.
        if matches!(&answer, EffectAnswer::Refused(error) if error.reason == OUT_OF_TIME) {
            return Err(Stop(Ending::Timeout));
        }
        self.usage.host_bytes = self.usage.host_bytes.saturating_add(answer.payload() as u64);
        if self.usage.host_bytes > limits.host_bytes {
            Err(Stop(Ending::HostBytes))
        } else {
            Ok(Some(answer))
        }
    }

    pub fn finish(&mut self, ending: Ending, fuel: u64, memory_bytes: u64) -> Done {
        let elapsed_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Done {
            ending,
            console: std::mem::take(&mut self.console),
            console_dropped: self.console_dropped,
            usage: Usage { fuel, memory_bytes, elapsed_us, ..self.usage },
        }
    }
}

impl ResourceLimiter for Call {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = desired <= self.memory_cap;
        self.memory_refused |= !granted;
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        current: usize,
        _desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // From nothing it grows when it is made; the engine never asks for more.
        Ok(current == 0)
    }
}

/// What the guest calls text may hold surrogates in a UTF-8 of its own; they become U+FFFD.
pub fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
