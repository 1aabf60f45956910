//! Converts the `auth` section of the configuration to settings of the HTTP server.

use std::{collections::BTreeSet, fs, future::Future, pin::Pin, sync::Arc, time::SystemTime};

use toolgate_config::model::{IssuerAlgorithm as Configured, JwtIssuer, JwtKey};
use toolgate_egress::{BodyHolds, Egress, EgressRules, Redirects, Request, parse_url};
use toolgate_server::{
    Algorithm, Anonymous, AuthSettings, AuthSettingsError, Authenticator, Fetch, IssuerSettings, KeySettings,
    Local, PemKey, PreparedAuth, Role, Secret, ThrottleSettings, TokenIdentity, TokenVerifier, issuer_name,
};
use toolgate_store::StateDb;

use super::ServeError;
use crate::{Config, Toolgate};

/// The caller of HTTP requests without a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TokenlessCaller {
    /// None, or the anonymous caller if `auth.anonymous` is set.
    AsConfigured,
    /// With `--autonomous`: the caller of `auth.local`, as on stdio.
    Local,
}

impl TokenlessCaller {
    /// Rejects configurations that allow unauthenticated access from other hosts.
    pub fn check(self, config: &Config) -> Result<(), ServeError> {
        let who = match (self, &config.auth.anonymous) {
            (Self::AsConfigured, None) => return Ok(()),
            (Self::AsConfigured, Some(_)) => "`auth.anonymous`",
            (Self::Local, None) => "--autonomous",
            (Self::Local, Some(_)) => {
                return Err(ServeError::new(
                    "--autonomous and `auth.anonymous` both define the caller without a token; remove one of them",
                ));
            }
        };
        // In a running gateway this is the address it listens on. A new address in the file applies after a restart.
        match config.server.beyond_loopback() {
            None => Ok(()),
            Some(address) => Err(ServeError::new(format!(
                "{who} allows calls without a token, and `{address}` can be reached from other hosts; listen on `127.0.0.1` \
                 without a `public_url`, or remove {who} and use tokens"
            ))),
        }
    }
}

/// The authentication of the HTTP front. It follows the configuration.
#[derive(Debug)]
pub struct HttpAuthentication {
    pub authenticator: Arc<Authenticator>,
    pub tokenless: TokenlessCaller,
    prepared: Option<PreparedAuth>,
}

impl HttpAuthentication {
    pub fn new(toolgate: &Toolgate, tokenless: TokenlessCaller) -> Result<Self, ServeError> {
        let settings = settings(&toolgate.config(), toolgate, tokenless)?;
        let authenticator = Authenticator::new(settings).map_err(|error| serve_error(&error))?;
        Ok(Self { authenticator: Arc::new(authenticator), tokenless, prepared: None })
    }

    /// Prepares the callers of this configuration.
    pub fn prepare(&mut self, config: &Config, toolgate: &Toolgate) -> Result<(), ServeError> {
        self.prepared = None;
        let settings = settings(config, toolgate, self.tokenless)?;
        self.prepared = Some(self.authenticator.prepare(settings).map_err(|error| serve_error(&error))?);
        Ok(())
    }

    /// Activates the callers that were prepared last.
    pub fn activate(&mut self) {
        if let Some(prepared) = self.prepared.take() {
            self.authenticator.replace(prepared);
        }
    }
}

pub fn serve_error(error: &AuthSettingsError) -> ServeError {
    ServeError::new(error.to_string())
}

pub fn settings(
    config: &Config,
    toolgate: &Toolgate,
    tokenless: TokenlessCaller,
) -> Result<AuthSettings, ServeError> {
    tokenless.check(config)?;
    let tokens = config
        .auth
        .tokens
        .then(|| Arc::new(StoredTokens(Arc::clone(toolgate.state()))) as Arc<dyn TokenVerifier>);
    let issuers = config.auth.jwt.iter().map(issuer).collect::<Result<_, _>>()?;
    let danger_anonymous = config.auth.anonymous.as_ref().map(|anonymous| Anonymous {
        name: "anybody".to_owned(),
        permissions: anonymous.permissions.iter().cloned().collect(),
    });
    let danger_local = (tokenless == TokenlessCaller::Local).then(|| Local {
        name: config.auth.local.subject.clone(),
        permissions: config.auth.local.permissions.iter().cloned().collect(),
    });
    Ok(AuthSettings {
        tokens,
        issuers,
        fetch: Some(Arc::new(KeySets(toolgate.egress().clone()))),
        danger_anonymous,
        danger_local,
        throttle: ThrottleSettings::default(),
    })
}

fn issuer(issuer: &JwtIssuer) -> Result<IssuerSettings, ServeError> {
    let keys = match &issuer.key {
        JwtKey::SecretEnv(name) => {
            let secret = std::env::var(name).ok().filter(|secret| !secret.trim().is_empty());
            let secret = secret.ok_or_else(|| {
                ServeError::new(format!(
                    "the environment variable `{name}`, which contains the secret of an issuer, is not set"
                ))
            })?;
            KeySettings::Secret(Secret::new(secret))
        }
        JwtKey::PemFile(path) => {
            let pem = fs::read_to_string(path)
                .map_err(|error| ServeError::new(format!("`{}`: {error}", path.display())))?;
            KeySettings::Pem(vec![PemKey { kid: None, pem }])
        }
        JwtKey::JwksFile(path) => KeySettings::JwksFile(path.clone()),
        JwtKey::JwksUrl(url) => KeySettings::JwksUrl(url.clone()),
    };
    Ok(IssuerSettings {
        name: issuer_name(&issuer.issuer),
        issuer: issuer.issuer.clone(),
        audiences: BTreeSet::from([issuer.audience.clone()]),
        algorithms: issuer.algorithms.iter().map(|algorithm| translated(*algorithm)).collect(),
        keys,
        subject_claim: issuer.subject_claim.clone(),
        permissions_claim: Some(issuer.permissions_claim.clone()),
        admin_permission: issuer.admin_permission.clone(),
        required_scopes: issuer.required_scopes.iter().cloned().collect(),
        clock_skew: issuer.clock_skew,
        refresh: issuer.jwks_refresh,
        scopes: issuer.required_scopes.clone(),
    })
}

const fn translated(algorithm: Configured) -> Algorithm {
    match algorithm {
        Configured::Hs256 => Algorithm::Hs256,
        Configured::Hs384 => Algorithm::Hs384,
        Configured::Hs512 => Algorithm::Hs512,
        Configured::Rs256 => Algorithm::Rs256,
        Configured::Rs384 => Algorithm::Rs384,
        Configured::Rs512 => Algorithm::Rs512,
        Configured::Ps256 => Algorithm::Ps256,
        Configured::Ps384 => Algorithm::Ps384,
        Configured::Ps512 => Algorithm::Ps512,
        Configured::Es256 => Algorithm::Es256,
        Configured::Es384 => Algorithm::Es384,
        Configured::EdDsa => Algorithm::EdDsa,
    }
}

/// The tokens that the state keeps.
struct StoredTokens(Arc<StateDb>);

impl TokenVerifier for StoredTokens {
    fn verify(&self, presented: &str, now: SystemTime) -> Result<Option<TokenIdentity>, String> {
        let found = self.0.verify_token(presented, now).map_err(|error| error.to_string())?;
        Ok(found.map(|token| TokenIdentity {
            id: token.id,
            subject: token.subject,
            permissions: token.permissions.into_iter().collect(),
            role: match token.role {
                toolgate_store::TokenRole::Caller => Role::Caller,
                toolgate_store::TokenRole::Admin => Role::Admin,
            },
            // The store checks the expiry itself, for every request.
            expires: None,
        }))
    }

    fn is_good(&self, id: &str, now: SystemTime) -> Result<bool, String> {
        self.0.is_token_good(id, now).map_err(|error| error.to_string())
    }
}

/// Fetches key sets through egress, only from the configured host.
struct KeySets(Egress);

impl Fetch for KeySets {
    fn get<'a>(
        &'a self,
        url: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<bytes::Bytes, String>> + Send + 'a>> {
        Box::pin(async move {
            let parsed = parse_url(url).map_err(|error| error.message)?;
            let rules = EgressRules::only(&parsed);
            let request = Request {
                method: "GET".to_owned(),
                url: url.to_owned(),
                headers: vec![("accept".to_owned(), "application/json".to_owned())],
                body: bytes::Bytes::new(),
                redirects: Redirects::Error,
                sensitive_headers: Vec::new(),
                body_holds: BodyHolds::Data,
            };
            let response = self.0.fetch(&rules, request).await.map_err(|error| error.message)?;
            match response.status {
                200 => Ok(response.body),
                status => Err(format!("the server responded with status {status}")),
            }
        })
    }
}
