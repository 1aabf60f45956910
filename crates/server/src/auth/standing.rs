//! Would the caller of a request still be let in? For what outlives its beginning: streams, and calls that wait.

use std::{fmt, sync::Arc};

use toolgate_gate::{Clock, Standing};

use super::{Authenticator, Believed, identity::Identity};

/// By what a caller was let in, in the request's extensions. Whoever keeps something open for long looks at it again.
#[derive(Clone)]
pub struct CallerStanding(pub Arc<dyn Standing>);

impl CallerStanding {
    /// `then` are the settings from before it was asked who the caller is.
    pub(crate) fn of(
        identity: &Identity,
        then: Arc<Believed>,
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

    /// Whoever knows may have to ask a database: beside the runtime's own threads. No answer is a no.
    pub(crate) async fn holds(&self) -> bool {
        let standing = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || standing.holds()).await.unwrap_or(false)
    }
}

impl fmt::Debug for CallerStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerStanding").finish_non_exhaustive()
    }
}

/// How the caller has proved who they are, without the token: nothing behind the door can leak it.
struct Proof {
    authenticator: Arc<Authenticator>,
    clock: Arc<dyn Clock>,
    identity: Identity,
    then: Arc<Believed>,
}

impl Standing for Proof {
    fn holds(&self) -> bool {
        self.authenticator.still_lets_in(&self.identity, &self.then, self.clock.now())
    }
}
