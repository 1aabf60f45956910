//! The detector: rules that have passed their examples, ready to look at texts.

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{
    finding::{Finding, Redacted, Tier},
    known::KnownValues,
    look::{Looker, Scratch},
    rule::{RuleError, RuleFile, read},
    shipped::SHIPPED,
    stream::Stream,
    window::{self, Covered, Part, WINDOW},
};

/// Finds secrets. Immutable; share it.
pub struct Detector {
    looker: Looker,
}

/// What a rule finds, for people.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleSummary {
    pub id: Arc<str>,
    pub provider: Arc<str>,
    pub kind: Arc<str>,
    pub tier: Tier,
}

impl Detector {
    /// The rules that we ship; loaded once for the whole process.
    pub fn shipped() -> Result<Arc<Self>, RuleError> {
        static SHARED: OnceLock<Result<Arc<Detector>, RuleError>> = OnceLock::new();
        SHARED.get_or_init(|| Self::with(&[], &[]).map(Arc::new)).clone()
    }

    /// The rules that we ship and others besides, without those that are disabled by their ids.
    pub fn with(additional: &[RuleFile<'_>], disabled: &[&str]) -> Result<Self, RuleError> {
        let files: Vec<RuleFile<'_>> = SHIPPED.iter().chain(additional).copied().collect();
        Self::from_files(&files, disabled)
    }

    /// These rules and no others. Fails if one is unsound or does not keep to its own examples.
    pub fn from_files(files: &[RuleFile<'_>], disabled: &[&str]) -> Result<Self, RuleError> {
        let mut loaded = Vec::new();
        for file in files {
            loaded.extend(read(*file)?);
        }
        let mut ids = HashSet::new();
        if let Some(twice) = loaded.iter().find(|loaded| !ids.insert(loaded.rule.id.clone())) {
            return Err(twice.error("another rule has this id; ids are unique over all files"));
        }
        if let Some(unknown) = disabled.iter().find(|id| !ids.contains(**id)) {
            let message = format!("no rule has the disabled id `{unknown}`; see the list of rules");
            return Err(RuleError { file: "disabled".to_owned(), rule: String::new(), message });
        }
        loaded.retain(|loaded| !disabled.contains(&&*loaded.rule.id));
        let mut examples = Vec::new();
        let mut rules = Vec::new();
        for mut one in loaded {
            let hits = std::mem::take(&mut one.hits);
            let misses = std::mem::take(&mut one.misses);
            examples.push((one.error("does not keep to an example"), hits, misses));
            rules.push(one.rule);
        }
        let looker = Looker::new(rules);
        for (index, (error, hits, misses)) in examples.into_iter().enumerate() {
            check_examples(&looker, index, &hits, &misses)
                .map_err(|message| RuleError { message, ..error })?;
        }
        Ok(Self { looker })
    }

    /// Every secret, in order, none overlapping another.
    pub fn scan(&self, text: &str) -> Vec<Finding> {
        self.findings(text.as_bytes(), Tier::Possible)
    }

    /// The text with a mark in place of every secret that is at least so sure. The number of lines stays.
    pub fn redact<'t>(&self, text: &'t str, at_least: Tier) -> Redacted<'t> {
        self.redact_knowing(text, at_least, &mut KnownValues::default())
    }

    /// The same for one of several texts of a result: also redacts the values that were found in the others, and adds its own.
    pub fn redact_knowing<'t>(&self, text: &'t str, at_least: Tier, known: &mut KnownValues) -> Redacted<'t> {
        let bytes = text.as_bytes();
        let mut covered = Vec::new();
        let before = known.len();
        let mut less_sure = window::walk(&self.looker, bytes, at_least, known, |one| covered.push(one));
        // An earlier window did not know what a later one found.
        if bytes.len() > WINDOW && known.len() > before {
            covered.clear();
            less_sure = window::walk(&self.looker, bytes, at_least, known, |one| covered.push(one));
        }
        if covered.is_empty() {
            return Redacted { text: Cow::Borrowed(text), findings: Vec::new(), less_sure };
        }
        let mut out = Vec::with_capacity(text.len());
        window::write(&self.looker, bytes, 0..bytes.len(), &covered, &mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        let mut findings = Vec::new();
        for one in covered {
            self.add(one, &mut findings);
        }
        Redacted { text: Cow::Owned(text), findings, less_sure }
    }

    /// Redacts what arrives in pieces; the result does not depend on where they are cut.
    pub fn stream(self: &Arc<Self>, at_least: Tier) -> Stream {
        Stream::new(self.clone(), at_least)
    }

    /// The surest secret in a body that is at least so sure; the first of them.
    pub fn contains(&self, bytes: &[u8], at_least: Tier) -> Option<Finding> {
        let findings = self.findings(bytes, at_least);
        let surest = findings.iter().map(|finding| finding.tier).max()?;
        findings.into_iter().find(|finding| finding.tier == surest)
    }

    /// What is looked for.
    pub fn rules(&self) -> impl Iterator<Item = RuleSummary> {
        self.looker.rules.iter().map(|rule| RuleSummary {
            id: rule.id.clone(),
            provider: rule.provider.clone(),
            kind: rule.kind.clone(),
            tier: rule.tier,
        })
    }

    pub(crate) fn looker(&self) -> &Looker {
        &self.looker
    }

    pub(crate) fn add(&self, covered: Covered, findings: &mut Vec<Finding>) {
        if covered.part == Part::Rest {
            if let Some(last) = findings.last_mut() {
                last.span.end = covered.span.end;
            }
            return;
        }
        let Some(rule) = self.looker.rules.get(covered.rule) else { return };
        findings.push(Finding {
            tier: covered.tier,
            kind: rule.kind.clone(),
            provider: rule.provider.clone(),
            rule: rule.id.clone(),
            span: covered.span,
            encoding: covered.encoding,
        });
    }

    fn findings(&self, bytes: &[u8], at_least: Tier) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut known = KnownValues::default();
        window::walk(&self.looker, bytes, at_least, &mut known, |one| self.add(one, &mut findings));
        findings
    }
}

impl fmt::Debug for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detector").field("rules", &self.looker.rules.len()).finish_non_exhaustive()
    }
}

/// Examples go the way of every text, so that they also prove that the rule is reached.
fn check_examples(looker: &Looker, rule: usize, hits: &[String], misses: &[String]) -> Result<(), String> {
    let tier = looker.rules.get(rule).map(|rule| rule.tier);
    let finds = |text: &String| {
        looker
            .look(text.as_bytes(), &mut Scratch::default())
            .iter()
            .any(|found| found.rule == rule && Some(found.tier) == tier)
    };
    if let Some(at) = hits.iter().position(|text| !finds(text)) {
        return Err(format!("does not find its example `hit` {}", at + 1));
    }
    if let Some(at) = misses.iter().position(finds) {
        return Err(format!("finds its example `miss` {}", at + 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
