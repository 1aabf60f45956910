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
        let count = if let Some((_, count)) = self.counts.iter_mut().find(|(code, _)| *code == finding.code) {
            *count += 1;
            *count
        } else {
            self.counts.push((finding.code, 1));
            1
        };
        if count <= MOST_OF_A_CODE {
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
