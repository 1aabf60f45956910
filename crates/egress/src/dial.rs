//! How is a judged address reached? Nothing here resolves, and no proxy of the environment is asked.

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
    error::{EgressError, Reason, quoted},
    judge::JudgedAddr,
    limits::Limits,
    target::{Target, Transport},
    tls::Tls,
};

/// An open connection, and where it leads.
pub struct Dialled {
    pub stream: Box<dyn Stream>,
    pub address: JudgedAddr,
}

pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub async fn dial(
    target: &Target,
    addresses: &[JudgedAddr],
    tls: &Tls,
    limits: &Limits,
) -> Result<Dialled, EgressError> {
    let (tcp, address) = connect(target, addresses, limits.connect).await?;
    if target.transport() == Transport::Plain {
        return Ok(Dialled { stream: Box::new(tcp), address });
    }
    let handshake = timeout(limits.tls, tls.shake_hands(tcp, target.host())).await;
    let late = || {
        let message = format!("{} did not finish the TLS handshake in time", quoted(&target.authority()));
        EgressError::new(Reason::TlsTimeout, message)
    };
    let stream = handshake.map_err(|_| late())??;
    Ok(Dialled { stream: Box::new(stream), address })
}

/// One address after the other; each gets its share of what is left of the budget.
async fn connect(
    target: &Target,
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
                // A request is one write; waiting to fill a segment would only delay it. Not worth failing over.
                let _ = stream.set_nodelay(true);
                return Ok((stream, *address));
            }
            Ok(Err(error)) => last = error.kind(),
            Err(_) => last = io::ErrorKind::TimedOut,
        }
    }
    let authority = quoted(&target.authority());
    Err(if last == io::ErrorKind::TimedOut {
        EgressError::new(Reason::ConnectTimeout, format!("{authority} did not accept a connection in time"))
    } else {
        EgressError::new(Reason::ConnectFailed, format!("{authority} cannot be reached: {last}"))
    })
}

/// The families by turns, so that a broken one costs a single try; and no more tries than make sense.
fn alternating(addresses: &[JudgedAddr]) -> Vec<JudgedAddr> {
    let first_is_v6 = addresses.first().is_some_and(|address| address.socket().is_ipv6());
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.iter().copied().partition(|address| address.socket().is_ipv6() == first_is_v6);
    let longest = first.len().max(second.len());
    let by_turns = (0..longest).flat_map(|turn| [first.get(turn), second.get(turn)]);
    by_turns.flatten().copied().take(MOST_TRIES).collect()
}

const MOST_TRIES: usize = 6;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::{judge::admit, listeners::Listeners, testing::open};

    #[track_caller]
    fn check(addresses: &[&str], expect: &[&str]) {
        let (rules, target) = (open(), Target::parse("http://a.test/").unwrap());
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let listeners = Listeners::of_this_process();
        let judged = admit(&rules, &target, &listeners).unwrap().judge_all(&addresses).unwrap();
        let order: Vec<_> =
            alternating(&judged).iter().map(|address| address.socket().ip().to_string()).collect();
        assert_eq!(order, expect);
    }

    /// A request must not wait for a segment to fill.
    #[tokio::test]
    async fn requests_are_sent_without_delay() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = Target::parse(&format!("http://a.test:{}/", address.port())).unwrap();
        let (rules, listeners) = (open(), Listeners::of_this_process());
        let judged = admit(&rules, &target, &listeners).unwrap().judge_all(&[address.ip()]).unwrap();
        let (stream, _) = connect(&target, &judged, Duration::from_mins(1)).await.unwrap();
        assert!(stream.nodelay().unwrap());
    }

    #[test]
    fn families_take_turns_and_tries_are_few() {
        check(&["8.8.8.8"], &["8.8.8.8"]);
        check(&["2000::1", "2000::2", "2000::3", "8.8.8.8"], &["2000::1", "8.8.8.8", "2000::2", "2000::3"]);
        check(&["8.8.8.8", "2000::1", "2000::2"], &["8.8.8.8", "2000::1", "2000::2"]);
        let many: Vec<_> = (0..9).map(|low| format!("8.8.8.{low}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        check(&many, &many[..MOST_TRIES]);
    }
}
