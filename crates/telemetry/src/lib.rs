//! Traces and metrics of calls for an OpenTelemetry collector, over OTLP/HTTP in JSON, off the hot path.
//!
//! A call that ends is counted and its summary put into a bounded queue; two tasks beside the calls encode and send.
//! What is sent, under which names, and what is never sent: `docs/telemetry.md`.
#![forbid(unsafe_code)]

mod collector;
mod counts;
mod encode;
mod ended;
mod headers;
mod hex;
mod send;
mod settings;
mod tally;
mod telemetry;
#[cfg(test)]
mod testing;

pub use headers::Headers;
pub use settings::{Callers, Export, Settings, SettingsError};
pub use tally::Report;
pub use telemetry::Telemetry;
