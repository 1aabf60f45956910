//! A complete gateway reports an attacking worker. This program is the worker: it answers and then attacks.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};
use toolgate::{Config, Extras, Toolgate};
use toolgate_config::Overrides;

use crate::{PATIENCE, gateway::document};

/// The attack of this program as a worker.
pub const ATTEMPT: &str = "mmap executable after the answer";

pub fn check() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tools")).unwrap();
    fs::write(folder.path().join("tools/tried.json"), document("return 1").to_string()).unwrap();
    let (url, heard) = hook();
    let text = format!("version: 1\naudit:\n  webhook:\n    url: {url}\n");
    let mut config = Config::parse(&text, folder.path(), &|_| None, &Overrides::default()).unwrap();
    folder.path().clone_into(&mut config.workspace);
    config.state = folder.path().join("state");
    config.tools = vec![folder.path().join("tools")];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let toolgate = Toolgate::open(config, Extras::default()).await.unwrap();
        let trials = toolgate.publish_all().await.unwrap();
        assert_eq!(trials.len(), 1);
        // No later call uses the worker.
        let posted = heard.recv_timeout(PATIENCE).expect("the webhook is told");
        let posted: Value = serde_json::from_str(&posted).unwrap();
        assert_eq!((&posted["kind"], &posted["calls"]), (&json!("worker.escape_attempt"), &json!(1)));
        assert_eq!(toolgate.gate().metrics().escape_attempts(), 1);
        toolgate.close().unwrap();
        let written = records(&folder.path().join("state/journal"));
        let of_kind = |kind: &str| written.iter().filter(|entry| entry["kind"] == kind).collect::<Vec<_>>();
        let attempts = of_kind("worker.escape_attempt");
        assert_eq!(attempts.len(), 1, "{attempts:?}");
        let call = of_kind("call.closed")[0];
        assert_eq!(attempts[0]["worker"], call["run"]["worker"], "the alarm leads to the call: {call}");
        assert_eq!(posted["worker"], call["run"]["worker"]);
    });
}

fn records(folder: &Path) -> Vec<Value> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let text: String = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"].clone()).collect()
}

/// A webhook that accepts everything and returns the bodies.
fn hook() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (tell, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let body = loop {
                let mut some = [0; 4_096];
                let count = stream.read(&mut some).unwrap();
                request.extend_from_slice(&some[..count]);
                let text = String::from_utf8_lossy(&request);
                // The body is one object without braces in its values.
                if count == 0 || text.ends_with('}') {
                    break text.rsplit("\r\n").next().unwrap().to_owned();
                }
            };
            let answer = "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
            let _ = tell.send(body);
        }
    });
    (url, heard)
}
