//! The gate: what it is asked, and what it answers.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_policy::Caller;

use crate::{
    approval::ApprovalId,
    ports::{Answer, Ask},
};

/// One call as it comes through a door.
#[derive(Clone)]
pub struct Call {
    /// As listed.
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Authenticated by the door; never taken from the arguments or from what a client says of itself.
    pub caller: Caller,
    pub client: Client,
    /// What the person behind the client answered, where the call is made again with an answer.
    pub answer: Option<ClientAnswer>,
    /// How the person behind the client can be asked while the call waits, where that is possible.
    pub ask: Option<Arc<dyn Ask>>,
}

/// What a client says of itself, for the journal only.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Client {
    /// `stdio`, `http`, `library`, `command-line`.
    pub transport: &'static str,
    /// The protocol version, such as `2026-07-28`.
    pub protocol: Option<String>,
    /// Name and version as declared; nothing is decided by them.
    pub name: Option<String>,
    pub version: Option<String>,
    /// A conversation, where the client names one.
    pub conversation: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientAnswer {
    pub approval: ApprovalId,
    pub answer: Answer,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Arguments may hold anything; they are nobody's business here.
        f.debug_struct("Call")
            .field("tool", &self.tool)
            .field("caller", &self.caller.subject)
            .finish_non_exhaustive()
    }
}
