//! Protocol between the gateway and a worker: typed frames of limited length.
//!
//! A frame is a length (u32, little endian), a kind (u8) and fields in fixed order. Both ends decode with the same
//! bounded reader. Anything invalid is a `WireError`, which ends the worker and its call.

mod codec;
mod effect;
mod frame;
mod helper;

pub use codec::{FrameReader, FrameWriter, WireError};
pub use effect::{
    Effect, EffectAnswer, EffectError, FetchAnswer, FetchCall, FileCall, JsonAnswer, OUT_OF_TIME, Redirect,
};
pub use frame::{
    Done, FromWorker, Load, RunLimits, RunScript, ScriptEnding, ScriptUsage, StartWorker, ToWorker,
};
pub use helper::Helper;

/// Maximum length of a frame body, in either direction.
pub const MAX_FRAME: usize = 48 << 20;

/// Maximum length of an error description. The prelude cuts name, message and stack to 4,000 characters, kind,
/// helper and reason to 200, and appends `…` to cut text. In JSON each character takes at most six bytes
/// (`\u0001`). That is (3 × 4,001 + 3 × 201) × 6 = 75,636 bytes, plus the names of the six fields.
pub const MAX_ERROR: usize = 128 << 10;

/// Length and kind.
pub const HEADER: usize = 5;

/// Kind and body length from a header; an error if a frame may not be that long.
pub fn body_length(header: [u8; HEADER]) -> Result<(u8, usize), WireError> {
    let [a, b, c, d, kind] = header;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > MAX_FRAME { Err(WireError::TooLong(length)) } else { Ok((kind, length)) }
}

#[cfg(test)]
mod tests;
