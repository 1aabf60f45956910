//! Finds the end of an existing journal and decides whether it can be continued.
//!
//! Only the tail since the last checkpoint is read, so opening is fast for a journal of any length. A line that a crash
//! cut is repaired here. Every other flaw is left to a person.

use std::{
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
    sync::Arc,
};

use crate::{
    JournalError, PublicKey, RecordPosition,
    chain::Chain,
    checkpoint::{JournalOwnEntry, SetAside},
    digest::RecordDigest,
    folder,
    head::{Head, JournalHeadState},
    lines::{JournalLines, LineRead},
    listing::JournalListing,
    record::{self, RecordLine},
    stamp::Stamp,
    tree::MerkleTree,
    writer::JournalMark,
};

/// The end of a journal that may be continued.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) chain: Chain,
    pub(crate) tree: MerkleTree,
    /// Records after the last checkpoint.
    pub(crate) unsealed: u64,
    /// The last file, and its length without a torn line.
    pub(crate) file: Option<(String, u64)>,
    pub(crate) torn: Option<Vec<u8>>,
    pub(crate) end: JournalHeadState,
    pub(crate) has_head: bool,
    /// The listing of the head or of a checkpoint, the one that knows more of the list.
    pub(crate) listing: Option<JournalListing>,
}

/// Reads and checks the tail. Changes nothing.
pub(crate) fn read_tail(folder: &Path, key: PublicKey) -> Result<Tail, JournalError> {
    let (files, strangers) = folder::day_files(folder)?;
    if let Some(stranger) = strangers.first() {
        return Err(JournalError::untrusted(format!("`{stranger}` is not named after a day")));
    }
    let head = Head::load(folder)?;
    if head.as_ref().is_some_and(|head| head.key != key) {
        return Err(JournalError::untrusted(
            "it is signed by another key (use that key, or another directory)",
        ));
    }
    let mut lines = JournalLines::after(folder, "");
    let mut tail = Tail {
        chain: Chain::START,
        tree: MerkleTree::default(),
        unsealed: 0,
        file: None,
        torn: None,
        end: head.as_ref().map_or(JournalHeadState::Closed, Head::end),
        has_head: head.is_some(),
        listing: head.as_ref().and_then(|head| head.listing.clone()),
    };
    if let Some((file, offset)) = last_checkpoint(folder, &files)? {
        lines.seek(&file, offset)?;
        lines.next()?;
        tail.start_from(&lines, key)?;
        tail.meet(head.as_ref(), &lines)?;
    }
    tail.follow(&mut lines, key, head.as_ref())?;
    tail.compare(head.as_ref())?;
    Ok(tail)
}

/// Moves a torn line to a separate file, and returns the torn files that no record mentions yet.
pub(crate) fn set_aside(folder: &Path, tail: &Tail) -> Result<Vec<SetAside>, JournalError> {
    let last = tail.chain.last.seq;
    if let Some(torn) = &tail.torn {
        let taken = folder::torn_files(folder, last)?.len();
        let name = format!("torn-{}-{}.txt", last + 1, taken + 1);
        folder::write_new(folder, &name, torn)
            .map_err(|error| JournalError::io("write", &folder.join(&name), error))?;
    }
    folder::torn_files(folder, last)?.into_iter().map(|file| describe(folder, file)).collect()
}

/// The description of a torn file in a record.
pub(crate) fn describe(folder: &Path, file: String) -> Result<SetAside, JournalError> {
    let path = folder.join(&file);
    let mut content = Vec::new();
    folder::open_regular(&path)
        .and_then(|file| file.take(MAX_TORN).read_to_end(&mut content))
        .map_err(|error| JournalError::io("read", &path, error))?;
    Ok(SetAside { file, bytes: content.len() as u64, digest: RecordDigest::of(&content) })
}

impl Tail {
    pub(crate) fn mark(&self, folder: &Path) -> Result<JournalMark, JournalError> {
        let open = |(name, _): &(String, u64)| {
            let path = folder.join(name);
            folder::open_for_writing(&path)
                .map(Arc::new)
                .map_err(|error| JournalError::io("open", &path, error))
        };
        let file = self.file.as_ref().map(open).transpose()?;
        Ok(JournalMark { position: self.chain.last, stamp: self.chain.stamp, file })
    }

    /// Continues from the tree of a signed checkpoint.
    fn start_from(&mut self, lines: &JournalLines, key: PublicKey) -> Result<(), JournalError> {
        let refuse = |what: &str| {
            Err(JournalError::untrusted(format!("the last checkpoint, in `{}`, {what}", lines.file())))
        };
        let Some(line) =
            RecordLine::parse(lines.bytes()).filter(|line| line.is_intact() && line.is_canonical())
        else {
            return refuse("was changed");
        };
        let JournalOwnEntry::Checkpoint(checkpoint) = JournalOwnEntry::of(line.entry) else {
            return refuse("was changed");
        };
        if checkpoint.key != key || !checkpoint.is_signed() {
            return refuse("is not signed by this key");
        }
        let Some(tree) = checkpoint.tree().filter(|tree| tree.size() + 1 == line.position.seq) else {
            return refuse("does not match its position");
        };
        if folder::day_of(lines.file()).map(Stamp::day) != Some(line.time.stamp.day()) {
            return refuse("is in the file of another day");
        }
        self.learn(checkpoint.listing.as_ref());
        self.tree = tree;
        self.tree.push(&line.position.hash);
        self.chain.advance(line.position, line.time.stamp);
        self.file = Some((lines.file().to_owned(), lines.offset()));
        Ok(())
    }

    fn follow(
        &mut self,
        lines: &mut JournalLines,
        key: PublicKey,
        head: Option<&Head>,
    ) -> Result<(), JournalError> {
        loop {
            match lines.next()? {
                LineRead::End => return Ok(()),
                LineRead::Torn if lines.is_in_last_file() => return self.tear(lines),
                LineRead::TooLong => return self.refuse(lines, "a line is too long for a record"),
                LineRead::Line | LineRead::Torn => {}
            }
            let Some(line) = RecordLine::parse(lines.bytes()) else {
                // After a power cut, a line can have its full length but wrong content.
                self.tear(lines)?;
                return match lines.next()? {
                    LineRead::End => Ok(()),
                    _ => self.refuse(lines, "a line is not a record"),
                };
            };
            self.take(&line, lines, key)?;
            self.meet(head, lines)?;
        }
    }

    fn take(
        &mut self,
        line: &RecordLine<'_>,
        lines: &JournalLines,
        key: PublicKey,
    ) -> Result<(), JournalError> {
        if let Some(wrong) = self.chain.breaks(line).first() {
            return self.refuse(lines, &wrong.to_string());
        }
        if folder::day_of(lines.file()).map(Stamp::day) != Some(line.time.stamp.day()) {
            return self.refuse(lines, "it is in the file of another day");
        }
        match JournalOwnEntry::of(line.entry) {
            JournalOwnEntry::Malformed => {
                return self.refuse(lines, "it is not a valid entry of the journal itself");
            }
            JournalOwnEntry::Checkpoint(checkpoint) => {
                let is_ours = checkpoint.key == key && checkpoint.is_signed();
                if !is_ours || checkpoint.tree().as_ref() != Some(&self.tree) {
                    return self.refuse(lines, "it is a checkpoint that does not match the records");
                }
                self.learn(checkpoint.listing.as_ref());
                self.unsealed = 0;
            }
            JournalOwnEntry::Recovered(_) | JournalOwnEntry::OfUser => self.unsealed += 1,
        }
        self.tree.push(&line.position.hash);
        self.chain.advance(line.position, line.time.stamp);
        self.file = Some((lines.file().to_owned(), lines.offset()));
        Ok(())
    }

    /// A head can be replaced by an older one. A checkpoint's listing is in the chain.
    fn learn(&mut self, said: Option<&JournalListing>) {
        let known = self.listing.as_ref().map_or(0, |listing| listing.known.seq);
        if let Some(said) = said.filter(|said| said.known.seq > known) {
            self.listing = Some(said.clone());
        }
    }

    fn tear(&mut self, lines: &JournalLines) -> Result<(), JournalError> {
        if self.end == JournalHeadState::Closed {
            return self.refuse(lines, "it was added after the journal was closed");
        }
        self.torn = Some(lines.bytes().to_vec());
        self.file = Some((lines.file().to_owned(), lines.start()));
        Ok(())
    }

    /// The record with the head's number must be the one that the head signed.
    fn meet(&self, head: Option<&Head>, lines: &JournalLines) -> Result<(), JournalError> {
        match head.map(Head::position) {
            Some(position) if position.seq == self.chain.last.seq && position != self.chain.last => {
                self.refuse(lines, "`head.json` signs another record")
            }
            _ => Ok(()),
        }
    }

    fn compare(&self, head: Option<&Head>) -> Result<(), JournalError> {
        let last = self.chain.last;
        let Some(head) = head else {
            return if last == RecordPosition::START && self.torn.is_none() {
                Ok(())
            } else {
                Err(JournalError::untrusted("`head.json` is missing"))
            };
        };
        let reached = head.position().seq;
        if last.seq < reached {
            return Err(JournalError::untrusted(format!(
                "it ends with record {}, but had {reached} (restore the missing files, or start a new directory)",
                last.seq
            )));
        }
        if head.end() == JournalHeadState::Closed && last.seq > reached {
            return Err(JournalError::untrusted(format!(
                "records after {reached} were added after it was closed"
            )));
        }
        Ok(())
    }

    fn refuse(&self, lines: &JournalLines, what: &str) -> Result<(), JournalError> {
        let after = self.chain.last.seq;
        Err(JournalError::untrusted(format!("in `{}`, after record {after}: {what}", lines.file())))
    }
}

/// File and offset of the last checkpoint line.
fn last_checkpoint(folder: &Path, files: &[String]) -> Result<Option<(String, u64)>, JournalError> {
    for name in files.iter().rev() {
        let path = folder.join(name);
        let found = last_checkpoint_of(&path).map_err(|error| JournalError::io("read", &path, error))?;
        if let Some(offset) = found {
            return Ok(Some((name.clone(), offset)));
        }
    }
    Ok(None)
}

/// Searches the file backwards in blocks for the beginning of a checkpoint line.
fn last_checkpoint_of(path: &Path) -> std::io::Result<Option<u64>> {
    let needle = [record::BEFORE_ENTRY, CHECKPOINT_BEGINS].concat();
    let mut file = folder::open_regular(path)?;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        // A line that begins at the end of this block continues in the next one.
        let wanted = end - start + needle.len() as u64;
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.by_ref().take(wanted).read_to_end(&mut block)?;
        let candidates = block.windows(needle.len()).enumerate().rev();
        for (place, _) in candidates.filter(|(_, window)| *window == needle.as_slice()) {
            let offset = start + place as u64;
            if is_checkpoint_line(&mut file, offset)? {
                return Ok(Some(offset));
            }
        }
        end = start;
    }
    Ok(None)
}

fn is_checkpoint_line(file: &mut std::fs::File, offset: u64) -> std::io::Result<bool> {
    if offset > 0 {
        let mut before = [0];
        file.seek(SeekFrom::Start(offset - 1))?;
        file.read_exact(&mut before)?;
        if before != [b'\n'] {
            return Ok(false);
        }
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    BufReader::new(file.by_ref().take(MAX_CHECKPOINT)).read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\n").and_then(RecordLine::parse);
    Ok(line.is_some_and(|line| matches!(JournalOwnEntry::of(line.entry), JournalOwnEntry::Checkpoint(_))))
}

/// The members of a canonical object are sorted: `key` comes before `kind`.
const CHECKPOINT_BEGINS: &[u8] = br#"{"key":"ed25519:"#;
const BLOCK: u64 = 1 << 20;
/// At most 53 peaks and the rest of the line.
const MAX_CHECKPOINT: u64 = 16 << 10;
/// A torn line is a part of a line that the journal wrote.
const MAX_TORN: u64 = 8 << 20;
