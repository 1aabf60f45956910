//! How much may one run of a command send and fetch? Bounds over the whole run, whatever the rules allow.

use std::time::Duration;

/// Bounds of one proxy. What a single request may hold (its body, its headers, the time to resolve and to connect) is
/// bounded by the `Limits` of the way out besides.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProxyLimits {
    /// More wait until one ends.
    pub connections_at_once: usize,
    pub connections: u32,
    /// From the command to the world, over all connections.
    pub bytes_up: u64,
    pub bytes_down: u64,
    /// Request line and headers together.
    pub head_bytes: usize,
    /// From the connection to the end of the request's head; and again for the first message of TLS.
    pub head_time: Duration,
    /// The longest silence of a connection, both directions taken together.
    pub idle: Duration,
    /// The longest life of a connection.
    pub lifetime: Duration,
    /// Different names that may be asked for, by the proxy and the name server together: where names are resolved
    /// freely, each can carry something out.
    pub names: usize,
    pub name_bytes: usize,
    /// Questions to the name server in all.
    pub questions: u32,
    /// Exchanges that are told one by one: of connections and of questions for names, and of both those that were refused and
    /// the others, each. Of more the most telling; all are counted. A record of the journal shows as many.
    pub records: usize,
    /// Where tunnels may lead.
    pub tunnels: Vec<Tunnel>,
    /// Methods that a person has to be asked for, and nobody was. While there is one, there are no tunnels: within a
    /// tunnel nobody sees the method.
    pub refused_methods: Vec<String>,
}

/// A port that tunnels may lead to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Tunnel {
    pub port: u16,
    pub carries: Carries,
}

/// What must a tunnel begin with?
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Carries {
    /// TLS, greeting by the name that the tunnel was asked for.
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
