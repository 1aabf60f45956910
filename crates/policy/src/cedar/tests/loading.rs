use super::*;

/// Asserts all errors, each as `line:column: message (help)`.
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

/// Such a policy loads, because an embedding program may choose its callers' names, but it matches no caller of the server.
#[test]
fn unknown_form_of_a_caller_name_is_a_warning() {
    let warnings = |rules: &str| -> Vec<String> {
        let policies = load_for(&tools(), rules).unwrap();
        policies.warnings().iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        warnings("permit(principal == Caller::\"alice\", action, resource);"),
        [
            "rules.cedar:1:30: no caller is named `alice`, so this rule never matches one (write `token:alice` for a token of this gateway, `jwt:ISSUER:alice` for a signed token, `local:alice` or `anonymous:alice`)"
        ]
    );
    for rule in [
        "permit(principal in Caller::\"alice\", action, resource);",
        "forbid(principal, action, resource) unless { principal == Caller::\"alice\" };",
        "forbid(principal, action, resource) when { [Caller::\"alice\"].contains(principal) };",
        "forbid(principal, action, resource) when { principal.subject == \"alice\" };",
        "forbid(principal, action, resource) when { [\"alice\", \"token:ann\"].contains(principal.subject) };",
    ] {
        assert_eq!(warnings(rule).len(), 1, "{rule}: {:?}", warnings(rule));
    }
    for rule in [
        "permit(principal == Caller::\"token:ann\", action, resource);",
        "permit(principal == Caller::\"jwt:login:ann\", action, resource);",
        "permit(principal, action, resource) when { principal.subject == \"local:local\" };",
        "permit(principal in Permission::\"files\", action, resource);",
    ] {
        assert_eq!(warnings(rule), [""; 0], "{rule}");
    }
}

#[test]
fn unknown_names_are_errors() {
    check(
        "permit(principal, action == Action::\"raed_file\", resource);",
        &["1:29: unrecognized action `Action::\"raed_file\"` (did you mean `Action::\"read_file\"`?)"],
    );
    check(
        "permit(principal, action, resource == Tool::\"raed_file\");",
        &["1:46: unknown tool `raed_file` (did you mean `read_file`?)"],
    );
    check_condition(
        "read_file",
        "context.input has pth && context.input.pth == \"x\"",
        &["2:26: no tool that this policy is about has an argument `pth` (did you mean `path`?)"],
    );
    check_condition(
        "read_file",
        "context.input.path == \"x\" || context.input has pth",
        &["2:55: no tool that this policy is about has an argument `pth` (did you mean `path`?)"],
    );
    check_condition(
        "pay",
        "context.input.to.ibn == \"x\"",
        &["2:25: no tool that this policy is about has an argument `to.ibn` (did you mean `iban`?)"],
    );
    check_condition(
        "read_file",
        "principal.age == 3",
        &["2:8: attribute `age` on entity type `Caller` not found (did you mean `subject`?)"],
    );
    check(
        "permit(principal is Callr, action, resource);",
        &["1:21: unrecognized entity type `Callr` (did you mean `Caller`?)"],
    );
}

#[test]
fn mismatched_types_are_errors() {
    check_condition(
        "read_file",
        "context.input.path == 3",
        &[
            "2:8: the types Long and String are not compatible (both operands to a `==` expression must have compatible types. Types must be exactly equal to be compatible)",
        ],
    );
    check_condition(
        "read_file",
        "context.input has lines && context.input.lines like \"3*\"",
        &["2:35: unexpected type: expected String but saw Long"],
    );
    check_condition(
        "read_file",
        "context.input.lines == 3",
        &[
            "2:8: unable to guarantee safety of access to optional attribute `input.lines` in context for Action::\"read_file\" (try testing for the attribute's presence with `context.input has lines && ..`)",
        ],
    );
    check_condition(
        "pay",
        "context.input.amount > 3",
        &[
            "2:8: unexpected type: expected Long but saw decimal (compare with `.lessThan(decimal(\"1.0\"))`, `.greaterThan(…)` and similar)",
        ],
    );
}

#[test]
fn impossible_values_are_errors() {
    check_condition(
        "read_file",
        "resource.classification == \"raed\"",
        &["2:36: `classification` is never `raed` (did you mean `read`?)"],
    );
    check_condition(
        "read_file",
        "[\"read\", \"rwite\"].contains(resource.classification)",
        &["2:18: `classification` is never `rwite` (did you mean `write`?)"],
    );
    check_condition(
        "read_file",
        "resource.network != \"on\"",
        &["2:29: `network` is never `on` (it is one of: allowlist, blocked, open, strict)"],
    );
    check_condition(
        "read_file",
        "context.input has mode && context.input.mode == \"txt\"",
        &["2:57: `mode` is never `txt` (did you mean `text`?)"],
    );
}

#[test]
fn inexpressible_arguments_are_errors() {
    check_condition(
        "pay",
        "context.input has anything",
        &[
            "2:26: argument `anything` of tool `pay` cannot be used in a policy: its schema does not define its type (give it a plain type in the tool's input schema, or exclude this tool from the policy)",
        ],
    );
    check_condition(
        "pay",
        "context.input has pair && context.input.pair.contains(\"x\")",
        &[
            "2:26: argument `pair` of tool `pay` cannot be used in a policy: its items have a type per position, and a Cedar set has no positions (give it a plain type in the tool's input schema, or exclude this tool from the policy)",
        ],
    );
    check_condition(
        "pay",
        "context.input.to == {\"iban\": \"x\"}",
        &[
            "2:8: the types {iban: String,} and {iban: String,name?: String,} are not compatible (both operands to a `==` expression must have compatible types. Compatible record types must have exactly the same attributes)",
            "2:22: `context.input.to` of tool `pay` has members that policies cannot see (compare the relevant members one by one)",
        ],
    );
    check_condition(
        "pay",
        "context.input == context.input",
        &[
            "2:8: `context.input` of tool `pay` has members that policies cannot see (compare the relevant members one by one)",
        ],
    );
    check_condition(
        "pay",
        "context == context",
        &[
            "2:8: `context` of tool `pay` has members that policies cannot see (compare the relevant members one by one)",
        ],
    );
    check_condition(
        "pay",
        "context.input.to.extra == 1",
        &[
            "2:25: argument `to.extra` of tool `pay` cannot be used in a policy: its schema does not define its type (give it a plain type in the tool's input schema, or exclude this tool from the policy)",
        ],
    );
}

/// For a policy, an argument that Cedar cannot express is absent. No policy may become more lenient by that.
#[test]
fn invisible_argument_does_not_weaken_a_policy() {
    let with = |name: &str, schema: Value| {
        let mut tools = tools();
        tools.push(known(name, "classification: read", &schema));
        tools
    };
    let vague =
        with("vague", json!({"type": "object", "properties": {"path": {}}, "additionalProperties": false}));
    let open = with("open", json!({"type": "object", "additionalProperties": true}));
    let is_etc = "context.input has path && context.input.path like \"/etc/*\"";
    for (rule, is_safe) in [
        (format!("permit(principal, action, resource) when {{ {is_etc} }};"), true),
        (format!("permit(principal, action, resource) unless {{ {is_etc} }};"), false),
        (format!("permit(principal, action, resource) when {{ !({is_etc}) }};"), false),
        (format!("permit(principal, action, resource) unless {{ !({is_etc}) }};"), true),
        (format!("permit(principal, action, resource) when {{ ({is_etc}) == false }};"), false),
        (format!("permit(principal, action, resource) when {{ if {is_etc} then false else true }};"), false),
        (format!("forbid(principal, action, resource) when {{ {is_etc} }};"), false),
        (format!("forbid(principal, action, resource) unless {{ {is_etc} }};"), true),
        (format!("@approval(\"x\") forbid(principal, action, resource) when {{ {is_etc} }};"), false),
        (format!("@approval(\"x\") forbid(principal, action, resource) unless {{ {is_etc} }};"), true),
        (format!("forbid(principal, action == Action::\"read_file\", resource) when {{ {is_etc} }};"), true),
    ] {
        for (tools, why) in [
            (&vague, "`vague` cannot be used in a policy: its schema does not define its type"),
            (
                &open,
                "`open` cannot be used in a policy: its schema accepts arguments that it does not declare",
            ),
        ] {
            match load_for(tools, &rule) {
                Ok(_) => assert!(is_safe, "{rule}"),
                Err(errors) => {
                    assert!(!is_safe && shown(&errors).contains(why), "{rule}\n{}", shown(&errors));
                }
            }
        }
        loaded(&rule);
    }
}

#[test]
fn policies_that_never_match_are_errors() {
    check(
        "permit(principal, action == Action::\"call\", resource);",
        &[
            "1:38: `Action::\"call\"` is the group of all calls; no call equals it (write `action in Action::\"call\"` for all tools, `resource == Tool::\"call\"` for one of that name)",
        ],
    );
    check(
        "permit(principal, action, resource) when { action == Action::\"call\" };",
        &[
            "1:63: `Action::\"call\"` is the group of all calls; no call equals it (write `action in Action::\"call\"` for all tools, `resource == Tool::\"call\"` for one of that name)",
        ],
    );
    check(
        "permit(principal, action == Action::\"pay\", resource == Tool::\"read_file\");",
        &[
            "1:44: action and resource name different tools (each tool has its own action; remove one of the two)",
        ],
    );
    check(
        "permit(principal, action, resource) when { resource.level > 3 && false };",
        &[
            "1:1: policy is impossible: the policy expression evaluates to false for all valid requests (a policy that never applies is an error; correct or remove it)",
        ],
    );
}

#[test]
fn unsupported_forms_are_errors() {
    check(
        "permit(principal == ?principal, action, resource);",
        &[
            "1:1: templates are not supported (write the principal and the resource instead of `?principal` and `?resource`)",
        ],
    );
    check(
        "@approval(\"x\")\npermit(principal, action, resource);",
        &[
            "1:1: `@approval` has no meaning on a `permit` (put it on a `forbid`, which then means: forbidden unless a person approves)",
        ],
    );
    check(
        "\n@approval\nforbid(principal, action, resource);",
        &["2:1: `@approval` has no text (write `@approval(\"why a person must decide\")`)"],
    );
    check(
        "@id(\"\")\npermit(principal, action, resource);",
        &["1:1: `@id` names nothing (write `@id(\"name\")`)"],
    );
    check(
        "@id(\"a\") permit(principal, action, resource);\n@id(\"a\") forbid(principal, action, resource);",
        &["2:1: duplicate policy id `a` (give each its own `@id`)"],
    );
    check(
        "permit(principal, action, resource) when { principal.subject == \"a\u{202e}b\" };",
        &[
            "1:65: string `\"a\\u{202e}b\"` contains BIDI control characters (remove them; they make a policy look like another)",
        ],
    );
}

#[test]
fn every_error_has_its_position() {
    check(
        "permit(principal, action == Action::\"raed_file\", resource);\n\n// a remark; with a \"quote\npermit(principal, action == Action::\"pay\", resource)\n  when { context.input.amuont == 1 };\n",
        &[
            "1:29: unrecognized action `Action::\"raed_file\"` (did you mean `Action::\"read_file\"`?)",
            "5:24: no tool that this policy is about has an argument `amuont` (did you mean `amount`?)",
        ],
    );
    check(
        "permit(principal, action, resource)\nforbid(principal action, resource);",
        &["2:7: unexpected token `(` (expected `{`)"],
    );
    let sources =
        [("a.cedar", "permit("), ("b.cedar", "permit(principal, action == Action::\"x\", resource);")];
    let sources = sources.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let errors = CedarPolicies::new(&sources, []).expect_err("two mistakes");
    let files: Vec<&str> = errors.iter().map(|error| error.file.as_str()).collect();
    assert_eq!(files, ["a.cedar", "b.cedar"]);
}

/// Annotations and comments in any script do not shift positions.
#[test]
fn positions_are_correct_between_comments() {
    check(
        "// прим. permit(pth);\n@approval(\"pth; permit(pth)\") // pth\nforbid(principal, // ключ\n  action == Action::\"read_file\", resource)\nwhen { context.input.pth == 1 };",
        &["5:22: no tool that this policy is about has an argument `pth` (did you mean `path`?)"],
    );
    let set = loaded(
        "// ключ\npermit(principal, action, resource);\n  // ключ\n  @note(\"ключ\") permit(principal, action, resource);",
    );
    let ruling = set.decide(&alice(), "read_file", &map(json!({"path": ""})));
    assert_eq!(ruling.policies, ["rules.cedar:2:1", "rules.cedar:4:3"]);
}

#[test]
fn policies_about_all_tools_load_without_tools() {
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
fn duplicate_tool_name_is_rejected() {
    let mut tools = tools();
    tools.push(known("pay", "classification: read", &json!({"type": "object", "properties": {}})));
    let errors = load_for(&tools, ALL).expect_err("two tools");
    assert_eq!(
        shown(&errors),
        "tool `pay`: another tool has the same name, so policies cannot distinguish them\n"
    );
}

/// Unknown annotations are for readers of the file.
#[test]
fn unknown_annotations_are_allowed() {
    loaded("@owner(\"ops\") @ticket permit(principal, action, resource);");
}

/// Deeply nested or long policies must neither overflow the stack nor hang; they load or are rejected. Runs with half of
/// the usual stack.
#[test]
fn huge_policies_do_not_crash() {
    let thread = std::thread::Builder::new().stack_size(1024 * 1024);
    thread.spawn(survive_monsters).unwrap().join().unwrap();
}

fn survive_monsters() {
    let rule = |condition: String| format!("permit(principal, action, resource) when {{ {condition} }};");
    let survive = |many: usize| {
        let deep = if many > 10_000 { many } else { 48 };
        [
            "(".repeat(deep) + "true" + &")".repeat(deep),
            "[".repeat(deep) + &"]".repeat(deep),
            "{a:".repeat(deep) + "1" + &"}".repeat(deep),
            "if true then true else ".repeat(deep) + "true",
            vec!["resource.destructive"; many / 2].join(" || "),
            vec!["1"; many].join(" + ") + " == 1",
            "resource".to_owned() + &".a".repeat(many),
            "!".repeat(many) + "true",
            "-".repeat(many) + "1 == 1",
            "(".repeat(deep) + &vec!["true"; many].join(" && ") + &")".repeat(deep),
        ]
        .map(|condition| load_for(&tools(), &rule(condition)).is_ok())
    };
    assert_eq!(survive(100_000), [false; 10]);
    // At the limits.
    assert_eq!(survive(299), [true, false, false, true, true, true, false, false, false, true]);
    let long = loaded(&rule(vec!["resource.destructive"; 150].join(" || ")));
    assert_eq!(long.decide(&alice(), "wipe_disk", &Map::new()).verdict, Verdict::Permit);
    let texts = vec!["\"a.b&&c||d\""; 5000].join(", ");
    loaded(&rule(format!("[{texts}].contains(principal.subject)")));
}

/// Names of tools and arguments are untrusted. None may break the set or be mistaken for something else.
#[test]
fn hostile_names_are_treated_as_values() {
    let odd = ["__cedar", "__entity", "Action::\"x\"", "a\"b", "type", "\u{202e}", "Tool", "has", "", "ключ"];
    let properties: Map<String, Value> =
        odd.iter().map(|&name| (name.to_owned(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    let mut tools: Vec<SampleTool> =
        odd.iter().map(|_| known("t", "classification: read", &schema)).collect();
    for (tool, name) in tools.iter_mut().zip(odd) {
        name.clone_into(&mut tool.name);
    }
    let rules = "permit(principal, action == Action::\"a\\\"b\", resource)
        when { context.input has \"__entity\" && context.input[\"__entity\"] == \"x\" };";
    let set = load_for(&tools, rules).unwrap_or_else(|errors| panic!("{}", shown(&errors)));
    for name in odd {
        let expect = if name == "a\"b" { Verdict::Permit } else { Verdict::Forbid };
        assert_eq!(set.decide(&alice(), name, &map(json!({"__entity": "x"}))).verdict, expect, "{name}");
    }
}

#[test]
fn message_escapes_invisible_characters() {
    let errors = load_for(&tools(), "permit(principal, action, resource == Tool::\"a\u{202e}\u{1b}[2J\");");
    let errors = shown(&errors.expect_err("no such tool"));
    assert!(errors.contains("unknown tool `a\\u{202e}\\u{1b}[2J`"), "{errors}");
}

#[test]
fn policies_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync + 'static>(_: &T) {}
    is_shared(&loaded(ALL));
}
