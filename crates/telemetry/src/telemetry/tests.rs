use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use tokio::{
    net::TcpSocket,
    time::{sleep, timeout},
};

use super::*;
use crate::{
    Headers,
    testing::{CollectorReply, FakeCollector, HANG, OK, calls_in, egress, finish, settings},
};

fn start(settings: &TelemetrySettings) -> Telemetry {
    Telemetry::start(settings, &egress()).unwrap()
}

/// An interval that never ends during a test: data is sent at shutdown or when a batch is full.
fn patient(endpoint: &str) -> TelemetrySettings {
    TelemetrySettings { interval: Duration::from_hours(1), ..settings(endpoint) }
}

async fn shut_down(telemetry: &Telemetry) -> ExportReport {
    timeout(HANG, telemetry.shutdown()).await.expect("shutdown ends");
    telemetry.report()
}

/// An address without a listener; the held socket reserves it.
fn dead() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let endpoint = format!("http://{}", socket.local_addr().unwrap());
    (socket, endpoint)
}

fn metric<'b>(body: &'b Value, name: &str) -> &'b Value {
    let metrics = body.pointer("/resourceMetrics/0/scopeMetrics/0/metrics").unwrap().as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap()
}

#[tokio::test]
async fn spans_arrive_with_headers() {
    let mut collector = FakeCollector::start(|_| CollectorReply::Says(OK)).await;
    let headers = Headers::parse("authorization=Bearer%20key").unwrap();
    let telemetry = start(&TelemetrySettings { headers, ..settings(&collector.endpoint) });
    finish(&telemetry, 3);
    let received = collector.next().await;
    assert!(received.head.starts_with("post /v1/traces http/1.1"), "{}", received.head);
    assert!(received.head.contains("\r\ncontent-type: application/json"), "{}", received.head);
    assert!(received.head.contains("\r\nauthorization: bearer key"), "{}", received.head);
    assert_eq!(calls_in(&received.body), 3);
    assert_eq!(
        received.body.pointer("/resourceSpans/0/scopeSpans/0/spans/0/name").unwrap(),
        "tools/call weather"
    );
    assert_eq!(shut_down(&telemetry).await, ExportReport { spans_sent: 7 * 3, ..ExportReport::default() });
}

#[tokio::test]
async fn metrics_arrive_at_every_interval() {
    let mut collector = FakeCollector::start(|_| CollectorReply::Says(OK)).await;
    let telemetry = start(&TelemetrySettings {
        traces: Export::Off,
        metrics: Export::On,
        ..settings(&collector.endpoint)
    });
    finish(&telemetry, 2);
    for _ in 0..2 {
        let received = collector.next().await;
        assert!(received.head.starts_with("post /v1/metrics http/1.1"), "{}", received.head);
        let point = &metric(&received.body, "toolgate.calls")["sum"]["dataPoints"][0];
        assert_eq!(point["asInt"], "2");
    }
    let report = shut_down(&telemetry).await;
    assert!(report.metrics_sent >= 2, "{report:?}");
    assert_eq!((report.spans_sent, report.spans_dropped), (0, 0));
}

#[tokio::test]
async fn shutdown_sends_the_queue_in_full_requests() {
    let mut collector = FakeCollector::start(|_| CollectorReply::Says(OK)).await;
    let telemetry = start(&patient(&collector.endpoint));
    finish(&telemetry, 600);
    assert_eq!(shut_down(&telemetry).await, ExportReport { spans_sent: 7 * 600, ..ExportReport::default() });
    assert_eq!(calls_in(&collector.next().await.body), 512);
    assert_eq!(calls_in(&collector.next().await.body), 88);
    assert!(collector.seen_no_more());
}

#[tokio::test]
async fn calls_after_shutdown_are_dropped() {
    let collector = FakeCollector::start(|_| CollectorReply::Says(OK)).await;
    let telemetry = start(&patient(&collector.endpoint));
    shut_down(&telemetry).await;
    finish(&telemetry, 2);
    assert_eq!(shut_down(&telemetry).await, ExportReport { spans_dropped: 7 * 2, ..ExportReport::default() });
}

#[tokio::test]
async fn dropped_observer_sends_its_queue() {
    let mut collector = FakeCollector::start(|_| CollectorReply::Says(OK)).await;
    let telemetry = start(&TelemetrySettings { metrics: Export::On, ..patient(&collector.endpoint) });
    finish(&telemetry, 1);
    drop(telemetry);
    let mut heads = vec![collector.next().await.head, collector.next().await.head];
    heads.sort();
    assert!(heads[0].starts_with("post /v1/metrics") && heads[1].starts_with("post /v1/traces"), "{heads:?}");
}

#[tokio::test]
async fn dead_collector_neither_delays_nor_accumulates_calls() {
    let (_held, endpoint) = dead();
    let telemetry = start(&settings(&endpoint));
    // Nothing else runs on this thread, so the queue takes exactly its capacity.
    finish(&telemetry, 100_000);
    assert_eq!(telemetry.report().spans_dropped, 7 * (100_000 - QUEUE as u64));
    let queue = telemetry.queue.as_ref().unwrap();
    assert_eq!((queue.max_capacity(), queue.capacity()), (QUEUE, 0));
    let report = shut_down(&telemetry).await;
    assert_eq!((report.spans_sent, report.spans_dropped), (0, 7 * 100_000));
    assert!(report.last_failure.unwrap().contains("cannot reach the collector"));
}

#[tokio::test(start_paused = true)]
async fn dead_collector_is_retried_for_later_calls() {
    let (_held, endpoint) = dead();
    let telemetry = start(&settings(&endpoint));
    for calls in 1..=2 {
        finish(&telemetry, 1);
        // Four pauses of 1, 2, 4 and 8 seconds of virtual time.
        sleep(Duration::from_secs(20)).await;
        assert_eq!(telemetry.report().spans_dropped, 7 * calls);
    }
}

#[tokio::test]
async fn hanging_collector_does_not_delay_calls() {
    let mut collector = FakeCollector::start(|_| CollectorReply::Hangs).await;
    let telemetry = start(&settings(&collector.endpoint));
    finish(&telemetry, 10);
    assert_eq!(calls_in(&collector.next().await.body), 10);
    finish(&telemetry, 100_000);
    assert_eq!(telemetry.report().spans_dropped, 7 * (100_000 - QUEUE as u64));
    // From here on only virtual time passes, within the bounds of sending and shutdown.
    tokio::time::pause();
    let report = shut_down(&telemetry).await;
    assert_eq!((report.spans_sent, report.spans_dropped), (0, 7 * 100_010));
}

#[tokio::test]
async fn failing_collector_loses_one_request_only() {
    let mut collector = FakeCollector::start(|number| match number {
        0 => CollectorReply::Says("HTTP/1.1 500 Ill\r\ncontent-length: 0\r\n\r\n"),
        _ => CollectorReply::Says(OK),
    })
    .await;
    let telemetry = start(&settings(&collector.endpoint));
    finish(&telemetry, 2);
    collector.next().await;
    finish(&telemetry, 3);
    assert_eq!(calls_in(&collector.next().await.body), 3);
    assert_eq!(
        shut_down(&telemetry).await,
        ExportReport { spans_sent: 7 * 3, spans_dropped: 7 * 2, ..ExportReport::default() }
    );
}

#[tokio::test]
async fn busy_collector_gets_the_same_spans_again() {
    let mut collector = FakeCollector::start(|number| match number {
        0 => CollectorReply::Says("HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n"),
        _ => CollectorReply::Says(OK),
    })
    .await;
    let telemetry = start(&settings(&collector.endpoint));
    finish(&telemetry, 2);
    let first = collector.next().await;
    let second = collector.next().await;
    assert_eq!(first.body, second.body);
    assert_eq!(shut_down(&telemetry).await, ExportReport { spans_sent: 7 * 2, ..ExportReport::default() });
}

#[tokio::test]
async fn busy_collector_is_not_retried_at_shutdown() {
    let mut collector =
        FakeCollector::start(|_| CollectorReply::Says("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"))
            .await;
    let telemetry = start(&patient(&collector.endpoint));
    finish(&telemetry, 1);
    let report = shut_down(&telemetry).await;
    assert_eq!((report.spans_sent, report.spans_dropped), (0, 7));
    assert_eq!(report.last_failure.as_deref(), Some("the collector answered with status 503"));
    collector.next().await;
    assert!(collector.seen_no_more());
}

#[tokio::test]
async fn rejected_spans_are_counted_as_dropped() {
    let mut collector = FakeCollector::start(|_| {
        CollectorReply::Says(
            "HTTP/1.1 200 OK\r\ncontent-length: 41\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"14\"}}",
        )
    })
    .await;
    let telemetry = start(&patient(&collector.endpoint));
    finish(&telemetry, 3);
    assert_eq!(
        shut_down(&telemetry).await,
        ExportReport { spans_sent: 7, spans_dropped: 14, ..ExportReport::default() }
    );
    collector.next().await;
}

#[tokio::test]
async fn calls_are_counted_even_if_their_spans_are_lost() {
    let mut collector = FakeCollector::start(|_| CollectorReply::Says(OK)).await;
    let telemetry = start(&TelemetrySettings { metrics: Export::On, ..patient(&collector.endpoint) });
    finish(&telemetry, 10_000);
    shut_down(&telemetry).await;
    let body = loop {
        let received = collector.next().await;
        if received.head.starts_with("post /v1/metrics") {
            break received.body;
        }
    };
    assert_eq!(metric(&body, "toolgate.calls")["sum"]["dataPoints"][0]["asInt"], "10000");
    assert_eq!(metric(&body, "toolgate.call.duration")["histogram"]["dataPoints"][0]["count"], "10000");
    let drops = &metric(&body, "toolgate.telemetry.dropped")["sum"]["dataPoints"][0];
    assert_eq!(drops["attributes"][0]["value"]["stringValue"], "queue_full");
    assert_eq!(drops["asInt"], (7 * (10_000 - QUEUE)).to_string());
}
