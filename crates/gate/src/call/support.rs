//! Helpers of the stages.

mod caught;
pub(super) mod console;
pub(super) mod disk;
pub(super) mod personal;
pub(super) mod prompt;
pub(super) mod queue;
pub(super) mod recheck;
pub(crate) mod secrets;
pub(super) mod stop;
pub(super) mod texts;

pub use self::{caught::caught, recheck::until_lapse, secrets::text_for_journal};
