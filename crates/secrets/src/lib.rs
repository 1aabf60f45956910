//! Which parts of a text are secrets, and how does the text read without them?
//!
//! One detector for everything that leaves: tool output, arguments to sinks, journal and logs, bodies of requests.
//! Pure: what comes out depends on what goes in. No clock, disk, environment or socket.
#![forbid(unsafe_code)]

mod check;
mod coded;
mod detector;
mod finding;
mod fold;
mod join;
mod known;
mod literals;
mod look;
mod marker;
mod rule;
mod settle;
mod shipped;
mod spread;
mod stream;
mod unfold;
mod view;
mod window;

pub use detector::{Detector, RuleSummary};
pub use finding::{Encoding, Finding, Redacted, Tier};
pub use known::KnownValues;
pub use rule::{RuleError, RuleFile};
pub use stream::Stream;
