//! Faults on their way to becoming errors: known by pointer, not yet by place.

use toolgate_spec::{Code, Finding, Format, LineIndex, Pointer, Position, locate};

use crate::shape::Complaint;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Fault {
    pub at: Pointer,
    pub target: Target,
    pub complaint: Complaint,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    Key,
    Value,
}

impl Fault {
    pub fn at_key(at: Pointer, complaint: Complaint) -> Self {
        Self { at, target: Target::Key, complaint }
    }

    pub fn at_value(at: Pointer, complaint: Complaint) -> Self {
        Self { at, target: Target::Value, complaint }
    }
}

/// All of them are counted, and as many kept as a person would read.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    kept: Vec<Fault>,
    count: usize,
}

impl Faults {
    pub fn push(&mut self, fault: Fault) {
        self.count += 1;
        if self.kept.len() < MAX_FAULTS {
            self.kept.push(fault);
        }
    }

    pub const fn count(&self) -> usize {
        self.count
    }

    pub fn into_kept(self) -> Vec<Fault> {
        self.kept
    }
}

/// Where pointers stand in a text that can be read.
pub(crate) fn positions<'p>(
    text: &str,
    pointers: impl Iterator<Item = (&'p Pointer, Target)>,
) -> Vec<Option<Position>> {
    let mut findings: Vec<Finding> = pointers
        .map(|(at, target)| {
            let finding = Finding::new(Code::SpecParse, at.clone(), "", "");
            if target == Target::Key { finding.at_key() } else { finding }
        })
        .collect();
    locate(text, Format::Yaml, &mut findings);
    let lines = LineIndex::new(text);
    findings.iter().map(|finding| finding.span.map(|span| lines.position(span.start))).collect()
}

const MAX_FAULTS: usize = 100;
