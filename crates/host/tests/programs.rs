//! What does `publish_all` do to the tools of a program that embeds the gateway, and to its files?
//!
//! Not an ordinary test binary, for tools run in processes that are this same program. It understands a filter and `--list`.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test without the usual harness fails loudly"
)]

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::Path,
    process::ExitCode,
};

use tempfile::TempDir;
use toolgate::{Config, Extras, Toolgate};
use toolgate_config::Overrides;

const TESTS: &[(&str, fn())] =
    &[("shipped_tools_are_tested_on_files_of_their_own", shipped_tools_are_tested_on_files_of_their_own)];

fn main() -> ExitCode {
    toolgate::run_if_worker();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filter = arguments.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    let chosen: Vec<_> = TESTS.iter().filter(|(name, _)| name.contains(filter)).collect();
    if arguments.iter().any(|word| word == "--list") {
        for (name, _) in &chosen {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in &chosen {
        let has_passed = panic::catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name} ... {}", if has_passed { "ok" } else { "FAILED" });
        failed += usize::from(!has_passed);
    }
    println!("\n{} passed, {failed} failed", chosen.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shipped_tools_are_tested_on_files_of_their_own() {
    // Not exposed, so that opening the gateway does not try it already.
    let program = Program::new(
        "catalog: {include: {names: [write_text_file]}}\nexposure: {excluded: [write_text_file]}\n",
    );
    let report = program.path().join("out/report.md");
    fs::create_dir(program.path().join("out")).unwrap();
    fs::write(&report, "our own").unwrap();
    assert_eq!(program.publish_all(), ["write_text_file"]);
    assert_eq!(fs::read_to_string(&report).unwrap(), "our own");
}

/// A program that opens a gateway, publishes its tools and ends.
struct Program {
    folder: TempDir,
}

impl Program {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tools")).unwrap();
        fs::write(folder.path().join("toolgate.yaml"), format!("version: 1\n{config}")).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The tools that were tried; each of them passed.
    fn publish_all(&self) -> Vec<String> {
        let file = self.path().join("toolgate.yaml");
        let config = Config::load(&file, &|_| None, &Overrides::default()).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let toolgate = Toolgate::open(config, Extras::default()).await.unwrap();
            let trials = toolgate.publish_all().await.unwrap();
            toolgate.close().unwrap();
            let tried = trials.into_iter().map(|trial| {
                assert!(trial.has_passed(), "{:?}", trial.outcome);
                trial.pass.name.unwrap()
            });
            tried.collect()
        })
    }
}
