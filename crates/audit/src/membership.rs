//! Adds a journal to the list of journals and follows changes of the list.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    JournalError, Key, PublicKey, RecordPosition, TimeRange, folder,
    head::{Head, JournalHeadState},
    list::{self, JournalList, JournalListItemKind},
    listing::JournalListing,
    read,
    recover::Tail,
    stamp::Stamp,
};

/// The list entry of a journal that is open for writing.
#[derive(Debug)]
pub(crate) struct Membership {
    beside: PathBuf,
    key: PublicKey,
    state: Mutex<MembershipState>,
}

#[derive(Debug)]
struct MembershipState {
    listing: JournalListing,
    /// The length of the list when it was last read. The list only grows.
    length: Option<u64>,
}

impl Membership {
    /// Finds the journal in the list, or adds it. Must be called before anything is appended.
    pub(crate) fn join(folder: &Path, key: &Key, tail: &Tail, now: Stamp) -> Result<Self, JournalError> {
        let (beside, name) = place_of(folder)?;
        if let Some(signed) = tail.listing.as_ref().filter(|listing| listing.name != name) {
            return Err(JournalError::untrusted(format!(
                "the directory `{name}` contains the journal `{}` (rename the directory back)",
                signed.name
            )));
        }
        let list = JournalList::load(&beside, key.public())?;
        let listing = match listed(folder, &list, &name, tail)? {
            Some(listing) => listing,
            None => enter(folder, &beside, &name, key, tail, now)?,
        };
        let state = Mutex::new(MembershipState { listing, length: None });
        Ok(Self { beside, key: key.public(), state })
    }

    /// The listing that heads and checkpoints sign.
    pub(crate) fn listing(&self) -> JournalListing {
        self.state().listing.clone()
    }

    /// Updates the last known line of the list. A later truncation is then detected here. If the list was changed or
    /// truncated, the known line stays; verification reports that.
    pub(crate) fn refresh(&self) {
        let mut state = self.state();
        let length = self.beside.join(list::FILE).symlink_metadata().ok().map(|meta| meta.len());
        if length == state.length {
            return;
        }
        state.length = length;
        if let Ok(list) = JournalList::load(&self.beside, self.key)
            && list.has(state.listing.known)
        {
            state.listing.known = list.last();
        }
    }

    fn state(&self) -> MutexGuard<'_, MembershipState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parent of the journal's directory, and the directory's name. Symlinks are not followed, as in verification.
pub(crate) fn place_of(folder: &Path) -> Result<(PathBuf, String), JournalError> {
    let path =
        std::path::absolute(folder).map_err(|error| JournalError::io("find the directory", folder, error))?;
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| is_plain(name));
    match (path.parent(), name) {
        (Some(beside), Some(name)) => Ok((beside.into(), name.to_owned())),
        _ => Err(JournalError::untrusted(format!(
            "its directory `{}` has a name that cannot be signed (choose one without control characters)",
            folder.display()
        ))),
    }
}

/// The existing list entry of the journal. `None` if it has to be added.
fn listed(
    folder: &Path,
    list: &JournalList,
    name: &str,
    tail: &Tail,
) -> Result<Option<JournalListing>, JournalError> {
    let known = list.last();
    let Some(signed) = &tail.listing else {
        return match list.last_of(name) {
            _ if !tail.has_head || list.items().is_empty() => Ok(None),
            Some(item) if item.kind == JournalListItemKind::Found && holds(folder, tail, item.reached)? => {
                Ok(Some(JournalListing { begun: item.position(), known, name: name.to_owned() }))
            }
            None => Err(JournalError::Unlisted { name: name.to_owned() }),
            Some(_) => Err(JournalError::untrusted(format!("it is not the one that `{}` names", list::FILE))),
        };
    };
    if signed.is_pending() && tail.chain.last != RecordPosition::START {
        return Err(JournalError::untrusted("`head.json` is older than its records"));
    }
    if list.has(signed.begun) && list.has(signed.known) {
        if list.last_of(name).is_some_and(|item| item.position() != signed.begun) {
            return Err(JournalError::untrusted("an older journal replaced a newer one"));
        }
        return Ok(Some(JournalListing { known, ..signed.clone() }));
    }
    if signed.is_pending() {
        // The writer crashed before it wrote its line, so nothing was appended.
        return Ok(None);
    }
    Err(JournalError::untrusted(format!(
        "the list of journals, `{}`, ends with line {}, but had {} (restore it)",
        list::FILE,
        known.seq,
        signed.known.seq
    )))
}

/// Whether a journal from before the list contains this record. The whole journal is read only after a crash left an
/// old head, and only once: the next head has a listing.
fn holds(folder: &Path, tail: &Tail, record: RecordPosition) -> Result<bool, JournalError> {
    let last = tail.chain.last;
    if record.seq == 0 || record.seq >= last.seq {
        return Ok(record.seq == 0 || record == last);
    }
    Ok(read(folder, TimeRange::default())?.any(|found| found.is_ok_and(|found| found.position == record)))
}

/// Adds the journal to the list. The head is written first: a line without a directory would look like a removed
/// journal.
fn enter(
    folder: &Path,
    beside: &Path,
    name: &str,
    key: &Key,
    tail: &Tail,
    now: Stamp,
) -> Result<JournalListing, JournalError> {
    let _lock = folder::lock_list(beside)?;
    let mut list = JournalList::load(beside, key.public())?;
    let on_disk = list.last();
    if list.items().is_empty() {
        for (name, reached) in older_journals(beside, key.public())? {
            list.push(JournalListItemKind::Found, &name, reached, now, key);
        }
    }
    let begun = if tail.has_head && tail.listing.is_none() {
        // This line was just created from the head of this journal, whose lock is held.
        let own = list.last_of(name).filter(|item| item.kind == JournalListItemKind::Found);
        own.ok_or_else(|| JournalError::Unlisted { name: name.to_owned() })?.position()
    } else {
        let begun = list.push(JournalListItemKind::Begun, name, RecordPosition::START, now, key);
        let listing = JournalListing { begun, known: on_disk, name: name.to_owned() };
        Head::sign(tail.chain.last, tail.chain.stamp, JournalHeadState::Open, Some(listing), key)
            .save(folder)?;
        begun
    };
    list.save(beside)?;
    Ok(JournalListing { begun, known: list.last(), name: name.to_owned() })
}

/// The journals of this key from before the list, by name.
fn older_journals(beside: &Path, key: PublicKey) -> Result<Vec<(String, RecordPosition)>, JournalError> {
    let mut found = Vec::new();
    for name in folder::names(beside)?.into_iter().filter(|name| is_plain(name)) {
        // An unreadable journal stays unlisted. Verification reports that together with the damage.
        let Ok(Some(head)) = Head::load(&beside.join(&name)) else { continue };
        match &head.listing {
            _ if head.key != key => {}
            None => found.push((name, head.position())),
            Some(listing) if listing.is_pending() => {}
            Some(_) => {
                return Err(JournalError::untrusted(format!(
                    "the list of journals, `{}`, is missing, but `{name}` was in it (restore it)",
                    list::FILE
                )));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

fn is_plain(name: &str) -> bool {
    !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc, time::UNIX_EPOCH};

    use super::*;
    use crate::{Journal, JournalOptions, RecordDigest, verify, verify_list};

    fn open(beside: &Path) -> Result<Journal, JournalError> {
        let key = Key::open_or_create(&beside.join("key"))?;
        Journal::open(&beside.join("journal"), key, JournalOptions::default(), Arc::new(|| UNIX_EPOCH))
    }

    /// Leaves the state after a crash before the list is written: a head that names a missing line.
    fn crash_before_the_line(beside: &Path) {
        let key = Key::open_or_create(&beside.join("key")).unwrap();
        let folder = beside.join("journal");
        folder::prepare(&folder).unwrap();
        let begun = RecordPosition { seq: 1, hash: RecordDigest::of(b"never written") };
        let listing = JournalListing { begun, known: RecordPosition::START, name: "journal".to_owned() };
        Head::sign(RecordPosition::START, Stamp::EPOCH, JournalHeadState::Open, Some(listing), &key)
            .save(&folder)
            .unwrap();
    }

    /// A journal from before the list existed: neither head nor records mention a list. The head names record
    /// `reached`.
    fn put_old(beside: &Path, word: &str, records: usize, reached: usize) {
        let elsewhere = tempfile::tempdir_in(beside).unwrap();
        let key = || Key::open_or_create(&beside.join("key")).unwrap();
        let folder = elsewhere.path().join("journal");
        let journal =
            Journal::open(&folder, key(), JournalOptions::default(), Arc::new(|| UNIX_EPOCH)).unwrap();
        let append = |_| journal.append(&serde_json::json!({"kind": word})).unwrap();
        let written: Vec<RecordPosition> = (0..records).map(append).collect();
        drop(journal);
        Head::sign(written[reached - 1], Stamp::EPOCH, JournalHeadState::Open, None, &key())
            .save(&folder)
            .unwrap();
        fs::rename(&folder, beside.join("journal")).unwrap();
    }

    /// Creates another journal, and with it the list.
    fn begin_another(beside: &Path) {
        let key = Key::open_or_create(&beside.join("key")).unwrap();
        let another =
            Journal::open(&beside.join("another"), key, JournalOptions::default(), Arc::new(|| UNIX_EPOCH));
        another.unwrap().close().unwrap();
    }

    fn findings(beside: &Path) -> Vec<&'static str> {
        let check = |name: &str| (beside.join(name), verify(&beside.join(name), None, None));
        let reports = ["journal", "another"].map(check);
        let list = verify_list(beside, None, &reports).unwrap();
        let all = reports.iter().map(|(_, report)| report).chain([&list]);
        all.flat_map(|report| &report.findings).map(|finding| finding.kind.code()).collect()
    }

    #[test]
    fn other_old_journal_of_the_same_key_is_detected() {
        // Equal length, longer, and a head with the same number; found at its end, or left by a crash.
        for (found_at, (records, reached)) in
            [(3, (3, 3)), (3, (5, 5)), (3, (5, 3)), (2, (3, 3)), (2, (3, 2))]
        {
            let dir = tempfile::tempdir().unwrap();
            put_old(dir.path(), "ours", 3, found_at);
            begin_another(dir.path());
            assert_eq!(findings(dir.path()), [""; 0]);
            fs::remove_dir_all(dir.path().join("journal")).unwrap();
            put_old(dir.path(), "theirs", records, reached);
            assert_eq!(findings(dir.path()), ["journal_missing"], "{found_at} {records} {reached}");
            let refused = open(dir.path()).unwrap_err();
            assert!(matches!(refused, JournalError::Untrusted { .. }), "{refused:?}");
            assert_eq!(findings(dir.path()), ["journal_missing"], "nothing was signed for it");
        }
    }

    #[test]
    fn old_journal_continues_wherever_its_head_was() {
        for found_at in [1, 2, 3] {
            let dir = tempfile::tempdir().unwrap();
            put_old(dir.path(), "ours", 3, found_at);
            begin_another(dir.path());
            open(dir.path()).unwrap().close().unwrap();
            open(dir.path()).unwrap().close().unwrap();
            assert_eq!(findings(dir.path()), [""; 0]);
        }
    }

    #[test]
    fn journal_is_listed_after_a_crash_before_the_line() {
        let dir = tempfile::tempdir().unwrap();
        crash_before_the_line(dir.path());
        let folder = dir.path().join("journal");
        let report = verify(&folder, None, None);
        assert!(report.is_clean(), "{:?}", report.findings);
        assert!(verify_list(dir.path(), None, &[(folder.clone(), report)]).is_none());

        open(dir.path()).unwrap().close().unwrap();
        let list = verify_list(dir.path(), None, &[(folder.clone(), verify(&folder, None, None))]).unwrap();
        assert!(list.is_clean(), "{:?}", list.findings);
        assert_eq!(list.records, 1);
    }

    #[test]
    fn old_head_does_not_hide_records() {
        let dir = tempfile::tempdir().unwrap();
        crash_before_the_line(dir.path());
        let folder = dir.path().join("journal");
        let first = fs::read(folder.join("head.json")).unwrap();
        let journal = open(dir.path()).unwrap();
        journal.append(&serde_json::json!({"kind": "test"})).unwrap();
        journal.close().unwrap();
        fs::write(folder.join("head.json"), first).unwrap();
        assert!(verify(&folder, None, None).findings.iter().any(|finding| finding.kind.code() == "head"));
        // The writer uses the checkpoint's listing, which is in the chain.
        open(dir.path()).unwrap().close().unwrap();
        let report = verify(&folder, None, None);
        assert!(report.is_clean(), "{:?}", report.findings);
    }
}
