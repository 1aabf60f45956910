//! A gateway on a free port of this machine, with handlers that tell what they saw.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{
    Extension, Router,
    body::Bytes,
    http::HeaderMap,
    routing::{any, get, post},
};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{Clock, SystemClock};
use toolgate_server::{
    Algorithm, AuthIdentity, AuthSettings, Authenticator, CallerStanding, DoorCode, DoorEvents, Drained,
    FrontParts, HttpFront, HttpLimits, HttpSettings, IssuerSettings, KeySettings, Peer, Readiness, Role,
    Secret, TokenIdentity, TokenVerifier,
};

use crate::client::{Answer, Client, HANG};

pub struct Gateway {
    pub address: SocketAddr,
    pub world: Arc<World>,
    pub shutdown: CancellationToken,
    serving: JoinHandle<Drained>,
}

/// Records of handlers and events, and signals for them.
#[derive(Default)]
pub struct World {
    pub calls: AtomicUsize,
    pub bodies: Mutex<Vec<String>>,
    pub is_ready: AtomicBool,
    pub slow_entered: Notify,
    pub slow_may_end: Notify,
    pub slow_dropped: Arc<Notify>,
    pub refusals: Mutex<Vec<(String, Option<IpAddr>, String)>>,
    pub refused_again: Mutex<Vec<(String, Option<IpAddr>)>>,
}

impl DoorEvents for World {
    fn refused(&self, code: DoorCode, peer: Option<IpAddr>, detail: &str) {
        self.refusals.lock().unwrap().push((code.code().into(), peer, detail.into()));
    }

    fn refused_again(&self, code: DoorCode, peer: Option<IpAddr>) {
        self.refused_again.lock().unwrap().push((code.code().into(), peer));
    }
}

struct Tokens;

impl TokenVerifier for Tokens {
    fn verify(&self, presented: &str, _now: SystemTime) -> Result<Option<TokenIdentity>, String> {
        let role = match presented {
            "tg_caller" | "tg_leaving" => Role::Caller,
            "tg_admin" => Role::Admin,
            _ => return Ok(None),
        };
        let (id, subject) = (presented.into(), presented.trim_start_matches("tg_").into());
        Ok(Some(TokenIdentity { id, subject, permissions: BTreeSet::new(), role, expires: None }))
    }

    /// One of them is revoked right after its first use.
    fn is_good(&self, id: &str, _now: SystemTime) -> Result<bool, String> {
        Ok(id != "tg_leaving")
    }
}

/// To this clock every step of a request takes two seconds.
#[derive(Default)]
pub struct Leaps(AtomicU64);

impl Clock for Leaps {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(2 * self.0.fetch_add(1, Ordering::SeqCst))
    }
}

pub fn settings() -> HttpSettings {
    HttpSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        public_url: None,
        hosts: vec![],
        origins: vec!["https://app.example".into()],
        limits: HttpLimits { body_bytes: 1000, ..HttpLimits::default() },
    }
}

pub fn limits(change: impl FnOnce(&mut HttpLimits)) -> HttpSettings {
    let mut settings = settings();
    change(&mut settings.limits);
    settings
}

pub fn with_issuer() -> AuthSettings {
    let issuer = IssuerSettings {
        name: "login".into(),
        issuer: "https://login.example".into(),
        audiences: BTreeSet::from(["us".to_owned()]),
        algorithms: BTreeSet::from([Algorithm::Hs256]),
        keys: KeySettings::Secret(Secret::new([7; 32])),
        subject_claim: "sub".into(),
        permissions_claim: None,
        admin_permission: None,
        required_scopes: BTreeSet::new(),
        clock_skew: Duration::ZERO,
        refresh: Duration::from_mins(10),
        scopes: vec!["tools:call".into()],
    };
    AuthSettings { issuers: vec![issuer], ..with_tokens() }
}

pub fn with_tokens() -> AuthSettings {
    AuthSettings { tokens: Some(Arc::new(Tokens)), ..AuthSettings::default() }
}

impl Gateway {
    pub async fn start() -> Self {
        Self::with(settings(), with_tokens()).await
    }

    pub async fn with(settings: HttpSettings, auth: AuthSettings) -> Self {
        Self::with_clock(settings, auth, Arc::new(SystemClock)).await
    }

    pub async fn with_clock(settings: HttpSettings, auth: AuthSettings, clock: Arc<dyn Clock>) -> Self {
        let bound = HttpFront::bind(settings, async |_| Ok(())).await.unwrap();
        let (address, world, shutdown) =
            (bound.local_addr(), Arc::new(World::default()), CancellationToken::new());
        let ready = Arc::clone(&world);
        let doors = FrontParts {
            routes: routes(&world),
            authenticator: Arc::new(Authenticator::new(auth).unwrap()),
            ready: Arc::new(move || {
                if ready.is_ready.load(Ordering::SeqCst) { Readiness::Ready } else { Readiness::NotReady }
            }),
            events: Arc::<World>::clone(&world),
            clock,
        };
        let serving = tokio::spawn(bound.serve(doors, shutdown.clone()));
        Self { address, world, shutdown, serving }
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// One request on a separate connection; `{host}` stands for ours.
    pub async fn ask(&self, request: &str) -> Answer {
        let mut client = self.client().await;
        client.send(self.fill(request).as_bytes()).await;
        client.answer().await.expect("an answer")
    }

    pub fn fill(&self, request: &str) -> String {
        request.replace("{host}", &self.address.to_string()).replace('\n', "\r\n")
    }

    /// Bytes that are not a valid request: refused or hung up on, and no handler sees anything.
    pub async fn refuses(&self, request: &str) -> String {
        let mut client = self.client().await;
        client.send_if_open(self.fill(request).as_bytes()).await;
        let said = client.rest().await;
        assert!(!said.contains(" 200 "), "{request:?} was served: {said}");
        assert_eq!(self.calls(), 0, "{request:?} reached a handler");
        said
    }

    pub fn calls(&self) -> usize {
        self.world.calls.load(Ordering::SeqCst)
    }

    pub fn refusals(&self) -> Vec<String> {
        self.world.refusals.lock().unwrap().iter().map(|(code, ..)| code.clone()).collect()
    }

    pub async fn stopped(self) -> Drained {
        timeout(HANG, self.serving).await.expect("serving ends").unwrap()
    }
}

fn routes(world: &Arc<World>) -> Router {
    Router::new()
        .route("/mcp", any(see))
        .route("/mcp/{*rest}", any(see))
        .route("/admin/tools", any(see))
        .route("/slow", get(slow))
        .route("/standing", get(standing))
        .route("/long", get(async || "x".repeat(64 * 1024 * 1024)))
        .route("/only-post", post(async || "posted"))
        .route("/rich", get(async || ([("cache-control", "public, max-age=9")], "rich")))
        .layer(Extension(Arc::clone(world)))
}

/// Tells who called, from where, and what came with it.
async fn see(
    Extension(world): Extension<Arc<World>>,
    Extension(identity): Extension<AuthIdentity>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> String {
    world.calls.fetch_add(1, Ordering::SeqCst);
    world.bodies.lock().unwrap().push(String::from_utf8_lossy(&body).into_owned());
    assert!(peer.0.ip().is_loopback());
    assert!(!headers.contains_key("authorization"), "the proof stays at the door");
    format!("{} {:?} {}", identity.caller.subject, identity.role, body.len())
}

/// Whether the caller's token is still valid.
async fn standing(Extension(CallerStanding(standing)): Extension<CallerStanding>) -> String {
    standing.is_valid().to_string()
}

async fn slow(Extension(world): Extension<Arc<World>>) -> &'static str {
    struct Dropped(Arc<Notify>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let _dropped = Dropped(Arc::clone(&world.slow_dropped));
    world.slow_entered.notify_one();
    world.slow_may_end.notified().await;
    "done"
}
