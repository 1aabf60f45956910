//! Which free texts of a record hold secrets? Callers, tools and paths bring them along; the journal keeps what it is given.

use serde_json::{Map, Value, json};
use toolgate_secrets::Detector;

use super::{CallRecord, slim::cut_name};
use crate::{
    call::support::secrets::{for_journal, text_for_journal},
    live::blotted,
};

impl CallRecord {
    /// Blots out of what a caller says of itself, and of the tool that it names, what may possibly be a secret. Nothing is
    /// added to either but what we know of the tool, so that the closing record need not look again.
    pub(super) fn blot_opening(&mut self, detector: &Detector) {
        let said = self.client.as_object_mut().into_iter().flat_map(Map::iter_mut);
        // The names of the members are our own words, and so is the transport.
        for (_, said) in said.filter(|(name, _)| *name != "transport") {
            *said = for_journal(detector, said.take());
            cut_name(said);
        }
        if let Some(name) = self.tool.get("name") {
            let mut name = for_journal(detector, name.clone());
            cut_name(&mut name);
            self.tool = json!({ "name": name }).into();
        }
    }

    /// Does the same to every other text that is neither an id, a digest nor one of our own words. Arguments and outputs
    /// were shown by the rules of their tool.
    pub(super) fn blot_closing(&mut self, detector: &Detector) {
        self.mask_known();
        let blot = |value: &mut Value| *value = for_journal(detector, value.take());
        self.touches.iter_mut().for_each(blot);
        for why in self.decisions.iter_mut().filter_map(|decision| decision.get_mut("why")) {
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
        self.cut_long();
    }

    /// Masks the values of the tool's own secrets, which no rule need know, in what callers' arguments lead to and what was said of
    /// them. Before the detector looks, which may take a part of one for a secret of its own. A run's report comes masked.
    fn mask_known(&mut self) {
        let coercions = self.request.get_mut("coercions");
        // A call that says none of this, which is nearly every one, need not know the secrets.
        let says_something = !self.touches.is_empty()
            || coercions.is_some()
            || self.approval.is_some()
            || self.message.is_some();
        let Some(runnable) = self.runnable.as_ref().filter(|_| says_something) else { return };
        let mask = runnable.mask();
        let targets = self.touches.iter_mut().filter_map(|touch| touch.get_mut("target"));
        let whys = self.decisions.iter_mut().filter_map(|decision| decision.get_mut("why"));
        for text in targets.chain(whys).chain(coercions) {
            *text = mask.value(text.take());
        }
        if let Some(message) = &mut self.message {
            *message = mask.text(message);
        }
    }
}
