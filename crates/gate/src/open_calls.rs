//! Which calls lie between their opening and their closing record? A gateway that stops waits for them, then ends them.

use std::sync::Arc;

use tokio::sync::watch;

#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    count: watch::Sender<Count>,
    are_ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Count {
    open: usize,
    is_sealed: bool,
}

/// One open call. Whoever still writes for the call holds it.
#[derive(Debug)]
pub(crate) struct Place(Arc<OpenCalls>);

impl OpenCalls {
    /// For a call whose opening record is about to be written. `None`: nothing is written any more.
    pub fn enter(self: &Arc<Self>) -> Option<Arc<Place>> {
        let is_let_in = self.count.send_if_modified(|count| {
            count.open += usize::from(!count.is_sealed);
            !count.is_sealed
        });
        is_let_in.then(|| Arc::new(Place(Arc::clone(self))))
    }

    pub fn len(&self) -> usize {
        self.count.borrow().open
    }

    /// Until no call is open.
    pub async fn idle(&self) {
        // The sender is ours, so that waiting cannot fail.
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

    /// Until the calls that still run are to end.
    pub async fn ended(&self) {
        drop(self.are_ended.subscribe().wait_for(|are_ended| *are_ended).await);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| count.open = count.open.saturating_sub(1));
    }
}

/// What the journal and the caller read of a call that the stop has ended.
pub(crate) const STOPPED: &str = "the gateway stopped before the call had ended";
