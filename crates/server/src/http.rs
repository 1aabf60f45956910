//! The HTTP front: one listener, its limits, and the checks that every request passes before any handler sees it.
//!
//! In order: connection limits → Host → Origin → what needs no token → authentication → role → body. Handlers find the
//! caller in the request's extensions as an `Identity`; no header that a client sends can stand in for it.

mod accept;
mod addresses;
mod body;
mod connection;
mod door;
mod head;
mod host;
mod origin;
mod problem;
mod refusals;
mod watched;

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Clock;

use self::{door::Door, host::AllowedHosts, origin::AllowedOrigins};
use crate::auth::Authenticator;

pub use self::{
    accept::Drained,
    connection::Peer,
    door::{DoorEvents, Readiness},
    problem::{DoorCode, Problem, Rejected},
    refusals::{Refusal, Refusals},
};

/// Where to listen and whom to listen to.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    pub listen: SocketAddr,
    /// How clients reach us from outside, such as `https://gate.example`; `None`: as they say in `Host`.
    pub public_url: Option<String>,
    /// More values of `Host` to answer to, besides the listening address and `public_url`.
    pub hosts: Vec<String>,
    /// Web pages that may call from a browser, such as `https://app.example`.
    pub origins: Vec<String>,
    pub limits: HttpLimits,
}

/// How much of us one client, and all of them, can take.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Beyond this many, accepting pauses and the kernel's queue holds whoever comes.
    pub connections: usize,
    /// Of one address, IPv6 by its /64; beyond this many they are closed at once, so that others find a place.
    pub connections_per_address: usize,
    /// At least 8 KiB; request line and headers together.
    pub header_bytes: usize,
    pub header_count: usize,
    pub body_bytes: usize,
    /// From the first byte of a request to the end of its headers.
    pub header_time: Duration,
    /// From the end of the headers to the end of the body.
    pub body_time: Duration,
    /// Between two requests, and before the first.
    pub idle_time: Duration,
    /// How long a client may leave an answer unread.
    pub write_time: Duration,
    /// How long running requests may take to finish once we stop.
    pub grace: Duration,
}

impl HttpLimits {
    /// `header_bytes`, and never less than hyper allows.
    fn header_limit(&self) -> usize {
        self.header_bytes.max(8 * 1024)
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_address: 128,
            header_bytes: 32 * 1024,
            header_count: 100,
            body_bytes: 1024 * 1024,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            idle_time: Duration::from_mins(1),
            write_time: Duration::from_secs(30),
            grace: Duration::from_secs(10),
        }
    }
}

/// What the front serves and whom it tells.
pub struct Doors {
    /// `/mcp`, `/admin/…` and whatever else needs a caller. What lies below `/admin` needs an admin.
    pub routes: Router,
    pub authenticator: Arc<Authenticator>,
    pub ready: Arc<dyn Fn() -> Readiness + Send + Sync>,
    pub events: Arc<dyn DoorEvents>,
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for Doors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doors").field("authenticator", &self.authenticator).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct HttpFront;

impl HttpFront {
    /// Listens; connections queue in the kernel until `serve`. `register` gets the bound address before anything can connect
    /// to it, and keeps tools from calling the gateway.
    pub async fn bind(
        settings: HttpSettings,
        register: impl AsyncFnOnce(SocketAddr) -> io::Result<()>,
    ) -> io::Result<Bound> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let socket = if settings.listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // As `TcpListener::bind` does: a restarted gateway need not wait for old connections.
        socket.set_reuseaddr(true)?;
        socket.bind(settings.listen)?;
        let address = socket.local_addr()?;
        register(address).await?;
        let listener = socket.listen(BACKLOG)?;
        let hosts =
            AllowedHosts::new(address, settings.public_url.as_deref(), &settings.hosts).map_err(invalid)?;
        let origins = AllowedOrigins::new(&settings.origins).map_err(invalid)?;
        Ok(Bound { listener, address, hosts, origins, limits: settings.limits })
    }
}

/// Connections that the kernel keeps until they are accepted; as many as the standard library asks for.
const BACKLOG: u32 = 1024;

/// A front that listens and does not serve yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    hosts: AllowedHosts,
    origins: AllowedOrigins,
    limits: HttpLimits,
}

impl Bound {
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, then lets running requests finish within the grace time. All is closed when it returns.
    pub async fn serve(self, doors: Doors, shutdown: CancellationToken) -> Drained {
        let events = Arc::clone(&doors.events);
        let door = Door::new(self.hosts, self.origins, self.limits, doors);
        accept::run(self.listener, Arc::new(door), self.limits, events, shutdown).await
    }
}
