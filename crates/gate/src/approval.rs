//! What does a person approve? One call: this caller, this tool, these arguments, this reach, this policy; once.

use std::{fmt, time::SystemTime};

/// Everything that an approval is for. Where any part differs, it is for another call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    pub caller: String,
    pub tool: String,
    pub tool_digest: String,
    /// SHA-256 of the bound arguments as canonical JSON.
    pub arguments_digest: String,
    /// Of the effective policy, which says what the call could reach.
    pub policy_digest: String,
}

/// 128 random bits, as `apr_` and lower-case letters and digits. Knowing it proves nothing.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ApprovalId(String);

impl ApprovalId {
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(ID_PREFIX)?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (rest.len() == 32 && rest.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }

    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(format!("{ID_PREFIX}{:032x}", u128::from_be_bytes(bytes)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const ID_PREFIX: &str = "apr_";

/// A question to be put into the queue.
#[derive(Clone, Debug)]
pub struct NewApproval {
    pub binding: Binding,
    /// Text for a person, escaped and bounded. The words are the tool's, and may leave arguments out.
    pub prompt: String,
    /// The arguments as JSON, without secrets, escaped and bounded; where they were cut the text says so. `None` in
    /// questions that an older gateway asked.
    pub arguments: Option<String>,
    /// Why a person is asked: the voices that want it, each with its reason.
    pub because: Vec<String>,
    pub risk: String,
    pub created: SystemTime,
    pub expires: SystemTime,
}

impl NewApproval {
    /// All that a person reads before they answer: the prompt, and under it the arguments, unless it holds them whole.
    /// Neither has line breaks of its own, so that a new line is the gateway's word.
    pub fn text(&self) -> String {
        match &self.arguments {
            Some(arguments) if !self.prompt.contains(arguments.as_str()) => {
                format!("{}\nArguments: {arguments}", self.prompt)
            }
            _ => self.prompt.clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ApprovalState {
    Pending,
    Approved,
    Denied,
    /// Approved and spent by one call.
    Used,
    Expired,
}

impl ApprovalState {
    pub const ALL: [Self; 5] = [Self::Pending, Self::Approved, Self::Denied, Self::Used, Self::Expired];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Used => "used",
            Self::Expired => "expired",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A question and what became of it.
#[derive(Clone, Debug)]
pub struct Approval {
    pub id: ApprovalId,
    pub state: ApprovalState,
    pub question: NewApproval,
    /// Who answered: an operator's name, or `client` where the caller's own client did.
    pub decided_by: Option<String>,
    pub decided_at: Option<SystemTime>,
    pub note: Option<String>,
}

/// An approval that was taken out of the queue for exactly one run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spent {
    pub id: ApprovalId,
    pub decided_by: String,
}

/// A remembered yes: later asks of this caller for this tool in this flow are answered by it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trust {
    pub caller: String,
    pub flow: String,
    pub tool_digest: String,
    pub policy_digest: String,
    pub expires: SystemTime,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ApprovalError {
    Unknown,
    /// It is in this state already.
    NotPending(ApprovalState),
    Expired,
    /// For another caller, tool, policy or other arguments.
    OtherCall,
    /// Too many questions wait for an answer, of this caller or in all.
    QueueFull,
    Unavailable(String),
}

impl fmt::Display for ApprovalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such approval"),
            Self::NotPending(state) => write!(f, "the approval is already {}", state.name()),
            Self::Expired => f.write_str("the approval has expired"),
            Self::OtherCall => f.write_str("the approval is for another call"),
            Self::QueueFull => f.write_str("too many calls wait for an answer"),
            Self::Unavailable(problem) => write!(f, "the store of approvals cannot be reached: {problem}"),
        }
    }
}

impl std::error::Error for ApprovalError {}

/// What the gate needs of the queue. Each function is one transaction.
pub trait ApprovalStore: Send + Sync {
    /// The pending question for this binding if there is one, a new one otherwise. Bounded per caller and in all.
    fn open(&self, question: NewApproval, now: SystemTime) -> Result<Approval, ApprovalError>;

    fn get(&self, id: &ApprovalId, now: SystemTime) -> Result<Approval, ApprovalError>;

    /// An approved, unexpired and unused approval for exactly this binding becomes used. `None`: there is none.
    /// With an id only that approval counts, and one for another call is an error.
    fn spend(
        &self,
        binding: &Binding,
        id: Option<&ApprovalId>,
        now: SystemTime,
    ) -> Result<Option<Spent>, ApprovalError>;

    /// Is there an approval that `spend` would find for exactly this binding? Changes nothing.
    fn is_approved(&self, binding: &Binding, now: SystemTime) -> Result<bool, ApprovalError>;

    /// Did somebody say no to exactly this call, in a question that has not expired?
    fn is_denied(&self, binding: &Binding, now: SystemTime) -> Result<bool, ApprovalError>;

    fn is_trusted(&self, trust: &Trust, now: SystemTime) -> Result<bool, ApprovalError>;

    fn remember(&self, trust: &Trust) -> Result<(), ApprovalError>;
}

/// What people need of the queue.
pub trait ApprovalQueue: ApprovalStore {
    /// Newest first; at most `limit`.
    fn list(
        &self,
        state: Option<ApprovalState>,
        limit: usize,
        now: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError>;

    /// The same of those that were asked before another one, whatever became of that. `Unknown`: there is no such other.
    fn list_before(
        &self,
        state: Option<ApprovalState>,
        before: &ApprovalId,
        limit: usize,
        now: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError> {
        let mut all = self.list(None, usize::MAX, now)?.into_iter();
        all.find(|approval| approval.id == *before).ok_or(ApprovalError::Unknown)?;
        let is_wanted = |approval: &Approval| state.is_none_or(|state| approval.state == state);
        Ok(all.filter(is_wanted).take(limit).collect())
    }

    /// Only what is pending and not expired can be decided, and only as approved or denied.
    fn decide(
        &self,
        id: &ApprovalId,
        verdict: ApprovalState,
        by: &str,
        note: Option<&str>,
        now: SystemTime,
    ) -> Result<Approval, ApprovalError>;

    /// Ticks whenever anything in the queue may have changed, also by another process.
    fn changes(&self) -> tokio::sync::watch::Receiver<u64>;
}
