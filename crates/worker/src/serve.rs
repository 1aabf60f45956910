//! The worker's main loop: it enters its sandbox, reports ready and serves requests until its socket is closed.

use std::{collections::VecDeque, convert::Infallible, io, panic, sync::Arc, thread};

use toolgate_sandbox::{
    Entered, LayerSet, Namespaces, SeccompProfile, WORKER_NAME, WorkerJail, leave,
    wire::{Effect, EffectAnswer, FromWorker, HEADER, Load, RunScript, ToWorker, body_length},
};

use crate::machine::{EffectPort, FreshInstance, Image, LinkLost, ScriptMachine};

/// Turns this process into a worker if it was started as one. Must be the first call in `main`, before any thread
/// exists.
pub fn run_if_worker() {
    if std::env::args_os().next().is_some_and(|name| name == WORKER_NAME) {
        // A panic message would be written to a closed descriptor, which the sandbox reports as an escape attempt.
        panic::set_hook(Box::new(|_| leave(PANICKED)));
        leave(if run_worker().is_ok() { 0 } else { FAILED });
    }
}

/// Errors are not reported: the gateway sees the exit code and the closed socket.
fn run_worker() -> Result<(), WorkerEnded> {
    let ToWorker::Start(start) = receive()? else { return Err(WorkerEnded) };
    let namespaces = if start.namespaces { Namespaces::Enter } else { Namespaces::DangerouslySkip };
    let jail = WorkerJail {
        address_space_headroom: ADDRESS_SPACE_HEADROOM,
        cpu_seconds: start.cpu_seconds,
        namespaces,
    };
    let entered = jail.enter().map_err(|_| WorkerEnded)?;
    // A separate thread, because its stack must be large enough for WebAssembly, whatever limit the shell sets.
    let script = thread::Builder::new().name("script".to_owned()).stack_size(2 * toolgate_engine::WASM_STACK);
    script.spawn(move || work(entered)).map_err(|_| WorkerEnded)?.join().map_err(|_| WorkerEnded)?
}

fn work(entered: Entered) -> Result<(), WorkerEnded> {
    let machine = ScriptMachine::new().map_err(|_| WorkerEnded)?;
    let mut tools = ToolCache::default();
    warm_up(&machine)?;
    let profile = SeccompProfile::worker_js().map_err(|_| WorkerEnded)?;
    let strength: LayerSet = entered.seal(&profile).map_err(|_| WorkerEnded)?;
    send(&FromWorker::Ready { strength: strength.to_bits() })?;
    // Exit at once when the socket ends: dropping the machine would use system calls that the sandbox forbids.
    match serve(&machine, &mut tools) {
        Err(WorkerEnded) => leave(0),
    }
}

fn serve(machine: &ScriptMachine, tools: &mut ToolCache) -> Result<Infallible, WorkerEnded> {
    loop {
        let fresh = machine.fresh().map_err(|_| WorkerEnded)?;
        let ToWorker::Run(run) = receive()? else { return Err(WorkerEnded) };
        // Dropping `used` wipes the memory of the call, after the response was sent.
        let used = answer(machine, tools, fresh, &run)?;
        drop(used);
    }
}

fn answer(
    machine: &ScriptMachine,
    tools: &mut ToolCache,
    fresh: FreshInstance,
    run: &RunScript,
) -> Result<Option<FreshInstance>, WorkerEnded> {
    let (image, fresh) = if let Some(image) = tools.find(&run.key) {
        (image, fresh)
    } else {
        send(&FromWorker::Missing)?;
        let ToWorker::Load(load) = receive()? else { return Err(WorkerEnded) };
        // The pool has one instance slot, and loading needs it.
        drop(fresh);
        match machine.load(&load, &run.limits) {
            Ok(image) => (tools.keep(load.key, image), machine.fresh().map_err(|_| WorkerEnded)?),
            Err(ending) => {
                send(&FromWorker::Unloadable(ending))?;
                return Ok(None);
            }
        }
    };
    let (done, used) = machine.run(fresh, &image, run, Box::new(GatewayLink));
    send(&FromWorker::Done(Box::new(done)))?;
    // The kernel wakes the gateway on this processor, expecting us to sleep. Yield, so the response is handled before
    // the wiping.
    thread::yield_now();
    Ok(Some(used))
}

/// Runs the code path of a call once. The first real call is then fast, and lazy initialisation happens before the
/// seccomp filter.
fn warm_up(machine: &ScriptMachine) -> Result<(), WorkerEnded> {
    let load = Load {
        key: [0; 32],
        grants: 0,
        names: "[\"a\"]".to_owned(),
        source: "(async function(a){{\nreturn { n: a + 1, at: new Date(0).toISOString() }\n}})".to_owned(),
    };
    let limits = toolgate_sandbox::wire::RunLimits {
        timeout_ms: 10_000,
        fuel: 1 << 40,
        memory_bytes: 16 << 20,
        console_lines: 0,
        console_bytes: 0,
        result_bytes: 1_000,
        host_calls: 0,
        host_bytes: 0,
    };
    let run = RunScript { key: load.key, limits, seed: 1, arguments: "{\"a\":1}".to_owned() };
    for _ in 0..WARM_UP_CALLS {
        let image = machine.load(&load, &limits).map_err(|_| WorkerEnded)?;
        let fresh = machine.fresh().map_err(|_| WorkerEnded)?;
        drop(machine.run(fresh, &image, &run, Box::new(GatewayLink)));
    }
    Ok(())
}

/// Images of loaded tools. The least recently used are evicted first.
#[derive(Default)]
struct ToolCache {
    kept: VecDeque<([u8; 32], Arc<Image>)>,
}

impl ToolCache {
    fn find(&mut self, key: &[u8; 32]) -> Option<Arc<Image>> {
        let position = self.kept.iter().position(|(kept, _)| kept == key)?;
        let entry = self.kept.remove(position)?;
        let image = Arc::clone(&entry.1);
        self.kept.push_back(entry);
        Some(image)
    }

    fn keep(&mut self, key: [u8; 32], image: Image) -> Arc<Image> {
        let image = Arc::new(image);
        self.kept.push_back((key, Arc::clone(&image)));
        let mut bytes: usize = self.kept.iter().map(|(_, image)| image.bytes()).sum();
        while bytes > IMAGE_BYTES && self.kept.len() > 1 {
            let Some((_, oldest)) = self.kept.pop_front() else { break };
            bytes -= oldest.bytes();
        }
        image
    }
}

/// The gateway at the other end of descriptor 0.
struct GatewayLink;

impl EffectPort for GatewayLink {
    fn ask(&mut self, effect: Effect) -> Result<EffectAnswer, LinkLost> {
        send(&FromWorker::Effect(effect)).map_err(|WorkerEnded| LinkLost)?;
        match receive().map_err(|WorkerEnded| LinkLost)? {
            ToWorker::Answer(answer) => Ok(answer),
            _ => Err(LinkLost),
        }
    }
}

/// The socket was closed or the gateway sent an invalid frame. The worker ends.
#[derive(Debug)]
struct WorkerEnded;

fn send(frame: &FromWorker) -> Result<(), WorkerEnded> {
    let bytes = frame.encode().map_err(|_| WorkerEnded)?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(io::stdin(), rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(WorkerEnded),
        }
    }
    Ok(())
}

fn receive() -> Result<ToWorker, WorkerEnded> {
    // One system call usually reads a whole request.
    let mut buffer = vec![0; USUAL_FRAME];
    let mut filled = 0;
    while filled < HEADER {
        filled += fill(buffer.get_mut(filled..).unwrap_or_default())?;
    }
    let header = *buffer.first_chunk::<HEADER>().ok_or(WorkerEnded)?;
    let (kind, length) = body_length(header).map_err(|_| WorkerEnded)?;
    let whole = HEADER + length;
    if buffer.len() < whole {
        buffer.resize(whole, 0);
    }
    while filled < whole {
        filled += fill(buffer.get_mut(filled..whole).unwrap_or_default())?;
    }
    // The gateway sends the next frame only after the response.
    if filled > whole {
        return Err(WorkerEnded);
    }
    ToWorker::decode(kind, buffer.get(HEADER..whole).unwrap_or_default()).map_err(|_| WorkerEnded)
}

fn fill(into: &mut [u8]) -> Result<usize, WorkerEnded> {
    loop {
        match rustix::io::read(io::stdin(), &mut *into) {
            Ok(0) => return Err(WorkerEnded),
            Ok(count) => return Ok(count),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(WorkerEnded),
        }
    }
}

const FAILED: u8 = 1;
const PANICKED: u8 = 101;
/// A request of the largest size exists in several copies while it is encoded.
const ADDRESS_SPACE_HEADROOM: u64 = 512 << 20;
const IMAGE_BYTES: usize = 16 << 20;
const USUAL_FRAME: usize = 16 << 10;
const WARM_UP_CALLS: usize = 5;
