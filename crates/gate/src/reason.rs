//! The reasons why a call ends without a result: one closed table for journal, metrics, MCP and people.

mod remedy;

use std::fmt;

/// A stage of the call. Call order is alphabetical order.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CallStage {
    Admit,
    Bind,
    Check,
    Decide,
    Execute,
    Filter,
}

impl CallStage {
    pub const ALL: [Self; 6] =
        [Self::Admit, Self::Bind, Self::Check, Self::Decide, Self::Execute, Self::Filter];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Bind => "bind",
            Self::Check => "check",
            Self::Decide => "decide",
            Self::Execute => "execute",
            Self::Filter => "filter",
        }
    }

    /// The stage name that audit exports use.
    pub const fn audit_name(self) -> &'static str {
        match self {
            Self::Admit => "REGISTRY",
            Self::Bind | Self::Check => "VALIDATION",
            Self::Decide => "PERMISSION",
            Self::Execute => "EXECUTION",
            Self::Filter => "OUTPUT",
        }
    }
}

/// The audit name of authentication, which comes before the six stages: unauthenticated requests make no call.
pub const AUTH: &str = "AUTH";

/// Which side ended the call.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EndKind {
    /// The gateway refused it. Expected, and explained to the caller.
    Refused,
    /// The tool ran and failed.
    Failed,
    /// Internal error of the gateway. The caller sees only the call's id.
    Broken,
}

/// Whether the same call can succeed later.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Retry {
    /// No.
    Never,
    /// With other arguments.
    ChangeArguments,
    /// Yes, after some time.
    Later,
    /// Yes, once a person has approved it.
    AfterApproval,
}

impl Retry {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::ChangeArguments => "change-arguments",
            Self::Later => "later",
            Self::AfterApproval => "after-approval",
        }
    }
}

/// One row per reason: variant, code, end, retry, meaning for readers of the documentation.
macro_rules! reasons {
    ($($variant:ident $code:literal $end:ident $retry:ident $meaning:literal;)*) => {
        /// Stable: dashboards and audit queries depend on the codes.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum Reason { $($variant,)* }

        impl Reason {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            pub const fn end(self) -> EndKind {
                match self { $(Self::$variant => EndKind::$end,)* }
            }

            pub const fn retry(self) -> Retry {
                match self { $(Self::$variant => Retry::$retry,)* }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

reasons! {
    UnknownTool "admit.unknown_tool" Refused Never "no live tool has this name, or the caller may not see it";
    ShuttingDown "admit.shutting_down" Refused Later "the gateway is stopping";
    InputShape "bind.input_shape" Refused ChangeArguments "the arguments do not fit the tool's input schema";
    InputTooLarge "bind.too_large" Refused ChangeArguments "the arguments have too many bytes or nest too deeply";
    ArgumentRefused "check.argument_refused" Refused ChangeArguments "an argument cannot be passed to the tool: it would be read as an option, or is not a valid path, URL or text";
    PathOutsideRoots "check.path_outside_roots" Refused ChangeArguments "an argument leads to a path that this tool may not touch";
    PathBlocked "check.path_blocked" Refused ChangeArguments "an argument leads to a path that is blocked for this tool";
    HostNotAllowed "check.host_not_allowed" Refused ChangeArguments "an argument leads to a host, port or address that this tool may not reach";
    SecretToSink "check.secret_to_sink" Refused ChangeArguments "the arguments contain a secret, and the tool sends them out";
    MissingPermission "decide.missing_permission" Refused Never "the caller lacks a permission that the tool requires";
    PolicyForbids "decide.policy_forbids" Refused Never "a policy forbids this call";
    QueueFull "decide.queue_full" Refused Later "this call needs an approval, and too many approvals are pending; calls that need no approval still run";
    ApprovalPending "decide.approval_pending" Refused AfterApproval "a person must approve this call first";
    ApprovalDenied "decide.approval_denied" Refused Never "an operator denied this call, or the caller's client answered no";
    ApprovalTimeout "decide.approval_timeout" Refused Later "no one answered the approval request in time";
    ApprovalInvalid "decide.approval_invalid" Refused AfterApproval "the approval is unknown, expired, used, or for another call";
    CallerLapsed "decide.caller_lapsed" Refused Never "the caller's token was revoked or expired, or `auth` was edited, after the call was made";
    ToolChanged "decide.tool_changed" Refused Later "the tool or the policies changed while the call waited";
    ApprovalsUnavailable "decide.approvals_unavailable" Broken Later "the approval store cannot be reached";
    Cancelled "execute.cancelled" Failed Later "the caller cancelled the call or went away, or the gateway stopped";
    Panicked "execute.panicked" Broken Later "the gateway panicked during the call; this is a bug in the gateway";
    ToolFailed "execute.tool_failed" Failed ChangeArguments "the tool threw an error";
    CodeInvalid "execute.code_invalid" Failed Never "the tool's code cannot be run";
    UnsettledPromise "execute.unsettled_promise" Failed Never "the tool awaits a promise that never settles";
    NotData "execute.not_data" Failed Never "the result is not plain data";
    CommandFailed "execute.command_failed" Failed ChangeArguments "the command ended with an error";
    BlockedPathMade "execute.blocked_path_made" Failed ChangeArguments "the command created a path that is blocked for this tool; it was moved aside";
    OutputUnreadable "execute.output_unreadable" Failed Never "the command's output does not have the format that its manifest names";
    JailUnavailable "execute.jail_unavailable" Broken Later "this host cannot provide a jail as strong as required";
    Statements "execute.statements" Failed ChangeArguments "the tool executed more statements than it may";
    Timeout "execute.timeout" Failed Later "the call took too long";
    Memory "execute.memory" Failed ChangeArguments "the tool used more memory than it may";
    Stack "execute.stack" Failed ChangeArguments "the code or its data nests too deeply";
    ResultTooLarge "execute.result_too_large" Failed ChangeArguments "the result is too large to send to the gateway";
    HostCalls "execute.host_calls" Failed ChangeArguments "the tool called helpers more often than it may";
    HostBytes "execute.host_bytes" Failed ChangeArguments "the tool moved more bytes through helpers than it may";
    MissingSecret "execute.missing_secret" Failed Later "a value that the tool needs is not set on the gateway";
    ArgumentsTooLarge "execute.arguments_too_large" Failed ChangeArguments "the arguments are too large to send to the worker";
    Busy "execute.busy" Refused Later "too many calls run at once, for this caller or in total";
    WorkerUnavailable "execute.worker_unavailable" Broken Later "no worker can be started that is as strong as required";
    WorkerDied "execute.worker_died" Failed Later "the worker process ended during the call";
    WorkerMisbehaved "execute.worker_misbehaved" Failed Never "the worker sent an invalid message";
    UpstreamUnavailable "execute.upstream_unavailable" Failed Later "the upstream server cannot be started or reached";
    UpstreamChanged "execute.upstream_changed" Failed Never "the upstream server describes this tool differently than at its review";
    UpstreamMisbehaved "execute.upstream_misbehaved" Failed Later "the upstream server broke the protocol";
    OutputShape "filter.output_shape" Failed Never "the result does not fit the tool's output schema";
    SecretInOutput "filter.secret" Failed Never "the result contains a secret that cannot be redacted";
    OutputTooLarge "filter.too_large" Failed ChangeArguments "the result is larger than the tool may return";
    JournalFailed "journal.not_written" Broken Later "the journal cannot be written, so no call runs and no result is released";
}

impl Reason {
    /// The stage that ended the call. `None` for the journal, which is not a stage.
    pub fn stage(self) -> Option<CallStage> {
        let (stage, _) = self.code().split_once('.')?;
        CallStage::ALL.into_iter().find(|known| known.name() == stage)
    }

    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.code() == code)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_begin_with_their_stage() {
        let codes: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason.code()), Some(*reason));
            assert!(reason.stage().is_some() || *reason == Reason::JournalFailed, "{reason}");
        }
    }

    #[test]
    fn every_reason_has_a_cause_and_a_remedy() {
        let mut remedies = BTreeSet::new();
        for reason in Reason::ALL {
            assert!(reason.meaning().len() > 10, "{reason}");
            assert!(reason.remedy().len() > 20 && reason.remedy().ends_with('.'), "{reason}");
            assert!(remedies.insert(reason.remedy()), "{reason} has the remedy of another reason");
        }
    }

    #[test]
    fn only_a_broken_gateway_hides_its_reason() {
        for reason in Reason::ALL.iter().filter(|reason| reason.end() == EndKind::Broken) {
            assert_eq!(reason.retry(), Retry::Later, "{reason}");
        }
    }
}
