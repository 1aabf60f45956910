//! Connects to checked addresses. This module never resolves names and ignores proxy settings in the environment.

use std::{
    io,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use crate::{
    error::{EgressError, EgressReason, quoted},
    judge::JudgedAddr,
    limits::EgressLimits,
    target::{RequestTarget, Transport},
    tls::Tls,
};

/// An open connection and its remote address.
pub struct Dialled {
    pub stream: Box<dyn NetStream>,
    pub address: JudgedAddr,
}

pub trait NetStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> NetStream for T {}

pub async fn dial(
    target: &RequestTarget,
    addresses: &[JudgedAddr],
    tls: &Tls,
    limits: &EgressLimits,
) -> Result<Dialled, EgressError> {
    let (tcp, address) = connect(target, addresses, limits.connect).await?;
    if target.transport() == Transport::Plain {
        return Ok(Dialled { stream: Box::new(tcp), address });
    }
    let handshake = timeout(limits.tls, tls.handshake(tcp, target.host())).await;
    let late = || {
        let message = format!("{} did not finish the TLS handshake in time", quoted(&target.authority()));
        EgressError::new(EgressReason::TlsTimeout, message)
    };
    let stream = handshake.map_err(|_| late())??;
    Ok(Dialled { stream: Box::new(stream), address })
}

/// Tries the addresses in order. Each gets an equal share of the remaining time.
async fn connect(
    target: &RequestTarget,
    addresses: &[JudgedAddr],
    budget: Duration,
) -> Result<(TcpStream, JudgedAddr), EgressError> {
    let started = Instant::now();
    let mut last = io::ErrorKind::TimedOut;
    let order = alternating(addresses);
    for (tried, address) in order.iter().enumerate() {
        let left = budget.saturating_sub(started.elapsed());
        let share = left / u32::try_from(order.len() - tried).unwrap_or(u32::MAX);
        match timeout(share, TcpStream::connect(address.socket())).await {
            Ok(Ok(stream)) => {
                // A request is one write, so Nagle's algorithm would only delay it. A failure to turn it off is
                // harmless.
                let _ = stream.set_nodelay(true);
                return Ok((stream, *address));
            }
            Ok(Err(error)) => last = error.kind(),
            Err(_) => last = io::ErrorKind::TimedOut,
        }
    }
    let authority = quoted(&target.authority());
    Err(if last == io::ErrorKind::TimedOut {
        EgressError::new(
            EgressReason::ConnectTimeout,
            format!("{authority} did not accept a connection in time; try again later"),
        )
    } else {
        EgressError::new(EgressReason::ConnectFailed, format!("{authority} cannot be reached: {last}"))
    })
}

/// Alternates between IPv4 and IPv6, because one family may be broken on this machine. Returns at most `MAX_TRIES`
/// addresses.
fn alternating(addresses: &[JudgedAddr]) -> Vec<JudgedAddr> {
    let first_is_v6 = addresses.first().is_some_and(|address| address.socket().is_ipv6());
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.iter().copied().partition(|address| address.socket().is_ipv6() == first_is_v6);
    let longest = first.len().max(second.len());
    let by_turns = (0..longest).flat_map(|turn| [first.get(turn), second.get(turn)]);
    by_turns.flatten().copied().take(MAX_TRIES).collect()
}

const MAX_TRIES: usize = 6;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::{judge::admit, listeners::Listeners, testing::open};

    #[track_caller]
    fn check(addresses: &[&str], expect: &[&str]) {
        let (rules, target) = (open(), RequestTarget::parse("http://a.test/").unwrap());
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let listeners = Listeners::of_this_process();
        let judged = admit(&rules, &target, &listeners).unwrap().judge_all(&addresses).unwrap();
        let order: Vec<_> =
            alternating(&judged).iter().map(|address| address.socket().ip().to_string()).collect();
        assert_eq!(order, expect);
    }

    /// Nagle's algorithm must be off.
    #[tokio::test]
    async fn requests_are_sent_without_delay() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = RequestTarget::parse(&format!("http://a.test:{}/", address.port())).unwrap();
        let (rules, listeners) = (open(), Listeners::of_this_process());
        let judged = admit(&rules, &target, &listeners).unwrap().judge_all(&[address.ip()]).unwrap();
        let (stream, _) = connect(&target, &judged, Duration::from_mins(1)).await.unwrap();
        assert!(stream.nodelay().unwrap());
    }

    #[test]
    fn families_alternate_and_attempts_are_limited() {
        check(&["8.8.8.8"], &["8.8.8.8"]);
        check(&["2000::1", "2000::2", "2000::3", "8.8.8.8"], &["2000::1", "8.8.8.8", "2000::2", "2000::3"]);
        check(&["8.8.8.8", "2000::1", "2000::2"], &["8.8.8.8", "2000::1", "2000::2"]);
        let many: Vec<_> = (0..9).map(|low| format!("8.8.8.{low}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        check(&many, &many[..MAX_TRIES]);
    }
}
