//! Whose session is this? Sessions are counted, and are there only for the caller who began them.

mod attended;
mod known;

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

use self::attended::Attended;
pub use self::known::Known;
use super::SessionLimits;

/// The SDK's sessions with an owner each.
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
    known: Arc<Known>,
    /// When the SDK last heard of a use that it did not see.
    reported: Instant,
}

impl Owner {
    fn new(caller: &Caller) -> Self {
        let (subject, quota) = (caller.subject.clone(), caller.quota().into_owned());
        let now = Instant::now();
        Self { subject, quota, last_used: now, known: Arc::default(), reported: now }
    }
}

/// Its calls end with it, however it ends.
impl Drop for Owner {
    fn drop(&mut self) {
        self.known.end();
    }
}

/// Who makes the request that is being answered. The SDK does not tell its session layer.
#[derive(Clone, Debug)]
pub struct Asker {
    pub caller: Caller,
    /// Set if the session layer refused the request. The SDK cannot pass on why.
    pub refused: Arc<OnceLock<SessionRefusal>>,
}

/// Why the session layer refused a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SessionRefusal {
    /// All places for sessions are taken.
    Full,
    /// The session has a running request with this id.
    DuplicateId(RequestId),
}

tokio::task_local! {
    pub static ASKER: Asker;
}

/// `None` outside of a request.
fn with_caller<T>(look: impl FnOnce(&Caller) -> T) -> Option<T> {
    ASKER.try_with(|asker| look(&asker.caller)).ok()
}

fn refuse(why: SessionRefusal) {
    // A request is refused once.
    let _ = ASKER.try_with(|asker| asker.refused.set(why));
}

impl OwnedSessions {
    pub fn new(limits: SessionLimits) -> Self {
        let mut inner = LocalSessionManager::default();
        // The SDK is told of some uses so much later.
        inner.session_config.keep_alive = Some(limits.idle + limits.idle / REPORTS);
        // Clients older than these events read them as broken messages.
        inner.session_config.sse_retry = None;
        Self { inner: Arc::new(inner), limits, owners: Mutex::default() }
    }

    pub fn is_of(&self, id: &str, subject: &str) -> bool {
        self.owners().get(id).is_some_and(|owner| owner.subject == subject)
    }

    /// The caller's own session, for a call that the SDK need not see. Its being used keeps the session alive all the same.
    pub fn find(&self, id: &str, subject: &str) -> Option<Arc<Known>> {
        let now = Instant::now();
        let mut owners = self.owners();
        let (id, _) = owners.get_key_value(id).filter(|(_, owner)| owner.subject == subject)?;
        let id = SessionId::clone(id);
        let owner = owners.get_mut(&id)?;
        owner.last_used = now;
        let known = Arc::clone(&owner.known);
        if now.duration_since(owner.reported) >= self.limits.idle / REPORTS {
            owner.reported = now;
            tokio::spawn(report(Arc::clone(&self.inner), id));
        }
        Some(known)
    }

    /// `None`: it is not there any more.
    fn known(&self, id: &SessionId) -> Option<Arc<Known>> {
        self.owners().get(id).map(|owner| Arc::clone(&owner.known))
    }

    /// Is the session the asker's own? Using it keeps it from being the one to make place.
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

    /// Takes the place for a session, and says which of the caller's own has to make it.
    fn enter(&self, id: &SessionId, caller: &Caller) -> Result<Option<SessionId>, ()> {
        let mut owners = self.owners();
        let quota = caller.quota();
        let is_of_caller = |owner: &Owner| owner.quota == quota;
        let held = owners.values().filter(|owner| is_of_caller(owner)).count();
        let is_full = held >= self.limits.per_caller || owners.len() >= self.limits.in_all;
        let oldest = owners.iter().filter(|(_, owner)| is_of_caller(owner));
        let oldest = oldest.min_by_key(|(_, owner)| owner.last_used).map(|(id, _)| id.clone());
        let leaves = match (is_full, oldest) {
            (false, _) => None,
            (true, Some(oldest)) => Some(oldest),
            // Nobody loses a session to somebody else's.
            (true, None) => return Err(()),
        };
        if let Some(leaves) = &leaves {
            owners.remove(leaves);
        }
        owners.insert(id.clone(), Owner::new(caller));
        Ok(leaves)
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
        let Ok(leaves) = entered else {
            refuse(SessionRefusal::Full);
            self.inner.close_session(&id).await?;
            return Err(LocalSessionManagerError::SessionNotFound(id));
        };
        if let Some(leaves) = leaves {
            self.inner.close_session(&leaves).await?;
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let said = Known::said_by(&message);
        let answer = self.inner.initialize_session(id, message).await?;
        if let (Some(known), Some(said)) = (self.known(id), said) {
            known.introduce(said, &answer);
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.is_own(id) && self.inner.has_session(id).await?)
    }

    /// Also called by the session itself when it ends, outside of any request.
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
        let known = self.known(id).ok_or_else(gone)?;
        known.hear(&message);
        let mut request = None;
        if let ClientJsonRpcMessage::Request(asked) = &mut message {
            let Some(reservation) = known.begin(&asked.id) else {
                refuse(SessionRefusal::DuplicateId(asked.id.clone()));
                return Err(gone());
            };
            asked.request.extensions_mut().insert(reservation.clone());
            request = Some((asked.id.clone(), reservation));
        }
        let stream = self.inner.create_stream(id, message).await?;
        Ok(Attended::new(stream, Arc::clone(&self.inner), id.clone(), request))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.own(id)?;
        let known = self.known(id).inspect(|known| known.hear(&message));
        let ends_handshake = Known::ends_handshake(&message);
        self.inner.accept_message(id, message).await?;
        known.filter(|_| ends_handshake).inspect(|known| known.set_ready());
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

/// Tells the SDK that a session is being used, by a message that means nothing to this server.
async fn report(sessions: Arc<LocalSessionManager>, id: SessionId) {
    let (method, extensions) = (RootsListChangedNotificationMethod, Extensions::default());
    let roots = RootsListChangedNotification { method, extensions };
    let message = ClientNotification::RootsListChangedNotification(roots);
    // A session that is gone needs no reports.
    let _ = sessions.accept_message(&id, ClientJsonRpcMessage::notification(message)).await;
}

/// Of the time after which an unused session ends.
const REPORTS: u32 = 4;
