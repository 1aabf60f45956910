//! Where does a command find its way out? At two sockets of its own network, in the gateway's hands.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::fd::{AsFd, OwnedFd},
};

use crate::sys::mounts;

/// Made inside the command's network, held by the gateway: whoever connects in there talks to the gateway.
#[derive(Debug)]
pub struct ProxySockets {
    pub http: TcpListener,
    pub dns: UdpSocket,
}

impl ProxySockets {
    /// Makes them in the network that the calling thread is in, and switches its loopback on.
    pub(crate) fn make_here(http_port: u16) -> io::Result<Self> {
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

/// What `/etc/resolv.conf` says where there is a way out.
pub(crate) const RESOLVER: &str = "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n";

const DNS_PORT: u16 = 53;
