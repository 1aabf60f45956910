//! Streams that a client keeps open only to be told of changes: each caller has so many, and while let in.

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
use toolgate_gate::{Standing, until_lapse};

/// Who holds how many.
#[derive(Debug)]
pub struct Streams {
    most: usize,
    held: Mutex<HashMap<String, usize>>,
}

/// One open stream, given back when dropped.
#[derive(Debug)]
pub struct Place {
    streams: Arc<Streams>,
    caller: String,
}

impl Streams {
    pub fn new(most_per_caller: usize) -> Arc<Self> {
        Arc::new(Self { most: most_per_caller, held: Mutex::default() })
    }

    /// `None`: the caller has as many as one may have.
    pub fn enter(self: &Arc<Self>, caller: &str) -> Option<Place> {
        let mut held = self.lock();
        let count = held.get(caller).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        held.insert(caller.to_owned(), count + 1);
        Some(Place { streams: Arc::clone(self), caller: caller.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
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

/// The answer keeps its place until its last byte, until nobody reads it any more, or until its caller is no longer let in.
pub fn holding(response: Response, place: Place, standing: Option<Arc<dyn Standing>>) -> Response {
    let lapse = Box::pin(until_lapse(standing));
    response.map(|body| Body::from_stream(Held { body: Some(body.into_data_stream()), lapse, _place: place }))
}

struct Held {
    /// `None` once the caller is no longer let in.
    body: Option<BodyDataStream>,
    lapse: Pin<Box<dyn Future<Output = ()> + Send>>,
    _place: Place,
}

impl Stream for Held {
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
    fn a_place_is_given_back_and_nothing_is_kept_of_whoever_has_gone() {
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
