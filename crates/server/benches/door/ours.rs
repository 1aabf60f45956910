//! Toolgate with everything on but the sandbox: its tools do nothing, as the bare server's.

use std::{
    collections::BTreeSet,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    ApprovalDefault, ApprovalSettings, ArgumentLimits, CallLimits, CallRecord, Gate, GateParts, Journal,
    LiveSet, LiveTool, OnJournalFailure, Refusal, RunReport, RunRequest, RunUsage, Runnable, Shows, Survey,
    SystemClock,
};
use toolgate_policy::{Mask, PolicySet, Wording, rate, resolve};
use toolgate_server::{
    AuthSettings, Authenticator, ClientAnswers, DoorCode, DoorEvents, Doors, HttpFront, HttpLimits,
    HttpSettings, McpSettings, Readiness, Role, SessionLimits, StateKey, TokenIdentity, TokenVerifier,
    mcp_routes,
};
use toolgate_spec::{Format, check_text, digest};

#[path = "../../tests/mcp/fakes.rs"]
#[expect(dead_code, reason = "only the queue is needed")]
mod fakes;

pub struct Served {
    pub address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Served {
    pub async fn new(tools: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = toolgate_audit::Key::open_or_create(&folder.path().join("key")).unwrap();
        let journal = toolgate_audit::Journal::open(
            &folder.path().join("journal"),
            key,
            toolgate_audit::Options::default(),
            Arc::new(SystemTime::now),
        )
        .unwrap();
        let gate = gate(Files(journal));
        let set = PolicySet::shipped().unwrap();
        let (live, _) = LiveSet::new((0..tools).map(|number| tool(number, &set)).collect::<Vec<_>>());
        gate.replace(live);
        let front = HttpFront::bind(HttpSettings {
            listen: "127.0.0.1:0".parse().unwrap(),
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            limits: HttpLimits::default(),
        })
        .await
        .unwrap();
        let address = front.local_addr();
        let auth = AuthSettings { tokens: Some(Arc::new(OneToken)), ..AuthSettings::default() };
        let doors = Doors {
            routes: mcp_routes(&gate, &settings(), CancellationToken::new()),
            authenticator: Arc::new(Authenticator::new(auth).unwrap()),
            ready: Arc::new(|| Readiness::Ready),
            events: Arc::new(Nobody),
            clock: Arc::new(SystemClock),
        };
        tokio::spawn(front.serve(doors, CancellationToken::new()));
        Self { address, _folder: folder }
    }
}

fn gate(journal: Files) -> Gate {
    Gate::new(GateParts {
        journal: Arc::new(journal),
        on_journal_failure: OnJournalFailure::Refuse,
        shows: Shows::Digests,
        queue: Arc::<fakes::MemoryQueue>::default(),
        approvals: ApprovalSettings {
            default: ApprovalDefault::Never,
            client_may_answer: true,
            timeout: Duration::from_mins(1),
            expires: Duration::from_mins(1),
            trust: Duration::from_mins(1),
        },
        arguments: ArgumentLimits { bytes: 256 << 10, depth: 32 },
        calls: CallLimits {
            calls: 256,
            calls_per_caller: 256,
            waiting: 1024,
            asking: 64,
            asking_per_caller: 64,
        },
        secrets: toolgate_secrets::Detector::shipped().unwrap(),
    })
}

fn settings() -> McpSettings {
    McpSettings {
        page_size: 100,
        answers: ClientAnswers::Taken,
        state_key: StateKey([1; 32]),
        message_bytes: 1 << 20,
        sessions: SessionLimits {
            in_all: 64,
            per_caller: 64,
            streams_per_caller: 64,
            idle: Duration::from_mins(10),
        },
    }
}

fn tool(number: usize, set: &PolicySet) -> Arc<LiveTool> {
    let document = json!({
        "name": format!("noop_{number}"), "description": "Does nothing. Returns a text.", "codeType": "Javascript",
        "code": "return 'done'", "x-toolgate-classification": "read",
    });
    let check = check_text(&document.to_string(), Format::Json).tools.remove(0);
    let spec = Arc::new(check.spec.clone().unwrap());
    let policy = resolve(&spec, set, None).unwrap();
    let risk = rate(&policy, &spec, set);
    let digest = digest(&spec, &check.document);
    Arc::new(LiveTool::new(spec, digest, policy, (risk, Wording::Clean), Arc::new(Noop)).unwrap())
}

#[derive(Debug)]
struct Noop;

impl Runnable for Noop {
    fn survey(&self, _: &Map<String, Value>) -> Result<Survey, Refusal> {
        Ok(Survey::default())
    }

    fn run<'r>(&'r self, _: RunRequest<'r>) -> Pin<Box<dyn Future<Output = RunReport> + Send + 'r>> {
        Box::pin(std::future::ready(RunReport {
            outcome: Ok(Some(Value::from("done"))),
            console: Vec::new(),
            console_dropped: 0,
            effects: Vec::new(),
            usage: RunUsage::default(),
            walls: Vec::new(),
            refused: Vec::new(),
            withheld: Vec::new(),
            worker: None,
        }))
    }

    fn mask(&self) -> Mask {
        Mask::new(&[])
    }
}

struct Files(toolgate_audit::Journal);

impl Journal for Files {
    fn append(&self, record: &CallRecord) -> Result<(), String> {
        self.0.append(record).map(drop).map_err(|error| error.to_string())
    }

    fn waits_for_disk(&self) -> bool {
        false
    }
}

struct OneToken;

impl TokenVerifier for OneToken {
    fn verify(&self, _: &str, _: SystemTime) -> Result<Option<TokenIdentity>, String> {
        Ok(Some(TokenIdentity {
            id: "bench".to_owned(),
            subject: "bench".to_owned(),
            permissions: BTreeSet::new(),
            role: Role::Caller,
            expires: None,
        }))
    }

    fn is_good(&self, _: &str, _: SystemTime) -> Result<bool, String> {
        Ok(true)
    }
}

struct Nobody;

impl DoorEvents for Nobody {
    fn refused(&self, code: DoorCode, _: Option<std::net::IpAddr>, detail: &str) {
        panic!("refused: {} {detail}", code.code());
    }
}
