//! Property tests for templates and patterns, compared with naive implementations.

use proptest::prelude::*;
use toolgate_spec::{ArgPart, ArgTemplate, FieldPattern, HostPattern, PathPattern, PathRoots, check_text};

const ROOTS: PathRoots<'_> = PathRoots { workspace: "/w", home: "/h" };

proptest! {
    #[test]
    fn nothing_panics_on_any_text(text in ".{0,80}") {
        let _ = ArgTemplate::parse(&text);
        let _ = HostPattern::parse(&text).map(|host| host.covers(&text, 443));
        if let Ok(pattern) = PathPattern::parse(&text) {
            pattern.covers(&text, ROOTS);
        }
        if let Ok(pattern) = FieldPattern::parse(&text) {
            pattern.matches(&text.split('.').collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_panics_on_any_manifest_text(command in ".{0,20}", argument in ".{0,20}", url in ".{0,30}", regex in ".{0,20}") {
        let document = serde_json::json!({
            "name": "x",
            "handler": { "cli": { "command": command, "args": [argument, { "when": argument, "args": [argument] }] } },
            "input": { "type": "object", "properties": { argument.clone(): { "pattern": regex, "$ref": url } } },
            "capability": { "approval": { "dangerPatterns": [regex] } },
        });
        check_text(&document.to_string(), toolgate_spec::Format::Json);
        let document = serde_json::json!({
            "name": "x",
            "handler": { "http": { "url": url, "headers": { argument.clone(): command }, "body": [argument] } },
        });
        check_text(&document.to_string(), toolgate_spec::Format::Json);
    }

    #[test]
    fn template_parts_render_to_its_text(text in "[a-c{}-]{0,12}") {
        if let Ok(template) = ArgTemplate::parse(&text) {
            prop_assert_eq!(written(template.parts()), text);
        }
    }

    #[test]
    fn value_is_never_parsed_as_template(name in "[a-c]{1,3}", before in "[^{}\\x00]{0,5}", after in "[^{}\\x00]{0,5}") {
        let text = format!("{before}{{{name}}}{after}");
        let template = ArgTemplate::parse(&text).unwrap();
        prop_assert_eq!(template.names().collect::<Vec<_>>(), [name.as_str()]);
        prop_assert_eq!(template.whole().is_some(), before.is_empty() && after.is_empty());
    }

    #[test]
    fn paths_agree_with_the_naive_matcher(
        pattern in prop::collection::vec(path_step(), 0..5),
        path in prop::collection::vec("[ab]{1,2}", 0..6),
    ) {
        let parsed = PathPattern::parse(&format!("/{}", pattern.join("/"))).unwrap();
        let steps: Vec<&str> = pattern.iter().map(String::as_str).collect();
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        prop_assert_eq!(parsed.covers(&format!("/{}", path.join("/")), ROOTS), covers_path(&steps, &parts));
    }

    #[test]
    fn a_path_covers_itself_and_everything_below(path in "(/[a-z.]{1,4}){1,4}", below in "(/[a-z]{1,4}){0,3}") {
        if let Ok(pattern) = PathPattern::parse(&path) {
            let is_canonical = !path.split('/').any(|part| part == ".");
            let under = format!("{path}{below}");
            prop_assert_eq!(pattern.covers(&under, ROOTS), is_canonical);
            let sibling = format!("{path}x{below}");
            prop_assert!(!is_canonical || !pattern.covers(&sibling, ROOTS));
        }
    }

    #[test]
    fn dots_and_double_slashes_never_widen_a_pattern(path in "(/{1,2}(a|b|\\.|\\.\\.)){0,5}") {
        let pattern = PathPattern::parse("/a").unwrap();
        let climbs = path.split('/').any(|part| part == "." || part == "..");
        let first = path.split('/').find(|part| !part.is_empty());
        prop_assert_eq!(pattern.covers(&path, ROOTS), !climbs && first == Some("a"));
    }

    #[test]
    fn only_the_two_variables_expand(name in "[A-Za-z_]{1,10}", below in "(/[a-z]{1,3}){0,2}") {
        let parsed = PathPattern::parse(&format!("${name}{below}"));
        prop_assert_eq!(parsed.is_ok(), name == "WORKSPACE" || name == "HOME");
        let longer = format!("$WORKSPACE{name}{below}");
        prop_assert!(PathPattern::parse(&longer).is_err());
    }

    #[test]
    fn paths_are_case_sensitive(path in "(/[a-z]{1,4}){1,3}") {
        let pattern = PathPattern::parse(&path).unwrap();
        prop_assert!(!pattern.covers(&path.to_uppercase(), ROOTS));
    }

    #[test]
    fn fields_agree_with_the_naive_matcher(
        deep in any::<bool>(),
        steps in prop::collection::vec(prop_oneof![Just("a"), Just("b"), Just("*"), Just("")], 1..5),
        path in prop::collection::vec("[ab]", 0..6),
    ) {
        // An empty step comes from the second of two dots.
        let text = format!("{}{}", if deep { ".." } else { "." }, steps.join("."));
        if let Ok(pattern) = FieldPattern::parse(&text) {
            let parts: Vec<&str> = path.iter().map(String::as_str).collect();
            let wanted: Vec<&str> = deep.then_some("").into_iter().chain(steps).collect();
            prop_assert_eq!(pattern.matches(&parts), covers_field(&wanted, &parts), "{}", text);
        }
    }

    #[test]
    fn a_field_covers_itself_and_everything_below(
        path in prop::collection::vec("[a-z]{1,3}", 1..4),
        below in prop::collection::vec("[a-z]{1,3}", 0..3),
    ) {
        let pattern = FieldPattern::parse(&format!(".{}", path.join("[]."))).unwrap();
        let whole: Vec<&String> = path.iter().chain(&below).collect();
        prop_assert!(pattern.matches(&whole));
        let above: Vec<&String> = path.iter().take(path.len() - 1).collect();
        prop_assert!(!pattern.matches(&above));
    }

    #[test]
    fn the_full_name_of_a_field_beats_every_other_pattern(
        path in prop::collection::vec("[ab]", 1..5),
        other in "(\\.\\.|\\.|\\*\\.)?[ab*](\\.{1,2}[ab*]){0,3}",
    ) {
        let exact = FieldPattern::parse(&format!(".{}", path.join("."))).unwrap();
        if let Ok(other) = FieldPattern::parse(&other) {
            let (mine, theirs) = (exact.specificity_at(&path), other.specificity_at(&path));
            prop_assert_eq!(theirs.is_some(), other.matches(&path));
            prop_assert!(mine >= theirs, "{} {}", exact, other);
            prop_assert_eq!(mine == theirs, exact.means_the_same_as(&other));
            let catch_all = FieldPattern::parse("*").unwrap().specificity_at(&path);
            prop_assert!(theirs.is_none() || theirs >= catch_all);
        }
    }
}

fn path_step() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("**".to_owned()),
        "[ab]{1,2}",
        Just("a*".to_owned()),
        Just("*b".to_owned()),
        Just("*".to_owned())
    ]
}

/// Tries all alternatives. The rest of the path after the pattern is below the path that it names.
fn covers_path(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, _) => true,
        (Some((&"**", rest)), None) => covers_path(rest, path),
        (Some((&"**", rest)), Some((_, below))) => covers_path(rest, path) || covers_path(pattern, below),
        (Some(_), None) => false,
        (Some((step, rest)), Some((part, below))) => covers_name(step, part) && covers_path(rest, below),
    }
}

fn covers_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

fn covers_field(steps: &[&str], path: &[&str]) -> bool {
    match (steps.split_first(), path.split_first()) {
        (None, _) => true,
        (Some((&"", rest)), None) => covers_field(rest, path),
        (Some((&"", rest)), Some((_, below))) => covers_field(rest, path) || covers_field(steps, below),
        (Some(_), None) => false,
        (Some((step, rest)), Some((field, below))) => {
            (*step == "*" || step == field) && covers_field(rest, below)
        }
    }
}

fn written(parts: &[ArgPart]) -> String {
    parts
        .iter()
        .map(|part| match part {
            ArgPart::Literal(text) => text.replace('{', "{{").replace('}', "}}"),
            ArgPart::Variable(name) => format!("{{{name}}}"),
        })
        .collect()
}
