//! Shows approval questions as they arrive. On a terminal a person answers them one at a time.

use std::{
    collections::HashSet,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use toolgate::RecordedQueue;
use toolgate_gate::{
    Approval, ApprovalError, ApprovalId, ApprovalQueue as _, ApprovalState, ApprovalStore as _, Decider,
};

use super::{ArgumentDetail, line, queue_failure, to_json};
use crate::{
    CommandExit, Failure, gateway,
    terminal::{Terminal, json_pretty},
};

pub(super) async fn watch(queue: &RecordedQueue, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        answer(queue, terminal).await
    } else {
        show(queue, terminal).await
    }
}

/// Prints every question once, for pipes and logs.
async fn show(queue: &RecordedQueue, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let mut changes = queue.changes();
    let mut seen: HashSet<ApprovalId> = HashSet::new();
    loop {
        let pending = pending(queue)?;
        for approval in pending.iter().rev().filter(|approval| !seen.contains(&approval.id)) {
            line(approval, ArgumentDetail::Whole, terminal)?;
        }
        terminal.flush()?;
        seen = pending.into_iter().map(|approval| approval.id).collect();
        tokio::select! {
            outcome = changes.changed() => {
                if outcome.is_err() {
                    return Ok(CommandExit::Clean);
                }
            }
            _ = tokio::signal::ctrl_c() => return Ok(CommandExit::Clean),
        }
    }
}

/// Asks about the question that expires first, then about the next one.
async fn answer(queue: &RecordedQueue, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let mut changes = queue.changes();
    let mut typed = lines_of_stdin();
    let mut skipped: HashSet<ApprovalId> = HashSet::new();
    let mut is_idle = false;
    loop {
        changes.borrow_and_update();
        let open = pending(queue)?;
        skipped.retain(|id| open.iter().any(|approval| approval.id == *id));
        let next = open.into_iter().filter(|approval| !skipped.contains(&approval.id));
        let Some(approval) = next.min_by_key(|approval| approval.question.expires) else {
            if !is_idle {
                Terminal::note("no pending questions; waiting for the next one (Ctrl-C to quit)");
                is_idle = true;
            }
            tokio::select! {
                outcome = changes.changed() => if outcome.is_err() { return Ok(CommandExit::Clean) },
                line = typed.recv() => if line.is_none() { return Ok(CommandExit::Clean) },
                _ = tokio::signal::ctrl_c() => return Ok(CommandExit::Clean),
            }
            continue;
        };
        is_idle = false;
        match ask(queue, &approval, &mut typed, terminal).await? {
            PromptOutcome::Answered => {}
            PromptOutcome::Skipped => drop(skipped.insert(approval.id)),
            PromptOutcome::Ended => return Ok(CommandExit::Clean),
        }
    }
}

/// A typed line and the time it was read.
struct Typed {
    text: String,
    at: Instant,
}

enum PromptOutcome {
    Answered,
    Skipped,
    Ended,
}

async fn ask(
    queue: &RecordedQueue,
    approval: &Approval,
    typed: &mut UnboundedReceiver<Typed>,
    terminal: &mut Terminal,
) -> Result<PromptOutcome, Failure> {
    line(approval, ArgumentDetail::Whole, terminal)?;
    terminal.flush()?;
    let shown = Instant::now();
    loop {
        terminal.flush()?;
        let mut stderr = io::stderr();
        stderr.write_all(b"Run it? [y]es, [n]o, [d]etails, [s]kip, [q]uit: ")?;
        stderr.flush()?;
        let answer = tokio::select! {
            answer = typed.recv() => answer,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(Typed { text, at }) = answer else { return Ok(PromptOutcome::Ended) };
        // Ignore lines typed before the person could read this question.
        if at < shown + MIN_READING_TIME {
            continue;
        }
        let verdict = match text.trim().to_lowercase().as_str() {
            "y" | "yes" => ApprovalState::Approved,
            "n" | "no" => ApprovalState::Denied,
            "d" | "details" => {
                print_details(queue, &approval.id, terminal)?;
                continue;
            }
            "q" | "quit" => return Ok(PromptOutcome::Ended),
            "s" | "skip" => return Ok(PromptOutcome::Skipped),
            _ => continue,
        };
        match decide(queue, &approval.id, verdict) {
            Ok(()) => {
                writeln!(terminal, "    {}", verdict.name())?;
                terminal.flush()?;
                return Ok(PromptOutcome::Answered);
            }
            Err(ApprovalError::Unrevealed(_)) => {
                Terminal::note("part of the arguments is hidden; type `d` to see it before you approve");
            }
            Err(
                problem @ (ApprovalError::NotPending(_) | ApprovalError::Expired | ApprovalError::Unknown),
            ) => {
                Terminal::note(&problem.to_string());
                return Ok(PromptOutcome::Answered);
            }
            Err(problem) => return Err(queue_failure(&problem)),
        }
    }
}

fn decide(queue: &RecordedQueue, id: &ApprovalId, verdict: ApprovalState) -> Result<(), ApprovalError> {
    let operator = gateway::operator();
    queue.decide(id, verdict, &Decider::Operator(&operator), None, SystemTime::now()).map(drop)
}

/// Prints all arguments, including hidden ones. The reveal is recorded.
fn print_details(queue: &RecordedQueue, id: &ApprovalId, terminal: &mut Terminal) -> Result<(), Failure> {
    let (operator, now) = (gateway::operator(), SystemTime::now());
    let whole = queue.reveal(id, &Decider::Operator(&operator), now);
    let shown = whole.and_then(|whole| {
        let mut approval = queue.get(id, now)?;
        approval.question.arguments = Some(whole);
        Ok(approval)
    });
    match shown {
        Ok(approval) => writeln!(terminal, "{}", json_pretty(&to_json(&approval)))?,
        Err(problem) => Terminal::note(&problem.to_string()),
    }
    Ok(())
}

fn pending(queue: &RecordedQueue) -> Result<Vec<Approval>, Failure> {
    // No limit: a question outside it would be missed, or shown twice.
    let pending = queue.list(Some(ApprovalState::Pending), usize::MAX, SystemTime::now());
    pending.map_err(|problem| queue_failure(&problem))
}

/// Reads standard input line by line. The channel closes at the end of the input.
fn lines_of_stdin() -> UnboundedReceiver<Typed> {
    let (send, lines) = unbounded_channel();
    // Not a runtime thread: the runtime waits for its threads, and this one may never end.
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(text) = line else { return };
            if send.send(Typed { text, at: Instant::now() }).is_err() {
                return;
            }
        }
    });
    lines
}

/// A faster answer was meant for an earlier question.
const MIN_READING_TIME: Duration = Duration::from_millis(300);
