//! The publish flow: a document becomes a candidate, passes its test run, and may become live.

mod acceptance;
mod effects;
mod narrowest_dir;
mod observed;

use std::{borrow::Cow, cell::Cell, sync::Arc, time::SystemTime};

use serde_json::{Map, Value};
use toolgate_policy::{
    Caller, Digests, EffectivePolicy, Lifecycle, LifecycleState, PassOutcome, PassRecord, PolicyChange,
    PolicySet, Relaxation, SecretSource, SettingValues, UserOverrides, Wording, policy_changes,
    policy_warnings, rate, relaxations, resolve, state,
};
use toolgate_spec::{
    Finding, ToolCheck, digest,
    model::{Body, Handler, ToolSpec},
    parse_test_value,
};

use self::acceptance::unaccepted;
pub use self::effects::TestEffects;
pub use self::observed::{Observed, WiderGrant, tightened, wider_than_used};
use crate::{
    gate::{Call, ClientInfo, Gate},
    live::LiveTool,
    outcome::Outcome,
    ports::{PassStore, RunReport, Runnable, StoredPass},
    reason::Reason,
};

/// Prepares tools to run, by handler kind.
pub trait Handlers: Send + Sync {
    /// Returns the reason if this gateway cannot run the tool.
    fn prepare(&self, spec: &Arc<ToolSpec>, policy: &EffectivePolicy) -> Result<Arc<dyn Runnable>, String>;
}

/// Assesses, tests and publishes documents under the current policies.
#[derive(Clone)]
pub struct Publisher {
    pub policies: Arc<PolicySet>,
    pub overrides: Option<Arc<UserOverrides>>,
    pub handlers: Arc<dyn Handlers>,
    pub passes: Arc<dyn PassStore>,
    pub secrets: Arc<dyn SecretSource>,
}

/// A valid document with its effective policy and its lifecycle state.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub tool: Arc<LiveTool>,
    pub lifecycle: Lifecycle,
    /// The latest test run of exactly this document and policy.
    pub pass: Option<StoredPass>,
    /// The tool was unpublished, in any version, under this id or this name.
    pub is_withdrawn: bool,
    /// The warnings of `check` about this document and its policy.
    pub findings: Arc<[Finding]>,
    /// Codes of blocking findings that the operator accepts for this document.
    pub accepted: Vec<String>,
    /// The operator publishes this document although it says `draft: true`.
    pub accepts_draft: bool,
}

/// Why a document is not a candidate.
#[derive(Clone, Debug)]
pub enum Unpublishable {
    /// The document has errors, or its policy cannot be resolved.
    Findings(Vec<Finding>),
    /// This gateway cannot run the tool.
    NotOffered(String),
    /// The store of test runs cannot be read.
    Unreadable(String),
}

/// Records that a tool is published. Called before the tool is published: if recording fails, it is not published.
type PublishNote<'n> = &'n (dyn Fn() -> Result<(), String> + Send + Sync);

/// The effect of a passed test run on the publication state, which is read again after the run.
#[derive(Clone, Copy)]
enum PublicationRule<'n> {
    /// The state stays as it is for exactly this document and policy.
    Kept,
    /// The tool is published, unless it was unpublished before.
    Earned(PublishNote<'n>),
}

/// The result of a test run.
#[derive(Debug)]
pub struct Trial {
    pub outcome: Outcome,
    /// Console, stack and effects, if the tool ran.
    pub report: Option<RunReport>,
    pub pass: StoredPass,
    /// The tool was published before, in any version, and this run unpublished it.
    pub was_unpublished: bool,
    /// The tool was unpublished during the test.
    pub was_withdrawn: bool,
}

impl Candidate {
    /// Publishes a document whose file says `draft: true` and cannot be written. Applies to exactly this document.
    pub fn accept_draft(&mut self) {
        self.accepts_draft = true;
    }

    /// The passed test run that allows publishing.
    pub fn holding_pass(&self) -> Option<&StoredPass> {
        self.pass.as_ref().filter(|pass| pass.record.outcome == PassOutcome::Passed)
    }

    /// The same candidate with other handlers, for a test run on a copy of the workspace.
    pub fn run_by(&self, handlers: &dyn Handlers) -> Result<Self, String> {
        let runnable = handlers.prepare(&self.tool.spec, &self.tool.policy)?;
        Ok(Self { tool: Arc::new(self.tool.with_runner(runnable)), ..self.clone() })
    }
}

impl Trial {
    pub const fn has_passed(&self) -> bool {
        matches!(self.outcome, Outcome::Released(_))
    }

    /// The candidate with the result of this run, ready to be published. Fails if the tool was unpublished during the
    /// run: that decision did not know of the run, and the run must not overrule it.
    pub fn publishable(&self, candidate: &Candidate) -> Result<Candidate, String> {
        if self.was_withdrawn {
            return Err(UNPUBLISHED_MEANWHILE.to_owned());
        }
        Ok(Candidate { pass: Some(self.pass.clone()), ..candidate.clone() })
    }
}

impl Publisher {
    pub fn assess(&self, check: &ToolCheck) -> Result<Candidate, Unpublishable> {
        let Some(spec) = &check.spec else {
            let errors = check.findings.iter().filter(|finding| finding.is_error());
            return Err(Unpublishable::Findings(errors.cloned().collect()));
        };
        let policy =
            resolve(spec, &self.policies, self.overrides.as_deref()).map_err(Unpublishable::Findings)?;
        let risk = rate(&policy, spec, &self.policies);
        let findings: Arc<[Finding]> =
            check.findings.iter().cloned().chain(policy_warnings(spec, &policy, &risk)).collect();
        let digest = digest(spec, &check.document);
        let spec = Arc::new(spec.clone());
        let runnable = self.handlers.prepare(&spec, &policy).map_err(Unpublishable::NotOffered)?;
        let tool = LiveTool::new(spec, digest, policy, (risk, wording(check)), runnable)
            .map_err(Unpublishable::NotOffered)?;
        let pass = self.passes.latest(tool.spec.id.as_str()).map_err(Unpublishable::Unreadable)?;
        let is_withdrawn = self.withdrawal(&tool).map_err(Unpublishable::Unreadable)?.holds(pass.as_ref());
        let lifecycle = self.lifecycle(&tool, pass.as_ref(), is_withdrawn, &findings);
        let pass = pass.filter(|pass| is_for(pass, &tool));
        let accepted = pass.as_ref().map(|pass| pass.accepted.clone()).unwrap_or_default();
        let accepts_draft = pass.as_ref().is_some_and(|pass| pass.accepts_draft);
        let tool = Arc::new(tool);
        Ok(Candidate { tool, lifecycle, pass, is_withdrawn, findings, accepted, accepts_draft })
    }

    /// Whether the tool has the policy that this publisher would resolve now. For a tool whose document currently
    /// cannot be read.
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
        let policy = match pass {
            // A review is about the definition of an upstream tool, and holds under every policy of the operator.
            Some(pass) if is_upstream(&tool.spec) => pass.record.policy_digest.as_str(),
            _ => tool.policy_digest.as_str(),
        };
        let current = Digests { document: &tool.digest, policy };
        let is_accepted_draft =
            pass.is_some_and(|pass| pass.is_published && pass.accepts_draft && is_for(pass, tool));
        let mut spec = Cow::Borrowed(tool.spec.as_ref());
        if is_accepted_draft {
            spec.to_mut().draft = None;
        }
        let lifecycle = state(&spec, current, pass.map(|pass| &pass.record), self.secrets.as_ref());
        let because = match pass {
            // This also covers a tool that was published before the finding existed.
            Some(pass) if pass.is_published && !unaccepted(findings, &pass.accepted).is_empty() => {
                "its text has findings that an operator must accept; run `toolgate publish` to see them"
            }
            Some(pass) if pass.is_published => return lifecycle,
            _ if is_withdrawn => "it was unpublished; run `toolgate publish NAME` to publish it again",
            _ => "it passed its test run and is not published yet",
        };
        match lifecycle.state {
            LifecycleState::Active => Lifecycle { state: LifecycleState::Draft, because, ..lifecycle },
            _ => lifecycle,
        }
    }

    /// The Local Pass: a normal call of the draft with its test values. The result is stored. A passed run does not
    /// publish the tool; a failed run unpublishes it.
    pub async fn local_pass(
        &self,
        gate: &Gate,
        candidate: &Candidate,
        now: SystemTime,
    ) -> Result<Trial, String> {
        self.try_out(gate, candidate, now, PublicationRule::Kept).await
    }

    /// The Local Pass of a tool that needs no operator: passing publishes it. A tool that was unpublished, also during
    /// the run, stays unpublished. `note` is called if this document was not published before, and must not use the
    /// store of test runs. If `note` fails, nothing is stored, and the test can be repeated.
    pub async fn local_pass_and_publish(
        &self,
        gate: &Gate,
        candidate: &Candidate,
        now: SystemTime,
        note: PublishNote<'_>,
    ) -> Result<Trial, String> {
        self.try_out(gate, candidate, now, PublicationRule::Earned(note)).await
    }

    async fn try_out(
        &self,
        gate: &Gate,
        candidate: &Candidate,
        now: SystemTime,
        publication: PublicationRule<'_>,
    ) -> Result<Trial, String> {
        let tool = &candidate.tool;
        let before = self.passes.latest(tool.spec.id.as_str())?;
        let withdrawal = self.withdrawal(tool)?;
        let call = Call {
            tool: tool.wire_name.clone(),
            arguments: test_arguments(&tool.spec)?,
            caller: Caller::new::<String>(LOCAL_PASS, []),
            client: ClientInfo { transport: "library", ..ClientInfo::default() },
            answer: None,
            ask: None,
            auth_status: None,
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
        let (was_unpublished, was_withdrawn) = (Cell::new(false), Cell::new(false));
        if is_conclusive(&outcome) {
            // Read the latest state: the tool may have been unpublished during the run.
            let revised = self.passes.revise(tool.spec.id.as_str(), &|latest| {
                was_withdrawn.set(was_unpublished_between(before.as_ref(), latest.as_ref()));
                let is_withdrawn = withdrawal.holds(latest.as_ref());
                let may_publish = publication.after(latest.as_ref(), tool, is_withdrawn);
                let is_published = has_passed && is_acceptable && may_publish;
                let was_published = latest.as_ref().is_some_and(|pass| pass.is_published);
                let was_this = latest.is_some_and(|pass| pass.is_published && is_for(&pass, tool));
                was_unpublished.set(was_published && !is_published);
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
        let (was_unpublished, was_withdrawn) = (was_unpublished.get(), was_withdrawn.get());
        Ok(Trial { outcome, report, pass, was_unpublished, was_withdrawn })
    }

    /// Stores the pass of a shipped tool that was tested at release time, and publishes the tool unless it was
    /// unpublished. Nothing runs here. `note` is called as in `local_pass_and_publish`.
    pub fn accept_release_pass(
        &self,
        candidate: &Candidate,
        now: SystemTime,
        note: PublishNote<'_>,
    ) -> Result<StoredPass, String> {
        let tool = &candidate.tool;
        let withdrawal = self.withdrawal(tool)?;
        let pass = self.passes.revise(tool.spec.id.as_str(), &|latest| {
            let is_withdrawn = withdrawal.holds(latest.as_ref());
            let was_this = latest.is_some_and(|pass| pass.is_published && is_for(&pass, tool));
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

    /// Publishes a tool of an upstream server that an operator reviewed. The review takes the place of a test run. `note` is called
    /// before; if it fails, the tool is not published.
    pub fn publish_reviewed(
        &self,
        candidate: &Candidate,
        now: SystemTime,
        note: PublishNote<'_>,
    ) -> Result<(), String> {
        let tool = &candidate.tool;
        if !is_upstream(&tool.spec) {
            return Err("it is not a tool of an upstream server".to_owned());
        }
        if let Some(refusal) = candidate.refusal() {
            return Err(refusal);
        }
        self.passes.revise(tool.spec.id.as_str(), &|_| {
            note()?;
            Ok(StoredPass {
                name: Some(tool.spec.name.clone()),
                is_published: true,
                is_withdrawn: false,
                accepted: candidate.accepted.clone(),
                accepts_draft: false,
                record: PassRecord {
                    document_digest: tool.digest.clone(),
                    policy_digest: tool.policy_digest.clone(),
                    outcome: PassOutcome::Passed,
                },
                at: now,
                observed: Observed::default().to_json(),
            })
        })?;
        self.note_publication(tool)
    }

    /// Publishes a tool that passed, if its pass is still the latest. `note` is called first and must not use the store
    /// of test runs. If it fails, the tool is not published.
    pub fn publish(&self, candidate: &Candidate, note: PublishNote<'_>) -> Result<(), String> {
        let Some(pass) = candidate.holding_pass() else {
            return Err("it has not passed its test run".to_owned());
        };
        if let Some(refusal) = candidate.refusal() {
            return Err(refusal);
        }
        let published = self.passes.revise(candidate.tool.spec.id.as_str(), &|latest| {
            // A later pass of the same document, by another process, is equivalent.
            let Some(latest) = latest.filter(|latest| latest.record == pass.record) else {
                return Err("another test run ended meanwhile with a different result".to_owned());
            };
            if was_unpublished_between(Some(pass), Some(&latest)) {
                return Err(UNPUBLISHED_MEANWHILE.to_owned());
            }
            note()?;
            let (accepted, accepts_draft) = (candidate.accepted.clone(), candidate.accepts_draft);
            Ok(StoredPass { is_published: true, is_withdrawn: false, accepted, accepts_draft, ..latest })
        });
        published?;
        self.note_publication(&candidate.tool)
    }

    /// Stores the settings of a tool that was just published. If storing fails, the next publication is compared with
    /// older settings, which can only report more changes.
    fn note_publication(&self, tool: &LiveTool) -> Result<(), String> {
        let settings = SettingValues::of(&tool.policy).to_text();
        self.passes.note_publication(tool.spec.id.as_str(), &tool.spec.name, &settings)
    }

    /// The differences from the settings of the last publication, caused by the document, the overrides or the
    /// profiles. `None` if the tool was never published.
    pub fn changes_since_publication(&self, tool: &LiveTool) -> Result<Option<Vec<PolicyChange>>, String> {
        let stored = self.passes.last_publication(tool.spec.id.as_str(), &tool.spec.name)?;
        let before = stored.as_deref().and_then(SettingValues::from_text);
        Ok(before.map(|before| policy_changes(&before, &tool.policy)))
    }

    /// Settings that the overrides or the profile relax.
    pub fn relaxations(&self, tool: &LiveTool) -> Vec<Relaxation> {
        relaxations(&tool.spec, &self.policies, self.overrides.as_deref(), &tool.policy)
    }

    /// Unpublishes a tool and keeps its pass. The name is stored, so a new id does not undo this.
    pub fn unpublish(&self, id: &str, name: &str, now: SystemTime) -> Result<(), String> {
        // Applies to every document and policy: undoing an edit must not publish the tool again.
        let unpublished = self.passes.revise(id, &|latest| {
            Ok(match latest {
                Some(pass) => {
                    let name = pass.name.or_else(|| Some(name.to_owned()));
                    StoredPass { is_published: false, is_withdrawn: true, name, ..pass }
                }
                None => unpublished_before_test(name, now),
            })
        });
        unpublished.map(drop)
    }
}

fn is_upstream(spec: &ToolSpec) -> bool {
    matches!(spec.body, Body::Handler(Handler::Mcp(_)))
}

impl PublicationRule<'_> {
    fn after(self, latest: Option<&StoredPass>, tool: &LiveTool, is_withdrawn: bool) -> bool {
        match self {
            Self::Kept => latest.is_some_and(|pass| pass.is_published && is_for(pass, tool)),
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

/// Whether other records say that the tool was unpublished.
struct Withdrawal<'t> {
    name: &'t str,
    /// A tool of this name was unpublished under another id.
    under_other_id: bool,
}

impl Withdrawal<'_> {
    /// A record of this id and name decides. Otherwise the other ids of the name count too, because an author can
    /// change the id.
    fn holds(&self, latest: Option<&StoredPass>) -> bool {
        match latest {
            Some(pass) if pass.name.as_deref() == Some(self.name) => pass.is_withdrawn,
            other => self.under_other_id || other.is_some_and(|pass| pass.is_withdrawn),
        }
    }
}

/// Whether the tool was unpublished between these two records.
fn was_unpublished_between(before: Option<&StoredPass>, now: Option<&StoredPass>) -> bool {
    let is_withdrawn = |pass: Option<&StoredPass>| pass.is_some_and(|pass| pass.is_withdrawn);
    is_withdrawn(now) && !is_withdrawn(before)
}

/// Whether the pass is for exactly this document and policy.
fn is_for(pass: &StoredPass, tool: &LiveTool) -> bool {
    // A review of an upstream tool holds under every policy; a test run only under its own.
    let is_this_policy = pass.record.policy_digest == tool.policy_digest || is_upstream(&tool.spec);
    pass.record.document_digest == tool.digest && is_this_policy
}

/// Records that a tool was unpublished before its first test run ended. It belongs to no document.
fn unpublished_before_test(name: &str, now: SystemTime) -> StoredPass {
    StoredPass {
        name: Some(name.to_owned()),
        record: PassRecord {
            document_digest: String::new(),
            policy_digest: String::new(),
            outcome: PassOutcome::Failed { error: "it was unpublished before it was tested".to_owned() },
        },
        at: now,
        observed: Value::Null,
        is_published: false,
        is_withdrawn: true,
        accepted: Vec::new(),
        accepts_draft: false,
    }
}

/// The test value of every parameter in its type, or the document's test input.
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

/// A description that tries to manipulate the model gets no risk reduction for approvals.
fn wording(check: &ToolCheck) -> Wording {
    let is_poisoned = check.findings.iter().any(|finding| finding.code.name().starts_with("LINT_POISON_"));
    if is_poisoned { Wording::Poisoned } else { Wording::Clean }
}

/// Internal errors, a busy or stopping gateway, and missing values say nothing about the tool.
const fn is_conclusive(outcome: &Outcome) -> bool {
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

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

const UNPUBLISHED_MEANWHILE: &str = "it was unpublished meanwhile";

/// The caller name of test runs.
const LOCAL_PASS: &str = "local-pass";
