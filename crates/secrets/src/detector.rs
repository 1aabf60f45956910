//! The detector: rules that have passed their examples, ready to scan texts.

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{
    finding::{Redacted, SecretFinding, Tier},
    known_values::KnownValues,
    rule::{RuleError, RuleFile, read},
    searcher::{Scratch, Searcher},
    shipped::SHIPPED,
    stream::Stream,
    window::{self, Covered, CoveredPart, WINDOW},
};

/// Finds secrets. Immutable and shareable.
pub struct Detector {
    searcher: Searcher,
}

/// A description of a rule for people.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleSummary {
    pub id: Arc<str>,
    pub provider: Arc<str>,
    pub kind: Arc<str>,
    pub tier: Tier,
}

impl Detector {
    /// The shipped rules; loaded once per process.
    pub fn shipped() -> Result<Arc<Self>, RuleError> {
        static SHARED: OnceLock<Result<Arc<Detector>, RuleError>> = OnceLock::new();
        SHARED.get_or_init(|| Self::with(&[], &[]).map(Arc::new)).clone()
    }

    /// The shipped rules plus additional ones, without the disabled ids.
    pub fn with(additional: &[RuleFile<'_>], disabled: &[&str]) -> Result<Self, RuleError> {
        let files: Vec<RuleFile<'_>> = SHIPPED.iter().chain(additional).copied().collect();
        Self::from_files(&files, disabled)
    }

    /// Only these rules. Fails if a rule is invalid or does not pass its own examples.
    pub fn from_files(files: &[RuleFile<'_>], disabled: &[&str]) -> Result<Self, RuleError> {
        let mut loaded = Vec::new();
        for file in files {
            loaded.extend(read(*file)?);
        }
        let mut ids = HashSet::new();
        if let Some(twice) = loaded.iter().find(|loaded| !ids.insert(loaded.rule.id.clone())) {
            return Err(twice.error("another rule has this id; choose a unique id"));
        }
        if let Some(unknown) = disabled.iter().find(|id| !ids.contains(**id)) {
            let message = format!("unknown disabled rule `{unknown}`; see the list of rules");
            return Err(RuleError { file: "disabled".to_owned(), rule: String::new(), message });
        }
        loaded.retain(|loaded| !disabled.contains(&&*loaded.rule.id));
        let mut examples = Vec::new();
        let mut rules = Vec::new();
        for mut one in loaded {
            let hits = std::mem::take(&mut one.hits);
            let misses = std::mem::take(&mut one.misses);
            examples.push((one.error("fails an example"), hits, misses));
            rules.push(one.rule);
        }
        let searcher = Searcher::new(rules);
        for (index, (error, hits, misses)) in examples.into_iter().enumerate() {
            check_examples(&searcher, index, &hits, &misses)
                .map_err(|message| RuleError { message, ..error })?;
        }
        Ok(Self { searcher })
    }

    /// Returns all secrets in order, without overlaps.
    pub fn scan(&self, text: &str) -> Vec<SecretFinding> {
        self.findings(text.as_bytes(), Tier::Possible)
    }

    /// Replaces every secret of at least this tier by a marker. Keeps the number of lines.
    pub fn redact<'t>(&self, text: &'t str, at_least: Tier) -> Redacted<'t> {
        self.redact_knowing(text, at_least, &mut KnownValues::default())
    }

    /// The same for one of several texts of a result: also redacts values that were found in the others, and adds its
    /// own.
    pub fn redact_knowing<'t>(&self, text: &'t str, at_least: Tier, known: &mut KnownValues) -> Redacted<'t> {
        let bytes = text.as_bytes();
        let mut covered = Vec::new();
        let before = known.len();
        let mut less_sure = window::walk(&self.searcher, bytes, at_least, known, |one| covered.push(one));
        // Earlier windows did not know the values that later ones found.
        if bytes.len() > WINDOW
            && known.len() > before
            && window::has_repeats(bytes, &covered, at_least, known)
        {
            covered.clear();
            less_sure = window::walk(&self.searcher, bytes, at_least, known, |one| covered.push(one));
        }
        if covered.is_empty() {
            return Redacted { text: Cow::Borrowed(text), findings: Vec::new(), less_sure };
        }
        let mut out = Vec::with_capacity(text.len());
        window::write(&self.searcher, bytes, 0..bytes.len(), &covered, &mut out);
        // Findings begin and end at characters, so the bytes are valid.
        let text = String::from_utf8(out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut findings = Vec::new();
        for one in covered {
            self.add(one, &mut findings);
        }
        Redacted { text: Cow::Owned(text), findings, less_sure }
    }

    /// Redacts a text that arrives in pieces. The result does not depend on the boundaries of the pieces.
    pub fn stream(self: &Arc<Self>, at_least: Tier) -> Stream {
        Stream::new(self.clone(), at_least)
    }

    /// Returns the first of the most certain secrets of at least this tier.
    pub fn contains(&self, bytes: &[u8], at_least: Tier) -> Option<SecretFinding> {
        let findings = self.findings(bytes, at_least);
        let surest = findings.iter().map(|finding| finding.tier).max()?;
        findings.into_iter().find(|finding| finding.tier == surest)
    }

    /// Descriptions of all rules.
    pub fn rules(&self) -> impl Iterator<Item = RuleSummary> {
        self.searcher.rules.iter().map(|rule| RuleSummary {
            id: rule.id.clone(),
            provider: rule.provider.clone(),
            kind: rule.kind.clone(),
            tier: rule.tier,
        })
    }

    pub(crate) fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    pub(crate) fn add(&self, covered: Covered, findings: &mut Vec<SecretFinding>) {
        if covered.part == CoveredPart::Rest {
            if let Some(last) = findings.last_mut() {
                last.span.end = covered.span.end;
            }
            return;
        }
        let Some(rule) = self.searcher.rules.get(covered.rule) else { return };
        findings.push(SecretFinding {
            tier: covered.tier,
            kind: rule.kind.clone(),
            provider: rule.provider.clone(),
            rule: rule.id.clone(),
            span: covered.span,
            encoding: covered.encoding,
        });
    }

    fn findings(&self, bytes: &[u8], at_least: Tier) -> Vec<SecretFinding> {
        let mut findings = Vec::new();
        let mut known = KnownValues::default();
        window::walk(&self.searcher, bytes, at_least, &mut known, |one| self.add(one, &mut findings));
        findings
    }
}

impl fmt::Debug for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detector").field("rules", &self.searcher.rules.len()).finish_non_exhaustive()
    }
}

/// Examples run through the normal search, which also proves that the rule is reached.
fn check_examples(
    searcher: &Searcher,
    rule: usize,
    hits: &[String],
    misses: &[String],
) -> Result<(), String> {
    let tier = searcher.rules.get(rule).map(|rule| rule.tier);
    let finds = |text: &String| {
        searcher
            .search(text.as_bytes(), &mut Scratch::default())
            .iter()
            .any(|found| found.rule == rule && Some(found.tier) == tier)
    };
    if let Some(at) = hits.iter().position(|text| !finds(text)) {
        return Err(format!("does not match its example `hit` {}", at + 1));
    }
    if let Some(at) = misses.iter().position(finds) {
        return Err(format!("matches its example `miss` {}", at + 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
