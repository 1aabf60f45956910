//! One process per call: starts it, sends the request over standard input, reads the answer.
//!
//! The request is one line of JSON. A line `?path` from the process is a host call, answered with a line; `=value` is the
//! result.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    native,
    variant::{EngineVariant, VariantKind, rate_of_two_threads},
    work::{ANSWER, BenchBody, HostAccess},
};

pub struct Spawned {
    kind: VariantKind,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Spawned {
    /// This program, started as the bare engine.
    pub fn same_engine() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        Self { kind: VariantKind::ExecPerCall, program, arguments: vec![ONE_CALL.to_owned()] }
    }

    pub fn new(kind: VariantKind, program: PathBuf, arguments: Vec<String>) -> Self {
        Self { kind, program, arguments }
    }

    fn one_call(&self, work: &BenchBody) -> String {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the process starts");
        let mut stdin = child.stdin.take().expect("its input is piped");
        let stdout = child.stdout.take().expect("its output is piped");
        writeln!(stdin, "{}", request(work)).expect("the request is taken");
        let mut value = None;
        for line in BufReader::new(stdout).lines() {
            let line = line.expect("the answer is text");
            if line.starts_with('?') {
                writeln!(stdin, "{}", ANSWER.as_str()).expect("the answer is taken");
            } else {
                value = line.strip_prefix('=').map(str::to_owned);
            }
        }
        let status = child.wait().expect("it can be waited for");
        value.unwrap_or_else(|| panic!("{} ended without a value: {status}", self.kind.title()))
    }
}

impl EngineVariant for Spawned {
    fn kind(&self) -> VariantKind {
        self.kind
    }

    fn call(&mut self, work: &BenchBody) -> (Duration, String) {
        let begin = Instant::now();
        let value = self.one_call(work);
        (begin.elapsed(), value)
    }

    fn rate(&mut self, work: &BenchBody, span: Duration) -> f64 {
        let this = &*self;
        rate_of_two_threads(span, || || work.check(&this.one_call(work)))
    }
}

/// The request for a body.
pub fn request(work: &BenchBody) -> Value {
    json!({
        "source": work.source,
        "names": work.names,
        "arguments": work.arguments,
        "host": work.host == HostAccess::ReadText,
    })
}

/// The child's side, when this program runs as the engine for one call.
pub fn answer_one_call() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a request comes");
    let request: Value = serde_json::from_str(&line).expect("the request is JSON");
    let text = |name: &str| request[name].as_str().expect("a text").to_owned();
    let names: Vec<&'static str> = request["names"]
        .as_array()
        .expect("names")
        .iter()
        .map(|name| &*name.as_str().expect("a name").to_owned().leak())
        .collect();
    let host = if request["host"] == true { HostAccess::ReadText } else { HostAccess::None };
    let base = BenchBody::new(names.leak(), "", &text("arguments"), "");
    let work = BenchBody { source: text("source"), host, ..base };
    println!("={}", native::fresh_call(&work, None, ask));
}

#[allow(clippy::needless_pass_by_value, reason = "the engine hands over what it converted")]
fn ask(path: String) -> String {
    println!("?{path}");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("an answer comes");
    line.truncate(line.trim_end().len());
    line
}

pub const ONE_CALL: &str = "--one-call";
