//! Resolves names. Each hop resolves once, and the checked addresses are the dialled ones.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
};

use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig},
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::{op::ResponseCode, rr::Name},
};

use crate::error::{EgressError, EgressReason};

/// Resolves names. Its answers are checked, so even a malicious implementation cannot reach more.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of a name (never of an address literal). A name without addresses is an empty list; a
    /// failed lookup is an error.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// The future that `Resolve` returns.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// This machine's resolver: its hosts file, then its name servers.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    resolver: TokioResolver,
}

impl SystemResolver {
    /// Reads the resolver settings of this machine.
    pub fn new() -> Result<Self, EgressError> {
        TokioResolver::builder_tokio().and_then(Self::finish).map_err(|error| unusable(&error))
    }

    /// Uses these name servers instead of those of this machine.
    pub fn with_servers(servers: &[SocketAddr]) -> Result<Self, EgressError> {
        let at_port = |mut connection: ConnectionConfig, server: &SocketAddr| {
            connection.port = server.port();
            connection
        };
        let servers = servers.iter().map(|server| {
            let connections =
                vec![at_port(ConnectionConfig::udp(), server), at_port(ConnectionConfig::tcp(), server)];
            NameServerConfig::new(server.ip(), true, connections)
        });
        let config = ResolverConfig::from_parts(None, Vec::new(), servers.collect());
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        Self::finish(builder).map_err(|error| unusable(&error))
    }

    fn finish(
        mut builder: hickory_resolver::ResolverBuilder<TokioRuntimeProvider>,
    ) -> Result<Self, NetError> {
        // No cache: a fast answer would reveal that another call asked for the same name.
        builder.options_mut().cache_size = 0;
        // Query both families, because the check must see every address of the name.
        builder.options_mut().ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
        builder.build().map(|resolver| Self { resolver })
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let mut absolute = Name::from_ascii(name).map_err(io::Error::other)?;
            // An absolute name ignores the search list of this machine. Otherwise the resolver might look up another
            // name than the checked one.
            absolute.set_fqdn(true);
            match self.resolver.lookup_ip(absolute).await {
                Ok(found) => Ok(found.iter().collect()),
                Err(NetError::Dns(DnsError::NoRecordsFound(none)))
                    if none.response_code == ResponseCode::NoError =>
                {
                    Ok(Vec::new())
                }
                Err(error) => Err(io::Error::other(error)),
            }
        })
    }
}

fn unusable(error: &NetError) -> EgressError {
    let message = format!("the name servers of this machine cannot be used: {error}; check /etc/resolv.conf");
    EgressError::new(EgressReason::ResolverUnusable, message)
}

#[cfg(test)]
mod tests;
