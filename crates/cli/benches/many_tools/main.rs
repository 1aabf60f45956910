//! The time from an edit to it being live, memory over reloads, idle CPU, `list` and `call`, with 10 tools and with 10,000.
//!
//! Both gateways run at the same time and take turns, so a busy machine slows down both. `-- --tools 1000` takes fewer.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and fails loudly"
)]

#[path = "../shared/gateway.rs"]
mod gateway;
#[path = "../shared/times.rs"]
mod times;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Child,
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant, SystemTime},
};

use serde_json::json;
use times::{median, ratio};
use toolgate::{Config, Extras, JournalOwner, Toolgate};
use toolgate_config::Overrides;

fn main() {
    toolgate::run_if_worker();
    let tools = std::env::args().skip_while(|argument| argument != "--tools").nth(1);
    let many = tools.and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let [mut few, mut many] = [10, many].map(BenchGateway::start);
    // The first edits fill caches and buffers.
    for gateway in [&mut few, &mut many] {
        gateway.edit();
    }
    let first = many.memory();
    let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_few.push(few.edit());
        of_many.push(many.edit());
    }
    let (few_time, many_time) = (median(&of_few), median(&of_many));
    println!(
        "an edit is live after {few_time:.1?} with {} tools and {many_time:.1?} with {}",
        few.tools, many.tools
    );
    judge("ratio of the time from an edit to it being live", ratio(many_time, few_time), 1.5);
    let last = many.memory();
    println!("resident memory: {first} KiB after the first reload, {last} KiB after {} reloads", 2 * ROUNDS);
    judge("ratio of memory", last / first, 1.3);
    let before = [few.cpu(), many.cpu()];
    thread::sleep(IDLE);
    let after = [few.cpu(), many.cpu()];
    for (gateway, (before, after)) in [&few, &many].into_iter().zip(before.into_iter().zip(after)) {
        println!(
            "idle for {IDLE:?} with {} tools: {:.1?} of CPU",
            gateway.tools,
            after.saturating_sub(before)
        );
    }
    for arguments in [&["call", "tool_00001", "value=1"][..], &["list"]] {
        let [few_time, many_time] = [&few, &many]
            .map(|gateway| median(&(0..3).map(|_| gateway.command(arguments)).collect::<Vec<_>>()));
        println!("`toolgate {}` takes {few_time:.1?} and {many_time:.1?}", arguments[0]);
    }
    for mut gateway in [few, many] {
        let _ = gateway.child.kill();
        let _ = gateway.child.wait();
    }
}

struct BenchGateway {
    folder: tempfile::TempDir,
    tools: usize,
    child: Child,
    lines: Receiver<String>,
}

impl BenchGateway {
    fn start(tools: usize) -> Self {
        // In memory if possible: flushes of a disk would hide what is measured.
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let file = folder.path().join("toolgate.yaml");
        fs::write(&file, "version: 1\ncatalog: {preset: none}\nserver: {listen: '127.0.0.1:0'}\napprovals: {ask_from: never}\n").unwrap();
        fs::create_dir(folder.path().join("tools")).unwrap();
        for number in 0..tools {
            fs::write(tool_file(folder.path(), number), document(number, number)).unwrap();
        }
        publish(&file);
        let (child, _, log) = gateway::serve(folder.path());
        let (send, lines) = mpsc::channel();
        thread::spawn(move || log.map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { folder, tools, child, lines }
    }

    /// Edits a tool, and undoes the edit: then the published document is there again, and the tool is live. Returns the
    /// time of the second step.
    fn edit(&mut self) -> Duration {
        let file = tool_file(self.folder.path(), 5);
        self.replace(&file, &document(5, 99_999));
        self.wait_for(&format!("{} tools are live", self.tools - 1));
        let begun = Instant::now();
        self.replace(&file, &document(5, 5));
        self.wait_for(&format!("{} tools are live", self.tools));
        begun.elapsed()
    }

    /// Writes a new file and renames it, as editors do.
    fn replace(&self, file: &Path, text: &str) {
        let draft = self.folder.path().join("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, file).unwrap();
    }

    fn wait_for(&self, text: &str) {
        loop {
            let line = self.lines.recv_timeout(Duration::from_mins(5)).expect(text);
            if line.contains(text) {
                return;
            }
        }
    }

    fn command(&self, arguments: &[&str]) -> Duration {
        let begun = Instant::now();
        gateway::toolgate(self.folder.path(), arguments);
        begun.elapsed()
    }

    /// Resident memory in KiB.
    fn memory(&self) -> f64 {
        f64::from(u32::try_from(gateway::resident_kib(self.child.id())).unwrap())
    }

    /// CPU time of all threads.
    fn cpu(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of_task = |task: PathBuf| -> Option<u64> {
            fs::read_to_string(task.join("schedstat")).ok()?.split_whitespace().next()?.parse().ok()
        };
        Duration::from_nanos(tasks.filter_map(|task| of_task(task.unwrap().path())).sum())
    }
}

fn tool_file(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("tools/tool_{number:05}.json"))
}

fn document(number: usize, added: usize) -> String {
    json!({
        "name": format!("tool_{number:05}"),
        "description": format!("Adds {added} to a number and returns the sum as text."),
        "codeType": "Javascript",
        "code": format!("return String(Number(value) + {added})"),
        "params": [{
            "name": "value", "type": "NUMBER", "description": "The number to add to.", "required": true, "testValue": "1",
        }],
    })
    .to_string()
}

/// Marks all tools as passed and published without running them.
fn publish(file: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let config = Config::load(file, &|_| None, &Overrides::default()).unwrap();
        let extras = Extras { journal_owner: JournalOwner::Command, ..Extras::default() };
        let toolgate = Box::pin(Toolgate::open(config, extras)).await.unwrap();
        for tool in &toolgate.loaded().tools {
            let candidate = tool.candidate.as_ref().unwrap();
            toolgate.publisher().accept_release_pass(candidate, SystemTime::now(), &|| Ok(())).unwrap();
        }
        toolgate.close().unwrap();
    });
}

fn judge(what: &str, ratio: f64, goal: f64) {
    let verdict = if ratio <= goal { "met" } else { "MISSED" };
    println!("{what}: {ratio:.2} (goal: at most {goal}) {verdict}");
}

const ROUNDS: usize = 20;
const IDLE: Duration = Duration::from_secs(10);
