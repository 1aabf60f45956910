use serde_json::json;
use toolgate_config::model::CatalogPreset;
use toolgate_spec::{Format, check_text};

use super::*;

fn tool(name: &str, category: &str, tag: &str) -> ToolSpec {
    let document = json!({
        "name": name, "description": "A tool for tests.", "codeType": "Javascript", "code": "return 1",
        "category": category, "tags": [tag], "toolId": format!("id-{name}"),
    });
    check_text(&document.to_string(), Format::Json).tools.remove(0).spec.unwrap()
}

fn of(names: &[&str], tags: &[&str], categories: &[&str]) -> CatalogSelection {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    CatalogSelection { names: owned(names), tags: owned(tags), categories: owned(categories) }
}

#[track_caller]
fn check(include: CatalogSelection, exclude: CatalogSelection, expect: &[&str]) {
    let tools =
        [tool("a", "text", "x"), tool("b", "text", "y"), tool("c", "data", "x"), tool("d", "data", "y")];
    let catalog = Catalog { preset: CatalogPreset::None, include, exclude };
    let chosen: Vec<&str> = choose(&catalog, &["d", "a", "unknown"], &tools.iter())
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(chosen, expect);
}

#[test]
fn rules_apply_in_their_order_and_exclusion_wins() {
    check(of(&[], &[], &[]), of(&[], &[], &[]), &["d", "a"]);
    check(of(&["c", "unknown"], &[], &[]), of(&[], &[], &[]), &["d", "a", "c"]);
    check(of(&["c"], &[], &["text"]), of(&[], &[], &[]), &["d", "a", "c", "b"]);
    check(of(&[], &["x", "y"], &[]), of(&["a"], &[], &[]), &["d", "b", "c"]);
    check(of(&["b"], &[], &[]), of(&[], &["y"], &[]), &["a"]);
    check(of(&["b"], &[], &[]), of(&[], &[], &["data", "text"]), &[]);
}

#[test]
fn excluded_tool_is_never_exposed() {
    let spec = tool("a", "text", "x");
    let exposure = |auto_add, exposed: &[&str], excluded: &[&str]| Exposure {
        auto_add,
        exposed: exposed.iter().map(|&text| text.to_owned()).collect(),
        excluded: excluded.iter().map(|&text| text.to_owned()).collect(),
    };
    assert!(is_exposed(&exposure(true, &[], &[]), &spec));
    assert!(!is_exposed(&exposure(false, &[], &[]), &spec));
    assert!(is_exposed(&exposure(false, &["a"], &[]), &spec));
    assert!(!is_exposed(&exposure(true, &["a"], &["id-a"]), &spec));
    assert!(!is_exposed(&exposure(true, &["a"], &["ID-A"]), &spec), "ids ignore case");
}

#[test]
fn tool_is_not_exposed_by_the_name_or_id_of_another() {
    let exposing =
        |entry: &str| Exposure { auto_add: false, exposed: vec![entry.to_owned()], excluded: Vec::new() };
    let with_id = |name: &str, id: &str| ToolSpec {
        id: toolgate_spec::model::ToolId::given(id).unwrap(),
        ..tool(name, "text", "x")
    };
    let uuid = "0198c0de-0000-7000-8000-00000000abcd";
    assert!(is_exposed(&exposing(uuid), &with_id("mail", uuid)));
    assert!(is_exposed(&exposing(&uuid.to_uppercase()), &with_id("mail", uuid)));
    assert!(!is_exposed(&exposing("mail"), &with_id("evil", "mail")), "an id that is a name");
    assert!(!is_exposed(&exposing(uuid), &with_id(uuid, "mail")), "a name that is an id");
}

#[test]
fn hidden_tool_is_exposed_only_by_the_operator() {
    let mut spec = tool("a", "text", "x");
    spec.governance.exposed = Some(false);
    let exposing = |exposed: &[&str]| Exposure {
        auto_add: true,
        exposed: exposed.iter().map(|&entry| entry.to_owned()).collect(),
        excluded: Vec::new(),
    };
    assert!(!is_exposed(&exposing(&[]), &spec));
    assert!(is_exposed(&exposing(&["a"]), &spec));
}

#[test]
fn catalog_takes_ids() {
    let uuid = "0f9c2ba4-e88f-4f6a-9c3d-2b1a7c7f0d11";
    let mut tools = [tool("a", "text", "x"), tool("b", "text", "y")];
    tools[1].id = toolgate_spec::model::ToolId::given(uuid).unwrap();
    let choose = |include, exclude| {
        let catalog = Catalog { preset: CatalogPreset::None, include, exclude };
        choose(&catalog, &["a"], &tools.iter()).iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(choose(of(&[uuid], &[], &[]), of(&[], &[], &[])), ["a", "b"]);
    assert_eq!(choose(of(&["b"], &[], &[]), of(&[uuid], &[], &[])), ["a"]);
}
