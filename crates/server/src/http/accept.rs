//! Accepts connections within the limits, in total and per address. Pauses if accepting fails.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    HttpLimits,
    addresses::{AddressFull, Addresses},
    connection::{self, ConnectionEnd, ConnectionStop, NoDelayStream, Peer},
    door::{Door, DoorEvents},
    problem::DoorCode,
};

/// How serving ended.
#[must_use]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Drained {
    /// Every request that was running has been answered.
    Whole,
    /// This many connections outlived the grace time and were cut.
    Cut(usize),
}

pub(super) async fn run(
    listener: TcpListener,
    door: Arc<Door>,
    limits: HttpLimits,
    events: Arc<dyn DoorEvents>,
    shutdown: CancellationToken,
) -> Drained {
    let front = Acceptor {
        door,
        limits,
        events,
        places: Arc::new(Semaphore::new(limits.connections.clamp(1, Semaphore::MAX_PERMITS))),
        addresses: Addresses::new(limits.connections_per_address),
        stop: ConnectionStop::default(),
        running: TaskTracker::new(),
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = front.accept_forever(&listener) => {}
    }
    // Close the listener first: new clients fail at once and can use another replica.
    drop(listener);
    front.drain().await
}

struct Acceptor {
    door: Arc<Door>,
    limits: HttpLimits,
    events: Arc<dyn DoorEvents>,
    places: Arc<Semaphore>,
    addresses: Arc<Addresses>,
    stop: ConnectionStop,
    running: TaskTracker,
}

impl Acceptor {
    async fn accept_forever(&self, listener: &TcpListener) {
        loop {
            // Take a permit before accepting. At the limit, new connections wait in the kernel's queue.
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => self.start(stream, peer, place),
                Err(error) => self.pause(&error).await,
            }
        }
    }

    fn start(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        // Close it at once: waiting in the kernel's queue would delay connections of other addresses.
        let share = match self.addresses.enter(peer.ip(), Instant::now()) {
            Ok(share) => share,
            Err(AddressFull::Tell) => {
                let detail = "the address reached its limit of connections; more are closed";
                return self.events.refused(DoorCode::TooManyConnections, Some(peer.ip()), detail);
            }
            Err(AddressFull::Told) => {
                return self.events.refused_again(DoorCode::TooManyConnections, Some(peer.ip()));
            }
        };
        // This fails if the client has already disconnected.
        let Ok(stream) = NoDelayStream::new(stream) else { return };
        let (door, limits, stop) = (Arc::clone(&self.door), self.limits, self.stop.clone());
        let events = Arc::clone(&self.events);
        self.running.spawn(async move {
            let ended = connection::serve(stream, Peer(peer), door, limits, stop).await;
            if let ConnectionEnd::Refused(code, detail) = ended {
                events.refused(code, Some(peer.ip()), &detail);
            }
            drop((place, share));
        });
    }

    async fn pause(&self, error: &io::Error) {
        if let Some(pause) = pause_after(error) {
            self.events.refused(DoorCode::AcceptFailed, None, &error.to_string());
            sleep(pause).await;
        }
    }

    async fn drain(&self) -> Drained {
        self.stop.softly.cancel();
        self.running.close();
        if timeout(self.limits.grace, self.running.wait()).await.is_ok() {
            return Drained::Whole;
        }
        let left = self.running.len();
        self.stop.hard.cancel();
        self.running.wait().await;
        Drained::Cut(left)
    }
}

/// No pause after an early disconnect. Without file descriptors, accepting would fail again at once.
fn pause_after(error: &io::Error) -> Option<Duration> {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    let is_theirs =
        matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted);
    (!is_theirs).then_some(ACCEPT_PAUSE)
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepting_pauses_after_local_errors_only() {
        const EMFILE: i32 = 24;
        const ECONNABORTED: i32 = 103;
        assert_eq!(pause_after(&io::Error::from_raw_os_error(EMFILE)), Some(ACCEPT_PAUSE));
        assert_eq!(pause_after(&io::Error::from_raw_os_error(ECONNABORTED)), None);
    }
}
