//! The server that the public conformance suite is run against: our MCP door, a gate with fakes for everything else.
//!
//! `cargo run -p toolgate-server --example conformance_server [PORT]`, then see `tests/conformance/README.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "an example that is a test"
)]

#[path = "../tests/mcp/fakes.rs"]
#[allow(dead_code, reason = "shared with the tests, which use all of it")]
mod fakes;

use std::{sync::Arc, time::Duration};

use axum::{
    extract::Request,
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use fakes::{Does, FakeTool, MemoryJournal, MemoryQueue};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    ApprovalDefault, ApprovalSettings, ArgumentLimits, CallLimits, Gate, GateParts, LiveSet, LiveTool,
    OnJournalFailure, Shows,
};
use toolgate_policy::{Caller, PolicySet, rate, resolve};
use toolgate_server::{CallerIdentity, ClientAnswers, McpSettings, SessionLimits, StateKey, mcp_router};
use toolgate_spec::{Format, check_text, digest};

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).map_or(3_000, |port| port.parse().expect("a port"));
    let gate = gate();
    let (set, doubled) = LiveSet::new(tools());
    assert_eq!(doubled, Vec::<String>::new());
    gate.replace(set);
    let settings = McpSettings {
        page_size: 100,
        answers: ClientAnswers::Taken,
        state_key: StateKey([7; 32]),
        message_bytes: 4 << 20,
        sessions: SessionLimits { in_all: 1_000, per_caller: 1_000, idle: Duration::from_mins(5) },
    };
    let app = mcp_router(gate, &settings, CancellationToken::new()).layer(axum::middleware::from_fn(front));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
    println!("http://{}/mcp", listener.local_addr().unwrap());
    axum::serve(listener, app).await.expect("serves");
}

/// Everybody is the same caller; only the machine's own names are served.
async fn front(mut request: Request, next: Next) -> Response {
    if !is_local(&request, "host") || !is_local(&request, "origin") {
        return (StatusCode::FORBIDDEN, "not for this host or origin").into_response();
    }
    let caller = Caller::new("conformance", Vec::<String>::new());
    request.extensions_mut().insert(CallerIdentity { caller });
    next.run(request).await
}

fn is_local(request: &Request, header: &str) -> bool {
    request.headers().get(header).is_none_or(|value| {
        let host = value.to_str().unwrap_or("?");
        let host = host.strip_prefix("http://").unwrap_or(host);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        ["localhost", "127.0.0.1", "[::1]"].contains(&host)
    })
}

fn gate() -> Gate {
    Gate::new(GateParts {
        journal: Arc::new(MemoryJournal::default()),
        on_journal_failure: OnJournalFailure::Refuse,
        shows: Shows::Digests,
        queue: Arc::new(MemoryQueue::default()),
        approvals: ApprovalSettings {
            default: ApprovalDefault::Never,
            client_may_answer: true,
            timeout: Duration::from_secs(20),
            expires: Duration::from_mins(10),
            trust: Duration::from_mins(10),
        },
        arguments: ArgumentLimits { bytes: 1 << 20, depth: 30 },
        calls: CallLimits { calls: 50, calls_per_caller: 50, waiting: 10 },
    })
}

/// What the suite calls, as far as a tool of ours can do it.
fn tools() -> Vec<Arc<LiveTool>> {
    let asks = "humanInTheLoop: {mode: REQUIRED}";
    let message = "params: [{name: message, type: STRING, required: true, testValue: hi}], \
         humanInTheLoop: {mode: REQUIRED, promptTemplate: 'Shall it say {args.message}?'}";
    let text = |text: &str| Does::Returns(json!(text));
    let resource = json!({"type": "resource", "resource": {
        "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "An embedded resource.",
    }});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let audio = json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"});
    let words = json!({"type": "text", "text": "Several kinds of content:"});
    vec![
        tool("test_simple_text", "", text("This is a simple text response for testing.")),
        tool("test_image_content", "", Does::Returns(json!({"$content": [image]}))),
        tool("test_audio_content", "", Does::Returns(json!({"$content": [audio]}))),
        tool("test_embedded_resource", "", Does::Returns(json!({"$content": [resource]}))),
        tool("test_multiple_content_types", "", Does::Returns(json!({"$content": [words, image, resource]}))),
        tool("test_error_handling", "", Does::Throws("This tool intentionally returns an error for testing")),
        tool("test_tool_with_progress", "", Does::Sleeps(500)),
        tool("test_elicitation", message, text("said")),
        tool("test_logging_tool", "", text("nothing to log")),
        tool("test_streaming_elicitation", asks, text("done")),
        tool("test_input_required_result_elicitation", asks, text("done")),
        tool("test_input_required_result_request_state", asks, text("state-ok")),
        tool("test_input_required_result_tampered_state", asks, text("done")),
    ]
}

fn tool(name: &str, more: &str, does: Does) -> Arc<LiveTool> {
    let document = format!(
        "{{name: {name}, description: For the conformance suite. Returns what it asks for., \
         x-toolgate-classification: read, codeType: Javascript, code: return 1, {more}}}"
    );
    let file = check_text(&document, Format::Yaml);
    let tool = file.tools.into_iter().next().unwrap_or_else(|| panic!("{:?}", file.findings));
    let spec = tool.spec.clone().unwrap_or_else(|| panic!("{:?}\n{document}", tool.findings));
    let set = PolicySet::shipped().unwrap();
    let policy = resolve(&spec, &set, None).unwrap();
    let (risk, digest) = (rate(&policy, &spec, &set), digest(&spec, &tool.document));
    Arc::new(LiveTool::new(Arc::new(spec), digest, policy, risk, FakeTool::new(does)).unwrap())
}

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Silence.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
