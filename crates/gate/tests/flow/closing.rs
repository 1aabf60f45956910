//! Every opened call gets a closing record, however much its caller or tool makes the journal record.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};
use toolgate_gate::{EffectEntry, EffectKind, JournalDetail, SurveyQuestion, Touch};

use toolgate_policy::DecisionSource;

use crate::fakes::{Does, FakeSurvey, Settings, World, document};

/// A character that JSON escapes to six or seven bytes.
fn long(number: usize) -> String {
    format!("/srv/{number}/{}", "\u{1f}".repeat(400))
}

/// A command with all its effects as large as possible.
fn world(largest: usize) -> World {
    world_that(Does::Returns(json!({ "log": alarming().join(" "), "path": long(1) })), largest)
}

/// Each of these raises an alert.
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
    let settings = Settings { journal_detail: JournalDetail::Everything, ..Settings::default() };
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
async fn long_names_do_not_make_a_record_too_large() {
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

/// Entries beyond the list are counted, for a call that ends and for one that is dropped.
#[tokio::test]
async fn denials_beyond_the_list_are_counted() {
    let ended = world(1_000_000);
    ended.fake.refused_dropped.store(1_000, Ordering::SeqCst);
    assert_eq!(closed(&ended).await["run"]["refusedCount"], 1_150);

    let dropped = world_that(Does::NeverEnds, 1_000_000);
    dropped.fake.refused_dropped.store(1_000, Ordering::SeqCst);
    drop_as_it_runs(&dropped).await;
    assert_eq!(dropped.journal.last()["run"]["refusedCount"], 1_150);
}

#[tokio::test]
async fn parts_that_are_too_large_are_dropped_and_counted() {
    let world = world(30_000);
    let record = closed(&world).await;
    assert_eq!((&record["run"]["refused"], &record["run"]["refusedCount"]), (&json!([]), &json!(150)));
    assert_eq!(record["run"]["effects"], json!([]));
    assert!(record["touches"].is_null() && record["request"]["args"].is_null());
    assert_eq!(record["alerts"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn smallest_record_has_only_the_end() {
    let record = closed(&world(2_000)).await;
    assert!(record["run"].is_null() && record["toolSafety"].is_null());
    assert_eq!(record["tool"]["name"], "say");
    assert_eq!(record["message"], "the rest of this record was too large to write");
}

/// Released, asked about, or dropped while it runs, with every size limit between the smallest and the full record.
#[tokio::test]
async fn every_opening_record_has_a_closing_record() {
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
