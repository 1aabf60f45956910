//! Finds and redacts secrets in text.
//!
//! One detector for all data that leaves: tool output, arguments to sinks, journal, logs and request bodies. Pure: the
//! result depends only on the input. No clock, disk, environment or socket.
#![forbid(unsafe_code)]

mod blocks;
mod check;
mod detector;
mod disguises;
mod encoded;
mod finding;
mod known_values;
mod literals;
mod look_alikes;
mod marker;
mod rescan;
mod rule;
mod searcher;
mod shipped;
mod spaced_tokens;
mod split_tokens;
mod stream;
mod view;
mod window;

pub use detector::{Detector, RuleSummary};
pub use finding::{Encoding, Redacted, SecretFinding, Tier};
pub use known_values::KnownValues;
pub use rule::{RuleError, RuleFile};
pub use stream::Stream;
