//! Every field of a call record is documented, at every depth.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use regex::Regex;
use serde_json::{Value, json};
use toolgate_gate::{
    ApprovalQueue, ApprovalState, Call, Clock, Decider, EffectEntry, EffectKind, JournalDetail, LiveSet,
    Touch,
};
use toolgate_policy::CedarPolicies;

use crate::fakes::{Does, FakeSurvey, Settings, World, call, document};

#[tokio::test]
async fn every_member_of_a_record_is_documented_in_its_row() {
    let shown = members(&records_that_show_everything().await);
    let names: BTreeSet<&str> = shown.iter().map(|(_, name)| name.as_str()).collect();
    let written = written_by_the_gate();
    assert!(written.len() > 60, "{written:?}");
    let unseen: Vec<_> = written.iter().filter(|name| !names.contains(name.as_str())).collect();
    assert!(unseen.is_empty(), "let a call of this test show: {unseen:?}");
    let documented = read("docs/journal-fields.md");
    let missing: Vec<_> = shown.iter().filter(|(field, name)| !is_in_row(&documented, field, name)).collect();
    assert!(missing.is_empty(), "docs/journal-fields.md, rows of `Calls`: {missing:?}");
}

/// Records of a tool that does everything that is recorded: questions, approvals, denials, remembered approvals.
async fn records_that_show_everything() -> Vec<Value> {
    let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
    let settings = Settings { journal_detail: JournalDetail::Everything, ..Settings::default() };
    let tool = document(
        "say",
        &json!({
            "category": "texts",
            "x-toolgate-capability": {
                "approval": { "level": "ask", "trustAfterApproval": true, "dangerPatterns": ["danger"] },
                "audit": { "alertOn": ["launch"] },
            },
        }),
    );
    let world = World::with(Does::Returns(json!({ "log": token })), std::slice::from_ref(&tool), settings);
    let live = world.tool(&tool);
    let rules = [("rules.cedar".to_owned(), "permit(principal, action, resource);".to_owned())];
    let cedar = CedarPolicies::new(&rules, [live.for_policies()]).unwrap();
    world.gate.replace(LiveSet::new([live]).0.with_policies(Some(cedar)));
    let touched = Touch { kind: EffectKind::Read, target: "/srv/a".to_owned() };
    world.fake.survey_with(Ok(FakeSurvey { touches: vec![touched], ..FakeSurvey::default() }));
    let moved = EffectEntry {
        kind: EffectKind::Write,
        what: "safety.fs.move".to_owned(),
        target: "/srv/a".to_owned(),
        to: Some("/srv/b".to_owned()),
        outcome: "ok".to_owned(),
        bytes: 1,
        elapsed: Duration::ZERO,
    };
    *world.fake.effects.lock().unwrap() = (vec![moved], vec!["open /etc/shadow".to_owned()]);
    world.fake.console.lock().unwrap().push(("info", "a line".to_owned()));
    for (text, verdict) in [("danger launch", ApprovalState::Approved), ("no", ApprovalState::Denied)] {
        answered(&world, &of_client(json!({ "text": text, "count": "3" })), verdict).await;
    }
    answered(&world, &of_client(json!({ "text": "yes" })), ApprovalState::Approved).await;
    let _ = world.gate.handle(of_client(json!({ "text": "trusted by now" }))).await;
    world.journal.records()
}

/// Asked about, answered, and made again.
async fn answered(world: &World, call: &Call, verdict: ApprovalState) {
    let _ = world.gate.handle(call.clone()).await;
    let asked = world.queue.all().pop().unwrap().id;
    world.queue.decide(&asked, verdict, &Decider::Operator("operator"), None, world.clock.now()).unwrap();
    let _ = world.gate.handle(call.clone()).await;
}

fn of_client(arguments: Value) -> Call {
    let mut call = call("say", arguments);
    let said = || Some("one".to_owned());
    call.client.protocol = said();
    call.client.name = said();
    call.client.version = said();
    call.client.conversation = said();
    call
}

/// Names of members, each with the top-level field that contains it.
fn members(records: &[Value]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (field, value) in records.iter().flat_map(|record| record.as_object().unwrap()) {
        found.insert((field.clone(), field.clone()));
        within(field, value, &mut found);
    }
    found
}

fn within(field: &str, value: &Value, found: &mut BTreeSet<(String, String)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| within(field, item, found)),
        Value::Object(members) => {
            for (name, member) in members {
                found.insert((field.to_owned(), name.clone()));
                // Arguments, results and the block of a document have arbitrary members.
                let is_ours = !matches!((field, name.as_str()), ("request", "args") | ("response", "output"));
                if is_ours && field != "toolSafety" {
                    within(field, member, found);
                }
            }
        }
        _ => {}
    }
}

/// Every name that the gate's code writes into a record, also rare ones.
fn written_by_the_gate() -> BTreeSet<String> {
    let files = ["record.rs", "parts.rs"].map(|file| read(&format!("crates/gate/src/call/journal/{file}")));
    let source = files.concat();
    let fields = Regex::new(r"(?m)^    pub ([a-z_]+): ").unwrap();
    let literals = Regex::new(r#""([A-Za-z]+)": |\.insert\("([A-Za-z]+)"\.into\(\)"#).unwrap();
    let fields = fields.captures_iter(&source).map(|found| camel_case(&found[1]));
    let literals = literals
        .captures_iter(&source)
        .map(|found| found.get(1).or_else(|| found.get(2)).map(|name| name.as_str().to_owned()).unwrap());
    fields.chain(literals).collect()
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |name, part| format!("{name}{}{}", part[..1].to_uppercase(), &part[1..]))
}

fn is_in_row(documented: &str, field: &str, name: &str) -> bool {
    let quoted = |name: &str| format!("`{name}`");
    let is_row = |line: &&str| {
        line.strip_prefix('|')
            .and_then(|line| line.split('|').next())
            .is_some_and(|cell| cell.contains(&quoted(field)))
    };
    // The kind has no row, because every entry has one.
    field == "kind"
        || field == "toolSafety" && name != field
        || documented.lines().filter(is_row).any(|row| row.contains(&quoted(name)))
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}
