use std::os::fd::AsRawFd;

use super::{
    super::{CommandLimits, Network, View},
    *,
};
use crate::{
    Namespaces,
    wire::{HEADER, body_length},
};

fn descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

fn jail() -> CommandJail {
    CommandJail {
        program: "/bin/x".into(),
        argv: vec!["x".into(), "".into(), OsString::from_vec(vec![0xff, b'\n'])],
        env: vec![("A".into(), "b=c".into())],
        cwd: "/w".into(),
        view: View {
            binds: vec![
                Bind { source: Source::Path("/a".into()), at: "/b".into(), access: Access::Write },
                Bind { source: Source::Opened(descriptor()), at: "/c".into(), access: Access::Execute },
            ],
            hidden: vec!["/a/secret".into(), "/a/large".into()],
            hidden_large: vec!["/a/large".into()],
            tmp_bytes: 7,
        },
        network: Network::Proxied { http_port: 3128 },
        limits: CommandLimits { memory_bytes: 1, cpu_seconds: 2, processes: 3, open_files: 4, file_bytes: 5 },
        children: Children::Denied,
        required: JailKind::Command.hardened(),
        namespaces: Namespaces::Enter,
        trace: Trace::Refusals,
    }
}

fn parcel(frame: &[u8], descriptors: usize) -> Parcel {
    let (kind, length) = body_length(*frame.first_chunk::<HEADER>().unwrap()).unwrap();
    let body = frame[HEADER..].to_vec();
    assert_eq!(body.len(), length);
    Parcel { kind, body, descriptors: (0..descriptors).map(|_| descriptor()).collect() }
}

#[test]
fn order_survives_encoding() {
    let jail = jail();
    let (frame, opened) = order(&jail).unwrap();
    assert_eq!(opened.len(), 1);
    let order = Order::read(parcel(&frame, 4)).unwrap();
    assert_eq!(order.program.as_bytes(), b"/bin/x");
    assert_eq!(order.argv[2].as_bytes(), [0xff, b'\n']);
    assert_eq!(order.env[0].as_bytes(), b"A=b=c");
    assert_eq!((order.binds.len(), order.hidden.len(), order.groundwork.tmp_bytes), (2, 2, 7));
    assert_eq!(order.hidden_large, jail.view.hidden_large);
    assert_eq!((order.binds[0].access, order.binds[1].access), (Access::Write, Access::Execute));
    assert!(matches!(&order.binds[1].source, Source::Opened(opened) if opened.as_raw_fd() > 2));
    assert_eq!((order.groundwork, order.trace), (Groundwork::of(&jail), jail.trace));
    assert_eq!(order.children, Children::Denied);
    assert_eq!(order.groundwork.limits.file_bytes, 5);
    assert_eq!(order.required, JailKind::Command.hardened());
}

#[test]
fn groundwork_survives_encoding() {
    let groundwork = Groundwork::of(&jail());
    let frame = groundwork.to_frame().unwrap();
    assert_eq!(Groundwork::read(&parcel(&frame, 0)).unwrap(), groundwork);
    assert!(Groundwork::read(&Parcel { kind: ORDER, ..parcel(&frame, 0) }).is_err());
    let body = parcel(&frame, 0).body;
    for length in 0..body.len() {
        assert!(Groundwork::read(&Parcel { body: body[..length].to_vec(), ..parcel(&frame, 0) }).is_err());
    }
}

#[test]
fn truncated_or_changed_order_does_no_harm() {
    let jail = jail();
    let (frame, _) = order(&jail).unwrap();
    for descriptors in 0..4 {
        assert!(Order::read(parcel(&frame, descriptors)).is_err(), "{descriptors} descriptors");
    }
    let whole = parcel(&frame, 0).body;
    for length in 0..whole.len() {
        let parcel = Parcel { body: whole[..length].to_vec(), ..parcel(&frame, 4) };
        assert!(Order::read(parcel).is_err(), "{length} bytes");
    }
    for place in 0..whole.len() {
        let mut body = whole.clone();
        body[place] ^= 0xff;
        // Some changes yield another valid order; none may panic.
        let _ = Order::read(Parcel { body, ..parcel(&frame, 4) });
    }
    assert!(Order::read(Parcel { kind: REPORT, ..parcel(&frame, 4) }).is_err());
}

#[test]
fn every_message_survives_encoding() {
    let strength = JailKind::Command.hardened().with_landlock(7);
    let refused = vec![
        Refused::Path { path: "/etc/shadow".into(), access: Attempt::Write },
        Refused::Syscall { name: "bpf".into(), detail: String::new() },
        Refused::Address { address: "192.0.2.1:80".into() },
        Refused::LookUp,
    ];
    let usage =
        CommandUsage { elapsed: Duration::from_millis(5), cpu: Duration::from_micros(7), peak_memory: 9 };
    let mut words = vec![
        Word::Started(strength),
        Word::Sealed(strength),
        Word::TooWeak(vec!["private-view".into()]),
        Word::Failed("cannot".into()),
        Word::Refused(refused[0].clone()),
        Word::Refused(refused[1].clone()),
        Word::Refused(refused[2].clone()),
        Word::Refused(refused[3].clone()),
        Word::Sockets,
        Word::Exit(ExitAccount { status: -1, cpu: Duration::from_micros(5), peak_memory: 1 << 40 }),
    ];
    let endings = [
        Ending::Exited(255),
        Ending::Signalled(9),
        Ending::TimedOut,
        Ending::OutputTooLarge,
        Ending::OutOfMemory,
        Ending::JailFailed("x".into()),
    ];
    words.extend(endings.map(|ending| {
        let refused = Listed { kept: refused.clone(), beyond: 3, paths_beyond: 2 };
        Word::Report(Account { ending, usage, refused })
    }));
    // Only the shortest kind, which must not count as too many.
    let shortest = Listed { kept: vec![Refused::LookUp], beyond: 0, paths_beyond: 0 };
    words.push(Word::Report(Account { ending: Ending::Exited(0), usage, refused: shortest }));
    for word in words {
        let frame = word.to_frame().unwrap();
        let parcel = parcel(&frame, 0);
        let again = Word::read(parcel.kind, &parcel.body).unwrap();
        assert_eq!(format!("{word:?}"), format!("{again:?}"));
        for length in 0..parcel.body.len() {
            assert!(Word::read(parcel.kind, &parcel.body[..length]).is_err(), "{word:?} cut to {length}");
        }
    }
}
