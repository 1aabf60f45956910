use super::*;
use crate::wire::{FetchAnswer, HEADER, JsonAnswer, MAX_FRAME};

/// Decodes an answer like a worker does.
#[track_caller]
fn decoded(answer: EffectAnswer) -> (EffectAnswer, u64) {
    let (frame, payload) = encode_answer(answer).unwrap();
    match ToWorker::decode(frame[4], &frame[HEADER..]) {
        Ok(ToWorker::Answer(answer)) => (answer, payload),
        other => panic!("{other:?}"),
    }
}

/// A worker that cannot decode its answer ends, and its call with it, as if it were compromised.
#[test]
fn answer_that_no_worker_accepts_is_an_error_for_the_tool() {
    let fetched = FetchAnswer {
        status: 200,
        url: "https://a.example/".into(),
        redirected: false,
        headers: vec![("x".into(), "y".into())],
        full_length: 1,
        body: vec![0],
    };
    let error = EffectError {
        kind: "SECURITY".into(),
        helper: "fetch".into(),
        reason: "no".into(),
        message: "No.".into(),
        moved: 3,
    };
    let long = |bytes: usize| "\u{e9}".repeat(bytes / 2 + 1);
    for answer in [
        EffectAnswer::Fetched(FetchAnswer { url: long(64 << 10), ..fetched.clone() }),
        EffectAnswer::Fetched(FetchAnswer { headers: vec![("x".into(), long(64 << 10))], ..fetched.clone() }),
        EffectAnswer::Fetched(FetchAnswer { headers: vec![(long(64 << 10), "y".into())], ..fetched.clone() }),
        EffectAnswer::Fetched(FetchAnswer {
            headers: vec![("x".into(), "y".into()); 1_001],
            ..fetched.clone()
        }),
        EffectAnswer::Fetched(FetchAnswer { body: vec![0; MAX_FRAME], ..fetched.clone() }),
        EffectAnswer::Json(JsonAnswer { text: " ".repeat(MAX_FRAME), moved: 0 }),
        EffectAnswer::Refused(EffectError { kind: long(200), ..error.clone() }),
        EffectAnswer::Refused(EffectError { helper: long(200), ..error.clone() }),
        EffectAnswer::Refused(EffectError { reason: long(200), ..error.clone() }),
        EffectAnswer::Refused(EffectError { message: long(64 << 10), ..error.clone() }),
    ] {
        let moved = answer.payload();
        match decoded(answer) {
            (EffectAnswer::Refused(refused), payload) => {
                assert_eq!((refused.reason.as_str(), refused.moved), ("result-too-large", moved));
                assert!(payload >= moved);
            }
            (other, _) => panic!("{other:?}"),
        }
    }
    for answer in [EffectAnswer::Fetched(fetched), EffectAnswer::Refused(error)] {
        let payload = answer.payload();
        assert_eq!(decoded(answer.clone()), (answer, payload));
    }
}
