//! `new` writes documents that pass every check, and overwrites nothing.

use std::fs;

use crate::{bench::Bench, place::Place};

#[test]
fn every_kind_passes_without_a_finding() {
    let bench = Bench::new();
    for (kind, format, extension) in KINDS {
        let name = format!("my-{kind}-{format}");
        bench.run(&["new", &name, "--kind", kind, "--format", format, "--dir", "tools"]).expect(0);
        let run = bench.run(&["check", "--deny-warnings", &format!("tools/{name}.{extension}")]).expect(0);
        assert!(run.out.contains("nothing found"), "{}", run.out);
        bench.run(&["resolve", &format!("tools/{name}.{extension}")]).expect(0);
    }
    bench.run(&["check", "--deny-warnings", "tools"]).expect(0);
}

#[test]
fn new_tools_pass_their_test_in_a_fresh_workspace() {
    let place = Place::new();
    for (kind, format, _) in KINDS {
        let name = format!("my-{kind}-{format}");
        place.ok(&["new", &name, "--kind", kind, "--format", format, "--dir", "tools"]);
    }
    let tested = place.ok(&["test"]);
    assert!(tested.contains("4 tools passed, 0 failed"), "{tested}");
    place.ok(&["publish", "my-js-yaml"]);
    let called = place.ok(&["call", "my-js-yaml", "text=one two"]);
    assert!(called.contains("\"words\": 2"), "{called}");
    let published = fs::read_to_string(place.path().join("tools/my-js-yaml.yaml")).unwrap();
    assert!(published.contains("# The body of an async function.") && published.contains("code: |\n"));
}

#[test]
fn javascript_is_written_as_yaml_with_plain_code() {
    let bench = Bench::new();
    // `true` and `null` are values in YAML unless they are quoted.
    for name in ["word-count", "true", "null"] {
        bench.run(&["new", name]).expect(0);
        let text = bench.read(&format!("{name}.yaml"));
        assert!(text.contains("\ncode: |\n  const words = text.split(/\\s+/u)"), "{text}");
        assert!(
            text.starts_with("# yaml-language-server: $schema=.toolgate/safe-tool-spec.schema.json\n"),
            "{text}"
        );
        bench.run(&["check", "--deny-warnings", &format!("{name}.yaml")]).expect(0);
    }
}

#[test]
fn kinds_that_do_not_run_are_refused() {
    let bench = Bench::new();
    for kind in ["http", "grpc", "mcp"] {
        let run = bench.run(&["new", "a", "--kind", kind]).expect(2);
        assert!(
            run.err.contains("does not run") && run.err.contains("use --kind js or --kind cli"),
            "{}",
            run.err
        );
    }
    bench.run(&["new", "a", "--kind", "cli", "--format", "json"]).expect(2);
    assert_eq!(fs::read_dir(bench.path(".")).unwrap().count(), 0);
}

#[test]
fn nothing_is_overwritten() {
    let bench = Bench::with("a.yaml", "mine");
    let run = bench.run(&["new", "a"]).expect(2);
    assert!(run.err.contains("`./a.yaml`") && run.err.contains("exists"), "{}", run.err);
    assert_eq!(bench.read("a.yaml"), "mine");
    std::os::unix::fs::symlink("nowhere", bench.path("b.yaml")).unwrap();
    bench.run(&["new", "b"]).expect(2);
    assert!(!bench.path("nowhere").exists());
}

#[test]
fn invalid_name_is_refused() {
    let bench = Bench::new();
    for name in ["", "A", "../x", "a/b", "1a", "a-", "-a", "a b", "ä", "a\u{1b}[2J", &"a".repeat(65)] {
        let run = bench.run(&["new", "--", name]).expect(2);
        assert!(run.err.contains("invalid tool name"), "{name}: {}", run.err);
        assert!(!run.err.contains('\u{1b}'));
    }
    assert_eq!(fs::read_dir(bench.path(".")).unwrap().count(), 0);
}

#[test]
fn schema_is_found_upwards_or_written_next_to_the_document() {
    let bench = Bench::new();
    bench.run(&["new", "far", "--kind", "cli"]).expect(0);
    assert!(
        bench
            .read("far.yaml")
            .starts_with("# yaml-language-server: $schema=.toolgate/tool-manifest.schema.json\n")
    );
    assert!(bench.read(".toolgate/tool-manifest.schema.json").starts_with("{\n  \"$schema\""));
    bench.write("schemas/tool-manifest.schema.json", "{}");
    bench.run(&["new", "near", "--kind", "cli", "--dir", "a/b"]).expect(0);
    let near = bench.read("a/b/near.yaml");
    assert!(
        near.starts_with("# yaml-language-server: $schema=../../schemas/tool-manifest.schema.json\n"),
        "{near}"
    );
}

const KINDS: [(&str, &str, &str); 3] =
    [("js", "yaml", "yaml"), ("js", "json", "json"), ("cli", "yaml", "yaml")];
