//! Reads messages that end with a line feed, each of a bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line, or the reason why there is none.
#[derive(Debug, Eq, PartialEq)]
pub enum Line {
    Whole(Vec<u8>),
    TooLong,
    End,
}

/// Reads one line without its line feed. Never holds more than `most` bytes.
pub async fn read_line(reader: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let piece = reader.fill_buf().await?;
        if piece.is_empty() {
            // An unfinished last line is not a message.
            return Ok(Line::End);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(piece.len());
        if line.len().saturating_add(taken) > most {
            return Ok(Line::TooLong);
        }
        line.extend(piece.get(..taken).unwrap_or_default());
        reader.consume(end.map_or(taken, |end| end.saturating_add(1)));
        if end.is_some() {
            return Ok(Line::Whole(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], most: usize) -> Vec<Line> {
        let mut reader = tokio::io::BufReader::with_capacity(3, text);
        let mut lines = Vec::new();
        loop {
            let line = read_line(&mut reader, most).await.unwrap();
            let is_last = !matches!(line, Line::Whole(_));
            lines.push(line);
            if is_last {
                return lines;
            }
        }
    }

    #[tokio::test]
    async fn lines_are_split_and_bounded() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(
            all(b"one\n\ntwo three\nrest", 9).await,
            [whole("one"), whole(""), whole("two three"), Line::End]
        );
        assert_eq!(all(b"ok\n0123456789\n", 9).await, [whole("ok"), Line::TooLong]);
        // A server that never sends a line feed.
        assert_eq!(all(&[b'x'; 100], 9).await, [Line::TooLong]);
    }
}
