//! Encoded secrets: every encoding that the detector recognises in a text is also recognised in a value.
//!
//! In the corpus, `⟦` and `⟧` enclose a secret; `<|>` is removed.

use std::{fs, path::Path};

use serde_json::{Value, json};
use toolgate_gate::{Outcome, Reason};
use toolgate_secrets::{Detector, Tier};

use crate::fakes::{Does, World, document, shown};

fn echo() -> World {
    World::new(Does::EchoesArguments, &[document("say", &json!({}))])
}

fn sink() -> World {
    let leaky = json!({ "approval": { "level": "auto" }, "data": { "canLeakData": true } });
    World::new(Does::EchoesArguments, &[document("say", &json!({ "x-toolgate-capability": leaky }))])
}

async fn released(world: &World, arguments: Value) -> Value {
    match world.call("say", arguments).await {
        Outcome::Released(released) => released.value,
        other => panic!("{}", shown(&other)),
    }
}

/// Each secret is visible only after the one before it is redacted. No reader may see any of them.
#[tokio::test]
async fn secrets_that_hide_each_other_are_all_redacted() {
    let token = concat!("xa", "pt-abcd1234-4e44-8fac-427b-066ff1e09d0c");
    for glue in ["\u{1b}[0m", "\u{1b}[m", "\u{1b}(B"] {
        let text: &'static str = format!("it is {} now", [token; 40].join(glue)).leak();
        let fails = World::new(Does::Fails(Reason::ToolFailed, text), &[document("say", &json!({}))]);
        let outcome = fails.call("say", json!({ "text": "x" })).await;
        let seen = format!("{outcome:?} {:?}", fails.journal.records());
        assert!(!seen.contains("8fac-427b") && seen.contains("now"), "{seen}");
        let asks = json!({ "x-toolgate-capability": { "approval": { "level": "ask" } } });
        let asks = World::new(Does::EchoesArguments, &[document("say", &asks)]);
        let outcome = asks.call("say", json!({ "text": text })).await;
        let Outcome::Pending(pending) = outcome else { panic!("{}", shown(&outcome)) };
        let seen = format!("{} {:?} {:?}", pending.prompt, asks.queue.only(), asks.journal.records());
        assert!(!seen.contains("8fac-427b") && seen.contains("now"), "{seen}");
    }
}

/// The texts of the corpus with their secrets.
fn escapes() -> Vec<(String, String, Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../secrets/tests/corpus/escapes");
    let read = |path: &Path| {
        let marked = fs::read_to_string(path).unwrap().replace("<|>", "");
        let inside = |part: &str| part.split('⟧').next().unwrap().to_owned();
        let secrets: Vec<String> = marked.split('⟦').skip(1).map(inside).collect();
        assert!(!secrets.is_empty(), "{} marks nothing", path.display());
        (path.display().to_string(), marked.replace(['⟦', '⟧'], ""), secrets)
    };
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| read(&entry.unwrap().path())).collect();
    assert!(files.len() > 20);
    files
}

#[tokio::test]
async fn encoded_secrets_of_the_corpus_are_not_released() {
    let (world, detector) = (echo(), Detector::shipped().unwrap());
    for (file, text, secrets) in escapes() {
        let value = released(&world, json!({ "text": text, "extra": { "list": ["a", text, "b"] } })).await;
        let places = [&value["text"], &value["extra"]["list"][1]];
        for came in places.map(|place| place.as_str().unwrap()) {
            assert_eq!(came.lines().count(), text.lines().count(), "{file} lost lines: {came}");
            assert!(detector.contains(came.as_bytes(), Tier::Definite).is_none(), "{file}: {came}");
            assert!(!secrets.iter().any(|secret| came.contains(secret)), "{file}: {came}");
        }
        assert_eq!([&value["extra"]["list"][0], &value["extra"]["list"][2]], [&json!("a"), &json!("b")]);
    }
}

#[tokio::test]
async fn encoded_secrets_of_the_corpus_are_not_released_as_text() {
    for (file, text, secrets) in escapes() {
        let world = World::new(Does::Returns(json!(text)), &[document("say", &json!({}))]);
        let value = released(&world, json!({ "text": "x" })).await;
        let came = value.as_str().unwrap();
        assert_eq!(came.lines().count(), text.lines().count(), "{file} lost lines: {came}");
        assert!(!secrets.iter().any(|secret| came.contains(secret)), "{file}: {came}");
    }
}

#[tokio::test]
async fn encoded_secrets_of_the_corpus_are_not_sent() {
    let world = sink();
    for (file, text, _) in escapes() {
        for arguments in [json!({ "text": text }), json!({ "text": "x", "extra": { "key": [text] } })] {
            let outcome = world.call("say", arguments).await;
            assert!(shown(&outcome).starts_with("check.secret_to_sink"), "{file}: {}", shown(&outcome));
        }
        let as_key = world.call("say", json!({ "text": "x", "extra": { text: 1 } })).await;
        assert!(shown(&as_key).starts_with("check.secret_to_sink"), "{file}: {}", shown(&as_key));
    }
    assert_eq!(world.fake.runs(), 0);
}

/// Invisible characters are escaped only after the secrets that they hide are redacted.
#[tokio::test]
async fn invisible_characters_do_not_hide_a_secret() {
    let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
    let (open, sink) = (echo(), sink());
    for hidden in ["\u{200b}", "\u{1b}[0m", "\u{1b}[1;31m", "\u{202e}", "\0", "\u{7f}", "\u{9c}", "\u{2028}"]
    {
        // The beginning of such a token is itself a token; text after a line end does not belong to it.
        let places: &[usize] = if hidden == "\u{2028}" { &[2, 10] } else { &[2, 10, 45] };
        for at in places.iter().copied() {
            let (before, after) = token.split_at(at);
            let text = format!("first {before}{hidden}{after} last");
            let value = released(&open, json!({ "text": text })).await;
            let came = value["text"].as_str().unwrap();
            let is_clean = came.starts_with("first [REDACTED:") && came.ends_with("] last");
            assert!(is_clean, "{hidden:?} at {at}: {came}");
            let outcome = sink.call("say", json!({ "text": text })).await;
            assert!(shown(&outcome).starts_with("check.secret_to_sink"), "{hidden:?}: {}", shown(&outcome));
        }
    }
}

#[tokio::test]
async fn redacted_key_keeps_its_lines_and_items() {
    let line = "rG3nmfZN/3yKJyF3GINhFLUTv7Zh0eLhjopfdLi+YuAzWLLazZACmtxyT/SDvrrS";
    let edge = |word: &str| format!("-----{word} PRIVATE KEY-----");
    let mut lines = vec![edge("BEGIN")];
    lines.extend((0..5).map(|_| line.to_owned()));
    lines.push(edge("END"));
    let value = released(&echo(), json!({ "text": lines.join("\r\n"), "extra": { "lines": lines } })).await;
    assert_eq!(value["text"].as_str().unwrap().matches("\r\n").count(), lines.len() - 1);
    assert_eq!(value["extra"]["lines"].as_array().unwrap().len(), lines.len());
    assert!(!value.to_string().contains(&line[..16]), "{value}");
}
