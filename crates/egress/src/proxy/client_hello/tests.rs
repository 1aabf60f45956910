use std::sync::Arc;

use proptest::prelude::*;
use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::ring, pki_types::ServerName};

use super::*;

/// The ClientHello of a real client.
pub fn client_hello_of_rustls(name: &str) -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut wire = Vec::new();
    connection.write_tls(&mut wire).unwrap();
    wire
}

fn sized(width: usize, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&length[4 - width..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &sized(2, content)].concat()
}

pub fn name_extension(name: &[u8]) -> Vec<u8> {
    let entry = [&[0][..], &sized(2, name)].concat();
    extension(0, &sized(2, &entry))
}

/// The handshake message with these extensions.
fn message(extensions: &[u8]) -> Vec<u8> {
    let body = [
        &[3, 3][..],
        &[7; 32],
        &sized(1, &[1; 32]),
        &sized(2, &[0x13, 1]),
        &sized(1, &[0]),
        &sized(2, extensions),
    ];
    [&[1][..], &sized(3, &body.concat())].concat()
}

fn records(message: &[u8], most: usize) -> Vec<u8> {
    message.chunks(most).flat_map(|part| [&[22, 3, 1][..], &sized(2, part)].concat()).collect()
}

pub fn client_hello(extensions: &[u8]) -> Vec<u8> {
    records(&message(extensions), MAX_RECORD_BYTES)
}

fn read(wire: &[u8]) -> Result<Option<ClientHello>, NotTls> {
    ClientHelloReader::default().read(wire)
}

fn named(name: &str) -> ClientHello {
    ClientHello { name: Some(name.into()), inner: InnerHello::Absent }
}

#[test]
fn real_client_hellos_are_parsed() {
    assert_eq!(read(&client_hello_of_rustls("a.test")), Ok(Some(named("a.test"))));
    let nobody = ClientHello { name: None, inner: InnerHello::Absent };
    assert_eq!(read(&client_hello_of_rustls("127.0.0.1")), Ok(Some(nobody)));
}

#[test]
fn sni_is_lowercased() {
    assert_eq!(read(&client_hello(&name_extension(b"A.Test"))), Ok(Some(named("a.test"))));
}

#[test]
fn encrypted_client_hello_is_detected() {
    for kind in [0xfe0d, 0xffce] {
        let extensions = [name_extension(b"a.test"), extension(kind, b"anything")].concat();
        assert_eq!(read(&client_hello(&extensions)).unwrap().unwrap().inner, InnerHello::Encrypted);
    }
}

#[test]
fn one_byte_records_are_reassembled() {
    let wire = records(&message(&name_extension(b"a.test")), 1);
    assert_eq!(read(&wire), Ok(Some(named("a.test"))));
}

#[test]
fn ambiguous_client_hellos_are_refused() {
    let name = name_extension(b"a.test");
    let two_names = [&[0][..], &sized(2, b"a.test"), &[0], &sized(2, b"b.test")].concat();
    let other_kind = [&[1][..], &sized(2, b"a.test")].concat();
    let mut behind = message(&name);
    behind.push(0);
    let mut early = message(&name);
    early[0] = 2;
    for (what, wire) in [
        ("two extensions", client_hello(&[name.clone(), name_extension(b"b.test")].concat())),
        ("two names in one", client_hello(&extension(0, &sized(2, &two_names)))),
        ("another kind of name", client_hello(&extension(0, &sized(2, &other_kind)))),
        ("an empty name", client_hello(&name_extension(b""))),
        ("an empty extension", client_hello(&extension(0, b""))),
        ("a zero byte", client_hello(&name_extension(b"a.test\0.evil.org"))),
        ("bytes that are not text", client_hello(&name_extension(b"a\xff"))),
        ("bytes after the list", client_hello(&extension(0, &[sized(2, &two_names), vec![0]].concat()))),
        ("a message after the ClientHello", records(&behind, MAX_RECORD_BYTES)),
        ("a ServerHello", records(&early, MAX_RECORD_BYTES)),
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("SSH", b"SSH-2.0-x\r\n".to_vec()),
        ("an SSL 2 hello", b"\x80\x2e\x01\x00\x02".to_vec()),
        ("an alert first", [&[21, 3, 3, 0, 2, 1, 0][..], &client_hello(&name)].concat()),
        ("an empty record", [&[22, 3, 1, 0, 0][..], &client_hello(&name)].concat()),
        ("a record that is too long", vec![22, 3, 1, 0x40, 1]),
        ("a message that is too long", vec![22, 3, 1, 0, 4, 1, 1, 0, 0]),
        ("no suites", records(&[&[1][..], &sized(3, &[0; 40])].concat(), MAX_RECORD_BYTES)),
    ] {
        assert_eq!(read(&wire), Err(NotTls), "{what}");
    }
}

proptest! {
    #[test]
    fn client_hello_is_reassembled_from_any_chunks(
        name in "[a-z]{1,20}\\.test",
        record in 1..600_usize,
        cut in 1..200_usize,
    ) {
        let padding = extension(21, &[0; 300]);
        let wire = records(&message(&[padding, name_extension(name.as_bytes())].concat()), record);
        let mut reader = ClientHelloReader::default();
        let ends: Vec<_> = (0..wire.len()).step_by(cut).chain([wire.len()]).collect();
        let (last, before) = ends.split_last().unwrap();
        for end in before {
            prop_assert_eq!(reader.read(&wire[..*end]), Ok(None));
        }
        prop_assert_eq!(reader.read(&wire[..*last]), Ok(Some(named(&name))));
    }

    /// rustls is the reference: if both parsers find a name, it must be the same.
    #[test]
    fn damaged_client_hello_never_yields_another_name(at in 0..400_usize, byte in any::<u8>()) {
        let mut wire = client_hello_of_rustls("a.test");
        let at = at % wire.len();
        wire[at] = byte;
        let ours = read(&wire).ok().flatten().and_then(|hello| hello.name);
        let mut acceptor = rustls::server::Acceptor::default();
        let accepted = acceptor.read_tls(&mut &wire[..]).ok().and_then(|_| acceptor.accept().ok().flatten());
        let theirs = accepted.and_then(|accepted| accepted.client_hello().server_name().map(str::to_owned));
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            prop_assert_eq!(ours, theirs.to_ascii_lowercase());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), is_record in any::<bool>()) {
        let wire = if is_record { records(&bytes, 100) } else { bytes };
        let _ = read(&wire);
    }
}
