//! Tests that a caller's argument never changes which files, hosts or programs a command reaches. Real programs run
//! in the real jail, with typical tools. What they reached is observed, not derived from the command line.
//!
//! Every tool may write to its directory and sees more than its author named, so that any effect of an argument is
//! visible.

mod canary;
mod controls;
mod corpus;
mod options;
mod programs;

pub const ALL: [(&str, fn()); 16] = [
    ("reach_git", programs::git),
    ("reach_grep", programs::grep),
    ("reach_find", programs::find),
    ("reach_tar", programs::tar),
    ("reach_curl", programs::curl),
    ("reach_curl_values", programs::curl_values),
    ("reach_curl_schemes_start_nothing", programs::curl_schemes_start_nothing),
    ("reach_ssh", programs::ssh),
    ("reach_control_git", controls::git),
    ("reach_control_grep", controls::grep),
    ("reach_control_find", controls::find),
    ("reach_control_tar", controls::tar),
    ("reach_control_curl", controls::curl),
    ("reach_control_curl_values", controls::curl_values),
    ("reach_control_ssh", controls::ssh),
    ("reach_control_outside", controls::outside),
];
