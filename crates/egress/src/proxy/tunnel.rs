//! CONNECT tunnels to a checked address and an allowed port. A TLS tunnel must name its host in the SNI; later traffic
//! is counted but not inspected.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::{Instant, sleep_until, timeout},
};

use super::{
    client::{ProxyClient, connection_lost, idle_timeout},
    client_hello::{ClientHello, ClientHelloReader, InnerHello, MAX_WIRE_BYTES},
    context::ProxyContext,
    head::{BodyFraming, RequestHead, invalid},
    ledger::ExchangeEntry,
    limits::Carries,
};
use crate::{
    dial::NetStream,
    error::{EgressError, EgressReason, quoted},
    target::{RequestTarget, TargetHost},
};

pub async fn serve(
    context: &ProxyContext,
    client: &mut ProxyClient,
    head: &RequestHead,
    entry: &ExchangeEntry,
) -> Result<(), EgressError> {
    let target = authority_target(head)?;
    entry.set_target(target.host().to_string(), target.port());
    if !matches!(head.framing()?, BodyFraming::Absent | BodyFraming::Length(0)) {
        return Err(invalid("CONNECT has no body"));
    }
    context.egress.admit(&context.rules, &target)?;
    let carries = carried(context, target.port())?;
    context.check_tunnel_methods()?;
    context.judge_name(&target, &head.target).await?;
    let addresses = context.judged_addresses(&context.rules, &target).await?;
    let dialled = context.egress.dial(&target, &addresses).await?;
    client.say(b"HTTP/1.1 200 Connection established\r\n\r\n", context.limits.idle).await?;
    if carries == Carries::Tls
        && let Err(error) = check_client_hello(context, client, &target).await
    {
        // Report the error as a TLS alert. A failed write changes nothing.
        let _ = client.say(&ACCESS_DENIED, context.limits.idle).await;
        return Err(error);
    }
    join(context, client, dialled.stream, entry).await
}

/// Parses `host:port`. A Host header may repeat it, with or without the port.
fn authority_target(head: &RequestHead) -> Result<RequestTarget, EgressError> {
    let port = head.target.rsplit_once(':').map(|(_, port)| port);
    if !port
        .is_some_and(|port| (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Err(invalid("its target is not `host:port`"));
    }
    let target = RequestTarget::of_authority(&head.target)?;
    if let Some(host) = head.single(&http::header::HOST)? {
        let named = RequestTarget::of_authority(host)?;
        let has_port = !host.ends_with(']') && host.contains(':');
        if named.host() != target.host() || (has_port && named.port() != target.port()) {
            return Err(invalid("its Host header differs from its target"));
        }
    }
    Ok(target)
}

fn carried(context: &ProxyContext, port: u16) -> Result<Carries, EgressError> {
    let allowed = context.limits.tunnels.iter().find(|tunnel| tunnel.port == port);
    allowed.map(|tunnel| tunnel.carries).ok_or_else(|| {
        let ports: Vec<_> = context.limits.tunnels.iter().map(|tunnel| tunnel.port.to_string()).collect();
        let message = format!("tunnels to port {port} are not allowed, only to {}", ports.join(", "));
        EgressError::new(EgressReason::PortBlocked, message)
    })
}

/// Waits for the ClientHello and compares its SNI with the host of the tunnel. With another SNI a client would reach
/// any other service at the same address.
async fn check_client_hello(
    context: &ProxyContext,
    client: &mut ProxyClient,
    target: &RequestTarget,
) -> Result<(), EgressError> {
    let whole = async {
        let mut reader = ClientHelloReader::default();
        loop {
            match reader.read(&client.buffer) {
                Ok(Some(hello)) => return Ok(hello),
                Ok(None) if client.buffer.len() <= MAX_WIRE_BYTES && client.more().await? => {}
                _ => {
                    let message = "a tunnel to this port must begin with TLS";
                    return Err(EgressError::new(EgressReason::TunnelNotTls, message));
                }
            }
        }
    };
    let late = |_| {
        EgressError::new(EgressReason::TunnelNotTls, "no TLS ClientHello arrived through the tunnel in time")
    };
    let hello = timeout(context.limits.head_time, whole).await.map_err(late)??;
    check_sni(target.host(), &hello)
}

fn check_sni(host: &TargetHost, hello: &ClientHello) -> Result<(), EgressError> {
    let named = quoted(&host.to_string());
    if hello.inner == InnerHello::Encrypted {
        let message = format!("the TLS ClientHello to {named} is encrypted; turn off Encrypted Client Hello");
        return Err(EgressError::new(EgressReason::TunnelNameHidden, message));
    }
    match (host, &hello.name) {
        (TargetHost::Name(host), Some(name)) if host == name => Ok(()),
        // An address literal is sent without SNI.
        (TargetHost::Address(_), None) => Ok(()),
        (_, Some(name)) => {
            let name = quoted(name);
            let message =
                format!("the tunnel is to {named}, but the SNI is {name}; open a tunnel to that host");
            Err(EgressError::new(EgressReason::TunnelNameMismatch, message))
        }
        (TargetHost::Name(_), None) => {
            let message =
                format!("the tunnel is to {named}, but the ClientHello has no SNI; send the host name");
            Err(EgressError::new(EgressReason::TunnelNameMismatch, message))
        }
    }
}

/// Copies both directions until both end, one fails, the connection is idle or the traffic limit is reached.
async fn join(
    context: &ProxyContext,
    client: &mut ProxyClient,
    upstream: Box<dyn NetStream>,
    entry: &ExchangeEntry,
) -> Result<(), EgressError> {
    let pulse = Pulse::start();
    let (mut from_server, mut to_server) = tokio::io::split(upstream);
    let early = client.buffer.split();
    let (from_client, to_client) = client.stream.split();
    let up = async {
        context.count_up(entry, early.len())?;
        to_server.write_all(&early).await.map_err(|_| connection_lost())?;
        pump(from_client, &mut to_server, &pulse, |bytes| context.count_up(entry, bytes)).await
    };
    let down = pump(&mut from_server, to_client, &pulse, |bytes| context.count_down(entry, bytes));
    tokio::select! {
        ended = async { tokio::try_join!(up, down) } => ended.map(drop),
        () = pulse.stopped(context.limits.idle) => Err(idle_timeout()),
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
        let bytes = from.read(&mut chunk).await.map_err(|_| connection_lost())?;
        let Some(data) = chunk.get(..bytes).filter(|data| !data.is_empty()) else {
            // The other direction may continue. A failed shutdown means that the peer is gone already.
            let _ = to.shutdown().await;
            return Ok(());
        };
        pulse.beat();
        count(bytes)?;
        to.write_all(data).await.map_err(|_| connection_lost())?;
        pulse.beat();
    }
}

/// The time of the last traffic in either direction.
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
/// The fatal TLS alert `access_denied`.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
