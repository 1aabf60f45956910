//! The SDK's own server with a tool that does nothing, without anything around it.

use std::net::SocketAddr;

use axum::{Router, serve::ListenerExt};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;

struct EmptyServer;

impl ServerHandler for EmptyServer {
    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }

    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

pub async fn serve() -> SocketAddr {
    let config =
        StreamableHttpServerConfig::default().with_json_response(true).with_legacy_session_mode(true);
    let service =
        StreamableHttpService::new(|| Ok(EmptyServer), LocalSessionManager::default().into(), config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    // Without this its median is 44 ms: Nagle's algorithm meets delayed acknowledgements.
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
    let app = Router::new().route_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}
