//! Workspace files: bounded reads, atomic writes, folder walks. Knows nothing of tools.
#![forbid(unsafe_code)]

mod read;
mod walk;
mod write;

pub use read::{ReadError, read_bounded};
pub use walk::{WalkError, walk};
pub use write::write_atomic;
