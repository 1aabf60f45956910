//! Findings that block publishing: texts that attack models, and secrets.
//!
//! An operator may accept a finding by its code. The acceptance is part of the pass, so it applies to exactly this
//! document.

use std::collections::BTreeSet;

use toolgate_spec::{Code, Finding};

use super::Candidate;

impl Candidate {
    /// The same document with further accepted codes. Codes that block nothing here are dropped.
    #[must_use]
    pub fn accepting(&self, codes: &[Code]) -> Self {
        let newly = blocking(&self.findings).map(|finding| finding.code).filter(|code| codes.contains(code));
        let names: BTreeSet<String> =
            self.accepted.iter().cloned().chain(newly.map(|code| code.name().to_owned())).collect();
        Self { accepted: names.into_iter().collect(), ..self.clone() }
    }

    /// The codes that an operator must accept before this document can be published.
    pub fn unaccepted_codes(&self) -> Vec<&'static str> {
        let open = unaccepted(&self.findings, &self.accepted);
        let codes: BTreeSet<&str> = open.iter().map(|finding| finding.code.name()).collect();
        codes.into_iter().collect()
    }

    /// The reason why this document cannot be published, with the first finding.
    pub fn refusal(&self) -> Option<String> {
        let open = unaccepted(&self.findings, &self.accepted);
        let first = open.first()?;
        let codes = self.unaccepted_codes().join(", ");
        Some(format!("not accepted: {codes}; at {}: {}", first.at.as_str(), first.message))
    }
}

/// Blocking findings whose codes are not among the accepted ones.
pub(super) fn unaccepted<'f>(findings: &'f [Finding], accepted: &[String]) -> Vec<&'f Finding> {
    let is_accepted = |finding: &Finding| accepted.iter().any(|code| code == finding.code.name());
    blocking(findings).filter(|finding| !is_accepted(finding)).collect()
}

fn blocking(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.blocks_publishing)
}
