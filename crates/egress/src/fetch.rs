//! The way out: check the rules, resolve once, judge every address, dial a judged one, and again for every redirect.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Instant,
};

use tokio::time::timeout;

use crate::{
    dial::{Dialled, dial},
    error::{EgressError, Reason, quoted},
    exchange::{Answer, Bodies, exchange},
    guard::{self, BodyGuard, Content},
    judge::{Admitted, JudgedAddr, admit},
    limits::Limits,
    listeners::Listeners,
    redirect,
    request::{Outgoing, Redirects, Request},
    resolve::Resolve,
    response::{Response, Trail},
    rules::Rules,
    target::{Target, TargetHost},
    tls::{Tls, TlsRoots},
};

/// The one way out. Cheap to clone; clones share the resolver and the roots.
#[derive(Clone)]
pub struct Egress {
    resolver: Arc<dyn Resolve>,
    tls: Tls,
    limits: Arc<Limits>,
    guard: Option<Arc<dyn BodyGuard>>,
    received: Arc<AtomicU64>,
    listeners: Listeners,
}

impl Egress {
    /// No request reaches one of `listeners`, whatever its rules say.
    pub fn new(
        resolver: Arc<dyn Resolve>,
        roots: &TlsRoots,
        limits: Limits,
        listeners: Listeners,
    ) -> Result<Self, EgressError> {
        let tls = Tls::new(roots)?;
        Ok(Self { resolver, tls, limits: Arc::new(limits), guard: None, received: Arc::default(), listeners })
    }

    /// The same way out with other bounds, for a tool that has its own.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { limits: Arc::new(limits), ..self.clone() }
    }

    /// The same way out with somebody who looks at what leaves, for a call that has secrets to keep.
    #[must_use]
    pub fn with_guard(&self, guard: Arc<dyn BodyGuard>) -> Self {
        Self { guard: Some(guard), ..self.clone() }
    }

    /// The same way out, which adds to `received` the bytes of bodies as they come over the wire, also of requests that
    /// come to nothing or are dropped.
    #[must_use]
    pub fn with_counter(&self, received: Arc<AtomicU64>) -> Self {
        Self { received, ..self.clone() }
    }

    /// Sends a request wherever the rules let it go. Dropping the future ends it.
    pub async fn fetch(&self, rules: &Rules, request: Request) -> Result<Response, EgressError> {
        self.fetch_along(rules, request, &Trail::default()).await
    }

    /// The same with a trail, a new one for every request, which outlives a future that is dropped.
    pub async fn fetch_along(
        &self,
        rules: &Rules,
        request: Request,
        trail: &Trail,
    ) -> Result<Response, EgressError> {
        let outcome = timeout(self.limits.whole, self.follow(rules, &request, trail)).await;
        let late = |_| EgressError::new(Reason::RequestTimeout, "the request took too long; try again later");
        let hops = trail.hops();
        match outcome.map_err(late).flatten() {
            Ok(response) => Ok(Response { hops, ..response }),
            Err(error) => Err(EgressError { hops, ..error }),
        }
    }

    async fn follow(&self, rules: &Rules, request: &Request, trail: &Trail) -> Result<Response, EgressError> {
        self.check_length(&request.url)?;
        let mut target = Target::parse(&request.url)?;
        let mut outgoing = Outgoing::of(request, &self.limits)?;
        trail.head_for(target.url());
        for redirected in 0..=self.limits.redirects {
            // What a server says, it knows; only the caller's own URL may tell it something.
            let told_url = (redirected == 0).then_some(request.url.as_str());
            let answer = self.visit(rules, &target, &outgoing, told_url, request.redirects, trail).await?;
            if !redirect::is_redirect(answer.status, &answer.headers)
                || request.redirects == Redirects::Manual
            {
                let cap = self.limits.response_header_bytes;
                return Response::of(answer, target.url().to_string(), cap);
            }
            if request.redirects == Redirects::Error {
                let message = format!("{} redirects, which was not asked for", quoted(&target.authority()));
                return Err(EgressError::new(Reason::RedirectRefused, message));
            }
            let place = redirect::place(&target, &answer.headers)?;
            trail.head_for(&place);
            target = redirect::next(&target, answer.status, place, &mut outgoing)?;
            self.check_length(target.url().as_str()).map_err(redirect::as_redirect)?;
        }
        let message = format!("more than {} redirects; ask for the final URL", self.limits.redirects);
        Err(EgressError::new(Reason::TooManyRedirects, message))
    }

    /// One server: the whole check, then one exchange.
    async fn visit(
        &self,
        rules: &Rules,
        target: &Target,
        outgoing: &Outgoing,
        told_url: Option<&str>,
        redirects: Redirects,
        trail: &Trail,
    ) -> Result<Answer, EgressError> {
        let started = Instant::now();
        let admitted = self.admit(rules, target)?;
        let content = || Content {
            host: target.host().to_string(),
            url: told_url.map(|_| target.url().to_string()),
            written: outgoing.written().iter().cloned().chain(told_url.map(str::to_owned)).collect(),
            headers: outgoing.headers().clone(),
            body: outgoing.body().clone(),
        };
        self.judge_content(content).await?;
        let addresses = self.addresses(&admitted, target).await?;
        let message = outgoing.to_http(target)?;
        let dialled = self.dial(target, &addresses).await?;
        // Told before the answer: a server that never answers was spoken to all the same.
        trail.add(|hop| hop.address = Some(dialled.address.socket()));
        let bodies = match redirects {
            Redirects::Manual => Bodies::OfAll,
            Redirects::Follow | Redirects::Error => Bodies::OfAllButRedirects,
        };
        let answer = exchange(dialled.stream, message, bodies, &self.limits, &self.received).await?;
        trail.add(|hop| {
            hop.status = Some(answer.status.as_u16());
            hop.elapsed = started.elapsed();
            hop.received = answer.received;
        });
        Ok(answer)
    }

    pub(crate) async fn judge_content(&self, content: impl FnOnce() -> Content) -> Result<(), EgressError> {
        match &self.guard {
            Some(guard) => guard::ask(guard, content(), self.limits.request_body_bytes).await,
            None => Ok(()),
        }
    }

    /// The sockets that no request reaches. A program registers its own before they listen.
    pub const fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    pub(crate) fn admit<'a>(
        &'a self,
        rules: &'a Rules,
        target: &'a Target,
    ) -> Result<Admitted<'a>, EgressError> {
        admit(rules, target, &self.listeners)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) async fn dial(
        &self,
        target: &Target,
        addresses: &[JudgedAddr],
    ) -> Result<Dialled, EgressError> {
        dial(target, addresses, &self.tls, &self.limits).await
    }

    pub(crate) async fn addresses(
        &self,
        admitted: &Admitted<'_>,
        target: &Target,
    ) -> Result<Vec<JudgedAddr>, EgressError> {
        let name = match target.host() {
            TargetHost::Address(address) => return admitted.judge_literal(*address),
            TargetHost::Name(name) => name,
        };
        let failed =
            |reason: Reason, what: &str| EgressError::new(reason, format!("host {} {what}", quoted(name)));
        let answers = timeout(self.limits.resolve, self.resolver.resolve(name))
            .await
            .map_err(|_| failed(Reason::DnsTimeout, "was not resolved in time; try again later"))?
            .map_err(|_| failed(Reason::DnsResolutionFailed, "cannot be resolved; check its spelling"))?;
        if answers.len() > self.limits.answers {
            return Err(failed(Reason::DnsTooManyAddresses, "has more addresses than any honest host"));
        }
        admitted.judge_all(&answers)
    }

    pub(crate) fn check_length(&self, url: &str) -> Result<(), EgressError> {
        if url.len() > self.limits.url_bytes {
            let message =
                format!("the URL is longer than {} bytes; send data in a body", self.limits.url_bytes);
            return Err(EgressError::new(Reason::UrlTooLong, message));
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
