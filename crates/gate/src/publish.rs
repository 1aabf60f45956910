//! The other flow: a document becomes a candidate, passes its test run, and may be live.

mod acceptance;
mod effects;
mod folder;
mod observed;

use std::{borrow::Cow, cell::Cell, sync::Arc, time::SystemTime};

use serde_json::{Map, Value};
use toolgate_policy::{
    Caller, Digests, EffectivePolicy, Lifecycle, LifecycleState, PassOutcome, PassRecord, PolicyChange,
    PolicySet, Relaxation, SecretSource, SettingValues, UserOverrides, Wording, policy_changes,
    policy_warnings, rate, relaxations, resolve, state,
};
use toolgate_spec::{Finding, ToolCheck, digest, model::ToolSpec, parse_test_value};

use self::acceptance::unaccepted;
pub use self::effects::TestEffects;
pub use self::observed::{Observed, Wider, tightened, wider_than_used};
use crate::{
    gate::{Call, Client, Gate},
    live::LiveTool,
    outcome::Outcome,
    ports::{PassStore, RunReport, Runnable, StoredPass},
    reason::Reason,
};

/// Makes tools ready to run, by their kind.
pub trait Handlers: Send + Sync {
    /// Says why not where this gateway cannot run the tool.
    fn prepare(&self, spec: &Arc<ToolSpec>, policy: &EffectivePolicy) -> Result<Arc<dyn Runnable>, String>;
}

/// Everything that a document is judged by.
#[derive(Clone)]
pub struct Workshop {
    pub policies: Arc<PolicySet>,
    pub overrides: Option<Arc<UserOverrides>>,
    pub handlers: Arc<dyn Handlers>,
    pub passes: Arc<dyn PassStore>,
    pub secrets: Arc<dyn SecretSource>,
}

/// A sound document under the policy in force, and how far it has come.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub tool: Arc<LiveTool>,
    pub lifecycle: Lifecycle,
    /// The latest test run of exactly this document under exactly this policy.
    pub pass: Option<StoredPass>,
    /// The tool was unpublished, in whatever version, under this id or this name.
    pub is_withdrawn: bool,
    /// The warnings of `check` about this document and its policy.
    pub findings: Arc<[Finding]>,
    /// Codes of blocking findings that the operator accepts for this document.
    pub accepted: Vec<String>,
    /// The operator publishes this document although it says `draft: true`.
    pub accepts_draft: bool,
}

/// Why a document is no candidate.
#[derive(Clone, Debug)]
pub enum Unfit {
    /// It has errors of its own, or its policy cannot be resolved.
    Findings(Vec<Finding>),
    /// This gateway cannot run it.
    NotOffered(String),
    /// What is remembered of passes cannot be read.
    Unreadable(String),
}

/// Writes down that a tool is published. It is called before that holds: what cannot be written down is not published.
type Note<'n> = &'n (dyn Fn() -> Result<(), String> + Send + Sync);

/// What a passed test run does to the publication, whatever is known of it by then.
#[derive(Clone, Copy)]
enum Publication<'n> {
    /// It stays as it is for exactly this document under exactly this policy.
    Kept,
    /// The tool is published, unless it is one that was taken back.
    Earned(Note<'n>),
}

/// What came of a test run.
#[derive(Debug)]
pub struct Trial {
    pub outcome: Outcome,
    /// Console, stack and effects, where the tool was run at all.
    pub report: Option<RunReport>,
    pub pass: StoredPass,
    /// The tool was published before, whatever it said then, and with this run it is not any more.
    pub took_back: bool,
    /// Somebody took the tool back while it was tested.
    pub was_withdrawn: bool,
}

impl Candidate {
    /// Publishes a document whose file says `draft: true` and cannot be written. Holds for exactly this document.
    pub fn accept_draft(&mut self) {
        self.accepts_draft = true;
    }

    /// The test run that lets it be published as it is now.
    pub fn holding_pass(&self) -> Option<&StoredPass> {
        self.pass.as_ref().filter(|pass| pass.record.outcome == PassOutcome::Passed)
    }

    /// The same candidate, run by other handlers: for a test run on other files than the workspace's.
    pub fn run_by(&self, handlers: &dyn Handlers) -> Result<Self, String> {
        let runnable = handlers.prepare(&self.tool.spec, &self.tool.policy)?;
        Ok(Self { tool: Arc::new(self.tool.with_runner(runnable)), ..self.clone() })
    }
}

impl Trial {
    pub const fn has_passed(&self) -> bool {
        matches!(self.outcome, Outcome::Released(_))
    }

    /// The candidate with what came of this run, to be published. Not one that was taken back meanwhile: whoever did that did
    /// not know of the run, and is not to be overruled by its end.
    pub fn publishable(&self, candidate: &Candidate) -> Result<Candidate, String> {
        if self.was_withdrawn {
            return Err(TAKEN_BACK.to_owned());
        }
        Ok(Candidate { pass: Some(self.pass.clone()), ..candidate.clone() })
    }
}

impl Workshop {
    pub fn assess(&self, check: &ToolCheck) -> Result<Candidate, Unfit> {
        let Some(spec) = &check.spec else {
            let errors = check.findings.iter().filter(|finding| finding.is_error());
            return Err(Unfit::Findings(errors.cloned().collect()));
        };
        let policy = resolve(spec, &self.policies, self.overrides.as_deref()).map_err(Unfit::Findings)?;
        let risk = rate(&policy, spec, &self.policies);
        let findings: Arc<[Finding]> =
            check.findings.iter().cloned().chain(policy_warnings(spec, &policy, &risk)).collect();
        let digest = digest(spec, &check.document);
        let spec = Arc::new(spec.clone());
        let runnable = self.handlers.prepare(&spec, &policy).map_err(Unfit::NotOffered)?;
        let tool = LiveTool::new(spec, digest, policy, (risk, wording(check)), runnable)
            .map_err(Unfit::NotOffered)?;
        let pass = self.passes.latest(tool.spec.id.as_str()).map_err(Unfit::Unreadable)?;
        let is_withdrawn = self.withdrawal(&tool).map_err(Unfit::Unreadable)?.holds(pass.as_ref());
        let lifecycle = self.lifecycle(&tool, pass.as_ref(), is_withdrawn, &findings);
        let pass = pass.filter(|pass| speaks_for(pass, &tool));
        let accepted = pass.as_ref().map(|pass| pass.accepted.clone()).unwrap_or_default();
        let accepts_draft = pass.as_ref().is_some_and(|pass| pass.accepts_draft);
        let tool = Arc::new(tool);
        Ok(Candidate { tool, lifecycle, pass, is_withdrawn, findings, accepted, accepts_draft })
    }

    /// Is the tool under the policy that this workshop would give it? For a tool whose document cannot be read just now.
    pub fn is_under_current_policy(&self, tool: &LiveTool) -> bool {
        resolve(&tool.spec, &self.policies, self.overrides.as_deref())
            .is_ok_and(|policy| tool.enforces(&policy))
    }

    fn withdrawal<'t>(&self, tool: &'t LiveTool) -> Result<Withdrawal<'t>, String> {
        let name = tool.spec.name.as_str();
        let under_other_id = self.passes.is_name_withdrawn(name, tool.spec.id.as_str())?;
        Ok(Withdrawal { name, under_other_id })
    }

    fn lifecycle(
        &self,
        tool: &LiveTool,
        pass: Option<&StoredPass>,
        is_withdrawn: bool,
        findings: &[Finding],
    ) -> Lifecycle {
        let current = Digests { document: &tool.digest, policy: &tool.policy_digest };
        let is_accepted_draft =
            pass.is_some_and(|pass| pass.is_published && pass.accepts_draft && speaks_for(pass, tool));
        let mut spec = Cow::Borrowed(tool.spec.as_ref());
        if is_accepted_draft {
            spec.to_mut().draft = None;
        }
        let lifecycle = state(&spec, current, pass.map(|pass| &pass.record), self.secrets.as_ref());
        let because = match pass {
            // Also a tool that was published before its finding was known.
            Some(pass) if pass.is_published && !unaccepted(findings, &pass.accepted).is_empty() => {
                "its text has findings that an operator must accept; run `toolgate publish` to see them"
            }
            Some(pass) if pass.is_published => return lifecycle,
            _ if is_withdrawn => "somebody took it back; publish it by its name",
            _ => "it has passed its test run, and nobody has published it yet",
        };
        match lifecycle.state {
            LifecycleState::Active => Lifecycle { state: LifecycleState::Draft, because, ..lifecycle },
            _ => lifecycle,
        }
    }

    /// The Local Pass: an ordinary call of the draft with its test values. What came of it is remembered; a pass does not
    /// publish by itself, and a failed run takes an earlier publication back.
    pub async fn local_pass(
        &self,
        gate: &Gate,
        candidate: &Candidate,
        now: SystemTime,
    ) -> Result<Trial, String> {
        self.try_out(gate, candidate, now, Publication::Kept).await
    }

    /// The Local Pass of a tool that nobody has to publish: it is published by passing. One that was taken back, be it while
    /// the run lasted, stays so. `note` is called where it was not published before, or said something else, and must not use
    /// the store of passes; where it fails, nothing is remembered of the run, and the tool can be tried again.
    pub async fn local_pass_and_publish(
        &self,
        gate: &Gate,
        candidate: &Candidate,
        now: SystemTime,
        note: Note<'_>,
    ) -> Result<Trial, String> {
        self.try_out(gate, candidate, now, Publication::Earned(note)).await
    }

    async fn try_out(
        &self,
        gate: &Gate,
        candidate: &Candidate,
        now: SystemTime,
        publication: Publication<'_>,
    ) -> Result<Trial, String> {
        let tool = &candidate.tool;
        let before = self.passes.latest(tool.spec.id.as_str())?;
        let withdrawal = self.withdrawal(tool)?;
        let call = Call {
            tool: tool.wire_name.clone(),
            arguments: test_arguments(&tool.spec)?,
            caller: Caller::new::<String>(LOCAL_PASS, []),
            client: Client { transport: "library", ..Client::default() },
            answer: None,
            ask: None,
            standing: None,
        };
        let (outcome, report) = gate.try_out(Arc::clone(tool), call).await;
        let passed = match failure_text(&outcome) {
            None => PassOutcome::Passed,
            Some(error) => PassOutcome::Failed { error },
        };
        let has_passed = passed == PassOutcome::Passed;
        let is_acceptable = candidate.refusal().is_none();
        let mut pass = StoredPass {
            name: Some(tool.spec.name.clone()),
            is_published: false,
            is_withdrawn: false,
            accepted: candidate.accepted.clone(),
            accepts_draft: candidate.accepts_draft,
            record: PassRecord {
                document_digest: tool.digest.clone(),
                policy_digest: tool.policy_digest.clone(),
                outcome: passed,
            },
            at: now,
            observed: report.as_ref().map(|report| Observed::of(report).to_json()).unwrap_or_default(),
        };
        let (took_back, was_withdrawn) = (Cell::new(false), Cell::new(false));
        if says_something(&outcome) {
            // By what is known now: somebody may have taken the tool back while it ran.
            let revised = self.passes.revise(tool.spec.id.as_str(), &|latest| {
                was_withdrawn.set(is_taken_back(before.as_ref(), latest.as_ref()));
                let is_withdrawn = withdrawal.holds(latest.as_ref());
                let may_publish = publication.after(latest.as_ref(), tool, is_withdrawn);
                let is_published = has_passed && is_acceptable && may_publish;
                let was_published = latest.as_ref().is_some_and(|pass| pass.is_published);
                let was_this = latest.is_some_and(|pass| pass.is_published && speaks_for(&pass, tool));
                took_back.set(was_published && !is_published);
                if is_published && !was_this {
                    publication.note()?;
                }
                Ok(StoredPass { is_published, is_withdrawn, ..pass.clone() })
            });
            pass = revised?;
        }
        if pass.is_published {
            self.note_publication(tool)?;
        }
        let (took_back, was_withdrawn) = (took_back.get(), was_withdrawn.get());
        Ok(Trial { outcome, report, pass, took_back, was_withdrawn })
    }

    /// Records the pass of a shipped tool that was tested when it was released, and publishes it, unless it was unpublished. Nothing
    /// runs here. `note` is called as by `local_pass_and_publish`.
    pub fn accept_release_pass(
        &self,
        candidate: &Candidate,
        now: SystemTime,
        note: Note<'_>,
    ) -> Result<StoredPass, String> {
        let tool = &candidate.tool;
        let withdrawal = self.withdrawal(tool)?;
        let pass = self.passes.revise(tool.spec.id.as_str(), &|latest| {
            let is_withdrawn = withdrawal.holds(latest.as_ref());
            let was_this = latest.is_some_and(|pass| pass.is_published && speaks_for(&pass, tool));
            if !is_withdrawn && !was_this {
                note()?;
            }
            Ok(StoredPass {
                name: Some(tool.spec.name.clone()),
                is_published: !is_withdrawn,
                is_withdrawn,
                record: PassRecord {
                    document_digest: tool.digest.clone(),
                    policy_digest: tool.policy_digest.clone(),
                    outcome: PassOutcome::Passed,
                },
                at: now,
                observed: Observed::default().to_json(),
                accepted: Vec::new(),
                accepts_draft: false,
            })
        })?;
        if pass.is_published {
            self.note_publication(tool)?;
        }
        Ok(pass)
    }

    /// Marks a tool that has passed as published, if its pass still holds. `note` is called before, and must not use the store
    /// of passes; where it fails, the tool is not published.
    pub fn publish(&self, candidate: &Candidate, note: Note<'_>) -> Result<(), String> {
        let Some(pass) = candidate.holding_pass() else {
            return Err("it has not passed its test run".to_owned());
        };
        if let Some(refusal) = candidate.refusal() {
            return Err(refusal);
        }
        let published = self.passes.revise(candidate.tool.spec.id.as_str(), &|latest| {
            // A later pass of the same document, by another process, says the same.
            let Some(latest) = latest.filter(|latest| latest.record == pass.record) else {
                return Err("another test run of it has ended meanwhile, with another result".to_owned());
            };
            if is_taken_back(Some(pass), Some(&latest)) {
                return Err(TAKEN_BACK.to_owned());
            }
            note()?;
            let (accepted, accepts_draft) = (candidate.accepted.clone(), candidate.accepts_draft);
            Ok(StoredPass { is_published: true, is_withdrawn: false, accepted, accepts_draft, ..latest })
        });
        published?;
        self.note_publication(&candidate.tool)
    }

    /// Stores the settings of a tool that is published now. After the publication: if storing fails, the next publication is
    /// compared with older settings, which can only report more.
    fn note_publication(&self, tool: &LiveTool) -> Result<(), String> {
        let settings = SettingValues::of(&tool.policy).to_text();
        self.passes.note_publication(tool.spec.id.as_str(), &tool.spec.name, &settings)
    }

    /// How the settings differ from those of the last publication, be it by an edit of the document, the overrides or the
    /// profiles. `None` for a tool that was not published before.
    pub fn changes_since_publication(&self, tool: &LiveTool) -> Result<Option<Vec<PolicyChange>>, String> {
        let stored = self.passes.last_publication(tool.spec.id.as_str(), &tool.spec.name)?;
        let before = stored.as_deref().and_then(SettingValues::from_text);
        Ok(before.map(|before| policy_changes(&before, &tool.policy)))
    }

    /// Settings that the overrides or the profile relax.
    pub fn relaxations(&self, tool: &LiveTool) -> Vec<Relaxation> {
        relaxations(&tool.spec, &self.policies, self.overrides.as_deref(), &tool.policy)
    }

    /// Unpublishes a tool; its pass stays known. The name is kept, so a new id does not undo this.
    pub fn unpublish(&self, id: &str, name: &str, now: SystemTime) -> Result<(), String> {
        // Whatever document and policy the record is for: the tool is not to come back when an edit is undone.
        let taken_back = self.passes.revise(id, &|latest| {
            Ok(match latest {
                Some(pass) => {
                    let name = pass.name.or_else(|| Some(name.to_owned()));
                    StoredPass { is_published: false, is_withdrawn: true, name, ..pass }
                }
                None => never_tested(name, now),
            })
        });
        taken_back.map(drop)
    }
}

impl Publication<'_> {
    fn after(self, latest: Option<&StoredPass>, tool: &LiveTool, is_withdrawn: bool) -> bool {
        match self {
            Self::Kept => latest.is_some_and(|pass| pass.is_published && speaks_for(pass, tool)),
            Self::Earned(_) => !is_withdrawn,
        }
    }

    fn note(self) -> Result<(), String> {
        match self {
            Self::Kept => Ok(()),
            Self::Earned(note) => note(),
        }
    }
}

/// What other records say about the unpublishing of a tool.
struct Withdrawal<'t> {
    name: &'t str,
    /// A tool of this name was unpublished under another id.
    under_other_id: bool,
}

impl Withdrawal<'_> {
    /// A record of this id and this name decides. Without one, the other ids of the name count too: an author can change the id.
    fn holds(&self, latest: Option<&StoredPass>) -> bool {
        match latest {
            Some(pass) if pass.name.as_deref() == Some(self.name) => pass.is_withdrawn,
            other => self.under_other_id || other.is_some_and(|pass| pass.is_withdrawn),
        }
    }
}

/// Did somebody take the tool back between these two?
fn is_taken_back(before: Option<&StoredPass>, now: Option<&StoredPass>) -> bool {
    let is_withdrawn = |pass: Option<&StoredPass>| pass.is_some_and(|pass| pass.is_withdrawn);
    is_withdrawn(now) && !is_withdrawn(before)
}

/// Is the pass one of exactly this document under exactly this policy?
fn speaks_for(pass: &StoredPass, tool: &LiveTool) -> bool {
    pass.record.document_digest == tool.digest && pass.record.policy_digest == tool.policy_digest
}

/// Keeps in mind that a tool was taken back before its first test run had ended. It is a pass of no document.
fn never_tested(name: &str, now: SystemTime) -> StoredPass {
    StoredPass {
        name: Some(name.to_owned()),
        record: PassRecord {
            document_digest: String::new(),
            policy_digest: String::new(),
            outcome: PassOutcome::Failed { error: "it was taken back before it was tested".to_owned() },
        },
        at: now,
        observed: Value::Null,
        is_published: false,
        is_withdrawn: true,
        accepted: Vec::new(),
        accepts_draft: false,
    }
}

/// Every parameter's test value in its type, or the document's own test input.
pub fn test_arguments(spec: &ToolSpec) -> Result<Map<String, Value>, String> {
    if let Some(Value::Object(input)) = &spec.governance.test_input {
        return Ok(input.clone());
    }
    let mut arguments = Map::new();
    for param in &spec.params {
        if let Some(written) = &param.test_value {
            let value = parse_test_value(param.kind, written)
                .map_err(|problem| format!("test value of `{}`: {problem}", param.name))?;
            arguments.insert(param.name.clone(), value);
        }
    }
    Ok(arguments)
}

/// A description that tries to talk the model into something earns no credit for asking a person.
fn wording(check: &ToolCheck) -> Wording {
    let is_poisoned = check.findings.iter().any(|finding| finding.code.name().starts_with("LINT_POISON_"));
    if is_poisoned { Wording::Poisoned } else { Wording::Clean }
}

/// Where we are ill, busy or stopping, or a value is not set just now, nothing was learnt about the tool.
const fn says_something(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Released(_) => true,
        Outcome::Pending(_) | Outcome::Broken(_) => false,
        Outcome::Refused(end) => !matches!(end.reason, Reason::Busy | Reason::ShuttingDown),
        Outcome::Failed(end) => {
            !matches!(end.reason, Reason::MissingSecret | Reason::WorkerDied | Reason::Cancelled)
        }
    }
}

fn failure_text(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Released(_) => None,
        Outcome::Pending(end) => Some(end.to_caller.clone()),
        Outcome::Refused(end) => Some(format!("{}: {}", end.reason, end.to_operator)),
        Outcome::Failed(end) => Some(format!("{}: {}", end.reason, end.to_operator)),
        Outcome::Broken(end) => Some(format!("{}: {}", end.reason, end.to_operator)),
    }
}

impl std::fmt::Debug for Workshop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workshop").finish_non_exhaustive()
    }
}

const TAKEN_BACK: &str = "it was taken back meanwhile";

/// Whose call a test run is.
const LOCAL_PASS: &str = "local-pass";
