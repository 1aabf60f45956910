//! The cost of checking documents, relative to parsing the same bytes with `serde_json`. Both sides run interleaved in one
//! loop, and the median counts, so noise affects both equally.
#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark that cannot run shall say so")]

#[path = "shared/times.rs"]
mod times;

use std::{
    fmt::Write as _,
    fs,
    hint::black_box,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use times::{median, ratio};
use toolgate_policy::{PolicySet, rate, resolve};
use toolgate_spec::{Format, check_text, locate, model::ToolSpec};

fn main() {
    let corpus = corpus(10_000);
    let bytes: usize = corpus.iter().map(String::len).sum();
    println!("corpus: {} specs, {} bytes, {} a spec", corpus.len(), bytes, bytes / corpus.len());
    resolve_and_rate(&corpus);
    check_all(&corpus);
    flat_cost(&corpus);
    the_command(&corpus);
}

fn resolve_and_rate(corpus: &[String]) {
    let sample: Vec<(&str, ToolSpec)> =
        corpus.iter().take(200).map(|text| (text.as_str(), sound(text))).collect();
    let set = &PolicySet::shipped().expect("what is shipped is sound");
    let parse = || sample.iter().for_each(|(text, _)| drop(black_box(parse(text))));
    let decide = || {
        for (_, spec) in &sample {
            let policy = resolve(spec, set, None).expect("the corpus resolves");
            black_box(rate(&policy, spec, set));
        }
    };
    let (parse, decide) = interleaved(200, parse, decide);
    report("resolve + rate of one tool / one parse of its document", decide, parse, sample.len(), 1.0);
}

fn check_all(corpus: &[String]) {
    let set = &PolicySet::shipped().expect("what is shipped is sound");
    let (parse, check) = interleaved(15, || parse_all(corpus), || check_documents(corpus, set));
    report("check of 10,000 specs / parse of the same bytes, one core each", check, parse, corpus.len(), 4.0);
}

/// Compares 10,000 different documents with 100 documents repeated 100 times.
fn flat_cost(corpus: &[String]) {
    let set = &PolicySet::shipped().expect("what is shipped is sound");
    let few: Vec<String> = corpus.iter().take(100).cloned().collect();
    let repeat = || (0..corpus.len() / few.len()).for_each(|_| check_documents(&few, set));
    let (few_time, all_time) = interleaved(15, repeat, || check_documents(corpus, set));
    let ratio = all_time.as_secs_f64() / few_time.as_secs_f64();
    println!("{:<66} {ratio:>6.2}   (goal: flat)", "cost a spec among 10,000 / cost a spec among 100");
}

/// The complete command on a directory, compared with reading and parsing the same files.
fn the_command(corpus: &[String]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<PathBuf> =
        (0..corpus.len()).map(|number| folder.path().join(format!("{number}.json"))).collect();
    for (file, text) in files.iter().zip(corpus) {
        fs::write(file, text).expect("a file is written");
    }
    let parse = || {
        for file in &files {
            let text = fs::read_to_string(file).expect("a file is read");
            drop(black_box(parse(&text)));
        }
    };
    let check = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        let status = command.args(["check", "--quiet"]).arg(folder.path()).status().expect("toolgate runs");
        assert!(status.success(), "the corpus is sound");
    };
    let (parse, check) = interleaved(5, parse, check);
    report("`toolgate check` of 10,000 files / reading and parsing them", check, parse, corpus.len(), 4.0);
}

/// The work of the command per file, without disk and terminal.
fn check_documents(corpus: &[String], set: &PolicySet) {
    for text in corpus {
        let file = check_text(text, Format::Json);
        for mut tool in file.tools {
            if let Some(spec) = &tool.spec {
                match resolve(spec, set, None) {
                    Ok(policy) => tool.findings.extend(toolgate_policy::safety_mismatch(spec, &policy)),
                    Err(findings) => tool.findings.extend(findings),
                }
            }
            locate(text, Format::Json, &mut tool.findings);
            black_box(&tool);
        }
    }
}

fn parse_all(corpus: &[String]) {
    for text in corpus {
        black_box(parse(text));
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("the corpus parses")
}

fn sound(text: &str) -> ToolSpec {
    check_text(text, Format::Json).tools.remove(0).spec.expect("the corpus is sound")
}

/// The medians of two alternating workloads.
fn interleaved(rounds: usize, one: impl Fn(), other: impl Fn()) -> (Duration, Duration) {
    let time = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let times: (Vec<Duration>, Vec<Duration>) = (0..rounds).map(|_| (time(&one), time(&other))).unzip();
    (median(&times.0), median(&times.1))
}

fn report(what: &str, ours: Duration, theirs: Duration, count: usize, goal: f64) {
    let ratio = ratio(ours, theirs);
    let micros =
        |time: Duration| time.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    println!("{what:<66} {ratio:>6.2}   (goal ≤ {goal}; {:.2} µs / {:.2} µs)", micros(ours), micros(theirs));
}

/// Documents like those of a real catalog: about two kilobytes, mostly code, all different.
fn corpus(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| serde_json::to_string_pretty(&document(number)).expect("a value is text"))
        .collect()
}

fn document(number: usize) -> Value {
    let network = [
        json!({}),
        json!({ "networkMode": "allowlist", "hostsAllow": [format!("api{number}.example.com"), "cdn.example.com"] }),
        json!({ "networkMode": "strict" }),
        json!({ "fileRead": true, "fsBasePath": "$WORKSPACE/data" }),
    ];
    let param = |index: usize, kind: &str, value: &str| {
        json!({
            "name": format!("argument{index}"),
            "description": format!("The value number {index} that the calculation starts from, in the unit of the table"),
            "required": index == 0,
            "type": kind,
            "testValue": value,
        })
    };
    json!({
        "name": format!("convert_table_{number}"),
        "description": format!("Converts the rows of table {number} into the requested unit and sums them up. Returns {{rows, total, unit}}."),
        "category": "DATA",
        "tags": ["util"],
        "params": [param(0, "STRING", "metres"), param(1, "INTEGER", "12"), param(2, "BOOLEAN", "true")],
        "staticVariables": [{ "endpoint": "https://cdn.example.com/tables" }, { "apiKey": "${TABLE_API_KEY}" }],
        "code": code(number),
        "codeType": "Javascript",
        "sandboxOverrides": network[number % network.len()],
        "draft": true,
        "createTimestamp": 1_760_000_000_000_u64 + number as u64,
        "updateTimestamp": 1_760_000_000_000_u64 + number as u64,
    })
}

fn code(number: usize) -> String {
    let mut code = format!(
        "// Conversion factors of table {number}, per unit of length.\nconst factors = {{ metres: 1, feet: 0.3048, miles: 1609.344 }};\n"
    );
    for step in 0..14 {
        let _ = writeln!(
            code,
            "const row{step} = {{ label: 'row {step} of {number}', value: Number(argument1 || 0) * {step} + {number} }};"
        );
    }
    code + "const rows = [row0, row1, row2, row3, row4, row5, row6].map((row) => ({ ...row, value: row.value * (factors[argument0] ?? 1) }));\nreturn { rows, total: rows.reduce((sum, row) => sum + row.value, 0), unit: argument0 };\n"
}
