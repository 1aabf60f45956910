//! Sessions with an owner: limits their number, and hides each from all callers but its owner.

mod cancel_on_drop;
mod info;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Instant,
};

use futures_core::Stream;
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientNotification, Extensions, GetExtensions as _, RequestId,
        RootsListChangedNotification, RootsListChangedNotificationMethod, ServerJsonRpcMessage,
    },
    transport::streamable_http_server::{
        SessionId, SessionManager,
        session::{
            ServerSseMessage,
            local::{LocalSessionManager, LocalSessionManagerError},
        },
    },
};
use toolgate_policy::Caller;

use self::cancel_on_drop::CancelOnDrop;
use self::info::InitializeParams;
pub use self::info::SessionInfo;
use super::SessionLimits;

/// The SDK's sessions, each with its owner.
#[derive(Debug)]
pub struct OwnedSessions {
    inner: Arc<LocalSessionManager>,
    limits: SessionLimits,
    owners: Mutex<HashMap<SessionId, Owner>>,
}

#[derive(Debug)]
struct Owner {
    subject: String,
    /// The key of the quota of sessions.
    quota: String,
    last_used: Instant,
    info: Arc<SessionInfo>,
    /// When the SDK was last informed of direct calls, which it does not see.
    reported: Instant,
}

impl Owner {
    fn new(caller: &Caller) -> Self {
        let (subject, quota) = (caller.subject.clone(), caller.quota().into_owned());
        let now = Instant::now();
        Self { subject, quota, last_used: now, info: Arc::default(), reported: now }
    }
}

/// Cancels the running calls of a session when it ends.
impl Drop for Owner {
    fn drop(&mut self) {
        self.info.end();
    }
}

/// The caller of the current request. The SDK does not pass it to its session layer.
#[derive(Clone, Debug)]
pub struct SessionCaller {
    pub caller: Caller,
    /// Set if the session layer refused the request. The SDK cannot pass on why.
    pub refused: Arc<OnceLock<SessionRefusal>>,
}

/// Why the session layer refused a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SessionRefusal {
    /// The limit of sessions is reached.
    Full,
    /// The session has a running request with this id.
    DuplicateId(RequestId),
}

tokio::task_local! {
    pub static SESSION_CALLER: SessionCaller;
}

/// Returns `None` outside of a request.
fn with_caller<T>(look: impl FnOnce(&Caller) -> T) -> Option<T> {
    SESSION_CALLER.try_with(|asker| look(&asker.caller)).ok()
}

fn refuse(why: SessionRefusal) {
    // A request is refused once.
    let _ = SESSION_CALLER.try_with(|asker| asker.refused.set(why));
}

impl OwnedSessions {
    pub fn new(limits: SessionLimits) -> Self {
        let mut inner = LocalSessionManager::default();
        // Longer than `idle`, because the SDK learns of direct calls with a delay.
        inner.session_config.keep_alive = Some(limits.idle + limits.idle / REPORTS);
        // Clients older than these events read them as broken messages.
        inner.session_config.sse_retry = None;
        Self { inner: Arc::new(inner), limits, owners: Mutex::default() }
    }

    pub fn is_of(&self, id: &str, subject: &str) -> bool {
        self.owners().get(id).is_some_and(|owner| owner.subject == subject)
    }

    /// Finds a session of the caller for a direct call, and keeps the session alive.
    pub fn find(&self, id: &str, subject: &str) -> Option<Arc<SessionInfo>> {
        let now = Instant::now();
        let mut owners = self.owners();
        let (id, _) = owners.get_key_value(id).filter(|(_, owner)| owner.subject == subject)?;
        let id = SessionId::clone(id);
        let owner = owners.get_mut(&id)?;
        owner.last_used = now;
        let info = Arc::clone(&owner.info);
        if now.duration_since(owner.reported) >= self.limits.idle / REPORTS {
            owner.reported = now;
            tokio::spawn(report(Arc::clone(&self.inner), id));
        }
        Some(info)
    }

    /// Returns `None` if the session has ended.
    fn info(&self, id: &SessionId) -> Option<Arc<SessionInfo>> {
        self.owners().get(id).map(|owner| Arc::clone(&owner.info))
    }

    /// Whether the session belongs to the caller of this request. Marks it as used, which protects it from eviction.
    fn is_own(&self, id: &SessionId) -> bool {
        let is_own = |caller: &Caller| match self.owners().get_mut(id) {
            Some(owner) if owner.subject == caller.subject => {
                owner.last_used = Instant::now();
                true
            }
            _ => false,
        };
        with_caller(is_own).unwrap_or(false)
    }

    fn own(&self, id: &SessionId) -> Result<(), LocalSessionManagerError> {
        if self.is_own(id) { Ok(()) } else { Err(LocalSessionManagerError::SessionNotFound(id.clone())) }
    }

    /// Adds a session. If a limit is reached, removes the caller's least recently used session and returns it.
    fn enter(&self, id: &SessionId, caller: &Caller) -> Result<Option<SessionId>, ()> {
        let mut owners = self.owners();
        let quota = caller.quota();
        let is_of_caller = |owner: &Owner| owner.quota == quota;
        let held = owners.values().filter(|owner| is_of_caller(owner)).count();
        let is_full = held >= self.limits.per_caller || owners.len() >= self.limits.in_all;
        let oldest = owners.iter().filter(|(_, owner)| is_of_caller(owner));
        let oldest = oldest.min_by_key(|(_, owner)| owner.last_used).map(|(id, _)| id.clone());
        let evicted = match (is_full, oldest) {
            (false, _) => None,
            (true, Some(oldest)) => Some(oldest),
            // Sessions of other callers are never evicted.
            (true, None) => return Err(()),
        };
        if let Some(evicted) = &evicted {
            owners.remove(evicted);
        }
        owners.insert(id.clone(), Owner::new(caller));
        Ok(evicted)
    }

    fn owners(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for OwnedSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        let entered = with_caller(|caller| self.enter(&id, caller)).unwrap_or(Err(()));
        let Ok(evicted) = entered else {
            refuse(SessionRefusal::Full);
            self.inner.close_session(&id).await?;
            return Err(LocalSessionManagerError::SessionNotFound(id));
        };
        if let Some(evicted) = evicted {
            self.inner.close_session(&evicted).await?;
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let params = InitializeParams::of(&message);
        let answer = self.inner.initialize_session(id, message).await?;
        if let (Some(info), Some(params)) = (self.info(id), params) {
            info.initialize(params, &answer);
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.is_own(id) && self.inner.has_session(id).await?)
    }

    /// The session itself also calls this when it ends, outside of any request.
    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.owners().remove(id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.own(id)?;
        let gone = || LocalSessionManagerError::SessionNotFound(id.clone());
        let info = self.info(id).ok_or_else(gone)?;
        info.observe(&message);
        let mut request = None;
        if let ClientJsonRpcMessage::Request(asked) = &mut message {
            let Some(reservation) = info.begin(&asked.id) else {
                refuse(SessionRefusal::DuplicateId(asked.id.clone()));
                return Err(gone());
            };
            asked.request.extensions_mut().insert(reservation.clone());
            request = Some((asked.id.clone(), reservation));
        }
        let stream = self.inner.create_stream(id, message).await?;
        Ok(CancelOnDrop::new(stream, Arc::clone(&self.inner), id.clone(), request))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.own(id)?;
        let info = self.info(id).inspect(|info| info.observe(&message));
        let ends_handshake = SessionInfo::ends_handshake(&message);
        self.inner.accept_message(id, message).await?;
        info.filter(|_| ends_handshake).inspect(|info| info.set_ready());
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.own(id)?;
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.own(id)?;
        self.inner.resume(id, last_event_id).await
    }
}

/// Keeps a session alive in the SDK, by a notification that this server ignores.
async fn report(sessions: Arc<LocalSessionManager>, id: SessionId) {
    let (method, extensions) = (RootsListChangedNotificationMethod, Extensions::default());
    let roots = RootsListChangedNotification { method, extensions };
    let message = ClientNotification::RootsListChangedNotification(roots);
    // Fails if the session has ended, which is fine.
    let _ = sessions.accept_message(&id, ClientJsonRpcMessage::notification(message)).await;
}

/// How many times the SDK is informed of direct calls within the idle time of a session.
const REPORTS: u32 = 4;
