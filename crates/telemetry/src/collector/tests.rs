use super::*;
use crate::testing::{CollectorReply, FakeCollector, OK, egress, settings};

#[track_caller]
fn check_refused(endpoint: &str, headers: &str, expect: &str) {
    let settings = TelemetrySettings { headers: Headers::parse(headers).unwrap(), ..settings(endpoint) };
    let error = Collector::new(&settings, &egress()).unwrap_err().to_string();
    assert!(error.contains(expect), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[track_caller]
fn check_url(endpoint: &str, expect: &str) {
    let collector = Collector::new(&settings(endpoint), &egress()).unwrap();
    assert_eq!(collector.request(Signal::Metrics, &Value::Null).url, expect);
}

fn answer(status: u16, headers: &[(&str, &str)], body: &'static str) -> Response {
    Response {
        status,
        url: String::new(),
        headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        body: body.into(),
        hops: Vec::new(),
    }
}

#[test]
fn invalid_endpoint_is_rejected_at_start() {
    check_refused("collector:4318", "", "invalid collector endpoint");
    check_refused("file:///etc/passwd", "", "use http or https");
    check_refused("https://me:hunter2@collector.example", "", "must not contain a user or password");
    check_refused("https://collector.example/?key=hunter2", "", "send credentials as headers");
    check_refused("http://169.254.169.254", "", "metadata endpoint");
}

#[test]
fn credentials_are_not_sent_unencrypted() {
    let headers = "authorization=hunter2";
    check_refused("http://collector.example:4318", headers, "unencrypted");
    check_refused("http://127.0.0.1.example.com:4318", headers, "unencrypted");
    for sound in
        ["https://collector.example", "http://127.0.0.1:4318", "http://[::1]:4318", "http://localhost:4318"]
    {
        let settings = TelemetrySettings { headers: Headers::parse(headers).unwrap(), ..settings(sound) };
        assert!(Collector::new(&settings, &egress()).is_ok(), "{sound}");
    }
}

#[test]
fn path_of_the_endpoint_is_kept() {
    check_url("http://10.0.0.7:4318", "http://10.0.0.7:4318/v1/metrics");
    check_url("https://collector.example/otlp/", "https://collector.example/otlp/v1/metrics");
    check_url("http://[fd00::7]:4318", "http://[fd00::7]:4318/v1/metrics");
}

#[test]
fn only_temporary_failures_are_retried() {
    for status in [429, 502, 503, 504] {
        assert_eq!(judged(&answer(status, &[], "")).unwrap_err().again, Again::Later(None), "{status}");
    }
    for status in [301, 400, 401, 404, 413, 500, 501] {
        assert_eq!(judged(&answer(status, &[], "")).unwrap_err().again, Again::Never, "{status}");
    }
    let told = judged(&answer(503, &[("retry-after", "7")], "")).unwrap_err().again;
    assert_eq!(told, Again::Later(Some(Duration::from_secs(7))));
    let vague = judged(&answer(503, &[("retry-after", "tomorrow")], "")).unwrap_err().again;
    assert_eq!(vague, Again::Later(None));
}

#[test]
fn rejected_spans_are_read_as_text_and_number() {
    for (body, rejected) in [
        ("{}", 0),
        ("", 0),
        ("no json", 0),
        (r#"{"partialSuccess":{"rejectedSpans":"3"}}"#, 3),
        (r#"{"partialSuccess":{"rejectedSpans":4}}"#, 4),
        (r#"{"partialSuccess":{"rejectedSpans":-4}}"#, 0),
        (r#"{"partialSuccess":{"rejectedSpans":"many"}}"#, 0),
    ] {
        assert_eq!(judged(&answer(200, &[], body)), Ok(Accepted { rejected }), "{body}");
    }
}

#[test]
fn reply_of_the_collector_is_not_logged() {
    let failure = judged(&answer(400, &[], "\u{1b}[2Jbad")).unwrap_err();
    assert_eq!(failure.why, "the collector answered with status 400");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let mut collector = FakeCollector::start(|number| match number {
        0 => CollectorReply::Says(
            "HTTP/1.1 307 Elsewhere\r\nlocation: /v1/elsewhere\r\ncontent-length: 0\r\n\r\n",
        ),
        _ => CollectorReply::Says(OK),
    })
    .await;
    let sender = Collector::new(&settings(&collector.endpoint), &egress()).unwrap();
    let failure = sender.post(sender.request(Signal::Traces, &Value::Null)).await.unwrap_err();
    assert_eq!(failure.again, Again::Never);
    collector.next().await;
    assert!(collector.seen_no_more());
}

#[tokio::test]
async fn other_hosts_are_not_reached() {
    let sender = Collector::new(&settings("http://127.0.0.1:4318"), &egress()).unwrap();
    let request = Request {
        url: "http://127.0.0.2:4318/v1/traces".into(),
        ..sender.request(Signal::Traces, &Value::Null)
    };
    let failure = sender.post(request).await.unwrap_err();
    assert!(failure.why.contains("not in the allow list") && failure.again == Again::Never, "{failure:?}");
}

#[tokio::test]
async fn collector_in_a_private_network_is_allowed() {
    let mut collector = FakeCollector::start(|_| CollectorReply::Says(OK)).await;
    let named = collector.endpoint.replace("127.0.0.1", "collector.test");
    let sender = Collector::new(&settings(&named), &egress()).unwrap();
    let accepted = sender.post(sender.request(Signal::Traces, &Value::Null)).await;
    assert_eq!(accepted, Ok(Accepted { rejected: 0 }));
    assert!(collector.next().await.head.contains("host: collector.test:"));
}

#[tokio::test]
async fn unresolved_name_is_retried() {
    let sender = Collector::new(&settings("http://nowhere.test:4318"), &egress()).unwrap();
    let failure = sender.post(sender.request(Signal::Traces, &Value::Null)).await.unwrap_err();
    assert_eq!(failure.again, Again::Later(None));
}
