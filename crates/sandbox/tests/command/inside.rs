//! The jailed side: plays the role it was started for, and reports the result on standard output.

use std::{
    io::{IoSlice, Read, Write},
    net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket},
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags},
    io::Errno,
    net::{AddressFamily, SendAncillaryBuffer, SendFlags, SocketType},
    process::DumpableBehavior,
};

pub fn main(role: &str, words: &[&str]) -> ExitCode {
    match role {
        "ask-about-paths" => ask_about_paths(Path::new(words[0]), Path::new(words[1])),
        "make-what-is-there" => make_what_is_there(Path::new(words[0])),
        "flood-and-read" => flood_and_read(words[0]),
        "internet-socket" => drop(UdpSocket::bind("127.0.0.1:0")),
        // As Go programs do.
        "daemons-socket" => drop(rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK,
            None,
        )),
        "use-the-network" => use_the_network(),
        "count-forks" => count_forks(),
        "take-memory" => println!("{}", take_memory(1 << 12)),
        "take-memory-together" => take_together(),
        "leave-memory-to-orphans" => leave_to_orphans(),
        "take-memory-seen" => crate::cases::unseen::take(DumpableBehavior::Dumpable),
        "take-memory-unseen" => crate::cases::unseen::take(DumpableBehavior::NotDumpable),
        "hang-and-take-memory" => crate::cases::hang_and_take(Path::new(words[0])),
        "wait" => wait(),
        "take-locks" => take_locks(Path::new(words[0])),
        "hold-memory" => {
            take_memory(48);
            thread::sleep(Duration::from_mins(10));
        }
        other => return crate::attacks::perform(other),
    }
    ExitCode::SUCCESS
}

/// Without opening anything.
fn ask_about_paths(outside: &Path, open: &Path) {
    let asked = [outside.join("access"), outside.join("absent"), open.join("hidden")];
    for path in asked {
        let _ = rustix::fs::access(path, rustix::fs::Access::READ_OK);
    }
    let _ = std::env::set_current_dir(outside.join("chdir"));
    let _ = std::fs::read_link(outside.join("readlink"));
}

fn make_what_is_there(open: &Path) {
    let (mode, above) = (Mode::from_raw_mode(0o600), open.parent().unwrap());
    for there in [Path::new("/usr/bin/env"), open, above, Path::new("/usr"), Path::new("/etc")] {
        let answers = [
            rustix::fs::mkdir(there, mode),
            rustix::fs::symlink("x", there),
            rustix::fs::mknodat(CWD, there, FileType::Fifo, mode, 0),
            rustix::fs::open(there, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode).map(drop),
        ];
        assert_eq!(answers, [Err(Errno::EXIST); 4], "{}", there.display());
    }
    let made_or_read = |path: &str| rustix::fs::open(path, OFlags::RDONLY | OFlags::CREATE, mode);
    made_or_read("/usr/bin/env").unwrap();
    made_or_read("/usr/bin/made").unwrap_err();
    println!("neither made nor refused");
}

fn flood_and_read(path: &str) {
    for number in 0..150 {
        assert!(
            rustix::net::socket(AddressFamily::from_raw(1_000 + number), SocketType::STREAM, None).is_err()
        );
    }
    assert!(std::fs::read(path).is_err());
}

fn use_the_network() {
    let mut proxy = TcpStream::connect("127.0.0.1:3128").unwrap();
    proxy.write_all(b"GET ").unwrap();
    let mut page = String::new();
    proxy.read_to_string(&mut page).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"query", "127.0.0.1:53").unwrap();
    let mut answer = [0; 16];
    let (count, _) = socket.recv_from(&mut answer).unwrap();
    println!("{page} {}", String::from_utf8_lossy(&answer[..count]));
    let others = ["127.0.0.1:22", "192.0.2.1:80", "169.254.169.254:80", "[::1]:80"];
    let reached: Vec<&str> = others
        .into_iter()
        .filter(|to| TcpStream::connect_timeout(&to.parse().unwrap(), Duration::from_secs(1)).is_ok())
        .collect();
    assert!(socket.send_to(b"query", "192.0.2.53:53").is_err());
    let message = IoSlice::new(b"query");
    let elsewhere: SocketAddrV4 = "192.0.2.54:53".parse().unwrap();
    let (none, flags) = (&mut SendAncillaryBuffer::default(), SendFlags::empty());
    assert!(rustix::net::sendmsg_addr(&socket, &elsewhere, &[message], none, flags).is_err());
    assert!(TcpListener::bind("127.0.0.1:8080").is_err());
    if reached.is_empty() { println!("nothing else") } else { println!("{reached:?}") }
}

/// Number of processes that can exist at the same time.
fn count_forks() {
    let mut children = Vec::new();
    while let Ok(child) = std::process::Command::new("/bin/sleep").arg("600").spawn() {
        children.push(child);
        if children.len() > 5000 {
            break;
        }
    }
    println!("{}", children.len());
    for mut child in children {
        let _ = child.kill();
    }
    thread::yield_now();
}

/// Allocates memory in steps of one megabyte until it fails or `most` is reached. Returns how much it got.
fn take_memory(most: usize) -> usize {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    while taken.len() < most {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(1 << 20).is_err() {
            break;
        }
        piece.resize(1 << 20, 1);
        taken.push(piece);
    }
    let count = taken.len();
    std::mem::forget(taken);
    count
}

/// Each process stays below its limit; together they exceed it.
fn take_together() {
    let own = std::env::current_exe().unwrap();
    let start =
        || std::process::Command::new(&own).args([crate::driver::INSIDE, "hold-memory"]).spawn().unwrap();
    let children: Vec<_> = (0..8).map(|_| start()).collect();
    for mut child in children {
        child.wait().unwrap();
    }
}

/// The same with orphaned processes.
fn leave_to_orphans() {
    let own = std::env::current_exe().unwrap();
    for _ in 0..8 {
        let script = format!("'{}' {} hold-memory &", own.display(), crate::driver::INSIDE);
        std::process::Command::new("/bin/sh").args(["-c", &script]).status().unwrap();
    }
    thread::sleep(Duration::from_mins(10));
}

/// Adds a pipe and a regular file to epoll.
fn wait() {
    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
    let instance = epoll::create(CreateFlags::CLOEXEC).unwrap();
    let (source, mut sink) = std::io::pipe().unwrap();
    epoll::add(&instance, &source, EventData::new_u64(1), EventFlags::IN).unwrap();
    sink.write_all(b"x").unwrap();
    let mut events = Vec::with_capacity(1);
    epoll::wait(&instance, rustix::buffer::spare_capacity(&mut events), None).unwrap();
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let outcome = epoll::add(&instance, &file, EventData::new_u64(2), EventFlags::IN);
    let heard = if events.is_empty() { "nothing" } else { "heard" };
    println!("{heard}, file: {}", std::io::Error::from(outcome.unwrap_err()));
}

/// One byte after the other, each unlocked before the next.
fn take_locks(path: &Path) {
    use rustix::fs::{FlockOperation, fcntl_lock};
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let turns = [FlockOperation::NonBlockingLockExclusive, FlockOperation::NonBlockingUnlock];
    let taken = (0..2000).take_while(|turn| fcntl_lock(&file, turns[turn % 2]).is_ok()).count();
    println!("{taken}");
}
