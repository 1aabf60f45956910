//! Which free texts of a record hold secrets? Callers, tools and paths bring them along; the journal keeps what it is given.

use serde_json::{Value, json};
use toolgate_secrets::Detector;

use super::{CallRecord, slim::cut_name_text};
use crate::{
    call::support::secrets::{CleanTexts, for_journal, text_for_journal},
    live::blotted,
};

impl CallRecord {
    /// Blots out of what a caller says of itself, and of the tool that it names, what may possibly be a secret. Nothing is
    /// added to either but what we know of the tool, so that the closing record need not look again.
    pub(super) fn blot_opening(&mut self, detector: &Detector, clean: &CleanTexts) {
        for said in self.client.texts() {
            *said = clean.text_for_journal(detector, std::mem::take(said));
            cut_name_text(said);
        }
        if let Some(name) = self.tool.get("name").and_then(Value::as_str) {
            let mut shown = clean.text_for_journal(detector, name.to_owned());
            cut_name_text(&mut shown);
            if shown != name {
                self.tool = json!({ "name": shown }).into();
            }
        }
    }

    /// Does the same to every other text that is neither an id, a digest nor one of our own words. Arguments and outputs
    /// were shown by the rules of their tool.
    pub(super) fn blot_closing(&mut self, detector: &Detector) {
        self.mask_known();
        let blot = |value: &mut Value| *value = for_journal(detector, value.take());
        self.touches.iter_mut().for_each(blot);
        for decision in &mut self.decisions {
            let why = blotted(&self.redact, std::mem::take(&mut decision.why));
            decision.why = text_for_journal(detector, why);
        }
        self.request.coercions.iter_mut().for_each(blot);
        if let Some(run) = &mut self.run {
            run.refused.iter_mut().for_each(blot);
            blot(&mut run.effects);
        }
        if let Some(response) = &mut self.response {
            blot(&mut response.redacted_fields);
        }
        if let Some(message) = &mut self.message {
            *message = text_for_journal(detector, blotted(&self.redact, std::mem::take(message)));
        }
        self.cut_long();
    }

    /// Masks the values of the tool's own secrets, which no rule need know, in what callers' arguments lead to and what was said of
    /// them. Before the detector looks, which may take a part of one for a secret of its own. A run's report comes masked.
    fn mask_known(&mut self) {
        // Nearly every call has none of this, and need not know the secrets.
        let says_something = !self.touches.is_empty()
            || self.request.coercions.is_some()
            || self.approval.is_some()
            || self.message.is_some();
        let Some(runnable) = self.runnable.as_ref().filter(|_| says_something) else { return };
        let mask = runnable.mask();
        let targets = self.touches.iter_mut().filter_map(|touch| touch.get_mut("target"));
        for text in targets.chain(&mut self.request.coercions) {
            *text = mask.value(text.take());
        }
        for decision in &mut self.decisions {
            decision.why = mask.text(&decision.why);
        }
        if let Some(message) = &mut self.message {
            *message = mask.text(message);
        }
    }
}
