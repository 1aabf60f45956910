//! Posts request bodies to the collector through the egress guard, without following redirects.

use std::{net::IpAddr, time::Duration};

use serde_json::Value;
use toolgate_egress::{
    BodyHolds, Class, Egress, EgressError, EgressLimits, EgressReason, EgressRules, Redirects, Request,
    Response, parse_url,
};

use crate::{
    headers::Headers,
    settings::{SettingsError, TelemetrySettings},
};

#[derive(Clone, Debug)]
pub struct Collector {
    egress: Egress,
    rules: EgressRules,
    base: String,
    headers: Headers,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Signal {
    Traces,
    Metrics,
}

/// The collector accepted the body, but rejected this many of its items.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepted {
    pub rejected: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NotAccepted {
    pub why: String,
    pub again: Again,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Again {
    Never,
    /// Retry later; after this long, if the collector says so.
    Later(Option<Duration>),
}

impl Collector {
    pub fn new(settings: &TelemetrySettings, egress: &Egress) -> Result<Self, SettingsError> {
        let url = parse_url(&settings.endpoint)
            .map_err(|error| SettingsError::new(format!("invalid collector endpoint: {error}")))?;
        if url.query().is_some() {
            let message = "the collector endpoint has a query; send credentials as headers";
            return Err(SettingsError::new(message));
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let address: Option<IpAddr> = host.parse().ok();
        let is_here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        if !settings.headers.is_empty() && url.scheme() != "https" && !is_here {
            let message = "the collector headers would be sent unencrypted; use https or a loopback address";
            return Err(SettingsError::new(message));
        }
        let rules = EgressRules::only(&url);
        rules
            .judge_host(&url)
            .map_err(|error| SettingsError::new(format!("the collector endpoint is not allowed: {error}")))?;
        Ok(Self {
            egress: egress.with_limits(limits()),
            rules,
            base: url.as_str().trim_end_matches('/').to_owned(),
            headers: settings.headers.clone(),
        })
    }

    pub fn request(&self, signal: Signal, body: &Value) -> Request {
        let path = match signal {
            Signal::Traces => "traces",
            Signal::Metrics => "metrics",
        };
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend_from_slice(self.headers.pairs());
        Request {
            method: "POST".to_owned(),
            headers,
            body: body.to_string().into(),
            redirects: Redirects::Error,
            sensitive_headers: self.headers.pairs().iter().map(|(name, _)| name.clone()).collect(),
            body_holds: BodyHolds::Data,
            ..Request::get(format!("{}/v1/{path}", self.base))
        }
    }

    pub async fn post(&self, request: Request) -> Result<Accepted, NotAccepted> {
        let answer = self.egress.fetch(&self.rules, request).await;
        answer.map_err(|error| not_reached(&error)).and_then(|answer| judged(&answer))
    }
}

/// Retries only the statuses that OTLP calls temporary: the collector would reject other requests again.
fn judged(answer: &Response) -> Result<Accepted, NotAccepted> {
    if (200..300).contains(&answer.status) {
        return Ok(Accepted { rejected: rejected(&answer.body) });
    }
    let again = match answer.status {
        429 | 502 | 503 | 504 => Again::Later(retry_after(&answer.headers)),
        _ => Again::Never,
    };
    Err(NotAccepted { why: format!("the collector answered with status {}", answer.status), again })
}

fn not_reached(error: &EgressError) -> NotAccepted {
    let again = match (error.class, error.reason) {
        (_, EgressReason::RedirectRefused) => Again::Never,
        (Class::HelperRuntime, _) | (_, EgressReason::DnsResolutionFailed | EgressReason::DnsNoAddresses) => {
            Again::Later(None)
        }
        (Class::InvalidInput | Class::Security, _) => Again::Never,
    };
    NotAccepted { why: format!("cannot reach the collector: {error}"), again }
}

/// `partialSuccess.rejectedSpans`, as text or number. 0 if the body cannot be parsed.
fn rejected(body: &[u8]) -> u64 {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return 0 };
    match body.pointer("/partialSuccess/rejectedSpans") {
        Some(Value::String(text)) => text.parse().unwrap_or_default(),
        Some(number) => number.as_u64().unwrap_or_default(),
        None => 0,
    }
}

fn retry_after(headers: &[(String, String)]) -> Option<Duration> {
    let (_, value) = headers.iter().find(|(name, _)| name == "retry-after")?;
    value.parse().ok().map(Duration::from_secs)
}

fn limits() -> EgressLimits {
    EgressLimits {
        redirects: 0,
        response_body_bytes: 64 * 1024,
        response_head: Duration::from_secs(10),
        whole: Duration::from_secs(10),
        ..EgressLimits::default()
    }
}

#[cfg(test)]
mod tests;
