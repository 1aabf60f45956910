//! What does `toolgate.yaml` say, and where does each value come from?
#![forbid(unsafe_code)]
