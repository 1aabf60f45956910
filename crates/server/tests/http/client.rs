//! A client that sends exactly the given bytes.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::{sleep, timeout},
};

/// No test waits longer; none measures how long it took.
pub const HANG: Duration = Duration::from_secs(20);

pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = timeout(HANG, TcpStream::connect(address)).await.expect("connects").unwrap();
        Self { stream, buffer: Vec::new() }
    }

    /// From another address of this machine.
    pub async fn connect_from(from: IpAddr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from, 0)).unwrap();
        let stream = timeout(HANG, socket.connect(address)).await.expect("connects").unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        timeout(HANG, self.stream.write_all(bytes)).await.expect("writes").unwrap();
    }

    /// As `send`, where the other side may have hung up already.
    pub async fn send_if_open(&mut self, bytes: &[u8]) -> bool {
        timeout(HANG, self.stream.write_all(bytes)).await.expect("writes").is_ok()
    }

    pub async fn finish_sending(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// The next answer; `None` when the connection ended instead.
    pub async fn answer(&mut self) -> Option<Answer> {
        loop {
            if let Some(answer) = self.take_answer() {
                return Some(answer);
            }
            if !self.read_more().await {
                return None;
            }
        }
    }

    /// Everything until the connection ends.
    pub async fn rest(mut self) -> String {
        while self.read_more().await {}
        String::from_utf8_lossy(&self.buffer).into_owned()
    }

    /// Reads on and on, with a pause after each of the first so many pieces; how much came in all.
    pub async fn read_slowly(mut self, pauses: usize, pause: Duration) -> usize {
        let (mut pieces, mut count, mut piece) = (0, 0, vec![0; 256 * 1024]);
        loop {
            match timeout(HANG, self.stream.read(&mut piece)).await.expect("the server goes on") {
                Ok(0) | Err(_) => return count,
                Ok(more) => count += more,
            }
            pieces += 1;
            if pieces <= pauses {
                sleep(pause).await;
            }
        }
    }

    /// Waits for the other side to hang up, and says so by returning.
    pub async fn closed(mut self) {
        while self.read_more().await {}
    }

    async fn read_more(&mut self) -> bool {
        let mut chunk = [0; 4096];
        match timeout(HANG, self.stream.read(&mut chunk))
            .await
            .expect("the server neither answers nor hangs up")
        {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                true
            }
        }
    }

    fn take_answer(&mut self) -> Option<Answer> {
        let text = String::from_utf8_lossy(&self.buffer).into_owned();
        let (head, rest) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length: usize =
            header(head, "content-length").map_or(0, |value| value.parse().expect("a number"));
        if status == 100 {
            self.buffer.drain(..head.len() + 4);
            return self.take_answer();
        }
        let body = rest.get(..length)?.to_owned();
        let head = head.to_owned();
        self.buffer.drain(..head.len() + 4 + length);
        Some(Answer { status, head, body })
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).expect("a problem in JSON");
        assert_eq!(body["status"], self.status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        body["code"].as_str().unwrap().to_owned()
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}
