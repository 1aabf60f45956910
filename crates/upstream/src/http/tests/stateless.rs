//! Servers of protocol version 2026-07-28.

use super::*;

fn stateless_server(
    call: impl Fn(&HttpRequest) -> ScriptedReply + Send + Sync + 'static,
) -> Arc<ScriptedServer> {
    ScriptedServer::start(move |request| {
        if request.method != HttpMethod::Post {
            return status(405);
        }
        let version = request.header("mcp-protocol-version");
        let message = request.message();
        let meta = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let mirrors = version == Some("2026-07-28")
            && *meta == "2026-07-28"
            && request.header("mcp-method") == message["method"].as_str();
        if !mirrors {
            // The server refuses before it reads the id.
            return json_reply(
                400,
                &json!({ "jsonrpc": "2.0", "error": { "code": -32_020, "message": "headers" } }),
            );
        }
        assert_eq!(request.header("mcp-session-id"), None);
        match request.what().as_str() {
            "server/discover" => answer(
                request,
                &json!({
                    "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                    "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "modern", "version": "2" } },
                }),
            )
            .with("mcp-session-id", "ignored"),
            "tools/list" => answer(
                request,
                &json!({ "tools": [
                { "name": "echo", "inputSchema": { "properties": { "r": { "type": "string", "x-mcp-header": "R" } } } },
                { "name": "bad", "inputSchema": { "x-mcp-header": "R" } },
            ] }),
            ),
            "tools/call" => call(request),
            _ => error(request, 404, -32_601),
        }
    })
}

#[tokio::test]
async fn requests_carry_the_headers_of_the_version() {
    let server = stateless_server(|request| answer(request, &json!({})));
    let connection = open(&server).await;
    assert_eq!((connection.server().era, connection.server().name.as_str()), (Era::Stateless, "modern"));
    let tools = connection.list_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["echo"]);
    let arguments = Map::from_iter([("r".to_owned(), json!("eu"))]);
    connection.call_tool("echo", &arguments, SHORT).await.unwrap();
    let called = server.sees(|request| request.what() == "tools/call").await;
    assert_eq!(called.header("mcp-name"), Some("echo"));
    assert_eq!(called.header("mcp-param-r"), Some("eu"));
}

#[tokio::test]
async fn abandoned_call_closes_its_connection_without_a_notification() {
    let server = stateless_server(|_| events([Piece::Silence]));
    let connection = open(&server).await;
    let late = connection.call_tool("echo", &Map::new(), SHORT).await.unwrap_err();
    assert!(matches!(late, UpstreamError::TimedOut { .. }));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.open_bodies(), 0);
    assert!(server.seen().iter().all(|request| request.what() != "notifications/cancelled"));
    drop(connection);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(server.seen().iter().all(|request| request.method == HttpMethod::Post));
}

#[tokio::test]
async fn broken_stream_is_not_resumed() {
    let server = stateless_server(|_| events([Piece::Text("id: 1\ndata:\n\n".to_owned()), Piece::Break]));
    let connection = open(&server).await;
    assert!(matches!(call(&connection).await, Err(UpstreamError::Lost(_))));
    assert!(server.seen().iter().all(|request| request.method == HttpMethod::Post));
}

#[tokio::test]
async fn unknown_method_is_an_error_of_the_server() {
    let server = stateless_server(|request| error(request, 404, -32_601));
    let connection = open(&server).await;
    assert!(matches!(call(&connection).await, Err(UpstreamError::Server { code: -32_601, .. })));
    assert!(connection.is_open());
}
