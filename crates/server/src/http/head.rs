//! Checks the head of a request before hyper reads it.
//!
//! hyper accepts bare LF as the end of a line, drops a repeated `Content-Length` and reads heads beyond its limit, so nothing behind it
//! can see them. The guard hands hyper whole heads only, and exactly as much body as the head announces.

use tokio::io::ReadBuf;

#[derive(Debug)]
pub(super) struct HeadGuard {
    /// Bytes of a head, its request line and last empty line included.
    limit: usize,
    /// Bytes from the client that hyper does not have yet.
    held: Vec<u8>,
    /// How many of them hyper may have.
    cleared: usize,
    expects: Expects,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Expects {
    /// The first `scanned` bytes are checked.
    Head {
        scanned: usize,
    },
    Body {
        left: u64,
    },
    /// A chunked body, whose end hyper finds. Its answer closes the connection, so nothing is read after it.
    ChunkedBody,
    /// The client has closed its end, or sent a head that is refused.
    Nothing,
}

/// Why a head is refused with 400.
pub(super) type HeadViolation = &'static str;

impl HeadGuard {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, held: Vec::new(), cleared: 0, expects: Expects::Head { scanned: 0 } }
    }

    /// Takes what the client sent. After a violation hyper reads something that it answers with 400.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), HeadViolation> {
        self.held.extend_from_slice(bytes);
        self.advance().inspect_err(|_| {
            self.held.truncate(self.cleared);
            self.held.extend_from_slice(NOT_HTTP);
            self.give_up();
        })
    }

    /// The client sends nothing more: hyper reads what there is, and then the end.
    pub(super) fn end(&mut self) {
        self.give_up();
    }

    /// Hands cleared bytes to hyper; false if there are none and the client has to send more first.
    pub(super) fn fill(&mut self, to: &mut ReadBuf<'_>) -> bool {
        let count = self.cleared.min(to.remaining());
        to.put_slice(self.held.get(..count).unwrap_or_default());
        self.held.drain(..count);
        self.cleared -= count;
        count > 0 || self.expects == Expects::Nothing
    }

    fn advance(&mut self) -> Result<(), HeadViolation> {
        loop {
            let waiting = self.held.get(self.cleared..).unwrap_or_default();
            match self.expects {
                Expects::Nothing => return Ok(()),
                Expects::ChunkedBody => {
                    self.cleared = self.held.len();
                    return Ok(());
                }
                Expects::Body { left } if left > 0 => {
                    let count = waiting.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.cleared += count;
                    self.expects = Expects::Body { left: left - count as u64 };
                    if count == 0 {
                        return Ok(());
                    }
                }
                Expects::Body { .. } => self.expects = Expects::Head { scanned: 0 },
                Expects::Head { scanned } => match end_of_head(waiting, scanned)? {
                    Some(end) if end <= self.limit => {
                        self.expects = body_after(waiting.get(..end).unwrap_or_default())?;
                        self.cleared += end;
                    }
                    None if waiting.len() < self.limit => {
                        self.expects = Expects::Head { scanned: waiting.len() };
                        return Ok(());
                    }
                    // As much as hyper answers with 431, and no more.
                    _ => {
                        self.held.truncate(self.cleared + self.limit);
                        self.give_up();
                        return Ok(());
                    }
                },
            }
        }
    }

    fn give_up(&mut self) {
        self.cleared = self.held.len();
        self.expects = Expects::Nothing;
    }
}

/// Finds the end of the head, after its empty line. Returns `None` if it has not arrived yet. The first `scanned` bytes are already checked.
fn end_of_head(head: &[u8], scanned: usize) -> Result<Option<usize>, HeadViolation> {
    let mut at = scanned;
    while let Some((place, byte)) = next_control(head, at) {
        let before = head.get(..place).unwrap_or_default();
        match byte {
            b'\n' if !before.ends_with(b"\r") => return Err("a line of the head ends with a bare LF"),
            b'\n' if before.ends_with(b"\r\n\r") => return Ok(Some(place + 1)),
            b'\n' | b'\r' | b'\t' => at = place + 1,
            _ => return Err("there is a control character in the head"),
        }
    }
    Ok(None)
}

/// The first control character from `from` on.
fn next_control(head: &[u8], from: usize) -> Option<(usize, u8)> {
    let rest = head.get(from..)?;
    let place = rest.iter().position(|byte| *byte < 0x20 || *byte == 0x7f)?;
    Some((from + place, *rest.get(place)?))
}

/// Reads from the head what follows it. hyper checks everything else.
fn body_after(head: &[u8]) -> Result<Expects, HeadViolation> {
    let mut length = None;
    let mut is_encoded = false;
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = line.split_at(colon);
        let name = name.trim_ascii();
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            is_encoded = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let value = value.strip_prefix(b":").unwrap_or_default().trim_ascii();
            if length.replace(number(value)?).is_some() {
                return Err("there is more than one Content-Length");
            }
        }
    }
    match (length, is_encoded) {
        (Some(_), true) => Err("there is a Content-Length beside a Transfer-Encoding"),
        (None, true) => Ok(Expects::ChunkedBody),
        (length, false) => Ok(Expects::Body { left: length.unwrap_or_default() }),
    }
}

fn number(digits: &[u8]) -> Result<u64, HeadViolation> {
    let text = std::str::from_utf8(digits).ok();
    let number = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit())).map(str::parse);
    number.and_then(Result::ok).ok_or("the Content-Length is not a number")
}

/// hyper answers this with 400 and closes, after the answers that it still owes.
const NOT_HTTP: &[u8] = b"\0\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that hyper reads if the client sends this in pieces of `size`, or the violation.
    fn read(sent: &str, size: usize) -> Result<String, HeadViolation> {
        let mut guard = HeadGuard::new(100);
        let mut heard = Vec::new();
        for piece in sent.as_bytes().chunks(size) {
            guard.push(piece)?;
            let mut buffer = [0; 7];
            loop {
                let mut to = ReadBuf::new(&mut buffer);
                if !guard.fill(&mut to) || to.filled().is_empty() {
                    break;
                }
                heard.extend_from_slice(to.filled());
            }
        }
        Ok(String::from_utf8(heard).unwrap())
    }

    #[track_caller]
    fn check(sent: &str, expected: Result<&str, &str>) {
        for size in [1, 2, 3, 10, 1_000] {
            let heard = read(sent, size);
            match expected {
                Ok(text) => assert_eq!(heard.as_deref(), Ok(text), "{sent:?} in pieces of {size}"),
                Err(why) => assert!(heard.unwrap_err().contains(why), "{sent:?} in pieces of {size}"),
            }
        }
    }

    #[test]
    fn heads_are_handed_over_whole_and_bodies_as_long_as_announced() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        check(get, Ok(get));
        check(&get[..20], Ok(""));
        let post = "POST / HTTP/1.1\r\ncontent-LENGTH: 3\r\n\r\nabc";
        check(&format!("{post}{get}{post}"), Ok(&format!("{post}{get}{post}")));
        check(&format!("{post}GET / HT"), Ok(post));
        check(&format!("\r\n{get}"), Ok(&format!("\r\n{get}")));
        // Bytes of a body are not looked at.
        let lines = "POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\n\n\n\0\n\n\n";
        check(lines, Ok(lines));
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nanything";
        check(chunked, Ok(chunked));
    }

    #[test]
    fn ambiguous_heads_are_refused() {
        for (lines, why) in [
            ("Content-Length: 3\r\nContent-Length: 3\r\n", "more than one"),
            ("Content-Length: 3\r\ncontent-length : 4\r\n", "more than one"),
            ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "beside"),
            ("Content-Length: 3, 3\r\n", "not a number"),
            ("Content-Length: +3\r\n", "not a number"),
            ("Content-Length:\r\n", "not a number"),
            ("Content-Length: 99999999999999999999\r\n", "not a number"),
            ("Host: a\n", "bare LF"),
            ("Host: a\r\r\n\n", "bare LF"),
            ("Host: a\0\r\n", "control character"),
        ] {
            check(&format!("POST / HTTP/1.1\r\n{lines}\r\nabc"), Err(why));
        }
        check("GET / HTTP/1.1\n\n", Err("bare LF"));
        check("\u{16}\u{3}\u{1}", Err("control character"));
        // Also behind a request that was good.
        check("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\n\n", Err("bare LF"));
    }

    #[test]
    fn limit_is_exact() {
        let head = |length: usize| format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(length - 23));
        assert_eq!(head(100).len(), 100);
        check(&head(100), Ok(&head(100)));
        // hyper gets a head without its end, of just the length that it refuses.
        check(&head(101), Ok(&head(101)[..100]));
        check(&head(5_000), Ok(&head(5_000)[..100]));
    }
}
