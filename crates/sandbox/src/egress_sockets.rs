//! Sockets of the egress proxy inside a command's network namespace. The gateway holds them.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::fd::{AsFd, OwnedFd},
};

use crate::sys::mounts;

/// Created inside the command's network namespace and held by the gateway: a program that connects there talks to
/// the gateway.
#[derive(Debug)]
pub struct ProxySockets {
    pub http: TcpListener,
    pub dns: UdpSocket,
}

impl ProxySockets {
    /// Creates them in the network namespace of the calling thread, and brings its loopback interface up.
    pub(crate) fn create_here(http_port: u16) -> io::Result<Self> {
        let any = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        mounts::raise_loopback(any.as_fd())?;
        let dns = UdpSocket::bind((Ipv4Addr::LOCALHOST, DNS_PORT))?;
        let http = TcpListener::bind((Ipv4Addr::LOCALHOST, http_port))?;
        Ok(Self { http, dns })
    }

    pub(crate) fn from(http: Option<OwnedFd>, dns: Option<OwnedFd>) -> Option<Self> {
        Some(Self { http: http?.into(), dns: dns?.into() })
    }
}

/// Content of `/etc/resolv.conf` where the egress proxy is available.
pub(crate) const RESOLVER: &str = "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n";

const DNS_PORT: u16 = 53;
