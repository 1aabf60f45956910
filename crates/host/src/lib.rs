//! A gateway in one value: everything assembled from one configuration, for the binary and for programs that embed it.
//!
//! A program that embeds it calls [`run_if_worker`] first in its `main`: tools run in processes that are this same
//! program under another name.
#![forbid(unsafe_code)]

mod alarm;
mod alerts;
mod builder;
mod catalog;
mod commands;
mod decisions;
mod detector;
mod documents;
mod exposure;
mod handlers;
mod journal;
mod journals;
mod load;
mod open;
mod parallel;
mod policies;
mod restored;

pub use builder::Builder;
pub use catalog::{Shipped, preset_names, shipped_tools};
pub use commands::{Commands, Container};
pub use decisions::{RecordedQueue, open_queue};
pub use documents::{Document, Unread};
pub use handlers::own_variables;
pub use journals::{Writes, note_command};
pub use load::{LoadWork, Loaded, Origin, Problem, Surveyed, ToTry};
pub use open::{
    Beside, Extras, NotTested, OpenError, Reloaded, TestRuns, Toolgate, Watched, open_egress, open_state,
};
pub use policies::{PolicyFilesError, overrides_from, policies_from};
pub use restored::{Revived, find_revived};
pub use toolgate_config::Config;
pub use toolgate_gate::{Gate, Outcome, Reason};
pub use toolgate_handlers::{Arg, CliCommand};
pub use toolgate_policy::{ALLOW_ALL, Caller, DENY_ALL, Ruling, ToolPolicy, allow_list, deny_list, when};
pub use toolgate_spec::model::CommandOutput;
pub use toolgate_store::Changes;

/// Turns this process into a worker or a jailer if it was started as one. To be called first in `main`, before any thread
/// exists: tools run in processes that are this same program under another name.
pub fn run_if_worker() {
    toolgate_sandbox::run_if_jailer();
    toolgate_worker::run_if_worker();
}
