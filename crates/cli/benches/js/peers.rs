//! npm peers: three run in one Node process, which measures each call itself, so the pipe does not count. Deno is started
//! for each call.

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
    variant::{EngineVariant, VariantKind},
    work::BenchBody,
};

/// All installed peers, or why there are none.
pub fn find() -> Result<Vec<Box<dyn EngineVariant>>, String> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/js");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench-peers");
    if !folder.join("node_modules").is_dir() {
        return Err("run scripts/bench-peers to install them".to_owned());
    }
    let start = || Node::start(&scripts.join("peers.mjs"), &folder);
    let pair = [start(), start()].into_iter().collect::<Result<Vec<Node>, String>>()?;
    let nodes = Rc::new(RefCell::new(pair));
    let mut found: Vec<Box<dyn EngineVariant>> = Vec::new();
    for (kind, name) in [
        (VariantKind::NodeVm, "node:vm"),
        (VariantKind::IsolatedVm, "isolated-vm"),
        (VariantKind::QuickjsEmscripten, "quickjs-emscripten"),
    ] {
        if nodes.borrow()[0].offers.iter().any(|offered| offered == name) {
            found.push(Box::new(NodePeer { kind, name, nodes: Rc::clone(&nodes) }));
        } else {
            println!("without {name}: it does not load");
        }
    }
    let deno = folder.join("node_modules/.bin/deno");
    if Command::new(&deno).arg("--version").output().is_ok_and(|output| output.status.success()) {
        let script = scripts.join("deno.mjs").display().to_string();
        let arguments = ["run", "--quiet", "--no-prompt", "--no-config", "--no-remote", &script];
        let arguments = arguments.map(str::to_owned).to_vec();
        found.push(Box::new(Spawned::new(VariantKind::DenoPerCall, deno, arguments)));
    } else {
        println!("without Deno: it does not start");
    }
    Ok(found)
}

struct NodePeer {
    kind: VariantKind,
    name: &'static str,
    /// Two processes, for throughput on two cores; single calls use the first.
    nodes: Rc<RefCell<Vec<Node>>>,
}

impl NodePeer {
    fn question(&self, work: &BenchBody, span: Duration) -> Value {
        let mut question = request(work);
        question["peer"] = json!(self.name);
        question["milliseconds"] = json!(span.as_millis());
        question
    }
}

impl EngineVariant for NodePeer {
    fn kind(&self) -> VariantKind {
        self.kind
    }

    fn call(&mut self, work: &BenchBody) -> (Duration, String) {
        let question = self.question(work, Duration::ZERO);
        let mut nodes = self.nodes.borrow_mut();
        nodes[0].ask(&question);
        let answer = nodes[0].answer();
        (answer.time, answer.value)
    }

    fn rate(&mut self, work: &BenchBody, span: Duration) -> f64 {
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

struct PeerAnswer {
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

    fn answer(&mut self) -> PeerAnswer {
        let answer = self.line();
        let value = answer["value"].as_str().unwrap_or_else(|| panic!("node failed: {answer}")).to_owned();
        let time = Duration::from_nanos(answer["nanoseconds"].as_u64().expect("a time"));
        let calls = answer["calls"].as_u64().and_then(|calls| u32::try_from(calls).ok()).expect("a count");
        PeerAnswer { time, calls, value }
    }

    fn line(&mut self) -> Value {
        let line = self.lines.next().expect("node lives").expect("its answer is text");
        serde_json::from_str(&line).expect("its answer is JSON")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The process has no state worth keeping.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
