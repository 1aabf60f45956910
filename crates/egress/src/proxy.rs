//! Egress proxy of a sandboxed command. It serves two sockets inside the command's network namespace: an HTTP proxy
//! with tunnels, and a name server. The sandbox has no other network path, so a command cannot bypass them.

mod client;
mod client_hello;
mod connection;
mod context;
mod dns_question;
mod environment;
mod head;
mod ledger;
mod limits;
mod name_server;
mod refusal;
mod relay;
#[cfg(test)]
mod tests;
mod tunnel;

use std::{fmt, io, net::TcpListener, net::UdpSocket, sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use self::{context::ProxyContext, ledger::ExchangeLedger};
use crate::{fetch::Egress, rules::EgressRules};

pub use self::{
    environment::proxy_environment,
    ledger::{Exchange, ExchangeKind, ExchangeOutcome, ProxyReport},
    limits::{Carries, ProxyLimits, Tunnel},
};

/// The egress proxy of one sandbox, for one run of one command. Dropping it ends all its connections.
pub struct Proxy {
    task: JoinHandle<()>,
    /// The task stops when this is dropped, however that happens.
    stop: oneshot::Sender<()>,
    ledger: Arc<ExchangeLedger>,
}

impl Proxy {
    /// Serves `http` and `dns`, both created inside the sandbox, until dropped. Must be called within a Tokio runtime.
    pub fn serve(
        egress: &Egress,
        rules: EgressRules,
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
        let ledger = Arc::new(ExchangeLedger::new(limits.records));
        let context = Arc::new(ProxyContext::new(egress.clone(), rules, limits, Arc::clone(&ledger)));
        let (stop, stopped) = oneshot::channel();
        let task = runtime.spawn(run(context, http, dns, stopped));
        Ok(Self { task, stop, ledger })
    }

    /// Stops the proxy and returns its report. Waits at most `STOP_TIMEOUT` for open exchanges.
    pub async fn finish(self) -> ProxyReport {
        let Self { task, stop, ledger } = self;
        drop(stop);
        // Each exchange enters the ledger when its task is dropped, at its next await point.
        let _ = timeout(STOP_TIMEOUT, task).await;
        ledger.report()
    }

    /// Returns a function that reports the exchanges so far, even after the proxy is gone. Open exchanges count as
    /// stopped.
    pub fn witness(&self) -> impl Fn() -> ProxyReport + Send + Sync + use<> {
        let ledger = Arc::clone(&self.ledger);
        move || ledger.report()
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

async fn run(
    context: Arc<ProxyContext>,
    http: tokio::net::TcpListener,
    dns: tokio::net::UdpSocket,
    stopped: oneshot::Receiver<()>,
) {
    // Owned by this task, so they end with it.
    let (mut connections, mut questions) = (JoinSet::new(), JoinSet::new());
    tokio::select! {
        () = connection::accept(&context, &http, &mut connections) => {}
        () = name_server::answer(&context, dns, &mut questions) => {}
        _ = stopped => {}
    }
    connections.shutdown().await;
    questions.shutdown().await;
}

const STOP_TIMEOUT: Duration = Duration::from_secs(1);
