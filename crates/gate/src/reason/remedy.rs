//! What a person can do about each reason. `toolgate explain` prints it.

use super::Reason;

impl Reason {
    /// For the operator or the author of the tool. `match` is exhaustive: a new reason needs a remedy.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::UnknownTool => {
                "Compare the name with `toolgate list`. A draft must be published with `toolgate publish NAME`; a tool that this caller \
                 may never call is hidden from it, so check its permissions and the Cedar policies too."
            }
            Self::ShuttingDown => "Call again when the gateway has started again.",
            Self::InputShape => {
                "Correct the arguments. `tools/list` has the input schema, and the message names the argument and what is expected."
            }
            Self::InputTooLarge => {
                "Send less, or raise `limits.arguments` or `limits.depth` in the configuration."
            }
            Self::ArgumentRefused => {
                "Correct the argument that the message names. Text that begins with `-` cannot be passed where a command would read it as \
                 an option; put `--` before such arguments in the manifest."
            }
            Self::PathOutsideRoots => {
                "Name a path inside the workspace. If the tool needs more, grant the path in its document; `toolgate resolve` shows what it \
                 may touch."
            }
            Self::PathBlocked => {
                "Name another path. Blocked paths hold keys, credentials or the gateway's own files; `toolgate resolve` lists them."
            }
            Self::HostNotAllowed => {
                "Name a host that the tool may reach, or add the host to the allowed hosts in its document and publish it again."
            }
            Self::SecretToSink => {
                "Remove the secret from the arguments. A secret that the tool needs belongs into one of its static variables."
            }
            Self::MissingPermission => {
                "Give the caller the permission that the message names: `toolgate token create --permission NAME`, `auth.local.permissions`, \
                 or a claim of its signed token."
            }
            Self::PolicyForbids => {
                "Ask for something else, or change the policy. The journal's record of the call names the policy in `opinions`."
            }
            Self::ApprovalPending => {
                "Answer the question with `toolgate approvals approve ID` or `deny ID`, then make the same call again."
            }
            Self::ApprovalDenied => {
                "Do not repeat the call. If the answer was a mistake, make the call again and approve it."
            }
            Self::ApprovalTimeout => {
                "Answer questions within `approvals.timeout` (`toolgate approvals watch` shows them), or raise it."
            }
            Self::ApprovalInvalid => {
                "Make the call again and answer the new question. An approval is for one call with the same arguments, tool and policy, and \
                 expires after `approvals.expires`."
            }
            Self::CallerLapsed => "Create a new token with `toolgate token create` and use it in the client.",
            Self::ToolChanged => "Call again: the new version of the tool or policy is in force.",
            Self::ApprovalsUnavailable => {
                "Check that the state directory exists, is writable and has free space: `toolgate doctor`."
            }
            Self::Cancelled => "Call again if the result is still wanted.",
            Self::Panicked => {
                "Report it with the call id and the gateway's log; this is a bug in the gateway."
            }
            Self::ToolFailed => {
                "Read the message and correct the arguments. Authors see the stack and the console with `toolgate run`."
            }
            Self::CodeInvalid => "Correct the code; `toolgate check` and `toolgate run` show where it fails.",
            Self::UnsettledPromise => {
                "Correct the code: a promise that it awaits is never resolved or rejected. `toolgate run` shows the console up to there."
            }
            Self::NotData => {
                "Return plain data from the tool: objects, arrays, strings, numbers, booleans or null."
            }
            Self::CommandFailed => {
                "Read the message, which ends with what the command wrote, and correct the arguments or the manifest."
            }
            Self::BlockedPathMade => {
                "Correct the arguments. The files were moved aside, and the message says where they are."
            }
            Self::OutputUnreadable => {
                "Correct `handler.cli.output` in the manifest, or the arguments that choose the command's output format."
            }
            Self::JailUnavailable => {
                "Run `toolgate doctor`: it lists what the host lacks and how to enable it."
            }
            Self::Statements => "Ask for less at once, or raise the statement limit in the tool's document.",
            Self::Timeout => "Ask for less at once, or raise the timeout in the tool's document.",
            Self::Memory => "Ask for less at once, or raise the memory limit in the tool's document.",
            Self::Stack => {
                "Send data that is nested less deeply, or correct a recursion in the code that does not end."
            }
            Self::ResultTooLarge => "Ask for less at once, or let the tool return less.",
            Self::HostCalls => "Ask for less at once, or let the tool call helpers less often.",
            Self::HostBytes => "Ask for less at once, or let the tool read and fetch less.",
            Self::MissingSecret => {
                "Set the environment variable that the message names, and start the gateway again."
            }
            Self::ArgumentsTooLarge => "Send smaller arguments, or pass a path to a file in the workspace.",
            Self::Busy => {
                "Call again later, or raise `limits.calls`, `limits.calls_per_caller` or `limits.waiting`."
            }
            Self::WorkerUnavailable => {
                "Run `toolgate doctor`: it lists what the host lacks. `worker.required: hardened` refuses weaker hosts on purpose."
            }
            Self::WorkerDied => {
                "Call again. If it happens often, look for `worker.escape_attempt` in the journal and for the system's out-of-memory killer."
            }
            Self::WorkerMisbehaved => {
                "Unpublish the tool and read its code: it may attack the worker. Otherwise report it as a bug, with the call id."
            }
            Self::OutputShape => "Correct the tool's output schema or the value that it returns.",
            Self::SecretInOutput => {
                "Let the tool leave the secret out of its result. The journal's record of the call names the rule that found it."
            }
            Self::OutputTooLarge => "Ask for less at once, or raise the output limit in the tool's document.",
            Self::JournalFailed => {
                "Make room on the disk and check the permissions of the state directory; calls work again when the journal can be written."
            }
        }
    }
}
