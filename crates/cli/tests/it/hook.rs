//! A local HTTP server that the gateway calls: a webhook, a token issuer or a collector.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::Value;

/// A server that gives every request the same answer and records the requests.
pub struct Hook {
    address: SocketAddr,
    heard: mpsc::Receiver<(String, String)>,
}

impl Hook {
    pub fn answering(status: &'static str) -> Self {
        Self::with(status, String::new())
    }

    /// Answers with a document.
    pub fn showing(document: &Value) -> Self {
        Self::with("200 OK", document.to_string())
    }

    fn with(status: &'static str, body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heard) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&stream);
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes());
                if tell.send(request).is_err() {
                    return;
                }
            }
        });
        Self { address, heard }
    }

    pub fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Head and body of the next request.
    #[track_caller]
    pub fn next(&self) -> (String, String) {
        self.heard.recv_timeout(PATIENCE).expect("it is asked")
    }

    /// The remaining requests.
    pub fn rest(&self) -> Vec<String> {
        self.heard.try_iter().map(|(head, body)| format!("{head}{body}")).collect()
    }
}

fn read(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, String::from_utf8_lossy(&body).into_owned())
}

/// A guard against hanging, not a measurement.
const PATIENCE: Duration = Duration::from_mins(1);
