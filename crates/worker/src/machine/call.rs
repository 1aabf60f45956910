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
    /// How much of the guest's memory was copied to answer the question that is being answered.
    question_bytes: usize,
    /// The answer that the guest has been told of and will take.
    pending: Vec<u8>,
    /// Bodies that were fetched, by their number.
    bodies: Vec<Vec<u8>>,
    body_bytes: usize,
    console: Vec<(u8, String)>,
    console_bytes: u32,
    console_dropped: u32,
    /// How large the engine's memory is, and the most that it and what is kept beside it may come to, and came to.
    linear_bytes: usize,
    memory_cap: usize,
    memory_peak: usize,
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
            question_bytes: 0,
            pending: Vec::new(),
            bodies: Vec::new(),
            body_bytes: 0,
            console: Vec::new(),
            console_bytes: 0,
            console_dropped: 0,
            linear_bytes: 0,
            memory_cap: toolgate_engine::MAX_LINEAR_MEMORY,
            memory_peak: 0,
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

    /// What the engine may still grow by, or the host keep for it.
    pub fn memory_left(&self) -> usize {
        self.memory_cap.saturating_sub(self.memory_bytes())
    }

    /// A question is about to be copied; the copy lives until its answer is held.
    pub fn hear(&mut self, bytes: usize) -> Result<(), Stop> {
        self.question_bytes = bytes;
        self.within_memory()
    }

    /// Keeps an answer until the guest takes it.
    pub fn hold(&mut self, answer: Vec<u8>) -> Result<(), Stop> {
        self.question_bytes = 0;
        self.pending = answer;
        self.within_memory()
    }

    pub fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Keeps a body until the end of the call, and says by which number it is found.
    pub fn keep_body(&mut self, body: Vec<u8>) -> Result<usize, Stop> {
        self.body_bytes = self.body_bytes.saturating_add(body.len());
        self.bodies.push(body);
        self.within_memory().map(|()| self.bodies.len() - 1)
    }

    pub fn body(&self, number: usize) -> Option<&[u8]> {
        self.bodies.get(number).map(Vec::as_slice)
    }

    fn kept_bytes(&self) -> usize {
        self.body_bytes.saturating_add(self.pending.len()).saturating_add(self.question_bytes)
    }

    fn memory_bytes(&self) -> usize {
        self.linear_bytes.saturating_add(self.kept_bytes())
    }

    /// What the host keeps for a tool is the tool's memory too, or it would be a way around the limit.
    fn within_memory(&mut self) -> Result<(), Stop> {
        let bytes = self.memory_bytes();
        if bytes > self.memory_cap {
            return Err(Stop(Ending::Memory));
        }
        self.memory_peak = self.memory_peak.max(bytes);
        Ok(())
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
        self.usage.host_bytes = self.usage.host_bytes.saturating_add(answer.payload());
        if self.usage.host_bytes > limits.host_bytes {
            Err(Stop(Ending::HostBytes))
        } else {
            Ok(Some(answer))
        }
    }

    pub fn finish(&mut self, ending: Ending, fuel: u64) -> Done {
        let memory_bytes = self.memory_peak.saturating_sub(toolgate_engine::snapshot_bytes()) as u64;
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
        let wanted = desired.saturating_add(self.kept_bytes());
        let granted = wanted <= self.memory_cap;
        if granted {
            self.linear_bytes = desired;
            self.memory_peak = self.memory_peak.max(wanted);
        }
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

/// What the guest calls text may hold surrogates in a UTF-8 of its own, three bytes each; they become U+FFFD, which has
/// three too. Whatever else is no UTF-8 becomes `?`, byte by byte. All of it in place, for only what the guest handed over
/// was counted as its memory.
pub fn text_of(mut bytes: Vec<u8>) -> String {
    let mut clean = 0;
    while let Some(Err(error)) = bytes.get(clean..).map(std::str::from_utf8) {
        clean += error.valid_up_to();
        clean += match bytes.get_mut(clean..).unwrap_or_default() {
            [first @ 0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
                [*first, *second, *third] = [0xef, 0xbf, 0xbd];
                3
            }
            [broken, ..] => {
                *broken = b'?';
                1
            }
            [] => break,
        };
    }
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_become_as_many_bytes_and_nothing_grows() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            (b"", ""),
            (b"a\xed\xa0\x80b", "a\u{fffd}b"),
            (b"\xed\xb0\x80\xed\xa0\x80", "\u{fffd}\u{fffd}"),
            ("\u{d7ff}\u{e000}\u{1f600}".as_bytes(), "\u{d7ff}\u{e000}\u{1f600}"),
            // Nothing that the engine writes.
            (b"\xff\xc3(\xed\xa0", "??(??"),
            (b"\xf0\x9f\x98", "???"),
        ] {
            assert_eq!(text_of(bytes.to_vec()), text);
        }
        let surrogates = [0xed, 0xa0, 0x80].repeat(1 << 16);
        let bytes = surrogates.len();
        let text = text_of(surrogates);
        assert_eq!((text.len(), text.capacity()), (bytes, bytes));
        assert!(text.chars().all(|character| character == '\u{fffd}'));
    }
}
