//! Why did a call not end in a result? One closed table for journal, metrics, MCP and people.

mod remedy;

use std::fmt;

/// A stage of the call, in call order, which is the alphabet's.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Stage {
    Admit,
    Bind,
    Check,
    Decide,
    Execute,
    Filter,
}

impl Stage {
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

    /// The same stage in the other vocabulary that journals are searched by.
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

/// The server's door in the other vocabulary. It stands before the six stages: who is not let in makes no call.
pub const AUTH: &str = "AUTH";

/// Who said no?
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum End {
    /// We did. Expected, and explained to the caller.
    Refused,
    /// The tool ran and failed.
    Failed,
    /// We are ill. The caller learns the call's id and nothing else.
    Broken,
}

/// Can the same call succeed later?
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Retry {
    /// Not as it is, and not by trying.
    Never,
    /// With other arguments.
    ChangeArguments,
    /// As it is, in a while.
    Later,
    /// As it is, once a person has approved it.
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

/// One row a reason: variant, code, end, retry, what it means to a reader of the documentation.
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

            pub const fn end(self) -> End {
                match self { $(Self::$variant => End::$end,)* }
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
    UnknownTool "admit.unknown_tool" Refused Never "no such tool is live, or this caller may not know of it";
    ShuttingDown "admit.shutting_down" Refused Later "the gateway is stopping";
    InputShape "bind.input_shape" Refused ChangeArguments "the arguments do not fit the tool's input schema";
    InputTooLarge "bind.too_large" Refused ChangeArguments "the arguments have too many bytes or nest too deeply";
    ArgumentRefused "check.argument_refused" Refused ChangeArguments "an argument cannot be handed to the tool: it would become an option, or is no path, URL or text of the kind";
    PathOutsideRoots "check.path_outside_roots" Refused ChangeArguments "an argument leads to a path that this tool may not touch";
    PathBlocked "check.path_blocked" Refused ChangeArguments "an argument leads to a path that is blocked for this tool";
    HostNotAllowed "check.host_not_allowed" Refused ChangeArguments "an argument leads to a host, port or address that this tool may not reach";
    SecretToSink "check.secret_to_sink" Refused ChangeArguments "the arguments hold a secret, and the tool sends them out";
    MissingPermission "decide.missing_permission" Refused Never "the caller lacks a permission that the tool requires";
    PolicyForbids "decide.policy_forbids" Refused Never "a policy forbids this call";
    QueueFull "decide.queue_full" Refused Later "this call needs a person's answer, and too many questions wait already; calls that need no answer still run";
    ApprovalPending "decide.approval_pending" Refused AfterApproval "a person has yet to approve this call";
    ApprovalDenied "decide.approval_denied" Refused Never "an operator denied this call, or the caller's client answered no";
    ApprovalTimeout "decide.approval_timeout" Refused Later "nobody answered in time";
    ApprovalInvalid "decide.approval_invalid" Refused AfterApproval "the approval is unknown, expired, used, or for another call";
    CallerLapsed "decide.caller_lapsed" Refused Never "the caller is no longer let in as when the call was made: a token was revoked or has expired, or `auth` was edited";
    ToolChanged "decide.tool_changed" Refused Later "the tool or the policies changed while the call waited";
    ApprovalsUnavailable "decide.approvals_unavailable" Broken Later "the store of approvals cannot be reached";
    Cancelled "execute.cancelled" Failed Later "the caller cancelled the call or went away, or the gateway stopped";
    Panicked "execute.panicked" Broken Later "the gateway's own code panicked in the middle of the call; that is a mistake in it";
    ToolFailed "execute.tool_failed" Failed ChangeArguments "the tool threw an error";
    CodeInvalid "execute.code_invalid" Failed Never "the tool's code cannot be run";
    UnsettledPromise "execute.unsettled_promise" Failed Never "the tool awaits something that never comes";
    NotData "execute.not_data" Failed Never "the result is no plain data";
    CommandFailed "execute.command_failed" Failed ChangeArguments "the command ended with an error";
    BlockedPathMade "execute.blocked_path_made" Failed ChangeArguments "the command made a path that is blocked for this tool; it was set aside";
    OutputUnreadable "execute.output_unreadable" Failed Never "the command's output is not of the kind that its manifest names";
    JailUnavailable "execute.jail_unavailable" Broken Later "no jail as strong as required can be made on this host";
    Statements "execute.statements" Failed ChangeArguments "more statements than the tool may execute";
    Timeout "execute.timeout" Failed Later "not done in time";
    Memory "execute.memory" Failed ChangeArguments "more memory than the tool may use";
    Stack "execute.stack" Failed ChangeArguments "nested too deeply";
    ResultTooLarge "execute.result_too_large" Failed ChangeArguments "the result is larger than crosses to the gateway";
    HostCalls "execute.host_calls" Failed ChangeArguments "more calls of helpers than the tool may make";
    HostBytes "execute.host_bytes" Failed ChangeArguments "more bytes through helpers than the tool may move";
    MissingSecret "execute.missing_secret" Failed Later "a value that the tool needs is not set on the gateway";
    ArgumentsTooLarge "execute.arguments_too_large" Failed ChangeArguments "the arguments do not fit the worker's socket";
    Busy "execute.busy" Refused Later "too many calls at once, of this caller or in all";
    WorkerUnavailable "execute.worker_unavailable" Broken Later "no worker can be started, or it would be weaker than required";
    WorkerDied "execute.worker_died" Failed Later "the worker ended in the middle of the call";
    WorkerMisbehaved "execute.worker_misbehaved" Failed Never "the worker sent what no worker sends";
    UpstreamUnavailable "execute.upstream_unavailable" Failed Later "the upstream server cannot be started or reached";
    UpstreamChanged "execute.upstream_changed" Failed Never "the upstream server describes this tool differently than at its review";
    UpstreamMisbehaved "execute.upstream_misbehaved" Failed Later "the upstream server broke the protocol";
    OutputShape "filter.output_shape" Failed Never "the result does not fit the tool's output schema";
    SecretInOutput "filter.secret" Failed Never "the result holds a secret that cannot be taken out of it";
    OutputTooLarge "filter.too_large" Failed ChangeArguments "the result is larger than the tool may return";
    JournalFailed "journal.not_written" Broken Later "the journal cannot be written, so nothing is done or released";
}

impl Reason {
    /// The stage that said so; the journal is none of the six.
    pub fn stage(self) -> Option<Stage> {
        let (stage, _) = self.code().split_once('.')?;
        Stage::ALL.into_iter().find(|known| known.name() == stage)
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
        for reason in Reason::ALL.iter().filter(|reason| reason.end() == End::Broken) {
            assert_eq!(reason.retry(), Retry::Later, "{reason}");
        }
    }
}
