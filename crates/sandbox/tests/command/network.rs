//! The network of a proxied command: two sockets held by the gateway, and nothing else.

use std::{
    io::{Read, Write},
    thread,
};

use toolgate_sandbox::{Ending, Network, Refused};

use crate::driver::{CAPS, PATIENCE, Tier, inside, on_runtime, refusal, spawn};

pub fn proxied() {
    let mut order = inside(Tier::Namespaces, "use-the-network");
    order.network = Network::Proxied { http_port: 3128 };
    let report = on_runtime(async {
        let mut running = spawn(order).await.unwrap();
        let sockets = running.take_sockets().unwrap();
        assert!(running.take_sockets().is_none(), "once");
        let web = thread::spawn(move || {
            let (mut connection, _) = sockets.http.accept().unwrap();
            let mut asked = [0; 4];
            connection.read_exact(&mut asked).unwrap();
            connection.write_all(b"page").unwrap();
            asked
        });
        let names = thread::spawn(move || {
            let mut asked = [0; 64];
            let (count, from) = sockets.dns.recv_from(&mut asked).unwrap();
            sockets.dns.send_to(b"answer", from).unwrap();
            count
        });
        let report = running.finish(Vec::new(), CAPS, PATIENCE).await;
        assert_eq!(&web.join().unwrap(), b"GET ");
        assert_eq!(names.join().unwrap(), 5);
        report
    });
    let said = String::from_utf8_lossy(&report.stdout);
    assert_eq!(report.ending, Ending::Exited(0), "{said}");
    assert_eq!(said, "page answer\nnothing else\n");
    let others = ["127.0.0.1:22", "192.0.2.1:80", "169.254.169.254:80", "[::1]:80"];
    let datagrams = ["192.0.2.53:53", "192.0.2.54:53"];
    let mut expected: Vec<Refused> = others
        .into_iter()
        .chain(datagrams)
        .map(|address| Refused::Address { address: address.into() })
        .collect();
    expected.push(Refused::Syscall { name: "bind".into(), detail: "127.0.0.1:8080".into() });
    assert_eq!(report.refused, expected, "all of it, and nothing that was granted");

    let mut order = inside(Tier::Landlock, "use-the-network");
    order.network = Network::Proxied { http_port: 3128 };
    assert!(refusal(order).to_string().contains("network-namespace"));
}
