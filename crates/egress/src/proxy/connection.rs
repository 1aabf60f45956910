//! Serves one connection of a command: one request, then it is closed.

use std::{sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    client::ProxyClient,
    context::ProxyContext,
    ledger::{ExchangeEntry, ExchangeKind, ExchangeOutcome},
    relay, tunnel,
};
use crate::error::{EgressError, EgressReason, shown};

/// Accepts connections, up to the limit of concurrent ones.
pub async fn accept(context: &Arc<ProxyContext>, listener: &TcpListener, connections: &mut JoinSet<()>) {
    let mut accepted = 0_u32;
    loop {
        // At least one, otherwise the proxy would never accept anything.
        let has_room = connections.len() < context.limits.connections_at_once.max(1);
        tokio::select! {
            Some(_) = connections.join_next() => {}
            connection = listener.accept(), if has_room => match connection {
                Ok((stream, _)) => {
                    accepted = accepted.saturating_add(1);
                    connections.spawn(serve(Arc::clone(context), stream, accepted));
                }
                // Probably out of file descriptors; other connections will release some.
                Err(_) => sleep(RETRY_DELAY).await,
            }
        }
    }
}

async fn serve(context: Arc<ProxyContext>, stream: TcpStream, number: u32) {
    let entry = context.ledger.open(ExchangeKind::Http);
    let mut client = ProxyClient::new(stream);
    let talk = timeout(context.limits.lifetime, talk(&context, &mut client, &entry, number)).await;
    let late = |_| {
        EgressError::new(
            EgressReason::RequestTimeout,
            "the connection exceeded its time limit; transfer less",
        )
    };
    match talk.map_err(late).flatten() {
        Ok(()) => {
            entry.close(ExchangeOutcome::Ok);
            client.close().await;
        }
        Err(error) => {
            entry.close(ExchangeOutcome::Ended(error.reason));
            client.refuse(&error).await;
        }
    }
}

async fn talk(
    context: &ProxyContext,
    client: &mut ProxyClient,
    entry: &ExchangeEntry,
    number: u32,
) -> Result<(), EgressError> {
    if number > context.limits.connections {
        let most = context.limits.connections;
        let message = format!("this run opened more than {most} connections; use fewer");
        return Err(EgressError::new(EgressReason::TooManyConnections, message));
    }
    let Some(head) = client.head(context, entry).await? else { return Ok(()) };
    // Recorded until the target is parsed. Leaves out query and user, which may contain keys.
    let before_query = head.target.split(['?', '#']).next().unwrap_or_default();
    let host = shown(before_query.rsplit('@').next().unwrap_or_default());
    let is_tunnel = head.method == "CONNECT";
    let kind = if is_tunnel { ExchangeKind::Connect } else { ExchangeKind::Http };
    entry.set_request(kind, shown(&head.method), host);
    if is_tunnel {
        tunnel::serve(context, client, &head, entry).await
    } else {
        relay::serve(context, client, &head, entry).await
    }
}

const RETRY_DELAY: Duration = Duration::from_millis(50);
