//! The set of live tools. It is replaced as a whole; a call keeps the tool it started with.
//!
//! A changed set shares all unchanged parts with the old one, so an edit costs the same with ten tools and with ten
//! thousand.

mod audience;
mod position;

use std::{
    collections::HashMap,
    ops::Bound,
    sync::{Arc, PoisonError},
};

use audience::Audience;
use imbl::{HashSet, OrdMap, OrdSet, ordmap::DiffItem};
pub use position::ListPosition;
use position::ListedTool;
use serde_json::Value;
use toolgate_policy::{Caller, CedarPolicies, ToolPolicy};

use crate::{
    call::PreparedJson,
    gate::{ApprovalSettings, ArgumentLimits},
    live::LiveTool,
};

/// The tools, policies and settings that apply to a call, replaced in one step. Otherwise a call could meet the
/// policies of one configuration with the settings of another, and run without the approval that both require.
#[derive(Clone, Debug)]
pub(crate) struct LiveConfig {
    pub set: Arc<LiveSet>,
    pub approvals: ApprovalSettings,
    pub arguments: ArgumentLimits,
}

/// The live tools in list order.
#[derive(Clone, Debug, Default)]
pub struct LiveSet {
    tools: OrdSet<ListedTool>,
    /// By wire name.
    by_name: OrdMap<String, ListedTool>,
    /// The normalised forms of all names. INVARIANT: no two tools share one, so no two share a name.
    name_forms: HashSet<String>,
    /// The operator's policies, if any. They were checked against exactly these tools.
    cedar: Option<Arc<CedarPolicies>>,
    /// Their digest, prepared for records.
    cedar_digest: Option<PreparedJson>,
    /// Cached visibility per caller. Part of the set, because it is valid only for these tools and policies.
    audience: Audience,
}

impl LiveSet {
    #[must_use]
    pub fn with_policies(self, cedar: Option<CedarPolicies>) -> Self {
        self.with_shared_policies(cedar.map(Arc::new))
    }

    /// Like `with_policies`, for policies that an earlier set may share.
    #[must_use]
    pub fn with_shared_policies(mut self, cedar: Option<Arc<CedarPolicies>>) -> Self {
        self.cedar_digest = cedar.as_ref().map(|cedar| PreparedJson::prepared(Value::from(cedar.digest())));
        self.cedar = cedar;
        self.audience = Audience::default();
        self
    }

    pub(crate) fn policies(&self) -> Option<&CedarPolicies> {
        self.cedar.as_deref()
    }

    /// The digest of the operator's policies, as the journal records it.
    pub fn policies_digest(&self) -> Option<&PreparedJson> {
        self.cedar_digest.as_ref()
    }

    /// The same set without the tools that `wanted` rejects.
    pub(crate) fn only(&self, wanted: impl Fn(&LiveTool) -> bool) -> Self {
        let mut set = self.with_new_audience();
        for tool in self.all().filter(|tool| !wanted(tool)) {
            set.remove(tool);
        }
        set
    }

    /// The same set without `gone` and with `come`. `None` if a name in `come` can be mistaken for another one.
    pub fn changed<'t>(
        &self,
        gone: impl IntoIterator<Item = &'t LiveTool>,
        come: impl IntoIterator<Item = (ListPosition, Arc<LiveTool>)>,
    ) -> Option<Self> {
        let mut set = self.with_new_audience();
        for tool in gone {
            set.remove(tool);
        }
        for (position, tool) in come {
            if tool.looks().iter().any(|form| set.name_forms.contains(form)) {
                return None;
            }
            set.add(ListedTool { position, tool });
        }
        Some(set)
    }

    /// The tools that `before` has and this set does not, by wire name. The cost grows with the difference only.
    pub fn gone_since<'s>(&self, before: &'s Self) -> Vec<(&'s ListPosition, &'s LiveTool)> {
        let changes = before.by_name.diff(&self.by_name);
        let gone = changes.filter_map(|change| match change {
            DiffItem::Remove(_, listed) => Some((&listed.position, listed.tool.as_ref())),
            DiffItem::Add(..) | DiffItem::Update { .. } => None,
        });
        gone.collect()
    }

    fn with_new_audience(&self) -> Self {
        Self { audience: Audience::default(), ..self.clone() }
    }

    fn add(&mut self, listed: ListedTool) {
        self.name_forms.extend(listed.tool.looks().iter().cloned());
        self.by_name.insert(listed.tool.name().to_owned(), listed.clone());
        self.tools.insert(listed);
    }

    fn remove(&mut self, tool: &LiveTool) {
        if let Some(listed) = self.by_name.remove(tool.name()) {
            self.tools.remove(&listed);
            for form in listed.tool.looks() {
                self.name_forms.remove(form);
            }
        }
    }

    /// Whether this caller may see the tool. A tool is hidden if no call of it could ever succeed. `policy` is the
    /// policy in code.
    pub(crate) fn shows(&self, tool: &LiveTool, caller: &Caller, policy: &dyn ToolPolicy) -> bool {
        self.is_open_to(tool, caller) && policy.could_allow(caller, &tool.wire_name)
    }

    /// The part of `shows` that cannot change as long as the set is live.
    fn is_open_to(&self, tool: &LiveTool, caller: &Caller) -> bool {
        tool.permissions.missing_always(&caller.permissions).is_empty()
            && self.cedar.as_ref().is_none_or(|cedar| cedar.could_permit(caller, &tool.wire_name))
    }

    /// Excludes tools with the same wire name or with names that people cannot tell apart, because that is a mistake or
    /// an attack. The second value lists the excluded names.
    pub fn new(tools: impl IntoIterator<Item = Arc<LiveTool>>) -> (Self, Vec<String>) {
        let tools = tools.into_iter().enumerate();
        Self::with_positions(tools.map(|(index, tool)| (ListPosition::nth(index), tool)))
    }

    /// Like `new`, for tools that already have positions. Positions must be unique.
    pub fn with_positions(
        tools: impl IntoIterator<Item = (ListPosition, Arc<LiveTool>)>,
    ) -> (Self, Vec<String>) {
        let tools: Vec<(ListPosition, Arc<LiveTool>)> = tools.into_iter().collect();
        let mut bearers: HashMap<&str, usize> = HashMap::with_capacity(tools.len());
        for form in tools.iter().flat_map(|(_, tool)| tool.looks()) {
            *bearers.entry(form.as_str()).or_default() += 1;
        }
        let mut set = Self::default();
        let mut doubled = Vec::new();
        for (position, tool) in &tools {
            if tool.looks().iter().all(|form| bearers.get(form.as_str()) == Some(&1)) {
                set.add(ListedTool { position: position.clone(), tool: Arc::clone(tool) });
            } else {
                doubled.push(tool.name().to_owned());
            }
        }
        doubled.sort_unstable();
        doubled.dedup();
        (set, doubled)
    }

    pub fn get(&self, name: &str) -> Option<Arc<LiveTool>> {
        self.by_name.get(name).map(|listed| Arc::clone(&listed.tool))
    }

    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// All tools, in list order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<LiveTool>> {
        self.tools.iter().map(|listed| &listed.tool)
    }

    /// At most `limit` tools after `after` that this caller may see, and the name after which the next page starts.
    /// `None` if there is no tool `after`.
    pub(crate) fn page(
        &self,
        caller: &Caller,
        after: Option<&str>,
        limit: usize,
        policy: &dyn ToolPolicy,
    ) -> Option<(Vec<Arc<LiveTool>>, Option<String>)> {
        let mut start = match after {
            None => None,
            Some(name) => Some(self.by_name.get(name)?.clone()),
        };
        let shown = self.audience.shown_to(caller);
        let judged_behind = |last: Option<&ListedTool>| {
            let from = last.map_or(Bound::Unbounded, Bound::Excluded);
            let rest = self.tools.range::<_, ListedTool>((from, Bound::Unbounded));
            rest.map(|listed| (listed.clone(), self.is_open_to(&listed.tool, caller)))
        };
        let could_allow = |tool: &Arc<LiveTool>| policy.could_allow(caller, &tool.wire_name);
        let mut page: Vec<Arc<LiveTool>> = Vec::new();
        // The answers of a policy in code are never cached, because they may change. It is called without the lock,
        // because it may list tools itself. One tool more than the page holds tells whether this page is the last.
        while page.len() <= limit {
            let wanted = limit.saturating_add(1).saturating_sub(page.len());
            let (found, has_more) = shown.lock().unwrap_or_else(PoisonError::into_inner).page(
                start.as_ref(),
                wanted,
                judged_behind,
            );
            let Some(last) = found.last() else { break };
            start = Some(last.clone());
            page.extend(found.into_iter().map(|listed| listed.tool).filter(could_allow));
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
