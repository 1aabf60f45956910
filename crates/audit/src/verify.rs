//! Verifies that a journal is complete, unchanged and in order.
//!
//! Everything is read and recomputed. Each flaw is reported once: the check then continues from the values in the
//! journal, and a signed checkpoint resets the Merkle tree.

use std::{path::Path, time::Duration};

use crate::{
    JournalError, PublicKey, RecordPosition,
    chain::{Chain, ChainBreak},
    checkpoint::{Checkpoint, JournalOwnEntry, Recovered},
    folder,
    head::{self, Head, JournalHeadState},
    lines::{JournalLines, LineRead},
    list::{JournalList, JournalListItemKind},
    listing::JournalListing,
    membership::place_of,
    record::RecordLine,
    recover,
    tree::MerkleTree,
};

mod finding;
mod list;

pub use finding::{ClockBehind, FindingKind, JournalFinding, Report};
pub use list::verify_list;

/// Verifies a whole journal, also while it is being written.
///
/// Without a trusted key, the key in `head.json` is used; a journal that was replaced completely is then not detected.
/// An expected position (from a receipt, or a copy of the head kept elsewhere) must be part of the journal.
pub fn verify(folder: &Path, trusted: Option<PublicKey>, expect: Option<RecordPosition>) -> Report {
    let mut check = JournalCheck {
        folder,
        report: Report { key: trusted, ..Report::default() },
        chain: Chain::START,
        tree: MerkleTree::default(),
        watched: Vec::new(),
        wrong_day: String::new(),
        wrong_name: false,
    };
    check.watched.extend(expect.map(|position| WatchedPosition::new(position, WatchReason::Expected)));
    if let Err(error) = check.run() {
        check.find(FindingKind::Unreadable, FindingPlace::nowhere(), error.to_string());
    }
    check.report
}

struct JournalCheck<'a> {
    folder: &'a Path,
    report: Report,
    chain: Chain,
    tree: MerkleTree,
    /// Positions that must occur.
    watched: Vec<WatchedPosition>,
    /// The last file that was reported for records of another day.
    wrong_day: String,
    /// Whether a wrong directory name was already reported.
    wrong_name: bool,
}

struct WatchedPosition {
    position: RecordPosition,
    why: WatchReason,
    state: WatchState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchReason {
    Expected,
    Head,
    Listed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchState {
    Nothing,
    Another,
    Itself,
}

/// The location of a finding.
#[derive(Clone, Copy)]
struct FindingPlace<'a> {
    file: &'a str,
    line: u64,
    seq: Option<u64>,
}

impl FindingPlace<'_> {
    fn nowhere() -> Self {
        FindingPlace { file: "", line: 0, seq: None }
    }
}

impl WatchedPosition {
    fn new(position: RecordPosition, why: WatchReason) -> Self {
        Self { position, why, state: WatchState::Nothing }
    }
}

impl JournalCheck<'_> {
    fn run(&mut self) -> Result<(), JournalError> {
        // Read the head before the records: what it signs must be there.
        let head = self.load_head();
        if let Some(head) = &head {
            let place = FindingPlace { file: head::FILE, ..FindingPlace::nowhere() };
            if self.accept_key(head.key, place) {
                self.listing(head.listing.as_ref(), place);
            }
            self.watched.push(WatchedPosition::new(head.position(), WatchReason::Head));
        }
        self.watch_found();
        let (days, strangers) = folder::day_files(self.folder)?;
        for name in strangers {
            let place = FindingPlace { file: &name, ..FindingPlace::nowhere() };
            self.find(FindingKind::FileName, place, "the file is not named after a day".to_owned());
        }
        let mut lines = JournalLines::until_now(self.folder)?;
        loop {
            match next_settled(self.folder, &mut lines)? {
                LineRead::End => break,
                LineRead::Line => self.line(&lines),
                LineRead::TooLong => self.not_a_record(&lines, FindingKind::NotARecord, 0),
                LineRead::Torn => {
                    self.not_a_record(&lines, FindingKind::TornLine, 1);
                    if lines.is_in_last_file() {
                        break;
                    }
                }
            }
        }
        // The head is written before the first file is created.
        self.finish(head.is_some() || days.is_empty());
        Ok(())
    }

    fn load_head(&mut self) -> Option<Head> {
        Head::load(self.folder).unwrap_or_else(|error| {
            let place = FindingPlace { file: head::FILE, ..FindingPlace::nowhere() };
            self.find(FindingKind::Head, place, error.to_string());
            None
        })
    }

    /// A journal from before the list must contain the record that the list names: its head and checkpoints look like
    /// those of another journal of the same key. Flaws of the list itself are reported elsewhere.
    fn watch_found(&mut self) {
        let Ok((beside, name)) = place_of(self.folder) else { return };
        let Ok(Some((list, _))) = JournalList::read(&beside, self.report.key) else { return };
        if let Some(item) = list.last_of(&name).filter(|item| item.kind == JournalListItemKind::Found) {
            self.watched.push(WatchedPosition::new(item.reached, WatchReason::Listed));
        }
    }

    fn line(&mut self, lines: &JournalLines) {
        let Some(line) = RecordLine::parse(lines.bytes()) else {
            return self.not_a_record(lines, FindingKind::NotARecord, 0);
        };
        let place =
            || FindingPlace { file: lines.file(), line: lines.number(), seq: Some(line.position.seq) };
        for wrong in self.chain.breaks(&line) {
            self.find(kind_of(wrong), place(), format!("record {}: {wrong}", line.position.seq));
        }
        let is_in_place = folder::day_of(lines.file()).is_some_and(|day| day.day() == line.time.stamp.day());
        if !is_in_place && self.wrong_day != lines.file() {
            lines.file().clone_into(&mut self.wrong_day);
            let what = format!("the file contains records of another day, `{}`", line.time.stamp.day_text());
            self.find(FindingKind::WrongDay, place(), what);
        }
        self.report.unsealed += 1;
        match JournalOwnEntry::of(line.entry) {
            JournalOwnEntry::OfUser => {}
            JournalOwnEntry::Malformed => {
                let what = "the entry claims to be of the journal itself, but is not valid".to_owned();
                self.find(FindingKind::Checkpoint, place(), what);
            }
            JournalOwnEntry::Recovered(recovered) => self.recovered(&recovered, place()),
            JournalOwnEntry::Checkpoint(checkpoint) => self.checkpoint(&checkpoint, place()),
        }
        self.pass(&line);
    }

    /// Updates the state with a record and continues from it.
    fn pass(&mut self, line: &RecordLine<'_>) {
        for watched in self.watched.iter_mut().filter(|watched| watched.position.seq == line.position.seq) {
            match watched.state {
                WatchState::Itself => {}
                _ if watched.position == line.position && line.is_intact() => {
                    watched.state = WatchState::Itself;
                }
                _ => watched.state = WatchState::Another,
            }
        }
        self.tree.push(&line.position.hash);
        self.chain.advance(line.position, line.time.stamp);
        self.report.records += 1;
        if line.time.wall_clock.is_some() {
            self.report.clock_behind.add(line.position.seq, line.time.behind());
        }
        self.report.first.get_or_insert(line.position);
        self.report.last = Some(line.position);
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint, place: FindingPlace<'_>) {
        if !self.accept_key(checkpoint.key, place) {
            return;
        }
        let tree = checkpoint.tree().filter(|_| checkpoint.is_signed());
        if tree.as_ref() != Some(&self.tree) || place.seq != Some(checkpoint.size + 1) {
            let what = match tree {
                Some(_) => "the records before this checkpoint are not the ones that it signed",
                None => "the checkpoint's signature is not valid, or its peaks do not match its root",
            };
            self.find(FindingKind::Checkpoint, place, what.to_owned());
        } else {
            self.listing(checkpoint.listing.as_ref(), place);
            self.report.checkpoints += 1;
            self.report.unsealed = 0;
        }
        if let Some(tree) = tree {
            self.tree = tree;
        }
    }

    /// Notes the signed listing of the journal.
    fn listing(&mut self, said: Option<&JournalListing>, place: FindingPlace<'_>) {
        let Some(said) = said else { return };
        let is_own_name = place_of(self.folder).is_ok_and(|(_, name)| name == said.name);
        if !is_own_name && !self.wrong_name {
            self.wrong_name = true;
            let what = format!("the directory contains the journal that was signed as `{}`", said.name);
            self.find(FindingKind::JournalName, place, what);
        }
        if self.report.listing.as_ref().is_none_or(|known| known.known.seq < said.known.seq) {
            self.report.listing = Some(said.clone());
        }
    }

    fn recovered(&mut self, recovered: &Recovered, place: FindingPlace<'_>) {
        for expected in &recovered.set_aside {
            let found = recover::describe(self.folder, expected.file.clone());
            if found.is_ok_and(|found| found == *expected) {
                continue;
            }
            let what =
                format!("the line that was set aside in `{}` is missing or was changed", expected.file);
            self.find(FindingKind::SetAside, place, what);
        }
    }

    fn accept_key(&mut self, key: PublicKey, place: FindingPlace<'_>) -> bool {
        let trusted = *self.report.key.get_or_insert(key);
        if trusted != key {
            let what = format!("it is signed by `{key}`, which is not the key of this journal, `{trusted}`");
            self.find(FindingKind::ForeignKey, place, what);
        }
        trusted == key
    }

    fn not_a_record(&mut self, lines: &JournalLines, kind: FindingKind, ahead: u64) {
        let place = FindingPlace { file: lines.file(), line: lines.number() + ahead, seq: None };
        let after = self.chain.last.seq;
        self.find(kind, place, format!("the line after record {after} is not a complete record"));
    }

    fn finish(&mut self, has_head: bool) {
        if !has_head && !self.report.has(FindingKind::Head) {
            let place = FindingPlace { file: head::FILE, ..FindingPlace::nowhere() };
            self.find(FindingKind::Head, place, "the signed head of the journal is missing".to_owned());
        }
        for watched in std::mem::take(&mut self.watched) {
            self.settle(&watched);
        }
        // Read the head again, because a writer may have opened or closed the journal meanwhile. Only a closed head
        // says that no record may follow.
        let (last, place) =
            (self.chain.last.seq, FindingPlace { file: head::FILE, ..FindingPlace::nowhere() });
        let Ok(Some(head)) = Head::load(self.folder) else { return };
        self.report.closed = head.end() == JournalHeadState::Closed && self.report.key == Some(head.key);
        if head.end() == JournalHeadState::Closed && head.position().seq < last {
            let end = head.position().seq;
            let what = format!("the journal was closed after record {end}, but continues to {last}");
            self.find(FindingKind::ForgedTail, place, what);
        }
        // The head has a listing before the first checkpoint and the first record have one.
        let is_older = match &head.listing {
            None => self.report.listing.is_some(),
            Some(listing) => listing.is_pending() && self.report.records > 0,
        };
        if is_older {
            self.find(FindingKind::Head, place, "the head is older than the records".to_owned());
        }
    }

    fn settle(&mut self, watched: &WatchedPosition) {
        let RecordPosition { seq, hash } = watched.position;
        let (kind, source) = match watched.why {
            WatchReason::Expected => (FindingKind::Expected, "expected"),
            WatchReason::Head => (FindingKind::Truncated, "signed as part of the journal in `head.json`"),
            // Reported with the list: another journal is in the place of this one.
            WatchReason::Listed => {
                let is_lacking = seq > 0 && watched.state != WatchState::Itself;
                self.report.lacks = is_lacking.then_some(watched.position);
                return;
            }
        };
        let last = self.chain.last.seq;
        let what = match watched.state {
            _ if seq == 0 => return,
            WatchState::Itself => return,
            WatchState::Another => format!("record {seq} is not `{hash}`, which was {source}"),
            WatchState::Nothing if last < seq => {
                format!("the journal ends with record {last}, but {seq} was {source}")
            }
            WatchState::Nothing => format!("record {seq} is missing, but was {source}"),
        };
        let place = FindingPlace { seq: Some(seq), ..FindingPlace::nowhere() };
        self.find(kind, place, what);
    }

    fn find(&mut self, kind: FindingKind, place: FindingPlace<'_>, what: String) {
        let FindingPlace { file, line, seq } = place;
        self.report.add(JournalFinding { kind, file: file.to_owned(), line, seq, what });
    }
}

/// An incomplete line may be one that is being written: wait for the writer to finish.
fn next_settled(folder: &Path, lines: &mut JournalLines) -> Result<LineRead, JournalError> {
    let mut next = lines.next()?;
    for _ in 0..PATIENCE {
        if next != LineRead::Torn || !lines.is_in_last_file() {
            break;
        }
        let has_writer = folder::has_writer(folder);
        next = lines.next()?;
        if !has_writer {
            break;
        }
        std::thread::sleep(MOMENT);
    }
    Ok(next)
}

fn kind_of(wrong: ChainBreak) -> FindingKind {
    match wrong {
        ChainBreak::Edited => FindingKind::Edited,
        ChainBreak::NotCanonical => FindingKind::NotCanonical,
        ChainBreak::Missing { .. } => FindingKind::Missing,
        ChainBreak::Repeated { .. } => FindingKind::OutOfOrder,
        ChainBreak::Unlinked { .. } => FindingKind::Unlinked,
        ChainBreak::TimeBackwards { .. } => FindingKind::TimeBackwards,
    }
}

const PATIENCE: u32 = 200;
const MOMENT: Duration = Duration::from_millis(10);
