//! How is a tunnel dug? To a judged address and an allowed port, and only for the host it was asked for, as far as the
//! greeting tells. What flows through it afterwards is counted and not seen.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::{Instant, sleep_until, timeout},
};

use super::{
    client::{Client, hung_up, silent},
    head::{Framing, Head, invalid},
    hello::{Greeting, Hello, Inner, MOST_WIRE_BYTES},
    ledger::Entry,
    limits::Carries,
    way::Way,
};
use crate::{
    dial::Stream,
    error::{EgressError, Reason, quoted},
    target::{Target, TargetHost},
};

pub async fn serve(way: &Way, client: &mut Client, head: &Head, entry: &Entry) -> Result<(), EgressError> {
    let target = authority_target(head)?;
    entry.leads_to(target.host().to_string(), target.port());
    if !matches!(head.framing()?, Framing::Absent | Framing::Length(0)) {
        return Err(invalid("CONNECT has no body"));
    }
    way.egress.admit(&way.rules, &target)?;
    let carries = carried(way, target.port())?;
    way.judge_hidden_methods()?;
    way.judge_name(&target, &head.target).await?;
    let addresses = way.judged_addresses(&way.rules, &target).await?;
    let dialled = way.egress.dial(&target, &addresses).await?;
    client.say(b"HTTP/1.1 200 Connection established\r\n\r\n", way.limits.idle).await?;
    if carries == Carries::Tls
        && let Err(error) = greeted(way, client, &target).await
    {
        // In the language of the tunnel. Whether anybody listens changes nothing.
        let _ = client.say(&ACCESS_DENIED, way.limits.idle).await;
        return Err(error);
    }
    join(way, client, dialled.stream, entry).await
}

/// `host:port`; a Host header may repeat it, with or without the port.
fn authority_target(head: &Head) -> Result<Target, EgressError> {
    let port = head.target.rsplit_once(':').map(|(_, port)| port);
    if !port
        .is_some_and(|port| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Err(invalid("its target is not `host:port`"));
    }
    let target = Target::of_authority(&head.target)?;
    if let Some(host) = head.single(&http::header::HOST)? {
        let named = Target::of_authority(host)?;
        let has_port = !host.ends_with(']') && host.contains(':');
        if named.host() != target.host() || (has_port && named.port() != target.port()) {
            return Err(invalid("its Host header names another place than its target"));
        }
    }
    Ok(target)
}

fn carried(way: &Way, port: u16) -> Result<Carries, EgressError> {
    let allowed = way.limits.tunnels.iter().find(|tunnel| tunnel.port == port);
    allowed.map(|tunnel| tunnel.carries).ok_or_else(|| {
        let ports: Vec<_> = way.limits.tunnels.iter().map(|tunnel| tunnel.port.to_string()).collect();
        let message = format!("tunnels do not lead to port {port}, only to {}", ports.join(", "));
        EgressError::new(Reason::PortBlocked, message)
    })
}

/// Waits for the greeting and compares it with what the tunnel was asked for. A client that says one name to us and
/// another to the server would reach whatever else lives at the same address.
async fn greeted(way: &Way, client: &mut Client, target: &Target) -> Result<(), EgressError> {
    let whole = async {
        let mut greeting = Greeting::default();
        loop {
            match greeting.read(&client.buffer) {
                Ok(Some(hello)) => return Ok(hello),
                Ok(None) if client.buffer.len() <= MOST_WIRE_BYTES && client.more().await? => {}
                _ => {
                    let message = "a tunnel to this port carries TLS, and this one does not begin with it";
                    return Err(EgressError::new(Reason::TunnelNotTls, message));
                }
            }
        }
    };
    let late = |_| EgressError::new(Reason::TunnelNotTls, "no TLS greeting came through the tunnel in time");
    let hello = timeout(way.limits.head_time, whole).await.map_err(late)??;
    agree(target.host(), &hello)
}

fn agree(host: &TargetHost, hello: &Hello) -> Result<(), EgressError> {
    let named = quoted(&host.to_string());
    if hello.inner == Inner::Encrypted {
        let message =
            format!("the TLS greeting to {named} hides another one inside; turn off Encrypted Client Hello");
        return Err(EgressError::new(Reason::TunnelNameHidden, message));
    }
    match (host, &hello.name) {
        (TargetHost::Name(host), Some(name)) if host == name => Ok(()),
        // An address has no name to say.
        (TargetHost::Address(_), None) => Ok(()),
        (_, Some(name)) => {
            let name = quoted(name);
            let message =
                format!("the tunnel is to {named}, and its TLS greeting names {name}; ask for that host");
            Err(EgressError::new(Reason::TunnelNameMismatch, message))
        }
        (TargetHost::Name(_), None) => {
            let message =
                format!("the tunnel is to {named}, and its TLS greeting names nobody; send the name");
            Err(EgressError::new(Reason::TunnelNameMismatch, message))
        }
    }
}

/// Both directions until both have ended, one fails, nothing moves, or the purse is empty.
async fn join(
    way: &Way,
    client: &mut Client,
    upstream: Box<dyn Stream>,
    entry: &Entry,
) -> Result<(), EgressError> {
    let pulse = Pulse::start();
    let (mut from_server, mut to_server) = tokio::io::split(upstream);
    let early = client.buffer.split();
    let (from_client, to_client) = client.stream.split();
    let up = async {
        way.count_up(entry, early.len())?;
        to_server.write_all(&early).await.map_err(|_| hung_up())?;
        pump(from_client, &mut to_server, &pulse, |bytes| way.count_up(entry, bytes)).await
    };
    let down = pump(&mut from_server, to_client, &pulse, |bytes| way.count_down(entry, bytes));
    tokio::select! {
        ended = async { tokio::try_join!(up, down) } => ended.map(drop),
        () = pulse.stopped(way.limits.idle) => Err(silent()),
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    pulse: &Pulse,
    count: impl Fn(usize) -> Result<(), EgressError>,
) -> Result<(), EgressError> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let bytes = from.read(&mut chunk).await.map_err(|_| hung_up())?;
        let Some(data) = chunk.get(..bytes).filter(|data| !data.is_empty()) else {
            // The other direction may go on; that the end cannot be told any more is its own end.
            let _ = to.shutdown().await;
            return Ok(());
        };
        pulse.beat();
        count(bytes)?;
        to.write_all(data).await.map_err(|_| hung_up())?;
        pulse.beat();
    }
}

/// When did anything last move, in either direction?
struct Pulse(Mutex<Instant>);

impl Pulse {
    fn start() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    async fn stopped(&self, idle: Duration) {
        loop {
            let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() >= idle {
                return;
            }
            sleep_until(last + idle).await;
        }
    }
}

const CHUNK_BYTES: usize = 16 * 1024;
/// A fatal alert of TLS: `access_denied`.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
