//! A gate with fake tools behind a server on loopback whose front believes a header.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    middleware::Next,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    ApprovalSettings, ArgumentLimits, AuthStatus, CallLimits, DiskCheckLimits, Gate, GateParts,
    JournalDetail, LiveSet, LiveTool, OnJournalFailure,
};
use toolgate_policy::{AskThreshold, Caller, PolicySet, Wording, rate, resolve};
use toolgate_server::{
    AdminIdentity, CallerIdentity, CallerStanding, ClientAnswers, McpSettings, SessionLimits, StateKey,
    admin_router, mcp_router,
};
use toolgate_spec::{Format, check_text, digest};

use crate::{
    client::{Client, Events},
    fakes::{Does, FakeTool, MemoryJournal, MemoryQueue},
};

pub struct World {
    pub gate: Gate,
    pub journal: Arc<MemoryJournal>,
    pub queue: Arc<MemoryQueue>,
    pub settings: McpSettings,
    pub tools: Arc<Mutex<Vec<Arc<LiveTool>>>>,
    pub shutdown: CancellationToken,
    /// Whether the token of all callers is revoked.
    pub is_revoked: Arc<AtomicBool>,
}

/// A call that waits for its caller's answer, as long as its stream is held.
pub struct Waiting {
    pub tool: Arc<FakeTool>,
    pub client: Client,
    pub events: Events,
    pub question: Value,
}

struct Token(Arc<AtomicBool>);

impl AuthStatus for Token {
    fn is_valid(&self) -> bool {
        !self.0.load(Ordering::SeqCst)
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(|_, _| {})
    }

    pub fn with(change: impl FnOnce(&mut ApprovalSettings, &mut McpSettings)) -> Self {
        let mut approvals = ApprovalSettings {
            ask_from: AskThreshold::Never,
            client_may_answer: true,
            self_approval: false,
            timeout: Duration::from_secs(30),
            expires: Duration::from_mins(10),
            trust: Duration::from_mins(10),
        };
        let mut settings = McpSettings {
            page_size: 3,
            answers: ClientAnswers::Taken,
            state_key: StateKey([9; 32]),
            message_bytes: 100_000,
            sessions: SessionLimits {
                in_all: 5,
                per_caller: 3,
                streams_per_caller: 4,
                idle: Duration::from_mins(1),
            },
        };
        change(&mut approvals, &mut settings);
        let (journal, queue) = (Arc::<MemoryJournal>::default(), Arc::<MemoryQueue>::default());
        let gate = Gate::new(GateParts {
            journal: journal.clone(),
            on_journal_failure: OnJournalFailure::Refuse,
            journal_detail: JournalDetail::Digests,
            queue: queue.clone(),
            approvals,
            arguments: ArgumentLimits { bytes: 50_000, depth: 20 },
            calls: CallLimits {
                calls: 50,
                calls_per_caller: 20,
                waiting: 10,
                wait_timeout: Duration::from_mins(1),
                asking: 10,
                asking_per_caller: 5,
            },
            disk_checks: DiskCheckLimits::default(),
            secrets: toolgate_secrets::Detector::shipped().unwrap(),
        });
        let (tools, shutdown) = (Arc::default(), CancellationToken::new());
        Self { gate, journal, queue, settings, tools, shutdown, is_revoked: Arc::default() }
    }

    /// A tool `name` with more fields of its document, last in the list.
    pub fn add(&self, name: &str, more: &str, does: Does) -> Arc<FakeTool> {
        let fake = FakeTool::new(does);
        self.tools.lock().unwrap().push(live(name, more, fake.clone()));
        self.publish();
        fake
    }

    pub fn remove(&self, name: &str) {
        self.tools.lock().unwrap().retain(|tool| tool.name() != name);
        self.publish();
    }

    fn publish(&self) {
        let (set, doubled) = LiveSet::new(self.tools.lock().unwrap().clone());
        assert_eq!(doubled, Vec::<String>::new());
        self.gate.replace(set);
    }

    /// A call of `pay` from a session that has come to its question.
    pub async fn begin_to_pay(&self, era: &'static str) -> Waiting {
        let tool = self.add("pay", ASKS, Does::Echo);
        let client = Client::session(self.serve().await, "ann", era, json!({"elicitation": {}})).await;
        let call = client.message(7, "tools/call", json!({"name": "pay", "arguments": {"sum": 5}}));
        let mut events = client.open("POST", Some(&call)).await;
        let question = events.next().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        Waiting { tool, client, events, question }
    }

    pub async fn serve(&self) -> SocketAddr {
        let tools = Arc::clone(&self.tools);
        let app = Router::new()
            .merge(mcp_router(self.gate.clone(), &self.settings, self.shutdown.clone()))
            .merge(admin_router(self.gate.clone(), Arc::new(move || tools.lock().unwrap().clone())))
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&self.is_revoked), front));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        address
    }
}

async fn front(
    State(is_revoked): State<Arc<AtomicBool>>,
    mut request: Request,
    next: Next,
) -> axum::response::Response {
    introduce(&mut request);
    request.extensions_mut().insert(CallerStanding(Arc::new(Token(is_revoked))));
    next.run(request).await
}

/// `x-caller: ann read write` is ann with two permissions; `x-admin: eve` is an admin.
fn introduce(request: &mut Request) {
    let header =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (caller, admin) = (header("x-caller"), header("x-admin"));
    if let Some(caller) = caller {
        let mut words = caller.split(' ');
        let caller = Caller::new(words.next().unwrap(), words);
        request.extensions_mut().insert(CallerIdentity { caller });
    }
    if let Some(name) = admin {
        request.extensions_mut().insert(AdminIdentity { name });
    }
}

pub fn live(name: &str, more: &str, fake: Arc<FakeTool>) -> Arc<LiveTool> {
    let takes = if more.contains("params:") { String::new() } else { takes() };
    let document = format!(
        "{{name: {name}, description: Does {name}., x-toolgate-classification: read, codeType: Javascript, \
         code: return 1, {takes} {more}}}"
    );
    let file = check_text(&document, Format::Yaml);
    let tool = file.tools.into_iter().next().unwrap_or_else(|| panic!("{:?}", file.findings));
    let spec = tool.spec.clone().unwrap_or_else(|| panic!("{:?}\n{document}", tool.findings));
    let set = PolicySet::shipped().unwrap();
    let policy = resolve(&spec, &set, None).unwrap();
    let (risk, digest) = (rate(&policy, &spec, &set), digest(&spec, &tool.document));
    Arc::new(LiveTool::new(Arc::new(spec), digest, policy, (risk, Wording::Clean), fake).unwrap())
}

/// Waits until something is so; a hang guard, not a measurement.
pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never came true: {what}");
}

/// Whatever the tests call tools with.
fn takes() -> String {
    let texts = ["a", "caller", "text", "to"].map(|name| (name, "STRING"));
    let numbers = ["b", "n", "round", "sum"].map(|name| (name, "INTEGER"));
    let params = [texts, numbers].concat().into_iter();
    let params = params.map(|(name, kind)| {
        format!("{{name: {name}, type: {kind}, required: false, description: A value, testValue: '1'}}")
    });
    format!("params: [{}],", params.collect::<Vec<_>>().join(", "))
}

/// A person is asked once, and then trusted.
pub const TRUSTS: &str = "x-toolgate-capability: {approval: {level: ask, trustAfterApproval: true}}";
/// Every call asks a person.
pub const ASKS: &str = "humanInTheLoop: {mode: REQUIRED}";
