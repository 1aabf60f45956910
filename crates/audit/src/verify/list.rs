//! Verifies that all listed journals exist, and no others.

use std::path::{Path, PathBuf};

use crate::{
    JournalError, PublicKey, RecordPosition,
    head::Head,
    list::{self, JournalList, JournalListItem, JournalListItemKind},
    listing::JournalListing,
    membership::place_of,
};

use super::{FindingKind, JournalFinding, Report};

/// Verifies the list of journals in the directory `beside` against journals that were already verified, each with its
/// report. `None` if no list was ever written; a missing journal can then not be detected.
pub fn verify_list(
    beside: &Path,
    trusted: Option<PublicKey>,
    journals: &[(PathBuf, Report)],
) -> Option<Report> {
    let named = journals.iter().filter_map(|(folder, report)| Some((place_of(folder).ok()?.1, report)));
    let mut check =
        ListCheck { beside, journals: named.collect(), report: Report { key: trusted, ..Report::default() } };
    // Read the list after the journals: every line that they knew must be in it.
    match JournalList::read(beside, trusted) {
        Ok(Some((list, wrong))) => {
            for flaw in wrong {
                check.find(flaw.kind, flaw.line, flaw.what);
            }
            check.run(&list);
        }
        Ok(None) if !check.journals.iter().any(|(_, report)| is_listed(report)) => return None,
        Ok(None) => check.run(&JournalList::default()),
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
    fn run(&mut self, list: &JournalList) {
        let items = list.items();
        self.report.records = items.len() as u64;
        self.report.first = items.first().map(JournalListItem::position);
        self.report.last = items.last().map(JournalListItem::position);
        let journals = std::mem::take(&mut self.journals);
        for (name, report) in &journals {
            self.known_lines(list, name, report);
            self.unlisted(list, name, report);
        }
        for item in items {
            let is_newest = list.last_of(&item.name).map(JournalListItem::position) == Some(item.position());
            let holds_another = || {
                let mut reports = journals.iter().filter(|(name, _)| *name == item.name);
                let is_so = reports.any(|(_, report)| report.lacks == Some(item.reached));
                is_so.then_some("its directory contains another one")
            };
            let what = if is_newest {
                self.is_gone(item).or_else(holds_another)
            } else {
                Some("another one was created in its place")
            };
            if let Some(what) = what {
                let what = format!("the journal `{}` of {}: {what}", item.name, item.time);
                self.find(FindingKind::JournalMissing, item.position().seq, what);
            }
        }
    }

    /// Checks that the list still has the lines that the journal's head and checkpoints knew.
    fn known_lines(&mut self, list: &JournalList, name: &str, report: &Report) {
        let Some(JournalListing { known, .. }) =
            report.listing.as_ref().filter(|listing| !list.has(listing.known))
        else {
            return;
        };
        let what = format!(
            "the journal `{name}` knew line {} of the list, `{}`, but the line is missing",
            known.seq, known.hash
        );
        self.find(FindingKind::ListCut, 0, what);
    }

    /// An empty directory may be a journal that is being created. It cannot hide records.
    fn unlisted(&mut self, list: &JournalList, name: &str, report: &Report) {
        let is_empty = report.records == 0 && report.is_clean();
        if is_empty || list.items().is_empty() || list.last_of(name).is_some() {
            return;
        }
        self.find(FindingKind::JournalUnlisted, 0, format!("the journal `{name}` is not in the list"));
    }

    /// Why the directory does not contain the journal of its line, if it does not.
    fn is_gone(&self, item: &JournalListItem) -> Option<&'static str> {
        // The head is written before the line, so a journal that is being created has one.
        let head = match Head::load(&self.beside.join(&item.name)) {
            Ok(Some(head)) => head,
            Ok(None) => return Some("its directory is missing or empty"),
            Err(JournalError::Io { .. }) => return Some("its directory cannot be read"),
            // Flaws of a head are reported with its journal.
            Err(_) => return None,
        };
        match &head.listing {
            Some(listing) if listing.begun == item.position() => None,
            Some(_) => Some("its directory contains another one"),
            None if item.kind == JournalListItemKind::Begun => {
                Some("its directory contains one from before the list existed")
            }
            None if head.position().seq < item.reached.seq => {
                Some("it has fewer records than when it was listed")
            }
            None => None,
        }
    }

    fn find(&mut self, kind: FindingKind, line: u64, what: String) {
        self.report.add(JournalFinding { kind, file: list::FILE.to_owned(), line, seq: None, what });
    }
}

/// Whether the journal says that a list existed.
fn is_listed(report: &Report) -> bool {
    report.listing.as_ref().is_some_and(|listing| listing.known != RecordPosition::START)
}
