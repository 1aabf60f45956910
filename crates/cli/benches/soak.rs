//! Does the gateway hold under load while its workers are killed, clients hang up, files change and it is stopped? `-- --seconds 600` for long.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and fails loudly"
)]

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

fn main() {
    let seconds = std::env::args().skip_while(|argument| argument != "--seconds").nth(1);
    let span = Duration::from_secs(seconds.and_then(|text| text.parse().ok()).unwrap_or(30));
    let folder = tempfile::tempdir().unwrap();
    let token = prepare(folder.path());
    let (mut gateway, address) = serve(folder.path());
    let counts = Arc::new(Counts::default());
    let end = Instant::now() + span;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let (counts, token, address) = (Arc::clone(&counts), token.clone(), address.clone());
        clients.push(thread::spawn(move || client(number, &address, &token, &counts)));
    }
    let first = resident(gateway.id());
    let mut middle = 0.0;
    while Instant::now() < end {
        kill_a_worker(gateway.id(), &counts);
        change_a_file(folder.path(), &counts);
        thread::sleep(Duration::from_millis(500));
        if middle == 0.0 && end.saturating_duration_since(Instant::now()) < span / 2 {
            middle = resident(gateway.id());
        }
    }
    let last = resident(gateway.id());
    // Before the signal and with the clients still calling: the stop must close what it finds open.
    counts.is_stopping.store(true, Ordering::SeqCst);
    Command::new("kill").args(["-TERM", &gateway.id().to_string()]).status().unwrap();
    assert!(gateway.wait().unwrap().success(), "the gateway stops in good order");
    for client in clients {
        client.join().expect("a client ends well");
    }
    report(folder.path(), &counts, span, [first, middle, last]);
}

#[derive(Default)]
struct Counts {
    released: AtomicU64,
    failed: AtomicU64,
    hung_up: AtomicU64,
    killed: AtomicU64,
    changes: AtomicU64,
    is_stopping: AtomicBool,
    is_wrong: AtomicBool,
}

fn prepare(folder: &Path) -> String {
    toolgate(folder, &["init", ".", "--preset", "none"]);
    fs::write(folder.join("toolgate.yaml"), CONFIG).unwrap();
    toolgate(folder, &["publish"]);
    toolgate(folder, &["token", "create", "soak"]).trim().to_owned()
}

fn toolgate(folder: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_toolgate")).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn serve(folder: &Path) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("serving MCP at")).expect("it serves");
    let address = line.split("http://").nth(1).unwrap().trim_end_matches("/mcp").to_owned();
    // Read on, or the gateway would wait for us.
    thread::spawn(move || lines.for_each(drop));
    (child, address)
}

/// Calls until the gateway is gone. Every tenth call is given up in the middle.
fn client(number: usize, address: &str, token: &str, counts: &Counts) {
    let mut round = number;
    let is_stopping = || counts.is_stopping.load(Ordering::SeqCst);
    loop {
        round += 1;
        let mut stream = match TcpStream::connect(address) {
            Ok(stream) => stream,
            Err(_) if is_stopping() => return,
            Err(error) => panic!("no connection: {error}"),
        };
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        match stream.write_all(request(address, token, round).as_bytes()) {
            Err(_) if is_stopping() => return,
            written => written.unwrap(),
        }
        if round.is_multiple_of(10) {
            counts.hung_up.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        if is_stopping() {
            // Answered, refused or cut: the journal says whether that was in order.
            continue;
        }
        if read.is_err() {
            counts.is_wrong.store(true, Ordering::Relaxed);
            panic!("no answer within a minute");
        }
        if answer.contains("\"words\":2") {
            counts.released.fetch_add(1, Ordering::Relaxed);
        } else {
            assert!(answer.contains("execute.worker_died") || answer.contains("execute.busy"), "{answer}");
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn request(address: &str, token: &str, number: usize) -> String {
    let body = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
        "name": "word_count", "arguments": { "text": format!("call {number}") },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    } })
    .to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: word_count\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn kill_a_worker(gateway: u32, counts: &Counts) {
    let children = fs::read_to_string(format!("/proc/{gateway}/task/{gateway}/children")).unwrap_or_default();
    let all: Vec<String> = fs::read_dir(format!("/proc/{gateway}/task"))
        .unwrap()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .chain(children.split_whitespace().map(str::to_owned))
        .collect();
    if let Some(worker) = all.first() {
        let _ = Command::new("kill").args(["-KILL", worker]).status();
        counts.killed.fetch_add(1, Ordering::Relaxed);
    }
}

/// A comment more in the configuration, and now and then a document with a mistake.
fn change_a_file(folder: &Path, counts: &Counts) {
    let number = counts.changes.fetch_add(1, Ordering::Relaxed);
    fs::write(folder.join("toolgate.yaml"), format!("{CONFIG}# {number}\n")).unwrap();
    let broken = folder.join("tools/broken.json");
    if number.is_multiple_of(4) {
        fs::write(&broken, "{ \"name\": \"broken\", \"code\": ").unwrap();
    } else if broken.exists() {
        fs::remove_file(&broken).unwrap();
    }
}

fn report(folder: &Path, counts: &Counts, span: Duration, memory: [f64; 3]) {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (released, failed) = (of(&counts.released), of(&counts.failed));
    println!("soak of {} s with {CLIENTS} clients", span.as_secs());
    println!(
        "  released {released}, failed by a killed worker or busy {failed}, given up {}",
        of(&counts.hung_up)
    );
    println!("  workers killed {}, files changed {}", of(&counts.killed), of(&counts.changes));
    println!(
        "  resident MiB at the start {:.1}, half-way {:.1}, in the end {:.1}",
        memory[0], memory[1], memory[2]
    );
    let mut open = BTreeSet::new();
    let (mut opened, mut closed) = (0_u64, 0_u64);
    for entry in journal(folder) {
        let id = entry["callId"].as_str().map(str::to_owned);
        match (entry["kind"].as_str(), id) {
            (Some("call.opened"), Some(id)) => {
                opened += 1;
                assert!(open.insert(id), "opened twice");
            }
            (Some("call.closed"), Some(id)) => {
                closed += 1;
                assert!(open.remove(&id), "closed and not open: {id}");
            }
            _ => {}
        }
    }
    println!("  calls opened {opened}, closed {closed}, without a pair {}", open.len());
    println!("  {}", toolgate(folder, &["audit", "verify"]).lines().next().unwrap_or_default());
    assert!(open.is_empty() && !counts.is_wrong.load(Ordering::Relaxed));
    assert!(released > 0);
}

/// One after the other: ten minutes of them do not fit into memory.
fn journal(folder: &Path) -> impl Iterator<Item = Value> {
    let mut files: Vec<_> =
        fs::read_dir(folder.join(".toolgate/journal")).unwrap().flatten().map(|one| one.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    let lines = files.into_iter().flat_map(|file| BufReader::new(fs::File::open(file).unwrap()).lines());
    lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["entry"].take())
}

fn resident(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(0.0) / 1024.0
}

const CLIENTS: usize = 8;
const CONFIG: &str = "version: 1\nlimits:\n  calls_per_caller: 64\n";
