//! How much may one document say? A hostile one must not drown the reader in findings.

use crate::{Code, Finding, Pointer};

/// Gathers findings, at most [`MOST_OF_A_CODE`] of each code; the rest are counted.
pub(super) struct Report<'f> {
    findings: &'f mut Vec<Finding>,
    counts: Vec<(Code, usize)>,
}

impl<'f> Report<'f> {
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

    /// As `add`, for what keeps a document from being published.
    pub(super) fn add_blocking(
        &mut self,
        code: Code,
        at: Pointer,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Finding::new(code, at, message, remedy).blocking());
    }

    /// As `add`, for a key that is itself at fault.
    pub(super) fn add_at_key(
        &mut self,
        code: Code,
        at: Pointer,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Finding::new(code, at, message, remedy).at_key());
    }

    /// Says how many findings were left out.
    pub(super) fn close(self) {
        for (code, count) in self.counts {
            if count > MOST_OF_A_CODE {
                self.findings.push(Finding::new(
                    code,
                    Pointer::root(),
                    format!("{} more places with this finding", count - MOST_OF_A_CODE),
                    "repair the ones that are listed and check again",
                ));
            }
        }
    }

    fn push(&mut self, finding: Finding) {
        let known =
            self.counts.iter().position(|(code, _)| *code == finding.code).unwrap_or(self.counts.len());
        if known == self.counts.len() {
            self.counts.push((finding.code, 0));
        }
        let Some((_, count)) = self.counts.get_mut(known) else { return };
        *count += 1;
        if *count <= MOST_OF_A_CODE {
            self.findings.push(finding);
        }
    }
}

const MOST_OF_A_CODE: usize = 16;

#[cfg(test)]
mod tests {
    use super::{MOST_OF_A_CODE, Report};
    use crate::{Code, Pointer};

    #[test]
    fn a_flood_becomes_a_number() {
        let mut findings = Vec::new();
        let mut report = Report::new(&mut findings);
        for index in 0..500 {
            report.add(Code::LintLocale, Pointer::new("/tags").index(index), "a", "b");
        }
        report.add(Code::LintTestValue, Pointer::root(), "a", "b");
        report.close();
        assert_eq!(findings.len(), MOST_OF_A_CODE + 2);
        assert_eq!(findings.last().unwrap().message, "484 more places with this finding");
    }
}
