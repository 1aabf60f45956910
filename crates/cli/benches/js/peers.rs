//! Peers from npm: three inside one Node process that is asked one call at a time and reports the time it measured
//! itself, so that the pipe is not charged to them; and Deno, started for each call.

use std::{
    cell::RefCell,
    io::{BufRead, BufReader, Lines, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    spawned::{Spawned, request},
    variant::{Kind, Variant},
    work::Work,
};

/// All that is installed, or why none is.
pub fn find() -> Result<Vec<Box<dyn Variant>>, String> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/js");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench-peers");
    if !folder.join("node_modules").is_dir() {
        return Err("run scripts/bench-peers to install them".to_owned());
    }
    let start = || Node::start(&scripts.join("peers.mjs"), &folder);
    let pair = [start(), start()].into_iter().collect::<Result<Vec<Node>, String>>()?;
    let nodes = Rc::new(RefCell::new(pair));
    let mut found: Vec<Box<dyn Variant>> = Vec::new();
    for (kind, name) in [
        (Kind::NodeVm, "node:vm"),
        (Kind::IsolatedVm, "isolated-vm"),
        (Kind::QuickjsEmscripten, "quickjs-emscripten"),
    ] {
        if nodes.borrow()[0].offers.iter().any(|offered| offered == name) {
            found.push(Box::new(Peer { kind, name, nodes: Rc::clone(&nodes) }));
        } else {
            println!("without {name}: it does not load");
        }
    }
    let deno = folder.join("node_modules/.bin/deno");
    if Command::new(&deno).arg("--version").output().is_ok_and(|output| output.status.success()) {
        let script = scripts.join("deno.mjs").display().to_string();
        let arguments = ["run", "--quiet", "--no-prompt", "--no-config", "--no-remote", &script];
        let arguments = arguments.map(str::to_owned).to_vec();
        found.push(Box::new(Spawned::new(Kind::DenoPerCall, deno, arguments)));
    } else {
        println!("without Deno: it does not start");
    }
    Ok(found)
}

struct Peer {
    kind: Kind,
    name: &'static str,
    /// Two, for the rate on two cores; single calls go to the first.
    nodes: Rc<RefCell<Vec<Node>>>,
}

impl Peer {
    fn question(&self, work: &Work, span: Duration) -> Value {
        let mut question = request(work);
        question["peer"] = json!(self.name);
        question["milliseconds"] = json!(span.as_millis());
        question
    }
}

impl Variant for Peer {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn call(&mut self, work: &Work) -> (Duration, String) {
        let question = self.question(work, Duration::ZERO);
        let mut nodes = self.nodes.borrow_mut();
        nodes[0].ask(&question);
        let answer = nodes[0].answer();
        (answer.time, answer.value)
    }

    fn rate(&mut self, work: &Work, span: Duration) -> f64 {
        let question = self.question(work, span);
        let mut nodes = self.nodes.borrow_mut();
        nodes.iter_mut().for_each(|node| node.ask(&question));
        nodes
            .iter_mut()
            .map(Node::answer)
            .map(|answer| f64::from(answer.calls) / answer.time.as_secs_f64())
            .sum()
    }
}

struct Node {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    offers: Vec<String>,
}

struct Answer {
    time: Duration,
    calls: u32,
    value: String,
}

impl Node {
    fn start(script: &PathBuf, folder: &Path) -> Result<Self, String> {
        let mut command = Command::new("node");
        command.arg(script).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("no node: {error}"))?;
        let stdin = child.stdin.take().expect("its input is piped");
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let mut node = Self { child, stdin, lines, offers: Vec::new() };
        let offers = node.line();
        node.offers =
            serde_json::from_value(offers).map_err(|error| format!("node says nonsense: {error}"))?;
        Ok(node)
    }

    fn ask(&mut self, question: &Value) {
        writeln!(self.stdin, "{question}").expect("node listens");
    }

    fn answer(&mut self) -> Answer {
        let answer = self.line();
        let value = answer["value"].as_str().unwrap_or_else(|| panic!("node failed: {answer}")).to_owned();
        let time = Duration::from_nanos(answer["nanoseconds"].as_u64().expect("a time"));
        let calls = answer["calls"].as_u64().and_then(|calls| u32::try_from(calls).ok()).expect("a count");
        Answer { time, calls, value }
    }

    fn line(&mut self) -> Value {
        let line = self.lines.next().expect("node lives").expect("its answer is text");
        serde_json::from_str(&line).expect("its answer is JSON")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It would end with its input too; nothing of value is lost.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
