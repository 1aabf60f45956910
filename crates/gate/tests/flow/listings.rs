//! Listings: visibility is cached per caller, as long as tools and policies stay the same.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use serde_json::json;
use toolgate_gate::{LiveSet, Outcome, Reason};
use toolgate_policy::{Arguments, Caller, CedarPolicies, Ruling, ToolPolicy, allow_list, deny_list, when};

use crate::fakes::{Does, Settings, World, document};

fn put_in_force(world: &World, names: &[&str], rules: &str) {
    let tools: Vec<_> = names.iter().map(|name| world.tool(&document(name, &json!({})))).collect();
    let sources = [("rules.cedar".to_owned(), rules.to_owned())];
    let cedar = CedarPolicies::new(&sources, tools.iter().map(|tool| tool.for_policies())).unwrap();
    world.gate.replace(LiveSet::new(tools).0.with_policies(Some(cedar)));
}

fn names(world: &World, caller: &Caller) -> Vec<String> {
    world.gate.list(caller).iter().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test]
async fn caller_does_not_see_tools_cached_for_another_caller() {
    let world = World::new(Does::EchoesArguments, &[]);
    let rules = "permit(principal in Permission::\"admin\", action, resource);
        permit(principal == Caller::\"ann\", action == Action::\"say\", resource);";
    put_in_force(&world, &["say", "rule"], rules);
    for _ in 0..2 {
        assert_eq!(names(&world, &Caller::new("root", ["admin"])), ["say", "rule"]);
        assert_eq!(names(&world, &Caller::new("ann", ["admin"])), ["say", "rule"]);
        // The same person after the permission was removed.
        assert_eq!(names(&world, &Caller::new::<&str>("ann", [])), ["say"]);
        assert_eq!(names(&world, &Caller::new("ann", ["Admin"])), ["say"]);
        assert!(names(&world, &Caller::new::<&str>("root", [])).is_empty());
        assert!(names(&world, &Caller::new::<&str>("bob", [])).is_empty());
    }
}

#[tokio::test]
async fn cached_visibility_ends_with_tools_and_policies() {
    let world = World::new(Does::EchoesArguments, &[]);
    let ann = Caller::new::<&str>("ann", []);
    let all = ["say", "rule", "end"];
    put_in_force(&world, &all, "permit(principal, action, resource);");
    assert_eq!(names(&world, &ann), all);
    put_in_force(&world, &all, "permit(principal, action == Action::\"rule\", resource);");
    assert_eq!(names(&world, &ann), ["rule"]);
    let (page, next) = world.gate.page(&ann, Some("say"), 1).unwrap();
    assert_eq!((page[0].name(), next), ("rule", None));
    // The same names at other positions.
    put_in_force(&world, &["end", "rule"], "permit(principal, action == Action::\"rule\", resource);");
    assert_eq!(names(&world, &ann), ["rule"]);
    world.gate.retain(|tool| tool.name() != "rule");
    assert!(names(&world, &ann).is_empty());
    put_in_force(&world, &all, "permit(principal, action, resource);");
    assert_eq!(names(&world, &ann), all);
}

fn with_policy(policy: impl ToolPolicy + 'static, names: &[&str]) -> World {
    let documents: Vec<_> = names.iter().map(|name| document(name, &json!({}))).collect();
    let settings = Settings { policy: Arc::new(policy), ..Settings::default() };
    World::with(Does::EchoesArguments, &documents, settings)
}

/// The answer to a call, without the tool's name.
async fn answer(world: &World, tool: &str) -> String {
    let outcome = world.call(tool, json!({ "text": "hi" })).await;
    let Outcome::Refused(end) = outcome else { panic!("{outcome:?}") };
    assert_eq!(end.reason, Reason::UnknownTool);
    format!("{} {:?}", end.to_caller, end.remedy).replace(tool, "TOOL")
}

#[tokio::test]
async fn tool_denied_by_policy_in_code_is_hidden() {
    let ann = Caller::new("ann", ["reader"]);
    let (deny, allow) = (deny_list(["rule"]), allow_list(["say", "end"]));
    let both: [Box<dyn ToolPolicy>; 2] = [Box::new(deny), Box::new(allow.and(when(|_, _, _| true, "never")))];
    for policy in both {
        let world = with_policy(policy, &["say", "rule", "end"]);
        for _ in 0..2 {
            assert_eq!(names(&world, &ann), ["say", "end"]);
        }
        assert!(world.gate.find(&ann, "rule").is_none());
        assert!(world.gate.find(&ann, "say").is_some());
        assert_eq!(answer(&world, "rule").await, answer(&world, "none").await);
        assert!(matches!(world.call("say", json!({ "text": "hi" })).await, Outcome::Released(_)));
        assert_eq!(world.fake.runs(), 1);
    }
}

/// A page is full as long as there are tools for it, and the last page has no next one.
#[tokio::test]
async fn pages_skip_tools_hidden_by_policy_in_code() {
    let ann = Caller::new("ann", ["reader"]);
    let all = ["a1", "b1", "b2", "b3", "a2", "b4", "a3", "b5"];
    let world = with_policy(allow_list(["a1", "a2", "a3"]), &all);
    let page = |after: Option<&str>, limit: usize| {
        let (tools, next) = world.gate.page(&ann, after, limit).unwrap();
        (tools.iter().map(|tool| tool.name().to_owned()).collect::<Vec<_>>().join(" "), next)
    };
    for _ in 0..2 {
        assert_eq!(page(None, 1), ("a1".to_owned(), Some("a1".to_owned())));
        assert_eq!(page(Some("a1"), 1), ("a2".to_owned(), Some("a2".to_owned())));
        assert_eq!(page(Some("a2"), 1), ("a3".to_owned(), None));
        assert_eq!(page(None, 2), ("a1 a2".to_owned(), Some("a2".to_owned())));
        assert_eq!(page(None, 3), ("a1 a2 a3".to_owned(), None));
        assert_eq!(page(None, usize::MAX), ("a1 a2 a3".to_owned(), None));
        assert_eq!(page(Some("b5"), 2), (String::new(), None));
    }
}

/// A policy of an embedding program that denies tools while the gateway runs.
#[derive(Clone, Default)]
struct DenyList(Arc<Mutex<BTreeSet<String>>>);

impl ToolPolicy for DenyList {
    fn check(&self, caller: &Caller, tool: &str, _: &Arguments) -> Ruling {
        if self.could_allow(caller, tool) {
            Ruling::Allow
        } else {
            Ruling::Deny { reason: "taken away".to_owned() }
        }
    }

    fn could_allow(&self, caller: &Caller, tool: &str) -> bool {
        caller.subject == "root" || !self.0.lock().unwrap().contains(tool)
    }
}

#[tokio::test]
async fn policy_in_code_is_not_cached() {
    let policy = DenyList::default();
    let world = with_policy(policy.clone(), &["say", "rule"]);
    let (ann, root) = (Caller::new("ann", ["reader"]), Caller::new("root", ["reader"]));
    assert_eq!(names(&world, &ann), ["say", "rule"]);
    policy.0.lock().unwrap().insert("say".to_owned());
    assert_eq!(names(&world, &ann), ["rule"], "nothing is remembered");
    assert_eq!(names(&world, &root), ["say", "rule"]);
    assert_eq!(answer(&world, "say").await, answer(&world, "none").await);
    policy.0.lock().unwrap().clear();
    assert_eq!(names(&world, &ann), ["say", "rule"]);
}

/// Clients use these to decide whether to ask their user. They state only facts that Toolgate enforces.
#[tokio::test]
async fn annotations_state_only_enforced_facts() {
    let world = World::new(Does::EchoesArguments, &[]);
    let open = json!({ "openWorldHint": true });
    let rows = [
        ("reads", json!({}), json!({ "readOnlyHint": true, "openWorldHint": false })),
        ("fetches", json!({ "networkMode": "strict" }), open.clone()),
        (
            "writes",
            json!({ "fileWrite": true }),
            json!({ "readOnlyHint": false, "destructiveHint": true, "openWorldHint": false }),
        ),
        (
            "destroys",
            json!({ "destructive": true }),
            json!({ "readOnlyHint": false, "destructiveHint": true, "openWorldHint": false }),
        ),
        (
            "destroys_elsewhere",
            json!({ "destructive": true, "networkMode": "strict" }),
            json!({ "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true }),
        ),
    ];
    for (name, overrides, expect) in rows {
        // Claims in the document are ignored.
        let claims = json!({ "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false });
        let change = json!({ "sandboxOverrides": overrides, "annotations": claims });
        assert_eq!(world.tool(&document(name, &change)).listing()["annotations"], expect, "{name}");
    }
    let network = json!({ "networkMode": "strict" });
    for (class, expect) in
        [("read", open), ("write", json!({ "readOnlyHint": false, "openWorldHint": true }))]
    {
        let change = json!({ "sandboxOverrides": network, "x-toolgate-classification": class });
        assert_eq!(world.tool(&document("posts", &change)).listing()["annotations"], expect, "{class}");
    }
}
