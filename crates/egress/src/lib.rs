//! The one way out: rules, judged addresses, pinned connections, capped answers. Knows no tool and no caller.
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
mod proxy;
mod redirect;
mod request;
mod resolve;
mod response;
mod rules;
mod target;
#[cfg(test)]
mod testing;
mod tls;

pub use error::{Class, EgressError, Reason};
pub use fetch::Egress;
pub use guard::{BodyGuard, Leaving, Part};
pub use limits::Limits;
pub use listeners::Listeners;
pub use proxy::{
    Carries, Exchange, ExchangeKind, Outcome, Proxy, ProxyLimits, ProxyReport, Tunnel, proxy_environment,
};
pub use request::{BodyHolds, Redirects, Request, meant_methods};
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use response::{Hop, Response, Trail};
pub use rules::{Guard, HostRule, Mode, Rules};
pub use target::parse_url;
pub use tls::TlsRoots;
