//! Leaks: secrets, control characters and `alertOn` texts in everything that leaves a call, and the targets of a call.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolgate_gate::{
    ApprovalQueue, ApprovalState, Clock, Decider, EffectEntry, EffectKind, JournalDetail, Outcome, Reason,
    Refusal, SurveyQuestion, Touch,
};

use toolgate_policy::DecisionSource;

use crate::fakes::{Does, FakeSurvey, Settings, World, call, document, shown};

/// Well formed, and not in use anywhere.
fn token() -> String {
    format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc")
}

fn capability(block: &Value) -> Value {
    json!({ "x-toolgate-capability": block })
}

#[tokio::test]
async fn secret_in_a_result_is_redacted_and_recorded_by_its_rule() {
    let world = World::new(
        Does::Returns(json!({ "log": format!("login with {} done", token()), "n": 1 })),
        &[document("say", &json!({}))],
    );
    let Outcome::Released(released) = world.call("say", json!({ "text": "x" })).await else { panic!() };
    let text = released.value.to_string();
    assert!(!text.contains(&token()) && text.contains("[REDACTED:") && text.contains("done"), "{text}");
    let record = world.journal.last();
    assert_eq!(record["response"]["secrets"][0]["tier"], "definite");
    assert!(!record.to_string().contains(&token()));
}

/// A possible secret is released with a warning for the reader and the operator.
#[tokio::test]
async fn possible_secret_causes_a_warning() {
    let digits = "8473f88bde538325c456a9920597ecfe5127ec1a09920557";
    let text = format!("the signing secret used for cookies is {digits} today");
    let world = World::new(Does::Returns(json!({ "log": text })), &[document("say", &json!({}))]);
    let Outcome::Released(released) = world.call("say", json!({ "text": "x" })).await else { panic!() };
    assert_eq!(released.value, json!({ "log": text }));
    let [warning] = &released.warnings[..] else { panic!("{:?}", released.warnings) };
    assert_eq!(warning.code, "secret.possible");
    assert!(!warning.message.contains(digits), "{}", warning.message);
    let record = world.journal.last();
    assert_eq!(record["response"]["secrets"][0]["tier"], "possible");
    assert!(!record.to_string().contains(digits), "{record}");
    let counted: Vec<_> = world.gate.metrics().secrets().collect();
    assert_eq!(counted, [("definite", 0), ("probable", 0), ("possible", 1)]);
}

#[tokio::test]
async fn probable_secret_is_redacted_with_a_warning() {
    let text = "postgres://ann:h4rd2guess@db.example/x";
    let world = World::new(Does::Returns(json!({ "log": text })), &[document("say", &json!({}))]);
    let Outcome::Released(released) = world.call("say", json!({ "text": "x" })).await else { panic!() };
    assert!(!released.value.to_string().contains("h4rd2guess"), "{}", released.value);
    assert!(released.warnings.iter().any(|warning| warning.code == "secret.probable"));
    let plain = World::new(Does::Returns(json!("plain")), &[document("say", &json!({}))]);
    let Outcome::Released(released) = plain.call("say", json!({ "text": "x" })).await else { panic!() };
    assert!(released.warnings.is_empty());
}

#[tokio::test]
async fn tool_can_disable_output_redaction() {
    let change = capability(&json!({ "data": { "sanitizeOutput": false } }));
    let world = World::new(Does::Returns(json!(token())), &[document("say", &change)]);
    let outcome = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(shown(&outcome), format!("released: {:?}", token()));
}

#[tokio::test]
async fn secret_argument_is_refused_for_a_tool_that_sends_data() {
    let leaky = capability(&json!({ "approval": { "level": "auto" }, "data": { "canLeakData": true } }));
    let world = World::new(Does::EchoesArguments, &[document("say", &leaky)]);
    let outcome = world.call("say", json!({ "text": format!("key: {}", token()) })).await;
    assert!(shown(&outcome).starts_with("check.secret_to_sink"), "{}", shown(&outcome));
    assert_eq!(world.fake.runs(), 0);
    let outcome = world.call("say", json!({ "text": "postgres://ann:h4rd2guess@db.example/x" })).await;
    assert!(matches!(outcome, Outcome::Pending(_)), "{}", shown(&outcome));
    assert_eq!(world.fake.runs(), 0);
    let harmless = world.call("say", json!({ "text": "nothing of the kind" })).await;
    assert!(matches!(harmless, Outcome::Released(_)), "{}", shown(&harmless));
    world.assert_paired();
}

#[tokio::test]
async fn recorded_arguments_contain_no_secret() {
    let change = capability(&json!({ "audit": { "logArgs": true } }));
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let _ = world.call("say", json!({ "text": token(), "extra": { "password": "hunter2", "n": 1 } })).await;
    let arguments = &world.journal.last()["request"]["args"];
    assert_eq!(*arguments, json!({ "text": "[REDACTED]", "extra": { "password": "[REDACTED]", "n": 1 } }));
}

/// Everything that a result would lose, because of a field's name or the next item of a list.
#[tokio::test]
async fn recorded_arguments_are_searched_as_a_whole() {
    let change = capability(&json!({ "audit": { "logArgs": true } }));
    let world = World::new(Does::EchoesArguments, &[document("say", &change)]);
    let edge = |word: &str| format!("-----{word} PRIVATE KEY-----");
    let body = "rG3nmfZN/3yKJyF3GINhFLUTv7Zh0eLhjopfdLi+YuAzWLLazZACmtxyT/SDvrrS";
    let opaque = "q7Zk2mVx9TbLw4Rs8NyPd3Hc";
    let extra = json!({ "token": opaque, "key": [edge("BEGIN"), body, body, body, edge("END")], "n": 1 });
    let _ = world.call("say", json!({ "text": "x", "extra": extra })).await;
    let arguments = &world.journal.last()["request"]["args"];
    assert_eq!(arguments["text"], "x");
    assert_eq!(arguments["extra"]["token"], "[REDACTED]");
    assert_eq!(arguments["extra"]["key"].as_array().unwrap().len(), 5, "{arguments}");
    assert!(!world.journal.last().to_string().contains("rG3nmfZN"), "{arguments}");
}

#[tokio::test]
async fn control_characters_are_escaped() {
    let world =
        World::new(Does::Returns(json!({ "t": "\u{1b}[2Jgone\u{202e}" })), &[document("say", &json!({}))]);
    let outcome = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(shown(&outcome), r#"released: {"t":"\\u{1b}[2Jgone\\u{202e}"}"#);
    let fails = Does::Fails(Reason::ToolFailed, "broken \u{1b}]0;title\u{7} here");
    let world = World::new(fails, &[document("say", &json!({}))]);
    let outcome = world.call("say", json!({ "text": "x" })).await;
    assert!(shown(&outcome).contains("\\u{1b}]0;title\\u{7}"), "{}", shown(&outcome));
}

#[tokio::test]
async fn alert_texts_are_recorded_and_do_not_stop_the_call() {
    let change = capability(&json!({ "audit": { "alertOn": ["rm -rf /", "launch"] } }));
    let world = World::new(Does::Returns(json!("launch")), &[document("say", &change)]);
    let outcome = world.call("say", json!({ "text": "rm -rf / now" })).await;
    assert!(matches!(outcome, Outcome::Released(_)));
    assert_eq!(world.journal.last()["alerts"], json!(["rm -rf /", "launch"]));
    assert_eq!(world.gate.metrics().alerts(), 2);
    let _ = world.call("say", json!({ "text": "hello" })).await;
    assert_eq!(world.journal.last()["alerts"], json!(["launch"]));
}

#[tokio::test]
async fn targets_are_recorded_and_a_refusal_ends_the_call() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.fake.survey_with(Ok(FakeSurvey {
        touches: vec![Touch { kind: EffectKind::Read, target: "/srv/a".to_owned() }],
        ..FakeSurvey::default()
    }));
    let _ = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(world.journal.last()["touches"], json!([{ "what": "read", "target": "/srv/a" }]));
    world.fake.survey_with(Err(Refusal {
        reason: Reason::PathOutsideRoots,
        message: "`/etc/passwd` is outside".to_owned(),
        remedy: "name another".to_owned(),
    }));
    let outcome = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(shown(&outcome), "check.path_outside_roots: `/etc/passwd` is outside");
    assert_eq!(world.fake.runs(), 1);
    world.assert_paired();
}

/// An approval of one file does not cover another file that a symlink leads to later.
#[tokio::test]
async fn approval_is_bound_to_the_targets() {
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    let touching = |target: &str| FakeSurvey {
        touches: vec![Touch { kind: EffectKind::Read, target: target.to_owned() }],
        questions: vec![SurveyQuestion { source: DecisionSource::UnknownHost, why: "asked".to_owned() }],
        ..FakeSurvey::default()
    };
    world.fake.survey_with(Ok(touching("/srv/a")));
    let Outcome::Pending(pending) = world.call("say", json!({ "text": "x" })).await else { panic!() };
    let now = world.clock.now();
    world
        .queue
        .decide(&pending.approval, ApprovalState::Approved, &Decider::Operator("operator"), None, now)
        .unwrap();
    world.fake.survey_with(Ok(touching("/srv/other")));
    let other = world.call("say", json!({ "text": "x" })).await;
    assert!(matches!(other, Outcome::Pending(_)), "{}", shown(&other));
    assert_eq!(world.fake.runs(), 0);
    world.fake.survey_with(Ok(touching("/srv/a")));
    let same = world.call("say", json!({ "text": "x" })).await;
    assert!(matches!(same, Outcome::Released(_)), "{}", shown(&same));
}

/// Checks every source of text in a record.
#[tokio::test]
async fn no_text_of_a_record_contains_a_secret() {
    let touched = Touch { kind: EffectKind::Read, target: format!("/srv/{}", token()) };
    let asked =
        SurveyQuestion { source: DecisionSource::UnknownHost, why: format!("{} is unknown", token()) };
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.fake.survey_with(Ok(FakeSurvey { touches: vec![touched], ..FakeSurvey::default() }));
    *world.fake.effects.lock().unwrap() = (
        vec![EffectEntry {
            kind: EffectKind::Fetch,
            what: "fetch GET".to_owned(),
            target: format!("https://x.example/?key={}", token()),
            to: Some(format!("/srv/{}", token())),
            outcome: format!("refused {}", token()),
            bytes: 1,
            elapsed: std::time::Duration::ZERO,
        }],
        vec![format!("open /srv/{}", token())],
    );
    let _ = world.call("say", json!({ "text": "x" })).await;
    let record = world.journal.last();
    assert_eq!(record["touches"][0]["target"], "/srv/[REDACTED]");
    assert_eq!(record["run"]["effects"][0]["what"], "fetch GET");
    assert_eq!(record["run"]["effects"][0]["to"], "/srv/[REDACTED]");
    assert_eq!(record["run"]["refused"], json!(["open /srv/[REDACTED]"]));
    world.fake.survey_with(Err(Refusal {
        reason: Reason::PathOutsideRoots,
        message: format!("`/etc/{}` is outside", token()),
        remedy: "name another".to_owned(),
    }));
    let _ = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(world.journal.last()["message"], "`/etc/[REDACTED]` is outside");
    world.fake.survey_with(Ok(FakeSurvey { questions: vec![asked], ..FakeSurvey::default() }));
    let _ = world.call("say", json!({ "text": "x" })).await;
    let _ = world.call(&token(), json!({})).await;
    let mut named = call("say", json!({ "text": "x" }));
    named.client.name = Some(token());
    let _ = world.gate.handle(named).await;
    assert!(!format!("{:?}", world.journal.records()).contains(&token()));
    assert!(!format!("{:?}", world.queue.all()).contains(&token()));
    world.assert_paired();
}

/// A secret of the tool that matches no rule: only the tool's mask knows it. Here the caller knows it and passes it as
/// an argument.
#[tokio::test]
async fn secrets_of_the_tool_are_masked_in_all_texts() {
    const SECRET: &str = "s3cr3t-value";
    let detector = toolgate_secrets::Detector::shipped().unwrap();
    let touched = Touch { kind: EffectKind::Read, target: format!("/srv/{SECRET}") };
    let asked =
        SurveyQuestion { source: DecisionSource::UnknownHost, why: format!("`{SECRET}.example` is unknown") };
    for text in [&touched.target, &asked.why] {
        assert_eq!(detector.redact(text, toolgate_secrets::Tier::Possible).text, *text, "no rule finds it");
    }
    let world = World::new(Does::EchoesArguments, &[document("say", &json!({}))]);
    world.fake.survey_with(Ok(FakeSurvey {
        touches: vec![touched],
        questions: vec![asked],
        ..FakeSurvey::default()
    }));
    let outcome = world.call("say", json!({ "text": "x", (SECRET): null })).await;
    assert!(matches!(outcome, Outcome::Pending(_)), "{}", shown(&outcome));
    assert_eq!(world.queue.only().question.because, ["unknown_host: `***.example` is unknown"]);
    let record = world.journal.last();
    assert_eq!(record["touches"][0], json!({ "what": "read", "target": "/srv/***" }));
    assert_eq!(record["decisions"][1]["why"], "`***.example` is unknown");
    assert_eq!(record["request"]["coercions"], json!(["***: null → absent"]));
    world.fake.survey_with(Err(Refusal {
        reason: Reason::PathOutsideRoots,
        message: format!("`/etc/{SECRET}` is outside"),
        remedy: "name another".to_owned(),
    }));
    let _ = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(world.journal.last()["message"], "`/etc/***` is outside");
    assert!(!format!("{:?} {:?}", world.journal.records(), world.queue.all()).contains(SECRET));
}

/// The caller gets an error message without probable secrets, and the journal gets it without possible ones.
#[tokio::test]
async fn error_message_is_recorded_without_secrets() {
    let thrown: &'static str = format!("login with {} failed", token()).leak();
    let world = World::new(Does::Fails(Reason::ToolFailed, thrown), &[document("say", &json!({}))]);
    let outcome = world.call("say", json!({ "text": "x" })).await;
    assert!(
        !shown(&outcome).contains(&token()) && shown(&outcome).ends_with(" failed"),
        "{}",
        shown(&outcome)
    );
    assert!(!format!("{:?}", world.journal.records()).contains(&token()));
    let hidden: &'static str = token().replacen('1', "1\u{200b}", 1).leak();
    let world = World::new(Does::Fails(Reason::ToolFailed, hidden), &[document("say", &json!({}))]);
    let outcome = world.call("say", json!({ "text": "x" })).await;
    assert!(!shown(&outcome).contains("200b"), "{}", shown(&outcome));
}

#[tokio::test]
async fn approver_and_queue_get_no_secret() {
    let asks = capability(&json!({ "approval": { "level": "ask" } }));
    let mut with_template = document("tell", &asks);
    with_template["humanInTheLoop"] =
        json!({ "mode": "REQUIRED", "promptTemplate": "Say {args.text}, with {args}?" });
    for (name, tool) in [("say", document("say", &asks)), ("tell", with_template)] {
        let world = World::new(Does::EchoesArguments, &[tool]);
        let text = format!("line\n{}\nnext postgres://ann:h4rd2guess@db.example/x", token());
        let Outcome::Pending(pending) = world.call(name, json!({ "text": text })).await else { panic!() };
        let seen = format!("{} {:?}", pending.prompt, world.queue.only());
        assert!(!seen.contains(&token()) && !seen.contains("h4rd2guess"), "{seen}");
        assert!(pending.prompt.contains("[REDACTED:") && pending.prompt.contains("next"), "{seen}");
    }
}

/// A command's output is redacted in its message, but searched for alerts before that.
#[tokio::test]
async fn alert_texts_in_hidden_error_output_are_recorded() {
    let change = capability(&json!({ "audit": { "alertOn": ["xoxb-"] } }));
    let unredacted: &'static str = format!("cannot log in with {}", token()).leak();
    let world = World::new(Does::FailsHeard(unredacted), &[document("say", &change)]);
    let outcome = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(world.journal.last()["alerts"], json!(["xoxb-"]));
    assert_eq!(world.gate.metrics().alerts(), 1);
    let seen = format!("{outcome:?} {:?}", world.journal.records());
    assert!(!seen.contains(&token()), "{seen}");
}

/// Also covers a text that JSON escapes, and a call that is refused.
#[tokio::test]
async fn alerts_cover_each_text_and_refused_calls() {
    let change = capability(&json!({ "audit": { "alertOn": ["say \"hi\"\nnow", "launch"] } }));
    let world = World::new(Does::Returns(json!(["so: say \"hi\"\nnow."])), &[document("say", &change)]);
    let _ = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(world.journal.last()["alerts"], json!(["say \"hi\"\nnow"]));
    world.fake.survey_with(Err(Refusal {
        reason: Reason::PathBlocked,
        message: "blocked".to_owned(),
        remedy: "name another".to_owned(),
    }));
    let _ = world.call("say", json!({ "text": "launch" })).await;
    assert_eq!(world.journal.last()["alerts"], json!(["launch"]));
    for misfit in [json!({ "text": "x", "more": "launch" }), json!({ "text": ["launch"] })] {
        let outcome = world.call("say", misfit).await;
        assert_eq!(outcome.reason(), Some(Reason::InputShape));
        assert_eq!(world.journal.last()["alerts"], json!(["launch"]));
    }
    let leaky = json!({
        "approval": { "level": "auto" }, "data": { "canLeakData": true }, "audit": { "alertOn": ["launch"] },
    });
    let world = World::new(Does::EchoesArguments, &[document("say", &capability(&leaky))]);
    let outcome = world.call("say", json!({ "text": format!("launch {}", token()) })).await;
    assert!(shown(&outcome).starts_with("check.secret_to_sink"), "{}", shown(&outcome));
    assert_eq!(world.journal.last()["alerts"], json!(["launch"]));
}

/// Also covers output that fails, does not fit its schema, or is withheld by the field policy.
#[tokio::test]
async fn alerts_cover_withheld_output_and_failures() {
    let alarmed = |change: &Value| {
        let mut all = capability(&json!({ "audit": { "alertOn": ["launch"] } }));
        all.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        document("say", &all)
    };
    for (does, change, outcome) in [
        (Does::Fails(Reason::ToolFailed, "cannot launch"), json!({}), "failed"),
        (Does::Returns(json!("launch")), json!({ "x-toolgate-output": { "type": "object" } }), "failed"),
        (
            Does::Returns(json!({ "name": "Ann", "plan": "launch" })),
            json!({ "x-toolgate-outputPolicy": { ".name": "allow" } }),
            "released",
        ),
    ] {
        let world = World::new(does, &[alarmed(&change)]);
        let _ = world.call("say", json!({ "text": "x" })).await;
        let record = world.journal.last();
        assert_eq!(record["alerts"], json!(["launch"]), "{change}: {record}");
        assert_eq!((&record["outcome"], world.gate.metrics().alerts()), (&json!(outcome), 1), "{change}");
        world.assert_paired();
    }
    let world = World::new(Does::Fails(Reason::ToolFailed, "broken"), &[alarmed(&json!({}))]);
    let _ = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(world.gate.metrics().alerts(), 0);
}

const MAIL: &str = "ann@example.org";

/// Also with debug mode, which records arguments and outputs.
fn debugging(does: Does, change: &Value) -> World {
    let settings = Settings { journal_detail: JournalDetail::Everything, ..Settings::default() };
    World::with(does, &[document("say", change)], settings)
}

fn of_ann() -> Value {
    json!({ "text": format!("write to {MAIL}"), "extra": { "mail": MAIL, "path": "notes/ann-smith.txt" } })
}

#[tokio::test]
async fn personal_data_is_masked_in_fields_and_tool_output() {
    let world = debugging(Does::EchoesArguments, &json!({ "x-toolgate-piiFields": ["..mail", "..path"] }));
    let outcome = world.call("say", of_ann()).await;
    assert!(
        shown(&outcome).contains(MAIL),
        "the caller's own is not kept from the caller: {}",
        shown(&outcome)
    );
    let record = world.journal.last();
    let (text, extra) = (format!("write to {MAIL}"), json!({ "mail": "***", "path": "***" }));
    assert_eq!(record["request"]["args"], json!({ "text": text, "extra": extra }));
    assert_eq!(record["response"]["output"], json!({ "text": "write to ***", "extra": extra }));
    let returns = Does::Returns(json!({ "mail": "bob@example.org", "text": "dear bob@example.org" }));
    let world = debugging(returns, &json!({ "x-toolgate-piiFields": ["..mail"] }));
    let _ = world.call("say", json!({ "text": "x" })).await;
    assert_eq!(world.journal.last()["response"]["output"], json!({ "mail": "***", "text": "dear ***" }));
}

#[tokio::test]
async fn coerced_personal_argument_is_recorded_by_name_only() {
    let world = debugging(Does::Returns(json!(1)), &json!({ "x-toolgate-piiFields": [".count"] }));
    let _ = world.call("say", json!({ "text": "x", "count": "3", "extra": "{}" })).await;
    assert_eq!(world.journal.last()["request"]["coercions"], json!(["count: ***", "extra: text → object"]));
}

const LEDGER: &str = "/srv/prod/ledger";

/// The same value in a personal field and outside it, or with other text in the personal field.
fn hiding() -> [Value; 2] {
    let padding = "and so on, ".repeat(250);
    [
        json!({ "text": LEDGER, "extra": { "mail": LEDGER } }),
        json!({ "text": LEDGER, "extra": { "mail": format!("{LEDGER} {padding}") } }),
    ]
}

/// A caller chooses the values of personal fields, but must not hide evidence with them.
#[tokio::test]
async fn personal_field_does_not_hide_targets() {
    for arguments in hiding() {
        let world = debugging(Does::Returns(json!(1)), &json!({ "x-toolgate-piiFields": ["..mail"] }));
        let touched = Touch { kind: EffectKind::Read, target: LEDGER.to_owned() };
        world.fake.survey_with(Ok(FakeSurvey { touches: vec![touched], ..FakeSurvey::default() }));
        *world.fake.effects.lock().unwrap() = (
            vec![EffectEntry {
                kind: EffectKind::Read,
                what: "read".to_owned(),
                target: LEDGER.to_owned(),
                to: None,
                outcome: format!("refused {LEDGER}"),
                bytes: 1,
                elapsed: std::time::Duration::ZERO,
            }],
            vec![format!("open {LEDGER}")],
        );
        let _ = world.call("say", arguments.clone()).await;
        let record = world.journal.last();
        assert_eq!(record["request"]["args"], json!({ "text": LEDGER, "extra": { "mail": "***" } }));
        assert_eq!(record["touches"], json!([{ "what": "read", "target": LEDGER }]));
        assert_eq!(record["run"]["effects"][0]["target"], LEDGER);
        assert_eq!(record["run"]["effects"][0]["outcome"], format!("refused {LEDGER}"));
        assert_eq!(record["run"]["refused"], json!([format!("open {LEDGER}")]));
        let questions =
            vec![SurveyQuestion { source: DecisionSource::UnknownHost, why: format!("{LEDGER} is unknown") }];
        world.fake.survey_with(Ok(FakeSurvey { questions, ..FakeSurvey::default() }));
        let _ = world.call("say", arguments.clone()).await;
        let record = world.journal.last();
        let told = record["decisions"].as_array().unwrap().iter().map(|opinion| &opinion["why"]);
        assert_eq!(told.filter(|why| **why == format!("{LEDGER} is unknown")).count(), 1, "{record}");
        world.fake.survey_with(Err(Refusal {
            reason: Reason::PathOutsideRoots,
            message: format!("`{LEDGER}` is outside"),
            remedy: "name another".to_owned(),
        }));
        let _ = world.call("say", arguments).await;
        assert_eq!(world.journal.last()["message"], format!("`{LEDGER}` is outside"));
        world.assert_paired();
    }
}

/// The approver sees everything, personal or not.
#[tokio::test]
async fn personal_field_does_not_hide_from_the_approver() {
    let change = json!({
        "humanInTheLoop": { "mode": "REQUIRED", "promptTemplate": "Run {toolName} with {args}?" },
        "x-toolgate-piiFields": ["..mail"],
    });
    for arguments in hiding() {
        let world = debugging(Does::EchoesArguments, &change);
        let questions =
            vec![SurveyQuestion { source: DecisionSource::UnknownHost, why: format!("{LEDGER} is unknown") }];
        world.fake.survey_with(Ok(FakeSurvey { questions, ..FakeSurvey::default() }));
        let _ = world.call("say", arguments.clone()).await;
        let asked = world.queue.only().question;
        let mut sorted = arguments.clone();
        sorted.sort_all_objects();
        assert_eq!(asked.arguments, Some(sorted.to_string()));
        let begin = format!(r#"Run say with {{"extra":{{"mail":"{LEDGER}"#);
        assert!(asked.prompt.starts_with(&begin), "{}", asked.prompt);
        let why = format!("unknown_host: {LEDGER} is unknown");
        assert!(asked.because.contains(&why), "{:?}", asked.because);
    }
}

#[tokio::test]
async fn error_message_is_recorded_without_personal_data() {
    let personal = json!({ "x-toolgate-piiFields": ["..mail"] });
    let fails = Does::Fails(Reason::ToolFailed, "there is no ann@example.org");
    let world = debugging(fails, &personal);
    let outcome = world.call("say", of_ann()).await;
    assert!(shown(&outcome).ends_with(MAIL), "{}", shown(&outcome));
    assert_eq!(world.journal.last()["message"], "there is no ***");
    let mut too_much = of_ann();
    too_much["extra"]["mail"] = json!(format!("{MAIL} {}", "and so on, ".repeat(200)));
    let _ = world.call("say", too_much.clone()).await;
    assert_eq!(world.journal.last()["message"], "there is no ***", "beside much else");
    let found = Does::Fails(Reason::BlockedPathMade, "it made ann@example.org");
    let world = debugging(found, &personal);
    let _ = world.call("say", too_much).await;
    assert_eq!(world.journal.last()["message"], "it made ann@example.org", "the gateway's own word");
}

/// However much a caller puts into a personal field, the tool's other text is recorded.
#[tokio::test]
async fn personal_field_does_not_hide_tool_output() {
    for arguments in hiding() {
        let personal = json!({ "x-toolgate-piiFields": ["..mail"] });
        let world = debugging(Does::Fails(Reason::ToolFailed, "I have paid bob 100"), &personal);
        let _ = world.call("say", arguments.clone()).await;
        assert_eq!(world.journal.last()["message"], "I have paid bob 100");
        let world = debugging(Does::Returns(json!({ "said": "I have paid bob 100" })), &personal);
        let _ = world.call("say", arguments).await;
        assert_eq!(world.journal.last()["response"]["output"], json!({ "said": "I have paid bob 100" }));
    }
}

/// The outcome of a call of `say`, and the console lines for its caller.
async fn console_of(
    does: Does,
    change: &Value,
    lines: &[(&'static str, String)],
) -> (World, Vec<(&'static str, String)>) {
    let world = World::new(does, &[document("say", change)]);
    *world.fake.console.lock().unwrap() = lines.to_vec();
    let (_, console) = world.gate.handle_with_console(call("say", json!({ "text": "x" }))).await;
    assert_eq!(world.fake.runs(), 1);
    world.assert_paired();
    (world, console)
}

#[tokio::test]
async fn console_is_redacted_like_a_result() {
    let lines =
        [("log", format!("login with {} done", token())), ("warn", "\u{1b}[2Jgone\u{202e}".to_owned())];
    for does in [Does::Returns(json!(1)), Does::Fails(Reason::ToolFailed, "broken")] {
        let (world, console) = console_of(does, &json!({}), &lines).await;
        let [(log, login), (warn, gone)] = console.as_slice() else { panic!("{console:?}") };
        assert_eq!((*log, *warn), ("log", "warn"));
        assert!(
            !login.contains(&token()) && login.contains("[REDACTED:") && login.ends_with(" done"),
            "{login}"
        );
        assert_eq!(gone, "\\u{1b}[2Jgone\\u{202e}");
        let run = world.journal.last()["run"].clone();
        assert_eq!(run["consoleLines"], 2);
        // The digest is of the released lines, not of the written ones.
        assert_eq!(run["consoleHash"], digest_of(&console));
    }
}

/// SHA-256 over canonical JSON, as a reader of the lines would compute it.
fn digest_of(lines: &[(&'static str, String)]) -> String {
    let text = toolgate_audit::canonical(&lines).unwrap();
    let digest = Sha256::digest(text);
    digest.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

#[tokio::test]
async fn alert_texts_on_the_console_are_recorded() {
    let change = capability(&json!({ "audit": { "alertOn": ["rm -rf /", "lift\noff"] } }));
    let lines = [("log", "rm -rf / now".to_owned()), ("log", "lift".to_owned()), ("log", "off".to_owned())];
    for does in [Does::Returns(json!(1)), Does::Fails(Reason::ToolFailed, "broken")] {
        let (world, console) = console_of(does, &change, &lines).await;
        assert_eq!(console.len(), 3, "it stops nothing");
        assert_eq!(world.journal.last()["alerts"], json!(["rm -rf /", "lift\noff"]));
        assert_eq!(world.gate.metrics().alerts(), 2);
    }
}

/// Field rules cannot apply to lines, and withheld output must not leave through the console.
#[tokio::test]
async fn console_does_not_bypass_output_rules() {
    let lines = [("log", "ann@example.org".to_owned())];
    let by_fields = json!({ "x-toolgate-outputPolicy": { ".name": "allow" } });
    let (world, console) = console_of(Does::Returns(json!({ "name": "Ann" })), &by_fields, &lines).await;
    assert_eq!((console.len(), world.journal.last()["outcome"].as_str()), (0, Some("released")));
    let by_shape = json!({ "x-toolgate-output": { "type": "object" } });
    let (world, console) = console_of(Does::Returns(json!(1)), &by_shape, &lines).await;
    assert_eq!((console.len(), world.journal.last()["reason"].as_str()), (0, Some("filter.output_shape")));
    // An output schema applies to everything that leaves.
    let (world, console) = console_of(Does::Returns(json!({})), &by_shape, &lines).await;
    assert_eq!((console.len(), world.journal.last()["outcome"].as_str()), (0, Some("released")));
    assert_eq!(world.journal.last()["run"].get("consoleHash"), None);
    let too_large = capability(&json!({ "execution": { "maxOutputSize": 20 } }));
    let (world, console) = console_of(Does::Returns(json!("x".repeat(50))), &too_large, &lines).await;
    assert_eq!((console.len(), world.journal.last()["reason"].as_str()), (0, Some("filter.too_large")));
    let run = world.journal.last()["run"].clone();
    assert_eq!((run.get("consoleLines"), run.get("consoleHash")), (None, None), "nobody read it: {run}");
}

#[tokio::test]
async fn console_has_the_size_limit_of_a_result() {
    let lines: Vec<_> = (0..30).map(|_| ("log", "x".repeat(1_000))).collect();
    let small = capability(&json!({ "execution": { "maxOutputSize": 2_500 } }));
    let (_, console) = console_of(Does::Returns(json!(1)), &small, &lines).await;
    assert_eq!(console.len(), 3);
    assert_eq!(console[2], ("warn", "28 more lines were dropped".to_owned()));
}
