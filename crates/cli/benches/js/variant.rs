//! The compared ways to run a body with a fresh state per call.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::work::BenchBody;

pub trait EngineVariant {
    fn kind(&self) -> VariantKind;

    /// One call: its time, and the result as JSON text.
    fn call(&mut self, work: &BenchBody) -> (Duration, String);

    /// Calls per second with two concurrent callers, measured for about `span`.
    fn rate(&mut self, work: &BenchBody, span: Duration) -> f64;
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VariantKind {
    Ours,
    NativeBare,
    NativePrelude,
    ExecPerCall,
    NodeVm,
    IsolatedVm,
    QuickjsEmscripten,
    DenoPerCall,
}

impl VariantKind {
    pub fn title(self) -> &'static str {
        match self {
            Self::Ours => "toolgate: jailed worker, with prelude",
            Self::NativeBare => "native QuickJS in process, bare",
            Self::NativePrelude => "native QuickJS in process, prelude as bytecode",
            Self::ExecPerCall => "native QuickJS, a process per call",
            Self::NodeVm => "node:vm, a context per call (no sandbox)",
            Self::IsolatedVm => "isolated-vm, an isolate per call",
            Self::QuickjsEmscripten => "quickjs-emscripten, a runtime per call",
            Self::DenoPerCall => "Deno, a process per call",
        }
    }
}

/// Two threads that call until the time is over, each with its own `call`.
pub fn rate_of_two_threads<F: FnMut()>(span: Duration, make: impl Fn() -> F + Sync) -> f64 {
    let begin = Instant::now();
    let calls: u32 = thread::scope(|scope| {
        let count = || {
            let mut call = make();
            let mut calls = 0;
            while begin.elapsed() < span {
                call();
                calls += 1;
            }
            calls
        };
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(count)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a caller ends well")).sum()
    });
    f64::from(calls) / begin.elapsed().as_secs_f64()
}
