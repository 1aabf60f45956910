//! Exports traces and metrics of calls to an OpenTelemetry collector, over OTLP/HTTP in JSON, off the hot path.
//!
//! A finished call is counted and its summary put into a bounded queue; two background tasks encode and send.
//! `docs/telemetry.md` lists what is sent, under which names, and what is never sent.
#![forbid(unsafe_code)]

mod collector;
mod counts;
mod encode;
mod headers;
mod hex;
mod send;
mod settings;
mod summary;
mod tally;
mod telemetry;
#[cfg(test)]
mod testing;

pub use headers::Headers;
pub use settings::{CallerNames, Export, SettingsError, TelemetrySettings};
pub use tally::ExportReport;
pub use telemetry::Telemetry;
