//! The journal: records that cannot be changed unseen. Knows no tool and no caller.
#![forbid(unsafe_code)]
