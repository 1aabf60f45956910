//! The requests of OAuth grants: authorization URL, token requests and registration.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use super::{
    OAuthError,
    discovery::{AuthorizationServer, Discovered, SecretPlace},
    error::known_code,
    token::{RegisteredClient, TokenSet, secret},
    wire::{self, ClientProof},
};
use crate::HttpClient;

/// Exchanges a code, a refresh token or the client's own credentials for tokens.
pub async fn request_tokens(
    http: &dyn HttpClient,
    found: &Discovered,
    client: &RegisteredClient,
    scopes: &[String],
    fields: &[(&str, &str)],
) -> Result<TokenSet, OAuthError> {
    let mut fields = fields.to_vec();
    fields.push(("resource", &found.resource));
    let proof = proof(&found.server, client);
    let reply = wire::post_form(http, &found.server.token_endpoint, &client.id, &proof, &fields).await?;
    TokenSet::read(reply, scopes, &found.server.issuer, client)
}

fn proof(server: &AuthorizationServer, client: &RegisteredClient) -> ClientProof {
    match (&client.secret, server.secret_place) {
        (None, _) => ClientProof::None,
        (Some(secret), SecretPlace::Form) => ClientProof::Post(secret.clone()),
        (Some(secret), SecretPlace::AuthorizationHeader) => ClientProof::Basic(secret.clone()),
    }
}

/// Registers a public client (RFC 7591).
pub async fn register(
    http: &dyn HttpClient,
    server: &AuthorizationServer,
    name: &str,
    redirect: &Url,
) -> Result<RegisteredClient, OAuthError> {
    let endpoint = server.registration_endpoint.as_ref();
    let endpoint = endpoint.ok_or(OAuthError::Settings(
        "the authorization server offers no registration; configure a client id",
    ))?;
    let document = json!({
        "client_name": name,
        "redirect_uris": [redirect.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    let mut reply = wire::post_document(http, endpoint, &document).await?;
    let id = secret(&mut reply, "client_id")?.ok_or(OAuthError::InvalidResponse("it has no client id"))?;
    Ok(RegisteredClient { id: id.as_str().to_owned(), secret: secret(&mut reply, "client_secret")? })
}

/// The secrets of one authorization.
pub struct AuthorizationSecrets {
    pub state: Zeroizing<String>,
    pub verifier: Zeroizing<String>,
}

impl AuthorizationSecrets {
    pub fn new() -> Result<Self, OAuthError> {
        Ok(Self { state: random()?, verifier: random()? })
    }

    /// The URL that a person opens in a browser.
    pub fn url(
        &self,
        found: &Discovered,
        client_id: &str,
        redirect: &Url,
        scopes: &[String],
    ) -> Result<Url, OAuthError> {
        let endpoint = found.server.authorization_endpoint.clone();
        let mut url = endpoint.ok_or(OAuthError::Discovery("there is no authorization endpoint"))?;
        if !found.server.has_s256 {
            return Err(OAuthError::Discovery("the authorization server does not support PKCE with S256"));
        }
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", client_id)
            .append_pair("redirect_uri", redirect.as_str())
            .append_pair("state", &self.state)
            .append_pair("code_challenge", &digest)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &found.resource);
        if !scopes.is_empty() {
            url.query_pairs_mut().append_pair("scope", &scopes.join(" "));
        }
        Ok(url)
    }

    /// Reads the query of the URL that the browser returned to. Checks state and issuer before anything else.
    pub fn code(&self, server: &AuthorizationServer, query: &str) -> Result<Zeroizing<String>, OAuthError> {
        if query.len() > QUERY_BYTES {
            return Err(OAuthError::Mismatch("it is too long"));
        }
        let query = query.strip_prefix('?').unwrap_or(query);
        let value = |name: &str| {
            let mut found = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
            let first = found.next().map(|(_, value)| value.into_owned());
            // Two readers might choose different ones.
            found.next().map_or(Ok(first), |_| Err(OAuthError::Mismatch("a parameter is repeated")))
        };
        if value("state")?.as_deref() != Some(self.state.as_str()) {
            return Err(OAuthError::Mismatch("its state is unknown"));
        }
        match value("iss")? {
            Some(issuer) if issuer != server.issuer => {
                return Err(OAuthError::Mismatch("it comes from another issuer"));
            }
            None if server.names_issuer => return Err(OAuthError::Mismatch("it names no issuer")),
            _ => {}
        }
        if let Some(code) = value("error")? {
            return Err(OAuthError::Refused(known_code(&code)));
        }
        let code = value("code")?.filter(|code| !code.is_empty());
        code.map(Zeroizing::new).ok_or(OAuthError::Mismatch("it has no code"))
    }
}

/// 256 random bits as text.
fn random() -> Result<Zeroizing<String>, OAuthError> {
    let mut bytes = Zeroizing::new([0_u8; 32]);
    getrandom::fill(bytes.as_mut_slice())
        .map_err(|_| OAuthError::Settings("there is no source of random numbers"))?;
    Ok(Zeroizing::new(BASE64_URL_SAFE_NO_PAD.encode(bytes.as_slice())))
}

const QUERY_BYTES: usize = 16 * 1024;
