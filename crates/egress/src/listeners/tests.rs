use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Checks which of these addresses lead to a listener at `listener`.
#[track_caller]
fn check(listener: &str, refused: &[&str], reached: &[&str]) {
    let listeners = Listeners::of_this_process();
    listeners.register(socket(listener)).unwrap();
    for address in refused {
        assert!(listeners.accept_at(socket(address)), "{address} leads to {listener}");
    }
    for address in reached {
        assert!(!listeners.accept_at(socket(address)), "{address} does not lead to {listener}");
    }
}

#[test]
fn every_form_of_a_loopback_listener_is_recognised() {
    check(
        "127.0.0.1:8282",
        &[
            "127.0.0.1:8282",
            "0.0.0.0:8282",
            "[::ffff:127.0.0.1]:8282",
            "[::127.0.0.1]:8282",
            "[64:ff9b::127.0.0.1]:8282",
            "[64:ff9b:1:7f00:0:100::]:8282",
            "[2002:7f00:1::]:8282",
        ],
        &["127.0.0.1:8283", "127.8.9.1:8282", "[::1]:8282", "8.8.8.8:8282", "[2001:4860::1]:8282"],
    );
    check("[::1]:8282", &["[::1]:8282", "[::]:8282"], &["127.0.0.1:8282", "[::1]:8283"]);
    check("[::ffff:127.0.0.1]:8282", &["127.0.0.1:8282"], &["127.0.0.2:8282"]);
    check("127.0.0.3:8282", &["127.0.0.3:8282"], &["127.0.0.1:8282"]);
}

#[test]
fn wildcard_listener_is_recognised_at_every_address_of_this_host() {
    let elsewhere = ["127.0.0.1:8283", "192.0.2.77:8282", "8.8.8.8:8282", "[2001:db8::77]:8282"];
    for listener in ["0.0.0.0:8282", "[::]:8282"] {
        let here = ["127.0.0.1:8282", "127.8.9.1:8282", "0.0.0.0:8282", "[::ffff:127.8.9.1]:8282"];
        check(listener, &here, &elsewhere);
        if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            check(listener, &["[::1]:8282", "[::]:8282"], &["[::1]:8283"]);
        }
        // An interface address, if this machine has one.
        let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        if probe.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).is_ok() {
            let own = SocketAddr::new(probe.local_addr().unwrap().ip(), 8282);
            check(listener, &[&own.to_string()], &[]);
        }
    }
}

#[test]
fn published_listener_is_known_to_other_processes_until_its_gateway_ends() {
    let state = tempfile::tempdir().unwrap();
    let dir = state.path().join("listeners");
    let (gateway, command) = (Listeners::published_in(dir.clone()), Listeners::published_in(dir.clone()));
    let address = socket("127.0.0.1:8282");
    assert!(!command.accept_at(address), "the directory does not exist yet");
    gateway.register(address).unwrap();
    gateway.register(socket("0.0.0.0:8283")).unwrap();
    assert!(command.accept_at(address) && command.accept_at(socket("127.8.9.1:8283")));
    assert!(!command.accept_at(socket("127.0.0.1:8284")));
    // The kernel does the same when the process ends.
    drop(gateway);
    assert!(!command.accept_at(address));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "stale files are removed");
}

#[test]
fn unfinished_file_is_neither_read_nor_removed() {
    let state = tempfile::tempdir().unwrap();
    let unfinished = state.path().join(format!("1-2{UNFINISHED}"));
    fs::write(&unfinished, "127.0.0.1:8282").unwrap();
    let listeners = Listeners::published_in(state.path().to_owned());
    assert!(!listeners.accept_at(socket("127.0.0.1:8282")));
    assert!(unfinished.exists());
}

#[test]
fn unreadable_directory_refuses_every_address_of_this_host() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("listeners");
    fs::write(&file, "").unwrap();
    let listeners = Listeners::published_in(file);
    assert!(listeners.accept_at(socket("127.0.0.1:1")));
    assert!(!listeners.accept_at(socket("8.8.8.8:1")));
    assert!(listeners.register(socket("127.0.0.1:1")).is_err());
    let locked = state.path().join("dir");
    fs::create_dir(&locked).unwrap();
    let damaged = File::create(locked.join("1-2")).unwrap();
    damaged.lock().unwrap();
    assert!(
        Listeners::published_in(locked).accept_at(socket("127.0.0.1:1")),
        "a live file without an address"
    );
}
