//! Limits of one command run over all its connections, whatever the rules allow.

use std::time::Duration;

/// Limits of one proxy. `EgressLimits` also applies to every single request: body, headers, time to resolve and to connect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProxyLimits {
    /// Further connections wait until one ends.
    pub connections_at_once: usize,
    pub connections: u32,
    /// From the command to the network, over all connections.
    pub bytes_up: u64,
    pub bytes_down: u64,
    /// Request line and headers together.
    pub head_bytes: usize,
    /// From the connection to the end of the request head; counted again for the ClientHello of a tunnel.
    pub head_time: Duration,
    /// The longest time without traffic in either direction.
    pub idle: Duration,
    /// The longest duration of a connection.
    pub lifetime: Duration,
    /// Different names that the proxy and the name server may look up together. Every freely resolvable name can leak
    /// data.
    pub names: usize,
    pub name_bytes: usize,
    /// The number of all DNS questions.
    pub questions: u32,
    /// Listed exchanges per group: connections and DNS questions, each split into refused and other ones. Further
    /// exchanges replace less informative ones; all are counted. A journal record lists as many.
    pub records: usize,
    /// Ports that tunnels may reach.
    pub tunnels: Vec<Tunnel>,
    /// Methods that need an approval that this run does not have. If there is one, tunnels are refused, because the
    /// proxy cannot see the method inside a tunnel.
    pub refused_methods: Vec<String>,
}

/// A port that tunnels may reach.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Tunnel {
    pub port: u16,
    pub carries: Carries,
}

/// The required beginning of a tunnel.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Carries {
    /// A TLS ClientHello whose SNI is the host of the tunnel.
    Tls,
    Anything,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections_at_once: 32,
            connections: 1000,
            bytes_up: 32 * 1024 * 1024,
            bytes_down: 256 * 1024 * 1024,
            head_bytes: 32 * 1024,
            head_time: Duration::from_secs(10),
            idle: Duration::from_mins(1),
            lifetime: Duration::from_mins(10),
            names: 100,
            name_bytes: 128,
            questions: 2000,
            records: 100,
            tunnels: vec![Tunnel { port: 443, carries: Carries::Tls }],
            refused_methods: Vec::new(),
        }
    }
}
