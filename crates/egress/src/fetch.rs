//! Sends requests: check the rules, resolve once, check every address, connect to a checked one. Repeats all steps for
//! every redirect.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use tokio::time::timeout;

use crate::{
    dial::{Dialled, dial},
    error::{EgressError, EgressReason, quoted},
    exchange::{Bodies, HttpAnswer, exchange},
    guard::{self, BodyGuard, Content},
    judge::{AdmittedHost, JudgedAddr, admit},
    limits::EgressLimits,
    listeners::Listeners,
    redirect,
    request::{Outgoing, Redirects, Request},
    resolve::Resolve,
    response::{HopTrail, Response},
    rules::EgressRules,
    target::{RequestTarget, TargetHost},
    tls::{Tls, TlsRoots},
};

/// The HTTP client of all tools. Cheap to clone; clones share the resolver and the root certificates.
#[derive(Clone)]
pub struct Egress {
    resolver: Arc<dyn Resolve>,
    tls: Tls,
    limits: Arc<EgressLimits>,
    guard: Option<Arc<dyn BodyGuard>>,
    received: Arc<AtomicU64>,
    listeners: Listeners,
}

impl Egress {
    /// Requests never reach one of `listeners`, whatever the rules allow.
    pub fn new(
        resolver: Arc<dyn Resolve>,
        roots: &TlsRoots,
        limits: EgressLimits,
        listeners: Listeners,
    ) -> Result<Self, EgressError> {
        let tls = Tls::new(roots)?;
        Ok(Self { resolver, tls, limits: Arc::new(limits), guard: None, received: Arc::default(), listeners })
    }

    /// Returns a clone with other limits, for a tool that has its own.
    #[must_use]
    pub fn with_limits(&self, limits: EgressLimits) -> Self {
        Self { limits: Arc::new(limits), ..self.clone() }
    }

    /// Returns a clone with a guard that checks outgoing content, for a call that uses secrets.
    #[must_use]
    pub fn with_guard(&self, guard: Arc<dyn BodyGuard>) -> Self {
        Self { guard: Some(guard), ..self.clone() }
    }

    /// Returns a clone that adds to `received` the body bytes on the wire, including those of failed and cancelled
    /// requests.
    #[must_use]
    pub fn with_counter(&self, received: Arc<AtomicU64>) -> Self {
        Self { received, ..self.clone() }
    }

    /// Sends a request that the rules allow. Dropping the future cancels it.
    pub async fn fetch(&self, rules: &EgressRules, request: Request) -> Result<Response, EgressError> {
        self.fetch_along(rules, request, &HopTrail::default()).await
    }

    /// Like `fetch`, but records hops in `trail`. Use a new trail for every request; it survives a cancelled future.
    pub async fn fetch_along(
        &self,
        rules: &EgressRules,
        request: Request,
        trail: &HopTrail,
    ) -> Result<Response, EgressError> {
        let outcome = timeout(self.limits.whole, self.follow(rules, &request, trail)).await;
        let late =
            |_| EgressError::new(EgressReason::RequestTimeout, "the request took too long; try again later");
        let hops = trail.hops();
        match outcome.map_err(late).flatten() {
            Ok(response) => Ok(Response { hops, ..response }),
            Err(error) => Err(EgressError { hops, ..error }),
        }
    }

    async fn follow(
        &self,
        rules: &EgressRules,
        request: &Request,
        trail: &HopTrail,
    ) -> Result<Response, EgressError> {
        self.check_length(&request.url)?;
        let mut target = RequestTarget::parse(&request.url)?;
        let mut outgoing = Outgoing::of(request, &self.limits)?;
        trail.head_for(target.url());
        for redirected in 0..=self.limits.redirects {
            // The guard checks only the caller's URL. The server already knows a URL that it redirects to.
            let caller_url = (redirected == 0).then_some(request.url.as_str());
            let answer = self.visit(rules, &target, &outgoing, caller_url, request.redirects, trail).await?;
            if !redirect::is_redirect(answer.status, &answer.headers)
                || request.redirects == Redirects::Manual
            {
                let cap = self.limits.response_header_bytes;
                return Response::of(answer, target.url().to_string(), cap);
            }
            if request.redirects == Redirects::Error {
                let message = format!(
                    "{} redirects, but this request does not follow redirects",
                    quoted(&target.authority())
                );
                return Err(EgressError::new(EgressReason::RedirectRefused, message));
            }
            let location = redirect::location_url(&target, &answer.headers)?;
            trail.head_for(&location);
            target = redirect::next(&target, answer.status, location, &mut outgoing)?;
            self.check_length(target.url().as_str()).map_err(redirect::as_redirect)?;
        }
        let message = format!("more than {} redirects; request the final URL", self.limits.redirects);
        Err(EgressError::new(EgressReason::TooManyRedirects, message))
    }

    /// Checks one target and sends the request there.
    async fn visit(
        &self,
        rules: &EgressRules,
        target: &RequestTarget,
        outgoing: &Outgoing,
        caller_url: Option<&str>,
        redirects: Redirects,
        trail: &HopTrail,
    ) -> Result<HttpAnswer, EgressError> {
        let started = Instant::now();
        let admitted = self.admit(rules, target)?;
        self.judge_request(target, outgoing, caller_url).await?;
        let addresses = self.addresses(&admitted, target).await?;
        let message = outgoing.to_http(target)?;
        let dialled = self.dial(target, &addresses).await?;
        // Recorded before the response, because the request reaches a server that never responds, too.
        trail.update(|hop| hop.address = Some(dialled.address.socket()));
        let bodies = match redirects {
            Redirects::Manual => Bodies::OfAll,
            Redirects::Follow | Redirects::Error => Bodies::OfAllButRedirects,
        };
        let answer = exchange(dialled.stream, message, bodies, &self.limits, &self.received).await?;
        trail.update(|hop| {
            hop.status = Some(answer.status.as_u16());
            hop.elapsed = started.elapsed();
            hop.received = answer.received;
        });
        Ok(answer)
    }

    /// Asks the guard about a request to `target`. `caller_url` is the URL in the caller's spelling.
    pub(crate) async fn judge_request(
        &self,
        target: &RequestTarget,
        outgoing: &Outgoing,
        caller_url: Option<&str>,
    ) -> Result<(), EgressError> {
        let content = || Content {
            host: target.host().to_string(),
            url: caller_url.map(|_| target.url().to_string()),
            written: outgoing.written().iter().cloned().chain(caller_url.map(str::to_owned)).collect(),
            headers: outgoing.headers().clone(),
            body: outgoing.body().clone(),
        };
        self.judge_content(content).await
    }

    pub(crate) async fn judge_content(&self, content: impl FnOnce() -> Content) -> Result<(), EgressError> {
        match &self.guard {
            Some(guard) => guard::ask(guard, content(), self.limits.request_body_bytes).await,
            None => Ok(()),
        }
    }

    /// The gateway's own sockets, which requests never reach. A program registers its sockets before they listen.
    pub const fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    pub(crate) fn admit<'a>(
        &'a self,
        rules: &'a EgressRules,
        target: &'a RequestTarget,
    ) -> Result<AdmittedHost<'a>, EgressError> {
        admit(rules, target, &self.listeners)
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn limits(&self) -> &EgressLimits {
        &self.limits
    }

    pub(crate) async fn dial(
        &self,
        target: &RequestTarget,
        addresses: &[JudgedAddr],
    ) -> Result<Dialled, EgressError> {
        dial(target, addresses, &self.tls, &self.limits).await
    }

    pub(crate) async fn addresses(
        &self,
        admitted: &AdmittedHost<'_>,
        target: &RequestTarget,
    ) -> Result<Vec<JudgedAddr>, EgressError> {
        let name = match target.host() {
            TargetHost::Address(address) => return admitted.judge_literal(*address),
            TargetHost::Name(name) => name,
        };
        let failed = |reason: EgressReason, what: &str| {
            EgressError::new(reason, format!("host {} {what}", quoted(name)))
        };
        let answers = timeout(self.limits.resolve, self.resolver.resolve(name))
            .await
            .map_err(|_| failed(EgressReason::DnsTimeout, "was not resolved in time; try again later"))?
            .map_err(|_| {
                failed(EgressReason::DnsResolutionFailed, "cannot be resolved; check its spelling")
            })?;
        if answers.len() > self.limits.answers {
            return Err(failed(EgressReason::DnsTooManyAddresses, "has too many addresses"));
        }
        admitted.judge_all(&answers)
    }

    pub(crate) fn check_length(&self, url: &str) -> Result<(), EgressError> {
        if url.len() > self.limits.url_bytes {
            let message =
                format!("the URL is longer than {} bytes; send data in a body", self.limits.url_bytes);
            return Err(EgressError::new(EgressReason::UrlTooLong, message));
        }
        Ok(())
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
