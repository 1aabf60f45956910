//! Starting documents pass every check, and nothing is ever overwritten.

use crate::bench::Bench;

#[test]
fn every_kind_passes_without_a_finding() {
    let bench = Bench::new();
    for (kind, extension) in KINDS {
        let name = format!("my-{kind}");
        bench.run(&["new", &name, "--kind", kind, "--dir", "tools"]).expect(0);
        let run = bench.run(&["check", "--deny-warnings", &format!("tools/{name}.{extension}")]).expect(0);
        assert!(run.out.contains("nothing found"), "{}", run.out);
        bench.run(&["resolve", &format!("tools/{name}.{extension}")]).expect(0);
    }
    bench.run(&["check", "--deny-warnings", "tools"]).expect(0);
}

#[test]
fn nothing_is_overwritten() {
    let bench = Bench::with("a.json", "mine");
    let run = bench.run(&["new", "a"]).expect(2);
    assert!(run.err.contains("`./a.json`") && run.err.contains("exists"), "{}", run.err);
    assert_eq!(bench.read("a.json"), "mine");
    std::os::unix::fs::symlink("nowhere", bench.path("b.json")).unwrap();
    bench.run(&["new", "b"]).expect(2);
    assert!(!bench.path("nowhere").exists());
}

#[test]
fn a_bad_name_is_refused() {
    let bench = Bench::new();
    for name in ["", "A", "../x", "a/b", "1a", "a-", "-a", "a b", "ä", "a\u{1b}[2J", &"a".repeat(65)] {
        let run = bench.run(&["new", "--", name]).expect(2);
        assert!(run.err.contains("is no name for a tool"), "{name}: {}", run.err);
        assert!(!run.err.contains('\u{1b}'));
    }
    assert_eq!(std::fs::read_dir(bench.path(".")).unwrap().count(), 0);
}

#[test]
fn the_schema_is_found_upwards_or_written_beside() {
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

const KINDS: [(&str, &str); 5] =
    [("js", "json"), ("cli", "yaml"), ("http", "yaml"), ("grpc", "yaml"), ("mcp", "yaml")];
