//! `resolve`: effective policy, origins and risk.

use crate::bench::{Bench, snapshot, tool, tool_with};

#[test]
fn policy_is_shown_with_origins() {
    let bench = Bench::with("add.json", tool_with("add", READS));
    let run = bench.run(&["resolve", "add.json"]).expect(0);
    snapshot("resolve_text.txt", &run.out);
}

#[test]
fn java_settings_are_left_out() {
    let bench = Bench::with("add.json", tool_with("add", READS));
    for format in ["text", "json"] {
        let out = bench.run(&["resolve", "--format", format, "add.json"]).expect(0).out;
        assert!(!out.contains("java") && !out.contains("classes."), "{out}");
    }
    let own = r#""sandboxOverrides": {"addAllowClasses": ["a.B"]}"#;
    let bench = Bench::with("add.json", tool_with("add", own));
    assert!(
        bench.run(&["resolve", "add.json"]).expect(0).out.contains("classes.allow"),
        "the document says so"
    );
}

#[test]
fn json_contains_the_same_policy() {
    let bench = Bench::with("add.json", tool_with("add", READS));
    let policy = bench.run(&["resolve", "--format", "json", "add.json"]).expect(0).json();
    assert_eq!(policy["risk"]["level"], "L3");
    assert_eq!(policy["lifecycle"]["state"], "DRAFT");
    let read = policy["settings"].as_array().unwrap().iter().find(|s| s["name"] == "files.read").unwrap();
    assert_eq!((read["value"].as_bool(), read["origin"].as_str()), (Some(true), Some("tool")));
}

#[test]
fn environment_values_are_never_shown() {
    let bench = Bench::with(
        "add.json",
        tool_with("add", r#""staticVariables": [{"k": "${PATH}"}, {"t": "${TOOLGATE_TEST_TOKEN}"}]"#),
    );
    let run = bench.run(&["resolve", "add.json"]).expect(0);
    assert!(
        run.out.contains("PATH (set)") && run.out.contains("TOOLGATE_TEST_TOKEN (missing)"),
        "{}",
        run.out
    );
    let path = std::env::var("PATH").unwrap();
    assert!(!run.out.contains(&path));
    let json = bench.run(&["resolve", "--format", "json", "add.json"]).expect(0);
    assert_eq!(
        json.json()["environment"],
        serde_json::json!([{ "name": "PATH", "set": true }, { "name": "TOOLGATE_TEST_TOKEN", "set": false }])
    );
    assert_eq!(json.json()["lifecycle"]["missingEnvironment"], serde_json::json!(["TOOLGATE_TEST_TOKEN"]));
    assert!(!json.out.contains(&path));
}

#[test]
fn one_tool_of_a_bundle_is_selected() {
    let bundle = format!("{{\"toolSpecs\": [{},{}]}}", tool("add"), tool("sum"));
    let bench = Bench::with("b.json", bundle);
    bench.run(&["resolve", "b.json#sum"]).expect(0);
    bench.run(&["resolve", "b.json", "--tool", "add"]).expect(0);
    assert!(bench.run(&["resolve", "b.json"]).expect(2).err.contains("`b.json#add`"));
    assert!(bench.run(&["resolve", "b.json#ad"]).expect(2).err.contains("did you mean `add`?"));
    bench.run(&["resolve", "nowhere.json"]).expect(2);
}

#[test]
fn overrides_win() {
    let bench = Bench::with("add.json", tool("add"));
    bench.write("over.yaml", "tools: {add: {capability: {approval: {level: always}}}}\n");
    let run = bench.run(&["resolve", "--overrides", "over.yaml", "add.json"]).expect(0);
    let level = run.out.lines().find(|line| line.starts_with("approval.level")).unwrap();
    assert!(level.contains("always") && level.ends_with("user"), "{level}");
}

#[test]
fn document_with_errors_has_no_policy() {
    let run = Bench::with("bad.json", crate::check::BAD).run(&["resolve", "bad.json"]).expect(1);
    assert!(run.err.contains("error[SPEC_PARSE]") && run.err.contains("`bad` has no policy"), "{}", run.err);
    assert_eq!(run.out, "");
}

#[test]
fn safety_is_written_and_nothing_else_changes() {
    let before = tool_with("add", READS);
    let bench = Bench::with("add.json", &before);
    bench.run(&["resolve", "--write-safety", "add.json"]).expect(0);
    let after = bench.json("add.json");
    assert_eq!(after["toolSafety"]["capabilities"]["fileRead"], true);
    let mut without = after.clone();
    without.as_object_mut().unwrap().remove("toolSafety");
    assert_eq!(without, serde_json::from_str::<serde_json::Value>(&before).unwrap());
    bench.run(&["check", "--deny-warnings", "add.json"]).expect(0);
}

#[test]
fn every_other_byte_stays_when_safety_is_written() {
    let odd = "# mine\r\nname:   add   # odd\r\ndescription: 'Adds. Returns {n}.'\r\n\r\nclassification: read\r\n\
               handler: {cli: {command: ls}}\r\nx-own: 0x1F\r\n# the end";
    let bench = Bench::with("add.yaml", odd);
    bench.run(&["resolve", "--write-safety", "add.yaml"]).expect(0);
    let after = bench.read("add.yaml");
    let kept: Vec<&str> =
        after.split_inclusive('\n').filter(|line| !line.starts_with("toolSafety:")).collect();
    assert_eq!(kept.concat().trim_end(), odd, "{after}");
}

#[test]
fn safety_lists_the_helpers_that_the_code_uses() {
    let example = include_str!("../../../../examples/tools/exchange_rate/tool.json");
    let bench = Bench::with("rate.json", example);
    bench.run(&["resolve", "--write-safety", "rate.json"]).expect(0);
    let helpers = &bench.json("rate.json")["toolSafety"]["runtime"]["helpers"];
    assert_eq!(*helpers, serde_json::json!(["safety.http/v1"]));
    bench.run(&["check", "--deny-warnings", "rate.json"]).expect(0);
}

#[test]
fn error_in_a_policy_file_names_the_file() {
    let bench = Bench::with("add.json", tool("add"));
    bench.write("mine.yaml", "nework: blocked");
    let run = bench.run(&["resolve", "add.json", "--baseline", "mine.yaml"]).expect(2);
    assert!(run.err.contains("`mine.yaml` cannot be used: baseline: unknown field `nework`"), "{}", run.err);
    bench.write("own/loop.yaml", "extends: loop");
    let run = bench.run(&["resolve", "add.json", "--profiles", "own"]).expect(2);
    assert!(run.err.contains("`own` cannot be used: profile:loop"), "{}", run.err);
}

#[test]
fn safety_is_written_into_a_bundle() {
    let bundle = format!("{{\"toolSpecs\": [{},{}], \"x\": 1}}", tool("add"), tool("sum"));
    let bench = Bench::with("b.json", bundle);
    bench.run(&["resolve", "--write-safety", "b.json#sum"]).expect(0);
    let after = bench.json("b.json");
    assert!(after["toolSpecs"][0]["toolSafety"].is_null());
    assert_eq!(after["toolSpecs"][1]["toolSafety"]["capabilities"]["fileRead"], false);
    assert_eq!(after["x"], 1);
}

const READS: &str = r#""sandboxOverrides": { "fileRead": true }, "draft": true"#;

#[test]
fn misspelt_override_is_reported() {
    let bench = Bench::with("add.json", tool("add"));
    bench.write("mine.yaml", "tools: {addd: {capability: {approval: {level: always}}}}\n");
    let run = bench.run(&["resolve", "add.json", "--overrides", "mine.yaml"]).expect(0);
    assert!(run.err.contains("the overrides name `addd` but not `add`"), "{}", run.err);
    let run = bench.run(&["check", "add.json", "--overrides", "mine.yaml"]).expect(0);
    assert!(run.err.contains("the override for `addd` has no effect"), "{}", run.err);
    bench.write("mine.yaml", "tools: {add: {capability: {approval: {level: always}}}}\n");
    for command in ["resolve", "check"] {
        assert_eq!(bench.run(&[command, "add.json", "--overrides", "mine.yaml"]).expect(0).err, "");
    }
}

#[test]
fn override_without_effect_is_reported() {
    let bench = Bench::with("add.json", tool("add"));
    for (block, key) in [
        ("network: {allowedHosts: [a.example]}", "network.allowedHosts"),
        ("network: {requireApprovalForUnknownHosts: true}", "network.requireApprovalForUnknownHosts"),
        ("execution: {allowedEnvVars: [LANG]}", "execution.allowedEnvVars"),
    ] {
        bench.write("mine.yaml", format!("tools: {{add: {{capability: {{{block}}}}}}}\n"));
        let run = bench.run(&["resolve", "add.json", "--overrides", "mine.yaml"]).expect(0);
        assert!(run.err.contains(&format!("`{key}` in the overrides has no effect")), "{}", run.err);
    }
    let limited = "network: {access: limited, allowedHosts: [a.example]}";
    bench.write("mine.yaml", format!("tools: {{add: {{capability: {{{limited}}}}}}}\n"));
    assert_eq!(bench.run(&["resolve", "add.json", "--overrides", "mine.yaml"]).expect(0).err, "");
}
