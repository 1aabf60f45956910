//! The real binary on real folders, as a user meets it.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod diff;
mod formats;
mod help;
mod import_export;
mod malformed;
mod many_files;
mod new;
mod resolve;
