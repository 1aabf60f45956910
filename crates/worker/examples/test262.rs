//! Runs the test262 language suite and reports the share that passes. Arguments: the directory of a test262 checkout,
//! and what to run below `test/`.
//!
//! `cargo run --release --package toolgate-worker --example test262 -- ../test262 language`
//!
//! A test must pass in every mode that it applies to: sloppy and strict, unless its flags say otherwise.
#![allow(clippy::print_stdout, reason = "its output is the result")]

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toolgate_sandbox::wire::{Effect, EffectAnswer, EffectError, Load, RunLimits, RunScript, ScriptEnding};
use toolgate_worker::{EffectPort, LinkLost, ScriptMachine};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let suite = PathBuf::from(arguments.next().ok_or("usage: test262 CHECKOUT [FOLDER BELOW test/]")?);
    let below = arguments.next().unwrap_or_else(|| "language".to_owned());
    let harness = suite.join("harness");
    let machine = ScriptMachine::new()?;
    let mut tests = Vec::new();
    gather(&suite.join("test").join(below), &mut tests)?;
    tests.sort();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let (mut passed, mut run, mut skipped) = (0, 0, 0);
    for test in &tests {
        let text = fs::read_to_string(test)?;
        let judged = judge(&machine, &harness, &text);
        let Some(is_pass) = judged.map_err(|error| format!("{}: {error}", test.display()))? else {
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

/// The relevant metadata of a test.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    flags: Vec<String>,
    features: Vec<String>,
    includes: Vec<String>,
    negative: Option<Negative>,
}

#[derive(Deserialize)]
struct Negative {
    #[serde(rename = "type")]
    name: String,
}

impl Header {
    fn of(text: &str) -> Result<Self, Box<dyn Error>> {
        let header = text.split_once("/*---").and_then(|(_, rest)| rest.split_once("---*/"));
        match header {
            Some((header, _)) => Ok(serde_saphyr::from_str(header)?),
            None => Ok(Self::default()),
        }
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    /// Whether a tool body cannot run this test: modules, second threads and realms are not available.
    fn is_beyond_a_body(&self) -> bool {
        let features = ["Atomics", "SharedArrayBuffer", "cross-realm"];
        self.has("module")
            || self.has("CanBlockIsTrue")
            || self.features.iter().any(|feature| features.contains(&feature.as_str()))
    }

    /// The prefix of the test for each mode.
    fn modes(&self) -> &'static [&'static str] {
        const STRICT: &str = "\"use strict\";\n";
        if self.has("raw") || self.has("noStrict") {
            &[""]
        } else if self.has("onlyStrict") {
            &[STRICT]
        } else {
            &["", STRICT]
        }
    }
}

/// Returns `None` for tests that a tool body cannot run.
fn judge(machine: &ScriptMachine, harness: &Path, text: &str) -> Result<Option<bool>, Box<dyn Error>> {
    let header = Header::of(text)?;
    let files = harness_of(&header, harness)?;
    // The host hooks of the suite: realms, agents, detaching buffers.
    let needs_host = files.iter().map(String::as_str).chain([text]).any(|script| script.contains("$262."));
    if header.is_beyond_a_body() || needs_host {
        return Ok(None);
    }
    for mode in header.modes() {
        if !passes(machine, &header, &files, &format!("{mode}{text}"))? {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

fn harness_of(header: &Header, folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    if header.has("raw") {
        return Ok(Vec::new());
    }
    let asynchronous = header.has("async").then_some("doneprintHandle.js");
    let usual = ["assert.js", "sta.js"].into_iter().chain(asynchronous);
    let read = |file: &str| fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"));
    Ok(usual.chain(header.includes.iter().map(String::as_str)).map(read).collect::<Result<_, _>>()?)
}

/// The result of one run.
#[derive(Deserialize)]
struct ScriptOutcome {
    /// The name of the thrown error.
    threw: Option<String>,
    /// The printed lines; an asynchronous test reports its result there.
    said: Vec<String>,
}

fn passes(
    machine: &ScriptMachine,
    header: &Header,
    files: &[String],
    test: &str,
) -> Result<bool, Box<dyn Error>> {
    // Names that only whole scripts would share are put into the test's own source.
    let is_shared =
        |file: &&String| !["class ", "const ", "let "].iter().any(|word| file.contains(&format!("\n{word}")));
    let (shared, own): (Vec<&String>, Vec<&String>) = files.iter().partition(is_shared);
    let own: String = own.into_iter().map(String::as_str).collect();
    let test = match test.strip_prefix("\"use strict\";\n") {
        Some(rest) => format!("\"use strict\";\n{own}{rest}"),
        None => format!("{own}{test}"),
    };
    let ScriptEnding::Value(json) = evaluate(machine, &shared, &test, header.has("async"))? else {
        return Ok(false);
    };
    let Ok(outcome) = serde_json::from_str::<ScriptOutcome>(&json) else { return Ok(false) };
    Ok(match (&header.negative, outcome.threw) {
        (Some(negative), threw) => threw.as_ref() == Some(&negative.name),
        (None, Some(_)) => false,
        // An asynchronous test passes only if it reports completion exactly once.
        (None, None) if header.has("async") => outcome.said == ["Test262:AsyncTestComplete"],
        (None, None) => true,
    })
}

/// Evaluates each file as a separate script by an indirect eval. A test that never completes leaves an unsettled
/// promise.
fn evaluate(
    machine: &ScriptMachine,
    shared: &[&String],
    test: &str,
    is_asynchronous: bool,
) -> Result<ScriptEnding, Box<dyn Error>> {
    let (shared, test) = (serde_json::to_string(shared)?, serde_json::to_string(test)?);
    let body = format!(
        "const said = [], later = setTimeout, evaluate = eval, PromiseOf = Promise; let threw = null, heard; \
         const answer = new PromiseOf((resolve) => {{ heard = resolve; }}); \
         globalThis.print = (text) => {{ said[said.length] = `${{text}}`; heard(); }}; \
         for (const file of {shared}) (0, evaluate)(file); \
         try {{ (0, evaluate)({test}); }} catch (error) {{ threw = `${{error?.constructor?.name}}`; }} \
         if ({is_asynchronous} && threw === null) await answer; \
         await new PromiseOf((resolve) => later(resolve, 1)); \
         return {{ threw, said }};"
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
    let run = RunScript { key: [0; 32], limits, seed: 1, arguments: "{}".to_owned() };
    Ok(machine.evaluate(&load, &run, Box::new(NoGateway))?.ending)
}

struct NoGateway;

impl EffectPort for NoGateway {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails loudly")]
mod tests {
    use super::*;

    /// A minimal harness, so the suite itself is not needed.
    fn verdicts(tests: &[(&str, Option<bool>)]) {
        let machine = ScriptMachine::new().unwrap();
        let harness = std::env::temp_dir().join(format!("toolgate-test262-{}", std::process::id()));
        fs::create_dir_all(&harness).unwrap();
        for (file, text) in [
            ("assert.js", "function assert(held) { if (!held) throw new Test262Error('no'); }"),
            ("sta.js", "function Test262Error(message) { this.message = message; }"),
            ("doneprintHandle.js", DONE),
            ("more.js", "\nconst more = 7;"),
            ("host.js", "var host = () => $262.createRealm();"),
        ] {
            fs::write(harness.join(file), text).unwrap();
        }
        let judged: Vec<_> = tests
            .iter()
            .map(|(text, _)| judge(&machine, &harness, text).map_err(|error| error.to_string()))
            .collect();
        fs::remove_dir_all(&harness).unwrap();
        for ((text, expected), judged) in tests.iter().zip(judged) {
            assert_eq!(judged, Ok(*expected), "{text}");
        }
    }

    const DONE: &str = "function $DONE(error) { print(error ? 'Test262:AsyncTestFailure:' + error : 'Test262:AsyncTestComplete'); }";

    #[test]
    fn test_is_evaluated_by_its_header() {
        verdicts(&[
            ("assert(true)", Some(true)),
            ("assert(false)", Some(false)),
            // Asynchronous: only a completion report counts.
            ("/*---\nflags: [async]\n---*/ Promise.resolve().then(() => $DONE())", Some(true)),
            ("/*---\nflags: [async]\n---*/ Promise.resolve().then(() => $DONE('no'))", Some(false)),
            ("/*---\nflags: [async]\n---*/ $DONE(); Promise.resolve().then(() => $DONE('no'))", Some(false)),
            ("/*---\nflags: [async]\n---*/ 1", Some(false)),
            ("/*---\nflags: [async]\n---*/ throw 1", Some(false)),
            // Both modes, unless the flags say otherwise.
            ("assert((function () { return this })() !== undefined)", Some(false)),
            ("assert((function () { return this })() === undefined)", Some(false)),
            (
                "/*---\nflags: [noStrict]\n---*/ assert((function () { return this })() !== undefined)",
                Some(true),
            ),
            (
                "/*---\nflags: [onlyStrict]\n---*/ assert((function () { return this })() === undefined)",
                Some(true),
            ),
            ("/*---\nflags: [raw]\n---*/ if (typeof assert !== 'undefined') throw 1", Some(true)),
            // Expected failures.
            ("/*---\nnegative:\n  phase: parse\n  type: SyntaxError\n---*/ a b", Some(true)),
            ("/*---\nnegative:\n  phase: parse\n  type: SyntaxError\n---*/ 1", Some(false)),
            ("/*---\nnegative:\n  phase: runtime\n  type: Test262Error\n---*/ assert(false)", Some(true)),
            ("/*---\nnegative:\n  phase: runtime\n  type: RangeError\n---*/ assert(false)", Some(false)),
            // Words in a description are not flags.
            ("/*---\ndescription: a module of Atomics, raw\n---*/ assert(true)", Some(true)),
            ("/*---\nflags: [module]\n---*/ 1", None),
            ("/*---\nfeatures: [SharedArrayBuffer]\n---*/ 1", None),
            ("/*---\nincludes: [more.js]\n---*/ assert(more === 7)", Some(true)),
            ("/*---\nincludes: [host.js]\n---*/ 1", None),
        ]);
    }
}
