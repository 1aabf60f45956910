use super::*;

/// Asserts the verdict on `read_file` of `/srv/x` by Alice, who has `files.read`.
#[track_caller]
fn check(rules: &str, expect: Verdict, by: &[&str], why: &str) {
    check_call(rules, "read_file", json!({"path": "/srv/x"}), expect, by, why);
}

#[track_caller]
fn check_call(rules: &str, tool: &str, input: Value, expect: Verdict, by: &[&str], why: &str) {
    let ruling = loaded(rules).decide(&alice(), tool, &map(input));
    let by: Vec<String> = by.iter().map(|&id| id.to_owned()).collect();
    assert_eq!(ruling, CedarRuling { verdict: expect, policies: by, why: why.to_owned() }, "\n{rules}");
}

const PERMIT: &str = "@id(\"p\") permit(principal, action, resource);";
const NO_PERMIT: &str = "@id(\"q\") permit(principal == Caller::\"bob\", action, resource);";
const FORBID: &str = "@id(\"f\") forbid(principal, action, resource);";
const NO_FORBID: &str = "@id(\"g\") forbid(principal == Caller::\"bob\", action, resource);";
const ASK: &str = "@id(\"a\") @approval(\"look at it\") forbid(principal, action, resource);";
const ASK_TOO: &str = "@id(\"b\") @approval(\"and at that\") forbid(principal, action, resource);";
const NO_ASK: &str =
    "@id(\"c\") @approval(\"never\") forbid(principal == Caller::\"bob\", action, resource);";

#[test]
fn every_combination_of_permit_forbid_and_approval() {
    let (permitted, silent) = ("permitted by policy `p`", "no policy permits this call");
    let forbidden = "policy `f` forbids this call";
    for (permits, forbids, asks, expect, by, why) in [
        ("", "", "", Verdict::Forbid, &[][..], silent),
        (NO_PERMIT, "", "", Verdict::Forbid, &[], silent),
        (PERMIT, "", "", Verdict::Permit, &["p"], permitted),
        (PERMIT, NO_FORBID, NO_ASK, Verdict::Permit, &["p"], permitted),
        ("", FORBID, "", Verdict::Forbid, &["f"], forbidden),
        (PERMIT, FORBID, "", Verdict::Forbid, &["f"], forbidden),
        (PERMIT, "", ASK, Verdict::Ask, &["a"], "look at it"),
        (PERMIT, NO_FORBID, ASK, Verdict::Ask, &["a"], "look at it"),
        // An approval lifts only its own `forbid`. It does not permit the call and lifts no other `forbid`.
        ("", "", ASK, Verdict::Forbid, &[], silent),
        (NO_PERMIT, "", ASK, Verdict::Forbid, &[], silent),
        (PERMIT, FORBID, ASK, Verdict::Forbid, &["f"], forbidden),
    ] {
        check(&format!("{permits}\n{forbids}\n{asks}"), expect, by, why);
        check(&format!("{asks}\n{forbids}\n{permits}"), expect, by, why);
    }
    check(&[PERMIT, ASK, ASK_TOO, NO_ASK].join("\n"), Verdict::Ask, &["a", "b"], "look at it; and at that");
}

#[test]
fn policy_without_id_is_named_by_position() {
    check(
        "\n\n  permit(principal, action, resource);",
        Verdict::Permit,
        &["rules.cedar:3:3"],
        "permitted by policy `rules.cedar:3:3`",
    );
}

#[test]
fn principals_tools_and_arguments() {
    let permitted = |rule: &str| {
        let rules = format!("@id(\"p\") permit(principal, action, resource) when {{ {rule} }};");
        loaded(&rules).decide(&alice(), "read_file", &map(json!({"path": "/srv/x", "lines": 3}))).verdict
            == Verdict::Permit
    };
    for (rule, expect) in [
        ("principal in Permission::\"files.read\"", true),
        ("principal in Permission::\"files.write\"", false),
        ("principal.subject like \"al*\"", true),
        ("resource.name == \"read_file\" && resource == Tool::\"read_file\"", true),
        ("resource.category == \"files\" && resource.tags.contains(\"local\")", true),
        ("resource.level == 3 && !resource.destructive && resource.network == \"blocked\"", true),
        ("resource.classification == \"write\"", false),
        ("context.input has path && context.input.path like \"/srv/*\"", true),
        ("context.input has lines && context.input.lines > 3", false),
        ("context.input has mode", false),
    ] {
        assert_eq!(permitted(rule), expect, "{rule}");
    }
}

#[test]
fn nested_arguments_decimals_sets_and_nulls() {
    let verdict = |rule: &str, tool: &str, input: Value| {
        let rules = format!("permit(principal, action == Action::\"{tool}\", resource) when {{ {rule} }};");
        loaded(&rules).decide(&alice(), tool, &map(input)).verdict
    };
    let pay =
        json!({"amount": 1000.5, "urgent": null, "to": {"iban": "DE1", "more": 1}, "anything": [1, {}]});
    for (rule, expect) in [
        ("context.input.amount.greaterThan(decimal(\"1000.4999\"))", Verdict::Permit),
        ("context.input.amount.lessThan(decimal(\"1000.5\"))", Verdict::Forbid),
        ("context.input has urgent", Verdict::Forbid),
        ("context.input.to.iban == \"DE1\" && !(context.input.to has name)", Verdict::Permit),
    ] {
        assert_eq!(verdict(rule, "pay", pay.clone()), expect, "{rule}");
    }
    let write = json!({"path": "x", "content": "", "labels": ["a", "b", "a"]});
    let rule = "context.input has labels && context.input.labels.containsAll([\"b\", \"a\"])";
    assert_eq!(verdict(rule, "write_file", write), Verdict::Permit);
}

#[test]
fn failing_policy_forbids_and_is_named() {
    let rules = "@id(\"p\") permit(principal, action, resource);
        @id(\"sum\") forbid(principal, action == Action::\"pay\", resource)
        when { context.input has count && context.input.count + 1 > 10 };";
    let pay = |count: i64| json!({"amount": 1, "to": {"iban": ""}, "count": count});
    check_call(rules, "pay", pay(1), Verdict::Permit, &["p"], "permitted by policy `p`");
    let ruling = loaded(rules).decide(&alice(), "pay", &map(pay(i64::MAX)));
    assert_eq!((ruling.verdict, ruling.policies), (Verdict::Forbid, vec!["sum".to_owned()]));
    assert!(ruling.why.contains("overflow"), "{}", ruling.why);
    // A policy with `@approval` is not weaker.
    let ruling = loaded(&rules.replace("@id(\"sum\")", "@id(\"sum\") @approval(\"many\")"));
    assert_eq!(ruling.decide(&alice(), "pay", &map(pay(i64::MAX))).verdict, Verdict::Forbid);
}

#[test]
fn inexpressible_value_is_forbidden_if_a_policy_uses_it() {
    let looks = "@id(\"p\") permit(principal, action == Action::\"pay\", resource)
        when { context.input.amount.lessThan(decimal(\"1000.0\")) && !(context.input has count) };";
    let to = json!({"iban": ""});
    let (no, places) = (Verdict::Forbid, "has more than four decimal places, the limit of Cedar");
    for (input, at, why) in [
        (json!({"amount": 999.999_999, "to": to}), "amount", places),
        (json!({"amount": 1e15, "to": to}), "amount", "does not fit into Cedar's decimals"),
        (
            json!({"amount": 1, "to": to, "count": u64::MAX}),
            "count",
            "does not fit into Cedar's 64-bit integers",
        ),
        (json!({"amount": 1, "to": to, "count": 1e30}), "count", "does not fit into Cedar's 64-bit integers"),
        // `bind` rejects these earlier; they are rejected here too.
        (json!({"amount": "1", "to": to}), "amount", "does not have the type of its schema"),
        (json!({"to": to}), "amount", "is missing"),
    ] {
        check_call(
            looks,
            "pay",
            input,
            no,
            &[],
            &format!("argument `{at}` {why}, so policies cannot evaluate it"),
        );
    }
    check_call(
        looks,
        "pay",
        json!({"amount": 999.9999, "to": to}),
        Verdict::Permit,
        &["p"],
        "permitted by policy `p`",
    );
    let (free, input) = (
        "@id(\"p\") permit(principal, action, resource);",
        json!({"amount": 0.123_456, "to": to, "count": u64::MAX}),
    );
    check_call(free, "pay", input, Verdict::Permit, &["p"], "permitted by policy `p`");
}

#[test]
fn unknown_tool_is_forbidden() {
    let set = loaded(ALL);
    assert_eq!(set.decide(&alice(), "no_such_tool", &Map::new()).verdict, Verdict::Forbid);
    assert!(!set.could_permit(&alice(), "no_such_tool"));
}

/// Names and texts are values, regardless of their characters.
#[test]
fn subject_cannot_inject_policy_text() {
    let set = loaded("permit(principal == Caller::\"bob\", action, resource);");
    for subject in ["bob\" || true", "Caller::\"bob\"", "bob\u{0}", "bob ", "", "{\"__entity\":{}}"] {
        let caller = Caller::new(subject, ["bob", "Caller::\"bob\""]);
        assert_eq!(
            set.decide(&caller, "read_file", &map(json!({"path": ""}))).verdict,
            Verdict::Forbid,
            "{subject}"
        );
    }
    let entity = json!({"path": {"__entity": {"type": "Caller", "id": "bob"}}});
    let set = loaded(
        "permit(principal, action == Action::\"read_file\", resource) when { context.input.path == \"x\" };",
    );
    assert_eq!(set.decide(&alice(), "read_file", &map(entity)).verdict, Verdict::Forbid);
}

/// A tool may have the name of the group of all actions. Policies about all tools apply to it; policies about other tools do not.
#[test]
fn tool_named_like_the_group_gets_no_extra_rights() {
    let mut tools = tools();
    tools.push(known(
        "call",
        "classification: read",
        &json!({"type": "object", "properties": {"x": {"type": "string"}}}),
    ));
    let verdict = |rules: &str, tool: &str| {
        let set = load_for(&tools, rules).unwrap_or_else(|errors| panic!("{}", shown(&errors)));
        set.decide(&alice(), tool, &map(json!({"path": "p", "x": "y"}))).verdict
    };
    assert_eq!(verdict(ALL, "call"), Verdict::Permit);
    let one = "permit(principal, action, resource == Tool::\"call\");";
    assert_eq!((verdict(one, "call"), verdict(one, "read_file")), (Verdict::Permit, Verdict::Forbid));
    let argument = "permit(principal, action, resource == Tool::\"call\") when { context.input has x && context.input.x == \"y\" };";
    assert_eq!(
        (verdict(argument, "call"), verdict(argument, "read_file")),
        (Verdict::Permit, Verdict::Forbid)
    );
    let other = "permit(principal, action == Action::\"read_file\", resource);";
    assert_eq!((verdict(other, "call"), verdict(other, "read_file")), (Verdict::Forbid, Verdict::Permit));
}

#[test]
fn listing_hides_tools_that_are_always_forbidden() {
    let shown = |rules: &str| loaded(rules).could_permit(&alice(), "read_file");
    for (rules, expect) in [
        ("", false),
        (ALL, true),
        ("permit(principal, action == Action::\"pay\", resource);", false),
        ("permit(principal in Permission::\"files.write\", action, resource);", false),
        ("permit(principal, action, resource) when { resource.classification == \"write\" };", false),
        ("permit(principal, action, resource) when { context.input has path };", true),
        ("permit(principal, action, resource) when { context.input has path && resource.level > 4 };", false),
        (
            "permit(principal, action, resource) unless { context.input has path && resource.level < 4 };",
            true,
        ),
        (
            "permit(principal, action, resource) unless { context.input has path || resource.level < 4 };",
            false,
        ),
        (
            "permit(principal, action, resource)
             when { if context.input has path then resource.level > 4 else resource.destructive };",
            false,
        ),
        (
            "permit(principal, action, resource) when { if resource.destructive then true else context.input has lines };",
            true,
        ),
        (
            "permit(principal, action, resource); forbid(principal, action, resource) when { resource.level == 3 };",
            false,
        ),
        (
            "permit(principal, action, resource); forbid(principal, action, resource) when { context.input has lines };",
            true,
        ),
        (
            "permit(principal, action, resource); forbid(principal, action, resource) unless { context.input has lines };",
            true,
        ),
        // A person may approve it.
        ("permit(principal, action, resource); @approval(\"x\") forbid(principal, action, resource);", true),
        // Unknown whether evaluation reaches the failing part.
        (
            "permit(principal, action, resource) when { context.input has path || resource.level + 9223372036854775807 > 0 };",
            true,
        ),
    ] {
        assert_eq!(shown(rules), expect, "{rules}");
    }
}

#[test]
fn digest_covers_names_and_texts_in_any_order() {
    let digest = |sources: &[(&str, &str)]| {
        let sources: Vec<(String, String)> =
            sources.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        CedarPolicies::new(&sources, []).unwrap().digest().to_owned()
    };
    let (a, b) = (("a", "// 1"), ("b", "// 2"));
    assert_eq!(digest(&[a, b]), digest(&[b, a]));
    assert!(digest(&[a]).starts_with("sha256:"));
    for other in [&[a][..], &[("b", "// 1"), ("a", "// 2")], &[("a", "// 1b"), ("", "// 2")], &[]] {
        assert_ne!(digest(&[a, b]), digest(other), "{other:?}");
    }
}
