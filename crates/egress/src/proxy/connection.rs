//! One connection of a command: one request, then it is closed.

use std::{sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    client::Client,
    ledger::{Entry, ExchangeKind, Outcome},
    relay, tunnel,
    way::Way,
};
use crate::error::{EgressError, Reason, shown};

/// Serves one connection after another, and never more at once than the limits say.
pub async fn accept(way: &Arc<Way>, listener: &TcpListener, connections: &mut JoinSet<()>) {
    let mut accepted = 0_u32;
    loop {
        // At least one, or nothing would ever happen.
        let has_room = connections.len() < way.limits.connections_at_once.max(1);
        tokio::select! {
            Some(_) = connections.join_next() => {}
            connection = listener.accept(), if has_room => match connection {
                Ok((stream, _)) => {
                    accepted = accepted.saturating_add(1);
                    connections.spawn(serve(Arc::clone(way), stream, accepted));
                }
                // Out of file descriptors, most likely: others will close some.
                Err(_) => sleep(A_WHILE).await,
            }
        }
    }
}

async fn serve(way: Arc<Way>, stream: TcpStream, number: u32) {
    let entry = way.ledger.open(ExchangeKind::Http);
    let mut client = Client::new(stream);
    let talk = timeout(way.limits.lifetime, talk(&way, &mut client, &entry, number)).await;
    let late = |_| EgressError::new(Reason::RequestTimeout, "the connection lived too long; transfer less");
    match talk.map_err(late).flatten() {
        Ok(()) => {
            entry.close(Outcome::Ok);
            client.part().await;
        }
        Err(error) => {
            entry.close(Outcome::Ended(error.reason));
            client.refuse(&error).await;
        }
    }
}

async fn talk(way: &Way, client: &mut Client, entry: &Entry, number: u32) -> Result<(), EgressError> {
    if number > way.limits.connections {
        let most = way.limits.connections;
        let message = format!("this run opened more than {most} connections; use fewer");
        return Err(EgressError::new(Reason::TooManyConnections, message));
    }
    let Some(head) = client.head(way, entry).await? else { return Ok(()) };
    // Until it is understood. Queries and users carry keys.
    let before_query = head.target.split(['?', '#']).next().unwrap_or_default();
    let host = shown(before_query.rsplit('@').next().unwrap_or_default());
    let is_tunnel = head.method == "CONNECT";
    let kind = if is_tunnel { ExchangeKind::Connect } else { ExchangeKind::Http };
    entry.asks(kind, shown(&head.method), host);
    if is_tunnel {
        tunnel::serve(way, client, &head, entry).await
    } else {
        relay::serve(way, client, &head, entry).await
    }
}

const A_WHILE: Duration = Duration::from_millis(50);
