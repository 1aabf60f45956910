//! Minimal files of `/etc` that reveal nothing about the host.

use crate::{Network, egress_sockets::RESOLVER};

/// Name and content of each file.
pub(crate) fn files(network: Network) -> Vec<(&'static str, String)> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let resolver = match network {
        Network::None => "",
        Network::Proxied { .. } => RESOLVER,
    };
    vec![
        ("passwd", format!("{}:x:{user}:{group}::/tmp:/usr/sbin/nologin\n{NOBODY}", name(user))),
        ("group", format!("{}:x:{group}:\nnogroup:x:65534:\n", name(group))),
        ("hosts", "127.0.0.1 localhost\n".to_owned()),
        ("host.conf", "multi on\n".to_owned()),
        ("nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n".to_owned()),
        ("resolv.conf", resolver.to_owned()),
    ]
}

/// Some programs look for the name instead of the number.
fn name(id: u32) -> &'static str {
    if id == 0 { "root" } else { "jail" }
}

const NOBODY: &str = "nobody:x:65534:65534::/:/usr/sbin/nologin\n";
