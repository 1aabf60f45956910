//! Which free texts of a record hold secrets, or what is personal? Callers, tools and paths bring them along; the journal
//! keeps what it is given.

use serde_json::Value;
use toolgate_policy::Mask;
use toolgate_secrets::Detector;

use super::CallRecord;
use crate::{
    call::secrets::{for_journal, text_for_journal},
    live::blotted,
};

impl CallRecord {
    /// Blots out of every text that is neither an id, a digest nor one of our own words what may possibly be a secret.
    /// Arguments and outputs were shown by the rules of their tool.
    pub(super) fn blot(&mut self, detector: &Detector) {
        if let Some(personal) = self.personal.clone() {
            self.hide(&personal);
        }
        let blot = |value: &mut Value| *value = for_journal(detector, value.take());
        blot(&mut self.client);
        // Until the tool is known, its name is what the caller says.
        if self.policy_version.is_none() {
            self.tool = for_journal(detector, (*self.tool).clone()).into();
        }
        self.touches.iter_mut().for_each(blot);
        for why in self.opinions.iter_mut().filter_map(|opinion| opinion.get_mut("why")) {
            if let Value::String(text) = why {
                *text = blotted(&self.redact, std::mem::take(text));
            }
            blot(why);
        }
        self.request.get_mut("coercions").into_iter().for_each(blot);
        if let Some(run) = &mut self.run {
            run.get_mut("refused").into_iter().for_each(blot);
            run.get_mut("effects").into_iter().for_each(blot);
        }
        if let Some(response) = &mut self.response {
            response.get_mut("redactedFields").into_iter().for_each(blot);
        }
        if let Some(message) = &mut self.message {
            *message = text_for_journal(detector, blotted(&self.redact, std::mem::take(message)));
        }
    }

    /// Takes what personal fields of the arguments hold out of every text that tells of the call. Our own names stay.
    fn hide(&mut self, personal: &Mask) {
        let hide = |value: &mut Value| {
            if let Value::String(text) = value {
                *text = personal.text(text);
            }
        };
        for touch in &mut self.touches {
            touch.get_mut("target").into_iter().for_each(hide);
        }
        for opinion in &mut self.opinions {
            opinion.get_mut("why").into_iter().for_each(hide);
        }
        items(self.request.get_mut("coercions")).for_each(hide);
        if let Some(run) = &mut self.run {
            items(run.get_mut("refused")).for_each(hide);
            for effect in items(run.get_mut("effects")) {
                effect.get_mut("target").into_iter().for_each(hide);
                effect.get_mut("outcome").into_iter().for_each(hide);
            }
        }
        if let Some(response) = &mut self.response {
            items(response.get_mut("redactedFields")).for_each(hide);
            if let Some(output) = response.get_mut("output") {
                *output = personal.value(output.take());
            }
        }
        if let Some(message) = &mut self.message {
            *message = personal.text(message);
        }
    }
}

fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}
