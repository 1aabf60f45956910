//! Observers outside during an attack: sockets, a terminal, shared memory and queues of the host. Also attacks on
//! IPC that the host shares without files.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{TcpListener, UdpSocket},
    os::linux::net::SocketAddrExt,
    os::unix::fs::OpenOptionsExt,
    os::unix::net::{SocketAddr, UnixDatagram, UnixListener},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use super::{
    Attack, Inside, Verdict,
    call::{HERE, at, call, descriptor, of, path, signed},
    must_fail, none_works, row,
};

pub fn table() -> Vec<Attack> {
    vec![
        row("system_v_memory", "memory that host processes share is read", SECCOMP, system_v_memory)
            .unjailed(),
        row("system_v_messages", "messages between host processes are taken", SECCOMP, system_v_messages)
            .unjailed(),
        row("system_v_semaphores", "semaphores of the host are created or taken", SECCOMP, semaphores)
            .unjailed(),
        row("posix_queue", "a message queue of the host is read", SECCOMP, posix_queue).unjailed(),
        row("posix_memory", "memory in `/dev/shm` is read", "view; Landlock", posix_memory).unjailed(),
        row(
            "terminal_injection",
            "input is injected into an operator's terminal (`TIOCSTI`)",
            TERMINAL,
            terminal,
        )
        .unjailed(),
        row(
            "controlling_terminal",
            "the gateway's terminal is taken over",
            "own session; seccomp",
            take_terminal,
        ),
    ]
}

/// Everything that could receive something from the attacker.
pub struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
    doors: Vec<UnixListener>,
    datagrams: UnixDatagram,
    pub abstract_name: String,
    /// The operator's side of the terminal.
    operator: Option<File>,
    /// The side that programs on this terminal use.
    pub terminal: PathBuf,
}

impl Listeners {
    pub fn open(folder: &Path) -> Self {
        let abstract_name = format!("toolgate-{}", folder.file_name().unwrap().to_str().unwrap());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let door = |name: &str| UnixListener::bind(folder.join(name)).unwrap();
        let doors = vec![door("outside/door"), door("read/door"), UnixListener::bind_addr(&address).unwrap()];
        for door in &doors {
            door.set_nonblocking(true).unwrap();
        }
        let datagrams = UnixDatagram::bind(folder.join("read/letters")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let (tcp, udp) = (TcpListener::bind("0.0.0.0:0").unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let (operator, terminal) = open_terminal().unzip();
        let terminal = terminal.unwrap_or_else(|| "/dev/tty".into());
        Self { tcp, udp, doors, datagrams, abstract_name, operator, terminal }
    }

    pub fn tcp_port(&self) -> u16 {
        self.tcp.local_addr().unwrap().port()
    }

    pub fn udp_port(&self) -> u16 {
        self.udp.local_addr().unwrap().port()
    }

    pub fn heard(&self) -> Vec<String> {
        let mut heard = Vec::new();
        let mut letter = [0; 64];
        heard.extend(self.tcp.accept().is_ok().then(|| "somebody connected by TCP".into()));
        heard.extend(self.udp.recv(&mut letter).is_ok().then(|| "somebody sent by UDP".into()));
        heard.extend(self.datagrams.recv(&mut letter).is_ok().then(|| "a letter arrived at a path".into()));
        for (number, door) in self.doors.iter().enumerate() {
            heard.extend(door.accept().is_ok().then(|| format!("somebody came through door {number}")));
        }
        let typed = self.operator.as_ref().is_some_and(|mut operator| operator.read(&mut letter).is_ok());
        heard.extend(typed.then(|| "something came out of the terminal".into()));
        heard
    }
}

fn open_terminal() -> Option<(File, PathBuf)> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
    let operator = File::options().read(true).write(true).custom_flags(flags).open("/dev/ptmx").ok()?;
    let (mut unlock, mut number) = (0_i32, 0_i32);
    let request = |name: libc::c_ulong, at: usize| {
        call(libc::SYS_ioctl, &[descriptor(&operator), usize::try_from(name).unwrap(), at])
    };
    request(libc::TIOCSPTLCK, of(&mut unlock)).ok()?;
    request(libc::TIOCGPTN, of(&mut number)).ok()?;
    Some((operator, format!("/dev/pts/{number}").into()))
}

/// IPC objects of the host; removed on drop.
pub struct Shared {
    pub key: usize,
    memory: usize,
    messages: usize,
    queue: Option<usize>,
}

impl Shared {
    pub fn make(secret: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let own = usize::try_from(std::process::id()).unwrap();
        let key = 0x7400_0000 + own % 0x4000 * 0x400 + NEXT.fetch_add(1, Ordering::SeqCst) % 0x400;
        let make = usize::try_from(libc::IPC_CREAT | 0o600).unwrap();
        let memory = call(libc::SYS_shmget, &[key, 4096, make]).unwrap();
        let place = call(libc::SYS_shmat, &[memory, 0, 0]).unwrap();
        let (source, mut sink) = std::io::pipe().unwrap();
        sink.write_all(secret.as_bytes()).unwrap();
        call(libc::SYS_read, &[descriptor(&source), place, secret.len()]).unwrap();
        call(libc::SYS_shmdt, &[place]).unwrap();

        let mut letter = 1_u64.to_ne_bytes().to_vec();
        letter.extend(secret.as_bytes());
        let messages = call(libc::SYS_msgget, &[key, make]).unwrap();
        call(libc::SYS_msgsnd, &[messages, of(letter.as_mut_slice()), secret.len(), 0]).unwrap();

        let name = queue_name(key);
        let flags =
            usize::try_from(libc::O_CREAT | libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC).unwrap();
        // A host may have run out of them.
        let queue = call(libc::SYS_mq_open, &[at(&name), flags, 0o600, 0]).ok();
        if let Some(queue) = queue {
            let mut text = secret.as_bytes().to_vec();
            call(libc::SYS_mq_timedsend, &[queue, of(text.as_mut_slice()), secret.len(), 0, 0]).unwrap();
        }
        fs::write(shared_file(key), secret).unwrap();
        Self { key, memory, messages, queue }
    }

    /// A file handle, with which the kernel finds a file without its path.
    pub fn handle_of(file: &Path) -> Vec<u8> {
        let mut handle = [0_u32; 34];
        handle[0] = 128;
        let mut mount = 0_i32;
        let name = path(file);
        let made = call(libc::SYS_name_to_handle_at, &[HERE, at(&name), of(&mut handle), of(&mut mount), 0]);
        made.map_or_else(|_| Vec::new(), |_| handle.iter().flat_map(|word| word.to_ne_bytes()).collect())
    }

    pub fn harm(&self) -> Option<String> {
        let is_there = fs::exists(shared_file(self.key)).unwrap();
        (!is_there).then(|| "the shared file is gone".into())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = call(libc::SYS_shmctl, &[self.memory, 0, 0]);
        let _ = call(libc::SYS_msgctl, &[self.messages, 0, 0]);
        if let Some(queue) = self.queue {
            let _ = call(libc::SYS_close, &[queue]);
            let _ = call(libc::SYS_mq_unlink, &[at(&queue_name(self.key))]);
        }
        let _ = fs::remove_file(shared_file(self.key));
    }
}

/// State of a process that others could have changed.
pub fn life_of(process: i32) -> String {
    let text = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let stat = text("stat");
    let after_name: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let state = match after_name.first() {
        None | Some(&("Z" | "X")) => return "dead".into(),
        Some(&("T" | "t")) => "stopped",
        Some(_) => "alive",
    };
    // Niceness, real-time priority, scheduling policy.
    let schedule: Vec<&str> = [16, 37, 38].iter().filter_map(|at| after_name.get(*at).copied()).collect();
    let status = text("status");
    let kept = ["TracerPid:", "Cpus_allowed_list:"];
    let kept: Vec<&str> =
        status.lines().filter(|line| kept.iter().any(|name| line.starts_with(name))).collect();
    let mut disk = signed(process);
    disk = call(libc::SYS_ioprio_get, &[1, disk]).unwrap_or(0);
    format!("{state} {schedule:?} {kept:?} {disk} {}", text("limits"))
}

fn system_v_memory(inside: &Inside) -> Verdict {
    let found = call(libc::SYS_shmget, &[inside.key, 4096, 0]);
    must_fail(found.and_then(|memory| call(libc::SYS_shmat, &[memory, 0, 0])).and_then(|place| {
        // The kernel itself copies the memory to standard output.
        call(libc::SYS_write, &[1, place, 64])
    }))
}

fn system_v_messages(inside: &Inside) -> Verdict {
    let mut letter = [0_u8; 256];
    let look = usize::try_from(libc::IPC_NOWAIT).unwrap();
    let got = call(libc::SYS_msgget, &[inside.key, 0])
        .and_then(|queue| call(libc::SYS_msgrcv, &[queue, of(&mut letter), 200, 0, look]));
    must_fail(got.map(|_| String::from_utf8_lossy(&letter[8..]).into_owned()))
}

fn semaphores(inside: &Inside) -> Verdict {
    let make = usize::try_from(libc::IPC_CREAT | 0o600).unwrap();
    let set = call(libc::SYS_semget, &[inside.key, 1, make]);
    if let Ok(set) = set {
        let _ = call(libc::SYS_semctl, &[set, 0, 0]);
    }
    must_fail(set)
}

fn posix_queue(inside: &Inside) -> Verdict {
    let mut letter = vec![0_u8; 16384];
    let opened = call(libc::SYS_mq_open, &[at(&queue_name(inside.key)), 0, 0, 0]);
    let got = opened
        .and_then(|queue| call(libc::SYS_mq_timedreceive, &[queue, of(letter.as_mut_slice()), 16384, 0, 0]));
    must_fail(got.map(|length| String::from_utf8_lossy(&letter[..length]).into_owned()))
}

fn posix_memory(inside: &Inside) -> Verdict {
    none_works([
        ("read", fs::read_to_string(shared_file(inside.key))),
        ("remove", fs::remove_file(shared_file(inside.key)).map(|()| String::new())),
    ])
}

fn terminal(inside: &Inside) -> Verdict {
    let mut letter = b'x';
    let push = |file: usize, letter: &mut u8| {
        call(libc::SYS_ioctl, &[file, usize::try_from(libc::TIOCSTI).unwrap(), of(letter)])
    };
    let own: Vec<_> = (0..3).map(|number| ("push into own", push(number, &mut letter))).collect();
    let others = [inside.terminal.clone(), "/dev/tty".into(), "/dev/console".into(), "/dev/tty1".into()];
    let others = others.map(|path| {
        let opened = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path);
        let outcome = opened.and_then(|mut file| {
            let _ = push(descriptor(&file), &mut letter);
            file.write(b"\x1b]0;owned\x07")
        });
        ("write", outcome)
    });
    none_works(own.into_iter().chain(others))
}

fn take_terminal(inside: &Inside) -> Verdict {
    let ioctl = |file: usize, request: libc::c_ulong, argument: usize| {
        call(libc::SYS_ioctl, &[file, usize::try_from(request).unwrap(), argument])
    };
    let mut linux = 3_u8;
    let opened = File::options().read(true).write(true).open(&inside.terminal);
    none_works([
        ("take", ioctl(0, libc::TIOCSCTTY, 1)),
        ("take another", opened.and_then(|file| ioctl(descriptor(&file), libc::TIOCSCTTY, 1))),
        ("select and paste", ioctl(0, TIOCLINUX, of(&mut linux))),
        ("console", ioctl(0, libc::TIOCCONS, 0)),
    ])
}

fn queue_name(key: usize) -> std::ffi::CString {
    path(format!("toolgate-{key}"))
}

fn shared_file(key: usize) -> PathBuf {
    format!("/dev/shm/toolgate-{key}").into()
}

const TIOCLINUX: libc::c_ulong = 0x541c;
const SECCOMP: &str = "seccomp";
const TERMINAL: &str = "seccomp; no terminal in the view; Landlock";
