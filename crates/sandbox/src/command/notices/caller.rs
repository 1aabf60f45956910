//! Decodes the arguments of a waiting system call from the calling process's memory, which it may change meanwhile.

use std::{
    ffi::OsString,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::ffi::OsStringExt,
    path::{Component, Path, PathBuf},
};

use rustix::{
    net::SocketType,
    process::{Pid, PidfdFlags, PidfdGetfdFlags},
};

use super::Place;
use crate::sys::process::read_memory;

/// A process that waits in a system call.
#[derive(Debug)]
pub(crate) struct SyscallCaller {
    process: Pid,
    arguments: [u64; 6],
}

impl SyscallCaller {
    pub(crate) fn new(process: Pid, arguments: [u64; 6]) -> Self {
        Self { process, arguments }
    }

    pub(crate) fn argument(&self, number: usize) -> u64 {
        self.arguments.get(number).copied().unwrap_or(0)
    }

    /// Eight bytes of its memory.
    pub(crate) fn number_at(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let got = read_memory(self.process, address, &mut bytes).ok()?;
        (got == bytes.len()).then(|| u64::from_ne_bytes(bytes))
    }

    /// The path as the process passed it.
    pub(crate) fn given(&self, place: Place) -> Option<PathBuf> {
        self.text(self.argument(place.path)).filter(|path| !path.as_os_str().is_empty())
    }

    /// Whether it is a single name in a directory that the process has open.
    pub(crate) fn is_name_in_open_folder(&self, place: Place, given: &Path) -> bool {
        let is_open = place.folder.is_some_and(|argument| self.argument(argument) & 0xffff_ffff != HERE);
        let mut parts = given.components();
        is_open && matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
    }

    /// The absolute path without `.` and `..`; symlinks are not resolved.
    pub(crate) fn whole(&self, place: Place, path: &Path) -> Option<PathBuf> {
        if path.is_absolute() {
            return Some(plain(path));
        }
        let process = self.process.as_raw_nonzero();
        // A descriptor is an `int`; the upper half of the argument is undefined.
        let folder = place.folder.map(|argument| self.argument(argument) & 0xffff_ffff);
        let start = match folder {
            Some(number) if number != HERE => fs::read_link(format!("/proc/{process}/fd/{number}")),
            _ => fs::read_link(format!("/proc/{process}/cwd")),
        };
        Some(plain(&start.ok()?.join(path)))
    }

    /// The address passed to `connect` or `bind`.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address_at(self.argument(1), self.argument(2))
    }

    /// The destination of a message, from the header passed to `sendmsg`.
    pub(crate) fn address_of_message(&self, head: u64) -> Option<SocketAddr> {
        let length = self.number_at(head.checked_add(8)?)?;
        self.address_at(self.number_at(head)?, length)
    }

    /// Destinations of the first messages passed to `sendmmsg`. Programs usually send all of them to one address;
    /// the rest would show up at the next call.
    pub(crate) fn addresses_of_messages(&self) -> impl Iterator<Item = SocketAddr> {
        let count = (self.argument(2) & 0xffff_ffff).min(MOST_MESSAGES);
        let heads = (0..count).filter_map(|number| self.argument(1).checked_add(number * MESSAGE_BYTES));
        heads.filter_map(|head| self.address_of_message(head))
    }

    /// Whether the socket in the first argument is a stream socket.
    pub(crate) fn is_stream(&self) -> bool {
        let number = i32::try_from(self.argument(0) & 0xffff_ffff).unwrap_or(-1);
        let socket = rustix::process::pidfd_open(self.leader(), PidfdFlags::empty())
            .and_then(|process| rustix::process::pidfd_getfd(process, number, PidfdGetfdFlags::empty()));
        socket.and_then(rustix::net::sockopt::socket_type).is_ok_and(|kind| kind == SocketType::STREAM)
    }

    /// The notification names a thread, but a pidfd needs the process.
    fn leader(&self) -> Pid {
        // The file contains the process name, which need not be UTF-8.
        let status = fs::read(format!("/proc/{}/status", self.process.as_raw_nonzero())).unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let number = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse::<i32>().ok());
        number.and_then(Pid::from_raw).unwrap_or(self.process)
    }

    /// The length is an `int`; the upper half of the word is undefined.
    pub(crate) fn address_at(&self, address: u64, length: u64) -> Option<SocketAddr> {
        let mut bytes = [0; IPV6_BYTES];
        let wanted = usize::try_from(length & 0xffff_ffff).ok()?.min(IPV6_BYTES);
        let got = read_memory(self.process, address, bytes.get_mut(..wanted)?).ok()?;
        let [a, b, c, d, rest @ ..] = bytes;
        let family = i32::from(u16::from_ne_bytes([a, b]));
        let port = u16::from_be_bytes([c, d]);
        let ip: IpAddr = match family {
            libc::AF_INET if got >= 8 => Ipv4Addr::from(*rest.first_chunk::<4>()?).into(),
            libc::AF_INET6 if got >= 24 => Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?).into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }

    /// A zero-terminated string, if it ends within the longest path.
    fn text(&self, mut address: u64) -> Option<PathBuf> {
        let mut text = Vec::new();
        while text.len() < LONGEST_PATH {
            // Never crosses a page boundary: the next page may not be mapped.
            let to_page_end = PAGE - address % PAGE;
            let mut piece = [0; PIECE];
            let wanted = usize::try_from(to_page_end).unwrap_or(PIECE).min(PIECE);
            let got = read_memory(self.process, address, piece.get_mut(..wanted)?).ok()?;
            let piece = piece.get(..got).filter(|piece| !piece.is_empty())?;
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                text.extend(piece.get(..end)?);
                return Some(OsString::from_vec(text).into());
            }
            text.extend(piece);
            address = address.checked_add(u64::try_from(got).ok()?)?;
        }
        None
    }
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            _ => {}
        }
    }
    plain
}

/// `AT_FDCWD` in the low half of an argument.
const HERE: u64 = 0xffff_ff9c;
const PAGE: u64 = 4096;
const PIECE: usize = 256;
const LONGEST_PATH: usize = 4096;
const IPV6_BYTES: usize = 28;
/// `struct mmsghdr`.
const MESSAGE_BYTES: u64 = 64;
const MOST_MESSAGES: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(arguments: [u64; 6]) -> SyscallCaller {
        SyscallCaller::new(rustix::process::getpid(), arguments)
    }

    fn address_of<T: ?Sized>(thing: &T) -> u64 {
        (&raw const *thing).cast::<u8>().addr() as u64
    }

    fn path_of(bytes: &[u8]) -> Option<PathBuf> {
        let place = Place { path: 0, folder: None };
        let caller = caller([address_of(bytes), 0, 0, 0, 0, 0]);
        caller.whole(place, &caller.given(place)?)
    }

    #[test]
    fn single_names_are_distinguished_from_paths() {
        let is_name = |folder: u64, given: &str| {
            let place = Place { path: 1, folder: Some(0) };
            caller([folder, 0, 0, 0, 0, 0]).is_name_in_open_folder(place, Path::new(given))
        };
        assert!(is_name(5, "file"));
        for (folder, given) in
            [(HERE, "file"), (u64::MAX << 32 | HERE, "file"), (5, "/file"), (5, "a/b"), (5, ".."), (5, ".")]
        {
            assert!(!is_name(folder, given), "{folder:#x} {given}");
        }
    }

    #[test]
    fn paths_are_read_and_normalised() {
        assert_eq!(path_of(b"/etc/../etc/./passwd\0rest"), Some("/etc/passwd".into()));
        assert_eq!(path_of(b"/../../..\0"), Some("/".into()));
        let here = std::env::current_dir().unwrap();
        assert_eq!(path_of(b"x/../y\0"), Some(here.join("y")));
    }

    #[test]
    fn invalid_memory_yields_no_path() {
        assert_eq!(path_of(b"\0"), None);
        assert_eq!(path_of(&[b'a'; 9000]), None, "longer than any path");
        for address in [0, 1, u64::MAX, u64::MAX - 3, 0xffff_8000_0000_0000] {
            assert_eq!(caller([address; 6]).given(Place { path: 0, folder: Some(1) }), None, "{address:#x}");
            assert_eq!(caller([address; 6]).address(), None);
            assert_eq!(caller([address; 6]).number_at(address), None);
        }
    }

    #[test]
    fn addresses_are_read() {
        let v4 = [2_u8, 0, 0x1f, 0x90, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            caller([3, address_of(&v4), 16, 0, 0, 0]).address(),
            Some("10.0.0.1:8080".parse().unwrap())
        );
        assert_eq!(caller([3, address_of(&v4), 4, 0, 0, 0]).address(), None, "cut short");
        let mut v6 = [0_u8; 28];
        v6[0] = 10;
        v6[3] = 80;
        v6[23] = 1;
        assert_eq!(caller([3, address_of(&v6), 28, 0, 0, 0]).address(), Some("[::1]:80".parse().unwrap()));
    }

    #[test]
    fn addresses_of_messages_are_read() {
        let v4 = [2_u8, 0, 0, 53, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        let expected: SocketAddr = "8.8.8.8:53".parse().unwrap();
        // The upper half of the length word is undefined.
        let to_somebody = [address_of(&v4), u64::MAX << 32 | 16, 0, 0, 0, 0, 0, 0];
        let to_nobody = [0; 8];
        let heads = [to_nobody, to_somebody, to_somebody];
        let read = |head: &[u64; 8]| caller([0; 6]).address_of_message(address_of(head));
        assert_eq!((read(&to_somebody), read(&to_nobody)), (Some(expected), None));
        let sent = caller([3, address_of(&heads), 2, 0, 0, 0]);
        assert_eq!(sent.addresses_of_messages().collect::<Vec<_>>(), [expected]);
        for garbage in [1, u64::MAX, u64::MAX - 3, 0xffff_8000_0000_0000] {
            assert_eq!(caller([garbage; 6]).address_of_message(garbage), None, "{garbage:#x}");
            assert_eq!(caller([garbage; 6]).addresses_of_messages().count(), 0, "{garbage:#x}");
        }
    }

    #[test]
    fn streams_are_distinguished_from_datagrams() {
        use std::{net, os::fd::AsRawFd as _};
        let is_stream = |number: i32| caller([number.try_into().unwrap(); 6]).is_stream();
        assert!(is_stream(net::TcpListener::bind("127.0.0.1:0").unwrap().as_raw_fd()));
        let file = fs::File::open("/").unwrap();
        assert!(!is_stream(file.as_raw_fd()));
        assert!(!is_stream(net::UdpSocket::bind("127.0.0.1:0").unwrap().as_raw_fd()));
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let number = u64::try_from(listener.as_raw_fd()).unwrap();
        let of_a_thread =
            std::thread::spawn(move || SyscallCaller::new(rustix::thread::gettid(), [number; 6]).is_stream());
        assert!(of_a_thread.join().unwrap());
    }
}
