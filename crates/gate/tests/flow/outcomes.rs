//! Outcomes of calls: the stage that ends a call, and its journal record.

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Value, json};
use toolgate_gate::{CallLimits, JournalDetail, OnJournalFailure, Outcome, Reason};
use toolgate_policy::{Caller, when};

use crate::fakes::{Does, Settings, World, call, document, shown};

async fn check(does: Does, change: Value, arguments: Value, expect: &str) -> Value {
    let world = World::new(does, &[document("say", &change)]);
    let outcome = world.call("say", arguments).await;
    assert_eq!(shown(&outcome), expect);
    world.assert_paired();
    world.journal.last()
}

#[tokio::test]
async fn result_is_released_and_recorded() {
    let record =
        check(Does::EchoesArguments, json!({}), json!({ "text": "hi" }), r#"released: {"text":"hi"}"#).await;
    assert_eq!(record["decision"], "ALLOWED");
    assert_eq!(record["outcome"], "released");
    assert_eq!(record["stage"], "filter");
    assert_eq!(record["caller"], json!({ "sub": "ann", "permissions": ["reader"] }));
    assert_eq!(record["run"]["layers"], json!(["fake-layer"]));
    assert_eq!(record["toolSafety"]["capabilities"]["network"]["mode"], "blocked");
    assert!(record["response"]["outputHash"].as_str().unwrap().starts_with("sha256:"));
    assert!(record["request"].get("args").is_none(), "arguments are digests unless somebody says otherwise");
}

#[tokio::test]
async fn documented_coercions_are_applied_and_recorded() {
    let record = check(
        Does::EchoesArguments,
        json!({}),
        json!({ "text": "hi", "count": " 3 ", "extra": "{\"a\": 1}" }),
        r#"released: {"count":3,"extra":{"a":1},"text":"hi"}"#,
    )
    .await;
    assert_eq!(record["request"]["coercions"], json!(["count: text → integer", "extra: text → object"]));
    check(
        Does::EchoesArguments,
        json!({}),
        json!({ "text": "hi", "count": null, "extra": "  " }),
        r#"released: {"text":"hi"}"#,
    )
    .await;
}

/// Undeclared members, each of which is noted as absent.
fn many_absent(count: usize, name_length: usize) -> Value {
    let mut arguments = json!({ "text": "hi" });
    for number in 0..count {
        arguments[format!("{number:0name_length$}")] = Value::Null;
    }
    arguments
}

#[tokio::test]
async fn recorded_coercions_are_bounded_and_counted() {
    let (arguments, expect) = (many_absent(300, 4), r#"released: {"text":"hi"}"#);
    let record = check(Does::EchoesArguments, json!({}), arguments, expect).await;
    let noted = record["request"]["coercions"].as_array().unwrap();
    assert_eq!((noted.len(), &noted[19]), (20, &json!("0019: null → absent")));
    assert_eq!(record["request"]["coercionCount"], 300);
}

#[tokio::test]
async fn record_is_written_without_coercions_that_are_too_large() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    let arguments = many_absent(20, 180);
    assert!(matches!(world.call("say", arguments.clone()).await, Outcome::Released(_)));
    // Smaller than the record by less than the coercions take.
    let largest = world.journal.last().to_string().len() - 2_000;
    world.journal.largest.store(largest, Ordering::SeqCst);
    assert_eq!(shown(&world.call("say", arguments).await), r#"released: {"text":"hi"}"#);
    world.assert_paired();
    let request = world.journal.last()["request"].clone();
    assert_eq!((request.get("coercions"), &request["coercionCount"]), (None, &json!(20)));
}

#[tokio::test]
async fn no_other_coercion_is_applied() {
    for (arguments, expect) in [
        (json!({ "text": 1 }), "`/text`: expected a string, got `1`"),
        (json!({ "text": "hi", "count": "3.5" }), "`/count`: expected an integer, got \"3.5\""),
        (json!({ "text": "hi", "count": "0x10" }), "`/count`: expected an integer, got \"0x10\""),
        (json!({ "text": "hi", "count": true }), "`/count`: expected an integer, got `true`"),
        (json!({ "text": "hi", "extra": "[1]" }), "`/extra`: expected an object, got \"[1]\""),
        // Some readers use the first value, others the last.
        (
            json!({ "text": "hi", "extra": r#"{"a":1,"a":2}"# }),
            r#"`/extra`: expected an object, got "{"a":1,"a":2}""#,
        ),
        (json!({ "text": null }), "`the arguments`: expected `text`, got nothing"),
        (json!({}), "`the arguments`: expected `text`, got nothing"),
        (
            json!({ "text": "hi", "other": 1 }),
            "`the arguments`: expected no other members than those declared, got `other`",
        ),
    ] {
        let expect = format!("bind.input_shape: the arguments do not fit: {expect}");
        let record = check(Does::EchoesArguments, json!({}), arguments, &expect).await;
        assert_eq!(record["denial"], json!({ "reason": "bind.input_shape", "stage": "VALIDATION" }));
        assert_eq!(record["decision"], "DENIED");
    }
}

#[tokio::test]
async fn large_and_deep_arguments_are_refused() {
    let long = "x".repeat(5_000);
    check(
        Does::EchoesArguments,
        json!({}),
        json!({ "text": long }),
        "bind.too_large: the arguments have 5011 bytes; at most 4096 are allowed",
    )
    .await;
    let mut deep = json!(1);
    for _ in 0..20 {
        deep = json!([deep]);
    }
    check(
        Does::EchoesArguments,
        json!({}),
        json!({ "text": "hi", "extra": { "a": deep } }),
        "bind.too_large: the arguments nest more than 8 levels deep",
    )
    .await;
}

#[tokio::test]
async fn hidden_and_unknown_tools_get_the_same_answer() {
    let change = json!({ "x-toolgate-permissions": { "required": ["admin"] } });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let hidden = world.call("say", json!({ "text": "hi" })).await;
    world.make_live(&[]);
    let absent = world.call("say", json!({ "text": "hi" })).await;
    let (Outcome::Refused(hidden), Outcome::Refused(absent)) = (&hidden, &absent) else {
        panic!("not refused")
    };
    assert_eq!(hidden.to_caller, absent.to_caller);
    assert_eq!((hidden.reason, &hidden.remedy), (absent.reason, &absent.remedy));
    assert_ne!(hidden.to_operator, absent.to_operator, "the operator is told");
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn caller_sees_only_callable_tools() {
    let hidden = json!({ "x-toolgate-permissions": { "required": ["admin"] } });
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({})), document("rule", &hidden)]);
    let names = |caller: &Caller| -> Vec<String> {
        world.gate.list(caller).iter().map(|tool| tool.name().to_owned()).collect()
    };
    assert_eq!(names(&Caller::new("ann", ["reader"])), ["say"]);
    assert_eq!(names(&Caller::new("root", ["admin"])), ["say", "rule"]);
}

#[tokio::test]
async fn pages_have_list_order_and_end() {
    let documents: Vec<Value> =
        (0..5).map(|number| document(&format!("tool_{number}"), &json!({}))).collect();
    let world = World::new(Does::EchoesArguments, &documents);
    let caller = Caller::new::<String>("ann", []);
    let mut seen = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let (page, next) = world.gate.page(&caller, after.as_deref(), 2).unwrap();
        seen.extend(page.iter().map(|tool| tool.name().to_owned()));
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["tool_0", "tool_1", "tool_2", "tool_3", "tool_4"]);
    assert!(world.gate.page(&caller, Some("gone"), 2).is_none());
}

#[tokio::test]
async fn elevated_permission_is_required_if_its_condition_matches() {
    let change = json!({ "x-toolgate-permissions": {
        "required": ["reader"],
        "elevated": [{ "when": { "properties": { "count": { "minimum": 10 } }, "required": ["count"] }, "require": ["bulk"] }],
    } });
    check(
        Does::EchoesArguments,
        change.clone(),
        json!({ "text": "hi", "count": 1 }),
        r#"released: {"count":1,"text":"hi"}"#,
    )
    .await;
    check(
        Does::EchoesArguments,
        change,
        json!({ "text": "hi", "count": 10 }),
        "decide.missing_permission: this call needs more permissions: missing `bulk`",
    )
    .await;
}

#[tokio::test]
async fn policy_in_code_can_forbid() {
    let no_greetings = when(|_, _, args| args.get("text") != Some(&json!("hi")), "no greetings");
    let settings = Settings { policy: Arc::new(no_greetings), ..Settings::default() };
    let world = World::with(Does::EchoesArguments, &[document("say", &json!({}))], settings);
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(shown(&outcome), "decide.policy_forbids: a policy forbids this call: no greetings");
    assert_eq!(world.fake.runs(), 0);
    assert!(matches!(world.call("say", json!({ "text": "ho" })).await, Outcome::Released(_)));
}

#[tokio::test]
async fn failed_run_is_recorded_with_its_isolation_layers() {
    let record = check(
        Does::Fails(Reason::Timeout, "not done after 30000 ms"),
        json!({}),
        json!({ "text": "hi" }),
        "execute.timeout: not done after 30000 ms",
    )
    .await;
    assert_eq!(record["decision"], "ERROR");
    assert_eq!(record["denial"]["stage"], "EXECUTION");
    assert_eq!(record["run"]["layers"], json!(["fake-layer"]));
}

#[tokio::test]
async fn output_that_violates_its_schema_is_withheld() {
    let change = json!({ "x-toolgate-output": {
        "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"],
    } });
    let record = check(
        Does::Returns(json!({ "sum": "private" })),
        change,
        json!({ "text": "hi" }),
        "filter.output_shape: the result does not fit the tool's output schema; it was withheld",
    )
    .await;
    assert!(record["message"].as_str().unwrap().contains("`/properties/sum/type`: expected a number"));
}

#[tokio::test]
async fn output_beyond_its_size_limit_is_withheld() {
    let change = json!({ "x-toolgate-capability": { "execution": { "maxOutputSize": 1000 } } });
    let world = World::new(Does::Returns(json!("x".repeat(2_000))), &[document("say", &change)]);
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    let expect = "filter.too_large: the result has 2002 bytes; this tool may return 1000";
    assert_eq!((shown(&outcome).as_str(), outcome.remedy()), (expect, Some("ask for less at once")));
}

#[tokio::test]
async fn output_policy_applies_to_fields() {
    let change = json!({ "x-toolgate-outputPolicy": { ".user.name": "allow", ".user.email": "mask" } });
    let record = check(
        Does::Returns(json!({ "user": { "name": "Ada", "email": "ada@example.com", "ssn": "1" }, "rows": [{ "x": 1 }] })),
        change,
        json!({ "text": "hi" }),
        r#"released: {"user":{"name":"Ada","email":"a***m"}}"#,
    )
    .await;
    assert_eq!(record["response"]["redactedFields"], json!([".user.email", ".user.ssn", ".rows.x"]));
}

/// Fields without a rule are not released, not even their number.
#[tokio::test]
async fn output_policy_applies_to_every_item_of_a_list() {
    let rows = json!([
        { "name": "Ada", "ssn": "1", "tags": ["x", "secret"] },
        { "ssn": "2" },
        { "name": "Bo", "more": [{ "ssn": "3" }] },
    ]);
    let change = json!({ "x-toolgate-outputPolicy": { "[].name": "allow", ".tags": "mask" } });
    let record = check(
        Does::Returns(rows.clone()),
        change,
        json!({ "text": "hi" }),
        // A masked list is masked as a whole.
        r#"released: [{"name":"Ada"},{"name":"Bo"}]"#,
    )
    .await;
    assert_eq!(record["response"]["redactedFields"], json!([".ssn", ".tags", ".more.ssn"]));
    let change = json!({ "x-toolgate-outputPolicy": { ".other": "allow" } });
    check(Does::Returns(rows), change, json!({ "text": "hi" }), "released: []").await;
}

/// A text is a result without fields. Only a rule for everything releases it.
#[tokio::test]
async fn output_policy_applies_to_a_text_and_a_list_of_texts() {
    let text = "Ada, born 1815";
    for (rule, expect) in [
        (json!({ ".name": "allow" }), "released: null"),
        (json!({ ".": "mask" }), r#"released: "A***5""#),
        (json!({ "*": "allow" }), r#"released: "Ada, born 1815""#),
        (json!({}), "released: null"),
    ] {
        let change = json!({ "x-toolgate-outputPolicy": rule });
        let record = check(Does::Returns(json!(text)), change, json!({ "text": "hi" }), expect).await;
        let redacted = if expect.ends_with("1815\"") { json!([]) } else { json!(["."]) };
        assert_eq!(record["response"]["redactedFields"], redacted, "{expect}");
    }
    let change = json!({ "x-toolgate-outputPolicy": { ".name": "allow" } });
    let texts = Does::Returns(json!([text, [text], 1815]));
    check(texts, change, json!({ "text": "hi" }), "released: []").await;
}

/// Covers every way into the journal: as a value, a number, a name, or in a message of the tool.
#[tokio::test]
async fn redact_patterns_apply_to_the_journal() {
    let audit = json!({ "logArgs": true, "logOutput": true, "redactPatterns": ["[0-9]{4}-?[0-9]{4}"] });
    let change = json!({ "x-toolgate-capability": { "audit": audit } });
    let arguments = json!({
        "text": "card 1234-5678 of Ada",
        "extra": { "deep": ["12345678", { "n": 12_345_678 }], "1234-5678": 1, "8765-4321": 2 },
    });
    let shown_of = json!({
        "text": "card [REDACTED] of Ada",
        "extra": { "deep": ["[REDACTED]", { "n": "[REDACTED]" }], "[REDACTED]": 1, "[REDACTED] (2)": 2 },
    });
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let Outcome::Released(released) = world.call("say", arguments.clone()).await else { panic!() };
    assert_eq!(released.value, arguments, "what is released is not the journal's");
    let record = world.journal.last();
    assert_eq!(record["request"]["args"], shown_of);
    assert_eq!(record["response"]["output"], shown_of);
    let fails = Does::Fails(Reason::ToolFailed, "no account 1234-5678");
    let failing = World::new(fails, &[document("say", &change)]);
    let _ = failing.call("say", json!({ "text": "hi" })).await;
    assert_eq!(failing.journal.last()["message"], "no account [REDACTED]");
    for record in world.journal.records().iter().chain(&failing.journal.records()) {
        let text = record.to_string();
        assert!(!text.contains("1234-5678") && !text.contains("12345678"), "{text}");
    }
}

/// A tool, or the data it reads, chooses the names in a result. With quadratic cost this would take hours.
#[tokio::test]
async fn many_names_that_redaction_makes_equal_are_kept_apart() {
    let audit = json!({ "logOutput": true, "redactPatterns": ["k[0-9]+"] });
    let capability = json!({ "audit": audit, "data": { "sanitizeOutput": false } });
    let many: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("k{n}"), json!(n))).collect();
    let change = json!({ "x-toolgate-capability": capability });
    let world = World::new(Does::Returns(Value::Object(many)), &[document("say", &change)]);
    assert!(matches!(world.call("say", json!({ "text": "hi" })).await, Outcome::Released(_)));
    let record = world.journal.last();
    let written = record["response"]["output"].as_object().unwrap();
    assert_eq!((written.len(), &written["[REDACTED] (50000)"]), (50_000, &json!(49_999)));
}

/// A pattern for everything leaves the names of parameters, which the author wrote.
#[tokio::test]
async fn redact_pattern_for_everything_leaves_parameter_names() {
    let audit = json!({ "logArgs": true, "redactPatterns": [".*"] });
    let change = json!({ "x-toolgate-capability": { "audit": audit } });
    let world = World::new(Does::Returns(json!(1)), &[document("say", &change)]);
    let _ = world.call("say", json!({ "text": "to ann\nhello", "count": 2 })).await;
    let written = world.journal.last()["request"]["args"].clone();
    assert_eq!(written, json!({ "text": "[REDACTED]\n[REDACTED]", "count": "[REDACTED]" }));
}

#[tokio::test]
async fn without_an_opening_record_nothing_runs() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.journal.is_full.store(true, Ordering::SeqCst);
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(shown(&outcome), "journal.not_written: no space left on device");
    assert_eq!(world.fake.runs(), 0);
}

#[tokio::test]
async fn without_a_closing_record_nothing_is_released() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.journal.is_full.store(true, Ordering::SeqCst);
    world.journal.room.store(1, Ordering::SeqCst);
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(shown(&outcome), "journal.not_written: no space left on device");
    assert_eq!(world.fake.runs(), 1);
    let Outcome::Broken(broken) = outcome else { panic!("not broken") };
    assert!(!broken.to_caller().contains("space"), "a caller learns the id and nothing else");
}

#[tokio::test]
async fn continuing_without_a_journal_is_configured_and_marked() {
    let settings = Settings { on_failure: OnJournalFailure::Continue, ..Settings::default() };
    let world = World::with(Does::EchoesArguments, &[document("say", &json!({}))], settings);
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(shown(&outcome), r#"released: {"text":"hi"}"#);
    assert_eq!(world.journal.last()["auditMode"], "continue");
    world.journal.is_full.store(true, Ordering::SeqCst);
    assert_eq!(shown(&world.call("say", json!({ "text": "hi" })).await), r#"released: {"text":"hi"}"#);
}

#[tokio::test]
async fn arguments_in_the_journal_are_masked() {
    let settings = Settings { journal_detail: JournalDetail::Everything, ..Settings::default() };
    let change = json!({ "x-toolgate-piiFields": [".extra.phone"] });
    let world = World::with(Does::Returns(json!(1)), &[document("say", &change)], settings);
    let arguments =
        json!({ "text": "the s3cr3t-value of it", "extra": { "phone": "123", "s3cr3t-value": 1 } });
    assert_eq!(shown(&world.call("say", arguments).await), "released: 1");
    let written = world.journal.last()["request"]["args"].clone();
    assert_eq!(written, json!({ "text": "the *** of it", "extra": { "phone": "***", "***": 1 } }));
    assert!(!world.journal.records().iter().any(|record| record.to_string().contains("s3cr3t")));
}

#[tokio::test]
async fn records_in_debug_mode_are_marked() {
    let settings = Settings { journal_detail: JournalDetail::Everything, ..Settings::default() };
    let world = World::with(Does::EchoesArguments, &[document("say", &json!({}))], settings);
    drop(world.call("say", json!({ "text": "hi" })).await);
    let records = world.journal.records();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|record| record["debug"] == true), "{records:?}");
    let plain = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    drop(plain.call("say", json!({ "text": "hi" })).await);
    assert!(plain.journal.records().iter().all(|record| record.get("debug").is_none()));
}

#[tokio::test]
async fn records_name_the_category_of_the_tool() {
    let documents = [document("say", &json!({ "category": "TEXT" })), document("shout", &json!({}))];
    let world = World::new(Does::EchoesArguments, &documents);
    drop(world.call("say", json!({ "text": "hi" })).await);
    let record = world.journal.last();
    assert_eq!(record["tool"]["category"], "TEXT");
    assert_eq!(record["tool"]["name"], "say");
    drop(world.call("shout", json!({ "text": "hi" })).await);
    assert!(world.journal.last()["tool"].get("category").is_none());
}

#[tokio::test]
async fn depth_limit_applies_to_json_in_text() {
    let deep = format!("{}1{}", "{\"a\":".repeat(20), "}".repeat(20));
    check(
        Does::EchoesArguments,
        json!({}),
        json!({ "text": "hi", "extra": deep }),
        "bind.too_large: the arguments nest more than 8 levels deep",
    )
    .await;
}

#[tokio::test]
async fn record_is_written_without_parts_that_are_too_large() {
    let settings = Settings { journal_detail: JournalDetail::Everything, ..Settings::default() };
    let world =
        World::with(Does::Returns(json!("x".repeat(50_000))), &[document("say", &json!({}))], settings);
    world.journal.largest.store(20_000, Ordering::SeqCst);
    assert!(matches!(world.call("say", json!({ "text": "hi" })).await, Outcome::Released(_)));
    world.assert_paired();
    assert!(world.journal.last()["response"].get("output").is_none());
}

/// Starts a call that never ends, for a caller with one run slot.
async fn with_the_only_slot_taken(waiting: usize) -> (Arc<World>, tokio::task::JoinHandle<Outcome>) {
    let calls = CallLimits { calls_per_caller: 1, waiting, ..Settings::default().calls };
    let settings = Settings { calls, ..Settings::default() };
    let world = Arc::new(World::with(Does::NeverEnds, &[document("say", &json!({}))], settings));
    let running = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.call("say", json!({ "text": "hi" })).await }
    });
    while world.fake.runs() == 0 {
        tokio::task::yield_now().await;
    }
    (world, running)
}

#[tokio::test]
async fn call_that_finds_the_queue_full_is_refused() {
    let (world, running) = with_the_only_slot_taken(0).await;
    let outcome = world.call("say", json!({ "text": "hi" })).await;
    assert_eq!(
        shown(&outcome),
        "execute.busy: too many calls are waiting for a run slot (`limits.waiting` is 0)"
    );
    running.abort();
    drop(running.await);
    world.assert_paired();
}

#[tokio::test]
async fn call_beyond_the_callers_limit_runs_when_another_one_ends() {
    let (world, running) = with_the_only_slot_taken(1).await;
    let second = tokio::spawn({
        let world = Arc::clone(&world);
        async move { world.call("say", json!({ "text": "hi" })).await }
    });
    while world.gate.open_calls() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.fake.runs(), 1);
    running.abort();
    drop(running.await);
    while world.fake.runs() < 2 {
        assert!(!second.is_finished(), "the waiting call was refused");
        tokio::task::yield_now().await;
    }
    second.abort();
    drop(second.await);
    world.assert_paired();
}

#[tokio::test]
async fn stopping_gate_refuses_calls() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.gate.begin_shutdown();
    let outcome = world.gate.handle(call("say", json!({ "text": "hi" }))).await;
    assert_eq!(outcome.reason(), Some(Reason::ShuttingDown));
    world.assert_paired();
}
