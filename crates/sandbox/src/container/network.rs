//! Opens the egress proxy's sockets in a container's network namespace.

use std::{
    fs, io,
    os::{
        fd::BorrowedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::Path,
    thread,
};

use rustix::thread::ThreadNameSpaceType;
use tempfile::NamedTempFile;

use super::{Runtime, masks::FileId, runtime::RuntimeOwner};
use crate::{ProxySockets, egress_sockets::RESOLVER};

/// Whether containers can have network access on this host, as far as that is known without asking a runtime.
pub fn container_egress() -> Result<(), &'static str> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(NEEDS_ROOT) }
}

impl Runtime {
    pub(super) fn check_egress(&self) -> Result<(), &'static str> {
        match self.offers.owner {
            RuntimeOwner::OrdinaryUser => Err(NEEDS_ROOT),
            RuntimeOwner::Root => container_egress(),
        }
    }
}

/// Creates the sockets in the network namespace of a process. The pidfd guarantees that the process id is not
/// reused meanwhile. The namespace must contain nothing but its loopback interface.
pub(super) fn open_sockets(process: BorrowedFd<'_>, http_port: u16) -> io::Result<ProxySockets> {
    // A separate, short-lived thread, because it stays in that namespace.
    thread::scope(|scope| {
        let opening = || enter(process).and_then(|()| ProxySockets::create_here(http_port));
        let thread = thread::Builder::new().name("container-network".to_owned());
        let opened = thread.spawn_scoped(scope, opening)?.join();
        opened.unwrap_or_else(|_| Err(io::Error::other("the thread that creates the sockets panicked")))
    })
}

fn enter(process: BorrowedFd<'_>) -> io::Result<()> {
    let ours = network_of_this_thread()?;
    rustix::thread::move_into_thread_name_spaces(process, ThreadNameSpaceType::NETWORK)?;
    if network_of_this_thread()? == ours {
        return Err(io::Error::other("the container shares the gateway's network namespace"));
    }
    let others = interfaces_beside_loopback(&fs::read_to_string("/proc/thread-self/net/dev")?);
    if others.is_empty() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the container's network has interfaces besides loopback: `{}`; if the kernel adds these tunnels to every network, set the \
         sysctl `net.core.fb_tunnels_only_for_init_net` to 1",
        others.join("`, `")
    )))
}

fn network_of_this_thread() -> io::Result<FileId> {
    let about = fs::metadata("/proc/thread-self/ns/net")?;
    Ok((about.dev(), about.ino()))
}

/// Two header lines, then one line per interface: a name, a colon, numbers. Interfaces that are down are listed,
/// too.
fn interfaces_beside_loopback(list: &str) -> Vec<String> {
    let names = list.lines().skip(2).map(|line| line.split(':').next().unwrap_or_default().trim());
    names.filter(|name| *name != "lo").map(|name| name.escape_debug().to_string()).collect()
}

/// The `resolv.conf` of a container, removed on drop.
#[derive(Debug)]
pub(super) struct ResolvConf(NamedTempFile);

impl ResolvConf {
    pub(super) fn make() -> io::Result<Self> {
        let file = tempfile::Builder::new().prefix("toolgate-names-").tempfile()?;
        fs::write(file.path(), RESOLVER)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o444))?;
        Ok(Self(file))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Path at which C libraries look for it.
pub(super) const RESOLV_CONF_PATH: &str = "/etc/resolv.conf";

const NEEDS_ROOT: &str = "network access from containers requires root and a runtime without user mapping; run \
    the gateway and the runtime as root, or the tool with `sandbox: process`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_is_listed() {
        let titles = "Inter-|   Receive\n face |bytes\n";
        let none: [&str; 0] = [];
        assert_eq!(interfaces_beside_loopback(&format!("{titles}    lo:       0 0\n")), none);
        assert_eq!(
            interfaces_beside_loopback(&format!("{titles}    lo: 0\n  eth0: 0\n tunl0:9\nlo0: 0\n")),
            ["eth0", "tunl0", "lo0"]
        );
    }

    #[test]
    fn gateways_own_network_is_rejected() {
        let us = rustix::process::getpid();
        let handle = rustix::process::pidfd_open(us, rustix::process::PidfdFlags::empty()).unwrap();
        let error = open_sockets(std::os::fd::AsFd::as_fd(&handle), 3128).unwrap_err();
        // An ordinary user may not enter the namespace at all.
        let is_refused = error.to_string().contains("gateway's network") || error.raw_os_error().is_some();
        assert!(is_refused, "{error}");
    }

    #[test]
    fn resolv_conf_names_the_gateway_and_is_removed_on_drop() {
        let names = ResolvConf::make().unwrap();
        let path = names.path().to_owned();
        assert!(fs::read_to_string(&path).unwrap().starts_with("nameserver 127.0.0.1\n"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
        drop(names);
        assert!(!path.exists());
    }
}
