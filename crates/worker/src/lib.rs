//! What shares a process with untrusted JavaScript: Wasmtime, pure helpers, and one socket.
#![forbid(unsafe_code)]

mod helpers;

pub use helpers::{Answer, ErrorClass, HelperError};
