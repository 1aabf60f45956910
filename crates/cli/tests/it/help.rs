//! Help texts, suggestions, schemas and manual pages.

use crate::bench::{Bench, snapshot};

#[test]
fn help_texts_match_their_snapshots() {
    let bench = Bench::new();
    snapshot("help.txt", &bench.run(&["--help"]).expect(0).out);
    for command in COMMANDS {
        snapshot(&format!("help_{command}.txt"), &bench.run(&[command, "--help"]).expect(0).out);
    }
}

#[test]
fn mistakes_are_answered_with_a_suggestion() {
    let bench = Bench::new();
    assert!(bench.run(&["chekc"]).expect(2).err.contains("'check'"));
    assert!(bench.run(&["check", "--deny-warning", "."]).expect(2).err.contains("--deny-warnings"));
    assert!(bench.run(&["explain", "SPEC_PRASE"]).expect(2).err.contains("did you mean `SPEC_PARSE`?"));
    let run = bench.run(&["explain", "decide.policy_forbid"]).expect(2);
    assert!(run.err.contains("did you mean `decide.policy_forbids`?"), "{}", run.err);
    assert!(bench.run(&["schema", "tool-manifst"]).expect(2).err.contains("did you mean `tool-manifest`?"));
    bench.run(&[]).expect(2);
}

#[test]
fn every_code_is_explained() {
    let bench = Bench::new();
    let list = bench.run(&["explain"]).expect(0).out;
    snapshot("codes.txt", &list);
    for code in toolgate_spec::Code::ALL {
        assert!(list.contains(code.name()), "{}", code.name());
        assert!(bench.run(&["explain", code.name()]).expect(0).out.contains(code.title()));
    }
    let calls = toolgate_gate::Reason::ALL.iter().map(|reason| (reason.code(), reason.meaning()));
    let door = toolgate_server::DoorCode::ALL.iter().map(|code| (code.code(), code.title()));
    let egress = toolgate_egress::EgressReason::ALL.iter().map(|reason| (reason.slug(), reason.meaning()));
    for (code, meaning) in calls.chain(door).chain(egress) {
        assert!(list.contains(code), "{code}");
        let text = bench.run(&["explain", code]).expect(0).out;
        assert!(text.contains(meaning) && text.contains("\nWhat to do: "), "{text}");
    }
}

#[test]
fn schemas_are_printed() {
    let bench = Bench::new();
    let list = bench.run(&["schema", "--list"]).expect(0).out;
    for schema in toolgate_spec::Schema::ALL {
        assert!(list.contains(schema.name()));
        assert_eq!(bench.run(&["schema", schema.name()]).expect(0).json(), *schema.document());
    }
    assert_eq!(bench.run(&["schema"]).expect(0).json()["title"], "Safe Tool Spec 1.0");
}

#[test]
fn completions_and_manual_pages_are_made() {
    let bench = Bench::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(bench.run(&["completions", shell]).expect(0).out.contains("toolgate"), "{shell}");
    }
    assert!(bench.run(&["man"]).expect(0).out.starts_with(".ie"));
    bench.run(&["man", "--out", "man1"]).expect(0);
    assert!(bench.read("man1/toolgate.1").contains("toolgate"));
    for command in COMMANDS {
        assert!(bench.read(&format!("man1/toolgate-{command}.1")).contains(".SH"), "{command}");
    }
}

#[test]
fn version_is_printed() {
    let run = Bench::new().run(&["--version"]).expect(0);
    assert_eq!(run.out, format!("toolgate {}\n", env!("CARGO_PKG_VERSION")));
}

const COMMANDS: [&str; 10] =
    ["check", "resolve", "diff", "new", "import", "export", "schema", "explain", "completions", "man"];
