//! The whole door: front, tokens and approvals in their database, six stages, the journal on disk. Only what runs a tool is
//! left out, the handlers and their sandbox: these tools do nothing, as the bare server's.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    ApprovalQueue, ApprovalSettings, ArgumentLimits, CallJournal, CallLimits, CallRecord, DiskCheckLimits,
    Gate, GateParts, JournalDetail, LiveSet, LiveTool, OnJournalFailure, Refusal, RunFuture, RunReport,
    RunRequest, RunUsage, Runnable, StopFlag, Survey, Surveyed, SystemClock, Touch,
};
use toolgate_policy::{AskThreshold, CedarPolicies, Mask, PolicySet, Wording, rate, resolve};
use toolgate_server::{
    AuthSettings, Authenticator, ClientAnswers, DoorCode, DoorEvents, FrontParts, HttpFront, HttpLimits,
    HttpSettings, McpSettings, Readiness, Role, SessionLimits, StateKey, TokenIdentity, TokenVerifier,
    mcp_routes,
};
use toolgate_spec::{Format, check_text, digest};
use toolgate_store::{ApprovalLimits, NewToken, StateDb};

pub struct Served {
    pub address: SocketAddr,
    pub token: String,
    _folder: tempfile::TempDir,
}

/// Which tools a caller may know of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListedTools {
    /// There are no policies.
    All,
    /// Policies hide all but five, spread over the set.
    Five,
}

impl Served {
    pub async fn new(tools: usize, shown: ListedTools) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = toolgate_audit::Key::open_or_create(&folder.path().join("key")).unwrap();
        let journal = toolgate_audit::Journal::open(
            &folder.path().join("journal"),
            key,
            toolgate_audit::JournalOptions::default(),
            Arc::new(SystemTime::now),
        )
        .unwrap();
        let limits = ApprovalLimits { max_pending: 64, max_pending_per_caller: 64 };
        let state = Arc::new(StateDb::open(&folder.path().join("state/state.db"), limits).unwrap());
        let token = token(&state);
        let gate = gate(BenchJournal(journal), &state);
        gate.replace(live_set(tools, shown));
        let settings_of_front = HttpSettings {
            listen: "127.0.0.1:0".parse().unwrap(),
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            limits: HttpLimits::default(),
        };
        let front = HttpFront::bind(settings_of_front, async |_| Ok(())).await.unwrap();
        let address = front.local_addr();
        let auth = AuthSettings { tokens: Some(Arc::new(Stored(state))), ..AuthSettings::default() };
        let doors = FrontParts {
            routes: mcp_routes(&gate, &settings(), CancellationToken::new()),
            authenticator: Arc::new(Authenticator::new(auth).unwrap()),
            ready: Arc::new(|| Readiness::Ready),
            events: Arc::new(Nobody),
            clock: Arc::new(SystemClock),
        };
        tokio::spawn(front.serve(doors, CancellationToken::new()));
        Self { address, token, _folder: folder }
    }
}

fn token(state: &StateDb) -> String {
    let new = NewToken {
        name: "bench".to_owned(),
        subject: "bench".to_owned(),
        permissions: Vec::new(),
        role: toolgate_store::TokenRole::Caller,
        expires: None,
    };
    let (_, text) = state.create_token(new, SystemTime::now()).unwrap();
    text.as_str().to_owned()
}

fn live_set(count: usize, shown: ListedTools) -> LiveSet {
    let set = PolicySet::shipped().unwrap();
    let category = |number: usize| if number.is_multiple_of(count / 5) { "open" } else { "closed" };
    let tools: Vec<Arc<LiveTool>> = (0..count).map(|number| tool(number, category(number), &set)).collect();
    let cedar = (shown == ListedTools::Five).then(|| {
        // It matches every tool, so each has to be evaluated.
        let rule = "permit(principal, action, resource) when { resource.category == \"open\" };";
        let sources = [("bench.cedar".to_owned(), rule.to_owned())];
        CedarPolicies::new(&sources, tools.iter().map(|tool| tool.for_policies())).unwrap()
    });
    LiveSet::new(tools).0.with_policies(cedar)
}

fn gate(journal: BenchJournal, state: &Arc<StateDb>) -> Gate {
    Gate::new(GateParts {
        journal: Arc::new(journal),
        on_journal_failure: OnJournalFailure::Refuse,
        journal_detail: JournalDetail::Digests,
        queue: Arc::clone(state) as Arc<dyn ApprovalQueue>,
        approvals: ApprovalSettings {
            ask_from: AskThreshold::Never,
            client_may_answer: true,
            self_approval: false,
            timeout: Duration::from_mins(1),
            expires: Duration::from_mins(1),
            trust: Duration::from_mins(1),
        },
        arguments: ArgumentLimits { bytes: 256 << 10, depth: 32 },
        calls: CallLimits {
            calls: 256,
            calls_per_caller: 256,
            waiting: 1024,
            wait_timeout: Duration::from_mins(1),
            asking: 64,
            asking_per_caller: 64,
        },
        disk_checks: DiskCheckLimits::default(),
        secrets: toolgate_secrets::Detector::shipped().unwrap(),
    })
}

fn settings() -> McpSettings {
    McpSettings {
        page_size: 10,
        answers: ClientAnswers::Taken,
        state_key: StateKey([1; 32]),
        message_bytes: 1 << 20,
        sessions: SessionLimits {
            // One for each connection of a flood, and those of the flood before, whose end nobody waits for.
            in_all: 1024,
            per_caller: 1024,
            streams_per_caller: 64,
            idle: Duration::from_mins(10),
        },
    }
}

fn tool(number: usize, category: &str, set: &PolicySet) -> Arc<LiveTool> {
    let document = json!({
        "name": format!("noop_{number}"), "description": "Does nothing. Returns a text.", "category": category,
        "codeType": "Javascript", "code": "return 'done'", "x-toolgate-classification": "read",
    });
    let check = check_text(&document.to_string(), Format::Json).tools.remove(0);
    let spec = Arc::new(check.spec.clone().unwrap());
    let policy = resolve(&spec, set, None).unwrap();
    let risk = rate(&policy, &spec, set);
    let digest = digest(&spec, &check.document);
    Arc::new(LiveTool::new(spec, digest, policy, (risk, Wording::Clean), Arc::new(EmptyTool)).unwrap())
}

#[derive(Debug)]
struct EmptyTool;

impl Runnable for EmptyTool {
    fn survey(self: Arc<Self>, _: &Map<String, Value>, _: &StopFlag) -> Result<Survey, Refusal> {
        Ok(Survey::of_nothing(EmptyTool))
    }

    fn survey_waits_for_disk(&self) -> bool {
        false
    }

    fn mask(&self) -> Mask {
        Mask::new(&[])
    }
}

impl Surveyed for EmptyTool {
    fn recheck(&self, _: &Map<String, Value>, _: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        Ok(Vec::new())
    }

    fn run(self: Box<Self>, _: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        Box::pin(std::future::ready(RunReport {
            outcome: Ok(Some(Value::from("done"))),
            console: Vec::new(),
            console_dropped: 0,
            effects: Vec::new(),
            effects_dropped: 0,
            usage: RunUsage::default(),
            layers: Vec::new(),
            refused: Vec::new(),
            refused_dropped: 0,
            withheld: Vec::new(),
            worker: None,
        }))
    }
}

struct BenchJournal(toolgate_audit::Journal);

impl CallJournal for BenchJournal {
    fn append(&self, record: &CallRecord) -> Result<(), String> {
        self.0.append(record).map(drop).map_err(|error| error.to_string())
    }

    fn waits_for_disk(&self) -> bool {
        false
    }
}

/// As the binary has it.
struct Stored(Arc<StateDb>);

impl TokenVerifier for Stored {
    fn verify(&self, presented: &str, now: SystemTime) -> Result<Option<TokenIdentity>, String> {
        let found = self.0.verify_token(presented, now).map_err(|error| error.to_string())?;
        Ok(found.map(|token| TokenIdentity {
            id: token.id,
            subject: token.subject,
            permissions: token.permissions.into_iter().collect(),
            role: Role::Caller,
            expires: None,
        }))
    }

    fn is_good(&self, id: &str, now: SystemTime) -> Result<bool, String> {
        self.0.is_token_good(id, now).map_err(|error| error.to_string())
    }
}

struct Nobody;

impl DoorEvents for Nobody {
    fn refused(&self, code: DoorCode, _: Option<std::net::IpAddr>, detail: &str) {
        panic!("refused: {} {detail}", code.code());
    }
}
