//! Tests of egress from containers: two sockets held by the gateway, and nothing else, whatever is tried inside.

use std::{
    fs,
    io::Read,
    net::{SocketAddr, TcpListener},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use rustix::net::{AddressFamily, SocketType, ipproto, sockopt};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net,
};
use toolgate_sandbox::{
    ContainerJail, ContainerReport, Ending, ImageName, Layer, Network, ProxySockets, Runtime, RuntimeKind,
    SpawnError, container_egress,
};

use crate::driver::{
    CAPS, Case, ODD_IMAGE, folder, is_empty_of_containers, jail, kind, on_runtime, output, processes_with,
    refusal, runtime, runtime_through, wait_until, with_attacker,
};

pub const ALL: &[Case] = &[
    Case { name: "egress_leads_to_the_gateway", body: egress_leads_to_the_gateway },
    Case { name: "egress_is_shown_in_the_strength", body: egress_is_shown_in_the_strength },
    Case { name: "no_network_unless_granted", body: no_network_unless_granted },
    Case {
        name: "nothing_is_reached_around_the_egress_proxy",
        body: nothing_is_reached_around_the_egress_proxy,
    },
    Case { name: "egress_ports_are_taken", body: egress_ports_are_taken },
    Case {
        name: "egress_of_another_container_is_unreachable",
        body: egress_of_another_container_is_unreachable,
    },
    Case { name: "image_does_not_choose_the_egress_proxy", body: image_does_not_choose_the_egress_proxy },
    Case { name: "egress_ends_with_its_command", body: egress_ends_with_its_command },
    Case { name: "unused_egress_is_closed", body: unused_egress_is_closed },
    Case { name: "cancelled_egress_leaves_nothing_open", body: cancelled_egress_leaves_nothing_open },
    Case {
        name: "process_of_another_container_gets_no_egress",
        body: process_of_another_container_gets_no_egress,
    },
    Case {
        name: "network_with_other_interfaces_gets_no_egress",
        body: network_with_other_interfaces_gets_no_egress,
    },
];

fn egress_leads_to_the_gateway() {
    let Some(one) = proxied("cat /etc/resolv.conf; echo page? | nc 127.0.0.1 3128; nslookup a.test; true")
    else {
        return;
    };
    let Heard { report, said, asked } = through_the_gateway(one);
    let text = String::from_utf8_lossy(&report.stdout);
    assert_eq!(report.ending, Ending::Exited(0), "{text}");
    assert!(text.starts_with("nameserver 127.0.0.1\n"), "{text}");
    assert!(text.contains("answer\n"), "{text}");
    assert_eq!(said, ["page?\n"]);
    let is_the_name = |question: &Vec<u8>| question.windows(8).any(|part| part == b"\x01a\x04test\0");
    assert!(!asked.is_empty() && asked.iter().all(is_the_name), "{asked:?}");
}

fn egress_is_shown_in_the_strength() {
    let Some(one) = proxied("true") else { return };
    let Heard { report, .. } = through_the_gateway(one);
    assert!(report.strength.has(Layer::NetworkNamespace), "{:?}", report.strength);
    assert!(!report.strength.has(Layer::NetworkNone), "{:?}", report.strength);
    let made = on_runtime(async { runtime().spawn(jail("true")).await.unwrap() });
    assert!(made.strength().has(Layer::NetworkNone), "{:?}", made.strength());
    assert!(!made.strength().has(Layer::NetworkNamespace), "{:?}", made.strength());
}

fn no_network_unless_granted() {
    let mut made = on_runtime(async { runtime().spawn(jail("true")).await.unwrap() });
    assert!(made.take_sockets().is_none());
    drop(made);
    let script = "for port in 3128 53; do echo x | nc -w 2 127.0.0.1 $port && echo reached; done; cat /etc/resolv.conf";
    // The image's own file, or none: never the host's DNS servers.
    let names = match kind() {
        RuntimeKind::Podman => "nameserver 192.0.2.53\n",
        RuntimeKind::Docker => "nameserver 127.0.0.1\n",
    };
    assert_eq!(output(jail(script)), names);
}

/// Also for programs that ignore all variables: they are only a hint.
fn nothing_is_reached_around_the_egress_proxy() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
    let (port, other) = (server.local_addr().unwrap().port(), everywhere.local_addr().unwrap().port());
    let script = format!(
        "unset http_proxy https_proxy ALL_PROXY; ls /sys/class/net; \
         for target in '127.0.0.1 {port}' '127.0.0.1 {other}' '127.0.0.2 {other}' '::1 {other}' '192.0.2.1 80' \
           '169.254.169.254 80' '10.0.0.1 {other}' '172.17.0.1 {other}' '10.88.0.1 {other}'; do \
           echo x | nc -w 2 $target && echo reached $target; \
         done; ping -c 1 -W 1 192.0.2.1 > /dev/null && echo pinged; true"
    );
    let Some(one) = proxied(&script) else { return };
    let Heard { report, said, .. } = through_the_gateway(one);
    assert_eq!(String::from_utf8_lossy(&report.stdout), "lo\n");
    assert_eq!(said, Vec::<String>::new());
    for listener in [server, everywhere] {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "somebody came out");
    }
}

fn egress_ports_are_taken() {
    let Some(one) = proxied("/attacker --take-the-ports; echo page? | nc 127.0.0.1 3128") else { return };
    let Heard { report, said, .. } = through_the_gateway(with_attacker(one));
    let text = String::from_utf8_lossy(&report.stdout);
    assert_eq!(text, "tcp 127.0.0.1:3129\nudp 127.0.0.1:3129\nanswer\n", "all but the first two are taken");
    assert_eq!(said, ["page?\n"]);
}

/// Tries to listen at the gateway's ports, with every option that shares a port, and reports where it succeeded.
pub fn take_the_ports() -> ExitCode {
    let places = [
        "127.0.0.1:3129",
        "127.0.0.1:3128",
        "0.0.0.0:3128",
        "[::]:3128",
        "127.0.0.1:53",
        "0.0.0.0:53",
        "[::]:53",
    ];
    for (kind, name) in [(SocketType::STREAM, "tcp"), (SocketType::DGRAM, "udp")] {
        for place in places.iter().filter(|place| name == "udp" || !place.ends_with(":53")) {
            // The gateway has no socket at this port for this kind.
            let is_free = name == "udp" && place.ends_with(":3128");
            if !is_free && listens(kind, place.parse().unwrap()).is_ok() {
                println!("{name} {place}");
            }
        }
    }
    if rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).is_ok() {
        println!("raw");
    }
    ExitCode::SUCCESS
}

fn listens(kind: SocketType, place: SocketAddr) -> rustix::io::Result<()> {
    let family = if place.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, kind, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    rustix::net::bind(&socket, &place)?;
    if kind == SocketType::STREAM { rustix::net::listen(&socket, 1) } else { Ok(()) }
}

fn egress_of_another_container_is_unreachable() {
    let one = |word: &str| {
        proxied(&format!("for round in 1 2 3 4 5; do echo {word} | nc 127.0.0.1 3128; sleep 0.1; done"))
    };
    let (Some(first), Some(second)) = (one("first"), one("second")) else { return };
    let (first, second) = on_runtime(async { tokio::join!(gateway(first), gateway(second)) });
    assert_eq!(first.said, ["first\n"; 5]);
    assert_eq!(second.said, ["second\n"; 5]);
}

fn image_does_not_choose_the_egress_proxy() {
    let Some(mut one) = proxied("cat /etc/resolv.conf; echo $http_proxy; echo x > /etc/resolv.conf; true")
    else {
        return;
    };
    one.image = ImageName::parse(ODD_IMAGE).unwrap();
    one.env = vec![("http_proxy".into(), "http://127.0.0.1:3128".into())];
    let Heard { report, .. } = through_the_gateway(one);
    let text = String::from_utf8_lossy(&report.stdout);
    assert_eq!(text, "nameserver 127.0.0.1\noptions timeout:2 attempts:1\nhttp://127.0.0.1:3128\n");
}

/// A background process neither survives nor finds a listener.
fn egress_ends_with_its_command() {
    let before = sockets_of_this_process();
    let script = "(trap '' HUP TERM; while :; do echo survivor-word | nc 127.0.0.1 3128; done) & sleep 0.5";
    let Some(one) = proxied(script) else { return };
    let Heard { report, said, .. } = through_the_gateway(one);
    assert_eq!(report.ending, Ending::Exited(0));
    assert!(!said.is_empty(), "it never ran");
    wait_until("the end of the container", is_empty_of_containers);
    assert_eq!(processes_with("survivor-word"), Vec::<String>::new());
    assert_eq!(sockets_of_this_process(), before, "something keeps its network");
}

fn unused_egress_is_closed() {
    let before = sockets_of_this_process();
    let Some(one) = proxied("echo x | nc -w 2 127.0.0.1 3128 || echo nobody") else { return };
    assert_eq!(output(one), "nobody\n");
    assert_eq!(sockets_of_this_process(), before);
}

fn cancelled_egress_leaves_nothing_open() {
    let before = sockets_of_this_process();
    for patience in [20, 200, 400, 600, 800, 1000] {
        let Some(one) = proxied("sleep 1000") else { return };
        on_runtime(async {
            let _ = tokio::time::timeout(Duration::from_millis(patience), gateway(one)).await;
        });
        wait_until("the end of the container", is_empty_of_containers);
    }
    assert_eq!(sockets_of_this_process(), before);
}

/// A runtime that reports another process than the container's, in another network namespace.
fn process_of_another_container_gets_no_egress() {
    let Some(one) = proxied("true") else { return };
    let bystander = Bystander::start();
    let folder = folder();
    let lying = runtime_through(folder.path(), &LYING.replace("PID", &bystander.pid));
    let why = spawn_refused(&lying, one);
    assert!(why.contains("replaced") || why.contains("first process is unknown"), "{why}");
    for kind in ["tcp", "udp"] {
        let sockets = fs::read_to_string(format!("/proc/{}/net/{kind}", bystander.pid)).unwrap();
        assert_eq!(sockets.lines().count(), 1, "{sockets}");
    }
    wait_until("the end of the container", is_empty_of_containers);
}

fn network_with_other_interfaces_gets_no_egress() {
    let Some(one) = proxied("true") else { return };
    let folder = folder();
    let why = spawn_refused(&runtime_through(folder.path(), BRIDGED), one);
    assert!(why.contains("interfaces besides loopback: `extra0`"), "{why}");
    wait_until("the end of the container", is_empty_of_containers);
}

const LYING: &str = r#"case " $* " in
  *" inspect "*) CLIENT "$@" | sed 's/"Pid": [0-9]*,/"Pid": PID,/' ;;
  *) exec CLIENT "$@" ;;
esac
"#;

/// Another process on the host adds a bridge to the container's network.
const BRIDGED: &str = r#"case " $* " in
  *" inspect "*) ;;
  *) exec CLIENT "$@" ;;
esac
answer=$(CLIENT "$@")
pid=$(echo "$answer" | sed -n 's/.*"Pid": \([0-9]*\),/\1/p')
[ "$pid" = 0 ] || /bin/busybox nsenter -n -t "$pid" /bin/busybox brctl addbr extra0
echo "$answer"
"#;

/// A container with egress; `None`, with a message, if it cannot be created.
fn proxied(script: &str) -> Option<ContainerJail> {
    let mut one = jail(script);
    one.network = Network::Proxied { http_port: 3128 };
    if let Err(why) = container_egress() {
        println!("skipped: {why}");
        assert!(refusal(one).to_string().contains(why), "it must be refused");
        return None;
    }
    Some(one)
}

/// The outcome of a command, and what the gateway received at both sockets.
struct Heard {
    report: ContainerReport,
    said: Vec<String>,
    asked: Vec<Vec<u8>>,
}

#[track_caller]
fn through_the_gateway(jail: ContainerJail) -> Heard {
    on_runtime(gateway(jail))
}

async fn gateway(jail: ContainerJail) -> Heard {
    let mut container = runtime().spawn(jail).await.unwrap_or_else(|error| panic!("{error}"));
    let ProxySockets { http, dns } = container.take_sockets().unwrap();
    assert!(container.take_sockets().is_none(), "once");
    let (mut said, mut asked) = (Vec::new(), Vec::new());
    let report = tokio::select! {
        report = container.finish(Vec::new(), CAPS) => report,
        never = answer(http, &mut said) => never,
        never = refuse_names(dns, &mut asked) => never,
    };
    Heard { report, said, asked }
}

async fn answer<T>(http: TcpListener, said: &mut Vec<String>) -> T {
    http.set_nonblocking(true).unwrap();
    let http = net::TcpListener::from_std(http).unwrap();
    loop {
        let (mut connection, _) = http.accept().await.unwrap();
        let mut line = [0; 64];
        let got = connection.read(&mut line).await.unwrap_or(0);
        said.push(String::from_utf8_lossy(&line[..got]).into_owned());
        let _ = connection.write_all(b"answer\n").await;
    }
}

async fn refuse_names<T>(dns: std::net::UdpSocket, asked: &mut Vec<Vec<u8>>) -> T {
    dns.set_nonblocking(true).unwrap();
    let dns = net::UdpSocket::from_std(dns).unwrap();
    loop {
        let mut question = [0; 512];
        let (got, from) = dns.recv_from(&mut question).await.unwrap();
        asked.push(question[..got].to_vec());
        // A response that refuses the query.
        (question[2], question[3]) = (0x81, 0x85);
        let _ = dns.send_to(&question[..got], from).await;
    }
}

fn spawn_refused(runtime: &Runtime, jail: ContainerJail) -> String {
    match on_runtime(async { runtime.spawn(jail).await.map(drop) }) {
        Err(SpawnError::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// A socket is a handle to its network namespace.
fn sockets_of_this_process() -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// Another process of the host, with the same namespaces as a container.
struct Bystander {
    starter: Child,
    pid: String,
}

impl Bystander {
    fn start() -> Self {
        let mut apart = Command::new("unshare");
        apart.args(["--net", "--ipc", "--uts", "--mount", "--pid", "--fork", "--kill-child"]);
        let mut starter =
            apart.args(["sh", "-c", "echo; exec sleep 1000"]).stdout(Stdio::piped()).spawn().unwrap();
        // Its first output proves that it has started.
        starter.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let id = starter.id();
        let pid = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap().trim().to_owned();
        Self { starter, pid }
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.starter.kill();
        let _ = self.starter.wait();
    }
}
