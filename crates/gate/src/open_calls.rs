//! The calls between their opening and closing records. A stopping gateway waits for them, then ends them.

use std::sync::Arc;

use tokio::sync::watch;

#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    count: watch::Sender<OpenCallCount>,
    are_ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct OpenCallCount {
    open: usize,
    is_sealed: bool,
}

/// One open call. Every task that still writes records for the call holds a clone.
#[derive(Debug)]
pub(crate) struct OpenCall(Arc<OpenCalls>);

impl OpenCalls {
    /// For a call whose opening record is about to be written. `None` if the journal is about to be closed.
    pub fn enter(self: &Arc<Self>) -> Option<Arc<OpenCall>> {
        let is_admitted = self.count.send_if_modified(|count| {
            count.open += usize::from(!count.is_sealed);
            !count.is_sealed
        });
        is_admitted.then(|| Arc::new(OpenCall(Arc::clone(self))))
    }

    pub fn len(&self) -> usize {
        self.count.borrow().open
    }

    /// Waits until no call is open.
    pub async fn idle(&self) {
        // `wait_for` cannot fail, because `self` holds the sender.
        drop(self.count.subscribe().wait_for(|count| count.open == 0).await);
    }

    pub fn seal(&self) {
        self.count.send_modify(|count| count.is_sealed = true);
    }

    pub fn end(&self) {
        self.are_ended.send_replace(true);
    }

    pub fn are_ended(&self) -> bool {
        *self.are_ended.borrow()
    }

    /// Waits until the remaining calls must end.
    pub async fn ended(&self) {
        drop(self.are_ended.subscribe().wait_for(|are_ended| *are_ended).await);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| count.open = count.open.saturating_sub(1));
    }
}

/// The message for a call that the shutdown ended.
pub(crate) const STOPPED: &str = "the gateway stopped before the call ended";
