//! A test collector on loopback, and finished calls.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};
use toolgate_egress::{Egress, EgressLimits, Listeners, Resolve, Resolving, TlsRoots};
use toolgate_gate::{
    Call, CallRecord, CallStage, ClientInfo, Finished, Observer as _, OnJournalFailure, Purpose, Reason,
    ResponseEntry,
};
use toolgate_policy::Caller;

use crate::{CallerNames, Export, Headers, Telemetry, TelemetrySettings};

/// A collector that replies as configured and returns what it received.
pub struct FakeCollector {
    pub endpoint: String,
    received: mpsc::UnboundedReceiver<Received>,
}

#[derive(Debug)]
pub struct Received {
    /// Request line and headers, in lower case.
    pub head: String,
    pub body: Value,
}

/// How the collector replies to request number n, counted from 0.
pub type Behaviour = fn(usize) -> CollectorReply;

#[derive(Clone, Copy)]
pub enum CollectorReply {
    Says(&'static str),
    /// Reads the request and never replies.
    Hangs,
}

impl FakeCollector {
    pub async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (noted, received) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(request) = read(&mut stream).await else { continue };
                let answer = behaviour(number);
                number += 1;
                let _ = noted.send(request);
                match answer {
                    CollectorReply::Says(bytes) => {
                        stream.write_all(bytes.as_bytes()).await.unwrap_or_default();
                    }
                    // Keep the connection open.
                    CollectorReply::Hangs => drop(tokio::spawn(async move {
                        let _ = stream.read(&mut [0]).await;
                    })),
                }
            }
        });
        Self { endpoint, received }
    }

    pub async fn next(&mut self) -> Received {
        timeout(HANG, self.received.recv()).await.expect("the collector gets nothing").unwrap()
    }

    pub fn seen_no_more(&mut self) -> bool {
        self.received.try_recv().is_err()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let body = &bytes[end + 4..];
            if body.len() == length.parse::<usize>().unwrap() {
                return Some(Received { body: serde_json::from_slice(body).unwrap(), head });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

pub fn settings(endpoint: &str) -> TelemetrySettings {
    TelemetrySettings {
        endpoint: endpoint.to_owned(),
        headers: Headers::default(),
        interval: Duration::from_millis(20),
        traces: Export::On,
        metrics: Export::Off,
        callers: CallerNames::Hashed,
        isolation: Vec::new(),
    }
}

/// Trusts no certificates; these tests use no TLS.
pub fn egress() -> Egress {
    let signed = rcgen::generate_simple_self_signed(vec!["nobody.test".to_owned()]).unwrap();
    let roots = TlsRoots::Pem(signed.cert.pem().into_bytes());
    Egress::new(Arc::new(OneName), &roots, EgressLimits::default(), Listeners::of_this_process()).unwrap()
}

/// Resolves `collector.test` to loopback.
struct OneName;

impl Resolve for OneName {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            match name {
                "collector.test" => Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]),
                _ => Err(io::Error::other("tests know no other name")),
            }
        })
    }
}

/// A call of `weather` with all data that a record can hold but that must not be sent.
pub fn record() -> CallRecord {
    let client = ClientInfo {
        transport: "http",
        protocol: Some("2026-07-28".into()),
        name: Some("SECRET-client".into()),
        version: None,
        conversation: Some("SECRET-conversation".into()),
    };
    let mut arguments = Map::new();
    arguments.insert("city".into(), "SECRET-argument".into());
    let call = Call {
        tool: "weather".into(),
        arguments: arguments.clone(),
        caller: Caller::new("anna@example.com", ["SECRET-permission"]),
        client,
        answer: None,
        ask: None,
        auth_status: None,
    };
    let mut record = CallRecord::opened(&call, Purpose::Call, OnJournalFailure::Refuse);
    record.call_id = "019a8b7c-6d5e-7f40-8123-456789abcdef".into();
    record.tool = json!({ "name": "weather", "id": "SECRET-id", "level": "L2" }).into();
    record.request.args = Some(Value::Object(arguments));
    let output = Some("SECRET-output".into());
    record.response = Some(ResponseEntry { output, ..ResponseEntry::default() });
    record.message = Some("SECRET-message".into());
    record
}

pub fn finished(record: &CallRecord, reason: Option<Reason>) -> Finished<'_> {
    Finished {
        record,
        reason,
        begun: SystemTime::UNIX_EPOCH + Duration::from_nanos(1_789_000_000_000_000_007),
        duration: Duration::from_micros(2_500),
        stages: &STAGES,
    }
}

pub fn finish(telemetry: &Telemetry, calls: usize) {
    let record = record();
    for _ in 0..calls {
        telemetry.finished(&finished(&record, None));
    }
}

/// The number of calls in the body, with seven spans each.
pub fn calls_in(body: &Value) -> usize {
    body.pointer("/resourceSpans/0/scopeSpans/0/spans")
        .and_then(Value::as_array)
        .map_or(0, |spans| spans.len() / 7)
}

pub const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
/// Much longer than any test takes.
pub const HANG: Duration = Duration::from_mins(1);

const STAGES: [(CallStage, Duration); 6] = [
    (CallStage::Admit, Duration::from_micros(100)),
    (CallStage::Bind, Duration::from_micros(200)),
    (CallStage::Check, Duration::from_micros(50)),
    (CallStage::Decide, Duration::from_micros(150)),
    (CallStage::Execute, Duration::from_micros(1_800)),
    // Longer than the time that is left of the call.
    (CallStage::Filter, Duration::from_micros(300)),
];
