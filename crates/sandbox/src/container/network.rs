//! How do the sockets of a way out get into a network that a runtime made, and whose runtime lets us put them there?

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

use super::{Runtime, masks::Id, runtime::Owner};
use crate::{ProxySockets, way_out::RESOLVER};

/// Whether commands in containers can have a way out here, as far as that is known without asking a runtime.
pub fn way_out_of_containers() -> Result<(), &'static str> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(OF_AN_ORDINARY_USER) }
}

impl Runtime {
    pub(super) fn check_way_out(&self) -> Result<(), &'static str> {
        match self.offers.owner {
            Owner::OrdinaryUser => Err(OF_AN_ORDINARY_USER),
            Owner::Root => way_out_of_containers(),
        }
    }
}

/// Makes the sockets in the network of a process that is held by a handle, so that no other process can take its number
/// meanwhile. Nothing may be in that network but its loopback.
pub(super) fn open_sockets(process: BorrowedFd<'_>, http_port: u16) -> io::Result<ProxySockets> {
    // A thread of its own, which ends at once: whatever it did afterwards, it would do in there.
    thread::scope(|scope| {
        let opening = || enter(process).and_then(|()| ProxySockets::make_here(http_port));
        let thread = thread::Builder::new().name("container-network".to_owned());
        let opened = thread.spawn_scoped(scope, opening)?.join();
        opened.unwrap_or_else(|_| Err(io::Error::other("the thread that makes its sockets is lost")))
    })
}

fn enter(process: BorrowedFd<'_>) -> io::Result<()> {
    let ours = network_of_this_thread()?;
    rustix::thread::move_into_thread_name_spaces(process, ThreadNameSpaceType::NETWORK)?;
    if network_of_this_thread()? == ours {
        return Err(io::Error::other("its network is the gateway's own"));
    }
    let others = interfaces_beside_loopback(&fs::read_to_string("/proc/thread-self/net/dev")?);
    if others.is_empty() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "there is more in its network than a loopback: `{}`; if these are tunnels that the kernel puts into every network, set the \
         sysctl `net.core.fb_tunnels_only_for_init_net` to 1",
        others.join("`, `")
    )))
}

fn network_of_this_thread() -> io::Result<Id> {
    let about = fs::metadata("/proc/thread-self/ns/net")?;
    Ok((about.dev(), about.ino()))
}

/// Two lines of titles, then one line each: a name, a colon, numbers. Those that are down are listed, too.
fn interfaces_beside_loopback(list: &str) -> Vec<String> {
    let names = list.lines().skip(2).map(|line| line.split(':').next().unwrap_or_default().trim());
    names.filter(|name| *name != "lo").map(|name| name.escape_debug().to_string()).collect()
}

/// The file that tells the programs of a container whom to ask for names. Gone with this value.
#[derive(Debug)]
pub(super) struct NameFile(NamedTempFile);

impl NameFile {
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

/// Where the C libraries look for it.
pub(super) const NAME_FILE_PLACE: &str = "/etc/resolv.conf";

const OF_AN_ORDINARY_USER: &str = "only root can open a way out of a container, and only of one whose users are not mapped to others; run \
    the gateway and the runtime as root, or the tool with `sandbox: process`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_is_seen() {
        let titles = "Inter-|   Receive\n face |bytes\n";
        let none: [&str; 0] = [];
        assert_eq!(interfaces_beside_loopback(&format!("{titles}    lo:       0 0\n")), none);
        assert_eq!(
            interfaces_beside_loopback(&format!("{titles}    lo: 0\n  eth0: 0\n tunl0:9\nlo0: 0\n")),
            ["eth0", "tunl0", "lo0"]
        );
    }

    #[test]
    fn our_own_network_is_not_entered() {
        let us = rustix::process::getpid();
        let handle = rustix::process::pidfd_open(us, rustix::process::PidfdFlags::empty()).unwrap();
        let error = open_sockets(std::os::fd::AsFd::as_fd(&handle), 3128).unwrap_err();
        // An ordinary user is not let in at all.
        let is_refused = error.to_string().contains("gateway's own") || error.raw_os_error().is_some();
        assert!(is_refused, "{error}");
    }

    #[test]
    fn names_are_asked_for_at_the_gateway_and_the_file_goes_away() {
        let names = NameFile::make().unwrap();
        let path = names.path().to_owned();
        assert!(fs::read_to_string(&path).unwrap().starts_with("nameserver 127.0.0.1\n"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
        drop(names);
        assert!(!path.exists());
    }
}
