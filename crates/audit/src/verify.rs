//! Is the journal what was written, all of it and in order?
//!
//! Everything is read and recomputed. One wrong spot is reported once: after it the check goes on from what the
//! journal itself says there, and a signed checkpoint brings the Merkle tree back on its feet.

use std::{path::Path, time::Duration};

use crate::{
    JournalError, Position, PublicKey,
    chain::{Break, Chain},
    checkpoint::{Checkpoint, Own, Recovered},
    folder,
    head::{self, End, Head},
    lines::{Lines, Next},
    list::{Kind, List},
    listing::Listing,
    membership::place_of,
    record::Line,
    recover,
    tree::Tree,
};

mod finding;
mod list;

pub use finding::{ClockBehind, Finding, FindingKind, Report};
pub use list::verify_list;

/// Checks a whole journal, also while it is being written.
///
/// Without a trusted key the one in `head.json` is believed, so that whoever replaces everything is not found. An
/// expected position (from a receipt, or a copy of the head kept elsewhere) must be part of the journal.
pub fn verify(folder: &Path, trusted: Option<PublicKey>, expect: Option<Position>) -> Report {
    let mut check = Check {
        folder,
        report: Report { key: trusted, ..Report::default() },
        chain: Chain::START,
        tree: Tree::default(),
        watched: Vec::new(),
        wrong_day: String::new(),
        wrong_name: false,
    };
    check.watched.extend(expect.map(|position| Watched::new(position, Why::Expected)));
    if let Err(error) = check.run() {
        check.find(FindingKind::Unreadable, Place::nowhere(), error.to_string());
    }
    check.report
}

struct Check<'a> {
    folder: &'a Path,
    report: Report,
    chain: Chain,
    tree: Tree,
    /// Positions that must turn up.
    watched: Vec<Watched>,
    /// The file that was already reported to hold records of another day.
    wrong_day: String,
    /// Whether the folder was already reported to have another name.
    wrong_name: bool,
}

struct Watched {
    position: Position,
    why: Why,
    state: Seen,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Expected,
    Head,
    Listed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    Another,
    Itself,
}

/// Where something was found.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
    line: u64,
    seq: Option<u64>,
}

impl Place<'_> {
    fn nowhere() -> Self {
        Place { file: "", line: 0, seq: None }
    }
}

impl Watched {
    fn new(position: Position, why: Why) -> Self {
        Self { position, why, state: Seen::Nothing }
    }
}

impl Check<'_> {
    fn run(&mut self) -> Result<(), JournalError> {
        // The head is read before the records: what it promises must be there then.
        let head = self.load_head();
        if let Some(head) = &head {
            let place = Place { file: head::FILE, ..Place::nowhere() };
            if self.accept_key(head.key, place) {
                self.listing(head.listing.as_ref(), place);
            }
            self.watched.push(Watched::new(head.position(), Why::Head));
        }
        self.watch_found();
        let (days, strangers) = folder::day_files(self.folder)?;
        for name in strangers {
            let place = Place { file: &name, ..Place::nowhere() };
            self.find(FindingKind::FileName, place, "the file is not named after a day".to_owned());
        }
        let mut lines = Lines::until_now(self.folder)?;
        loop {
            match next_settled(self.folder, &mut lines)? {
                Next::End => break,
                Next::Line => self.line(&lines),
                Next::TooLong => self.not_a_record(&lines, FindingKind::NotARecord, 0),
                Next::Torn => {
                    self.not_a_record(&lines, FindingKind::TornLine, 1);
                    if lines.is_in_last_file() {
                        break;
                    }
                }
            }
        }
        // A head is written before the first file is made.
        self.finish(head.is_some() || days.is_empty());
        Ok(())
    }

    fn load_head(&mut self) -> Option<Head> {
        Head::load(self.folder).unwrap_or_else(|error| {
            let place = Place { file: head::FILE, ..Place::nowhere() };
            self.find(FindingKind::Head, place, error.to_string());
            None
        })
    }

    /// What was there before the list is held to the record that it had reached then: its head and its checkpoints do not
    /// tell it from another journal of the same key. What is wrong with the list itself is told where that is checked.
    fn watch_found(&mut self) {
        let Ok((beside, name)) = place_of(self.folder) else { return };
        let Ok(Some((list, _))) = List::read(&beside, self.report.key) else { return };
        if let Some(item) = list.last_of(&name).filter(|item| item.kind == Kind::Found) {
            self.watched.push(Watched::new(item.reached, Why::Listed));
        }
    }

    fn line(&mut self, lines: &Lines) {
        let Some(line) = Line::parse(lines.bytes()) else {
            return self.not_a_record(lines, FindingKind::NotARecord, 0);
        };
        let place = || Place { file: lines.file(), line: lines.number(), seq: Some(line.position.seq) };
        for wrong in self.chain.breaks(&line) {
            self.find(kind_of(wrong), place(), format!("record {}: {wrong}", line.position.seq));
        }
        let is_in_place = folder::day_of(lines.file()).is_some_and(|day| day.day() == line.time.stamp.day());
        if !is_in_place && self.wrong_day != lines.file() {
            lines.file().clone_into(&mut self.wrong_day);
            let what = format!("the file holds records of another day, `{}`", line.time.stamp.day_text());
            self.find(FindingKind::WrongDay, place(), what);
        }
        self.report.unsealed += 1;
        match Own::of(line.entry) {
            Own::OfUser => {}
            Own::Malformed => {
                let what = "the entry claims to be the journal's own and is not".to_owned();
                self.find(FindingKind::Checkpoint, place(), what);
            }
            Own::Recovered(recovered) => self.recovered(&recovered, place()),
            Own::Checkpoint(checkpoint) => self.checkpoint(&checkpoint, place()),
        }
        self.pass(&line);
    }

    /// Takes note of a record and goes on from it.
    fn pass(&mut self, line: &Line<'_>) {
        for watched in self.watched.iter_mut().filter(|watched| watched.position.seq == line.position.seq) {
            match watched.state {
                Seen::Itself => {}
                _ if watched.position == line.position && line.is_intact() => watched.state = Seen::Itself,
                _ => watched.state = Seen::Another,
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

    fn checkpoint(&mut self, checkpoint: &Checkpoint, place: Place<'_>) {
        if !self.accept_key(checkpoint.key, place) {
            return;
        }
        let tree = checkpoint.tree().filter(|_| checkpoint.is_signed());
        if tree.as_ref() != Some(&self.tree) || place.seq != Some(checkpoint.size + 1) {
            let what = match tree {
                Some(_) => "the records before this checkpoint are not those that were signed",
                None => {
                    "the checkpoint's signature is not one of its key, or its peaks are not those of its root"
                }
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

    /// Takes note of what was signed about the journal's place among others.
    fn listing(&mut self, said: Option<&Listing>, place: Place<'_>) {
        let Some(said) = said else { return };
        let is_own_name = place_of(self.folder).is_ok_and(|(_, name)| name == said.name);
        if !is_own_name && !self.wrong_name {
            self.wrong_name = true;
            let what = format!("the folder holds the journal that was signed as `{}`", said.name);
            self.find(FindingKind::JournalName, place, what);
        }
        if self.report.listing.as_ref().is_none_or(|known| known.known.seq < said.known.seq) {
            self.report.listing = Some(said.clone());
        }
    }

    fn recovered(&mut self, recovered: &Recovered, place: Place<'_>) {
        for expected in &recovered.set_aside {
            let found = recover::describe(self.folder, expected.file.clone());
            if found.is_ok_and(|found| found == *expected) {
                continue;
            }
            let what = format!("the line that was set aside in `{}` is gone or changed", expected.file);
            self.find(FindingKind::SetAside, place, what);
        }
    }

    fn accept_key(&mut self, key: PublicKey, place: Place<'_>) -> bool {
        let trusted = *self.report.key.get_or_insert(key);
        if trusted != key {
            let what = format!("it is signed by `{key}`, which is not the key of this journal, `{trusted}`");
            self.find(FindingKind::ForeignKey, place, what);
        }
        trusted == key
    }

    fn not_a_record(&mut self, lines: &Lines, kind: FindingKind, ahead: u64) {
        let place = Place { file: lines.file(), line: lines.number() + ahead, seq: None };
        let after = self.chain.last.seq;
        self.find(kind, place, format!("the line after record {after} is not a whole record"));
    }

    fn finish(&mut self, has_head: bool) {
        if !has_head && !self.report.has(FindingKind::Head) {
            let place = Place { file: head::FILE, ..Place::nowhere() };
            self.find(FindingKind::Head, place, "the signed head of the journal is missing".to_owned());
        }
        for watched in std::mem::take(&mut self.watched) {
            self.settle(&watched);
        }
        // Read again, since a writer may have opened or closed the journal meanwhile. Only a closed head says that
        // nothing may follow.
        let (last, place) = (self.chain.last.seq, Place { file: head::FILE, ..Place::nowhere() });
        let Ok(Some(head)) = Head::load(self.folder) else { return };
        self.report.closed = head.end() == End::Closed && self.report.key == Some(head.key);
        if head.end() == End::Closed && head.position().seq < last {
            let end = head.position().seq;
            let what = format!("the journal was closed after record {end}, but goes on to {last}");
            self.find(FindingKind::ForgedTail, place, what);
        }
        // The head names the journal's place before the first checkpoint does, and before the first record.
        let is_older = match &head.listing {
            None => self.report.listing.is_some(),
            Some(listing) => listing.is_pending() && self.report.records > 0,
        };
        if is_older {
            self.find(FindingKind::Head, place, "the head is older than the records".to_owned());
        }
    }

    fn settle(&mut self, watched: &Watched) {
        let Position { seq, hash } = watched.position;
        let (kind, source) = match watched.why {
            Why::Expected => (FindingKind::Expected, "expected"),
            Why::Head => (FindingKind::Truncated, "signed as part of the journal in `head.json`"),
            // Told with the list, as what it is: another journal in the place of this one.
            Why::Listed => {
                let is_lacking = seq > 0 && watched.state != Seen::Itself;
                self.report.lacks = is_lacking.then_some(watched.position);
                return;
            }
        };
        let last = self.chain.last.seq;
        let what = match watched.state {
            _ if seq == 0 => return,
            Seen::Itself => return,
            Seen::Another => format!("record {seq} is not `{hash}`, which was {source}"),
            Seen::Nothing if last < seq => {
                format!("the journal ends with record {last}, but {seq} was {source}")
            }
            Seen::Nothing => format!("record {seq} is not there, but was {source}"),
        };
        let place = Place { seq: Some(seq), ..Place::nowhere() };
        self.find(kind, place, what);
    }

    fn find(&mut self, kind: FindingKind, place: Place<'_>, what: String) {
        let Place { file, line, seq } = place;
        self.report.add(Finding { kind, file: file.to_owned(), line, seq, what });
    }
}

/// A line without its end may be one that a writer is just writing: it gets the time to finish.
fn next_settled(folder: &Path, lines: &mut Lines) -> Result<Next, JournalError> {
    let mut next = lines.next()?;
    for _ in 0..PATIENCE {
        if next != Next::Torn || !lines.is_in_last_file() {
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

fn kind_of(wrong: Break) -> FindingKind {
    match wrong {
        Break::Edited => FindingKind::Edited,
        Break::NotCanonical => FindingKind::NotCanonical,
        Break::Missing { .. } => FindingKind::Missing,
        Break::Repeated { .. } => FindingKind::OutOfOrder,
        Break::Unlinked { .. } => FindingKind::Unlinked,
        Break::TimeBackwards { .. } => FindingKind::TimeBackwards,
    }
}

const PATIENCE: u32 = 200;
const MOMENT: Duration = Duration::from_millis(10);
