//! Limits the number of findings of one document, because a hostile document could produce thousands.

use crate::{Code, Finding, Pointer};

/// Collects findings, at most [`MOST_OF_A_CODE`] per code, and counts the rest.
///
/// The first blocking finding of a code is always kept. Harmless findings before it cannot hide it.
pub(super) struct LintReport<'f> {
    findings: &'f mut Vec<Finding>,
    counts: Vec<CodeCount>,
}

struct CodeCount {
    code: Code,
    kept: usize,
    dropped: usize,
    has_blocking: bool,
}

impl<'f> LintReport<'f> {
    pub(super) fn new(findings: &'f mut Vec<Finding>) -> Self {
        Self { findings, counts: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        code: Code,
        at: Pointer,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Finding::new(code, at, message, remedy));
    }

    /// Like `add`, for a finding that blocks publishing.
    pub(super) fn add_blocking(
        &mut self,
        code: Code,
        at: Pointer,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Finding::new(code, at, message, remedy).blocking());
    }

    /// Like `add`, for a problem of the key itself.
    pub(super) fn add_at_key(
        &mut self,
        code: Code,
        at: Pointer,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Finding::new(code, at, message, remedy).at_key());
    }

    /// Reports how many findings were dropped.
    pub(super) fn close(self) {
        for CodeCount { code, dropped, .. } in self.counts {
            if dropped > 0 {
                self.findings.push(Finding::new(
                    code,
                    Pointer::root(),
                    format!("{dropped} more findings of this kind"),
                    "fix the listed ones and check again",
                ));
            }
        }
    }

    fn push(&mut self, finding: Finding) {
        let code = finding.code;
        let known = self.counts.iter().position(|count| count.code == code).unwrap_or(self.counts.len());
        if known == self.counts.len() {
            self.counts.push(CodeCount { code, kept: 0, dropped: 0, has_blocking: false });
        }
        let Some(count) = self.counts.get_mut(known) else { return };
        let is_first_blocking = finding.blocks_publishing && !count.has_blocking;
        if count.kept < MOST_OF_A_CODE || is_first_blocking {
            count.kept += 1;
            count.has_blocking |= finding.blocks_publishing;
            self.findings.push(finding);
        } else {
            count.dropped += 1;
        }
    }
}

const MOST_OF_A_CODE: usize = 16;

#[cfg(test)]
mod tests {
    use super::{LintReport, MOST_OF_A_CODE};
    use crate::{Code, Pointer};

    #[test]
    fn excess_findings_are_counted() {
        let mut findings = Vec::new();
        let mut report = LintReport::new(&mut findings);
        for index in 0..500 {
            report.add(Code::LintLocale, Pointer::new("/tags").index(index), "a", "b");
        }
        report.add(Code::LintTestValue, Pointer::root(), "a", "b");
        report.close();
        assert_eq!(findings.len(), MOST_OF_A_CODE + 2);
        assert_eq!(findings.last().unwrap().message, "484 more findings of this kind");
    }

    #[test]
    fn flood_of_warnings_does_not_hide_a_blocking_finding() {
        let mut findings = Vec::new();
        let mut report = LintReport::new(&mut findings);
        for index in 0..MOST_OF_A_CODE + 4 {
            report.add(Code::LintSecretText, Pointer::new("/tags").index(index), "a", "b");
        }
        for index in 0..10 {
            report.add_blocking(Code::LintSecretText, Pointer::new("/params").index(index), "c", "d");
        }
        report.close();
        assert_eq!(findings.iter().filter(|finding| finding.blocks_publishing).count(), 1);
        assert_eq!(findings.len(), MOST_OF_A_CODE + 2);
        assert_eq!(findings.last().unwrap().message, "13 more findings of this kind");
    }
}
