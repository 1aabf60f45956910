//! Rechecks the authentication of callers with open streams and waiting calls.

use std::{fmt, sync::Arc};

use toolgate_gate::{AuthStatus, Clock};

use super::{ActiveAuth, Authenticator, identity::AuthIdentity};

/// The caller's authentication, in the request's extensions. Long-lived streams and calls check it again.
#[derive(Clone)]
pub struct CallerStanding(pub Arc<dyn AuthStatus>);

impl CallerStanding {
    /// `then` are the settings that were active before the caller was authenticated.
    pub(crate) fn of(
        identity: &AuthIdentity,
        then: Arc<ActiveAuth>,
        authenticator: &Arc<Authenticator>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Proof {
            authenticator: Arc::clone(authenticator),
            clock: Arc::clone(clock),
            identity: identity.clone(),
            then,
        }))
    }

    /// Runs on the blocking pool, because the check may query the database. A panic counts as invalid.
    pub(crate) async fn holds(&self) -> bool {
        let standing = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || standing.is_valid()).await.unwrap_or(false)
    }
}

impl fmt::Debug for CallerStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerStanding").finish_non_exhaustive()
    }
}

/// How the caller was authenticated. The token is left out, so handlers cannot leak it.
struct Proof {
    authenticator: Arc<Authenticator>,
    clock: Arc<dyn Clock>,
    identity: AuthIdentity,
    then: Arc<ActiveAuth>,
}

impl AuthStatus for Proof {
    fn is_valid(&self) -> bool {
        self.authenticator.still_lets_in(&self.identity, &self.then, self.clock.now())
    }
}
