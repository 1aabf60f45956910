//! Slow, huge, idle, half-open, too many; and how it all ends.

use std::{net::IpAddr, time::Duration};

use tokio::time::timeout;
use toolgate_server::Drained;

use crate::{
    client::{Client, HANG},
    gateway::{Gateway, limits, with_tokens},
};

const SOON: Duration = Duration::from_millis(150);
const GOOD: &str = "GET /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n";
const SLOW: &str = "GET /slow HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n";

/// Slow loris: an endless, slow series of header lines. Bytes that trickle in do not extend the time.
#[tokio::test]
async fn headers_that_trickle_are_cut_off() {
    let gateway = Gateway::with(limits(|limits| limits.header_time = SOON), with_tokens()).await;
    let mut client = gateway.client().await;
    client.send(gateway.fill("GET /mcp HTTP/1.1\nHost: {host}\n").as_bytes()).await;
    let trickle = async {
        while client.send_if_open(b"X-More: 1\r\n").await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(HANG, trickle).await.expect("the server hangs up");
    assert_eq!(gateway.refusals(), ["http.timeout"]);
    assert_eq!(gateway.calls(), 0);
}

/// The same on the second request of a connection, where the first one was fine.
#[tokio::test]
async fn a_known_caller_cannot_trickle_either() {
    let gateway = Gateway::with(limits(|limits| limits.header_time = SOON), with_tokens()).await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(GOOD).as_bytes()).await;
    assert_eq!(client.answer().await.unwrap().status, 200);
    client.send(b"GET /mcp").await;
    client.closed().await;
    assert_eq!(gateway.calls(), 1);
}

#[tokio::test]
async fn idle_connections_are_closed_before_and_between_requests() {
    let gateway = Gateway::with(limits(|limits| limits.idle_time = SOON), with_tokens()).await;
    gateway.client().await.closed().await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(GOOD).as_bytes()).await;
    assert_eq!(client.answer().await.unwrap().status, 200);
    client.closed().await;
    assert!(gateway.refusals().is_empty(), "to be idle is no offence");
}

/// A tool may take longer than a client may idle.
#[tokio::test]
async fn a_running_request_is_not_idle() {
    let settings = limits(|limits| (limits.idle_time, limits.header_time) = (SOON, SOON));
    let gateway = Gateway::with(settings, with_tokens()).await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(SLOW).as_bytes()).await;
    gateway.world.slow_entered.notified().await;
    tokio::time::sleep(SOON * 4).await;
    gateway.world.slow_may_end.notify_one();
    assert_eq!(client.answer().await.unwrap().body, "done");
}

#[tokio::test]
async fn a_connection_serves_many_requests_of_a_known_caller() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    for _ in 0..10 {
        client.send(gateway.fill(GOOD).as_bytes()).await;
        assert_eq!(client.answer().await.unwrap().status, 200);
    }
}

/// Places are few; a stranger gets one answer out of each.
#[tokio::test]
async fn a_stranger_cannot_keep_a_connection() {
    let gateway = Gateway::start().await;
    for path in ["/mcp", "/healthz", "/readyz"] {
        let mut client = gateway.client().await;
        client.send(gateway.fill(&format!("GET {path} HTTP/1.1\nHost: {{host}}\n\n")).as_bytes()).await;
        assert!(client.answer().await.is_some(), "{path}");
        client.closed().await;
    }
}

#[tokio::test]
async fn headers_too_long_or_too_many_are_refused() {
    let gateway = Gateway::start().await;
    let long = format!("GET /mcp HTTP/1.1\nHost: {{host}}\nX-Long: {}\n\n", "x".repeat(200_000));
    let many = format!("GET /mcp HTTP/1.1\nHost: {{host}}\n{}\n", "X-Many: 1\n".repeat(200));
    let path = format!("GET /{} HTTP/1.1\nHost: {{host}}\n\n", "x".repeat(200_000));
    for request in [long, many, path] {
        gateway.refuses(&request).await;
    }
    let endless = format!("GET /mcp HTTP/1.1\nHost: {{host}}\nX-Endless: {}", "x".repeat(200_000));
    gateway.refuses(&endless).await;
    let told = async {
        while gateway.refusals().len() < 4 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(HANG, told).await.expect("the journal hears of it");
    assert!(gateway.refusals().iter().all(|code| code == "http.malformed"));
}

/// As docs/auth.md says: 32 KiB and 100 lines.
#[tokio::test]
async fn header_limits_are_exact() {
    let gateway = Gateway::start().await;
    let start = gateway.fill("GET /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\nX-Long: ");
    for (length, status) in [(32 * 1024, 200), (32 * 1024 + 1, 431)] {
        // In one piece and in two.
        for cut in [length, 20_000] {
            let request = format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4));
            let (first, second) = request.as_bytes().split_at(cut);
            let mut client = gateway.client().await;
            client.send_if_open(first).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            client.send_if_open(second).await;
            assert_eq!(client.answer().await.unwrap().status, status, "{length} bytes, cut at {cut}");
        }
    }
    for (lines, status) in [(100, 200), (101, 431)] {
        let more = "X-Many: 1\n".repeat(lines - 2);
        let request = format!("GET /mcp HTTP/1.1\nHost: {{host}}\nAuthorization: Bearer tg_caller\n{more}\n");
        assert_eq!(gateway.ask(&request).await.status, status, "{lines} lines");
    }
}

/// Asks for 64 MiB and reads none of it.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let gateway = Gateway::with(limits(|limits| limits.write_time = SOON), with_tokens()).await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(SLOW.replace("/slow", "/long").as_str()).as_bytes()).await;
    let refused = async {
        while gateway.refusals().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(HANG, refused).await.expect("the server gives up");
    assert_eq!(gateway.refusals(), ["http.timeout"]);
    client.closed().await;
}

/// Slow is not stalled: clients that keep reading get everything.
#[tokio::test]
async fn a_client_that_reads_slowly_is_served() {
    let gateway =
        Gateway::with(limits(|limits| limits.write_time = Duration::from_secs(1)), with_tokens()).await;
    let mut client = gateway.client().await;
    let request = SLOW.replace("/slow", "/long").replace("Host", "Connection: close\nHost");
    client.send(gateway.fill(&request).as_bytes()).await;
    let count = client.read_slowly(30, Duration::from_millis(50)).await;
    assert!(count > 64 * 1024 * 1024, "{count}");
    assert!(gateway.refusals().is_empty());
}

/// The client dies in the middle of a call: what it asked for must not go on.
#[tokio::test]
async fn a_lost_connection_ends_its_request() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(SLOW).as_bytes()).await;
    gateway.world.slow_entered.notified().await;
    drop(client);
    timeout(HANG, gateway.world.slow_dropped.notified()).await.expect("the handler is dropped");
}

/// Bytes of a next request, or of nothing, do not hide that the client has gone.
#[tokio::test]
async fn more_bytes_do_not_hide_a_lost_connection() {
    let gateway = Gateway::start().await;
    for more in ["G", GOOD, "no HTTP at all\n\n\n"] {
        let more = gateway.fill(more);
        for come_at_once in [true, false] {
            let mut client = gateway.client().await;
            let first = if come_at_once { more.as_str() } else { "" };
            client.send(format!("{}{first}", gateway.fill(SLOW)).as_bytes()).await;
            gateway.world.slow_entered.notified().await;
            if !come_at_once {
                client.send(more.as_bytes()).await;
            }
            drop(client);
            let dropped = timeout(HANG, gateway.world.slow_dropped.notified()).await;
            dropped.unwrap_or_else(|_| panic!("the handler goes on behind {more:?}"));
        }
    }
}

/// Nor is a client gone that only said more than it was asked for.
#[tokio::test]
async fn a_client_that_says_more_and_stays_is_answered() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(&format!("{SLOW}{GOOD}")).as_bytes()).await;
    gateway.world.slow_entered.notified().await;
    client.send(b"GET").await;
    tokio::time::sleep(SOON * 5).await;
    gateway.world.slow_may_end.notify_one();
    assert_eq!(client.answer().await.unwrap().body, "done");
    assert_eq!(client.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_client_that_says_nothing_more_is_closed() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    client.send(b"GET /mcp HT").await;
    client.finish_sending().await;
    client.closed().await;
    assert_eq!(gateway.calls(), 0);
}

/// Connections over the limit wait in the kernel's queue until another one closes.
#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let gateway = Gateway::with(limits(|limits| limits.connections = 2), with_tokens()).await;
    let (mut first, mut second) = (gateway.client().await, gateway.client().await);
    for client in [&mut first, &mut second] {
        client.send(gateway.fill(GOOD).as_bytes()).await;
        assert_eq!(client.answer().await.unwrap().status, 200);
    }
    let mut third = gateway.client().await;
    third.send(gateway.fill(GOOD).as_bytes()).await;
    let waiting = timeout(SOON, third.answer()).await;
    assert!(waiting.is_err(), "two places, and the third was served");
    assert_eq!(gateway.calls(), 2);
    drop(first);
    assert_eq!(third.answer().await.unwrap().status, 200);
}

/// One machine opens all that it can. Other addresses still connect, and the refusal is logged once; every one that was closed counts.
#[tokio::test]
async fn an_address_that_holds_its_share_keeps_nobody_else_out() {
    let settings = limits(|limits| (limits.connections, limits.connections_per_address) = (4, 2));
    let gateway = Gateway::with(settings, with_tokens()).await;
    let (mut first, mut second) = (gateway.client().await, gateway.client().await);
    for client in [&mut first, &mut second] {
        client.send(gateway.fill(GOOD).as_bytes()).await;
        assert_eq!(client.answer().await.unwrap().status, 200);
    }
    for _ in 0..10 {
        assert_eq!(gateway.client().await.rest().await, "", "closed without a word");
    }
    let mut other = Client::connect_from([127, 0, 0, 2].into(), gateway.address).await;
    other.send(gateway.fill(GOOD).as_bytes()).await;
    assert_eq!(other.answer().await.unwrap().status, 200);
    assert_eq!(gateway.refusals(), ["http.too_many_connections"]);
    let again = gateway.world.refused_again.lock().unwrap().clone();
    let here = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(again, vec![("http.too_many_connections".to_owned(), Some(here)); 9]);
    drop(first);
    let served = async {
        loop {
            let mut again = gateway.client().await;
            if again.send_if_open(gateway.fill(GOOD).as_bytes()).await && again.answer().await.is_some() {
                return;
            }
        }
    };
    timeout(HANG, served).await.expect("what was given back is there for the same address");
}

#[tokio::test]
async fn a_running_request_is_finished_before_we_stop() {
    let gateway = Gateway::start().await;
    let (mut client, idle) = (gateway.client().await, gateway.client().await);
    client.send(gateway.fill(SLOW).as_bytes()).await;
    gateway.world.slow_entered.notified().await;
    gateway.shutdown.cancel();
    idle.closed().await;
    let (address, world) = (gateway.address, gateway.world.clone());
    let refused = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANG, refused).await.expect("nobody new is accepted");
    world.slow_may_end.notify_one();
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, "done"));
    client.closed().await;
    assert_eq!(gateway.stopped().await, Drained::Whole);
}

#[tokio::test]
async fn what_outlives_the_grace_time_is_cut() {
    let gateway = Gateway::with(limits(|limits| limits.grace = SOON), with_tokens()).await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(SLOW).as_bytes()).await;
    gateway.world.slow_entered.notified().await;
    gateway.shutdown.cancel();
    let world = gateway.world.clone();
    assert_eq!(gateway.stopped().await, Drained::Cut(1));
    timeout(HANG, world.slow_dropped.notified()).await.expect("the handler is dropped");
    client.closed().await;
}

#[tokio::test]
async fn half_a_request_does_not_hold_up_the_end() {
    let gateway = Gateway::start().await;
    let mut client: Client = gateway.client().await;
    client.send(b"GET /mcp HTTP/1.1\r\nHost:").await;
    let mut other = gateway.client().await;
    other.send(gateway.fill(GOOD).as_bytes()).await;
    assert_eq!(other.answer().await.unwrap().status, 200);
    gateway.shutdown.cancel();
    assert_eq!(gateway.stopped().await, Drained::Whole);
    client.closed().await;
}
