//! One caller's slow calls do not keep another caller's tools waiting.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, mpsc},
    thread,
};

use serde_json::json;

use crate::place::{Place, Serving};

/// A server that answers nobody until it may.
struct SlowServer {
    address: SocketAddr,
    /// One message for each request that has come.
    asked: mpsc::Receiver<()>,
    may_answer: Arc<(Mutex<bool>, Condvar)>,
}

impl SlowServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (send, asked) = mpsc::channel();
        let may_answer: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let gate = Arc::clone(&may_answer);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (gate, send) = (Arc::clone(&gate), send.clone());
                thread::spawn(move || answer(stream, &gate, &send));
            }
        });
        Self { address, asked, may_answer }
    }

    fn answer_everybody(&self) {
        *self.may_answer.0.lock().unwrap() = true;
        self.may_answer.1.notify_all();
    }
}

fn answer(mut stream: TcpStream, (may_answer, changed): &(Mutex<bool>, Condvar), asked: &mpsc::Sender<()>) {
    let _ = stream.read(&mut [0; 4096]);
    let _ = asked.send(());
    drop(changed.wait_while(may_answer.lock().unwrap(), |may_answer| !*may_answer).unwrap());
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

/// Ann makes slow calls, of which so many hold a worker at once. Bob's calls end before the server answers any of Ann's.
fn check(slow_calls: usize, at_once: usize, configuration: &str) {
    let (place, server) = (Place::new(), SlowServer::start());
    place.configure(&format!("approvals:\n  default: never\n{configuration}"));
    place.write_tool(
        "slow",
        &json!({
            "code": "if (text !== 'go') return 'idle'; await fetch(`http://127.0.0.1:${PORT}/`); return 'done'",
            "staticVariables": [{ "PORT": server.address.port().to_string() }],
            "sandboxOverrides": { "networkMode": "allowlist", "hostsAllow": ["127.0.0.1"] },
        }),
    );
    place.write_tool("word_count", &json!({ "code": "return text.split(' ').length" }));
    place.ok(&["publish", "--yes"]);
    let [ann, bob] = ["ann", "bob"].map(|name| place.ok(&["token", "create", name]).trim().to_owned());
    let serving = Serving::start(&place);
    let slow = || serving.call_text(&ann, "slow", &json!({ "text": "go" }));
    let answers: Vec<String> = thread::scope(|scope| {
        let calls: Vec<_> = (0..slow_calls).map(|_| scope.spawn(slow)).collect();
        for _ in 0..at_once {
            server.asked.recv().unwrap();
        }
        for _ in 0..3 {
            let answer = serving.call_text(&bob, "word_count", &json!({ "text": "to be or not" }));
            assert!(answer.contains("\"text\":\"4\""), "{answer}");
        }
        server.answer_everybody();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    // A call that gave up waiting for the server would show that Bob's calls waited as long.
    assert!(answers.iter().all(|answer| answer.contains("done")), "{answers:?}");
    serving.stop();
}

#[test]
fn two_slow_calls_of_one_caller_do_not_keep_another_caller_waiting() {
    check(2, 2, "");
}

#[test]
fn many_slow_calls_of_one_caller_do_not_keep_another_caller_waiting() {
    check(4, 3, "");
    check(20, 3, "");
}

#[test]
fn second_worker_is_kept_for_another_caller() {
    check(4, 1, "worker:\n  count: 2\n");
}
