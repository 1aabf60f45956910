//! The one way out: rules, judged addresses, pinned connections, capped answers. Knows no tool and no caller.
#![forbid(unsafe_code)]
