//! How does a worker live? It locks itself in, says so, and answers one request after the other until its socket ends.

use std::{collections::VecDeque, convert::Infallible, io, panic, sync::Arc, thread};

use toolgate_sandbox::{
    Entered, Namespaces, SeccompProfile, Strength, WORKER_NAME, WorkerJail, leave,
    wire::{Effect, EffectAnswer, FromWorker, HEADER, Load, Run, ToWorker, body_length},
};

use crate::machine::{EffectPort, Fresh, Image, LinkLost, Machine};

/// Turns this process into a worker if it was started as one. To be called first in `main`, before any thread exists.
pub fn run_if_worker() {
    if std::env::args_os().next().is_some_and(|name| name == WORKER_NAME) {
        // A message would go to a descriptor that is closed, and be taken for an attempt to escape.
        panic::set_hook(Box::new(|_| leave(PANICKED)));
        leave(if live().is_ok() { 0 } else { FAILED });
    }
}

/// Errors have nobody to be told to: the gateway sees the exit code and the end of the socket.
fn live() -> Result<(), Ended> {
    let ToWorker::Start(start) = receive()? else { return Err(Ended) };
    let namespaces = if start.namespaces { Namespaces::Enter } else { Namespaces::DangerouslySkip };
    let jail = WorkerJail {
        address_space_headroom: ADDRESS_SPACE_HEADROOM,
        cpu_seconds: start.cpu_seconds,
        namespaces,
    };
    let entered = jail.enter().map_err(|_| Ended)?;
    // A thread of its own, for its stack must hold what WebAssembly may use, whatever the limits of the shell.
    let script = thread::Builder::new().name("script".to_owned()).stack_size(2 * toolgate_engine::WASM_STACK);
    script.spawn(move || work(entered)).map_err(|_| Ended)?.join().map_err(|_| Ended)?
}

fn work(entered: Entered) -> Result<(), Ended> {
    let machine = Machine::new().map_err(|_| Ended)?;
    let mut tools = Tools::default();
    warm_up(&machine)?;
    let profile = SeccompProfile::worker_js().map_err(|_| Ended)?;
    let strength: Strength = entered.seal(&profile).map_err(|_| Ended)?;
    send(&FromWorker::Ready { strength: strength.to_bits() })?;
    // The end comes with the socket's, and at once: putting the machine away would take calls that the jail forbids.
    match serve(&machine, &mut tools) {
        Err(Ended) => leave(0),
    }
}

fn serve(machine: &Machine, tools: &mut Tools) -> Result<Infallible, Ended> {
    loop {
        let fresh = machine.fresh().map_err(|_| Ended)?;
        let ToWorker::Run(run) = receive()? else { return Err(Ended) };
        // Whatever the call leaves behind is wiped when `used` goes, after the answer has been sent.
        let used = answer(machine, tools, fresh, &run)?;
        drop(used);
    }
}

fn answer(machine: &Machine, tools: &mut Tools, fresh: Fresh, run: &Run) -> Result<Option<Fresh>, Ended> {
    let (image, fresh) = if let Some(image) = tools.find(&run.key) {
        (image, fresh)
    } else {
        send(&FromWorker::Missing)?;
        let ToWorker::Load(load) = receive()? else { return Err(Ended) };
        // There is one place for an instance, and loading needs it.
        drop(fresh);
        match machine.load(&load, &run.limits) {
            Ok(image) => (tools.keep(load.key, image), machine.fresh().map_err(|_| Ended)?),
            Err(ending) => {
                send(&FromWorker::Unloadable(ending))?;
                return Ok(None);
            }
        }
    };
    let (done, used) = machine.run(fresh, &image, run, Box::new(Gateway));
    send(&FromWorker::Done(Box::new(done)))?;
    // The kernel wakes the gateway on this processor, expecting us to sleep; first the answer, then the wiping.
    thread::yield_now();
    Ok(Some(used))
}

/// Touches what a call touches, so that the first call finds it in place and the filter has seen no late surprise.
fn warm_up(machine: &Machine) -> Result<(), Ended> {
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
    let run = Run { key: load.key, limits, seed: 1, arguments: "{\"a\":1}".to_owned() };
    for _ in 0..WARM_UP_CALLS {
        let image = machine.load(&load, &limits).map_err(|_| Ended)?;
        let fresh = machine.fresh().map_err(|_| Ended)?;
        drop(machine.run(fresh, &image, &run, Box::new(Gateway)));
    }
    Ok(())
}

/// The tools whose pages this worker holds; the longest unused go first.
#[derive(Default)]
struct Tools {
    kept: VecDeque<([u8; 32], Arc<Image>)>,
}

impl Tools {
    fn find(&mut self, key: &[u8; 32]) -> Option<Arc<Image>> {
        let place = self.kept.iter().position(|(kept, _)| kept == key)?;
        let entry = self.kept.remove(place)?;
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
struct Gateway;

impl EffectPort for Gateway {
    fn ask(&mut self, effect: Effect) -> Result<EffectAnswer, LinkLost> {
        send(&FromWorker::Effect(effect)).map_err(|Ended| LinkLost)?;
        match receive().map_err(|Ended| LinkLost)? {
            ToWorker::Answer(answer) => Ok(answer),
            _ => Err(LinkLost),
        }
    }
}

/// The socket has ended, or the gateway talks nonsense; either way this worker is over.
#[derive(Debug)]
struct Ended;

fn send(frame: &FromWorker) -> Result<(), Ended> {
    let bytes = frame.encode().map_err(|_| Ended)?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(io::stdin(), rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(Ended),
        }
    }
    Ok(())
}

fn receive() -> Result<ToWorker, Ended> {
    // One system call brings an ordinary request whole.
    let mut buffer = vec![0; USUAL_FRAME];
    let mut filled = 0;
    while filled < HEADER {
        filled += fill(buffer.get_mut(filled..).unwrap_or_default())?;
    }
    let header = *buffer.first_chunk::<HEADER>().ok_or(Ended)?;
    let (kind, length) = body_length(header).map_err(|_| Ended)?;
    let whole = HEADER + length;
    if buffer.len() < whole {
        buffer.resize(whole, 0);
    }
    while filled < whole {
        filled += fill(buffer.get_mut(filled..whole).unwrap_or_default())?;
    }
    // The gateway never sends a second frame before it has been answered.
    if filled > whole {
        return Err(Ended);
    }
    ToWorker::decode(kind, buffer.get(HEADER..whole).unwrap_or_default()).map_err(|_| Ended)
}

fn fill(into: &mut [u8]) -> Result<usize, Ended> {
    loop {
        match rustix::io::read(io::stdin(), &mut *into) {
            Ok(0) => return Err(Ended),
            Ok(count) => return Ok(count),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(Ended),
        }
    }
}

const FAILED: u8 = 1;
const PANICKED: u8 = 101;
/// A request of the largest size exists several times over while it becomes a frame.
const ADDRESS_SPACE_HEADROOM: u64 = 512 << 20;
const IMAGE_BYTES: usize = 16 << 20;
const USUAL_FRAME: usize = 16 << 10;
const WARM_UP_CALLS: usize = 5;
