//! `diff`: wider, narrower and unchanged reach.

use crate::bench::{Bench, snapshot, tool, tool_with};

#[test]
fn same_reach_passes() {
    let bench = Bench::with("a.json", tool("add"));
    bench.write("b.json", tool("add").replace("a + b;", "b + a;"));
    let run = bench.run(&["diff", "a.json", "a.json"]).expect(0);
    assert_eq!(run.out, "no change in reach or risk\n");
    assert!(bench.run(&["diff", "a.json", "b.json"]).expect(0).out.contains("code"));
}

#[test]
fn wider_fails_and_narrower_passes() {
    let bench = Bench::with("a.json", tool("add"));
    bench.write(
        "b.json",
        tool_with(
            "add",
            r#""sandboxOverrides": { "networkMode": "allowlist", "hostsAllow": ["api.github.com"] }"#,
        ),
    );
    let run = bench.run(&["diff", "a.json", "b.json"]).expect(1);
    snapshot("diff_text.txt", &run.out);
    assert!(!bench.run(&["diff", "b.json", "a.json"]).expect(0).out.contains("widened"));
    // An explicit label is not derived.
    bench.write(
        "c.json",
        tool_with("add", r#""x-toolgate-capability": { "labels": { "acceptsUntrusted": false } }"#),
    );
    bench.run(&["diff", "c.json", "a.json"]).expect(0);
    bench.write(
        "d.json",
        tool_with("add", r#""x-toolgate-capability": { "labels": { "acceptsUntrusted": true } }"#),
    );
    bench.run(&["diff", "c.json", "d.json"]).expect(1);
}

#[test]
fn replaced_host_counts_as_wider() {
    let reach = |host: &str| {
        tool_with(
            "add",
            &format!(r#""sandboxOverrides": {{ "networkMode": "allowlist", "hostsAllow": ["{host}"] }}"#),
        )
    };
    let bench = Bench::with("a.json", reach("a.example.com"));
    bench.write("b.json", reach("b.example.com"));
    let report = bench.run(&["diff", "--format", "json", "a.json", "b.json"]).expect(1).json();
    assert_eq!(report["wider"], true);
}

#[test]
fn bundles_are_compared_tool_by_tool() {
    let bundle = |names: &[&str]| {
        let tools: Vec<String> = names.iter().map(|name| tool(name)).collect();
        format!("{{\"toolSpecs\": [{}]}}", tools.join(","))
    };
    let bench = Bench::with("a.json", bundle(&["add", "sum"]));
    bench.write("b.json", bundle(&["add"]));
    assert!(bench.run(&["diff", "a.json", "b.json"]).expect(0).out.contains("the tool is gone"));
    assert!(bench.run(&["diff", "b.json", "a.json"]).expect(1).out.contains("the tool is new"));
    bench.run(&["diff", "a.json#add", "b.json#add"]).expect(0);
}

#[test]
fn unreadable_or_unresolvable_versions_fail() {
    let bench = Bench::with("a.json", tool("add"));
    bench.write("bad.json", crate::check::BAD);
    bench.run(&["diff", "a.json", "nowhere.json"]).expect(2);
    bench.run(&["diff", "a.json", "bad.json"]).expect(1);
}

/// The reach is the same, but calls no longer ask for approval.
#[test]
fn removed_approval_question_fails() {
    let bench = Bench::with("a.json", tool("add"));
    for (file, more) in [
        ("b.json", r#""humanInTheLoop": { "mode": "DISABLED" }"#),
        ("c.json", r#""x-toolgate-capability": { "approval": { "level": "auto" } }"#),
    ] {
        bench.write(file, tool_with("add", more));
        let run = bench.run(&["diff", "a.json", file]).expect(1);
        assert!(run.out.contains("approval.askFrom             gateway -> never"), "{}", run.out);
        bench.run(&["diff", file, "a.json"]).expect(0);
        let digest = |file: &str| {
            bench.run(&["resolve", "--format", "json", file]).expect(0).json()["policyDigest"].clone()
        };
        assert_ne!(digest("a.json"), digest(file));
    }
}
