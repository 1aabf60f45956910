use super::*;

#[track_caller]
fn check_back(frame: &FromWorker) {
    let bytes = frame.encode().unwrap();
    let (kind, length) = body_length(*bytes.first_chunk().unwrap()).unwrap();
    assert_eq!(length, bytes.len() - HEADER);
    assert_eq!(&FromWorker::decode(kind, &bytes[HEADER..]).unwrap(), frame);
    for cut in HEADER..bytes.len() {
        assert!(FromWorker::decode(kind, &bytes[HEADER..cut]).is_err(), "cut at {cut}");
    }
    let longer = [&bytes[HEADER..], &[0]].concat();
    assert_eq!(FromWorker::decode(kind, &longer), Err(WireError::Leftover(1)));
}

#[test]
fn worker_frames_round_trip_and_reject_truncation() {
    check_back(&FromWorker::Ready { strength: 7 });
    check_back(&FromWorker::Missing);
    check_back(&FromWorker::Unloadable(ScriptEnding::Escaped));
    check_back(&FromWorker::Effect(Effect::Fetch(FetchCall {
        method: "POST".into(),
        url: "https://example.com/".into(),
        headers: vec![("a".into(), "b".into())],
        body: Some(vec![1, 2]),
        redirect: Redirect::Manual,
        timeout_ms: 5,
        start_index: 6,
        max_length: 7,
    })));
    check_back(&FromWorker::Effect(Effect::File(FileCall {
        function: "grep".into(),
        arguments: vec!["a".into(), "b".into()],
        options: vec![("limit".into(), "3".into())],
    })));
    check_back(&FromWorker::Done(Box::new(Done {
        ending: ScriptEnding::Value("{}".into()),
        console: vec![(b'l', "hello".into())],
        console_dropped: 2,
        usage: ScriptUsage {
            fuel: 1,
            memory_bytes: 2,
            host_calls: 3,
            host_bytes: 4,
            elapsed_us: 5,
            helpers: 6,
        },
    })));
}

/// A compromised worker can set every bit; only known names are returned.
#[test]
fn only_known_helper_bits_yield_names() {
    let all: Vec<&str> = Helper::ALL.iter().map(|helper| helper.name()).collect();
    assert_eq!(Helper::names(u32::MAX), all);
    assert_eq!(Helper::names(0), Vec::<&str>::new());
    assert_eq!(Helper::names(Helper::Yaml.bit() | Helper::Crypto.bit()), ["crypto", "safety.parser.yaml"]);
    let bits = Helper::ALL.iter().fold(0, |bits, helper| bits | helper.bit());
    assert_eq!(bits.count_ones() as usize, Helper::ALL.len());
}

#[test]
fn gateway_frames_round_trip() {
    let limits = RunLimits {
        timeout_ms: 1,
        fuel: 2,
        memory_bytes: 3,
        console_lines: 4,
        console_bytes: 5,
        result_bytes: 6,
        host_calls: 7,
        host_bytes: 8,
    };
    for frame in [
        ToWorker::Start(StartWorker { cpu_seconds: 9, namespaces: true }),
        ToWorker::Load(Load { key: [1; 32], grants: 3, names: "[]".into(), source: "()".into() }),
        ToWorker::Run(RunScript { key: [2; 32], limits, seed: 1, arguments: "{}".into() }),
        ToWorker::Answer(EffectAnswer::Json(JsonAnswer { text: "1".into(), moved: 9 })),
        ToWorker::Answer(EffectAnswer::Refused(EffectError {
            kind: "SECURITY".into(),
            helper: "fetch".into(),
            reason: "no".into(),
            message: "No.".into(),
            moved: 10,
        })),
    ] {
        let bytes = frame.encode().unwrap();
        assert_eq!(ToWorker::decode(bytes[4], &bytes[HEADER..]).unwrap(), frame);
    }
}

/// One byte of a large body costs the whole fetch, and copying a file costs its bytes.
#[test]
fn bytes_moved_by_the_gateway_count() {
    let fetched = FetchAnswer {
        status: 200,
        url: "u".into(),
        redirected: false,
        headers: vec![("ab".into(), "cd".into())],
        full_length: 1_000,
        body: vec![0],
    };
    assert_eq!(EffectAnswer::Fetched(fetched).payload(), 1_000 + 1 + 4);
    let json = |moved| EffectAnswer::Json(JsonAnswer { text: "true".into(), moved }).payload();
    assert_eq!((json(0), json(1_000)), (4, 1_000));
    let refused = EffectError {
        kind: "SECURITY".into(),
        helper: "h".into(),
        reason: "r".into(),
        message: "m".into(),
        moved: 1_000,
    };
    assert_eq!(EffectAnswer::Refused(refused).payload(), 1_003);
}

#[test]
fn fits_matches_what_the_other_end_accepts() {
    let base = FetchCall {
        method: "GET".into(),
        url: "u".into(),
        headers: Vec::new(),
        body: None,
        redirect: Redirect::Follow,
        timeout_ms: 0,
        start_index: 0,
        max_length: 0,
    };
    let pair = |value: String| vec![("a".to_owned(), value)];
    for call in [
        FetchCall { method: "M".repeat(201), ..base.clone() },
        FetchCall { url: "u".repeat((64 << 10) + 1), ..base.clone() },
        FetchCall { headers: pair("v".repeat((64 << 10) + 1)), ..base.clone() },
        FetchCall { headers: vec![("a".into(), "b".into()); 1_001], ..base.clone() },
        FetchCall { body: Some(vec![0; (32 << 20) + 1]), ..base.clone() },
        base,
    ] {
        let effect = Effect::Fetch(call);
        let written = FromWorker::Effect(effect.clone()).encode();
        assert_eq!(effect.fits(), written.is_ok());
        if let Ok(bytes) = written {
            assert_eq!(FromWorker::decode(bytes[4], &bytes[HEADER..]), Ok(FromWorker::Effect(effect)));
        }
    }
}

/// Every limited field, at its maximum and one byte longer.
#[test]
fn gateway_writes_only_what_the_worker_accepts() {
    let fetched = |url: usize, headers: Vec<(String, String)>| {
        let url = "u".repeat(url);
        let answer =
            FetchAnswer { status: 200, url, redirected: true, headers, full_length: 0, body: vec![] };
        ToWorker::Answer(EffectAnswer::Fetched(answer))
    };
    let pair = |name: usize, value: usize| vec![("n".repeat(name), "v".repeat(value))];
    let refused = |[kind, helper, reason, message]: [usize; 4]| {
        let text = |length| "t".repeat(length);
        ToWorker::Answer(EffectAnswer::Refused(EffectError {
            kind: text(kind),
            helper: text(helper),
            reason: text(reason),
            message: text(message),
            moved: 0,
        }))
    };
    let load = |names: usize, source: usize| {
        ToWorker::Load(Load { key: [0; 32], grants: 0, names: "n".repeat(names), source: "s".repeat(source) })
    };
    let many = |count| vec![(String::new(), String::new()); count];
    let (large, text) = (64 << 10, 4 << 20);
    for (within, beyond) in [
        (fetched(large, vec![]), fetched(large + 1, vec![])),
        (fetched(0, pair(large, 0)), fetched(0, pair(large + 1, 0))),
        (fetched(0, pair(0, large)), fetched(0, pair(0, large + 1))),
        (fetched(0, many(1_000)), fetched(0, many(1_001))),
        (refused([200, 0, 0, 0]), refused([201, 0, 0, 0])),
        (refused([0, 200, 0, 0]), refused([0, 201, 0, 0])),
        (refused([0, 0, 200, 0]), refused([0, 0, 201, 0])),
        (refused([0, 0, 0, large]), refused([0, 0, 0, large + 1])),
        (load(text, 0), load(text + 1, 0)),
        (load(0, text), load(0, text + 1)),
    ] {
        let bytes = within.encode().unwrap();
        assert_eq!(ToWorker::decode(bytes[4], &bytes[HEADER..]), Ok(within));
        assert!(matches!(beyond.encode(), Err(WireError::TooLong(_))));
        if let ToWorker::Load(load) = beyond {
            assert!(!load.fits());
        }
    }
}

/// Each part is allowed; together they exceed a frame.
#[test]
fn parts_that_exceed_one_frame_together_do_not_fit() {
    let file = |pairs: usize| {
        Effect::File(FileCall {
            function: "writeText".into(),
            arguments: vec!["a".into(), "x".repeat(30 << 20)],
            options: vec![("a".into(), "v".repeat(64 << 10)); pairs],
        })
    };
    for (effect, fits) in [(file(200), true), (file(400), false)] {
        assert_eq!(effect.fits(), fits);
        assert_eq!(FromWorker::Effect(effect).encode().is_ok(), fits);
    }
}

/// The frame with the most overhead besides its payload.
#[test]
fn everything_that_fits_can_be_written() {
    let options = vec![("a".to_owned(), "v".repeat(18_000)); 1_000];
    let used: usize = options.iter().map(|(name, value)| name.len() + value.len()).sum();
    for room in 0..3 {
        let left = MAX_FRAME - used - "f".len() - 8_000 - 64 - 64 - 1 + room;
        let mut arguments = vec![String::new(); 15];
        arguments.push("x".repeat(left));
        let effect = Effect::File(FileCall { function: "f".into(), arguments, options: options.clone() });
        assert_eq!(effect.fits(), room < 2, "{room}");
        assert!(FromWorker::Effect(effect).encode().is_ok());
    }
}

#[test]
fn count_never_exceeds_its_frame() {
    // A Done frame that announces ten thousand console lines and carries none.
    let mut writer = FrameWriter::new(5);
    writer.u8(1).text("").u32(10_000);
    let bytes = writer.finish().unwrap();
    assert_eq!(FromWorker::decode(5, &bytes[HEADER..]), Err(WireError::Truncated));
}

#[test]
fn excessive_length_is_rejected_before_reading() {
    assert!(matches!(body_length([0xff, 0xff, 0xff, 0xff, 5]), Err(WireError::TooLong(_))));
}
