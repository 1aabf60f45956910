use std::time::Duration;

use toolgate_gate::{ApprovalId, Warning};

use super::*;

#[track_caller]
fn check(outcome: Outcome, expect: &Value) {
    let shown = match reply(outcome) {
        Ok(result) => serde_json::to_value(result).unwrap(),
        Err(error) => serde_json::to_value(error).unwrap(),
    };
    assert_eq!(shown, *expect, "{shown:#}");
}

fn release(value: Value, is_structured: bool) -> Outcome {
    Outcome::Released(ReleasedCall { call_id: "c1".into(), value, is_structured, warnings: Vec::new() })
}

fn refusal(reason: Reason, remedy: Option<&str>) -> Outcome {
    Outcome::Refused(RefusedCall {
        call_id: "c1".into(),
        reason,
        to_caller: "no such luck".into(),
        to_operator: "secret reasons".into(),
        remedy: remedy.map(str::to_owned),
    })
}

#[test]
fn strings_become_text_and_data_becomes_json() {
    let complete = |text: &str| {
        json!({
            "resultType": "complete", "isError": false, "_meta": {"dev.toolgate/callId": "c1"},
            "content": [{"type": "text", "text": text}],
        })
    };
    check(release(json!("say \"hi\"\n"), false), &complete("say \"hi\"\n"));
    check(release(json!({"b": 1, "a": [null, 2.5]}), false), &complete(r#"{"b":1,"a":[null,2.5]}"#));
    check(release(json!(7), false), &complete("7"));
    check(release(json!(null), false), &complete("null"));
}

#[test]
fn warnings_are_in_meta() {
    let warnings = vec![Warning { code: "secret.possible", message: "look".into() }];
    let warned = ReleasedCall { call_id: "c1".into(), value: json!("x"), is_structured: false, warnings };
    let expect = json!({
        "resultType": "complete", "isError": false, "content": [{"type": "text", "text": "x"}],
        "_meta": {
            "dev.toolgate/callId": "c1",
            "dev.toolgate/warnings": [{"code": "secret.possible", "message": "look"}],
        },
    });
    check(Outcome::Released(warned), &expect);
}

#[test]
fn declared_output_is_structured_content_and_text() {
    let expect = json!({
        "resultType": "complete", "isError": false, "_meta": {"dev.toolgate/callId": "c1"},
        "content": [{"type": "text", "text": r#"{"n":1}"#}], "structuredContent": {"n": 1},
    });
    check(release(json!({"n": 1}), true), &expect);
}

#[test]
fn media_become_content_blocks_only_if_valid() {
    let blocks = json!([
        {"type": "text", "text": "see"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "test://x", "mimeType": "text/plain", "text": "x"}},
    ]);
    let expect = json!({
        "resultType": "complete", "isError": false, "_meta": {"dev.toolgate/callId": "c1"}, "content": blocks,
    });
    check(release(json!({"$content": blocks}), false), &expect);
    for data in [
        json!({"$content": [{"type": "image"}]}),
        json!({"$content": [{"type": "script", "text": "x"}]}),
        json!({"$content": "text"}),
        json!({"$content": [], "more": 1}),
    ] {
        let expect = json!({
            "resultType": "complete", "isError": false, "_meta": {"dev.toolgate/callId": "c1"},
            "content": [{"type": "text", "text": data.to_string()}],
        });
        check(release(data, false), &expect);
    }
}

#[test]
fn refusal_explains_without_operator_details() {
    let expect = json!({
        "resultType": "complete", "isError": true,
        "content": [{"type": "text", "text": "not run: no such luck\nremedy: ask nicely\n\
            code: decide.policy_forbids (a policy forbids this call)\n\
            retry: does not help; do not make this call again\ncall: c1"}],
        "_meta": {
            "dev.toolgate/callId": "c1",
            "dev.toolgate/denial": {"code": "decide.policy_forbids", "stage": "decide", "retry": "never",
                "callId": "c1", "remedy": "ask nicely"},
        },
    });
    check(refusal(Reason::PolicyForbids, Some("ask nicely")), &expect);
}

#[test]
fn unknown_tool_is_a_protocol_error() {
    let expect = json!({
        "code": -32602, "message": "no such luck; list again",
        "data": {"code": "admit.unknown_tool", "stage": "admit", "retry": "never", "callId": "c1",
            "remedy": "list again"},
    });
    check(refusal(Reason::UnknownTool, Some("list again")), &expect);
}

#[test]
fn failure_ends_with_the_tools_text() {
    let outcome = Outcome::Failed(FailedCall {
        call_id: "c1".into(),
        reason: Reason::ToolFailed,
        to_caller: "boom\nretry: please".into(),
        to_operator: "boom".into(),
        remedy: None,
    });
    let Ok(result) = reply(outcome) else { panic!("no result") };
    let shown = serde_json::to_value(result).unwrap();
    assert_eq!(
        shown["content"][0]["text"],
        "code: execute.tool_failed (the tool threw an error)\nretry: helps with other arguments only\n\
         call: c1\nthe tool failed: boom\nretry: please"
    );
    assert_eq!(shown["_meta"]["dev.toolgate/denial"]["retry"], "change-arguments");
}

#[test]
fn remedy_precedes_the_tools_text() {
    let outcome = Outcome::Failed(FailedCall {
        call_id: "c1".into(),
        reason: Reason::OutputTooLarge,
        to_caller: "it is too large".into(),
        to_operator: "it is too large".into(),
        remedy: Some("ask for less at once".into()),
    });
    let Ok(result) = reply(outcome) else { panic!("no result") };
    let shown = serde_json::to_value(result).unwrap();
    let text = shown["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("remedy: ask for less at once\ncode: filter.too_large"), "{text}");
    assert!(text.ends_with("the tool failed: it is too large"), "{text}");
    assert_eq!(shown["_meta"]["dev.toolgate/denial"]["remedy"], "ask for less at once");
}

#[test]
fn internal_error_reveals_the_call_id_only() {
    let outcome = Outcome::Broken(BrokenCall {
        call_id: "c1".into(),
        reason: Reason::JournalFailed,
        to_operator: "/var/journal: disk full".into(),
    });
    let expect = json!({
        "resultType": "complete", "isError": true, "_meta": {"dev.toolgate/callId": "c1"},
        "content": [{"type": "text", "text":
            "the gateway failed to run call `c1`; the operator can look it up by this id"}],
    });
    check(outcome, &expect);
}

#[test]
fn pending_call_names_its_approval() {
    let approval = ApprovalId::from_random([1; 16]);
    let outcome = Outcome::Pending(PendingCall {
        call_id: "c1".into(),
        approval: approval.clone(),
        prompt: "run it?".into(),
        expires: SystemTime::now() + Duration::from_hours(1),
        client_may_answer: false,
        to_caller: "a person has to approve this call first".into(),
    });
    let Ok(result) = reply(outcome) else { panic!("no result") };
    let shown = serde_json::to_value(result).unwrap();
    let text = shown["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("not run: a person has to approve this call first\napproval: apr_0101"),
        "{text}"
    );
    let denial = &shown["_meta"]["dev.toolgate/denial"];
    assert_eq!(denial["approval"], approval.as_str());
    assert_eq!(
        (&denial["retry"], &denial["code"]),
        (&json!("after-approval"), &json!("decide.approval_pending"))
    );
    assert!(denial["expiresInSeconds"].as_u64().is_some_and(|left| left > 3_000), "{denial}");
}
