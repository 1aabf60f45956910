//! What may a watcher of a command line know, where some words may be absent or stand there several times?
//!
//! It is not asked what the words of a group settle: each way in which the line can be written is followed by a watcher of its
//! own, and a line is refused that any of them refuses. Watchers that know the same are one.

use super::report::Report;
use crate::{
    Pointer,
    model::{Argument, ArgumentGroup},
};

/// Reads one way of writing a command line, word by word.
pub(super) trait Watcher: Copy + PartialEq {
    fn argument(&mut self, argument: &Argument, at: &Pointer, report: &mut Report<'_>);

    /// The line has ended, and a caller writes something of what is sent to the program.
    fn stdin(&self, at: &Pointer, report: &mut Report<'_>);
}

/// One watcher for each state that the line may have led to.
pub(super) struct Possible<W> {
    states: Vec<W>,
}

impl<W: Watcher> Possible<W> {
    pub fn new(start: W) -> Self {
        Self { states: vec![start] }
    }

    pub fn group(&mut self, group: &ArgumentGroup, at: &Pointer, report: &mut Report<'_>) {
        report.once(|report| match group {
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
            report.say(
                at,
                "so many words may be absent that nobody can say what the program makes of the others",
                "write a tool for each way that is meant, or fewer groups",
            );
            self.states.truncate(MOST_STATES);
        }
    }

    pub fn stdin(&self, at: &Pointer, report: &mut Report<'_>) {
        report.once(|report| {
            for state in &self.states {
                state.stdin(at, report);
            }
        });
    }

    /// Those of them that are new.
    fn add(&mut self, states: Vec<W>) -> Vec<W> {
        let new: Vec<W> = states.into_iter().filter(|state| !self.states.contains(state)).collect();
        self.states.extend(&new);
        new
    }
}

fn read<W: Watcher>(states: &[W], args: &[Argument], at: &Pointer, report: &mut Report<'_>) -> Vec<W> {
    let mut states = states.to_vec();
    for (index, one) in args.iter().enumerate() {
        let at = report.text_of(&at.key("args").index(index));
        states = after(&states, |state| state.argument(one, &at, report));
    }
    states
}

fn after<W: Watcher>(states: &[W], mut step: impl FnMut(&mut W)) -> Vec<W> {
    let mut reached: Vec<W> = Vec::with_capacity(states.len());
    for mut state in states.iter().copied() {
        step(&mut state);
        if !reached.contains(&state) {
            reached.push(state);
        }
    }
    reached
}

/// Far more than a line has that a person wrote; a document that was made to have more would only cost time.
const MOST_STATES: usize = 64;

#[cfg(test)]
mod tests;
