//! The compromised worker: in the real jail, with native code instead of the engine.

use std::{
    io::{self, Read as _},
    os::unix::process::parent_id,
    thread,
    time::Duration,
};

use toolgate_sandbox::{
    Namespaces, SeccompProfile, WorkerJail, leave,
    wire::{
        Done, Effect, FileCall, FromWorker, HEADER, MAX_FRAME, ScriptEnding, ScriptUsage, ToWorker,
        body_length,
    },
};

use crate::attacks;

/// Never returns and never panics: writing a panic message to a closed descriptor would be killed and look like an attack.
pub fn main(attempt: &str) -> ! {
    leave(match play(attempt) {
        Some(()) => SURVIVED,
        None => NEVER_TRIED,
    })
}

/// Acts as a worker until its first call, then makes the attempt.
fn play(attempt: &str) -> Option<()> {
    let ToWorker::Start(start) = receive()? else { return None };
    let gateway = parent_id();
    let namespaces = if start.namespaces { Namespaces::Enter } else { Namespaces::DangerouslySkip };
    let jail = WorkerJail { address_space_headroom: HEADROOM, cpu_seconds: start.cpu_seconds, namespaces };
    let strength = jail.enter().ok()?.seal(&SeccompProfile::worker_js().ok()?).ok()?;
    send(&frame(&FromWorker::Ready { strength: strength.to_bits() })?)?;
    let ToWorker::Run(_) = receive()? else { return None };
    match attempt.split_once(AFTER_THE_ANSWER) {
        Some((attempt, pause)) => {
            send(&frame(&answer())?)?;
            if pause == A_WHILE {
                thread::sleep(Duration::from_millis(300));
            }
            perform(attempt, gateway)
        }
        None => perform(attempt, gateway),
    }
}

fn perform(attempt: &str, gateway: u32) -> Option<()> {
    match attempt {
        "nothing at all" => {
            send(&frame(&answer())?)?;
            receive().map(drop)
        }
        "flood of nothing" => flood(&vec![0; 64 << 10]),
        "flood of questions" => loop {
            send(&frame(&question())?)?;
            receive()?;
        },
        "questions whose answers nobody takes" => flood(&frame(&question())?.repeat(1_000)),
        "one frame without end" => {
            send(&[&u32::try_from(MAX_FRAME).ok()?.to_le_bytes()[..], &[DONE]].concat())?;
            flood(&vec![0; 64 << 10])
        }
        "signal the parent" => {
            // SIGURG is ignored by default, so a delivered signal does no harm.
            attacks::raw(libc::SYS_kill, [gateway as usize, libc::SIGURG as usize, 0, 0, 0, 0]);
            Some(())
        }
        _ => {
            attacks::all().iter().find(|attack| attack.name == attempt)?.perform();
            Some(())
        }
    }
}

fn answer() -> FromWorker {
    let ending = ScriptEnding::Value("\"native\"".to_owned());
    FromWorker::Done(Box::new(Done {
        ending,
        console: Vec::new(),
        console_dropped: 0,
        usage: ScriptUsage::default(),
    }))
}

fn question() -> FromWorker {
    let arguments = vec!["notes.txt".to_owned()];
    FromWorker::Effect(Effect::File(FileCall {
        function: "readText".to_owned(),
        arguments,
        options: Vec::new(),
    }))
}

fn frame(frame: &FromWorker) -> Option<Vec<u8>> {
    frame.encode().ok()
}

/// Sends until the socket closes.
fn flood(bytes: &[u8]) -> Option<()> {
    loop {
        send(bytes)?;
    }
}

fn send(bytes: &[u8]) -> Option<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(io::stdin(), rest).ok()?;
        rest = rest.get(written..)?;
    }
    Some(())
}

fn receive() -> Option<ToWorker> {
    let mut header = [0; HEADER];
    let mut socket = io::stdin().lock();
    socket.read_exact(&mut header).ok()?;
    let (kind, length) = body_length(header).ok()?;
    let mut body = vec![0; length];
    socket.read_exact(&mut body).ok()?;
    ToWorker::decode(kind, &body).ok()
}

/// The kind of an answer frame.
const DONE: u8 = 5;
/// Suffix of an attempt: attack after the call has ended.
const AFTER_THE_ANSWER: &str = " after the answer";
/// Second suffix: attack after the worker has been idle for a while.
const A_WHILE: &str = ", a while";
const HEADROOM: u64 = 64 << 20;
const SURVIVED: u8 = 9;
const NEVER_TRIED: u8 = 3;
