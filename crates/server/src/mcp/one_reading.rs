//! Has a message more than one reading? One that names a member twice means this to one reader and that to another: the client's own
//! checks, a proxy on the way, a person who looks at it later. It is refused, not resolved.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncBufRead as _, AsyncRead, BufReader, ReadBuf};
use toolgate_spec::Unambiguous;

/// What is no JSON at all has none, and is left to whoever reads it.
pub fn has_several(message: &[u8]) -> bool {
    // Over pipes the SDK reads past it.
    let message = message.strip_prefix(BYTE_ORDER_MARK).unwrap_or(message);
    serde_json::from_slice::<Unambiguous>(message).is_err_and(|error| error.is_data())
}

/// Lines as they come, but for those with several readings: in their place stands what is no message, which the SDK says to the client.
#[derive(Debug)]
pub struct Lines<R> {
    read: BufReader<R>,
    /// Longer lines are skipped by the SDK, so that nobody need look at them.
    longest: usize,
    line: Vec<u8>,
    /// How much of `line` may be handed on, and how much has been.
    passed: usize,
    given: usize,
}

impl<R: AsyncRead> Lines<R> {
    pub fn new(read: R, longest: usize) -> Self {
        Self { read: BufReader::new(read), longest, line: Vec::new(), passed: 0, given: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.given == this.passed {
            if this.given == this.line.len() {
                this.line.clear();
                (this.passed, this.given) = (0, 0);
            }
            let came = ready!(Pin::new(&mut this.read).poll_fill_buf(context))?;
            let (taken, ends) = match came.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (came.len(), false),
            };
            // The end of all lines: what is left is none, and the SDK takes it for none.
            let is_over = taken == 0;
            this.line.extend(came.iter().take(taken));
            Pin::new(&mut this.read).consume(taken);
            if ends && this.line.len() <= this.longest && has_several(&this.line) {
                this.line.clear();
                this.line.extend(NO_MESSAGE);
            }
            if ends || is_over || this.line.len() > this.longest {
                this.passed = this.line.len();
            }
            if is_over {
                break;
            }
        }
        let left = this.line.get(this.given..this.passed).unwrap_or_default();
        let part = left.get(..left.len().min(to.remaining())).unwrap_or_default();
        to.put_slice(part);
        this.given += part.len();
        Poll::Ready(Ok(()))
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const NO_MESSAGE: &[u8] = b"null\n";

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[test]
    fn a_member_that_is_named_twice_is_found_at_any_depth_and_in_any_spelling() {
        for message in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"a":[{"b":{"c":1,"d":2,"c":3}}]}]"#,
            "\u{feff}{\"a\":1,\"a\":2}",
            "{\"a\":1,\"a\":2}\r\n",
        ] {
            assert!(has_several(message.as_bytes()), "{message}");
        }
        for message in [r#"{"a":{"a":1},"b":{"a":2}}"#, r#"[{"a":1},{"a":1}]"#, "{\"a\":1,", "", "1e999"] {
            assert!(!has_several(message.as_bytes()), "{message}");
        }
    }

    /// Whatever the pieces in which it comes and is read.
    #[tokio::test]
    async fn lines_pass_as_they_are_but_for_those_with_several_readings() {
        let long = format!("{{\"a\":1,\"a\":\"{}\"}}\n", "x".repeat(100));
        let sent = format!("{{\"a\":1}}\n\n{{\"a\":1,\"a\":2}}\n{long}{{\"b\":1}}\nno end");
        let expected = format!("{{\"a\":1}}\n\nnull\n{long}{{\"b\":1}}\nno end");
        for piece in [1, 2, 7, 1_000] {
            let (mut write, read) = tokio::io::duplex(piece);
            let sent = sent.clone();
            let writing = tokio::spawn(async move {
                tokio::io::AsyncWriteExt::write_all(&mut write, sent.as_bytes()).await.unwrap();
            });
            let mut heard = Vec::new();
            let mut lines = Lines::new(read, 50);
            loop {
                let mut part = vec![0; piece];
                let count = lines.read(&mut part).await.unwrap();
                if count == 0 {
                    break;
                }
                heard.extend(&part[..count]);
            }
            assert_eq!(String::from_utf8(heard).unwrap(), expected, "in pieces of {piece}");
            writing.await.unwrap();
        }
    }
}
