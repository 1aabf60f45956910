//! Connections to a server of the official SDK, through egress.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::{RequestContext, RoleServer},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Map, json};
use toolgate_egress::{Egress, EgressLimits, EgressRules, Listeners, SystemResolver, TlsRoots};
use toolgate_upstream::{ClientIdentity, Connection, ConnectionLimits, Era, HttpEndpoint, UpstreamError};
use url::Url;

use super::*;

#[derive(Clone)]
struct EchoServer;

impl ServerHandler for EchoServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        Ok(ListToolsResult::with_all_items(vec![Tool::new(
            "echo",
            "Returns its arguments.",
            Arc::new(schema),
        )]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = serde_json::to_string(&request.arguments).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

async fn serve(config: StreamableHttpServerConfig) -> SocketAddr {
    let service =
        StreamableHttpService::new(|| Ok(EchoServer), Arc::new(LocalSessionManager::default()), config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback_service(service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn egress() -> Egress {
    let signed = rcgen::generate_simple_self_signed(vec!["nobody.test".to_owned()]).unwrap();
    let roots = TlsRoots::Pem(signed.cert.pem().into_bytes());
    let resolver = Arc::new(SystemResolver::new().unwrap());
    Egress::new(resolver, &roots, EgressLimits::default(), Listeners::of_this_process()).unwrap()
}

async fn connect(
    address: SocketAddr,
    rules: impl FnOnce(&Url) -> EgressRules,
) -> Result<Connection, UpstreamError> {
    let url = Url::parse(&format!("http://{address}/mcp")).unwrap();
    let http = Arc::new(UpstreamHttp::new(egress().pooled(rules(&url))));
    let endpoint = HttpEndpoint { url, headers: Vec::new(), bearer: None };
    let identity = ClientIdentity { name: "toolgate".to_owned(), version: "0".to_owned() };
    Connection::open_http(http, endpoint, &identity, ConnectionLimits::default()).await
}

#[track_caller]
fn text_of(result: &serde_json::Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

const CALL: Duration = Duration::from_secs(10);

#[tokio::test]
async fn server_of_the_sdk_is_listed_and_called() {
    for config in [
        StreamableHttpServerConfig::default(),
        StreamableHttpServerConfig::default().with_legacy_session_mode(false),
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true),
    ] {
        let connection = connect(serve(config).await, EgressRules::only).await.unwrap();
        assert_eq!(connection.server().era, Era::Session);
        let tools = connection.list_tools().await.unwrap();
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["echo"]);
        let arguments = Map::from_iter([("text".to_owned(), json!("hi"))]);
        for _ in 0..3 {
            let result = connection.call_tool("echo", &arguments, CALL).await.unwrap();
            assert_eq!(text_of(&result), r#"{"text":"hi"}"#);
        }
        connection.close().await;
    }
}

#[tokio::test]
async fn rules_of_the_upstream_are_enforced() {
    let address = serve(StreamableHttpServerConfig::default()).await;
    let refused = connect(address, |_| EgressRules::blocked()).await.unwrap_err();
    assert!(matches!(&refused, UpstreamError::Unreachable(why) if why.contains("blocked")), "{refused}");
    assert!(refused.was_not_sent());
}
