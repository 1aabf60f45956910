//! Redacts secrets in the free texts of a record. Callers, tools and paths may contain them, and records are kept for
//! long.

use serde_json::{Value, json};
use toolgate_secrets::Detector;

use super::{CallRecord, size_limits::cut_name_text};
use crate::{
    call::support::secrets::{CleanTexts, for_journal, text_for_journal},
    live::redact_patterns,
};

impl CallRecord {
    /// Redacts possible secrets in what the client reports about itself and in the tool's name. Nothing from outside is
    /// added to these fields later, so the closing record need not search them again.
    pub(super) fn redact_opening(&mut self, detector: &Detector, clean: &CleanTexts) {
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

    /// Redacts every other text that is not an id, a digest or a fixed word. Arguments and outputs were already
    /// redacted by the rules of their tool.
    pub(super) fn redact_closing(&mut self, detector: &Detector) {
        self.mask_known();
        let redact = |value: &mut Value| *value = for_journal(detector, value.take());
        self.touches.iter_mut().for_each(redact);
        for decision in &mut self.decisions {
            let why = redact_patterns(&self.redact, std::mem::take(&mut decision.why));
            decision.why = text_for_journal(detector, why);
        }
        self.request.coercions.iter_mut().for_each(redact);
        if let Some(run) = &mut self.run {
            run.refused.iter_mut().for_each(redact);
            redact(&mut run.effects);
        }
        if let Some(response) = &mut self.response {
            redact(&mut response.redacted_fields);
        }
        if let Some(message) = &mut self.message {
            *message = text_for_journal(detector, redact_patterns(&self.redact, std::mem::take(message)));
        }
        self.shorten_texts();
    }

    /// Masks the values of the tool's own secrets, which may match no rule, in targets, reasons and messages. This
    /// comes before the detector, which could take a part of one for another secret. The report of a run is already
    /// masked.
    fn mask_known(&mut self) {
        // Most calls have none of these texts and need not read the secrets.
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
