//! The OAuth settings of one upstream server.

use std::fmt;

use url::{Host, Url};
use zeroize::Zeroizing;

use super::OAuthError;

#[derive(Clone, Debug)]
pub struct OAuthSettings {
    /// The endpoint of the upstream server.
    pub endpoint: Url,
    /// The only authorization server to use. Without it, the first one that the upstream server names.
    pub issuer: Option<String>,
    pub client: ClientRegistration,
    pub grant: OAuthGrant,
    /// The scopes to ask for, and the most that the server can ask for. If empty, the server chooses.
    pub scopes: Vec<String>,
}

/// How the client is known to the authorization server.
#[derive(Clone)]
pub enum ClientRegistration {
    /// Registered before, at the configured issuer.
    Configured { id: String, secret: Option<Zeroizing<String>> },
    /// Registers itself under this name, if the server offers it.
    Dynamic { name: String },
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OAuthGrant {
    /// The gateway acts for itself. Needs a configured client with a secret.
    ClientCredentials,
    /// A person authorizes in a browser, which returns to this URL on loopback.
    AuthorizationCode { redirect: Url },
}

impl OAuthSettings {
    pub(super) fn check(&self) -> Result<(), OAuthError> {
        if !is_secure(&self.endpoint, &self.endpoint) {
            return Err(OAuthError::Settings("the endpoint must use https, or http on loopback"));
        }
        match (&self.grant, &self.client) {
            (OAuthGrant::ClientCredentials, ClientRegistration::Configured { secret: Some(_), .. }) => Ok(()),
            (OAuthGrant::ClientCredentials, _) => {
                Err(OAuthError::Settings("client credentials need a client id and a secret"))
            }
            (OAuthGrant::AuthorizationCode { redirect }, _) if is_loopback(redirect) => Ok(()),
            (OAuthGrant::AuthorizationCode { .. }, _) => {
                Err(OAuthError::Settings("the redirect URL must be on loopback"))
            }
        }
    }
}

/// Whether tokens may be sent to a URL: over TLS, or within this machine if the upstream server is there, too. A remote
/// server must not direct requests to this machine.
pub fn is_secure(url: &Url, endpoint: &Url) -> bool {
    let is_plain = url.scheme() == "http" && is_loopback(url) && is_loopback(endpoint);
    (url.scheme() == "https" || is_plain)
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl fmt::Debug for ClientRegistration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured { id, .. } => {
                formatter.debug_struct("Configured").field("id", id).finish_non_exhaustive()
            }
            Self::Dynamic { name } => formatter.debug_struct("Dynamic").field("name", name).finish(),
        }
    }
}
