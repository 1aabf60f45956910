//! Which secrets in a file are kept from a tool whose caller chooses what it shows?
//!
//! The filter at the end of a call sees what the tool returns, and no more. A caller who chooses lines leaves out those by which a
//! secret is known: a key without its first line is a few lines of letters. So a text is looked through as a whole, before
//! anything is chosen from it. Patterns are matched against what is left: whether one matches would tell the rest letter by letter.

use std::{
    fs::File,
    io::{self, Read},
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use toolgate_secrets::{Detector, SecretFinding, Stream, Tier};

use super::error::Fault;

/// Takes secrets out of what is read. Clones gather what they found in one place.
#[derive(Clone, Debug)]
pub struct Veil {
    detector: Arc<Detector>,
    reads: VeiledReads,
    found: Arc<Mutex<Vec<SecretFinding>>>,
}

/// Which reads lack their secrets?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VeiledReads {
    /// Those that choose lines. A whole text stays as it is, for a tool that sends it: what leaves is judged on its way out, and
    /// refused rather than changed.
    Lines,
    All,
}

impl Veil {
    pub fn new(detector: &Arc<Detector>, reads: VeiledReads) -> Self {
        Self { detector: Arc::clone(detector), reads, found: Arc::default() }
    }

    /// What was taken out so far. Once: what is taken is not told again.
    pub fn take_found(&self) -> Vec<SecretFinding> {
        mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// In pieces, and asks before each whether to go on.
    pub(super) fn over_text(
        &self,
        text: String,
        go_on: impl Fn() -> Result<(), Fault>,
    ) -> Result<String, Fault> {
        if self.reads == VeiledReads::Lines {
            return Ok(text);
        }
        let mut stream = self.detector.stream(TAKEN_OUT);
        let mut shown = Vec::with_capacity(text.len());
        for piece in text.as_bytes().chunks(TEXT_PIECE) {
            go_on()?;
            shown.extend(stream.push(piece));
        }
        go_on()?;
        let (rest, found) = stream.finish();
        shown.extend(rest);
        self.note(found);
        // Of UTF-8 the stream gives back UTF-8.
        Ok(String::from_utf8(shown)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// No more than `most` bytes of the file are read, and one that shows that there are more.
    pub(super) fn over_file(&self, file: File, most: usize) -> VeiledFile {
        let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        VeiledFile {
            veil: self.clone(),
            file: file.take(most),
            stream: Some(self.detector.stream(TAKEN_OUT)),
            is_begun: false,
            wrong_byte: None,
            ready: Vec::new(),
            given: 0,
            unpaid: 0,
        }
    }

    fn note(&self, found: Vec<SecretFinding>) {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_FOUND.saturating_sub(all.len());
        all.extend(found.into_iter().take(room));
    }
}

/// A file as it reads without its secrets; it has as many lines.
pub(super) struct VeiledFile {
    veil: Veil,
    file: io::Take<File>,
    /// `None` once the file has come to its end.
    stream: Option<Stream>,
    is_begun: bool,
    /// Where the file turned out not to be text; it is given back at the end, and nothing behind it is read.
    wrong_byte: Option<u8>,
    ready: Vec<u8>,
    /// How much of `ready` was given back.
    given: usize,
    unpaid: usize,
}

impl VeiledFile {
    /// How much of the file was read since the last time: what was taken out had to be read all the same.
    pub fn take_unpaid(&mut self) -> usize {
        mem::take(&mut self.unpaid)
    }

    fn refill(&mut self) -> io::Result<()> {
        let mut piece = Vec::new();
        self.file.by_ref().take(PIECE).read_to_end(&mut piece)?;
        if !mem::replace(&mut self.is_begun, true) {
            self.end_where_text_ends(&mut piece);
        }
        self.unpaid += piece.len();
        self.given = 0;
        if let Some(stream) = self.stream.as_mut().filter(|_| !piece.is_empty()) {
            self.ready = stream.push(&piece);
        } else if let Some(stream) = self.stream.take() {
            let (rest, found) = stream.finish();
            self.veil.note(found);
            self.ready = rest;
            self.ready.extend(self.wrong_byte.take());
        }
        Ok(())
    }

    /// A search passes over what is not text, and must not pay for the whole of it. The line with the wrong byte is refused, so
    /// what follows is never shown. The byte does not pass through the detector, which could take it out with a secret before it.
    fn end_where_text_ends(&mut self, piece: &mut Vec<u8>) {
        // A character that is merely cut by the end of the piece has no error length.
        if let Err(error) = str::from_utf8(piece)
            && error.error_len().is_some()
        {
            let text = error.valid_up_to();
            self.wrong_byte = piece.get(text).copied();
            self.unpaid += 1;
            piece.truncate(text);
            self.file.set_limit(0);
        }
    }
}

impl Read for VeiledFile {
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

impl Drop for VeiledFile {
    /// Whoever has seen enough does not read to the end.
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            self.veil.note(stream.findings().to_vec());
        }
    }
}

/// As for what a tool returns.
const TAKEN_OUT: Tier = Tier::Probable;
const PIECE: u64 = 64 * 1024;
const TEXT_PIECE: usize = 64 * 1024;
/// What is found after that is taken out all the same; only the list ends.
const MOST_FOUND: usize = 10_000;
