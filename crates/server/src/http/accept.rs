//! Who gets a connection? As many as the limit says, of one address only its share; when accepting fails we pause and go on.

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
    addresses::{Addresses, Full},
    connection::{self, Ended, Peer, Prompt, Stop},
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
    let front = Front {
        door,
        limits,
        events,
        places: Arc::new(Semaphore::new(limits.connections.clamp(1, Semaphore::MAX_PERMITS))),
        addresses: Addresses::new(limits.connections_per_address),
        stop: Stop::default(),
        running: TaskTracker::new(),
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = front.accept_forever(&listener) => {}
    }
    // Closed first, so that clients are refused at once and turn elsewhere.
    drop(listener);
    front.drain().await
}

struct Front {
    door: Arc<Door>,
    limits: HttpLimits,
    events: Arc<dyn DoorEvents>,
    places: Arc<Semaphore>,
    addresses: Arc<Addresses>,
    stop: Stop,
    running: TaskTracker,
}

impl Front {
    async fn accept_forever(&self, listener: &TcpListener) {
        loop {
            // A place first: without one the kernel's queue keeps whoever comes, and nobody is answered wrongly.
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => self.start(stream, peer, place),
                Err(error) => self.pause(&error).await,
            }
        }
    }

    fn start(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        // Closed and not kept waiting: whoever waits in the kernel's queue would stand before the others.
        let share = match self.addresses.enter(peer.ip(), Instant::now()) {
            Ok(share) => share,
            Err(Full::Tell) => {
                let detail = "it holds as many connections as one address may; more are closed";
                return self.events.refused(DoorCode::TooManyConnections, Some(peer.ip()), detail);
            }
            Err(Full::Told) => {
                return self.events.refused_again(DoorCode::TooManyConnections, Some(peer.ip()));
            }
        };
        // A socket that cannot be set up is one that its client has left already.
        let Ok(stream) = Prompt::new(stream) else { return };
        let (door, limits, stop) = (Arc::clone(&self.door), self.limits, self.stop.clone());
        let events = Arc::clone(&self.events);
        self.running.spawn(async move {
            let ended = connection::serve(stream, Peer(peer), door, limits, stop).await;
            if let Ended::Refused(code, detail) = ended {
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

/// A client that hung up early is no reason to wait; a machine out of descriptors would fail again at once.
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
    fn only_trouble_of_our_own_makes_us_wait() {
        const EMFILE: i32 = 24;
        const ECONNABORTED: i32 = 103;
        assert_eq!(pause_after(&io::Error::from_raw_os_error(EMFILE)), Some(ACCEPT_PAUSE));
        assert_eq!(pause_after(&io::Error::from_raw_os_error(ECONNABORTED)), None);
    }
}
