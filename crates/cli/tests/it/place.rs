//! A workspace per test, and a gateway that serves it.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// A directory created by `toolgate init`.
pub struct Place {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() };
        place.ok(&["init", "--preset", "none", "."]);
        place
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sets an environment variable for all later commands.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    fn program(&self) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        program
            .current_dir(self.path())
            .env_remove("TOOLGATE_CONFIG")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        program
    }

    pub fn toolgate(&self, arguments: &[&str]) -> Output {
        self.program().args(arguments).output().unwrap()
    }

    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.toolgate(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}{complaint}");
        text
    }

    #[track_caller]
    pub fn fails(&self, arguments: &[&str], code: i32) -> String {
        let output = self.toolgate(arguments);
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    pub fn write_tool(&self, name: &str, change: &Value) {
        let mut document = json!({
            "name": name,
            "description": "Says what it was told, for tests. Returns the text.",
            "codeType": "Javascript",
            "code": "return `${text}!`",
            "params": [{ "name": "text", "description": "What to say", "type": "STRING", "required": true, "testValue": "hi" }],
        });
        for (key, value) in change.as_object().unwrap() {
            document[key] = value.clone();
        }
        fs::write(self.path().join(format!("tools/{name}.json")), document.to_string()).unwrap();
    }

    /// Starts a command in the background.
    pub fn start(&self, arguments: &[&str]) -> Child {
        self.program().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Starts a gateway over stdio.
    pub fn serve_stdio(&self) -> Child {
        self.program()
            .args(["serve", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Replaces the configuration atomically, so a running gateway never reads half of it.
    pub fn configure(&self, text: &str) {
        let draft = self.path().join("toolgate.yaml.draft");
        fs::write(&draft, format!("version: 1\n{text}")).unwrap();
        fs::rename(draft, self.path().join("toolgate.yaml")).unwrap();
    }

    pub fn journal(&self, folder: &str) -> Vec<Value> {
        let text = self.journal_text(folder);
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"].take()).collect()
    }

    /// Reads a journal that a gateway is writing. It may be missing, and its last line may be incomplete.
    pub fn journal_so_far(&self, folder: &str) -> Vec<Value> {
        if !self.path().join(".toolgate").join(folder).exists() {
            return Vec::new();
        }
        let text = self.journal_text(folder);
        let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        whole.map(|mut line| line["entry"].take()).collect()
    }

    fn journal_text(&self, folder: &str) -> String {
        let mut files: Vec<PathBuf> = fs::read_dir(self.path().join(".toolgate").join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .collect();
        files.sort();
        files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
    }
}

/// Waits until the condition is true.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    // A guard against hanging, not a measurement.
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A running gateway.
pub struct Serving {
    pub child: Child,
    pub address: String,
    /// Locked, because clients on several threads share the gateway.
    said: Mutex<mpsc::Receiver<String>>,
}

impl Serving {
    pub fn start(place: &Place) -> Self {
        Self::start_with(place, &["--listen", "127.0.0.1:0"])
    }

    pub fn start_as_configured(place: &Place) -> Self {
        Self::start_with(place, &[])
    }

    pub fn start_with(place: &Place, more: &[&str]) -> Self {
        let mut child = place
            .program()
            .arg("serve")
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        Self::heard(child, stderr)
    }

    /// Ignores SIGXFSZ: a write beyond the file size limit is an error and does not kill the gateway.
    pub fn start_enduring(place: &Place) -> Self {
        let program = env!("CARGO_BIN_EXE_toolgate");
        let mut child = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" serve --listen 127.0.0.1:0", program])
            .current_dir(place.path())
            .env_remove("TOOLGATE_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        Self::heard(child, stderr)
    }

    /// Limits the size of the gateway's files, to simulate a full disk.
    pub fn limit_files(&self, bytes: &str) {
        let pid = self.child.id().to_string();
        let limit = format!("--fsize={bytes}:unlimited");
        assert!(Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap().success());
    }

    /// A gateway whose log is read by a thread.
    pub fn heard(child: Child, said: impl Read + Send + 'static) -> Self {
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(said).lines().map_while(Result::ok).for_each(|line| drop(send.send(line)));
        });
        let mut serving = Self { child, address: String::new(), said: Mutex::new(lines) };
        let line = serving.wait_for("serving MCP at http://");
        let (_, rest) = line.split_once("http://").unwrap();
        rest.split("/mcp").next().unwrap().clone_into(&mut serving.address);
        serving
    }

    /// The next log line.
    #[track_caller]
    pub fn line(&self) -> String {
        self.said.lock().unwrap().recv_timeout(PATIENCE).unwrap()
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut heard = String::new();
        let said = self.said.lock().unwrap();
        while let Ok(line) = said.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(text) {
                return line;
            }
            heard.push_str(&line);
            heard.push('\n');
        }
        panic!("`{text}` was never logged, but:\n{heard}");
    }

    /// Starts a call without reading its answer. Dropping the stream disconnects the client.
    pub fn begin(&self, token: &str, tool: &str, arguments: &Value) -> TcpStream {
        let message = stateless("tools/call", json!({ "name": tool, "arguments": arguments }));
        self.send("/mcp", Some(token), &message, &repeated(&message))
    }

    /// Status and body of one request.
    pub fn post(&self, token: Option<&str>, body: &Value, headers: &[(&str, &str)]) -> (u16, String, String) {
        self.post_to("/mcp", token, body, headers)
    }

    pub fn post_to(
        &self,
        path: &str,
        token: Option<&str>,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> (u16, String, String) {
        let headers: Vec<_> = headers.iter().copied().chain([("connection", "close")]).collect();
        let answer = read(self.send(path, token, body, &headers));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, head.to_owned(), body.to_owned())
    }

    /// Like `post`, with a body of any text.
    pub fn post_text(&self, token: &str, body: &str) -> (u16, String) {
        let answer = read(self.send_text("/mcp", Some(token), body, &[("connection", "close")]));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, body.to_owned())
    }

    /// Sends a request and returns the stream for its answer.
    fn send(&self, path: &str, token: Option<&str>, body: &Value, headers: &[(&str, &str)]) -> TcpStream {
        self.send_text(path, token, &body.to_string(), headers)
    }

    fn send_text(&self, path: &str, token: Option<&str>, body: &str, headers: &[(&str, &str)]) -> TcpStream {
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            self.address,
            body.len()
        );
        if let Some(token) = token {
            write!(request, "authorization: Bearer {token}\r\n").unwrap();
        }
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").unwrap();
        }
        self.write(&format!("{request}\r\n{body}"))
    }

    fn write(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// The answer with head and body.
    pub fn get(&self, path: &str, token: &str) -> String {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n",
            self.address
        );
        read(self.write(&request))
    }

    /// Sends a request of the stateless protocol and returns the JSON answer.
    #[track_caller]
    pub fn modern(&self, token: &str, method: &str, params: Value) -> Value {
        self.ask(Some(token), method, params).1
    }

    /// Like `modern`, with an optional token, and returns the status, too.
    #[track_caller]
    pub fn ask(&self, token: Option<&str>, method: &str, params: Value) -> (u16, Value) {
        let message = stateless(method, params);
        let (status, head, text) = self.post(token, &message, &repeated(&message));
        (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} {head}\n{text}")))
    }

    /// The answer to a call as text. A slow call is answered by a stream.
    pub fn call_text(&self, token: &str, tool: &str, arguments: &Value) -> String {
        let message = stateless("tools/call", json!({ "name": tool, "arguments": arguments }));
        self.post(Some(token), &message, &repeated(&message)).2
    }

    pub fn call(&self, token: &str, tool: &str, arguments: &Value) -> Value {
        self.modern(token, "tools/call", json!({ "name": tool, "arguments": arguments }))["result"].take()
    }

    pub fn names(&self, token: &str) -> Vec<String> {
        let listed = self.modern(token, "tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Stops the gateway and returns the unread log lines.
    pub fn stop(mut self) -> Vec<String> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                let said = self.said.lock().unwrap();
                return std::iter::from_fn(|| said.recv_timeout(PATIENCE).ok()).collect();
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the gateway does not stop");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A message of the stateless protocol.
fn stateless(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": ERA,
        "io.modelcontextprotocol/clientInfo": { "name": "tests", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// The headers that repeat fields of the message.
fn repeated(message: &Value) -> Vec<(&str, &str)> {
    let mut headers = vec![("mcp-protocol-version", ERA)];
    headers.extend(message["method"].as_str().map(|method| ("mcp-method", method)));
    headers.extend(message["params"]["name"].as_str().map(|name| ("mcp-name", name)));
    headers
}

/// Reads until the server closes the connection.
fn read(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const ERA: &str = "2026-07-28";

pub fn token(place: &Place, more: &[&str]) -> String {
    let mut arguments = vec!["token", "create", "tests"];
    arguments.extend(more);
    place.ok(&arguments).trim().to_owned()
}

/// A guard against hanging, not a measurement.
const PATIENCE: Duration = Duration::from_mins(1);
