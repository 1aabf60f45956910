//! Request ids in use within one session, or over one pair of pipes.
//!
//! The SDK routes answers by request id alone. Two requests with one id would get each other's answers, so the second is refused.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub struct InFlight {
    ids: Mutex<HashMap<RequestId, CancellationToken>>,
}

/// Keeps a request id in use until the last clone is dropped. One clone waits for the answer, another travels with the request
/// and is dropped when its handler ends.
#[derive(Clone, Debug)]
pub struct IdReservation(Arc<ReservedId>);

#[derive(Debug)]
struct ReservedId {
    in_flight: Arc<InFlight>,
    id: RequestId,
    cancelled: CancellationToken,
}

impl InFlight {
    /// Returns `None` if the id is in use. `cancelled` is cancelled by [`InFlight::cancel`].
    pub fn reserve(self: &Arc<Self>, id: &RequestId, cancelled: CancellationToken) -> Option<IdReservation> {
        let mut ids = self.lock();
        if ids.contains_key(id) {
            return None;
        }
        ids.insert(id.clone(), cancelled.clone());
        drop(ids);
        Some(IdReservation(Arc::new(ReservedId { in_flight: Arc::clone(self), id: id.clone(), cancelled })))
    }

    /// The client gave up the request with this id, if there is one.
    pub fn cancel(&self, id: &RequestId) {
        if let Some(cancelled) = self.lock().get(id) {
            cancelled.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdReservation {
    /// Returns when the client has given up the request.
    pub async fn cancelled(&self) {
        self.0.cancelled.cancelled().await;
    }
}

impl Drop for ReservedId {
    fn drop(&mut self) {
        self.in_flight.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_in_use_until_its_last_reservation_is_dropped() {
        let in_flight = Arc::<InFlight>::default();
        let reserve = |id: RequestId| in_flight.reserve(&id, CancellationToken::new());
        let first = reserve(RequestId::Number(1)).unwrap();
        let travelling = first.clone();
        assert!(reserve(RequestId::Number(1)).is_none());
        assert!(reserve(RequestId::String("1".into())).is_some(), "a text is not a number");
        drop(first);
        assert!(reserve(RequestId::Number(1)).is_none());
        drop(travelling);
        assert!(reserve(RequestId::Number(1)).is_some());
        assert!(in_flight.lock().is_empty());
    }
}
