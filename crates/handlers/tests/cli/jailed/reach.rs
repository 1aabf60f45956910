//! Does a caller's argument ever change which files, hosts or programs a command reaches? The real programs, in the real
//! jail, with tools of the kind that one is tempted to write; what was reached is looked up afterwards, not argued from
//! the command line.
//!
//! Every tool may write to its folder, so that a file that an argument changed would be seen, and every command sees more
//! than its author named, so that an argument that leads there would be seen as well.

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
