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
fn frames_of_the_worker_come_back_as_sent_and_never_shortened() {
    check_back(&FromWorker::Ready { strength: 7 });
    check_back(&FromWorker::Missing);
    check_back(&FromWorker::Unloadable(Ending::Escaped));
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
        ending: Ending::Value("{}".into()),
        console: vec![(b'l', "hello".into())],
        console_dropped: 2,
        usage: Usage { fuel: 1, memory_bytes: 2, host_calls: 3, host_bytes: 4, elapsed_us: 5 },
    })));
}

#[test]
fn frames_of_the_gateway_come_back_as_sent() {
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
        ToWorker::Start(Start { cpu_seconds: 9, namespaces: true }),
        ToWorker::Load(Load { key: [1; 32], grants: 3, names: "[]".into(), source: "()".into() }),
        ToWorker::Run(Run { key: [2; 32], limits, seed: 1, arguments: "{}".into() }),
        ToWorker::Answer(EffectAnswer::Json("1".into())),
    ] {
        let bytes = frame.encode().unwrap();
        assert_eq!(ToWorker::decode(bytes[4], &bytes[HEADER..]).unwrap(), frame);
    }
}

#[test]
fn what_fits_is_what_the_other_end_reads() {
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
        let bytes = FromWorker::Effect(effect.clone()).encode().unwrap();
        assert_eq!(effect.fits(), FromWorker::decode(bytes[4], &bytes[HEADER..]).is_ok());
    }
}

#[test]
fn a_count_never_outgrows_its_frame() {
    // A Done frame that announces ten thousand console lines and carries none.
    let mut writer = Writer::new(5);
    writer.u8(1).text("").u32(10_000);
    let bytes = writer.finish().unwrap();
    assert_eq!(FromWorker::decode(5, &bytes[HEADER..]), Err(WireError::Truncated));
}

#[test]
fn a_length_beyond_the_cap_is_refused_before_anything_is_read() {
    assert!(matches!(body_length([0xff, 0xff, 0xff, 0xff, 5]), Err(WireError::TooLong(_))));
}
