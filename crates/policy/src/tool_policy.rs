//! Policies for programs that embed the library. They decide whether a caller may call a tool with these arguments.
//!
//! A policy only allows or denies. It cannot change arguments, run code or see results.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use crate::caller::{Arguments, Caller};

pub trait ToolPolicy: Send + Sync {
    fn check(&self, caller: &Caller, tool: &str, args: &Arguments) -> Ruling;

    /// Returns false if no call of this tool by this caller can be allowed. The tool is then hidden: it is not listed, and
    /// calls are answered as for an unknown tool. Return false only if `check` denies all arguments. Must be fast: it is
    /// called for every listing and every call.
    fn could_allow(&self, _caller: &Caller, _tool: &str) -> bool {
        true
    }

    /// Both must allow. Evaluation stops at the first denial, so put the cheap policy first.
    fn and<P: ToolPolicy>(self, other: P) -> And<Self, P>
    where
        Self: Sized,
    {
        And { first: self, second: other }
    }

    /// As `check`, for arguments as text. Denies unparsable arguments without calling the policy.
    fn check_text(&self, caller: &Caller, tool: &str, args: &str) -> Ruling {
        match Arguments::parse(args) {
            Ok(args) => self.check(caller, tool, &args),
            Err(why) => Ruling::Deny { reason: why.to_string() },
        }
    }
}

/// The decision. The reason of a denial is shown to the model.
#[must_use]
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ruling {
    Allow,
    Deny { reason: String },
}

impl Ruling {
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow)
    }
}

/// Allows only these tools. Names are compared exactly, as in the registry.
pub fn allow_list<N: Into<String>>(tools: impl IntoIterator<Item = N>) -> AllowList {
    AllowList(tools.into_iter().map(Into::into).collect())
}

/// Allows all tools except these.
pub fn deny_list<N: Into<String>>(tools: impl IntoIterator<Item = N>) -> DenyList {
    DenyList(tools.into_iter().map(Into::into).collect())
}

/// Allows if the predicate holds; otherwise denies with the reason.
pub fn when<F>(predicate: F, reason: impl Into<String>) -> When<F>
where
    F: Fn(&Caller, &str, &Arguments) -> bool + Send + Sync,
{
    When { predicate, reason: reason.into() }
}

/// One policy per caller subject. A caller without an entry is denied, unless `otherwise` is set.
pub fn per_caller() -> PerCaller {
    PerCaller { policies: BTreeMap::new(), otherwise: Arc::new(DENY_ALL) }
}

/// The policy of an embedding program that sets none.
pub const ALLOW_ALL: AllowAll = AllowAll;
pub const DENY_ALL: DenyAll = DenyAll;

#[derive(Clone, Copy, Debug)]
pub struct AllowAll;

#[derive(Clone, Copy, Debug)]
pub struct DenyAll;

#[derive(Clone, Debug)]
pub struct AllowList(BTreeSet<String>);

#[derive(Clone, Debug)]
pub struct DenyList(BTreeSet<String>);

#[derive(Clone)]
pub struct When<F> {
    predicate: F,
    reason: String,
}

#[derive(Clone, Debug)]
pub struct And<A, B> {
    first: A,
    second: B,
}

/// Created by [`per_caller`].
#[derive(Clone)]
pub struct PerCaller {
    policies: BTreeMap<String, Arc<dyn ToolPolicy>>,
    otherwise: Arc<dyn ToolPolicy>,
}

impl PerCaller {
    /// Sets the policy of the caller with exactly this subject, replacing an earlier one.
    #[must_use]
    pub fn with(mut self, subject: impl Into<String>, policy: impl ToolPolicy + 'static) -> Self {
        self.policies.insert(subject.into(), Arc::new(policy));
        self
    }

    /// Sets the policy of callers without an entry.
    #[must_use]
    pub fn otherwise(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.otherwise = Arc::new(policy);
        self
    }

    fn of(&self, caller: &Caller) -> &dyn ToolPolicy {
        self.policies.get(&caller.subject).unwrap_or(&self.otherwise).as_ref()
    }
}

impl ToolPolicy for PerCaller {
    fn check(&self, caller: &Caller, tool: &str, args: &Arguments) -> Ruling {
        self.of(caller).check(caller, tool, args)
    }

    fn could_allow(&self, caller: &Caller, tool: &str) -> bool {
        self.of(caller).could_allow(caller, tool)
    }
}

impl fmt::Debug for PerCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerCaller").field("callers", &self.policies.keys()).finish_non_exhaustive()
    }
}

impl ToolPolicy for AllowAll {
    fn check(&self, _: &Caller, _: &str, _: &Arguments) -> Ruling {
        Ruling::Allow
    }
}

impl ToolPolicy for DenyAll {
    fn check(&self, _: &Caller, tool: &str, _: &Arguments) -> Ruling {
        Ruling::Deny { reason: format!("`{tool}` is denied, as every tool is") }
    }

    fn could_allow(&self, _: &Caller, _: &str) -> bool {
        false
    }
}

impl ToolPolicy for AllowList {
    fn check(&self, _: &Caller, tool: &str, _: &Arguments) -> Ruling {
        if self.0.contains(tool) {
            Ruling::Allow
        } else {
            Ruling::Deny { reason: format!("`{tool}` is not on the allow list") }
        }
    }

    fn could_allow(&self, _: &Caller, tool: &str) -> bool {
        self.0.contains(tool)
    }
}

impl ToolPolicy for DenyList {
    fn check(&self, _: &Caller, tool: &str, _: &Arguments) -> Ruling {
        if self.0.contains(tool) {
            Ruling::Deny { reason: format!("`{tool}` is on the deny list") }
        } else {
            Ruling::Allow
        }
    }

    fn could_allow(&self, _: &Caller, tool: &str) -> bool {
        !self.0.contains(tool)
    }
}

impl<F> ToolPolicy for When<F>
where
    F: Fn(&Caller, &str, &Arguments) -> bool + Send + Sync,
{
    fn check(&self, caller: &Caller, tool: &str, args: &Arguments) -> Ruling {
        if (self.predicate)(caller, tool, args) {
            Ruling::Allow
        } else {
            Ruling::Deny { reason: self.reason.clone() }
        }
    }
}

impl<F> fmt::Debug for When<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("When").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<A: ToolPolicy, B: ToolPolicy> ToolPolicy for And<A, B> {
    fn check(&self, caller: &Caller, tool: &str, args: &Arguments) -> Ruling {
        match self.first.check(caller, tool, args) {
            Ruling::Allow => self.second.check(caller, tool, args),
            denied @ Ruling::Deny { .. } => denied,
        }
    }

    fn could_allow(&self, caller: &Caller, tool: &str) -> bool {
        self.first.could_allow(caller, tool) && self.second.could_allow(caller, tool)
    }
}

impl<P: ToolPolicy + ?Sized> ToolPolicy for Arc<P> {
    fn check(&self, caller: &Caller, tool: &str, args: &Arguments) -> Ruling {
        (**self).check(caller, tool, args)
    }

    fn could_allow(&self, caller: &Caller, tool: &str) -> bool {
        (**self).could_allow(caller, tool)
    }
}

impl<P: ToolPolicy + ?Sized> ToolPolicy for Box<P> {
    fn check(&self, caller: &Caller, tool: &str, args: &Arguments) -> Ruling {
        (**self).check(caller, tool, args)
    }

    fn could_allow(&self, caller: &Caller, tool: &str) -> bool {
        (**self).could_allow(caller, tool)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[track_caller]
    fn check(policy: &impl ToolPolicy, tool: &str, args: &str, expect: &str) {
        let caller = Caller::new("ann", ["reader"]);
        let shown = match policy.check_text(&caller, tool, args) {
            Ruling::Allow => "allow".into(),
            Ruling::Deny { reason } => reason,
        };
        assert_eq!(shown, expect);
    }

    #[test]
    fn lists_and_constants() {
        check(&ALLOW_ALL, "x", "{}", "allow");
        check(&DENY_ALL, "x", "{}", "`x` is denied, as every tool is");
        let policy = allow_list(["web.search", "shell.execute"]).and(deny_list(["shell.execute"]));
        check(&policy, "web.search", "{}", "allow");
        check(&policy, "shell.execute", "{}", "`shell.execute` is on the deny list");
        check(&policy, "Web.Search", "{}", "`Web.Search` is not on the allow list");
        check(&allow_list::<String>([]), "x", "{}", "`x` is not on the allow list");
    }

    #[test]
    fn arguments_count() {
        let small = when(
            |_, tool, args| {
                tool != "payment.transfer"
                    || args
                        .get("amount")
                        .and_then(serde_json::Value::as_f64)
                        .is_some_and(|amount| amount <= 1000.0)
            },
            "amount above 1000 requires approval",
        );
        check(&small, "payment.transfer", r#"{"amount": 1000}"#, "allow");
        check(&small, "payment.transfer", r#"{"amount": 1000.5}"#, "amount above 1000 requires approval");
        check(&small, "payment.transfer", r#"{"amount": "1"}"#, "amount above 1000 requires approval");
    }

    #[test]
    fn unparsable_arguments_are_denied_by_every_policy() {
        check(&ALLOW_ALL, "x", "[1]", "the arguments are not a JSON object");
        check(&ALLOW_ALL, "x", "null", "the arguments are not a JSON object");
        check(
            &ALLOW_ALL,
            "x",
            "",
            "the arguments are not JSON: EOF while parsing a value at line 1 column 0",
        );
    }

    #[test]
    fn evaluation_stops_at_the_first_denial() {
        let asked = AtomicUsize::new(0);
        let counting = || {
            when(
                |_, _, _| {
                    asked.fetch_add(1, Ordering::Relaxed);
                    true
                },
                "never",
            )
        };
        check(&deny_list(["x"]).and(counting()).and(counting()), "x", "{}", "`x` is on the deny list");
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        check(&counting().and(DENY_ALL).and(counting()), "x", "{}", "`x` is denied, as every tool is");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    /// A tool that can never be called is hidden; a tool whose arguments decide is not.
    #[test]
    fn tool_denied_for_all_arguments_is_hidden() {
        let ann = Caller::new("ann", ["reader"]);
        let never = || when(|_, _, _| false, "no");
        let boxed: Box<dyn ToolPolicy> = Box::new(deny_list(["x"]));
        let rows: [(&dyn ToolPolicy, bool, bool); 10] = [
            (&ALLOW_ALL, true, true),
            (&DENY_ALL, false, false),
            (&allow_list(["x"]), true, false),
            (&deny_list(["x"]), false, true),
            (&never(), true, true),
            (&deny_list(["x"]).and(never()), false, true),
            (&never().and(deny_list(["x"])), false, true),
            (&allow_list(["x", "y"]).and(deny_list(["y"])), true, false),
            (&ALLOW_ALL.and(DENY_ALL), false, false),
            (&boxed, false, true),
        ];
        for (row, (policy, x, y)) in rows.into_iter().enumerate() {
            for (tool, expect) in [("x", x), ("y", y)] {
                assert_eq!(policy.could_allow(&ann, tool), expect, "row {row}, `{tool}`");
                let is_allowed = policy.check_text(&ann, tool, "{}").is_allowed();
                assert!(expect || !is_allowed, "row {row}: `{tool}` is hidden and allowed");
            }
        }
    }

    #[test]
    fn callers_without_an_entry_are_denied() {
        let policy =
            per_caller().with("reader", allow_list(["search"])).with("writer", deny_list(["search"]));
        let ask = |policy: &PerCaller, subject: &str, tool: &str| {
            let caller = Caller::new::<String>(subject, []);
            let is_allowed = policy.check_text(&caller, tool, "{}").is_allowed();
            assert_eq!(policy.could_allow(&caller, tool), is_allowed, "{subject}, {tool}");
            is_allowed
        };
        assert!(ask(&policy, "reader", "search") && !ask(&policy, "reader", "save"));
        assert!(!ask(&policy, "writer", "search") && ask(&policy, "writer", "save"));
        assert!(!ask(&policy, "Reader", "search") && !ask(&policy, "", "search"));
        let policy = policy.otherwise(ALLOW_ALL);
        assert!(ask(&policy, "somebody", "search") && !ask(&policy, "reader", "save"));
    }

    #[test]
    fn boxed_policies_compose() {
        let boxed: Box<dyn ToolPolicy> = Box::new(allow_list(["x"]));
        check(
            &boxed.and(when(|caller, _, _| caller.permissions.contains("reader"), "no")),
            "x",
            "{}",
            "allow",
        );
    }
}
