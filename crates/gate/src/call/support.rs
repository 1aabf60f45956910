//! Helpers of the stages.

mod catch_panic;
pub(super) mod console;
pub(super) mod disk;
pub(super) mod personal;
pub(super) mod prompt;
pub(super) mod queue;
pub(super) mod recheck;
pub(crate) mod secrets;
pub(super) mod stop;
pub(super) mod texts;

pub use self::{catch_panic::catch_panic, recheck::until_lapse, secrets::text_for_journal};
