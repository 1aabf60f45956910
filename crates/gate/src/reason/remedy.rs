//! Remedies for each reason, printed by `toolgate explain`.

use super::Reason;

/// One row per reason. The `match` is exhaustive: a new reason needs a remedy.
macro_rules! remedies {
    ($($variant:ident $remedy:literal;)*) => {
        impl Reason {
            /// For the operator or the author of the tool.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }
        }
    };
}

remedies! {
    UnknownTool "Compare the name with `toolgate list`. A draft must be published with `toolgate publish NAME`; a tool that this caller may never call is hidden from it, so check its permissions and the Cedar policies too.";
    ShuttingDown "Call again when the gateway has started again.";
    InputShape "Correct the arguments. `tools/list` has the input schema, and the message names the argument and the expected value.";
    InputTooLarge "Send less, or raise `limits.arguments` or `limits.depth` in the configuration.";
    ArgumentRefused "Correct the argument that the message names. Text that begins with `-` cannot be passed where a command would read it as an option; put `--` before such arguments in the manifest.";
    PathOutsideRoots "Name a path inside the workspace. If the tool needs more, grant the path in its document; `toolgate resolve` shows what it may touch.";
    PathBlocked "Name another path. Blocked paths hold keys, credentials or the gateway's own files; `toolgate resolve` lists them.";
    HostNotAllowed "Name a host that the tool may reach, or add the host to the allowed hosts in its document and publish it again.";
    SecretToSink "Remove the secret from the arguments. A secret that the tool needs belongs in one of its static variables.";
    MissingPermission "Give the caller the permission that the message names: `toolgate token create --permission NAME`, `auth.local.permissions`, or a claim of its signed token.";
    PolicyForbids "Ask for something else, or change the policy. The journal's record of the call names the policy in `decisions`.";
    ApprovalPending "Answer the question with `toolgate approvals approve ID` or `deny ID`, then make the same call again.";
    ApprovalDenied "Do not repeat the call. If the answer was a mistake, make the call again and approve it.";
    ApprovalTimeout "Answer questions within `approvals.timeout` (`toolgate approvals watch` shows them), or raise it.";
    ApprovalInvalid "Make the call again and answer the new question. An approval is for one call with the same arguments, tool and policy, and expires after `approvals.expires`.";
    QueueFull "Answer the questions that wait (`toolgate approvals list`), or raise `approvals.max_pending` or `approvals.max_pending_per_caller`.";
    CallerLapsed "Create a new token with `toolgate token create` and use it in the client.";
    ToolChanged "Call again: the new version of the tool or policy is in force.";
    ApprovalsUnavailable "Check that the state directory exists, is writable and has free space: `toolgate doctor`.";
    Cancelled "Call again if the result is still wanted.";
    Panicked "Report it with the call id and the gateway's log; this is a bug in the gateway.";
    ToolFailed "Read the message and correct the arguments. Authors see the stack and the console with `toolgate run`.";
    CodeInvalid "Correct the code; `toolgate check` and `toolgate run` show where it fails.";
    UnsettledPromise "Correct the code: a promise that it awaits is never resolved or rejected. `toolgate run` shows the console up to there.";
    NotData "Return plain data from the tool: objects, arrays, strings, numbers, booleans or null.";
    CommandFailed "Read the message, which ends with what the command wrote, and correct the arguments or the manifest.";
    BlockedPathMade "Correct the arguments. The files were moved aside, and the message says where they are.";
    OutputUnreadable "Correct `handler.cli.output` in the manifest, or the arguments that choose the command's output format.";
    JailUnavailable "Run `toolgate doctor`: it lists what the host lacks and how to enable it.";
    Statements "Ask for less at once, or raise the statement limit in the tool's document.";
    Timeout "Ask for less at once, or raise the timeout in the tool's document.";
    Memory "Ask for less at once, or raise the memory limit in the tool's document.";
    Stack "Send data that is nested less deeply, or correct a recursion in the code that does not end.";
    ResultTooLarge "Ask for less at once, or let the tool return less.";
    HostCalls "Ask for less at once, or let the tool call helpers less often.";
    HostBytes "Ask for less at once, or let the tool read and fetch less.";
    MissingSecret "Run `toolgate list`, which names the missing value, then `toolgate secret set NAME`.";
    ArgumentsTooLarge "Send smaller arguments, or pass a path to a file in the workspace.";
    Busy "Call again later, or raise `limits.calls`, `limits.calls_per_caller` or `limits.waiting`.";
    WorkerUnavailable "Run `toolgate doctor`: it lists what the host lacks. `worker.required: hardened` refuses weaker hosts on purpose.";
    WorkerDied "Call again. If it happens often, look for `worker.escape_attempt` in the journal and for the system's out-of-memory killer.";
    WorkerMisbehaved "Unpublish the tool and read its code: it may attack the worker. Otherwise report it as a bug, with the call id.";
    UpstreamUnavailable "See `toolgate upstream show NAME` and the log for the server's error. The gateway tries again after a pause.";
    UpstreamChanged "An operator compares the change with `toolgate upstream review NAME` and approves it, or not.";
    UpstreamMisbehaved "Update or replace the server; `toolgate upstream test NAME` shows what it sends.";
    OutputShape "Correct the tool's output schema or the value that it returns.";
    SecretInOutput "Let the tool leave the secret out of its result. The journal's record of the call names the rule that found it.";
    OutputTooLarge "Ask for less at once, or raise the output limit in the tool's document.";
    JournalFailed "Make room on the disk and check the permissions of the state directory; calls work again when the journal can be written.";
}
