//! End-to-end tests of the real binary, and rules of the repository.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails loudly"
)]

mod alerts;
mod approvals;
mod architecture;
mod asking;
mod attacks;
mod audit;
mod autonomous;
mod bash_in_container;
mod bench;
mod caller_edits;
mod cases;
mod catalog;
mod check;
mod clients;
mod command_namespaces;
mod connect;
mod corpus;
mod debug_mode;
mod diff;
mod documents;
mod door;
mod fairness;
mod formats;
mod full_disk;
mod gateway;
mod generated;
mod help;
mod hook;
mod import_export;
mod install;
mod journals;
mod js;
mod json_shape;
mod language;
mod leavings;
mod ledger;
mod local_pass;
mod malformed;
mod many_files;
mod new;
mod old_state;
mod overrides;
mod own_listeners;
mod own_variables;
mod place;
mod pool;
mod readiness;
mod refusals;
mod reloads;
mod resolve;
mod running_gateway;
mod secret;
mod signed_callers;
mod slices;
mod stand_ins;
mod stopping;
mod telemetry;
mod terminals;
mod test_runs;
mod tokens;
mod upstreams;
mod vetting;
mod wire;
mod workspaces;
