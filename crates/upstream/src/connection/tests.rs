//! Connections to scripted servers, honest and hostile.

use tokio::io::{AsyncBufReadExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};

use super::*;
use crate::Era;

/// Answers a request: `Ok` is a result, `Err` an error code, `None` silence.
type Script = fn(&str, &Value) -> Option<Result<Value, i64>>;

fn identity() -> ClientIdentity {
    ClientIdentity { name: "toolgate".to_owned(), version: "0".to_owned() }
}

fn quick() -> ConnectionLimits {
    ConnectionLimits { message_bytes: 10_000, waiting: 8, setup: Duration::from_millis(300) }
}

fn legacy(method: &str, params: &Value) -> Option<Result<Value, i64>> {
    match method {
        "initialize" => Some(Ok(json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "fixture", "version": "1" },
        }))),
        "tools/list" => Some(Ok(json!({ "tools": [{ "name": "echo", "inputSchema": {} }] }))),
        "tools/call" if params["name"] == "echo" => {
            Some(Ok(json!({ "content": [], "echo": params["arguments"] })))
        }
        "tools/call" if params["name"] == "fail" => Some(Err(-32_000)),
        _ => None,
    }
}

fn stateless(method: &str, params: &Value) -> Option<Result<Value, i64>> {
    match method {
        "initialize" => Some(Err(-32_022)),
        "server/discover" => Some(Ok(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "ttlMs": 0,
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "modern", "version": "2" } },
        }))),
        // Without its metadata a request of this era is invalid.
        _ if params["_meta"]["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" => Some(Err(-32_602)),
        method => legacy(method, params),
    }
}

/// The server's side: requests and notifications that arrived, and a way to write any line.
struct Peer {
    seen: mpsc::UnboundedReceiver<Value>,
    output: WriteHalf<DuplexStream>,
}

async fn connect(script: Script, limits: ConnectionLimits) -> (Result<Connection, UpstreamError>, Peer) {
    let (ours, theirs) = duplex(1 << 20);
    let (input, output) = split(ours);
    let (their_input, their_output) = split(theirs);
    let (sender, seen) = mpsc::unbounded_channel();
    // Two halves of the server's pipe: the script answers on one, and a test writes by hand on another connection.
    let (by_hand, injected) = duplex(1 << 20);
    tokio::spawn(serve(their_input, their_output, injected, script, sender));
    let (_, output_by_hand) = split(by_hand);
    let connection = Connection::open(input, output, &identity(), limits).await;
    (connection, Peer { seen, output: output_by_hand })
}

async fn serve(
    input: ReadHalf<DuplexStream>,
    mut output: WriteHalf<DuplexStream>,
    injected: DuplexStream,
    script: Script,
    seen: mpsc::UnboundedSender<Value>,
) {
    let mut lines = BufReader::new(input).lines();
    let mut injected = BufReader::new(injected).lines();
    loop {
        let answer = tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { return };
                let message: Value = serde_json::from_str(&line).unwrap();
                let _ = seen.send(message.clone());
                let method = message["method"].as_str().unwrap_or_default();
                match script(method, &message["params"]) {
                    Some(Ok(result)) => json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string(),
                    Some(Err(code)) => {
                        let error = json!({ "code": code, "message": "no" });
                        json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()
                    }
                    None => continue,
                }
            }
            line = injected.next_line() => match line {
                Ok(Some(line)) => line,
                _ => return,
            },
        };
        if output.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

impl Peer {
    async fn write(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Waits for a message with this method.
    async fn sees(&mut self, method: &str) -> Value {
        loop {
            let message = timeout(Duration::from_secs(5), self.seen.recv()).await.unwrap().unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }
}

const CALL: Duration = Duration::from_millis(300);

#[tokio::test]
async fn both_eras_connect_list_and_call() {
    for (script, era, name) in
        [(legacy as Script, Era::Session, "fixture"), (stateless as Script, Era::Stateless, "modern")]
    {
        let (connection, _peer) = connect(script, quick()).await;
        let connection = connection.unwrap();
        assert_eq!((connection.server().era, connection.server().name.as_str()), (era, name));
        let tools = connection.list_tools().await.unwrap();
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["echo"]);
        let arguments = Map::from_iter([("text".to_owned(), json!("hi"))]);
        let result = connection.call_tool("echo", &arguments, CALL).await.unwrap();
        assert_eq!(result["echo"], json!({ "text": "hi" }));
        let failed = connection.call_tool("fail", &Map::new(), CALL).await.unwrap_err();
        assert_eq!(failed, UpstreamError::Server { code: -32_000, message: "no".to_owned() });
    }
}

#[tokio::test]
async fn silent_server_fails_the_handshake_in_time() {
    let (connection, _peer) = connect(|_, _| None, quick()).await;
    assert!(
        matches!(connection.unwrap_err(), UpstreamError::TimedOut { method, .. } if method == "initialize")
    );
}

#[tokio::test]
async fn unknown_version_is_refused() {
    let script: Script = |_, _| Some(Ok(json!({ "protocolVersion": "1999-01-01" })));
    let (connection, _peer) = connect(script, quick()).await;
    assert!(connection.unwrap_err().to_string().contains("1999-01-01"));
}

#[tokio::test]
async fn late_call_is_cancelled_and_its_answer_ignored() {
    let (connection, mut peer) = connect(legacy, quick()).await;
    let connection = connection.unwrap();
    let late = connection.call_tool("hang", &Map::new(), CALL).await.unwrap_err();
    assert!(matches!(late, UpstreamError::TimedOut { .. }));
    let call = peer.sees("tools/call").await;
    let cancelled = peer.sees("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    peer.write(&json!({ "jsonrpc": "2.0", "id": call["id"], "result": { "late": true } }).to_string()).await;
    let result = connection.call_tool("echo", &Map::new(), CALL).await.unwrap();
    assert_eq!(result["echo"], json!({}));
}

#[tokio::test]
async fn dropped_call_is_cancelled() {
    let (connection, mut peer) = connect(legacy, quick()).await;
    let connection = connection.unwrap();
    let arguments = Map::new();
    {
        let call = connection.call_tool("hang", &arguments, Duration::from_mins(1));
        assert!(timeout(CALL, call).await.is_err());
    }
    peer.sees("notifications/cancelled").await;
}

#[tokio::test]
async fn invented_answers_and_noise_reach_nobody() {
    let (connection, mut peer) = connect(legacy, quick()).await;
    let connection = connection.unwrap();
    for line in [
        "starting up ...",
        r#"{"jsonrpc":"2.0","id":999,"result":{"forged":true}}"#,
        r#"{"jsonrpc":"2.0","id":"1","result":{"forged":true}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
    ] {
        peer.write(line).await;
    }
    assert!(connection.call_tool("echo", &Map::new(), CALL).await.is_ok());
}

#[tokio::test]
async fn requests_of_the_server_are_refused_and_pings_answered() {
    let (connection, mut peer) = connect(legacy, quick()).await;
    let _connection = connection.unwrap();
    peer.write(r#"{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}"#).await;
    peer.write(r#"{"jsonrpc":"2.0","id":"s2","method":"ping"}"#).await;
    let mut answers = HashMap::new();
    while answers.len() < 2 {
        let message = timeout(Duration::from_secs(5), peer.seen.recv()).await.unwrap().unwrap();
        if let Some(id) = message["id"].as_str() {
            answers.insert(id.to_owned(), message);
        }
    }
    assert_eq!(answers["s1"]["error"]["code"], -32_601);
    assert_eq!(answers["s2"]["result"], json!({}));
}

#[tokio::test]
async fn huge_or_invalid_message_closes_the_connection() {
    for line in ["{\"x\":\"".to_owned() + &"y".repeat(20_000), r#"{"jsonrpc":"2.0","id":1}"#.to_owned()] {
        let (connection, mut peer) = connect(legacy, quick()).await;
        let connection = connection.unwrap();
        let arguments = Map::new();
        let call = connection.call_tool("hang", &arguments, Duration::from_secs(5));
        let (failed, ()) = tokio::join!(call, peer.write(&line));
        assert!(matches!(failed, Err(UpstreamError::Protocol(_))), "{failed:?}");
        assert!(!connection.is_open());
        let next = connection.call_tool("echo", &Map::new(), CALL).await;
        assert!(matches!(next, Err(UpstreamError::Protocol(_))), "{next:?}");
    }
}

#[tokio::test]
async fn further_requests_are_refused_when_too_many_wait() {
    let (connection, _peer) = connect(legacy, ConnectionLimits { waiting: 1, ..quick() }).await;
    let connection = connection.unwrap();
    let arguments = Map::new();
    let first = connection.call_tool("hang", &arguments, CALL);
    let second = async {
        tokio::task::yield_now().await;
        connection.call_tool("echo", &arguments, CALL).await
    };
    let (_, second) = tokio::join!(first, second);
    assert_eq!(second.unwrap_err(), UpstreamError::Busy);
}

#[tokio::test]
async fn changed_listing_is_announced() {
    let (connection, mut peer) = connect(legacy, quick()).await;
    let connection = connection.unwrap();
    let mut changes = connection.listing_changes();
    peer.write(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    timeout(Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
    assert_eq!(*changes.borrow(), 1);
}
