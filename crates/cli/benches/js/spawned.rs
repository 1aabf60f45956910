//! A process for each call: started, asked over its standard input, answered, ended.
//!
//! The request is one line of JSON. `?path` from the process asks its host, who answers with a line; `=value` is the end.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    native,
    variant::{Kind, Variant, rate_of_two_threads},
    work::{ANSWER, Host, Work},
};

pub struct Spawned {
    kind: Kind,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Spawned {
    /// This very program, which then is nothing but the engine.
    pub fn same_engine() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        Self { kind: Kind::ExecPerCall, program, arguments: vec![ONE_CALL.to_owned()] }
    }

    pub fn new(kind: Kind, program: PathBuf, arguments: Vec<String>) -> Self {
        Self { kind, program, arguments }
    }

    fn one_call(&self, work: &Work) -> String {
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

impl Variant for Spawned {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn call(&mut self, work: &Work) -> (Duration, String) {
        let begin = Instant::now();
        let value = self.one_call(work);
        (begin.elapsed(), value)
    }

    fn rate(&mut self, work: &Work, span: Duration) -> f64 {
        let this = &*self;
        rate_of_two_threads(span, || || work.check(&this.one_call(work)))
    }
}

/// Everything a peer needs to know of a body.
pub fn request(work: &Work) -> Value {
    json!({
        "source": work.source,
        "names": work.names,
        "arguments": work.arguments,
        "host": work.host == Host::ReadText,
    })
}

/// The other end, when this program was started for one call.
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
    let host = if request["host"] == true { Host::ReadText } else { Host::None };
    let base = Work::new(names.leak(), "", &text("arguments"), "");
    let work = Work { source: text("source"), host, ..base };
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
