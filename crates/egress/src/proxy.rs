//! How does a jailed command reach out? Through two sockets of its own network namespace, both served here: a proxy for
//! HTTP and tunnels, and a name server. Nothing else leads out of the jail, so going around them reaches nothing.

mod client;
mod connection;
mod environment;
mod head;
mod hello;
mod ledger;
mod limits;
mod names;
mod question;
mod refusal;
mod relay;
#[cfg(test)]
mod tests;
mod tunnel;
mod way;

use std::{fmt, io, net::TcpListener, net::UdpSocket, sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use self::{ledger::Ledger, way::Way};
use crate::{fetch::Egress, rules::Rules};

pub use self::{
    environment::proxy_environment,
    ledger::{Exchange, ExchangeKind, Outcome, ProxyReport},
    limits::{Carries, ProxyLimits, Tunnel},
};

/// The way out of one jail, for one run of one command. Dropping it ends everything that passes through it.
pub struct Proxy {
    task: JoinHandle<()>,
    /// The task stops when this is dropped, by whatever way.
    stop: oneshot::Sender<()>,
    ledger: Arc<Ledger>,
}

impl Proxy {
    /// Serves `http` and `dns`, both made inside the jail, until dropped. Needs a runtime around it.
    pub fn serve(
        egress: &Egress,
        rules: Rules,
        limits: ProxyLimits,
        http: TcpListener,
        dns: UdpSocket,
    ) -> io::Result<Self> {
        // The conversions below panic without a runtime.
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        http.set_nonblocking(true)?;
        dns.set_nonblocking(true)?;
        let http = tokio::net::TcpListener::from_std(http)?;
        let dns = tokio::net::UdpSocket::from_std(dns)?;
        let ledger = Arc::new(Ledger::new(limits.records));
        let way = Arc::new(Way::new(egress.clone(), rules, limits, Arc::clone(&ledger)));
        let (stop, stopped) = oneshot::channel();
        let task = runtime.spawn(run(way, http, dns, stopped));
        Ok(Self { task, stop, ledger })
    }

    /// Stops, and tells what passed. Waits for nothing longer than a moment.
    pub async fn finish(self) -> ProxyReport {
        let Self { task, stop, ledger } = self;
        drop(stop);
        // Every exchange enters the ledger when its task is dropped, which happens where it next waits.
        let _ = timeout(A_MOMENT, task).await;
        ledger.so_far()
    }

    /// Tells what passed until it is asked, also when the proxy is gone. What goes on counts as stopped.
    pub fn witness(&self) -> impl Fn() -> ProxyReport + Send + Sync + use<> {
        let ledger = Arc::clone(&self.ledger);
        move || ledger.so_far()
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

async fn run(
    way: Arc<Way>,
    http: tokio::net::TcpListener,
    dns: tokio::net::UdpSocket,
    stopped: oneshot::Receiver<()>,
) {
    // Owned here, so that none outlives this task.
    let (mut connections, mut questions) = (JoinSet::new(), JoinSet::new());
    tokio::select! {
        () = connection::accept(&way, &http, &mut connections) => {}
        () = names::answer(&way, dns, &mut questions) => {}
        _ = stopped => {}
    }
    connections.shutdown().await;
    questions.shutdown().await;
}

const A_MOMENT: Duration = Duration::from_secs(1);
