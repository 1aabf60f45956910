//! The HTTP front: one listener, its limits, and the checks that every request passes before any handler sees it.
//!
//! Order: connection limits → Host → Origin → public paths → authentication → role → body. Handlers find the caller in the
//! request's extensions as an `AuthIdentity`, which no header of a client can replace.

mod accept;
mod activity;
mod addresses;
mod body;
mod connection;
mod door;
mod head;
mod host;
mod origin;
mod problem;
mod refusals;

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
    problem::{DoorCode, HttpProblem, Rejected},
    refusals::{RefusalLog, RefusalSummary},
};

/// Where to listen, and which hosts and origins to accept.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    pub listen: SocketAddr,
    /// The address for clients, such as `https://gate.example`. `None`: the address in `Host`.
    pub public_url: Option<String>,
    /// Further accepted values of `Host`, besides the listening address and `public_url`.
    pub hosts: Vec<String>,
    /// Web pages that may call from a browser, such as `https://app.example`.
    pub origins: Vec<String>,
    pub limits: HttpLimits,
}

/// Limits per client and in total.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// At this number accepting pauses, and new connections wait in the kernel's queue.
    pub connections: usize,
    /// Per IPv4 address or IPv6 /64. Further connections are closed at once.
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
    /// How long a client may stop reading an answer.
    pub write_time: Duration,
    /// How long running requests may take to finish at shutdown.
    pub grace: Duration,
}

impl HttpLimits {
    /// `header_bytes`, but at least hyper's minimum.
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

/// The services that the front uses.
pub struct FrontParts {
    /// Routes that need a caller, such as `/mcp`. Paths below `/admin` need an admin.
    pub routes: Router,
    pub authenticator: Arc<Authenticator>,
    pub ready: Arc<dyn Fn() -> Readiness + Send + Sync>,
    pub events: Arc<dyn DoorEvents>,
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for FrontParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontParts").field("authenticator", &self.authenticator).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct HttpFront;

impl HttpFront {
    /// Listens. Connections wait in the kernel until `serve`. `register` receives the address before anything can connect to
    /// it, and blocks it for tools.
    pub async fn bind(
        settings: HttpSettings,
        register: impl AsyncFnOnce(SocketAddr) -> io::Result<()>,
    ) -> io::Result<BoundFront> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let socket = if settings.listen.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // As `TcpListener::bind` does: lets a restarted gateway bind while old connections close.
        socket.set_reuseaddr(true)?;
        socket.bind(settings.listen)?;
        let address = socket.local_addr()?;
        register(address).await?;
        let listener = socket.listen(BACKLOG)?;
        let hosts =
            AllowedHosts::new(address, settings.public_url.as_deref(), &settings.hosts).map_err(invalid)?;
        let origins = AllowedOrigins::new(&settings.origins).map_err(invalid)?;
        Ok(BoundFront { listener, address, hosts, origins, limits: settings.limits })
    }
}

/// Length of the kernel's queue, as in the standard library.
const BACKLOG: u32 = 1024;

/// A front that listens but does not serve yet.
#[derive(Debug)]
pub struct BoundFront {
    listener: TcpListener,
    address: SocketAddr,
    hosts: AllowedHosts,
    origins: AllowedOrigins,
    limits: HttpLimits,
}

impl BoundFront {
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, then waits up to the grace time for running requests. Returns after all connections are closed.
    pub async fn serve(self, doors: FrontParts, shutdown: CancellationToken) -> Drained {
        let events = Arc::clone(&doors.events);
        let door = Door::new(self.hosts, self.origins, self.limits, doors);
        accept::run(self.listener, Arc::new(door), self.limits, events, shutdown).await
    }
}
