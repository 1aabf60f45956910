//! The same over a pair of pipes.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    task::JoinHandle,
};
use toolgate_policy::Caller;
use toolgate_server::{CallerNow, DoorCode, DoorEvents, StdioError, serve_stdio};

use crate::{
    client::MODERN,
    fakes::Does,
    world::{ASKS, TRUSTS, World, until},
};

pub struct Pipe {
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    server: JoinHandle<Result<(), StdioError>>,
    refused: Arc<Refused>,
}

/// Code and caller of every line that was refused.
#[derive(Default)]
struct Refused(Mutex<Vec<(String, String)>>);

impl DoorEvents for Refused {
    fn refused(&self, code: DoorCode, _: Option<IpAddr>, _: &str) {
        panic!("{code:?} without a caller");
    }

    fn refused_caller(&self, code: DoorCode, _: Option<IpAddr>, caller: &str, _: &str) {
        self.0.lock().unwrap().push((code.code().to_owned(), caller.to_owned()));
    }
}

impl Pipe {
    pub fn to(world: &Arc<World>) -> Self {
        Self::of(world, Caller::new("local", ["see"]).into())
    }

    fn of(world: &Arc<World>, caller: CallerNow) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let world = Arc::clone(world);
        let refused = Arc::<Refused>::default();
        let events = Arc::clone(&refused);
        let server = tokio::spawn(async move {
            let (gate, shutdown) = (world.gate.clone(), world.shutdown.clone());
            serve_stdio(gate, &world.settings, caller, tokio::io::split(theirs), events, shutdown).await
        });
        let (read, write) = tokio::io::split(ours);
        Self { read: BufReader::new(read).lines(), write, server, refused }
    }

    pub fn refusals(&self) -> Vec<(String, String)> {
        self.refused.0.lock().unwrap().clone()
    }

    pub async fn write_line(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn say(&mut self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    pub async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(30), self.read.next_line());
        serde_json::from_str(&line.await.expect("an answer").unwrap().expect("a line")).unwrap()
    }

    pub async fn ask(&mut self, message: &Value) -> Value {
        self.say(message).await;
        self.hear().await
    }

    pub async fn shake_hands(&mut self, era: &str, capabilities: Value) {
        let params = json!({
            "protocolVersion": era, "capabilities": capabilities, "clientInfo": {"name": "raw", "version": "1"},
        });
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        assert_eq!(self.ask(&hello).await["result"]["protocolVersion"], era);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    pub async fn end(self) -> Result<(), StdioError> {
        drop((self.read, self.write));
        tokio::time::timeout(Duration::from_secs(30), self.server).await.expect("an end").unwrap()
    }
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

fn modern(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    message
}

#[tokio::test]
async fn a_session_lists_calls_hears_of_changes_and_ends() {
    let world = Arc::new(World::new());
    world.add("echo", "x-toolgate-permissions: {required: [see]}", Does::Echo);
    let mut pipe = Pipe::to(&world);
    pipe.shake_hands("2025-06-18", json!({})).await;
    let listed = pipe.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "echo");
    let called = pipe.ask(&call(2, "echo", &json!({"n": 1}))).await;
    assert_eq!(called["result"]["content"][0]["text"], r#"{"n":1}"#);
    world.add("more", "", Does::Echo);
    assert_eq!(pipe.hear().await["method"], "notifications/tools/list_changed");
    let record = world.journal.0.lock().unwrap()[0].clone();
    assert_eq!((record.caller.sub.as_str(), record.client.transport), ("local", "stdio"));
    pipe.end().await.unwrap();
}

#[tokio::test]
async fn a_stateless_client_calls_without_a_handshake_and_is_asked_by_result() {
    let world = Arc::new(World::new());
    let tool = world.add("pay", ASKS, Does::Echo);
    let mut pipe = Pipe::to(&world);
    let asked = pipe.ask(&modern(call(1, "pay", &json!({"sum": 5})))).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut again = modern(call(2, "pay", &json!({"sum": 5})));
    again["params"]["requestState"] = asked["result"]["requestState"].clone();
    again["params"]["inputResponses"] = json!({"approval": {"action": "accept"}});
    assert_eq!(pipe.ask(&again).await["result"]["content"][0]["text"], r#"{"sum":5}"#);
    assert_eq!(tool.begun(), 1);
    pipe.end().await.unwrap();
}

#[tokio::test]
async fn a_session_is_asked_in_the_middle_of_the_call() {
    let world = Arc::new(World::new());
    let tool = world.add("pay", ASKS, Does::Echo);
    let mut pipe = Pipe::to(&world);
    pipe.shake_hands("2025-11-25", json!({"elicitation": {}})).await;
    let question = pipe.ask(&call(1, "pay", &json!({}))).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let yes = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(pipe.ask(&yes).await["result"]["isError"], false);
    assert_eq!(tool.begun(), 1);
    pipe.end().await.unwrap();
}

/// The operator removes a permission or changes the caller while the approval is pending.
#[tokio::test]
async fn a_call_that_waits_ends_when_the_local_caller_is_edited() {
    for edited in [Caller::new("local", [""; 0]), Caller::new("other", ["see"])] {
        let world = Arc::new(World::new());
        let tool = world.add("pay", ASKS, Does::Echo);
        let local = Arc::new(Mutex::new(Caller::new("local", ["see"])));
        let now = CallerNow::new({
            let local = Arc::clone(&local);
            move || local.lock().unwrap().clone()
        });
        let mut pipe = Pipe::of(&world, now);
        pipe.shake_hands("2025-11-25", json!({"elicitation": {}})).await;
        let question = pipe.ask(&call(1, "pay", &json!({}))).await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        *local.lock().unwrap() = edited;
        // Unasked: nobody has said anything yet.
        let ended = pipe.hear().await;
        let text = ended["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("code: decide.caller_lapsed"), "{ended}");
        assert_eq!(tool.begun(), 0);
        pipe.end().await.unwrap();
    }
}

/// A call of a tool that may be trusted. `None`: it ran unasked; else the question that its person said yes to.
async fn paid(pipe: &mut Pipe, id: u64, message: Value) -> Option<Value> {
    let heard = pipe.ask(&message).await;
    if heard["result"]["isError"] == false {
        return None;
    }
    let answer = if heard["method"] == "elicitation/create" {
        json!({"jsonrpc": "2.0", "id": heard["id"], "result": {"action": "accept"}})
    } else {
        assert_eq!(heard["result"]["resultType"], "input_required", "{heard}");
        let mut again = message;
        again["id"] = json!(id + 100);
        again["params"]["requestState"] = heard["result"]["requestState"].clone();
        again["params"]["inputResponses"] = json!({"approval": {"action": "accept"}});
        again
    };
    assert_eq!(pipe.ask(&answer).await["result"]["isError"], false);
    Some(heard)
}

/// Both are the same caller's: what was approved in one process lets another run nothing else.
#[tokio::test]
async fn trust_does_not_pass_from_one_process_to_another() {
    let world = Arc::new(World::new());
    world.add("pay", TRUSTS, Does::Echo);
    let (mut one, mut other) = (Pipe::to(&world), Pipe::to(&world));
    for pipe in [&mut one, &mut other] {
        pipe.shake_hands("2025-11-25", json!({"elicitation": {}})).await;
    }
    assert!(paid(&mut one, 1, call(1, "pay", &json!({"sum": 1}))).await.is_some());
    assert!(paid(&mut one, 2, call(2, "pay", &json!({"sum": 2}))).await.is_none(), "trusted now");
    assert!(paid(&mut other, 3, call(3, "pay", &json!({"sum": 3}))).await.is_some(), "trusted elsewhere");
    let said = world.journal.clients();
    assert_eq!(said[0]["conversation"], said[1]["conversation"]);
    assert_ne!(said[1]["conversation"], said[2]["conversation"]);
    one.end().await.unwrap();
    other.end().await.unwrap();
}

/// Nor where there is no handshake, or both give their conversation the same name.
#[tokio::test]
async fn trust_of_stateless_processes_is_their_own_whatever_they_name() {
    let world = Arc::new(World::new());
    world.add("pay", TRUSTS, Does::Echo);
    let (mut one, mut other) = (Pipe::to(&world), Pipe::to(&world));
    let named = |id: u64, name: Option<&str>| {
        let mut message = modern(call(id, "pay", &json!({"sum": id})));
        if let Some(name) = name {
            message["params"]["_meta"]["dev.toolgate/conversation"] = json!(name);
        }
        message
    };
    assert!(paid(&mut one, 1, named(1, None)).await.is_some());
    assert!(paid(&mut one, 2, named(2, None)).await.is_none(), "trusted now");
    assert!(paid(&mut one, 3, named(3, Some("talk"))).await.is_some(), "another conversation");
    assert!(paid(&mut one, 4, named(4, Some("talk"))).await.is_none(), "trusted now");
    for (id, name) in [(5, None), (6, Some("talk"))] {
        assert!(paid(&mut other, id, named(id, name)).await.is_some(), "{name:?} was trusted elsewhere");
    }
    one.end().await.unwrap();
    other.end().await.unwrap();
}

#[tokio::test]
async fn a_cancelled_call_and_one_whose_client_left_end() {
    let world = Arc::new(World::new());
    let tool = world.add("hang", "", Does::Hangs);
    let mut pipe = Pipe::to(&world);
    pipe.shake_hands("2025-11-25", json!({})).await;
    pipe.say(&call(1, "hang", &json!({}))).await;
    until("the tool runs", || tool.begun() == 1).await;
    pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    until("the run was dropped", || tool.dropped() == 1).await;
    pipe.say(&call(2, "hang", &json!({}))).await;
    until("the tool runs again", || tool.begun() == 2).await;
    pipe.end().await.unwrap();
    until("the second run was dropped", || tool.dropped() == 2).await;
    until("both are in the journal", || world.journal.ends().len() == 2).await;
    assert!(world.journal.ends().iter().all(|(_, reason)| *reason == Some("execute.cancelled")));
}

#[tokio::test]
async fn duplicate_id_is_refused_and_the_first_call_is_answered() {
    for is_modern in [false, true] {
        let world = Arc::new(World::new());
        let slow = world.add("slow", "", Does::Sleeps(1_000));
        let fast = world.add("fast", "", Does::Echo);
        let mut pipe = Pipe::to(&world);
        let written = |message: Value| if is_modern { modern(message) } else { message };
        if !is_modern {
            pipe.shake_hands("2025-11-25", json!({})).await;
        }
        pipe.say(&written(call(1, "slow", &json!({})))).await;
        until("the tool runs", || slow.begun() == 1).await;
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        for again in [call(1, "fast", &json!({})), call(1, "slow", &json!({})), list] {
            let refused = pipe.ask(&written(again)).await;
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32600)), "{refused}");
        }
        let answered = pipe.hear().await;
        assert_eq!((&answered["id"], &answered["result"]["isError"]), (&json!(1), &json!(false)));
        assert_eq!((slow.begun(), fast.begun()), (1, 0));
        assert_eq!(world.journal.ends(), [("slow".to_owned(), None)], "nothing else was released");
        let free = pipe.ask(&written(call(1, "fast", &json!({})))).await;
        assert_eq!(free["result"]["isError"], false, "{free}");
        pipe.end().await.unwrap();
    }
}

#[tokio::test]
async fn lines_that_are_too_long_or_no_messages_do_no_harm() {
    let world = Arc::new(World::new());
    world.add("echo", "", Does::Echo);
    let mut pipe = Pipe::to(&world);
    pipe.shake_hands("2025-11-25", json!({})).await;
    pipe.say(&call(1, "echo", &json!({"a": "x".repeat(200_000)}))).await;
    for nonsense in ["{", "\u{0}\u{0}", "", "null garbage"] {
        pipe.write.write_all(format!("{nonsense}\n").as_bytes()).await.unwrap();
    }
    pipe.say(&call(2, "echo", &json!({}))).await;
    let answer = loop {
        let heard = pipe.hear().await;
        if heard.get("id").is_some_and(|id| !id.is_null()) {
            break heard;
        }
        assert!(heard["error"].is_object(), "{heard}");
    };
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(2), &json!(false)));
    pipe.end().await.unwrap();
}

#[tokio::test]
async fn a_message_with_two_readings_is_refused() {
    let world = Arc::new(World::new());
    let tool = world.add("echo", "", Does::Echo);
    let mut pipe = Pipe::to(&world);
    pipe.shake_hands("2025-11-25", json!({})).await;
    for mark in ["", "\u{feff}"] {
        let line = call(1, "echo", &json!({"n": 1})).to_string().replace(r#""n":1"#, r#""n":1,"n":2"#);
        pipe.write.write_all(format!("{mark}{line}\n").as_bytes()).await.unwrap();
        let refused = pipe.hear().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(null), &json!(-32600)), "{refused}");
    }
    let sound = pipe.ask(&call(2, "echo", &json!({"n": 1}))).await;
    assert_eq!(sound["result"]["content"][0]["text"], r#"{"n":1}"#);
    assert_eq!(tool.begun(), 1);
    pipe.end().await.unwrap();
}

#[tokio::test]
async fn a_client_that_never_speaks_and_a_shutdown_are_no_mistakes() {
    let world = Arc::new(World::new());
    Pipe::to(&world).end().await.unwrap();
    let mut pipe = Pipe::to(&world);
    pipe.shake_hands("2025-11-25", json!({})).await;
    world.shutdown.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(30), &mut pipe.server);
    ended.await.expect("an end").unwrap().unwrap();
}

#[tokio::test]
async fn a_version_that_nobody_knows_is_answered_with_one_that_is_known() {
    let world = Arc::new(World::new());
    let mut pipe = Pipe::to(&world);
    let params = json!({
        "protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    assert_eq!(pipe.ask(&hello).await["result"]["protocolVersion"], "2025-11-25");
    pipe.end().await.unwrap();
}
