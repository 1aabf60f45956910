use super::*;

/// Asserts all mistakes, each as `line:column: message (help)`.
#[track_caller]
fn check(rules: &str, expect: &[&str]) {
    let errors = load_for(&tools(), rules).expect_err(rules);
    let shown: Vec<String> =
        errors.iter().map(|error| error.to_string().trim_start_matches("rules.cedar:").to_owned()).collect();
    assert_eq!(shown, expect, "\n{rules}");
}

#[track_caller]
fn check_condition(tool: &str, condition: &str, expect: &[&str]) {
    check(
        &format!("permit(principal, action == Action::\"{tool}\", resource)\nwhen {{ {condition} }};"),
        expect,
    );
}

#[test]
fn names_that_do_not_exist() {
    check("permit(principal, action == Action::\"raed_file\", resource);", &["x"]);
    check("permit(principal, action, resource == Tool::\"raed_file\");", &["x"]);
    check_condition("read_file", "context.input has pth && context.input.pth == \"x\"", &["x"]);
    check_condition("read_file", "context.input.path == \"x\" || context.input has pth", &["x"]);
    check_condition("pay", "context.input.to.ibn == \"x\"", &["x"]);
    check_condition("read_file", "principal.age == 3", &["x"]);
    check("permit(principal is User, action, resource);", &["x"]);
}

#[test]
fn types_that_do_not_fit() {
    check_condition("read_file", "context.input.path == 3", &["x"]);
    check_condition("read_file", "context.input has lines && context.input.lines like \"3*\"", &["x"]);
    check_condition("read_file", "context.input.lines == 3", &["x"]);
    check_condition("pay", "context.input.amount > 3", &["x"]);
}

#[test]
fn words_that_are_never_said() {
    check_condition("read_file", "resource.classification == \"raed\"", &["x"]);
    check_condition("read_file", "[\"read\", \"rwite\"].contains(resource.classification)", &["x"]);
    check_condition("read_file", "resource.network != \"on\"", &["x"]);
    check_condition("read_file", "context.input has mode && context.input.mode == \"txt\"", &["x"]);
}

#[test]
fn what_cedar_cannot_express() {
    check_condition("pay", "context.input has anything", &["x"]);
    check_condition("pay", "context.input has pair && context.input.pair.contains(\"x\")", &["x"]);
    check_condition("pay", "context.input.to == {\"iban\": \"x\"}", &["x"]);
    check_condition("pay", "context.input == context.input", &["x"]);
    check_condition("pay", "context == context", &["x"]);
    check_condition("pay", "context.input.to.extra == 1", &["x"]);
}

/// A permit that cannot see an argument of one of its tools does not apply there. A forbid would let it through.
#[test]
fn a_forbid_must_see_the_argument_in_every_tool() {
    let mut tools = tools();
    tools.push(known(
        "vague",
        "classification: read",
        &json!({"type": "object", "properties": {"path": {}}}),
    ));
    let rule = "(principal, action, resource) when { context.input has path && context.input.path like \"/etc/*\" };";
    assert!(load_for(&tools, &format!("permit{rule}")).is_ok());
    let errors = load_for(&tools, &format!("forbid{rule}")).expect_err("a hole");
    assert_eq!(shown(&errors), "x");
    assert!(load_for(&super::tools(), &format!("forbid{rule}")).is_ok());
}

#[test]
fn rules_that_never_match() {
    check("permit(principal, action == Action::\"call\", resource);", &["x"]);
    check("permit(principal, action, resource) when { action == Action::\"call\" };", &["x"]);
    check("permit(principal, action == Action::\"pay\", resource == Tool::\"read_file\");", &["x"]);
    check("permit(principal, action, resource) when { resource.level > 3 && false };", &["x"]);
}

#[test]
fn forms_that_are_refused() {
    check("permit(principal == ?principal, action, resource);", &["x"]);
    check("@approval(\"x\")\npermit(principal, action, resource);", &["x"]);
    check("\n@approval\nforbid(principal, action, resource);", &["x"]);
    check("@id(\"\")\npermit(principal, action, resource);", &["x"]);
    check(
        "@id(\"a\") permit(principal, action, resource);\n@id(\"a\") forbid(principal, action, resource);",
        &["x"],
    );
    check("permit(principal, action, resource) when { principal.subject == \"a\u{202e}b\" };", &["x"]);
}

#[test]
fn every_mistake_is_told_at_its_place() {
    check(
        "permit(principal, action == Action::\"raed_file\", resource);\n\n// a remark; with a \"quote\npermit(principal, action == Action::\"pay\", resource)\n  when { context.input.amuont == 1 };\n",
        &["x"],
    );
    check("permit(principal, action, resource)\nforbid(principal action, resource);", &["x"]);
    let sources =
        [("a.cedar", "permit("), ("b.cedar", "permit(principal, action == Action::\"x\", resource);")];
    let sources = sources.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let errors = CedarPolicies::new(&sources, []).expect_err("two mistakes");
    let files: Vec<&str> = errors.iter().map(|error| error.file.as_str()).collect();
    assert_eq!(files, ["a.cedar", "b.cedar"]);
}

#[test]
fn without_tools_rules_about_all_tools_load() {
    for rules in [
        "",
        ALL,
        "permit(principal, action, resource) when { context.input has path && context.input.path == \"x\" };",
        include_str!("../../../../../profiles/cedar/approve-writes.cedar"),
    ] {
        load_for(&[], rules).unwrap_or_else(|errors| panic!("{}\n{rules}", shown(&errors)));
    }
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let mut tools = tools();
    tools.push(known("pay", "classification: read", &json!({"type": "object", "properties": {}})));
    let errors = load_for(&tools, ALL).expect_err("two tools");
    assert_eq!(
        shown(&errors),
        "tool `pay`: another tool has the same name, so no rule could tell them apart\n"
    );
}

/// Unknown annotations are for whoever reads the file.
#[test]
fn other_annotations_are_free() {
    loaded("@owner(\"ops\") @ticket permit(principal, action, resource);");
}

/// What nests deeply, or is long, must neither overflow the stack nor hang: it loads, or it is refused.
#[test]
fn monstrous_policies_are_survived() {
    let rule = |condition: String| format!("permit(principal, action, resource) when {{ {condition} }};");
    let many = 100_000;
    for condition in [
        "(".repeat(many) + "true" + &")".repeat(many),
        "[".repeat(many) + &"]".repeat(many),
        vec!["resource.destructive"; many].join(" || "),
        vec!["1"; many].join(" + ") + " == 1",
        "if true then true else ".repeat(many) + "true",
        "resource".to_owned() + &".a".repeat(many),
        "{a:".repeat(many) + "1" + &"}".repeat(many),
        "!".repeat(many) + "true",
    ] {
        assert!(load_for(&tools(), &rule(condition)).is_err());
    }
    loaded(&rule(vec!["resource.destructive"; 600].join(" || ")));
    let texts = vec!["\"a.b&&c||d\""; 5000].join(", ");
    loaded(&rule(format!("[{texts}].contains(principal.subject)")));
}
