//! Tokens and their storage.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::{OAuthError, scope};
use crate::HttpFuture;

/// Stores the tokens of upstream servers, encrypted. The content is opaque to it.
pub trait TokenStore: Send + Sync {
    /// Returns what was saved for this upstream, if anything. Errors say why, without the content.
    fn load<'a>(&'a self, upstream: &'a str) -> HttpFuture<'a, Result<Option<Zeroizing<Vec<u8>>>, String>>;

    fn save<'a>(
        &'a self,
        upstream: &'a str,
        tokens: Zeroizing<Vec<u8>>,
    ) -> HttpFuture<'a, Result<(), String>>;

    fn remove<'a>(&'a self, upstream: &'a str) -> HttpFuture<'a, Result<(), String>>;
}

/// An access token with all that is needed to renew it. Bound to the issuer that sent it.
#[derive(Clone)]
pub struct TokenSet {
    pub access: Zeroizing<String>,
    pub refresh: Option<Zeroizing<String>>,
    /// Seconds since 1970. `None` if the server did not say.
    pub fresh_until: Option<u64>,
    pub scopes: Vec<String>,
    pub issuer: String,
    pub client: RegisteredClient,
}

/// A client as one issuer knows it.
#[derive(Clone)]
pub struct RegisteredClient {
    pub id: String,
    pub secret: Option<Zeroizing<String>>,
}

impl TokenSet {
    /// Reads a token response. `asked` are the scopes of the request.
    pub fn read(
        mut reply: Map<String, Value>,
        asked: &[String],
        issuer: &str,
        client: &RegisteredClient,
    ) -> Result<Self, OAuthError> {
        let kind = reply.get("token_type").and_then(Value::as_str).unwrap_or_default();
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(OAuthError::InvalidResponse("the token is not a bearer token"));
        }
        let access =
            secret(&mut reply, "access_token")?.ok_or(OAuthError::InvalidResponse("it has no token"))?;
        let refresh = secret(&mut reply, "refresh_token")?;
        let lifetime = reply.get("expires_in").and_then(seconds);
        let scopes = reply.get("scope").and_then(Value::as_str).map_or_else(|| asked.to_vec(), scope::split);
        let fresh_until = lifetime.map(|lifetime| {
            // Renewed before it expires: a call takes time, and clocks differ.
            let margin = MARGIN.min(lifetime / 5);
            now().saturating_add(lifetime.saturating_sub(margin))
        });
        Ok(Self { access, refresh, fresh_until, scopes, issuer: issuer.to_owned(), client: client.clone() })
    }

    pub fn is_fresh(&self) -> bool {
        self.fresh_until.is_none_or(|until| now() < until)
    }

    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let document = json!({
            "access": self.access.as_str(),
            "refresh": self.refresh.as_ref().map(|token| token.as_str()),
            "fresh_until": self.fresh_until,
            "scopes": self.scopes,
            "issuer": self.issuer,
            "client_id": self.client.id,
            "client_secret": self.client.secret.as_ref().map(|secret| secret.as_str()),
        });
        Zeroizing::new(document.to_string().into_bytes())
    }

    /// `None` if the content is not a token set of this format.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut document: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
        let access = secret(&mut document, "access").ok()??;
        let refresh = secret(&mut document, "refresh").ok()?;
        let client_secret = secret(&mut document, "client_secret").ok()?;
        let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        let scopes = document.get("scopes")?.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
        Some(Self {
            access,
            refresh,
            fresh_until: document.get("fresh_until").and_then(Value::as_u64),
            scopes: scope::bounded(scopes),
            issuer: text("issuer")?,
            client: RegisteredClient { id: text("client_id")?, secret: client_secret },
        })
    }
}

/// Takes a secret that fits a header or a form.
pub fn secret(reply: &mut Map<String, Value>, name: &str) -> Result<Option<Zeroizing<String>>, OAuthError> {
    match reply.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let text = Zeroizing::new(text);
            let is_usable = (1..=SECRET_BYTES).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
            is_usable.then_some(Some(text)).ok_or(OAuthError::InvalidResponse("a token has an invalid form"))
        }
        Some(_) => Err(OAuthError::InvalidResponse("a token is not text")),
    }
}

/// A lifetime. Some servers send it as text.
fn seconds(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).map(|seconds| seconds.min(LONGEST))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

impl fmt::Debug for TokenSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TokenSet")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .field("fresh_until", &self.fresh_until)
            .field("has_refresh", &self.refresh.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RegisteredClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RegisteredClient").field("id", &self.id).finish_non_exhaustive()
    }
}

const MARGIN: u64 = 60;
/// Ten years.
const LONGEST: u64 = 10 * 365 * 24 * 3600;
const SECRET_BYTES: usize = 16 * 1024;
