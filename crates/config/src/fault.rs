//! Faults found while parsing. They carry a JSON pointer; their line and column are looked up later.

use toolgate_spec::{Code, Finding, Format, LineIndex, Pointer, SourcePosition, locate};

use crate::shape::Complaint;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ConfigFault {
    pub at: Pointer,
    pub target: FaultTarget,
    pub complaint: Complaint,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FaultTarget {
    Key,
    Value,
}

impl ConfigFault {
    pub fn at_key(at: Pointer, complaint: Complaint) -> Self {
        Self { at, target: FaultTarget::Key, complaint }
    }

    pub fn at_value(at: Pointer, complaint: Complaint) -> Self {
        Self { at, target: FaultTarget::Value, complaint }
    }
}

/// Counts all faults and keeps the first `MAX_FAULTS`.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    kept: Vec<ConfigFault>,
    count: usize,
}

impl Faults {
    pub fn push(&mut self, fault: ConfigFault) {
        self.count += 1;
        if self.kept.len() < MAX_FAULTS {
            self.kept.push(fault);
        }
    }

    pub const fn count(&self) -> usize {
        self.count
    }

    pub fn into_kept(self) -> Vec<ConfigFault> {
        self.kept
    }
}

/// Looks up the line and column of each pointer in a text that parses as YAML.
pub(crate) fn positions<'p>(
    text: &str,
    pointers: impl Iterator<Item = (&'p Pointer, FaultTarget)>,
) -> Vec<Option<SourcePosition>> {
    let mut findings: Vec<Finding> = pointers
        .map(|(at, target)| {
            let finding = Finding::new(Code::SpecParse, at.clone(), "", "");
            if target == FaultTarget::Key { finding.at_key() } else { finding }
        })
        .collect();
    locate(text, Format::Yaml, &mut findings);
    let lines = LineIndex::new(text);
    findings.iter().map(|finding| finding.span.map(|span| lines.position(span.start))).collect()
}

const MAX_FAULTS: usize = 100;
