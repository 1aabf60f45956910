//! Who is shown what: remembered for each caller, and only as long as tools and policies stay as they are.

use serde_json::json;
use toolgate_gate::LiveSet;
use toolgate_policy::{Caller, CedarPolicies};

use crate::fakes::{Does, World, document};

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
async fn nobody_is_shown_what_another_caller_was_shown() {
    let world = World::new(Does::EchoesArguments, &[]);
    let rules = "permit(principal in Permission::\"admin\", action, resource);
        permit(principal == Caller::\"ann\", action == Action::\"say\", resource);";
    put_in_force(&world, &["say", "rule"], rules);
    for _ in 0..2 {
        assert_eq!(names(&world, &Caller::new("root", ["admin"])), ["say", "rule"]);
        assert_eq!(names(&world, &Caller::new("ann", ["admin"])), ["say", "rule"]);
        // The same person, once the permission is taken away.
        assert_eq!(names(&world, &Caller::new::<&str>("ann", [])), ["say"]);
        assert_eq!(names(&world, &Caller::new("ann", ["Admin"])), ["say"]);
        assert!(names(&world, &Caller::new::<&str>("root", [])).is_empty());
        assert!(names(&world, &Caller::new::<&str>("bob", [])).is_empty());
    }
}

#[tokio::test]
async fn what_was_shown_is_forgotten_with_the_tools_and_policies_it_was_shown_by() {
    let world = World::new(Does::EchoesArguments, &[]);
    let ann = Caller::new::<&str>("ann", []);
    let all = ["say", "rule", "end"];
    put_in_force(&world, &all, "permit(principal, action, resource);");
    assert_eq!(names(&world, &ann), all);
    put_in_force(&world, &all, "permit(principal, action == Action::\"rule\", resource);");
    assert_eq!(names(&world, &ann), ["rule"]);
    let (page, next) = world.gate.page(&ann, Some("say"), 1).unwrap();
    assert_eq!((page[0].name(), next), ("rule", None));
    // Other places for the same names.
    put_in_force(&world, &["end", "rule"], "permit(principal, action == Action::\"rule\", resource);");
    assert_eq!(names(&world, &ann), ["rule"]);
    world.gate.retain(|tool| tool.name() != "rule");
    assert!(names(&world, &ann).is_empty());
    put_in_force(&world, &all, "permit(principal, action, resource);");
    assert_eq!(names(&world, &ann), all);
}
