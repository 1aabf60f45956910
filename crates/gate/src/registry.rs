//! Which tools are live? A set that is swapped whole; a call keeps the tool it began with.

mod audience;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
};

use audience::Audience;
use serde_json::Value;
use toolgate_policy::{Caller, CedarPolicies, ToolPolicy};

use crate::{
    call::Shared,
    gate::{ApprovalSettings, ArgumentLimits},
    live::LiveTool,
};

/// What a call is judged by, swapped in one piece: no call meets the policies of one configuration with the settings of
/// another, under which nobody might be asked although both ask.
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    pub set: Arc<LiveSet>,
    pub approvals: ApprovalSettings,
    pub arguments: ArgumentLimits,
}

/// The live tools in the order in which they are listed.
#[derive(Debug, Default)]
pub struct LiveSet {
    tools: Vec<Arc<LiveTool>>,
    by_name: HashMap<String, usize>,
    /// The operator's policies, where there are any; swapped together with the tools that they were checked against.
    cedar: Option<Arc<CedarPolicies>>,
    /// Their digest, ready for every record.
    cedar_digest: Option<Shared>,
    /// Part of the set, so that another set or other policies know nothing of it.
    audience: Audience,
}

impl LiveSet {
    #[must_use]
    pub fn with_policies(self, cedar: Option<CedarPolicies>) -> Self {
        self.with_shared_policies(cedar.map(Arc::new))
    }

    /// As `with_policies`, for policies that an earlier set may have too.
    #[must_use]
    pub fn with_shared_policies(mut self, cedar: Option<Arc<CedarPolicies>>) -> Self {
        self.cedar_digest = cedar.as_ref().map(|cedar| Shared::prepared(Value::from(cedar.digest())));
        self.cedar = cedar;
        self.audience = Audience::default();
        self
    }

    pub(crate) fn policies(&self) -> Option<&CedarPolicies> {
        self.cedar.as_deref()
    }

    /// Of the operator's policies, as it stands in the journal.
    pub fn policies_digest(&self) -> Option<&Shared> {
        self.cedar_digest.as_ref()
    }

    /// The same set without the tools that are not wanted any more.
    pub(crate) fn only(&self, wanted: impl Fn(&LiveTool) -> bool) -> Self {
        let kept: Vec<Arc<LiveTool>> = self.tools.iter().filter(|tool| wanted(tool)).cloned().collect();
        let (set, _) = Self::new(kept);
        Self { cedar: self.cedar.clone(), cedar_digest: self.cedar_digest.clone(), ..set }
    }

    /// May this caller know of the tool? Not where no call of it could ever succeed. `policy` is the one in code.
    pub(crate) fn shows(&self, tool: &LiveTool, caller: &Caller, policy: &dyn ToolPolicy) -> bool {
        self.is_open_to(tool, caller) && policy.could_allow(caller, &tool.wire_name)
    }

    /// The part of it that stays the same as long as the set is in force.
    fn is_open_to(&self, tool: &LiveTool, caller: &Caller) -> bool {
        tool.permissions.missing_always(&caller.permissions).is_empty()
            && self.cedar.as_ref().is_none_or(|cedar| cedar.could_permit(caller, &tool.wire_name))
    }

    /// Tools that would have one name on the wire, or names that people cannot tell apart, are a mistake or an attack; none of
    /// them is live.
    pub fn new(tools: impl IntoIterator<Item = Arc<LiveTool>>) -> (Self, Vec<String>) {
        let tools: Vec<Arc<LiveTool>> = tools.into_iter().collect();
        let mut bearers: HashMap<&str, usize> = HashMap::with_capacity(tools.len());
        for look in tools.iter().flat_map(|tool| tool.looks()) {
            *bearers.entry(look.as_str()).or_default() += 1;
        }
        let mut set = Self::default();
        let mut doubled = Vec::new();
        for tool in &tools {
            if tool.looks().iter().all(|look| bearers.get(look.as_str()) == Some(&1)) {
                set.by_name.insert(tool.name().to_owned(), set.tools.len());
                set.tools.push(Arc::clone(tool));
            } else {
                doubled.push(tool.name().to_owned());
            }
        }
        doubled.sort_unstable();
        doubled.dedup();
        (set, doubled)
    }

    pub fn get(&self, name: &str) -> Option<Arc<LiveTool>> {
        self.by_name.get(name).and_then(|at| self.tools.get(*at)).cloned()
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// All of them, in order.
    pub(crate) fn all(&self) -> &[Arc<LiveTool>] {
        &self.tools
    }

    /// At most `limit` tools behind `after` that this caller may know of, and the name to go on behind.
    /// `None`: there is no tool `after`.
    pub(crate) fn page(
        &self,
        caller: &Caller,
        after: Option<&str>,
        limit: usize,
        policy: &dyn ToolPolicy,
    ) -> Option<(Vec<Arc<LiveTool>>, Option<String>)> {
        let start = match after {
            None => 0,
            Some(name) => self.by_name.get(name)? + 1,
        };
        let shown = self.audience.shown_to(caller);
        let judge = |place: usize| self.tools.get(place).map(|tool| self.is_open_to(tool, caller));
        let could_allow = |tool: &&Arc<LiveTool>| policy.could_allow(caller, &tool.wire_name);
        let mut page: Vec<Arc<LiveTool>> = Vec::new();
        let mut from = start;
        // What a policy in code says is never remembered, for it may change its mind; nor is it asked under the lock, for it
        // may list tools itself. One more than the page holds says whether this page is the last.
        while page.len() <= limit {
            let wanted = limit.saturating_add(1).saturating_sub(page.len());
            let (places, has_more) =
                shown.lock().unwrap_or_else(PoisonError::into_inner).page(from, wanted, judge);
            let Some(last) = places.last() else { break };
            from = last + 1;
            let tools = places.into_iter().filter_map(|place| self.tools.get(place));
            page.extend(tools.filter(could_allow).cloned());
            if !has_more {
                break;
            }
        }
        let has_more = page.len() > limit;
        page.truncate(limit);
        let last = page.last().filter(|_| has_more).map(|tool| tool.name().to_owned());
        Some((page, last))
    }
}
