//! Servers with HTTP+SSE of 2024-11-05.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::*;

/// One event stream, fed by the POSTs. The scripted server cannot connect two requests.
struct OldServer {
    endpoint: &'static str,
    post_status: u16,
    seen: Mutex<Vec<HttpRequest>>,
    events: mpsc::UnboundedSender<String>,
    stream: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
}

impl OldServer {
    fn start(endpoint: &'static str, post_status: u16) -> Arc<Self> {
        let (events, stream) = mpsc::unbounded_channel();
        let stream = Mutex::new(Some(stream));
        Arc::new(Self { endpoint, post_status, seen: Mutex::default(), events, stream })
    }

    fn answer(&self, message: &Value) {
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                "serverInfo": { "name": "old", "version": "1" },
            }),
            Some("tools/call") => json!({ "content": [] }),
            _ => return,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let _ = self.events.send(format!("event: message\r\ndata: {answer}\r\n\r\n"));
    }
}

struct OldBody(Option<mpsc::UnboundedReceiver<String>>);

impl HttpBody for OldBody {
    fn next(&mut self) -> HttpFuture<'_, Result<Option<Bytes>, HttpError>> {
        Box::pin(async move {
            match &mut self.0 {
                Some(stream) => Ok(stream.recv().await.map(Bytes::from)),
                None => Ok(None),
            }
        })
    }
}

impl HttpClient for OldServer {
    fn send(&self, request: HttpRequest) -> HttpFuture<'_, Result<HttpResponse, HttpError>> {
        self.seen.lock().unwrap().push(request.clone());
        let mut response = HttpResponse { status: 405, headers: Vec::new(), body: Box::new(OldBody(None)) };
        if request.method == HttpMethod::Get {
            response.status = 200;
            response.headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
            response.body = Box::new(OldBody(self.stream.lock().unwrap().take()));
            let _ = self.events.send(format!("event: endpoint\ndata: {}\n\n", self.endpoint));
        } else if request.url.path() == "/messages" {
            let message = request.message();
            response.status = if message["method"] == "tools/call" { self.post_status } else { 202 };
            if response.status == 202 {
                self.answer(&message);
            }
        }
        Box::pin(async move { Ok(response) })
    }
}

async fn open_old(server: &Arc<OldServer>) -> Result<Connection, UpstreamError> {
    let identity = ClientIdentity { name: "toolgate".to_owned(), version: "0".to_owned() };
    let http: Arc<dyn HttpClient> = Arc::<OldServer>::clone(server);
    let headers = vec![("x-key".to_owned(), "k".to_owned())];
    Connection::open_http(http, HttpEndpoint { headers, ..endpoint() }, &identity, limits()).await
}

#[tokio::test]
async fn messages_go_to_the_announced_endpoint() {
    let server = OldServer::start("/messages?session=1", 202);
    let connection = open_old(&server).await.unwrap();
    assert_eq!(connection.server().protocol, "2024-11-05");
    assert_eq!(call(&connection).await.unwrap(), json!({ "content": [] }));
    let seen = server.seen.lock().unwrap().clone();
    let last = seen.last().unwrap();
    assert_eq!(last.url.as_str(), "https://up.test/messages?session=1");
    assert_eq!(last.header("x-key"), Some("k"));
}

#[tokio::test]
async fn endpoint_of_another_origin_is_rejected() {
    for endpoint in ["https://evil.test/messages", "//evil.test/messages", "http://up.test/messages"] {
        let server = OldServer::start(endpoint, 202);
        let refused = open_old(&server).await.unwrap_err();
        assert!(refused.to_string().contains("another origin"), "{refused}");
        let seen = server.seen.lock().unwrap();
        assert!(seen.iter().all(|request| request.url.as_str() == "https://up.test/mcp"));
    }
}

#[tokio::test]
async fn refused_message_fails_its_request() {
    let server = OldServer::start("/messages", 500);
    let connection = open_old(&server).await.unwrap();
    assert_eq!(call(&connection).await, Err(UpstreamError::HttpStatus { status: 500 }));
}

#[tokio::test]
async fn end_of_the_stream_ends_the_connection() {
    let server = OldServer::start("/messages", 202);
    let connection = open_old(&server).await.unwrap();
    let _ = server.events.send(format!("data: {}", "x".repeat(20_000)));
    for _ in 0..200 {
        if !connection.is_open() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(matches!(call(&connection).await, Err(UpstreamError::Protocol(_))));
}

#[tokio::test]
async fn server_without_either_transport_reports_its_first_answer() {
    for first in [400, 404, 405] {
        let server = ScriptedServer::start(move |request| match request.method {
            HttpMethod::Post => status(first),
            _ => status(501),
        });
        assert_eq!(
            open_at(&server, endpoint()).await.unwrap_err(),
            UpstreamError::HttpStatus { status: first }
        );
        assert_eq!(server.seen().len(), 2);
    }
    // Other failures say nothing about the transport.
    let server = ScriptedServer::start(|_| status(500));
    assert_eq!(open_at(&server, endpoint()).await.unwrap_err(), UpstreamError::HttpStatus { status: 500 });
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn stream_must_begin_with_an_endpoint() {
    let server = ScriptedServer::start(|request| match request.method {
        HttpMethod::Get => events([event(&json!({ "jsonrpc": "2.0", "method": "x" }))]),
        _ => status(405),
    });
    let refused = open_at(&server, endpoint()).await.unwrap_err();
    assert!(refused.to_string().contains("does not begin with an endpoint"), "{refused}");
}
