//! Parts of `serve`: its log, the log of calls, and the socket for `toolgate call`.

pub mod calls;
pub mod local;
pub mod log;
