//! Are all journals there that were ever begun, and no others?

use std::path::{Path, PathBuf};

use crate::{
    JournalError, Position, PublicKey,
    head::Head,
    list::{self, Item, Kind, List},
    listing::Listing,
    membership::place_of,
};

use super::{Finding, FindingKind, Report};

/// Checks the list of journals in the folder `beside` against the journals that were checked before, each with its own
/// report. None where no list was ever written: then nothing tells whether a whole journal is missing.
pub fn verify_list(
    beside: &Path,
    trusted: Option<PublicKey>,
    journals: &[(PathBuf, Report)],
) -> Option<Report> {
    let named = journals.iter().filter_map(|(folder, report)| Some((place_of(folder).ok()?.1, report)));
    let mut check =
        ListCheck { beside, journals: named.collect(), report: Report { key: trusted, ..Report::default() } };
    // The list is read after the journals: what they knew then must be in it now.
    match List::read(beside, trusted) {
        Ok(Some((list, wrong))) => {
            for flaw in wrong {
                check.find(flaw.kind, flaw.line, flaw.what);
            }
            check.run(&list);
        }
        Ok(None) if !check.journals.iter().any(|(_, report)| is_listed(report)) => return None,
        Ok(None) => check.run(&List::default()),
        Err(error) => check.find(FindingKind::Unreadable, 0, error.to_string()),
    }
    Some(check.report)
}

struct ListCheck<'a> {
    beside: &'a Path,
    journals: Vec<(String, &'a Report)>,
    report: Report,
}

impl ListCheck<'_> {
    fn run(&mut self, list: &List) {
        let items = list.items();
        self.report.records = items.len() as u64;
        self.report.first = items.first().map(Item::position);
        self.report.last = items.last().map(Item::position);
        let journals = std::mem::take(&mut self.journals);
        for (name, report) in &journals {
            self.known_lines(list, name, report);
            self.unlisted(list, name, report);
        }
        for item in items {
            let is_newest = list.last_of(&item.name).map(Item::position) == Some(item.position());
            let holds_another = || {
                let mut reports = journals.iter().filter(|(name, _)| *name == item.name);
                let is_so = reports.any(|(_, report)| report.lacks == Some(item.reached));
                is_so.then_some("its folder holds another one")
            };
            let what = if is_newest {
                self.is_gone(item).or_else(holds_another)
            } else {
                Some("another one was begun in its place")
            };
            if let Some(what) = what {
                let what = format!("the journal `{}` of {}: {what}", item.name, item.time);
                self.find(FindingKind::JournalMissing, item.position().seq, what);
            }
        }
    }

    /// What head and checkpoints of a journal knew of the list.
    fn known_lines(&mut self, list: &List, name: &str, report: &Report) {
        let Some(Listing { known, .. }) = report.listing.as_ref().filter(|listing| !list.has(listing.known))
        else {
            return;
        };
        let what = format!(
            "the journal `{name}` knew line {} of the list, `{}`, but it is not there",
            known.seq, known.hash
        );
        self.find(FindingKind::ListCut, 0, what);
    }

    /// An empty folder may be one that somebody just begins; what is in none cannot be hidden in it.
    fn unlisted(&mut self, list: &List, name: &str, report: &Report) {
        let is_empty = report.records == 0 && report.is_clean();
        if is_empty || list.items().is_empty() || list.last_of(name).is_some() {
            return;
        }
        self.find(FindingKind::JournalUnlisted, 0, format!("the journal `{name}` is not in the list"));
    }

    /// Why the folder does not hold the journal of its line, if it does not.
    fn is_gone(&self, item: &Item) -> Option<&'static str> {
        // A head is written before its line, so it is there whoever begins a journal just now.
        let head = match Head::load(&self.beside.join(&item.name)) {
            Ok(Some(head)) => head,
            Ok(None) => return Some("its folder is gone, or empty"),
            Err(JournalError::Io { .. }) => return Some("its folder cannot be read"),
            // What is wrong with a head is told where its journal is checked.
            Err(_) => return None,
        };
        match &head.listing {
            Some(listing) if listing.begun == item.position() => None,
            Some(_) => Some("its folder holds another one"),
            None if item.kind == Kind::Begun => Some("its folder holds one from before there was a list"),
            None if head.position().seq < item.reached.seq => Some("it has fewer records than it had then"),
            None => None,
        }
    }

    fn find(&mut self, kind: FindingKind, line: u64, what: String) {
        self.report.add(Finding { kind, file: list::FILE.to_owned(), line, seq: None, what });
    }
}

/// Whether the journal says that there was a list.
fn is_listed(report: &Report) -> bool {
    report.listing.as_ref().is_some_and(|listing| listing.known != Position::START)
}
