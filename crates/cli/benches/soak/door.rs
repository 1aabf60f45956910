//! An HTTP client with one connection per call.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::json;

pub struct SoakClient {
    pub address: String,
    pub token: String,
}

impl SoakClient {
    /// The answer with head and body.
    pub fn call(&self, tool: &str, text: &str) -> io::Result<String> {
        let mut stream = self.begin(tool, text)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Starts a call without reading its answer. Dropping the stream disconnects the client.
    pub fn begin(&self, tool: &str, text: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_mins(1)))?;
        stream.write_all(self.request(tool, text).as_bytes())?;
        Ok(stream)
    }

    fn request(&self, tool: &str, text: &str) -> String {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": { "text": text },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        } })
        .to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        )
    }
}
