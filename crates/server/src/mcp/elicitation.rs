//! Asks the client's user for an approval and reads the answer. Only an explicit yes approves.

use std::{collections::BTreeMap, future::Future, pin::Pin};

use http::HeaderMap;
use rmcp::{
    RoleServer,
    model::{
        ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequiredResult, InputResponses,
    },
    service::Peer,
};
use toolgate_gate::{Answer, Ask, PendingCall, Prompt};

/// Asks during the call, for protocol versions with sessions.
#[derive(Debug)]
pub struct Elicitation(pub Peer<RoleServer>);

impl Ask for Elicitation {
    fn ask<'a>(&'a self, prompt: &'a Prompt) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            match self.0.create_elicitation(form(&prompt.text)).await {
                Ok(result) => answer_of(&result),
                Err(_) => Answer::Lost,
            }
        })
    }
}

/// Asks by ending the request: the client calls again with the answer.
pub fn input_required(pending: &PendingCall, state: String) -> InputRequiredResult {
    let question = InputRequest::Elicitation(ElicitRequest::new(form(&pending.prompt)));
    InputRequiredResult::new(Some(BTreeMap::from([(QUESTION.to_owned(), question)])), Some(state))
}

/// Returns `None` if the question was not answered; it is then asked again. Ignores other responses.
pub fn answer_in(responses: Option<&InputResponses>) -> Option<Answer> {
    let given = responses?.get(QUESTION)?;
    let result: Result<ElicitResult, _> = serde_json::from_value(given.clone());
    Some(result.as_ref().map_or(Answer::Lost, answer_of))
}

/// Whether the client can show a form.
pub fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    // Without a declared kind it is forms, the only kind in older protocol versions.
    capabilities.elicitation.as_ref().is_some_and(|can| can.form.is_some() || can.url.is_none())
}

/// Whether the client is configured as unattended. Then only the approval queue can answer.
pub fn is_unattended(headers: &HeaderMap) -> bool {
    headers.contains_key(UNATTENDED_HEADER)
}

/// Written by `toolgate connect --unattended`. Any value counts.
pub const UNATTENDED_HEADER: &str = "toolgate-unattended";

fn answer_of(result: &ElicitResult) -> Answer {
    match result.action {
        ElicitationAction::Accept => Answer::Accept,
        ElicitationAction::Decline => Answer::Decline,
        ElicitationAction::Cancel => Answer::Cancel,
        _ => Answer::Lost,
    }
}

/// A form without fields: accepting it approves the call.
fn form(text: &str) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: text.to_owned(),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    }
}

/// The key of the only question.
const QUESTION: &str = "approval";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(responses: &Value, expect: Option<Answer>) {
        let responses: InputResponses = serde_json::from_value(responses.clone()).unwrap();
        assert_eq!(answer_in(Some(&responses)), expect, "{responses:?}");
    }

    #[test]
    fn only_an_explicit_yes_approves() {
        check(&json!({"approval": {"action": "accept", "content": {}}}), Some(Answer::Accept));
        check(&json!({"approval": {"action": "accept"}, "other": 5}), Some(Answer::Accept));
        check(&json!({"approval": {"action": "decline"}}), Some(Answer::Decline));
        check(&json!({"approval": {"action": "cancel"}}), Some(Answer::Cancel));
        for nonsense in [
            json!(true),
            json!("accept"),
            json!(12_345),
            json!(null),
            json!({}),
            json!({"action": "ACCEPT"}),
            json!({"action": "yes"}),
            json!({"action": ["accept"]}),
            json!({"content": {"action": "accept"}}),
        ] {
            check(&json!({"approval": nonsense}), Some(Answer::Lost));
        }
        check(&json!({"Approval": {"action": "accept"}}), None);
        check(&json!({}), None);
        assert_eq!(answer_in(None), None);
    }

    #[test]
    fn client_is_asked_only_if_it_declares_forms() {
        let shows = |capabilities: Value| shows_forms(&serde_json::from_value(capabilities).unwrap());
        assert!(shows(json!({"elicitation": {}})));
        assert!(shows(json!({"elicitation": {"form": {}}})));
        assert!(shows(json!({"elicitation": {"form": {}, "url": {}}})));
        assert!(!shows(json!({"elicitation": {"url": {}}})));
        assert!(!shows(json!({"sampling": {}})));
        assert!(!shows(json!({})));
    }
}
