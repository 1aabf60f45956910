//! Shows whether calls of a tool ask a person, why, and how to change it.

use serde_json::{Value, json};
use toolgate_policy::{QuestionSource, questions_of_every_call, questions_of_some_calls};

use super::{GatewaySettings, Resolved};
use crate::table::Table;

pub(super) fn add_rows(resolved: &Resolved<'_>, gateway: &GatewaySettings, facts: &mut Table) {
    let (every, some) = questions(resolved, gateway);
    facts.row(["asks", frequency(&every, &some), ""]);
    for question in &every {
        add_question("", question, facts);
    }
    for question in &some {
        add_question("if ", question, facts);
    }
    facts.row(["", &threshold(gateway), ""]);
    if gateway.has_cedar {
        facts.row(["", "cedar: the policies of `policy.cedar` may also ask or forbid", ""]);
    }
    for (at, relaxed) in resolved.relaxed.iter().enumerate() {
        let label = if at == 0 { "relaxed" } else { "" };
        let change = &relaxed.change;
        let text = format!("{} {} -> {}, by {}", change.setting, change.before, change.after, relaxed.by);
        facts.row([label, &text, ""]);
        if let Some(consequence) = change.consequence() {
            facts.row(["", &format!("  {consequence}"), ""]);
        }
    }
}

pub(super) fn to_json(resolved: &Resolved<'_>, gateway: &GatewaySettings) -> Value {
    let (every, some) = questions(resolved, gateway);
    let list = |questions: &[QuestionSource]| -> Vec<Value> {
        let one = |question: &QuestionSource| {
            json!({
                "source": question.source.name(),
                "text": question.why,
                "setting": question.setting,
                "origin": question.origin,
                "remedy": question.remedy,
            })
        };
        questions.iter().map(one).collect()
    };
    let relaxed = resolved.relaxed.iter().map(|relaxed| {
        let change = &relaxed.change;
        json!({
            "setting": change.setting,
            "before": change.before,
            "after": change.after,
            "by": relaxed.by,
            "consequence": change.consequence(),
        })
    });
    json!({
        "approval": {
            "asks": frequency(&every, &some),
            "askFrom": gateway.ask_from.name(),
            "everyCall": list(&every),
            "someCalls": list(&some),
            "cedar": gateway.has_cedar,
        },
        "relaxed": relaxed.collect::<Vec<_>>(),
    })
}

fn questions(
    resolved: &Resolved<'_>,
    gateway: &GatewaySettings,
) -> (Vec<QuestionSource>, Vec<QuestionSource>) {
    let every = questions_of_every_call(resolved.spec, &resolved.policy, resolved.met, gateway.ask_from);
    (every, questions_of_some_calls(resolved.spec, &resolved.policy))
}

const fn frequency(every: &[QuestionSource], some: &[QuestionSource]) -> &'static str {
    match (every.is_empty(), some.is_empty()) {
        (false, _) => "every call",
        (true, false) => "some calls",
        (true, true) => "no call",
    }
}

fn threshold(gateway: &GatewaySettings) -> String {
    let value = gateway.ask_from.name();
    match &gateway.file {
        Some(file) => format!("approvals.ask_from is {value} in {}", file.display()),
        None => format!("approvals.ask_from is {value}, the default, because there is no toolgate.yaml here"),
    }
}

fn add_question(prefix: &str, question: &QuestionSource, facts: &mut Table) {
    let QuestionSource { source, why, setting, origin, remedy } = question;
    facts.row(["", &format!("{source}: {prefix}{why} ({setting}, {origin})"), ""]);
    facts.row(["", &format!("  to change: {remedy}"), ""]);
}
