//! What `serve` needs beside the gateway: callers from the configuration, a log, and an orderly end.

pub mod auth;
pub mod freshness;
pub mod input;
pub mod local;
pub mod log;
pub mod refusals;
pub mod stopping;
pub mod telemetry;
