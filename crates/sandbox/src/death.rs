//! Causes of a worker's death.

use std::{fmt, os::unix::process::ExitStatusExt, process::ExitStatus};

/// The end of a worker, as its parent sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Death {
    /// It exited with this code.
    Exited(i32),
    /// It made a system call that its seccomp profile does not list: an escape attempt, or a bug of ours. Operators
    /// must see this.
    SeccompViolation,
    /// Killed from outside: by us at a deadline, by the kernel out of memory, or because its parent died.
    Killed,
    /// It exceeded its CPU time limit.
    CpuLimit,
    /// It crashed with this signal.
    Crashed(i32),
}

/// Reads the exit status of a worker.
pub fn describe_exit(status: ExitStatus) -> Death {
    match (status.signal(), status.code()) {
        (Some(libc::SIGSYS), _) => Death::SeccompViolation,
        (Some(libc::SIGKILL), _) => Death::Killed,
        (Some(libc::SIGXCPU), _) => Death::CpuLimit,
        (Some(signal), _) => Death::Crashed(signal),
        (None, Some(code)) => Death::Exited(code),
        // Stopped or continued. A parent that waits for the end never sees these; in any case this is not a clean
        // exit.
        (None, None) => Death::Crashed(0),
    }
}

impl fmt::Display for Death {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(formatter, "it exited with code {code}"),
            Self::SeccompViolation => {
                write!(formatter, "it made a system call that its seccomp profile forbids")
            }
            Self::Killed => write!(formatter, "it was killed from outside"),
            Self::CpuLimit => write!(formatter, "it exceeded its CPU time limit"),
            Self::Crashed(signal) => write!(formatter, "it crashed with signal {signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: i32, death: Death) {
        assert_eq!(describe_exit(ExitStatus::from_raw(raw)), death);
    }

    #[test]
    fn each_exit_status_maps_to_its_cause() {
        check(0, Death::Exited(0));
        check(7 << 8, Death::Exited(7));
        check(libc::SIGSYS, Death::SeccompViolation);
        check(libc::SIGSYS | 0x80, Death::SeccompViolation);
        check(libc::SIGKILL, Death::Killed);
        check(libc::SIGXCPU, Death::CpuLimit);
        check(libc::SIGSEGV, Death::Crashed(libc::SIGSEGV));
        check(0x137f, Death::Crashed(0));
    }

    #[test]
    fn no_signal_counts_as_an_exit() {
        for signal in 1..=64 {
            let death = describe_exit(ExitStatus::from_raw(signal));
            assert!(!matches!(death, Death::Exited(_)), "signal {signal}");
        }
    }
}
