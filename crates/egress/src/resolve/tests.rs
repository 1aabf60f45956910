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
    Egress, EgressLimits, EgressMode, EgressRules, HostRule, Listeners, Request,
    testing::{DnsServer, TestServer, loopback, ok, open, slug_of, some_roots},
};

/// The server's reply to a question for A or AAAA records.
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

fn egress_asking(server: &DnsServer, limits: EgressLimits) -> Egress {
    let resolver = SystemResolver::with_servers(&[server.address]).unwrap();
    Egress::new(Arc::new(resolver), &some_roots(), limits, Listeners::of_this_process()).unwrap()
}

/// Only the name is listed, so the private-address guard applies.
fn listing(name: &str) -> EgressRules {
    EgressRules {
        mode: EgressMode::Allowlist,
        hosts: vec![HostRule::exact(name.into())],
        ..EgressRules::blocked()
    }
}

/// The addresses that the resolver returns for `host.test`.
async fn answers(server: &DnsServer) -> io::Result<Vec<String>> {
    let resolver = SystemResolver::with_servers(&[server.address]).unwrap();
    let found = tokio::time::timeout(Duration::from_mins(1), resolver.resolve("host.test"));
    let found = found.await.expect("the lookup must end before the test timeout")?;
    Ok(found.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn both_families_are_queried() {
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
async fn private_address_in_the_other_family_is_refused() {
    let server = DnsServer::start(|question, _| {
        let message = reply(question, |name, kind| match kind {
            RecordType::A => vec![a(name, "8.8.4.4")],
            _ => vec![aaaa(name, "fd00::1")],
        });
        vec![message.to_vec().unwrap()]
    })
    .await;
    let egress = egress_asking(&server, EgressLimits::default());
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert_eq!(slug, "resolved-private-ip");
}

#[tokio::test]
async fn cname_to_a_private_address_is_refused() {
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
    let egress = egress_asking(&server, EgressLimits::default());
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert_eq!(slug, "resolved-private-ip");
}

/// DNS rebinding: the check sees one address, and a second lookup would return another. `Egress` never looks up twice,
/// so the attacker's inner server gets no request.
#[tokio::test]
async fn name_is_resolved_once_and_the_checked_address_is_dialled() {
    let inner = TestServer::start(|_| ok("secret")).await;
    let questions = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&questions);
    let server = DnsServer::start(move |question, before| {
        // Each lookup sends two questions. The first lookup returns a public address of the attacker, later ones a
        // private address.
        asked.fetch_add(1, Ordering::Relaxed);
        let address = if before < 2 { "127.0.0.2" } else { "127.0.0.1" };
        vec![reply(question, |name, kind| only_a(name, kind, address)).to_vec().unwrap()]
    })
    .await;
    let egress = egress_asking(&server, EgressLimits::default());
    let slug = slug_of(&egress, &open(), Request::get(inner.url_as("host.test", "/"))).await;
    assert_eq!((slug, questions.load(Ordering::Relaxed)), ("connect-failed", 2));
    assert_eq!(inner.seen(), Vec::<String>::new());
    // After the answer has changed, the guard checks the new one.
    let slug = slug_of(&egress, &listing("host.test"), Request::get(inner.url_as("host.test", "/"))).await;
    assert_eq!(slug, "resolved-private-ip");
    assert_eq!(inner.seen(), Vec::<String>::new());
}

/// A caller must not learn from response times which names another call looked up.
#[tokio::test]
async fn dns_answers_are_not_cached_between_calls() {
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
async fn answer_for_another_name_is_ignored() {
    let server = DnsServer::start(|question, _| {
        let other = Name::from_ascii("other.test.").unwrap();
        vec![reply(question, |_, kind| only_a(&other, kind, "8.8.8.8")).to_vec().unwrap()]
    })
    .await;
    assert!(answers(&server).await.map_or(true, |found| found.is_empty()));
}

#[tokio::test]
async fn answer_with_a_wrong_id_is_ignored() {
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
async fn silent_dns_server_is_a_timeout() {
    let server = DnsServer::start(|_, _| Vec::new()).await;
    let egress = egress_asking(
        &server,
        EgressLimits { resolve: Duration::from_millis(200), ..EgressLimits::default() },
    );
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert_eq!(slug, "dns-timeout");
}

#[tokio::test]
async fn garbage_from_a_dns_server_is_an_error() {
    let server = DnsServer::start(|question, _| vec![vec![0xff; 100], question.to_vec(), Vec::new()]).await;
    let egress = egress_asking(
        &server,
        EgressLimits { resolve: Duration::from_millis(500), ..EgressLimits::default() },
    );
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert!(slug == "dns-timeout" || slug == "dns-resolution-failed", "{slug}");
}

#[tokio::test]
async fn too_many_addresses_are_refused() {
    let server = DnsServer::start(|question, _| {
        let message = reply(question, |name, kind| {
            let address = |low: u8| a(name, &Ipv4Addr::new(8, 8, 8, low).to_string());
            if kind == RecordType::A { (0..65).map(address).collect() } else { Vec::new() }
        });
        vec![message.to_vec().unwrap()]
    })
    .await;
    let egress = egress_asking(&server, EgressLimits::default());
    let slug = slug_of(&egress, &listing("host.test"), Request::get("http://host.test/")).await;
    assert_eq!(slug, "dns-too-many-addresses");
}

#[tokio::test]
async fn no_records_and_unknown_name_have_different_reasons() {
    let empty =
        DnsServer::start(|question, _| vec![reply(question, |_, _| Vec::new()).to_vec().unwrap()]).await;
    let egress = egress_asking(&empty, EgressLimits::default());
    let request = Request::get("http://host.test/");
    assert_eq!(slug_of(&egress, &listing("host.test"), request.clone()).await, "dns-no-addresses");
    let unknown = DnsServer::start(|question, _| {
        let mut message = reply(question, |_, _| Vec::new());
        message.metadata.response_code = ResponseCode::NXDomain;
        vec![message.to_vec().unwrap()]
    })
    .await;
    let egress = egress_asking(&unknown, EgressLimits::default());
    assert_eq!(slug_of(&egress, &listing("host.test"), request).await, "dns-resolution-failed");
}

#[tokio::test]
async fn literals_are_never_resolved() {
    let dns = DnsServer::start(|_, _| panic!("a literal was resolved")).await;
    let server = TestServer::start(|_| ok("here")).await;
    let egress = egress_asking(&dns, EgressLimits::default());
    let response = egress.fetch(&loopback(), Request::get(server.url("/"))).await.unwrap();
    assert_eq!(&response.body[..], b"here");
}
