use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hickory_resolver::proto::{
    op::Message,
    rr::{
        RData, Record, RecordType,
        rdata::{A, AAAA, CNAME},
    },
};

use super::*;
use crate::{
    Egress, HostRule, Limits, Listeners, Mode, Request, Rules,
    testing::{DnsServer, Server, loopback, ok, open, slug_of, some_roots},
};

/// What a server says to a question for A or AAAA records.
fn reply(question: &[u8], say: impl FnOnce(&Name, RecordType) -> Vec<Record>) -> Message {
    let mut message = Message::from_vec(question).unwrap().into_response();
    let query = message.queries[0].clone();
    message.metadata.recursion_available = true;
    message.edns = None;
    message.insert_answers(say(query.name(), query.query_type()));
    message
}

fn a(name: &Name, address: &str) -> Record {
    Record::from_rdata(name.clone(), 0, RData::A(A(address.parse().unwrap())))
}

fn aaaa(name: &Name, address: &str) -> Record {
    Record::from_rdata(name.clone(), 0, RData::AAAA(AAAA(address.parse().unwrap())))
}

fn only_a(name: &Name, kind: RecordType, address: &str) -> Vec<Record> {
    if kind == RecordType::A { vec![a(name, address)] } else { Vec::new() }
}

fn egress_asking(server: &DnsServer, limits: Limits) -> Egress {
    let resolver = SystemResolver::with_servers(&[server.address]).unwrap();
    Egress::new(Arc::new(resolver), &some_roots(), limits, Listeners::of_this_process()).unwrap()
}

/// Only the name is listed, so that the guard has the last word.
fn listing(name: &str) -> Rules {
    Rules { mode: Mode::Allowlist, hosts: vec![HostRule::exact(name.into())], ..Rules::blocked() }
}

/// The addresses that the server's answers for `host.test` come to.
async fn answers(server: &DnsServer) -> io::Result<Vec<String>> {
    let resolver = SystemResolver::with_servers(&[server.address]).unwrap();
    let found = tokio::time::timeout(Duration::from_mins(1), resolver.resolve("host.test"));
    let found = found.await.expect("a question ends by itself")?;
    Ok(found.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn both_families_are_asked_for() {
    let server = DnsServer::start(|question, _| {
        let message = reply(question, |name, kind| match kind {
            RecordType::A => vec![a(name, "8.8.4.4"), a(name, "8.8.8.8")],
            _ => vec![aaaa(name, "2001:4860::1")],
        });
        vec![message.to_vec().unwrap()]
    })
    .await;
    let mut found = answers(&server).await.unwrap();
    found.sort();
    assert_eq!(found, ["2001:4860::1", "8.8.4.4", "8.8.8.8"]);
}

#[tokio::test]
async fn a_private_answer_in_the_other_family_refuses_the_host() {
    let server = DnsServer::start(|question, _| {
        let message = reply(question, |name, kind| match kind {
            RecordType::A => vec![a(name, "8.8.4.4")],
            _ => vec![aaaa(name, "fd00::1")],
        });
        vec![message.to_vec().unwrap()]
    })
    .await;
    let egress = egress_asking(&server, Limits::default());
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert_eq!(slug, "resolved-private-ip");
}

#[tokio::test]
async fn an_alias_of_a_private_address_is_private() {
    let server = DnsServer::start(|question, _| {
        let message = reply(question, |name, kind| {
            let inside = Name::from_ascii("inside.test.").unwrap();
            let alias = Record::from_rdata(name.clone(), 0, RData::CNAME(CNAME(inside.clone())));
            let mut records = vec![alias];
            records.extend(only_a(&inside, kind, "10.0.0.1"));
            records
        });
        vec![message.to_vec().unwrap()]
    })
    .await;
    assert_eq!(answers(&server).await.unwrap(), ["10.0.0.1"]);
    let egress = egress_asking(&server, Limits::default());
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert_eq!(slug, "resolved-private-ip");
}

/// The rebinding attack: the check sees one address, a second question would get another. There is no
/// second question, so the attacker's inner server is never spoken to.
#[tokio::test]
async fn a_name_is_asked_for_once_and_the_judged_answer_is_dialled() {
    let inner = Server::start(|_| ok("secret")).await;
    let questions = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&questions);
    let server = DnsServer::start(move |question, before| {
        // Two questions a lookup. The first lookup gets an address of the attacker, later ones lead inside.
        asked.fetch_add(1, Ordering::Relaxed);
        let address = if before < 2 { "127.0.0.2" } else { "127.0.0.1" };
        vec![reply(question, |name, kind| only_a(name, kind, address)).to_vec().unwrap()]
    })
    .await;
    let egress = egress_asking(&server, Limits::default());
    let slug = slug_of(&egress, &open(), Request::get(inner.url_as("host.test", "/"))).await;
    assert_eq!((slug, questions.load(Ordering::Relaxed)), ("connect-failed", 2));
    assert_eq!(inner.seen(), Vec::<String>::new());
    // And once the answer has changed, the guard sees the new one.
    let slug = slug_of(&egress, &listing("host.test"), Request::get(inner.url_as("host.test", "/"))).await;
    assert_eq!(slug, "resolved-private-ip");
    assert_eq!(inner.seen(), Vec::<String>::new());
}

/// What one call has asked for is not to be told by another from how soon it is answered.
#[tokio::test]
async fn nothing_is_remembered_between_calls() {
    let questions = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&questions);
    let server = DnsServer::start(move |question, _| {
        asked.fetch_add(1, Ordering::Relaxed);
        let answer = reply(question, |name, kind| {
            let mut records = only_a(name, kind, "8.8.8.8");
            for record in &mut records {
                record.ttl = 3_600;
            }
            records
        });
        vec![answer.to_vec().unwrap()]
    })
    .await;
    let resolver = SystemResolver::with_servers(&[server.address]).unwrap();
    for lookups in 1..=3 {
        assert_eq!(resolver.resolve("host.test").await.unwrap().len(), 1);
        assert_eq!(questions.load(Ordering::Relaxed), 2 * lookups);
    }
}

#[tokio::test]
async fn an_answer_for_another_name_is_no_answer() {
    let server = DnsServer::start(|question, _| {
        let other = Name::from_ascii("other.test.").unwrap();
        vec![reply(question, |_, kind| only_a(&other, kind, "8.8.8.8")).to_vec().unwrap()]
    })
    .await;
    assert!(answers(&server).await.map_or(true, |found| found.is_empty()));
}

#[tokio::test]
async fn a_forged_answer_with_the_wrong_number_is_passed_over() {
    let server = DnsServer::start(|question, _| {
        let mut forged = reply(question, |name, kind| only_a(name, kind, "127.0.0.1"));
        forged.metadata.id ^= 1;
        let honest = reply(question, |name, kind| only_a(name, kind, "8.8.8.8"));
        vec![forged.to_vec().unwrap(), honest.to_vec().unwrap()]
    })
    .await;
    assert_eq!(answers(&server).await.unwrap(), ["8.8.8.8"]);
}

#[tokio::test]
async fn a_server_that_never_answers_costs_the_resolve_budget() {
    let server = DnsServer::start(|_, _| Vec::new()).await;
    let egress = egress_asking(&server, Limits { resolve: Duration::from_millis(200), ..Limits::default() });
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert_eq!(slug, "dns-timeout");
}

#[tokio::test]
async fn garbage_is_no_answer() {
    let server = DnsServer::start(|question, _| vec![vec![0xff; 100], question.to_vec(), Vec::new()]).await;
    let egress = egress_asking(&server, Limits { resolve: Duration::from_millis(500), ..Limits::default() });
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert!(slug == "dns-timeout" || slug == "dns-resolution-failed", "{slug}");
}

#[tokio::test]
async fn more_addresses_than_any_host_has_are_refused() {
    let server = DnsServer::start(|question, _| {
        let message = reply(question, |name, kind| {
            let address = |low: u8| a(name, &Ipv4Addr::new(8, 8, 8, low).to_string());
            if kind == RecordType::A { (0..65).map(address).collect() } else { Vec::new() }
        });
        vec![message.to_vec().unwrap()]
    })
    .await;
    let egress = egress_asking(&server, Limits::default());
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert_eq!(slug, "dns-too-many-addresses");
}

#[tokio::test]
async fn no_records_and_no_such_name_are_told_apart() {
    let empty =
        DnsServer::start(|question, _| vec![reply(question, |_, _| Vec::new()).to_vec().unwrap()]).await;
    let egress = egress_asking(&empty, Limits::default());
    let request = Request::get("http://host.test/");
    assert_eq!(slug_of(&egress, &listing("host.test"), request.clone()).await, "dns-no-addresses");
    let unknown = DnsServer::start(|question, _| {
        let mut message = reply(question, |_, _| Vec::new());
        message.metadata.response_code = ResponseCode::NXDomain;
        vec![message.to_vec().unwrap()]
    })
    .await;
    let egress = egress_asking(&unknown, Limits::default());
    assert_eq!(slug_of(&egress, &listing("host.test"), request).await, "dns-resolution-failed");
}

#[tokio::test]
async fn a_literal_is_never_asked_for() {
    let dns = DnsServer::start(|_, _| panic!("a literal was resolved")).await;
    let server = Server::start(|_| ok("here")).await;
    let egress = egress_asking(&dns, Limits::default());
    let response = egress.fetch(&loopback(), Request::get(server.url("/"))).await.unwrap();
    assert_eq!(&response.body[..], b"here");
}
