//! One caller's slow calls do not keep another caller's tools waiting.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, mpsc},
    thread,
    time::Duration,
};

use serde_json::json;

use crate::place::{Place, Serving};

/// A server that holds back every answer until it is released.
struct SlowServer {
    address: SocketAddr,
    /// One message for each received request.
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

    fn answer_all(&self) {
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

/// A workspace with `word_count` and a tool that calls the server and then runs `then`. Returns tokens of Ann and Bob.
fn place_with(server: &SlowServer, then: &str, configuration: &str) -> (Place, [String; 2]) {
    let place = Place::new();
    place.configure(&format!("approvals:\n  ask_from: never\n{configuration}"));
    let code =
        format!("if (text !== 'go') return 'idle'; await fetch(`http://127.0.0.1:${{PORT}}/`); {then}");
    place.write_tool(
        "slow",
        &json!({
            "code": code,
            "staticVariables": [{ "PORT": server.address.port().to_string() }],
            "sandboxOverrides": { "networkMode": "allowlist", "hostsAllow": ["127.0.0.1"] },
        }),
    );
    place.write_tool("word_count", &json!({ "code": "return text.split(' ').length" }));
    place.ok(&["publish", "--yes"]);
    let tokens = ["ann", "bob"].map(|name| place.ok(&["token", "create", name]).trim().to_owned());
    (place, tokens)
}

fn count_words(serving: &Serving, token: &str) {
    for _ in 0..3 {
        let answer = serving.call_text(token, "word_count", &json!({ "text": "to be or not" }));
        assert!(answer.contains("\"text\":\"4\""), "{answer}");
    }
}

/// Ann makes slow calls; `at_once` of them hold a worker. Bob's calls end before the server answers any of Ann's.
fn check(slow_calls: usize, at_once: usize, configuration: &str) {
    let server = SlowServer::start();
    let (place, [ann, bob]) = place_with(&server, "return 'done'", configuration);
    let serving = Serving::start(&place);
    let slow = || serving.call_text(&ann, "slow", &json!({ "text": "go" }));
    let answers: Vec<String> = thread::scope(|scope| {
        let calls: Vec<_> = (0..slow_calls).map(|_| scope.spawn(slow)).collect();
        for _ in 0..at_once {
            server.asked.recv_timeout(Duration::from_mins(1)).unwrap();
        }
        count_words(&serving, &bob);
        server.answer_all();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    // A timed-out call of Ann would mean that Bob's calls waited as long.
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

/// Calls beyond `limits.calls_per_caller` are queued. All of them are answered.
#[test]
fn all_calls_of_64_connections_of_one_token_are_answered() {
    check(64, 3, "");
}

#[test]
fn second_worker_is_kept_for_another_caller() {
    check(4, 1, "worker:\n  count: 2\n");
}

#[test]
fn computing_calls_of_one_caller_do_not_keep_another_caller_waiting() {
    let server = SlowServer::start();
    server.answer_all();
    let compute = "const end = Date.now() + 10000; while (Date.now() < end); return 'done'";
    let (place, [ann, bob]) = place_with(&server, compute, "");
    let serving = Serving::start(&place);
    let calls: Vec<TcpStream> =
        (0..4).map(|_| serving.begin(&ann, "slow", &json!({ "text": "go" }))).collect();
    // The first two are computing, or will soon.
    for _ in 0..2 {
        server.asked.recv_timeout(Duration::from_mins(1)).unwrap();
    }
    count_words(&serving, &bob);
    for mut call in calls {
        call.set_nonblocking(true).unwrap();
        let mut answer = [0; 4096];
        let read = call.read(&mut answer).unwrap_or(0);
        assert!(!String::from_utf8_lossy(&answer[..read]).contains("done"), "Bob waited for Ann's call");
    }
}
