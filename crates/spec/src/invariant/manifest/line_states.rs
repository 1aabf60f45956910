//! Checks every way in which a command line can be written, because groups may be absent or repeated.
//!
//! Each variant has its own watcher state; the line is rejected if any state rejects it. Equal states are merged.

use super::report::ManifestReport;
use crate::{
    Pointer,
    model::{Argument, ArgumentGroup},
};

/// Reads one variant of a command line, word by word.
pub(super) trait LineWatcher: Copy + PartialEq {
    fn argument(&mut self, argument: &Argument, at: &Pointer, report: &mut ManifestReport<'_>);

    /// Called at the end of the line if a caller fills in a part of standard input.
    fn stdin(&self, at: &Pointer, report: &mut ManifestReport<'_>);
}

/// One watcher for each state that the line can reach.
pub(super) struct LineStates<W> {
    states: Vec<W>,
}

impl<W: LineWatcher> LineStates<W> {
    pub fn new(start: W) -> Self {
        Self { states: vec![start] }
    }

    pub fn group(&mut self, group: &ArgumentGroup, at: &Pointer, report: &mut ManifestReport<'_>) {
        report.without_duplicates(|report| match group {
            ArgumentGroup::One(one) => {
                let at = report.text_of(at);
                self.states = after(&self.states, |state| state.argument(one, &at, report));
            }
            ArgumentGroup::When { args, .. } => {
                let given = read(&self.states, args, at, report);
                self.add(given);
            }
            ArgumentGroup::Each { args, .. } => {
                let mut latest = self.states.clone();
                while !latest.is_empty() && self.states.len() <= MOST_STATES {
                    latest = self.add(read(&latest, args, at, report));
                }
            }
        });
        if self.states.len() > MOST_STATES {
            report.add(
                at,
                "the command line has too many variants to check, because too many groups are optional",
                "write one tool per variant, or use fewer groups",
            );
            self.states.truncate(MOST_STATES);
        }
    }

    pub fn stdin(&self, at: &Pointer, report: &mut ManifestReport<'_>) {
        report.without_duplicates(|report| {
            for state in &self.states {
                state.stdin(at, report);
            }
        });
    }

    /// Adds the states and returns the new ones.
    fn add(&mut self, states: Vec<W>) -> Vec<W> {
        let new: Vec<W> = states.into_iter().filter(|state| !self.states.contains(state)).collect();
        self.states.extend(&new);
        new
    }
}

fn read<W: LineWatcher>(
    states: &[W],
    args: &[Argument],
    at: &Pointer,
    report: &mut ManifestReport<'_>,
) -> Vec<W> {
    let mut states = states.to_vec();
    for (index, one) in args.iter().enumerate() {
        let at = report.text_of(&at.key("args").index(index));
        states = after(&states, |state| state.argument(one, &at, report));
    }
    states
}

fn after<W: LineWatcher>(states: &[W], mut step: impl FnMut(&mut W)) -> Vec<W> {
    let mut reached: Vec<W> = Vec::with_capacity(states.len());
    for mut state in states.iter().copied() {
        step(&mut state);
        if !reached.contains(&state) {
            reached.push(state);
        }
    }
    reached
}

/// Far more than a hand-written line has. The limit bounds the time for generated documents.
const MOST_STATES: usize = 64;

#[cfg(test)]
mod tests;
