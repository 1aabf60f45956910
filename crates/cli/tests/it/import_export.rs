//! `import` writes drafts and `export` writes bundles, all or nothing.

use crate::bench::{Bench, tool, tool_with};

fn bundle(tools: &[String]) -> String {
    format!(
        "{{\n  \"toolSpecs\": [{}],\n  \"toolMcpServerSetting\": {{\"autoAdd\": true}}\n}}\n",
        tools.join(", ")
    )
}

#[test]
fn every_tool_becomes_a_draft_and_keeps_the_rest() {
    let foreign = tool_with("add", "\"draft\":   false,\n  \"x-vendor\": {\"z\": 1.50, \"a\":  [ 1 ]}");
    let bench = Bench::with("b.json", bundle(&[foreign, tool("sum")]));
    let run = bench.run(&["import", "b.json", "--into", "tools"]).expect(0);
    assert!(run.out.contains("2 tools imported into tools as drafts"), "{}", run.out);
    let text = bench.read("tools/add.json");
    assert!(text.contains("\"x-vendor\": {\"z\": 1.50, \"a\":  [ 1 ]}"), "{text}");
    let added = bench.json("tools/add.json");
    assert_eq!(added["draft"], true);
    assert!(added["createTimestamp"].is_u64() && added["updateTimestamp"].is_u64());
    bench.run(&["check", "tools"]).expect(0);
}

#[test]
fn tools_that_a_bundle_does_not_expose_are_imported_hidden() {
    let id = "00000000-0000-4000-8000-000000000001";
    let hidden = tool_with("add", &format!("\"toolId\": \"{id}\""));
    let setting = format!("{{\"autoAdd\": true, \"excludedToolIds\": [\"{id}\"]}}");
    let text =
        format!("{{\"toolSpecs\": [{hidden}, {}], \"toolMcpServerSetting\": {setting}}}\n", tool("sum"));
    let bench = Bench::with("b.json", text);
    bench.run(&["import", "b.json", "--into", "tools"]).expect(0);
    assert_eq!(bench.json("tools/add.json")["x-toolgate-exposed"], false);
    assert!(bench.json("tools/sum.json").get("x-toolgate-exposed").is_none());
}

#[test]
fn array_of_tools_is_imported_like_a_bundle() {
    let bench = Bench::with("many.json", format!("[{}, {}]\n", tool("add"), tool("sum")));
    bench.run(&["check", "many.json"]).expect(0);
    let listed = bench.run(&["resolve", "many.json#sum"]).expect(0);
    assert!(listed.out.contains("sum"), "{}", listed.out);
    bench.run(&["import", "many.json", "--into", "tools"]).expect(0);
    assert_eq!(bench.json("tools/add.json")["name"], "add");
    bench.run(&["export", "many.json", "-o", "bundle.json"]).expect(0);
    assert_eq!(bench.json("bundle.json")["toolSpecs"].as_array().unwrap().len(), 2);
}

#[test]
fn yaml_stays_yaml_with_its_comments() {
    let bench = Bench::new();
    bench.run(&["new", "count", "--kind", "cli", "--dir", "from"]).expect(0);
    bench.run(&["import", "from/count.yaml", "--into", "to"]).expect(0);
    let text = bench.read("to/count.yaml");
    assert!(text.contains("# A fixed command without a shell."), "{text}");
    bench.run(&["check", "--deny-warnings", "to"]).expect(0);
}

#[test]
fn bundle_keeps_its_settings_in_both_formats() {
    let bench = Bench::with("a.json", bundle(&[tool_with("add", "\"x-vendor\": {\"z\": 1, \"a\": [2]}")]));
    bench.run(&["export", "a.json", "--format", "yaml", "-o", "b.yaml"]).expect(0);
    bench.run(&["check", "b.yaml"]).expect(0);
    bench.run(&["export", "b.yaml", "-o", "c.json"]).expect(0);
    assert_eq!(bench.json("c.json"), bench.json("a.json"));
    let text = bench.read("c.json");
    assert!(text.contains("\n    {\n      \"name\"") && text.contains("\n    }\n  ]"), "{text}");
}

#[test]
fn nothing_is_written_if_anything_is_wrong() {
    let broken = tool_with("bad", "\"draft\": 7");
    let bench = Bench::with("b.json", bundle(&[tool("add"), broken]));
    let run = bench.run(&["import", "b.json", "--into", "tools"]).expect(1);
    assert!(run.err.contains("nothing was imported"), "{}", run.err);
    assert!(!bench.path("tools").exists());
    bench.run(&["import", "b.json", "--into", "tools", "--keep-going"]).expect(1);
    assert!(bench.path("tools/add.json").exists() && !bench.path("tools/bad.json").exists());
}

#[test]
fn existing_file_stops_the_import_unless_forced() {
    let bench = Bench::with("b.json", bundle(&[tool("add"), tool("sum")]));
    bench.write("tools/sum.json", "mine");
    let run = bench.run(&["import", "b.json", "--into", "tools"]).expect(2);
    assert!(run.err.contains("tools/sum.json"), "{}", run.err);
    assert!(!bench.path("tools/add.json").exists());
    assert_eq!(bench.read("tools/sum.json"), "mine");
    bench.run(&["import", "b.json", "--into", "tools", "--force"]).expect(0);
    assert_eq!(bench.json("tools/sum.json")["name"], "sum");
}

/// A symlink in the tools directory must not redirect an import to another file of the user.
#[test]
fn files_are_not_written_through_a_symlink() {
    let bench = Bench::with("b.json", bundle(&[tool("add"), tool("sum")]));
    bench.write("precious", "mine");
    bench.write("tools/other.json", "");
    std::os::unix::fs::symlink(bench.path("precious"), bench.path("tools/sum.json")).unwrap();
    std::os::unix::fs::symlink(bench.path("nowhere"), bench.path("tools/dangling.json")).unwrap();
    let run = bench.run(&["import", "b.json", "--into", "tools", "--force"]).expect(2);
    assert!(run.err.contains("tools/sum.json") && run.err.contains("this is a symlink"), "{}", run.err);
    assert!(!bench.path("tools/add.json").exists(), "all or none");
    for link in ["tools/sum.json", "tools/dangling.json"] {
        let run = bench.run(&["export", "b.json", "-o", link, "--force"]).expect(2);
        assert!(run.err.contains("the path is a symlink"), "{}", run.err);
    }
    assert_eq!(bench.read("precious"), "mine");
    assert!(!bench.path("nowhere").exists());
}

/// Documents may contain characters that reorder, hide or control the displayed text.
#[test]
fn exports_escape_control_and_invisible_characters() {
    let hostile = "ab\u{202e}cd\u{200b}\u{9b}2K\u{7f}\u{e0041}\u{feff}";
    let bench = Bench::with("a.json", bundle(&[tool_with("add", &format!("\"x-note\": \"{hostile}\"\r"))]));
    let is_harmless = |text: &str| !text.chars().any(|c| hostile.contains(c) && !c.is_ascii_alphanumeric());
    for format in ["json", "yaml"] {
        let run = bench.run(&["export", "a.json", "--format", format]).expect(0);
        assert!(is_harmless(&run.out) && !run.out.contains('\r'), "{:?}", run.out);
        bench.run(&["export", "a.json", "--format", format, "-o", "b", "--force"]).expect(0);
        assert!(is_harmless(&bench.read("b")));
        bench.write(&format!("b.{format}"), bench.read("b"));
        bench.run(&["export", &format!("b.{format}"), "-o", "c.json", "--force"]).expect(0);
        assert_eq!(bench.json("c.json")["toolSpecs"], bench.json("a.json")["toolSpecs"], "{format}");
    }
}

#[test]
fn tool_name_cannot_leave_the_directory() {
    let bench = Bench::with("b.json", bundle(&[tool("../../evil"), tool("/etc/evil")]));
    bench.run(&["import", "b.json", "--into", "a/b/tools"]).expect(0);
    let names: Vec<_> =
        std::fs::read_dir(bench.path("a/b/tools")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(!bench.path("evil.json").exists() && !bench.path("a/evil.json").exists());
}

#[test]
fn export_and_import_round_trip() {
    let bench = Bench::with("tools/add.json", tool_with("add", "\"draft\": false, \"x-vendor\": 1.50"));
    bench.run(&["new", "count", "--kind", "cli", "--dir", "tools"]).expect(0);
    bench.run(&["export", "tools", "-o", "bundle.json"]).expect(0);
    let out = bench.json("bundle.json");
    assert_eq!(out["toolSpecs"].as_array().unwrap().len(), 2);
    assert_eq!(out["toolMcpServerSetting"]["exposedToolIds"].as_array().unwrap().len(), 1);
    assert!(bench.read("bundle.json").contains("1.50"));
    bench.run(&["check", "bundle.json"]).expect(0);
    bench.run(&["import", "bundle.json", "--into", "back"]).expect(0);
    bench.run(&["diff", "tools/add.json", "back/add.json"]).expect(0);
}

#[test]
fn export_overwrites_only_with_force() {
    let bench = Bench::with("add.json", tool("add"));
    bench.write("out.json", "mine");
    bench.run(&["export", "add.json", "-o", "out.json"]).expect(2);
    assert_eq!(bench.read("out.json"), "mine");
    bench.run(&["export", "add.json", "-o", "out.json", "--force"]).expect(0);
    assert!(bench.run(&["export", "add.json", "--format", "yaml"]).expect(0).out.starts_with("toolSpecs:"));
}

#[test]
fn nothing_is_exported_if_anything_is_wrong() {
    let bench = Bench::with("t/add.json", tool("add"));
    bench.write("t/bad.json", crate::check::BAD);
    let run = bench.run(&["export", "t"]).expect(1);
    assert_eq!(run.out, "");
    assert!(run.err.contains("error[SPEC_PARSE]") && run.err.contains("nothing was exported"), "{}", run.err);
    bench.run(&["export", "nowhere"]).expect(2);
}

#[test]
fn declarations_contain_only_what_models_see() {
    let bench = Bench::with("t/add.json", tool("add"));
    for (reader, schema) in [
        ("mcp", "/0/inputSchema"),
        ("openai", "/0/function/parameters"),
        ("anthropic", "/0/input_schema"),
        ("google", "/0/parameters"),
    ] {
        let run = bench.run(&["export", "--as", reader, "t"]).expect(0);
        assert!(run.json().pointer(schema).unwrap()["properties"]["a"].is_object(), "{reader}: {}", run.out);
        assert!(!run.out.contains("return a + b"), "{reader}: {}", run.out);
    }
    bench.run(&["export", "--as", "mcp", "--format", "yaml", "t"]).expect(2);
}

#[test]
fn names_that_differ_in_case_do_not_share_a_file() {
    let bench = Bench::with("a.json", tool("Add"));
    bench.write("b.json", tool("add"));
    let run = bench.run(&["import", "a.json", "b.json", "--into", "in", "--force"]).expect(2);
    assert!(run.err.contains("nothing was imported"), "{}", run.err);
    assert!(!bench.path("in").exists());
}
