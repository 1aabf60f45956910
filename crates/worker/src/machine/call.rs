//! Host-side state of one call: limits, usage and the connection to the gateway.

use std::{
    fmt,
    time::{Duration, Instant},
};

use toolgate_sandbox::wire::{
    Done, Effect, EffectAnswer, Helper, OUT_OF_TIME, RunLimits, ScriptEnding, ScriptUsage,
};
use wasmtime::ResourceLimiter;

use super::limits;

/// The connection to the gateway.
pub trait EffectPort: Send {
    fn ask(&mut self, effect: Effect) -> Result<EffectAnswer, LinkLost>;
}

/// The gateway is gone or sent an invalid frame; the call cannot continue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkLost;

/// The data of a Wasmtime store.
pub struct CallState {
    limits: Option<RunLimits>,
    effects: Option<Box<dyn EffectPort>>,
    /// Bytes copied from the guest's memory for the current question.
    question_bytes: usize,
    /// The response whose length was reported to the guest, until it takes it.
    pending: Vec<u8>,
    /// Fetched bodies, by their number.
    bodies: Vec<Vec<u8>>,
    body_bytes: usize,
    console: Vec<(u8, String)>,
    console_bytes: u32,
    console_dropped: u32,
    /// The size of the linear memory, the limit for it plus the host's copies, and the highest sum so far.
    linear_bytes: usize,
    memory_cap: usize,
    memory_peak: usize,
    memory_refused: bool,
    usage: ScriptUsage,
    started: Instant,
}

/// Ends the call from within a host function.
#[derive(Debug)]
pub struct CallStop(pub ScriptEnding);

impl fmt::Display for CallStop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "stopped: {:?}", self.0)
    }
}

impl std::error::Error for CallStop {}

impl CallState {
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
            usage: ScriptUsage::default(),
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

    /// How many bytes the engine may still grow by, or the host may keep for it.
    pub fn memory_left(&self) -> usize {
        self.memory_cap.saturating_sub(self.memory_bytes())
    }

    /// Counts a question before it is copied. The copy lives until the response is held.
    pub fn count_question(&mut self, bytes: usize) -> Result<(), CallStop> {
        self.question_bytes = bytes;
        self.within_memory()
    }

    /// Keeps a response until the guest takes it.
    pub fn hold(&mut self, answer: Vec<u8>) -> Result<(), CallStop> {
        self.question_bytes = 0;
        self.pending = answer;
        self.within_memory()
    }

    pub fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Keeps a body until the end of the call and returns its number.
    pub fn keep_body(&mut self, body: Vec<u8>) -> Result<usize, CallStop> {
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

    /// Memory that the host keeps for a tool counts as the tool's memory; otherwise it would bypass the limit.
    fn within_memory(&mut self) -> Result<(), CallStop> {
        let bytes = self.memory_bytes();
        if bytes > self.memory_cap {
            return Err(CallStop(ScriptEnding::Memory));
        }
        self.memory_peak = self.memory_peak.max(bytes);
        Ok(())
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The remaining time in milliseconds.
    pub fn time_left(&self) -> u64 {
        let timeout = self.limits.map_or(0, |limits| u64::from(limits.timeout_ms));
        timeout.saturating_sub(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    pub fn note_helper(&mut self, helper: Helper) {
        self.usage.helpers |= helper.bit();
    }

    /// Lines beyond the limits are counted and dropped; the tool continues.
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
    pub fn ask(&mut self, effect: Effect, size: usize) -> Result<Option<EffectAnswer>, CallStop> {
        let (Some(limits), Some(port)) = (self.limits, self.effects.as_mut()) else { return Ok(None) };
        self.usage.host_calls = self.usage.host_calls.saturating_add(1);
        self.usage.host_bytes = self.usage.host_bytes.saturating_add(size as u64);
        if self.usage.host_calls > limits.host_calls {
            return Err(CallStop(ScriptEnding::HostCalls));
        }
        if self.usage.host_bytes > limits.host_bytes {
            return Err(CallStop(ScriptEnding::HostBytes));
        }
        let answer = port
            .ask(effect)
            .map_err(|LinkLost| CallStop(ScriptEnding::Trapped("the gateway is gone".to_owned())))?;
        // The tool must not catch this: its time is over.
        if matches!(&answer, EffectAnswer::Refused(error) if error.reason == OUT_OF_TIME) {
            return Err(CallStop(ScriptEnding::Timeout));
        }
        self.usage.host_bytes = self.usage.host_bytes.saturating_add(answer.payload());
        if self.usage.host_bytes > limits.host_bytes {
            Err(CallStop(ScriptEnding::HostBytes))
        } else {
            Ok(Some(answer))
        }
    }

    pub fn finish(&mut self, ending: ScriptEnding, fuel: u64) -> Done {
        let memory_bytes = self.memory_peak.saturating_sub(toolgate_engine::snapshot_bytes()) as u64;
        let elapsed_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        Done {
            ending,
            console: std::mem::take(&mut self.console),
            console_dropped: self.console_dropped,
            usage: ScriptUsage { fuel, memory_bytes, elapsed_us, ..self.usage },
        }
    }
}

impl ResourceLimiter for CallState {
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
        // The first growth is the creation of the table. The engine never grows it later.
        Ok(current == 0)
    }
}

/// Converts guest text to UTF-8. Surrogates, three bytes each, become U+FFFD, which also has three bytes. Every other
/// invalid byte becomes `?`. Works in place, because only the guest's bytes were counted as its memory.
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
    fn surrogates_are_replaced_in_place() {
        for (bytes, text) in [
            (&b"plain"[..], "plain"),
            (b"", ""),
            (b"a\xed\xa0\x80b", "a\u{fffd}b"),
            (b"\xed\xb0\x80\xed\xa0\x80", "\u{fffd}\u{fffd}"),
            ("\u{d7ff}\u{e000}\u{1f600}".as_bytes(), "\u{d7ff}\u{e000}\u{1f600}"),
            // The engine never writes these.
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
