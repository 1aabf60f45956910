//! Redacts secrets in files for tools whose caller chooses what is shown.
//!
//! The filter at the end of a call only sees the result. A caller who selects lines could leave out those that
//! identify a secret: without its first line, a key is just letters. The whole file is therefore scanned before
//! anything is selected. Patterns are matched against the redacted text, because a match would reveal the secret
//! letter by letter.

use std::{
    fs::File,
    io::{self, Read},
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use toolgate_secrets::{Detector, SecretFinding, Stream, Tier};

use super::error::FileFault;

/// Redacts secrets in what is read. Clones share their findings.
#[derive(Clone, Debug)]
pub struct SecretRedactor {
    detector: Arc<Detector>,
    reads: RedactedReads,
    found: Arc<Mutex<Vec<SecretFinding>>>,
}

/// Which reads are redacted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RedactedReads {
    /// Reads that select lines. Whole files stay exact for tools that send them: outgoing requests are checked and
    /// denied, not changed.
    Lines,
    All,
}

impl SecretRedactor {
    pub fn new(detector: &Arc<Detector>, reads: RedactedReads) -> Self {
        Self { detector: Arc::clone(detector), reads, found: Arc::default() }
    }

    /// The findings so far. Each is returned once.
    pub fn take_found(&self) -> Vec<SecretFinding> {
        mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Scans in pieces, and checks the deadline before each.
    pub(super) fn redact_text(
        &self,
        text: String,
        check_deadline: impl Fn() -> Result<(), FileFault>,
    ) -> Result<String, FileFault> {
        if self.reads == RedactedReads::Lines {
            return Ok(text);
        }
        let mut stream = self.detector.stream(REDACTED_TIER);
        let mut shown = Vec::with_capacity(text.len());
        for piece in text.as_bytes().chunks(TEXT_PIECE) {
            check_deadline()?;
            shown.extend(stream.push(piece));
        }
        check_deadline()?;
        let (rest, found) = stream.finish();
        shown.extend(rest);
        self.note(found);
        // The stream returns valid UTF-8 for valid UTF-8.
        Ok(String::from_utf8(shown)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Reads at most `most` bytes, and one more to detect longer files.
    pub(super) fn redact_file(&self, file: File, most: usize) -> RedactedFile {
        let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        RedactedFile {
            redactor: self.clone(),
            file: file.take(most),
            stream: Some(self.detector.stream(REDACTED_TIER)),
            is_begun: false,
            wrong_byte: None,
            ready: Vec::new(),
            given: 0,
            cost: 0,
        }
    }

    fn note(&self, found: Vec<SecretFinding>) {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_FOUND.saturating_sub(all.len());
        all.extend(found.into_iter().take(room));
    }
}

/// A file with redacted secrets. It has the same number of lines.
pub(super) struct RedactedFile {
    redactor: SecretRedactor,
    file: io::Take<File>,
    /// `None` at the end of the file.
    stream: Option<Stream>,
    is_begun: bool,
    /// The first byte that is not text. It is returned at the end, and nothing after it is read.
    wrong_byte: Option<u8>,
    ready: Vec<u8>,
    /// The part of `ready` that was already returned.
    given: usize,
    cost: usize,
}

impl RedactedFile {
    /// The bytes read since the last call, including redacted ones.
    pub fn take_cost(&mut self) -> usize {
        mem::take(&mut self.cost)
    }

    fn refill(&mut self) -> io::Result<()> {
        let mut piece = Vec::new();
        self.file.by_ref().take(PIECE).read_to_end(&mut piece)?;
        if !mem::replace(&mut self.is_begun, true) {
            self.end_where_text_ends(&mut piece);
        }
        self.cost += piece.len();
        self.given = 0;
        if let Some(stream) = self.stream.as_mut().filter(|_| !piece.is_empty()) {
            self.ready = stream.push(&piece);
        } else if let Some(stream) = self.stream.take() {
            let (rest, found) = stream.finish();
            self.redactor.note(found);
            self.ready = rest;
            self.ready.extend(self.wrong_byte.take());
        }
        Ok(())
    }

    /// A search skips files that are not text, and must not read all of them. The line with the invalid byte is
    /// rejected, so nothing after it is shown. The byte bypasses the detector, which could redact it together with a
    /// secret before it.
    fn end_where_text_ends(&mut self, piece: &mut Vec<u8>) {
        // A character cut by the end of the piece has no error length.
        if let Err(error) = str::from_utf8(piece)
            && error.error_len().is_some()
        {
            let text = error.valid_up_to();
            self.wrong_byte = piece.get(text).copied();
            self.cost += 1;
            piece.truncate(text);
            self.file.set_limit(0);
        }
    }
}

impl Read for RedactedFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() && self.stream.is_some() {
            self.refill()?;
        }
        let mut rest = self.ready.get(self.given..).unwrap_or_default();
        let many = rest.read(out)?;
        self.given += many;
        Ok(many)
    }
}

impl Drop for RedactedFile {
    /// A reader that has enough does not read to the end.
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            self.redactor.note(stream.findings().to_vec());
        }
    }
}

/// The same tier as for results.
const REDACTED_TIER: Tier = Tier::Probable;
const PIECE: u64 = 64 * 1024;
const TEXT_PIECE: usize = 64 * 1024;
/// Later findings are still redacted, but not listed.
const MOST_FOUND: usize = 10_000;
