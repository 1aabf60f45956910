use hickory_resolver::proto::rr::Name;
use proptest::prelude::*;

use super::*;

/// A question as a common resolver sends it.
fn asked(name: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Message::query();
    message.metadata.id = 0x1234;
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message.to_vec().unwrap()
}

fn question(datagram: &[u8]) -> DnsQuestion {
    match read(datagram) {
        Datagram::Question(question) => question,
        other => panic!("{other:?}"),
    }
}

/// The parse result: a name, an error code or silence.
fn fate(datagram: &[u8]) -> String {
    match read(datagram) {
        Datagram::Question(question) => question.name,
        Datagram::Faulty(reply) => Message::from_vec(&reply).unwrap().metadata.response_code.to_string(),
        Datagram::Noise => "noise".into(),
    }
}

#[test]
fn reply_repeats_the_question() {
    let question = question(&asked("WwW.a.TEST.", RecordType::A));
    assert_eq!((question.name.as_str(), question.kind), ("www.a.test", RecordType::A));
    let addresses = ["8.8.8.8", "2000::1", "8.8.4.4"].map(|address| address.parse().unwrap());
    let reply = Message::from_vec(&question.answer(&addresses).unwrap()).unwrap();
    assert_eq!((reply.metadata.id, reply.metadata.response_code), (0x1234, ResponseCode::NoError));
    assert!(reply.metadata.recursion_desired && reply.metadata.recursion_available);
    assert_eq!(reply.queries[0].name().to_ascii(), "WwW.a.TEST.");
    let answers: Vec<_> = reply.answers.iter().map(|record| (record.data.to_string(), record.ttl)).collect();
    assert_eq!(answers, [("8.8.8.8".to_owned(), 30), ("8.8.4.4".to_owned(), 30)]);
    assert!(reply.edns.is_none());
}

#[test]
fn edns_reply_states_the_maximum_size() {
    let mut message = Message::from_vec(&asked("a.test.", RecordType::AAAA)).unwrap();
    message.set_edns(Edns::new());
    let question = question(&message.to_vec().unwrap());
    let reply = Message::from_vec(&question.answer(&["2000::1".parse().unwrap()]).unwrap()).unwrap();
    assert_eq!((reply.answers.len(), reply.edns.unwrap().max_payload()), (1, 512));
}

#[test]
fn longest_reply_fits() {
    let label = "x".repeat(63);
    let name = format!("{label}.{label}.{label}.{}.", "x".repeat(61));
    let question = question(&asked(&name, RecordType::AAAA));
    let addresses: Vec<IpAddr> = (0..64).map(|low| format!("2000::{low}").parse().unwrap()).collect();
    assert!(question.answer(&addresses).unwrap().len() <= usize::from(MAX_REPLY_BYTES));
}

#[test]
fn invalid_questions_are_refused_or_ignored() {
    let sound = asked("a.test.", RecordType::A);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut datagram = sound.clone();
        change(&mut datagram);
        fate(&datagram)
    };
    let form_error = ResponseCode::FormErr.to_string();
    assert_eq!(with(&|_| {}), "a.test");
    assert_eq!(with(&|bytes| bytes.truncate(11)), "noise");
    assert_eq!(with(&|bytes| bytes[2] |= 0x80), "noise");
    assert_eq!(with(&|bytes| bytes[2] |= 0x10), ResponseCode::NotImp.to_string());
    assert_eq!(with(&|bytes| bytes[5] = 0), form_error);
    assert_eq!(with(&|bytes| bytes[5] = 2), form_error);
    assert_eq!(with(&|bytes| bytes[7] = 1), form_error);
    assert_eq!(with(&|bytes| bytes[9] = 1), form_error);
    assert_eq!(with(&|bytes| bytes[11] = 1), form_error);
    assert_eq!(with(&|bytes| bytes.truncate(bytes.len() - 1)), form_error);
    let last = sound.len() - 1;
    assert_eq!(with(&|bytes| bytes[last] = 3), ResponseCode::Refused.to_string());
    // Compression pointers to themselves and to the header.
    assert_eq!(with(&|bytes| bytes.splice(12..20, [0xc0, 12]).for_each(drop)), form_error);
    assert_eq!(with(&|bytes| bytes.splice(14..20, [0xc0, 0]).for_each(drop)), form_error);
    // The same with enough bytes behind it for a long label.
    assert_eq!(with(&|bytes| bytes.splice(12..20, [0xc0; 300]).for_each(drop)), form_error);
    assert_eq!(
        with(&|bytes| bytes.splice(12..20, [0xc0, 0].into_iter().chain([0; 300])).for_each(drop)),
        form_error
    );
    // A reserved label type.
    assert_eq!(with(&|bytes| bytes[12] = 0x41), form_error);
}

#[test]
fn label_with_dot_or_slash_is_not_a_host() {
    for byte in [b'.', b'/', b'@', b':', b' ', 0, 0xff] {
        let mut datagram = asked("aXb.test.", RecordType::A);
        datagram[14] = byte;
        assert_eq!(fate(&datagram), "", "{byte}");
    }
}

proptest! {
    #[test]
    fn arbitrary_datagrams_never_panic(datagram in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&datagram);
    }

    /// If a datagram is accepted, the DNS library reads the same question, and the reply repeats it.
    #[test]
    fn damaged_question_never_yields_another(
        at in 0..40_usize,
        byte in any::<u8>(),
        cut in 0..60_usize,
    ) {
        let mut datagram = asked("www.example.test.", RecordType::A);
        let length = datagram.len();
        datagram[at % length] = byte;
        datagram.truncate(cut.max(1));
        if let Datagram::Question(question) = read(&datagram) {
            let theirs = Message::from_vec(&datagram).unwrap();
            prop_assert!(!theirs.queries[0].name().is_root() || question.name.is_empty());
            let reply = Message::from_vec(&question.refusal(ResponseCode::Refused).unwrap()).unwrap();
            prop_assert_eq!(&reply.queries, &theirs.queries);
            if !question.name.is_empty() {
                // Compare bytes, because the text form escapes some of them.
                let labels: Vec<_> = theirs.queries[0].name().iter().map(<[u8]>::to_ascii_lowercase).collect();
                let ours: Vec<_> = question.name.split('.').map(|label| label.as_bytes().to_vec()).collect();
                prop_assert_eq!(ours, labels);
            }
        }
    }
}
