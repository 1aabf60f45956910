//! May this caller call this tool with these arguments? The operators' rules, in Cedar.
//!
//! Rules are held against the tools' own input schemas when they are loaded, so that a rule that could never match is a
//! mistake that somebody reads, and not a hole. `docs/cedar.md` has the whole of it.

mod check;
mod convert;
mod error;
mod kind;
mod listing;
mod load;
mod principal;
mod schema;
mod source;
mod walk;

use std::{collections::BTreeMap, sync::Arc};

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request, Response,
    RestrictedExpression,
};
use serde_json::{Map, Value};
use toolgate_spec::model::ToolSpec;

pub use error::CedarError;

use crate::{caller::Caller, effective::EffectivePolicy, rate::RiskLevel, verdict::Verdict};
use check::Watched;
use kind::Record;
use schema::Types;

/// A set of rules, loaded: free of mistakes, and never changed.
pub struct CedarPolicies {
    authorizer: Authorizer,
    types: Types,
    tools: BTreeMap<String, Prepared>,
    digest: String,
    warnings: Vec<CedarError>,
}

/// What rules may know of a tool.
#[derive(Clone, Copy, Debug)]
pub struct CedarTool<'t> {
    /// The name it is called by.
    pub name: &'t str,
    pub spec: &'t ToolSpec,
    /// See `toolgate_spec::project::input_schema`. Arguments must have been held against it before `decide` is asked.
    pub input_schema: &'t Value,
    pub level: RiskLevel,
    pub policy: &'t EffectivePolicy,
}

impl CedarTool<'_> {
    /// Do all rules see the same in both? Then rules that were loaded for one hold for the other.
    pub fn is_same_as(&self, other: &CedarTool<'_>) -> bool {
        let (policy, others) = (self.policy, other.policy);
        self.name == other.name
            && self.input_schema == other.input_schema
            && self.level == other.level
            && self.spec.category == other.spec.category
            && self.spec.tags == other.spec.tags
            && policy.classification.value == others.classification.value
            && policy.destructive.value == others.destructive.value
            && policy.network.mode.value == others.network.mode.value
    }
}

/// The answer, which rules gave it, and in words why.
#[must_use]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CedarRuling {
    pub verdict: Verdict,
    /// The `@id` of each rule that decided, or its file, line and column. Empty where no rule spoke.
    pub policies: Vec<String>,
    pub why: String,
}

impl CedarPolicies {
    /// Loads rules, given as file name and text, for all tools that exist, served or not. Either all of it is sound, or
    /// every mistake is told.
    pub fn new<'t>(
        sources: &[(String, String)],
        tools: impl IntoIterator<Item = CedarTool<'t>>,
    ) -> Result<Self, Vec<CedarError>> {
        load::load(sources, &tools.into_iter().collect::<Vec<_>>())
    }

    /// `forbid` wins, silence forbids, and so does a rule that cannot be evaluated. A person is asked where, but for rules
    /// with `@approval`, the call would be permitted.
    pub fn decide(&self, caller: &Caller, tool: &str, input: &Map<String, Value>) -> CedarRuling {
        let Some(tool) = self.tools.get(tool) else {
            return CedarRuling::forbid("the tool is not among those that the policies were loaded for");
        };
        let input = match convert::record(&tool.input, input, |name| tool.watched.includes(name)) {
            Ok(input) => input,
            Err(unfit) => {
                return CedarRuling::forbid(format!(
                    "argument `{}` {}, so no policy can judge it",
                    unfit.at, unfit.why
                ));
            }
        };
        match self.asked(caller, tool, Some(input)) {
            Ok(asked) => self.rule(tool, &asked),
            Err(error) => CedarRuling::forbid(format!("the policies cannot be asked: {error}")),
        }
    }

    /// False where every call of this tool by this caller is refused, whatever the arguments; where that cannot be told,
    /// true.
    pub fn could_permit(&self, caller: &Caller, tool: &str) -> bool {
        let Some(tool) = self.tools.get(tool) else { return false };
        // A caller who cannot be described is refused by `decide`, too.
        let Ok(asked) = self.asked(caller, tool, None) else { return false };
        let response = asked.put_to(&self.authorizer, &tool.rules.listing);
        response.decision() == Decision::Allow || response.diagnostics().errors().next().is_some()
    }

    /// Rules that load and yet cannot work: they name a caller whom no authentication names so.
    pub fn warnings(&self) -> &[CedarError] {
        &self.warnings
    }

    /// SHA-256 of all files, names and texts, in whatever order they were given.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    fn asked(
        &self,
        caller: &Caller,
        tool: &Prepared,
        input: Option<RestrictedExpression>,
    ) -> Result<Asked, String> {
        let context = Context::from_pairs(input.map(|input| ("input".to_owned(), input)))
            .map_err(|error| error.to_string())?;
        let request = Request::new(
            self.types.caller(caller),
            tool.action.clone(),
            tool.resource.clone(),
            context,
            None,
        )
        .map_err(|error| error.to_string())?;
        let caller = self.types.caller_entity(caller)?;
        let entities =
            tool.entities.clone().add_entities([caller], None).map_err(|error| error.to_string())?;
        Ok(Asked { request, entities })
    }

    fn rule(&self, tool: &Prepared, asked: &Asked) -> CedarRuling {
        let firm = asked.put_to(&self.authorizer, &tool.rules.firm);
        if let Some(failed) = failure(&firm) {
            return failed;
        }
        let policies = deciding(&firm);
        match (firm.decision(), policies.first()) {
            (Decision::Deny, None) => return CedarRuling::forbid("no policy permits this call"),
            (Decision::Deny, Some(first)) => {
                let why = format!("policy `{first}` forbids this call");
                return CedarRuling { verdict: Verdict::Forbid, policies, why };
            }
            (Decision::Allow, _) => {}
        }
        // Only forbids: what decided is what applies.
        let approvals = asked.put_to(&self.authorizer, &tool.rules.approvals);
        if let Some(failed) = failure(&approvals) {
            return failed;
        }
        let asking = deciding(&approvals);
        if asking.is_empty() {
            let why = format!("permitted by policy `{}`", policies.join("`, `"));
            return CedarRuling { verdict: Verdict::Permit, policies, why };
        }
        let reasons: Vec<&str> =
            asking.iter().filter_map(|id| tool.rules.reasons.get(id)).map(String::as_str).collect();
        CedarRuling { verdict: Verdict::Ask, why: reasons.join("; "), policies: asking }
    }
}

impl std::fmt::Debug for CedarPolicies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<&String> = self.tools.keys().collect();
        f.debug_struct("CedarPolicies")
            .field("digest", &self.digest)
            .field("tools", &tools)
            .finish_non_exhaustive()
    }
}

impl CedarRuling {
    fn forbid(why: impl Into<String>) -> Self {
        Self { verdict: Verdict::Forbid, policies: Vec::new(), why: why.into() }
    }
}

/// A tool, with all about it that does not change from call to call.
struct Prepared {
    action: EntityUid,
    resource: EntityUid,
    /// All but the caller.
    entities: Entities,
    input: Record,
    watched: Watched,
    rules: Arc<Rules>,
}

/// The rules that may speak about a tool. Shared by all tools that the same rules speak about.
struct Rules {
    /// All but those with `@approval`.
    firm: PolicySet,
    approvals: PolicySet,
    /// What a person is told, by rule.
    reasons: BTreeMap<String, String>,
    /// The firm ones, as they stand before the arguments are known.
    listing: PolicySet,
}

struct Asked {
    request: Request,
    entities: Entities,
}

impl Asked {
    fn put_to(&self, authorizer: &Authorizer, rules: &PolicySet) -> Response {
        authorizer.is_authorized(&self.request, rules, &self.entities)
    }
}

/// Cedar leaves out a rule that cannot be evaluated; if that is a forbid, the call would pass.
fn failure(response: &Response) -> Option<CedarRuling> {
    let mut failures: Vec<(String, String)> = response
        .diagnostics()
        .errors()
        .map(|AuthorizationError::PolicyEvaluationError(error)| {
            (error.policy_id().to_string(), error.inner().to_string())
        })
        .collect();
    failures.sort();
    let why = failures.first().map(|(id, error)| format!("policy `{id}` cannot be evaluated: {error}"))?;
    Some(CedarRuling {
        verdict: Verdict::Forbid,
        policies: failures.into_iter().map(|(id, _)| id).collect(),
        why,
    })
}

/// In a stable order: the journal must not depend on how a set is hashed.
fn deciding(response: &Response) -> Vec<String> {
    let mut ids: Vec<String> = response.diagnostics().reason().map(ToString::to_string).collect();
    ids.sort();
    ids
}

#[cfg(test)]
mod tests;
