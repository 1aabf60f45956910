//! Approvals: a person's answer to one call. An approval is bound to caller, tool, arguments and policy, and allows one
//! run.

use std::{
    fmt::{self, Write as _},
    time::SystemTime,
};

use toolgate_spec::is_deceptive;

/// The call that an approval is for. If any part differs, the approval is for another call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Binding {
    pub caller: String,
    pub tool: String,
    pub tool_digest: String,
    /// SHA-256 of the bound arguments as canonical JSON.
    pub arguments_digest: String,
    /// Digest of the effective policy, which defines what the call may access.
    pub policy_digest: String,
}

/// `apr_` and 128 random bits in lower-case hexadecimal. The id is not a credential.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ApprovalId(String);

impl ApprovalId {
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(ID_PREFIX)?;
        (rest.len() == ID_DIGITS && rest.bytes().all(is_id_digit)).then(|| Self(text.to_owned()))
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

const fn is_id_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

const ID_PREFIX: &str = "apr_";
const ID_DIGITS: usize = 32;
/// Shorter prefixes would often match more than one approval.
const SHORTEST_ID: usize = 4;
/// The maximum number of approvals that an ambiguous prefix lists.
const MOST_CANDIDATES: usize = 8;

/// A question to put into the queue.
#[derive(Clone, Debug)]
pub struct NewApproval {
    pub binding: Binding,
    /// The key of the quota for open questions: the caller, or the address of an anonymous caller.
    pub quota: String,
    /// The tool's message for a person, or a default one. Escaped, bounded and on one line.
    pub prompt: String,
    /// The arguments as JSON on one line, without secrets, escaped and bounded. `None` in questions from older
    /// versions.
    pub arguments: Option<String>,
    /// The part of the arguments that `arguments` leaves out.
    pub hidden: HiddenArguments,
    /// Set if an approval also covers later calls.
    pub remembers: Option<RememberScope>,
    /// The decision sources that require an approval, each with its reason, escaped and bounded.
    pub because: Vec<String>,
    pub risk: String,
    pub created: SystemTime,
    pub expires: SystemTime,
}

impl NewApproval {
    /// The whole text that a person reads before answering. The gateway writes every line, with a fixed label and
    /// order. The tool's message comes last. No value contains a line break, so neither a template nor an argument can
    /// add a line.
    pub fn text(&self) -> String {
        let (caller, tool) = (printable(&self.binding.caller), printable(&self.binding.tool));
        let mut lines = vec![format!("Run the tool {tool}? Risk {}, called by {caller}.", self.risk)];
        if !self.because.is_empty() {
            lines.push(format!("Asked because: {}", self.reasons()));
        }
        lines.extend(self.remembers.as_ref().map(|remembers| format!("If approved: {remembers}")));
        lines.extend(self.arguments.as_ref().map(|arguments| format!("Arguments: {arguments}")));
        if self.hidden.bytes > 0 {
            lines.push(format!("Not shown: {}", self.hidden));
        }
        lines.push(format!("Message: {}", self.prompt));
        lines.join("\n")
    }

    /// The first reasons. A call that names many hosts has many reasons, which must not hide the arguments.
    fn reasons(&self) -> String {
        let shown = self.because.iter().take(MOST_REASONS).map(String::as_str);
        let mut text = shown.collect::<Vec<_>>().join("; ");
        if let more @ 1.. = self.because.len().saturating_sub(MOST_REASONS) {
            let _ = write!(text, "; and {more} more");
        }
        text
    }
}

/// A name without deceptive characters and line breaks.
fn printable(name: &str) -> String {
    name.chars().filter(|character| !is_deceptive(*character)).take(LONGEST_NAME).collect()
}

const MOST_REASONS: usize = 5;
const LONGEST_NAME: usize = 300;

/// The part of the arguments that a question does not show: secrets, and text beyond the length limit.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct HiddenArguments {
    /// 0 if everything is shown.
    pub bytes: u64,
    /// All arguments as JSON, for `ApprovalQueue::reveal`. Set only when the question enters the queue.
    pub whole: Option<String>,
}

impl fmt::Display for HiddenArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of the arguments (secrets, or too long)", self.bytes)
    }
}

impl fmt::Debug for HiddenArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HiddenArguments").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// How long and in which conversation an approval is remembered, for the same caller, tool and policy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RememberScope {
    pub conversation: String,
    pub until: SystemTime,
}

impl RememberScope {
    /// RFC 3339 with seconds.
    pub fn until_text(&self) -> String {
        let until = jiff::Timestamp::try_from(self.until).unwrap_or(jiff::Timestamp::MAX);
        until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl fmt::Display for RememberScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "later calls of this tool by this caller in conversation {} run without a question until {}",
            printable(&self.conversation),
            self.until_text()
        )
    }
}

/// The person or program that answers a question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decider<'d> {
    /// The caller's client, on behalf of its user. Its no counts only in this conversation, or, without a conversation,
    /// only for this call.
    Client { conversation: Option<&'d str> },
    /// A person at the command line who has access to the gateway's state files.
    Operator(&'d str),
    /// A caller of the admin API, with the authenticated subject.
    Admin { subject: &'d str, may_approve_own: bool },
}

impl<'d> Decider<'d> {
    /// The name as recorded.
    pub const fn name(&self) -> &'d str {
        match self {
            Self::Client { .. } => BY_CLIENT,
            Self::Operator(name) => name,
            Self::Admin { subject, .. } => subject,
        }
    }
}

/// Recorded as the decider if the caller's client answered.
const BY_CLIENT: &str = "client";

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ApprovalState {
    Pending,
    Approved,
    Denied,
    /// Approved and consumed by one call.
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

/// A question and its answer, if any.
#[derive(Clone, Debug)]
pub struct Approval {
    pub id: ApprovalId,
    pub state: ApprovalState,
    pub question: NewApproval,
    /// Who answered: an operator's name, or `client` for the caller's client.
    pub decided_by: Option<String>,
    pub decided_at: Option<SystemTime>,
    pub note: Option<String>,
    /// Who has revealed the hidden part of the arguments.
    pub revealed_to: Vec<String>,
}

impl Approval {
    /// Whether the caller's client said no. That counts only in its own conversation, and an operator can overrule it.
    pub fn is_declined_by_client(&self) -> bool {
        self.state == ApprovalState::Denied && self.decided_by.as_deref() == Some(BY_CLIENT)
    }

    /// Checks whether this decider may give this answer. Queues call it before they store an answer.
    pub fn check_decision(
        &self,
        verdict: ApprovalState,
        by: &Decider<'_>,
        now: SystemTime,
    ) -> Result<(), ApprovalError> {
        self.check_open(by, now)?;
        // A client cannot reveal hidden arguments, so it can neither approve nor deny a call that has some.
        if verdict != ApprovalState::Approved && !matches!(by, Decider::Client { .. }) {
            return Ok(());
        }
        if let Decider::Admin { subject, may_approve_own: false } = by
            && *subject == self.question.binding.caller
        {
            return Err(ApprovalError::OwnCall);
        }
        let has_seen_all = self.revealed_to.iter().any(|name| name == by.name());
        if self.question.hidden.bytes > 0 && !has_seen_all {
            return Err(ApprovalError::Unrevealed(self.question.hidden.bytes));
        }
        Ok(())
    }

    /// Checks whether the question is still open for this decider.
    pub fn check_open(&self, by: &Decider<'_>, now: SystemTime) -> Result<(), ApprovalError> {
        let is_client = matches!(by, Decider::Client { .. });
        let is_open = self.state == ApprovalState::Pending || (self.is_declined_by_client() && !is_client);
        match self.state {
            ApprovalState::Expired => Err(ApprovalError::Expired),
            _ if is_open && self.question.expires <= now => Err(ApprovalError::Expired),
            _ if is_open => Ok(()),
            other => Err(ApprovalError::NotPending(other)),
        }
    }
}

/// An approval that was consumed for exactly one run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConsumedApproval {
    pub id: ApprovalId,
    pub decided_by: String,
    /// As offered in the question.
    pub remembers: Option<RememberScope>,
}

/// A remembered approval. It answers later questions about this tool for this caller and conversation.
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
    /// The question already has this state.
    NotPending(ApprovalState),
    Expired,
    /// For another caller, tool, policy or other arguments.
    OtherCall,
    /// Too many questions are pending.
    QueueFull(QueueLimit),
    /// This many calls of the caller were denied and their questions have not expired; no more are stored.
    DeniedTooOften(u64),
    /// The prefix of an id matches several approvals.
    Ambiguous(Vec<ApprovalId>),
    /// The prefix of an id is shorter than `SHORTEST_ID` characters.
    ShortId,
    /// This many bytes of the arguments are hidden, and this person has not revealed them.
    Unrevealed(u64),
    /// The approver made the call.
    OwnCall,
    Unavailable(String),
}

impl fmt::Display for ApprovalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such approval"),
            Self::NotPending(state) => write!(f, "the approval is already {}", state.name()),
            Self::Expired => f.write_str("the approval has expired"),
            Self::OtherCall => f.write_str("the approval is for another call"),
            Self::QueueFull(limit) => limit.fmt(f),
            Self::DeniedTooOften(limit) => write!(
                f,
                "{limit} of your calls were denied, which is the limit; ask again when these denials have expired"
            ),
            Self::Ambiguous(ids) => {
                let ids: Vec<&str> = ids.iter().map(ApprovalId::as_str).collect();
                write!(f, "several approvals have this prefix: {}; enter more of the id", ids.join(", "))
            }
            Self::ShortId => {
                write!(f, "enter at least {SHORTEST_ID} characters of the id after `{ID_PREFIX}`")
            }
            Self::Unrevealed(bytes) => {
                write!(f, "the question hides {bytes} bytes of the arguments; reveal them before you approve")
            }
            Self::OwnCall => {
                f.write_str("you made this call, so you may not approve it; see `approvals.self_approval`")
            }
            Self::Unavailable(problem) => write!(f, "the approval store cannot be reached: {problem}"),
        }
    }
}

impl std::error::Error for ApprovalError {}

/// The limit that rejects a new question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QueueLimit {
    /// `approvals.max_pending_per_caller`
    OfCaller(u64),
    /// `approvals.max_pending`
    InAll(u64),
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfCaller(limit) => write!(
                f,
                "{limit} of your calls wait for a person, which is the limit (approvals.max_pending_per_caller)"
            ),
            Self::InAll(limit) => {
                write!(f, "{limit} calls wait for a person, which is the limit (approvals.max_pending)")
            }
        }
    }
}

/// The part of the queue that the gate uses. Each function is one transaction.
pub trait ApprovalStore: Send + Sync {
    /// Returns the pending question for this binding, or creates one. Bounded per caller and in total.
    fn open(&self, question: NewApproval, now: SystemTime) -> Result<Approval, ApprovalError>;

    fn get(&self, id: &ApprovalId, now: SystemTime) -> Result<Approval, ApprovalError>;

    /// Consumes an approval for exactly this binding that is approved, unexpired and unused. `None` if there is none.
    /// With an id, only that approval counts, and one for another call is an error.
    fn consume(
        &self,
        binding: &Binding,
        id: Option<&ApprovalId>,
        now: SystemTime,
    ) -> Result<Option<ConsumedApproval>, ApprovalError>;

    /// Whether `consume` would find an approval for exactly this binding. Changes nothing.
    fn is_approved(&self, binding: &Binding, now: SystemTime) -> Result<bool, ApprovalError>;

    /// A denial of exactly this call whose question has not expired: an operator's, or the client's in this
    /// conversation.
    fn denial(
        &self,
        binding: &Binding,
        conversation: Option<&str>,
        now: SystemTime,
    ) -> Result<Option<Approval>, ApprovalError>;

    fn is_trusted(&self, trust: &Trust, now: SystemTime) -> Result<bool, ApprovalError>;

    fn remember(&self, trust: &Trust) -> Result<(), ApprovalError>;
}

/// The part of the queue that people use.
pub trait ApprovalQueue: ApprovalStore {
    /// Newest first; at most `limit`.
    fn list(
        &self,
        state: Option<ApprovalState>,
        limit: usize,
        now: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError>;

    /// Like `list`, for questions asked before the question `before`, whatever its state. `Unknown` if `before` does
    /// not exist.
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

    /// Approves or denies, if `Approval::check_decision` allows it.
    fn decide(
        &self,
        id: &ApprovalId,
        verdict: ApprovalState,
        by: &Decider<'_>,
        note: Option<&str>,
        now: SystemTime,
    ) -> Result<Approval, ApprovalError>;

    /// Ids with this prefix, at most `limit`. `prefix` must be a valid beginning of an id.
    fn ids_beginning(&self, prefix: &str, limit: usize) -> Result<Vec<ApprovalId>, ApprovalError>;

    /// The approval that a person means: a whole id or a unique prefix, with or without `apr_`.
    fn find_id(&self, text: &str) -> Result<ApprovalId, ApprovalError> {
        let digits = text.strip_prefix(ID_PREFIX).unwrap_or(text);
        if digits.len() > ID_DIGITS || !digits.bytes().all(is_id_digit) {
            return Err(ApprovalError::Unknown);
        }
        if digits.len() < SHORTEST_ID {
            return Err(ApprovalError::ShortId);
        }
        let mut found = self.ids_beginning(&format!("{ID_PREFIX}{digits}"), MOST_CANDIDATES)?;
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(ApprovalError::Unknown),
            (Some(id), true) => Ok(id),
            (Some(id), false) => {
                found.push(id);
                Err(ApprovalError::Ambiguous(found))
            }
        }
    }

    /// Returns all arguments of an open question as JSON on one line, and records that this person has seen them.
    fn reveal(&self, id: &ApprovalId, by: &Decider<'_>, now: SystemTime) -> Result<String, ApprovalError>;

    /// Changes whenever the queue may have changed, also through another process.
    fn changes(&self) -> tokio::sync::watch::Receiver<u64>;
}
