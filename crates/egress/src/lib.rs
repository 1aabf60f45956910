//! Egress: network rules, address checks, pinned connections and response limits. Knows nothing about tools and
//! callers.
#![forbid(unsafe_code)]

mod address;
mod body;
mod dial;
mod error;
mod exchange;
mod fetch;
mod guard;
mod head_cap;
mod judge;
mod limits;
mod listeners;
mod pool;
mod proxy;
mod redirect;
mod request;
mod resolve;
mod response;
mod rules;
mod stream;
mod target;
#[cfg(test)]
mod testing;
mod tls;

pub use error::{Class, EgressError, EgressReason};
pub use fetch::Egress;
pub use guard::{BodyGuard, OutgoingPart, RequestPart};
pub use limits::EgressLimits;
pub use listeners::Listeners;
pub use proxy::{
    Carries, Exchange, ExchangeKind, ExchangeOutcome, Proxy, ProxyLimits, ProxyReport, Tunnel,
    proxy_environment,
};
pub use request::{BodyHolds, Redirects, Request, effective_methods};
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use response::{Hop, HopTrail, Response};
pub use rules::{EgressMode, EgressRules, Guard, HostRule};
pub use stream::{PooledEgress, StreamLimits, StreamResponse, StreamedBody};
pub use target::parse_url;
pub use tls::TlsRoots;
