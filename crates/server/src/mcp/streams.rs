//! Limits the notification streams per caller, and ends them when the caller's token becomes invalid.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::{
    body::{Body, BodyDataStream, Bytes},
    response::Response,
};
use futures_core::Stream;
use toolgate_gate::{AuthStatus, until_lapse};

/// Open streams per caller.
#[derive(Debug)]
pub struct Streams {
    most: usize,
    held: Mutex<HashMap<String, usize>>,
}

/// One open stream. Dropping it frees the slot.
#[derive(Debug)]
pub struct StreamSlot {
    streams: Arc<Streams>,
    caller: String,
}

impl Streams {
    pub fn new(most_per_caller: usize) -> Arc<Self> {
        Arc::new(Self { most: most_per_caller, held: Mutex::default() })
    }

    /// Returns `None` at the limit.
    pub fn enter(self: &Arc<Self>, caller: &str) -> Option<StreamSlot> {
        let mut held = self.lock();
        let count = held.get(caller).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        held.insert(caller.to_owned(), count + 1);
        Some(StreamSlot { streams: Arc::clone(self), caller: caller.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut held = self.streams.lock();
        if let Some(count) = held.get_mut(&self.caller) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.remove(&self.caller);
            }
        }
    }
}

/// Holds the slot until the stream ends, the client disconnects, or the caller's token becomes invalid.
pub fn holding(response: Response, place: StreamSlot, auth_status: Option<Arc<dyn AuthStatus>>) -> Response {
    let lapse = Box::pin(until_lapse(auth_status));
    response.map(|body| {
        Body::from_stream(StreamBody { body: Some(body.into_data_stream()), lapse, _place: place })
    })
}

struct StreamBody {
    /// `None` after the caller's token became invalid.
    body: Option<BodyDataStream>,
    lapse: Pin<Box<dyn Future<Output = ()> + Send>>,
    _place: StreamSlot,
}

impl Stream for StreamBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let held = self.get_mut();
        let Some(body) = &mut held.body else { return Poll::Ready(None) };
        if held.lapse.as_mut().poll(context).is_ready() {
            held.body = None;
            return Poll::Ready(None);
        }
        Pin::new(body).poll_next(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_is_freed_and_caller_is_forgotten() {
        let streams = Streams::new(2);
        let held = (streams.enter("ann").unwrap(), streams.enter("ann").unwrap());
        assert!(streams.enter("ann").is_none());
        drop(streams.enter("bob").unwrap());
        drop(held.0);
        assert!(streams.enter("ann").is_some());
        drop(held.1);
        assert!(streams.lock().is_empty());
    }
}
