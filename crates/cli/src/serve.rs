//! What `serve` needs beside the gateway: callers from the configuration, and a log.

pub mod auth;
pub mod log;
pub mod telemetry;
