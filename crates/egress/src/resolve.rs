//! Which addresses does this name have? Asked once for every hop; what is judged is what is dialled.

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

use crate::error::{EgressError, Reason};

/// Turns a name into addresses. What it says is judged, so a lying implementation reaches no more than an honest one.
pub trait Resolve: Send + Sync {
    /// All addresses of a name (never of a literal); no addresses is an empty list, no answer an error.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// What `Resolve` hands back.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// The resolver of this machine: its hosts file, then its name servers.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    resolver: TokioResolver,
}

impl SystemResolver {
    /// Reads the machine's resolver settings.
    pub fn new() -> Result<Self, EgressError> {
        TokioResolver::builder_tokio().and_then(Self::finish).map_err(|error| unusable(&error))
    }

    /// Asks these name servers instead of the machine's own.
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
        // What one call has asked for could be told by another from how soon it gets the answer.
        builder.options_mut().cache_size = 0;
        // Both families: an address that is not asked for is not judged.
        builder.options_mut().ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
        builder.build().map(|resolver| Self { resolver })
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let mut absolute = Name::from_ascii(name).map_err(io::Error::other)?;
            // Without this the search list of the machine would be tried, and the name that was judged by the rules
            // would not be the name that is asked for.
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
    EgressError::new(Reason::ResolverUnusable, message)
}

#[cfg(test)]
mod tests;
