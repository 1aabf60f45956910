//! What passes between the gateway and a worker? Length-capped, typed frames and nothing else.
//!
//! A frame is a length (u32, little endian), a kind (u8) and fields in fixed order. Both ends decode with the same
//! bounded reader; whatever does not fit is a `WireError`, which ends the worker and the call it ran.

mod codec;
mod effect;
mod frame;
mod helper;

pub use codec::{Reader, WireError, Writer};
pub use effect::{
    Effect, EffectAnswer, EffectError, FetchAnswer, FetchCall, FileCall, JsonAnswer, OUT_OF_TIME, Redirect,
};
pub use frame::{Done, Ending, FromWorker, Load, Run, RunLimits, Start, ToWorker, Usage};
pub use helper::Helper;

/// The most that one frame may carry, in either direction.
pub const MAX_FRAME: usize = 48 << 20;

/// The most that the description of an error takes. The prelude cuts name, message and stack to 4,000 characters, kind,
/// helper and reason to 200, and puts a `…` behind what was cut; in JSON each takes six bytes at most (`\u0001`). That is
/// (3 × 4,001 + 3 × 201) × 6 = 75,636 bytes, and the names of the six fields.
pub const MAX_ERROR: usize = 128 << 10;

/// Length and kind.
pub const HEADER: usize = 5;

/// The length that a header announces, if a frame may be that long.
pub fn body_length(header: [u8; HEADER]) -> Result<(u8, usize), WireError> {
    let [a, b, c, d, kind] = header;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > MAX_FRAME { Err(WireError::TooLong(length)) } else { Ok((kind, length)) }
}

#[cfg(test)]
mod tests;
