//! The name server of a sandbox.

use hickory_resolver::proto::{
    op::{Message, Query, ResponseCode},
    rr::{Name, RecordType},
};

use super::*;
use crate::{EgressMode, HostRule};

impl Jail {
    /// Returns the reply to one datagram.
    async fn ask_raw(&self, datagram: &[u8]) -> Message {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.send_to(datagram, self.dns).await.unwrap();
        let mut reply = [0; 1024];
        let length =
            timeout(Duration::from_mins(1), socket.recv(&mut reply)).await.expect("an answer").unwrap();
        Message::from_vec(&reply[..length]).unwrap()
    }

    /// Returns the response code and the addresses.
    async fn ask(&self, name: &str, kind: RecordType) -> (ResponseCode, Vec<String>) {
        let mut message = Message::query();
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        let reply = self.ask_raw(&message.to_vec().unwrap()).await;
        assert_eq!(reply.metadata.id, message.metadata.id);
        (reply.metadata.response_code, reply.answers.iter().map(|record| record.data.to_string()).collect())
    }
}

fn listed(hosts: &[HostRule]) -> EgressRules {
    EgressRules { mode: EgressMode::Allowlist, hosts: hosts.to_vec(), ..EgressRules::blocked() }
}

const NO_ERROR: ResponseCode = ResponseCode::NoError;
const REFUSED: ResponseCode = ResponseCode::Refused;

#[tokio::test]
async fn only_allowed_names_are_looked_up() {
    let (egress, heard) = listening(PUBLIC);
    let rules = listed(&[HostRule::exact("a.test".into()), HostRule::below("b.test".into())]);
    let jail = Jail::with(&egress, rules, ProxyLimits::default());
    assert_eq!(jail.ask("A.test.", RecordType::A).await, (NO_ERROR, vec!["8.8.8.8".into()]));
    assert_eq!(jail.ask("x.b.test.", RecordType::AAAA).await, (NO_ERROR, vec!["2000::8".into()]));
    // These names are never looked up.
    for kind in [
        RecordType::TXT,
        RecordType::HTTPS,
        RecordType::SVCB,
        RecordType::MX,
        RecordType::ANY,
        RecordType::NULL,
    ] {
        assert_eq!(jail.ask("a.test.", kind).await, (NO_ERROR, Vec::new()), "{kind}");
    }
    for name in [
        "s3cret.evil.org.",
        "a.test.evil.org.",
        "xa.test.",
        "test.",
        ".",
        "127.0.0.1.",
        "0x7f.1.",
        "metadata.",
    ] {
        assert_eq!(jail.ask(name, RecordType::A).await, (REFUSED, Vec::new()), "{name}");
        assert_eq!(jail.ask(name, RecordType::TXT).await, (REFUSED, Vec::new()), "{name}");
    }
    assert_eq!(*heard.lock().unwrap(), ["a.test", "x.b.test"]);
    let recorded = jail.recorded().await;
    assert_eq!(recorded[..2], ["dns A a.test ok", "dns AAAA x.b.test ok"]);
    assert_eq!(recorded[8], "dns A s3cret.evil.org host-not-in-allowlist");
}

#[tokio::test]
async fn resolved_addresses_are_checked() {
    let private = listed(&[HostRule::exact("a.test".into())]);
    assert_eq!(
        Jail::new(private, ProxyLimits::default()).ask("a.test.", RecordType::A).await,
        (REFUSED, Vec::new())
    );
    let jail = Jail::new(open(), ProxyLimits::default());
    assert_eq!(jail.ask("a.test.", RecordType::A).await, (NO_ERROR, vec!["127.0.0.1".into()]));
    assert_eq!(jail.ask("nothing.test.", RecordType::A).await, (NO_ERROR, Vec::new()));
    assert_eq!(jail.ask("unknown.test.", RecordType::A).await, (ResponseCode::ServFail, Vec::new()));
    assert_eq!(jail.ask("metadata.google.internal.", RecordType::A).await, (REFUSED, Vec::new()));
    let blocked = EgressRules { blocked_hosts: vec![HostRule::exact("127.0.0.1".into())], ..open() };
    assert_eq!(
        Jail::new(blocked, ProxyLimits::default()).ask("a.test.", RecordType::A).await,
        (REFUSED, Vec::new())
    );
    let nothing = Jail::new(EgressRules::blocked(), ProxyLimits::default());
    assert_eq!(nothing.ask("a.test.", RecordType::A).await, (REFUSED, Vec::new()));
}

#[tokio::test]
async fn dns_ignores_port_rules() {
    let rules = listed(&[HostRule::exact("a.test".into()).at_port(Some(8443))]);
    let (egress, _) = listening(PUBLIC);
    let jail = Jail::with(&egress, rules, ProxyLimits::default());
    assert_eq!(jail.ask("a.test.", RecordType::A).await, (NO_ERROR, vec!["8.8.8.8".into()]));
    let blocked_hosts = vec![HostRule::exact("a.test".into()).at_port(Some(80))];
    let jail = Jail::new(EgressRules { blocked_hosts, ..open() }, ProxyLimits::default());
    assert_eq!(jail.ask("a.test.", RecordType::A).await, (NO_ERROR, vec!["127.0.0.1".into()]));
}

#[tokio::test]
async fn dns_ignores_blocked_ports() {
    let rules = EgressRules { blocked_ports: vec![80, 443], ..open() };
    let jail = Jail::new(rules, ProxyLimits::default());
    assert_eq!(jail.ask("a.test.", RecordType::A).await.1, ["127.0.0.1"]);
}

#[tokio::test]
async fn questions_and_names_are_limited() {
    let (egress, heard) = listening(PUBLIC);
    let limits = ProxyLimits { questions: 4, names: 1, ..ProxyLimits::default() };
    let jail =
        Jail::with(&egress, EgressRules { mode: EgressMode::Strict, ..EgressRules::blocked() }, limits);
    assert_eq!(jail.ask("one.test.", RecordType::A).await.0, NO_ERROR);
    assert_eq!(jail.ask("one.test.", RecordType::AAAA).await.0, NO_ERROR);
    assert_eq!(jail.ask("two.test.", RecordType::A).await.0, REFUSED);
    assert_eq!(jail.ask("one.test.", RecordType::A).await.0, NO_ERROR);
    assert_eq!(jail.ask("one.test.", RecordType::A).await.0, REFUSED);
    // Connections share the same limit.
    let answer = jail.say("CONNECT two.test:443 HTTP/1.1\r\n\r\n").await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("too-many-names"));
    assert_eq!(*heard.lock().unwrap(), ["one.test"; 3]);
}

#[tokio::test]
async fn invalid_datagrams_do_not_stop_the_server() {
    let jail = Jail::new(open(), ProxyLimits::default());
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for datagram in [&[][..], &[0; 5], &[0xff; 512], &[0xff; 4000]] {
        socket.send_to(datagram, jail.dns).await.unwrap();
    }
    let broken = [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1];
    assert_eq!(jail.ask_raw(&broken).await.metadata.response_code, ResponseCode::FormErr);
    assert_eq!(jail.ask("a.test.", RecordType::A).await.0, NO_ERROR);
}

#[tokio::test]
async fn guard_sees_names_before_the_lookup() {
    let (egress, heard) = listening(PUBLIC);
    let jail = Jail::with(&egress.with_guard(Arc::new(WordGuard)), open(), ProxyLimits::default());
    assert_eq!(jail.ask("s3cret.test.", RecordType::A).await.0, REFUSED);
    assert_eq!(jail.ask("a.test.", RecordType::A).await.0, NO_ERROR);
    assert_eq!(*heard.lock().unwrap(), ["a.test"]);
    assert_eq!(jail.recorded().await[0], "dns A s3cret.test content-refused");
}
