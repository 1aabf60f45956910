//! Decides by the operators' Cedar policies whether a caller may call a tool with these arguments.
//!
//! Policies are checked against the tools' input schemas when they are loaded. A policy that can never match is an error,
//! because its author would rely on a rule without effect. See `docs/cedar.md`.

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
use check::UsedArguments;
use kind::CedarRecord;
use schema::Types;

/// A loaded, valid and immutable set of policies.
pub struct CedarPolicies {
    authorizer: Authorizer,
    types: Types,
    tools: BTreeMap<String, PreparedTool>,
    digest: String,
    warnings: Vec<CedarError>,
}

/// The parts of a tool that policies can use.
#[derive(Clone, Copy, Debug)]
pub struct CedarTool<'t> {
    /// The name under which it is called.
    pub name: &'t str,
    pub spec: &'t ToolSpec,
    /// See `toolgate_spec::project::input_schema`. Arguments must be validated against it before `decide`.
    pub input_schema: &'t Value,
    pub level: RiskLevel,
    pub policy: &'t EffectivePolicy,
}

impl CedarTool<'_> {
    /// True if policies see no difference. Policies loaded for one tool are then valid for the other.
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

/// The decision, the policies that made it, and the reason.
#[must_use]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CedarRuling {
    pub verdict: Verdict,
    /// The `@id` of each deciding policy, or its file, line and column. Empty if no policy matched.
    pub policies: Vec<String>,
    pub why: String,
}

impl CedarPolicies {
    /// Loads policies, given as file name and text, for all existing tools, live or not. Returns all errors if any policy is
    /// invalid.
    pub fn new<'t>(
        sources: &[(String, String)],
        tools: impl IntoIterator<Item = CedarTool<'t>>,
    ) -> Result<Self, Vec<CedarError>> {
        load::load(sources, &tools.into_iter().collect::<Vec<_>>())
    }

    /// `forbid` wins. Without a match the call is forbidden; also if a policy cannot be evaluated. If only policies with
    /// `@approval` forbid the call, a person is asked.
    pub fn decide(&self, caller: &Caller, tool: &str, input: &Map<String, Value>) -> CedarRuling {
        let Some(tool) = self.tools.get(tool) else {
            return CedarRuling::forbid("the policies were loaded without this tool");
        };
        let input = match convert::record(&tool.input, input, |name| tool.watched.includes(name)) {
            Ok(input) => input,
            Err(unfit) => {
                return CedarRuling::forbid(format!(
                    "argument `{}` {}, so policies cannot evaluate it",
                    unfit.at, unfit.why
                ));
            }
        };
        match self.asked(caller, tool, Some(input)) {
            Ok(asked) => self.rule(tool, &asked),
            Err(error) => CedarRuling::forbid(format!("cannot evaluate the policies: {error}")),
        }
    }

    /// Returns false if every call of this tool by this caller is forbidden, for any arguments. Returns true if that is
    /// unknown.
    pub fn could_permit(&self, caller: &Caller, tool: &str) -> bool {
        let Some(tool) = self.tools.get(tool) else { return false };
        // `decide` forbids calls of a caller that cannot be converted, too.
        let Ok(asked) = self.asked(caller, tool, None) else { return false };
        let response = asked.put_to(&self.authorizer, &tool.rules.listing);
        response.decision() == Decision::Allow || response.diagnostics().errors().next().is_some()
    }

    /// Valid policies without effect: they name a caller that no authentication method produces.
    pub fn warnings(&self) -> &[CedarError] {
        &self.warnings
    }

    /// SHA-256 of all file names and texts, independent of their order.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    fn asked(
        &self,
        caller: &Caller,
        tool: &PreparedTool,
        input: Option<RestrictedExpression>,
    ) -> Result<CedarQuery, String> {
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
        Ok(CedarQuery { request, entities })
    }

    fn rule(&self, tool: &PreparedTool, asked: &CedarQuery) -> CedarRuling {
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
        // This set has only `forbid` policies, so the deciding ones are those that apply.
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

/// A tool with everything that is the same for all calls.
struct PreparedTool {
    action: EntityUid,
    resource: EntityUid,
    /// All entities except the caller.
    entities: Entities,
    input: CedarRecord,
    watched: UsedArguments,
    rules: Arc<CedarRules>,
}

/// The policies that may apply to a tool. Tools with the same policies share them.
struct CedarRules {
    /// Policies without `@approval`.
    firm: PolicySet,
    approvals: PolicySet,
    /// The texts of `@approval`, by policy.
    reasons: BTreeMap<String, String>,
    /// The firm policies, reduced to the conditions that do not depend on arguments.
    listing: PolicySet,
}

struct CedarQuery {
    request: Request,
    entities: Entities,
}

impl CedarQuery {
    fn put_to(&self, authorizer: &Authorizer, rules: &PolicySet) -> Response {
        authorizer.is_authorized(&self.request, rules, &self.entities)
    }
}

/// Cedar skips a policy that cannot be evaluated. If it is a `forbid`, the call would be permitted; so forbid it here.
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

/// Sorted: the journal must not depend on hash order.
fn deciding(response: &Response) -> Vec<String> {
    let mut ids: Vec<String> = response.diagnostics().reason().map(ToString::to_string).collect();
    ids.sort();
    ids
}

#[cfg(test)]
mod tests;
