//! Requests to authorization servers: JSON documents and forms, bounded in size and time.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use super::{OAuthError, error::known_code};
use crate::{ExchangeLimits, HttpClient, HttpMethod, HttpRequest, HttpResponse};

/// Fetches a JSON document. `None` if there is none at this URL.
pub async fn get_document(
    http: &dyn HttpClient,
    url: &Url,
) -> Result<Option<Map<String, Value>>, OAuthError> {
    let headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    let (status, body) = exchange(http, HttpMethod::Get, url, headers, Bytes::new()).await?;
    match status {
        200 => Ok(serde_json::from_slice(&body).ok()),
        // Redirects are not followed: they would let the server choose another source.
        300..500 => Ok(None),
        _ => Err(OAuthError::InvalidResponse("a metadata request failed")),
    }
}

/// How the client proves its identity at the token endpoint.
pub enum ClientProof {
    /// A public client sends its id only.
    None,
    Basic(Zeroizing<String>),
    Post(Zeroizing<String>),
}

/// Sends a form to the token endpoint.
pub async fn post_form(
    http: &dyn HttpClient,
    url: &Url,
    client_id: &str,
    proof: &ClientProof,
    fields: &[(&str, &str)],
) -> Result<Map<String, Value>, OAuthError> {
    let (headers, body) = form(client_id, proof, fields);
    let (status, body) = exchange(http, HttpMethod::Post, url, headers, body).await?;
    read_reply(status, &body)
}

fn form(client_id: &str, proof: &ClientProof, fields: &[(&str, &str)]) -> (Vec<(String, String)>, Bytes) {
    let mut headers = json_headers("application/x-www-form-urlencoded");
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()));
    match proof {
        ClientProof::None => {
            form.append_pair("client_id", client_id);
        }
        ClientProof::Post(secret) => {
            form.append_pair("client_id", client_id).append_pair("client_secret", secret);
        }
        ClientProof::Basic(secret) => {
            let pair = Zeroizing::new(format!("{}:{}", encoded(client_id), encoded(secret)));
            let encoded = BASE64_STANDARD.encode(pair.as_bytes());
            headers.push(("Authorization".to_owned(), format!("Basic {encoded}")));
        }
    }
    (headers, Bytes::from(form.finish()))
}

/// Sends a JSON document to the registration endpoint.
pub async fn post_document(
    http: &dyn HttpClient,
    url: &Url,
    document: &Value,
) -> Result<Map<String, Value>, OAuthError> {
    let body = Bytes::from(document.to_string());
    let (status, body) =
        exchange(http, HttpMethod::Post, url, json_headers("application/json"), body).await?;
    read_reply(status, &body)
}

fn read_reply(status: u16, body: &[u8]) -> Result<Map<String, Value>, OAuthError> {
    let reply: Option<Map<String, Value>> = serde_json::from_slice(body).ok();
    match (status, reply) {
        (200 | 201, Some(reply)) => Ok(reply),
        (200 | 201, None) => Err(OAuthError::InvalidResponse("it is not a JSON object")),
        (400..500, reply) => {
            let reply = reply.unwrap_or_default();
            let code = reply.get("error").and_then(Value::as_str).unwrap_or_default();
            Err(OAuthError::Refused(known_code(code)))
        }
        _ => Err(OAuthError::InvalidResponse("it has an unexpected HTTP status")),
    }
}

async fn exchange(
    http: &dyn HttpClient,
    method: HttpMethod,
    url: &Url,
    headers: Vec<(String, String)>,
    body: Bytes,
) -> Result<(u16, Zeroizing<Vec<u8>>), OAuthError> {
    let limits = ExchangeLimits { head: PATIENCE, idle: PATIENCE, body_bytes: DOCUMENT_BYTES };
    let request = HttpRequest { method, url: url.clone(), headers, body, limits };
    let whole = async {
        let response = http.send(request).await?;
        let status = response.status;
        Ok((status, read(response).await?))
    };
    let late = |_| OAuthError::Unreachable("it did not answer in time".to_owned());
    timeout(PATIENCE.saturating_mul(2), whole).await.map_err(late)?
}

async fn read(mut response: HttpResponse) -> Result<Zeroizing<Vec<u8>>, OAuthError> {
    let mut whole = Zeroizing::new(Vec::new());
    while let Some(piece) = response.body.next().await? {
        let length = u64::try_from(whole.len().saturating_add(piece.len())).unwrap_or(u64::MAX);
        if length > DOCUMENT_BYTES {
            return Err(OAuthError::InvalidResponse("it is too large"));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

fn json_headers(content_type: &str) -> Vec<(String, String)> {
    vec![
        ("Content-Type".to_owned(), content_type.to_owned()),
        ("Accept".to_owned(), "application/json".to_owned()),
    ]
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

const PATIENCE: Duration = Duration::from_secs(15);
const DOCUMENT_BYTES: u64 = 256 * 1024;
