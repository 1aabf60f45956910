//! System call filter of a sealed worker. Any call that is not listed kills the process.

use super::{
    calls::Calls,
    list::{FilterTarget, ProfileError, SeccompList},
    program::{self, Otherwise},
};
use crate::sys::filter::Instruction;

/// A parsed list that kills.
#[derive(Debug)]
pub struct SeccompProfile(pub(super) SeccompList);

impl SeccompProfile {
    /// The profile of a worker that runs JavaScript.
    pub fn worker_js() -> Result<Self, ProfileError> {
        Self::named("worker-js", WORKER_JS)
    }

    fn named(name: &str, text: &str) -> Result<Self, ProfileError> {
        SeccompList::named(name, text, Otherwise::Kill).map(Self)
    }

    /// Compiles the filter for this machine. `SEALED_MEMORY` in the list means any of the descriptors in
    /// `sealed_memory`.
    pub(crate) fn compile(&self, sealed_memory: &[i32]) -> Result<Vec<Instruction>, ProfileError> {
        self.compile_for(&Calls::of_this_machine()?, sealed_memory)
    }

    fn compile_for(&self, calls: &Calls, sealed_memory: &[i32]) -> Result<Vec<Instruction>, ProfileError> {
        let found = self.0.actions(calls, FilterTarget::Worker { sealed_memory })?;
        Ok(program::generate(&found.actions, calls.machine(), self.0.otherwise))
    }
}

const WORKER_JS: &str = include_str!("../../../../profiles/seccomp/worker-js.json");

#[cfg(test)]
mod tests;
