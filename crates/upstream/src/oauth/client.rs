//! Keeps one usable token for an upstream server. Many callers cause one refresh.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{Mutex, MutexGuard};
use url::Url;
use zeroize::Zeroizing;

use super::{
    ClientRegistration, OAuthError, OAuthGrant, OAuthSettings, TokenStore,
    discovery::{Discovered, discover},
    error::INVALID_GRANT,
    grant::{AuthorizationSecrets, register, request_tokens},
    scope,
    token::{RegisteredClient, TokenSet},
};
use crate::{AuthChallenge, BearerSource, HttpClient, HttpFuture, UpstreamError};

/// The OAuth client of one upstream server.
pub struct OAuthClient {
    /// The name under which the tokens are stored.
    upstream: String,
    http: Arc<dyn HttpClient>,
    settings: OAuthSettings,
    store: Arc<dyn TokenStore>,
    /// Locked during a refresh: callers that come meanwhile wait and use its result.
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    is_loaded: bool,
    tokens: Option<TokenSet>,
    /// When the current token was received.
    received: Option<Instant>,
    found: Option<Discovered>,
    failed: Option<(Instant, OAuthError)>,
}

/// An authorization that waits for a person. It is valid for ten minutes.
pub struct PendingAuthorization {
    /// Show this URL to the person.
    pub url: Url,
    secrets: AuthorizationSecrets,
    found: Discovered,
    client: RegisteredClient,
    redirect: Url,
    scopes: Vec<String>,
    started: Instant,
}

impl OAuthClient {
    /// `http` must be able to reach the authorization server. `upstream` names the tokens in the store.
    pub fn new(
        upstream: String,
        http: Arc<dyn HttpClient>,
        settings: OAuthSettings,
        store: Arc<dyn TokenStore>,
    ) -> Result<Self, OAuthError> {
        settings.check()?;
        Ok(Self { upstream, http, settings, store, state: Mutex::default() })
    }

    /// Starts an authorization. `challenge` is what the server answered without a token, or with too few scopes.
    pub async fn begin(&self, challenge: Option<&AuthChallenge>) -> Result<PendingAuthorization, OAuthError> {
        let OAuthGrant::AuthorizationCode { redirect } = &self.settings.grant else {
            return Err(OAuthError::Settings("client credentials need no person"));
        };
        let found = discover(&*self.http, &self.settings, challenge).await?;
        let mut state = self.loaded().await?;
        let known = state.tokens.as_ref().filter(|tokens| tokens.issuer == found.server.issuer);
        let scopes = self.scopes(&found, challenge, known.map_or(&[], |tokens| &tokens.scopes));
        let client = match (&self.settings.client, known) {
            (ClientRegistration::Configured { id, secret }, _) => {
                RegisteredClient { id: id.clone(), secret: secret.clone() }
            }
            (ClientRegistration::Dynamic { .. }, Some(tokens)) => tokens.client.clone(),
            (ClientRegistration::Dynamic { name }, None) => {
                register(&*self.http, &found.server, name, redirect).await?
            }
        };
        state.found = Some(found.clone());
        drop(state);
        let secrets = AuthorizationSecrets::new()?;
        let url = secrets.url(&found, &client.id, redirect, &scopes)?;
        let redirect = redirect.clone();
        Ok(PendingAuthorization { url, secrets, found, client, redirect, scopes, started: Instant::now() })
    }

    /// Ends an authorization with the query of the URL that the browser returned to.
    pub async fn finish(&self, pending: PendingAuthorization, query: &str) -> Result<(), OAuthError> {
        if pending.started.elapsed() > PENDING {
            return Err(OAuthError::Mismatch("it came too late; start again"));
        }
        let code = pending.secrets.code(&pending.found.server, query)?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", pending.redirect.as_str()),
            ("code_verifier", pending.secrets.verifier.as_str()),
        ];
        let tokens =
            request_tokens(&*self.http, &pending.found, &pending.client, &pending.scopes, &fields).await?;
        let mut state = self.state.lock().await;
        state.is_loaded = true;
        state.found = Some(pending.found);
        self.keep(&mut state, tokens).await
    }

    /// Removes the tokens from memory and from the store.
    pub async fn forget(&self) -> Result<(), OAuthError> {
        let mut state = self.state.lock().await;
        *state = TokenState { is_loaded: true, ..TokenState::default() };
        self.store.remove(&self.upstream).await.map_err(OAuthError::Storage)
    }

    async fn current(&self) -> Result<Zeroizing<String>, OAuthError> {
        let mut state = self.loaded().await?;
        match &state.tokens {
            Some(tokens) if tokens.is_fresh() => Ok(tokens.access.clone()),
            _ => self.renew(&mut state).await,
        }
    }

    async fn another(&self, rejected: &str) -> Result<Option<Zeroizing<String>>, OAuthError> {
        let mut state = self.loaded().await?;
        if let Some(tokens) = state.tokens.as_ref().filter(|tokens| tokens.access.as_str() != rejected) {
            // Another caller replaced it meanwhile.
            return Ok(Some(tokens.access.clone()));
        }
        if state.received.is_some_and(|received| received.elapsed() < REJECTED_NEW) {
            // A server that rejects a new token rejects the next one, too.
            return Ok(None);
        }
        match self.renew(&mut state).await {
            Ok(token) => Ok(Some(token)),
            Err(OAuthError::InteractionNeeded) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Loads the stored tokens at the first use.
    async fn loaded(&self) -> Result<MutexGuard<'_, TokenState>, OAuthError> {
        let mut state = self.state.lock().await;
        if !state.is_loaded {
            let stored = self.store.load(&self.upstream).await.map_err(OAuthError::Storage)?;
            state.tokens = stored.and_then(|bytes| TokenSet::from_bytes(&bytes));
            state.is_loaded = true;
        }
        Ok(state)
    }

    /// Gets a new token without a person. A recent failure is repeated instead of trying again for every caller.
    async fn renew(&self, state: &mut TokenState) -> Result<Zeroizing<String>, OAuthError> {
        if let Some((at, error)) = &state.failed
            && at.elapsed() < FAILED
        {
            return Err(error.clone());
        }
        let renewed = self.request(state).await;
        state.failed = renewed.as_ref().err().map(|error| (Instant::now(), error.clone()));
        let tokens = renewed?;
        let access = tokens.access.clone();
        self.keep(state, tokens).await?;
        Ok(access)
    }

    async fn request(&self, state: &mut TokenState) -> Result<TokenSet, OAuthError> {
        let refresh = state.tokens.as_ref().and_then(|tokens| tokens.refresh.clone());
        if refresh.is_none() && self.settings.grant != OAuthGrant::ClientCredentials {
            return Err(OAuthError::InteractionNeeded);
        }
        let found = match &state.found {
            Some(found) => found.clone(),
            None => discover(&*self.http, &self.settings, None).await?,
        };
        state.found = Some(found.clone());
        let OAuthGrant::AuthorizationCode { .. } = &self.settings.grant else {
            return self.request_as_client(&found).await;
        };
        let (Some(tokens), Some(refresh)) = (&state.tokens, refresh) else {
            return Err(OAuthError::InteractionNeeded);
        };
        // A refresh token goes to the issuer that sent it, never to another that the server names now.
        if tokens.issuer != found.server.issuer {
            return Err(OAuthError::InteractionNeeded);
        }
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
        match request_tokens(&*self.http, &found, &tokens.client, &tokens.scopes, &fields).await {
            Ok(renewed) => Ok(TokenSet { refresh: renewed.refresh.or(Some(refresh)), ..renewed }),
            Err(OAuthError::Refused(INVALID_GRANT)) => {
                state.tokens = None;
                self.store.remove(&self.upstream).await.map_err(OAuthError::Storage)?;
                Err(OAuthError::InteractionNeeded)
            }
            Err(error) => Err(error),
        }
    }

    async fn request_as_client(&self, found: &Discovered) -> Result<TokenSet, OAuthError> {
        let ClientRegistration::Configured { id, secret } = &self.settings.client else {
            return Err(OAuthError::Settings("client credentials need a configured client"));
        };
        let client = RegisteredClient { id: id.clone(), secret: secret.clone() };
        let scopes = scope::choose(&self.settings.scopes, &[], &found.resource_scopes, &[]);
        let joined = scopes.join(" ");
        let fields = [("grant_type", "client_credentials"), ("scope", joined.as_str())];
        request_tokens(&*self.http, found, &client, &scopes, &fields).await
    }

    /// Saves tokens before anybody uses them: the old refresh token may be invalid already.
    async fn keep(&self, state: &mut TokenState, tokens: TokenSet) -> Result<(), OAuthError> {
        let bytes = tokens.to_bytes();
        state.tokens = Some(tokens);
        state.received = Some(Instant::now());
        state.failed = None;
        self.store.save(&self.upstream, bytes).await.map_err(OAuthError::Storage)
    }

    fn scopes(
        &self,
        found: &Discovered,
        challenge: Option<&AuthChallenge>,
        granted: &[String],
    ) -> Vec<String> {
        let challenged = challenge.and_then(|challenge| challenge.scope.as_deref()).map(scope::split);
        let challenged = challenged.unwrap_or_default();
        let mut scopes = scope::choose(&self.settings.scopes, &challenged, &found.resource_scopes, granted);
        if found.server.offers_offline_access && self.settings.scopes.is_empty() && !scopes.is_empty() {
            // Asks for a refresh token.
            scopes.push("offline_access".to_owned());
        }
        scope::bounded(scopes)
    }
}

impl BearerSource for OAuthClient {
    fn token(&self) -> HttpFuture<'_, Result<Option<Zeroizing<String>>, UpstreamError>> {
        Box::pin(async move {
            match self.current().await {
                Ok(token) => Ok(Some(token)),
                // Without a token, the server answers with the challenge that an authorization needs.
                Err(OAuthError::InteractionNeeded) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn replace<'a>(
        &'a self,
        rejected: &'a str,
    ) -> HttpFuture<'a, Result<Option<Zeroizing<String>>, UpstreamError>> {
        Box::pin(async move { Ok(self.another(rejected).await?) })
    }
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OAuthClient").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

/// Keeps the secrets out of logs. The URL holds the state.
impl fmt::Debug for PendingAuthorization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PendingAuthorization").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

const PENDING: Duration = Duration::from_mins(10);
const FAILED: Duration = Duration::from_secs(5);
const REJECTED_NEW: Duration = Duration::from_secs(5);
