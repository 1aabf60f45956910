//! How a tool is run: JavaScript in the jailed worker, and the effects it may ask for.
#![forbid(unsafe_code)]
