//! Finds the authorization server of an upstream server (RFC 9728, RFC 8414 and OpenID Connect Discovery).

use serde_json::{Map, Value};
use url::Url;

use super::{OAuthError, OAuthSettings, scope, settings::is_secure, wire};
use crate::{AuthChallenge, HttpClient};

/// The metadata of an upstream server and of its authorization server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Discovered {
    /// The value of the `resource` parameter (RFC 8707).
    pub resource: String,
    pub resource_scopes: Vec<String>,
    pub server: AuthorizationServer,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuthorizationServer {
    pub issuer: String,
    pub authorization_endpoint: Option<Url>,
    pub token_endpoint: Url,
    pub registration_endpoint: Option<Url>,
    /// Whether its responses in the browser name the issuer (RFC 9207).
    pub names_issuer: bool,
    pub has_s256: bool,
    pub secret_place: SecretPlace,
    pub offers_offline_access: bool,
}

/// The part of a token request that carries the client secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SecretPlace {
    AuthorizationHeader,
    Form,
}

pub async fn discover(
    http: &dyn HttpClient,
    settings: &OAuthSettings,
    challenge: Option<&AuthChallenge>,
) -> Result<Discovered, OAuthError> {
    let resource = protected_resource(http, settings, challenge).await?;
    let issuer = match (&settings.issuer, &resource) {
        (None, Some(found)) => {
            found.issuers.first().ok_or(OAuthError::Discovery("it names no authorization server"))?
        }
        (Some(pinned), Some(found)) if !found.issuers.contains(pinned) => {
            return Err(OAuthError::Discovery("it does not name the configured issuer"));
        }
        (Some(pinned), _) => pinned,
        (None, None) => return Err(OAuthError::Discovery("there is none; configure the issuer")),
    };
    let server = authorization_server(http, settings, issuer).await?;
    let (name, scopes) = match resource {
        Some(found) => (found.name, found.scopes),
        None => (canonical(&settings.endpoint), Vec::new()),
    };
    Ok(Discovered { resource: name, resource_scopes: scopes, server })
}

struct ProtectedResource {
    name: String,
    issuers: Vec<String>,
    scopes: Vec<String>,
}

/// Reads the metadata that the challenge names, or that is at a well-known URL.
async fn protected_resource(
    http: &dyn HttpClient,
    settings: &OAuthSettings,
    challenge: Option<&AuthChallenge>,
) -> Result<Option<ProtectedResource>, OAuthError> {
    let endpoint = &settings.endpoint;
    let named = challenge.and_then(|challenge| challenge.resource_metadata.as_deref());
    let urls = if let Some(named) = named {
        vec![Url::parse(named).map_err(|_| OAuthError::Discovery("its URL is invalid"))?]
    } else {
        let mut paths = vec![endpoint.path(), ""];
        paths.retain(|path| *path != "/");
        paths.into_iter().map(|path| well_known(endpoint, "oauth-protected-resource", path)).collect()
    };
    for url in urls {
        if !is_secure(&url, endpoint) {
            return Err(OAuthError::Discovery("its URL is not secure"));
        }
        if let Some(document) = wire::get_document(http, &url).await? {
            return read_resource(&document, endpoint).map(Some);
        }
    }
    Ok(None)
}

fn read_resource(document: &Map<String, Value>, endpoint: &Url) -> Result<ProtectedResource, OAuthError> {
    let name = document.get("resource").and_then(Value::as_str).unwrap_or_default();
    // Otherwise another server's metadata could direct our tokens.
    if !Url::parse(name).is_ok_and(|name| contains(&name, endpoint)) {
        return Err(OAuthError::Discovery("it describes another resource"));
    }
    let issuers = texts(document, "authorization_servers").take(MOST_ISSUERS).collect();
    let scopes = scope::bounded(texts(document, "scopes_supported"));
    Ok(ProtectedResource { name: name.to_owned(), issuers, scopes })
}

/// Whether the endpoint is the resource, or lies below it.
fn contains(resource: &Url, endpoint: &Url) -> bool {
    let base = resource.path().trim_end_matches('/');
    let rest = endpoint.path().strip_prefix(base);
    resource.origin() == endpoint.origin()
        && resource.query().is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn authorization_server(
    http: &dyn HttpClient,
    settings: &OAuthSettings,
    issuer: &str,
) -> Result<AuthorizationServer, OAuthError> {
    let unusable = || OAuthError::Discovery("the issuer is not a secure URL");
    let url = Url::parse(issuer).map_err(|_| unusable())?;
    if issuer.len() > URL_BYTES || !is_secure(&url, &settings.endpoint) || url.query().is_some() {
        return Err(unusable());
    }
    let path = url.path().trim_end_matches('/');
    let mut candidates = vec![
        well_known(&url, "oauth-authorization-server", path),
        well_known(&url, "openid-configuration", path),
    ];
    if !path.is_empty() {
        let mut appended = url.clone();
        appended.set_path(&format!("{path}/.well-known/openid-configuration"));
        candidates.push(appended);
    }
    for candidate in candidates {
        if let Some(document) = wire::get_document(http, &candidate).await? {
            return read_server(&document, issuer, settings);
        }
    }
    Err(OAuthError::Discovery("the authorization server has no metadata"))
}

fn read_server(
    document: &Map<String, Value>,
    issuer: &str,
    settings: &OAuthSettings,
) -> Result<AuthorizationServer, OAuthError> {
    if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err(OAuthError::Discovery("the metadata belongs to another issuer"));
    }
    let endpoint = |name: &str| match document.get(name).and_then(Value::as_str) {
        None => Ok(None),
        Some(text) => {
            let url = Url::parse(text).ok().filter(|url| is_secure(url, &settings.endpoint));
            url.map(Some).ok_or(OAuthError::Discovery("an endpoint is not a secure URL"))
        }
    };
    let proofs: Vec<String> =
        texts(document, "token_endpoint_auth_methods_supported").take(MOST_TEXTS).collect();
    let has_proof = |name: &str| proofs.iter().any(|proof| proof == name);
    let in_form = has_proof("client_secret_post") && !has_proof("client_secret_basic");
    let secret_place = if in_form { SecretPlace::Form } else { SecretPlace::AuthorizationHeader };
    Ok(AuthorizationServer {
        issuer: issuer.to_owned(),
        authorization_endpoint: endpoint("authorization_endpoint")?,
        token_endpoint: endpoint("token_endpoint")?
            .ok_or(OAuthError::Discovery("there is no token endpoint"))?,
        registration_endpoint: endpoint("registration_endpoint")?,
        names_issuer: document.get("authorization_response_iss_parameter_supported")
            == Some(&Value::Bool(true)),
        has_s256: texts(document, "code_challenge_methods_supported").any(|method| method == "S256"),
        secret_place,
        offers_offline_access: texts(document, "scopes_supported").any(|scope| scope == "offline_access"),
    })
}

fn well_known(base: &Url, name: &str, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("/.well-known/{name}{path}"));
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// The endpoint without query and without a trailing slash.
fn canonical(endpoint: &Url) -> String {
    let mut url = endpoint.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

fn texts<'a>(document: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = String> + use<'a> {
    let list = document.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned)
}

const MOST_ISSUERS: usize = 8;
const MOST_TEXTS: usize = 32;
const URL_BYTES: usize = 2048;
