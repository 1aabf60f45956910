//! Which share of the language suite passes? Takes the folder of a checkout of test262, and below `test/` what to run.
//!
//! `cargo run --release --package toolgate-worker --example test262 -- ../test262 language`
#![allow(clippy::print_stdout, reason = "its output is the result")]

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use toolgate_sandbox::wire::{Effect, EffectAnswer, EffectError, Ending, Load, Run, RunLimits};
use toolgate_worker::{EffectPort, LinkLost, Machine};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let suite = PathBuf::from(arguments.next().ok_or("usage: test262 CHECKOUT [FOLDER BELOW test/]")?);
    let below = arguments.next().unwrap_or_else(|| "language".to_owned());
    let machine = Machine::new()?;
    let mut tests = Vec::new();
    gather(&suite.join("test").join(below), &mut tests)?;
    tests.sort();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut passed, mut run, mut skipped) = (0, 0, 0);
    for test in &tests {
        let text = fs::read_to_string(test)?;
        let Some(is_pass) = judge(&machine, &suite, &text)? else {
            skipped += 1;
            continue;
        };
        run += 1;
        passed += usize::from(is_pass);
        let group =
            test.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let count = counts.entry(group).or_default();
        count.0 += usize::from(is_pass);
        count.1 += 1;
    }
    for (group, (passed, run)) in counts.iter().filter(|(_, (passed, run))| passed < run) {
        println!("{passed:>6} of {run:>6}  {group}");
    }
    println!("{passed} of {run} pass; {skipped} need modules, agents or realms and were not run");
    Ok(())
}

fn gather(folder: &Path, tests: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, tests)?;
        } else if path.extension().is_some_and(|kind| kind == "js")
            && !path.to_string_lossy().contains("_FIXTURE")
        {
            tests.push(path);
        }
    }
    Ok(())
}

/// What the test's header asks for; `None` for what a tool body can never be.
fn judge(machine: &Machine, suite: &Path, text: &str) -> Result<Option<bool>, Box<dyn Error>> {
    let header = text
        .split_once("/*---")
        .and_then(|(_, rest)| rest.split_once("---*/"))
        .map_or("", |(header, _)| header);
    let unsupported = ["module", "CanBlockIsTrue", "Atomics", "SharedArrayBuffer", "createRealm", "agent"];
    if unsupported.iter().any(|word| header.contains(word) || text.contains("$262.")) {
        return Ok(None);
    }
    let mut source = String::new();
    if !header.contains("raw") {
        let listed = header.split_once("includes:").map_or("", |(_, rest)| rest);
        let includes = listed
            .split(|character: char| "[],- \n".contains(character))
            .filter(|word| Path::new(word).extension().is_some_and(|kind| kind == "js"));
        for file in ["assert.js", "sta.js", "doneprintHandle.js"].into_iter().chain(includes) {
            source.push_str(&fs::read_to_string(suite.join("harness").join(file))?);
            source.push('\n');
        }
    }
    let strict = if header.contains("onlyStrict") { "\"use strict\";\n" } else { "" };
    let ending = evaluate(machine, &format!("{strict}{source}{text}"))?;
    let negative =
        header.split_once("negative:").and_then(|(_, rest)| rest.split_once("type:")).map(|(_, rest)| rest);
    Ok(Some(match (negative.map(str::trim_start), ending) {
        (Some(wanted), Ending::Threw(error)) => {
            let name = wanted.split_whitespace().next().unwrap_or_default();
            error.contains(&format!("\"name\":\"{name}\""))
        }
        (None, Ending::Value(text)) => text == "\"done\"",
        _ => false,
    }))
}

/// As a script of its own, by an indirect eval; an asynchronous one says by `print` how it went.
fn evaluate(machine: &Machine, script: &str) -> Result<Ending, Box<dyn Error>> {
    let script = serde_json::to_string(script)?;
    let body = format!(
        "const said = []; globalThis.print = (text) => said.push(`${{text}}`); (0, eval)({script}); \
         await new Promise((resolve) => setTimeout(resolve, 1)); \
         if (said.some((text) => text.includes('AsyncTestFailure'))) throw new Error(said.join()); return 'done';"
    );
    let source = format!("(async function(){{{{{body}\n}}}})");
    let load = Load { key: [0; 32], grants: 0, names: "[]".to_owned(), source };
    let limits = RunLimits {
        timeout_ms: 20_000,
        fuel: 20_000_000_000,
        memory_bytes: 128 << 20,
        console_lines: 10,
        console_bytes: 1_000,
        result_bytes: 100_000,
        host_calls: 0,
        host_bytes: 0,
    };
    let run = Run { key: [0; 32], limits, seed: 1, arguments: "{}".to_owned() };
    Ok(machine.evaluate(&load, &run, Box::new(Nobody))?.ending)
}

struct Nobody;

impl EffectPort for Nobody {
    fn ask(&mut self, _effect: Effect) -> Result<EffectAnswer, LinkLost> {
        let nobody = || "nobody".to_owned();
        Ok(EffectAnswer::Refused(EffectError {
            kind: nobody(),
            helper: nobody(),
            reason: nobody(),
            message: nobody(),
            moved: 0,
        }))
    }
}
