//! Why did a call of JavaScript fail? A closed list; the codes are a promise.

use std::fmt;

use toolgate_sandbox::WorkerFailure;

/// Stable: dashboards and audit queries depend on these words.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FailureCode {
    ToolFailed,
    CodeInvalid,
    UnsettledPromise,
    NotData,
    Statements,
    Timeout,
    Memory,
    Stack,
    ResultTooLarge,
    HostCalls,
    HostBytes,
    MissingSecret,
    ArgumentsTooLarge,
    Busy,
    WorkerUnavailable,
    WorkerDied,
    WorkerMisbehaved,
}

impl FailureCode {
    pub const ALL: &[Self] = &[
        Self::ToolFailed,
        Self::CodeInvalid,
        Self::UnsettledPromise,
        Self::NotData,
        Self::Statements,
        Self::Timeout,
        Self::Memory,
        Self::Stack,
        Self::ResultTooLarge,
        Self::HostCalls,
        Self::HostBytes,
        Self::MissingSecret,
        Self::ArgumentsTooLarge,
        Self::Busy,
        Self::WorkerUnavailable,
        Self::WorkerDied,
        Self::WorkerMisbehaved,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            Self::ToolFailed => "execute.tool_failed",
            Self::CodeInvalid => "execute.code_invalid",
            Self::UnsettledPromise => "execute.unsettled_promise",
            Self::NotData => "execute.not_data",
            Self::Statements => "execute.statements",
            Self::Timeout => "execute.timeout",
            Self::Memory => "execute.memory",
            Self::Stack => "execute.stack",
            Self::ResultTooLarge => "execute.result_too_large",
            Self::HostCalls => "execute.host_calls",
            Self::HostBytes => "execute.host_bytes",
            Self::MissingSecret => "execute.missing_secret",
            Self::ArgumentsTooLarge => "execute.arguments_too_large",
            Self::Busy => "execute.busy",
            Self::WorkerUnavailable => "execute.worker_unavailable",
            Self::WorkerDied => "execute.worker_died",
            Self::WorkerMisbehaved => "execute.worker_misbehaved",
        }
    }
}

/// One failure. Everything in it has been masked.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub code: FailureCode,
    pub message: String,
    /// Where in the author's code, innermost first.
    pub stack: Vec<String>,
    /// Of a helper's error: `SECURITY`, its name and its reason.
    pub helper: Option<Box<HelperFailure>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HelperFailure {
    pub kind: String,
    pub helper: String,
    pub reason: String,
}

impl Failure {
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), stack: Vec::new(), helper: None }
    }
}

impl From<WorkerFailure> for Failure {
    fn from(failure: WorkerFailure) -> Self {
        let code = match &failure {
            WorkerFailure::Busy => FailureCode::Busy,
            WorkerFailure::Unavailable(_) => FailureCode::WorkerUnavailable,
            WorkerFailure::Died(_) => FailureCode::WorkerDied,
            WorkerFailure::Invalid(_) => FailureCode::WorkerMisbehaved,
            WorkerFailure::TooLarge => FailureCode::ArgumentsTooLarge,
        };
        Self::new(code, failure.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code.code(), self.message)
    }
}
