//! Logs one line for each finished call, without arguments and results.
//!
//! A thread writes the lines, because standard error may block and a call must not wait for it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use serde_json::Value;
use toolgate_gate::{Finished, Observer, Purpose};

use super::log::{CallLine, Log};
use crate::report::counted;

pub struct CallLog {
    lines: Mutex<Option<SyncSender<CallLine>>>,
    /// Disconnects when the thread has written everything.
    done: Mutex<Receiver<()>>,
    /// Lines that were not written because the thread was behind.
    missed: Arc<AtomicU64>,
    next: Option<Arc<dyn Observer>>,
}

impl CallLog {
    /// `next` observes the calls as well.
    pub fn start(log: Log, next: Option<Arc<dyn Observer>>) -> Arc<Self> {
        let (lines, waiting) = sync_channel::<CallLine>(MOST_WAITING);
        let (finished, done) = sync_channel(0);
        let missed = Arc::new(AtomicU64::new(0));
        let missing = Arc::clone(&missed);
        thread::spawn(move || {
            let _finished: SyncSender<()> = finished;
            for line in waiting {
                log.call(&line);
                let missed = missing.swap(0, Ordering::Relaxed);
                if missed > 0 {
                    let calls = counted(usize::try_from(missed).unwrap_or(usize::MAX), "call");
                    log.warn(&format!("standard error is too slow: {calls} not logged"));
                }
            }
        });
        Arc::new(Self { lines: Mutex::new(Some(lines)), done: Mutex::new(done), missed, next })
    }

    /// Writes the queued lines, for a limited time.
    pub fn close(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let _: Result<(), RecvTimeoutError> = done.recv_timeout(LAST_LINES);
    }
}

impl Observer for CallLog {
    fn finished(&self, call: &Finished<'_>) {
        if call.record.purpose == Purpose::Call {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(lines) = lines.as_ref()
                && lines.try_send(line_of(call)).is_err()
            {
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let Some(next) = &self.next {
            next.finished(call);
        }
    }
}

fn line_of(call: &Finished<'_>) -> CallLine {
    let record = call.record;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    CallLine {
        call_id: record.call_id.clone(),
        caller: record.caller.sub.clone(),
        tool: text(record.tool.get("name")),
        // Only an existing tool has a level. Any other name is text from the caller.
        is_known_tool: record.tool.get("level").is_some(),
        outcome: record.outcome.unwrap_or("unknown"),
        reason: record.reason,
        milliseconds: call.duration.as_secs_f64() * 1_000.0,
    }
}

const MOST_WAITING: usize = 4_096;
const LAST_LINES: Duration = Duration::from_secs(1);
