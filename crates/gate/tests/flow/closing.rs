//! A call that was opened is closed, however much its caller or its tool makes the journal say.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};
use toolgate_gate::{EffectEntry, EffectKind, Shows, SurveyQuestion, Touch};

use toolgate_policy::DecisionSource;

use crate::fakes::{Does, FakeSurvey, Settings, World, document};

/// What escaping makes six or seven bytes of in JSON.
fn long(number: usize) -> String {
    format!("/srv/{number}/{}", "\u{1f}".repeat(400))
}

/// A command with everything outside itself as large as somebody can make it.
fn world(largest: usize) -> World {
    world_that(Does::Returns(json!({ "log": alarming().join(" "), "path": long(1) })), largest)
}

/// Somebody wants to be told of each of these.
fn alarming() -> Vec<String> {
    (0..25).map(|number| format!("launch {number} {}", "x".repeat(60))).collect()
}

fn world_that(does: Does, largest: usize) -> World {
    let tool = document(
        "say",
        &json!({ "x-toolgate-capability": {
            "approval": { "level": "auto", "dangerPatterns": ["never"] },
            "audit": { "alertOn": alarming() },
        } }),
    );
    let settings = Settings { shows: Shows::Everything, ..Settings::default() };
    let world = World::with(does, &[tool], settings);
    let touches = (0..300).map(|number| Touch { kind: EffectKind::Read, target: long(number) });
    world.fake.survey_with(Ok(FakeSurvey { touches: touches.collect(), ..FakeSurvey::default() }));
    let effect = |number: usize| EffectEntry {
        kind: EffectKind::Write,
        what: "safety.fs.move".to_owned(),
        target: long(number),
        to: Some(long(number + 1)),
        outcome: long(number + 2),
        bytes: 1,
        elapsed: Duration::ZERO,
    };
    let refused = (0..150).map(|number| format!("making `{}`", long(number).escape_debug()));
    *world.fake.effects.lock().unwrap() = ((0..110).map(effect).collect(), refused.collect());
    world.journal.largest.store(largest, Ordering::SeqCst);
    world
}

async fn closed(world: &World) -> Value {
    let _ = world.call("say", json!({ "text": "hi", "extra": { "more": "y".repeat(3_000) } })).await;
    world.assert_paired();
    let record = world.journal.last();
    assert_eq!((&record["kind"], &record["outcome"]), (&json!("call.closed"), &json!("released")));
    assert_eq!((&record["stage"], &record["decision"]), (&json!("filter"), &json!("ALLOWED")));
    assert_eq!(record["caller"]["sub"], "ann");
    assert!(record["request"]["argsHash"].is_string());
    record
}

async fn drop_as_it_runs(world: &World) {
    tokio::select! {
        outcome = world.call("say", json!({ "text": "dropped" })) => panic!("it never ends: {outcome:?}"),
        () = async { while world.fake.runs() == 0 { tokio::task::yield_now().await; } } => {}
    }
}

#[tokio::test]
async fn names_of_any_length_do_not_make_a_record_too_large() {
    let record = closed(&world(1_000_000)).await;
    let run = &record["run"];
    assert_eq!((&run["refusedCount"], &run["effectCount"]), (&json!(150), &json!(110)));
    for list in [&run["refused"], &run["effects"], &record["touches"]] {
        assert_eq!(list.as_array().unwrap().len(), 100);
    }
    let cut = run["refused"][0].as_str().unwrap();
    assert!(cut.starts_with("making `/srv/0/") && cut.ends_with('…'), "{cut}");
    assert_eq!(cut.chars().count(), 301);
    assert!(record["request"]["args"].is_object());
}

/// What nobody tells one by one is counted all the same, of a call that ends and of one that is dropped.
#[tokio::test]
async fn what_was_refused_beyond_the_list_is_counted() {
    let ended = world(1_000_000);
    ended.fake.refused_dropped.store(1_000, Ordering::SeqCst);
    assert_eq!(closed(&ended).await["run"]["refusedCount"], 1_150);

    let dropped = world_that(Does::NeverEnds, 1_000_000);
    dropped.fake.refused_dropped.store(1_000, Ordering::SeqCst);
    drop_as_it_runs(&dropped).await;
    assert_eq!(dropped.journal.last()["run"]["refusedCount"], 1_150);
}

#[tokio::test]
async fn what_is_too_large_all_the_same_is_left_out_and_counted() {
    let world = world(30_000);
    let record = closed(&world).await;
    assert_eq!((&record["run"]["refused"], &record["run"]["refusedCount"]), (&json!([]), &json!(150)));
    assert_eq!(record["run"]["effects"], json!([]));
    assert!(record["touches"].is_null() && record["request"]["args"].is_null());
    assert_eq!(record["alerts"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn at_last_the_end_alone_is_written() {
    let record = closed(&world(2_000)).await;
    assert!(record["run"].is_null() && record["toolSafety"].is_null());
    assert_eq!(record["tool"]["name"], "say");
    assert_eq!(record["message"], "the rest of this record was too large to be written");
}

/// Released, asked about, or dropped as it runs, with journals of every size between the least record and all of it.
#[tokio::test]
async fn whatever_happens_the_pair_is_there() {
    for largest in [2_000, 3_000, 6_000, 20_000, 100_000, 1 << 20] {
        closed(&world(largest)).await;

        let asked = world(largest);
        let why = |number: usize| SurveyQuestion { source: DecisionSource::UnknownHost, why: long(number) };
        let questions = (0..120).map(why).collect();
        asked.fake.survey_with(Ok(FakeSurvey { questions, ..FakeSurvey::default() }));
        let _ = asked.call("say", json!({ "text": "asked" })).await;
        asked.assert_paired();
        assert_eq!(asked.journal.last()["outcome"], "pending", "{largest}");

        let dropped = world_that(Does::NeverEnds, largest);
        drop_as_it_runs(&dropped).await;
        dropped.assert_paired();
        assert_eq!(dropped.journal.last()["outcome"], "failed", "{largest}");
    }
}
