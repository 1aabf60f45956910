//! Encodes OTLP as JSON: ids in hexadecimal, names in camel case, 64-bit integers as text, enums as numbers.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

mod metrics;
mod traces;

pub use self::{metrics::metrics, traces::traces};
use crate::hex::hex;

/// The OTLP resource of this process. Created once per start.
#[derive(Clone, Debug)]
pub struct Speaker {
    instance: String,
}

impl Speaker {
    /// The random id distinguishes this process from others and from its own restarts.
    pub fn new(random: [u8; 16]) -> Self {
        Self { instance: uuid_v4(random) }
    }

    fn resource(&self) -> Value {
        json!({
            "attributes": [
                text("service.name", "toolgate"),
                text("service.version", VERSION),
                text("service.instance.id", &self.instance),
            ],
        })
    }
}

fn scope() -> Value {
    json!({ "name": "toolgate", "version": VERSION })
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Nanoseconds since 1970, as text.
fn instant(time: SystemTime) -> String {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos().to_string()
}

fn uuid_v4(mut bytes: [u8; 16]) -> String {
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
    *version = (*version & 0x0f) | 0x40;
    *variant = (*variant & 0x3f) | 0x80;
    let hex = hex(&bytes);
    let mut uuid = String::with_capacity(36);
    for (index, digit) in hex.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            uuid.push('-');
        }
        uuid.push(digit);
    }
    uuid
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests;
