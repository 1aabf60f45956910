//! How does a journal take its place in the list of journals, and keep up with the list?

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    JournalError, Key, Position, PublicKey, Span, folder,
    head::{End, Head},
    list::{self, Kind, List},
    listing::Listing,
    read,
    recover::Tail,
    stamp::Stamp,
};

/// The place of a journal that is being written.
#[derive(Debug)]
pub(crate) struct Membership {
    beside: PathBuf,
    key: PublicKey,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    listing: Listing,
    /// Of the list when it was last read: it only grows.
    length: Option<u64>,
}

impl Membership {
    /// Finds the journal in the list, or writes it down there. To be done before anything is appended.
    pub(crate) fn join(folder: &Path, key: &Key, tail: &Tail, now: Stamp) -> Result<Self, JournalError> {
        let (beside, name) = place_of(folder)?;
        if let Some(signed) = tail.listing.as_ref().filter(|listing| listing.name != name) {
            return Err(JournalError::untrusted(format!(
                "the folder `{name}` holds the journal `{}` (give the folder back its name)",
                signed.name
            )));
        }
        let list = List::load(&beside, key.public())?;
        let listing = match listed(folder, &list, &name, tail)? {
            Some(listing) => listing,
            None => enter(folder, &beside, &name, key, tail, now)?,
        };
        let state = Mutex::new(State { listing, length: None });
        Ok(Self { beside, key: key.public(), state })
    }

    /// What heads and checkpoints sign.
    pub(crate) fn listing(&self) -> Listing {
        self.state().listing.clone()
    }

    /// Takes note of the journals that were begun meanwhile, so that cutting them off the list is seen here. What the
    /// list lost or had changed is for the check to find: then what is known stays.
    pub(crate) fn refresh(&self) {
        let mut state = self.state();
        let length = self.beside.join(list::FILE).symlink_metadata().ok().map(|meta| meta.len());
        if length == state.length {
            return;
        }
        state.length = length;
        if let Ok(list) = List::load(&self.beside, self.key)
            && list.has(state.listing.known)
        {
            state.listing.known = list.last();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder that the journal's folder stands in, and its name there. Links are not followed: who checks does not either.
pub(crate) fn place_of(folder: &Path) -> Result<(PathBuf, String), JournalError> {
    let path =
        std::path::absolute(folder).map_err(|error| JournalError::io("find the folder", folder, error))?;
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| is_plain(name));
    match (path.parent(), name) {
        (Some(beside), Some(name)) => Ok((beside.into(), name.to_owned())),
        _ => Err(JournalError::untrusted(format!(
            "its folder `{}` has no name that could be signed (choose a plain one)",
            folder.display()
        ))),
    }
}

/// The place that the journal has already; none when it is to be written down now.
fn listed(folder: &Path, list: &List, name: &str, tail: &Tail) -> Result<Option<Listing>, JournalError> {
    let known = list.last();
    let Some(signed) = &tail.listing else {
        return match list.last_of(name) {
            _ if !tail.has_head || list.items().is_empty() => Ok(None),
            Some(item) if item.kind == Kind::Found && holds(folder, tail, item.reached)? => {
                Ok(Some(Listing { begun: item.position(), known, name: name.to_owned() }))
            }
            None => Err(JournalError::Unlisted { name: name.to_owned() }),
            Some(_) => Err(JournalError::untrusted(format!("it is not the one that `{}` names", list::FILE))),
        };
    };
    if signed.is_pending() && tail.chain.last != Position::START {
        return Err(JournalError::untrusted("`head.json` is older than its records"));
    }
    if list.has(signed.begun) && list.has(signed.known) {
        if list.last_of(name).is_some_and(|item| item.position() != signed.begun) {
            return Err(JournalError::untrusted("an older journal was put in the place of a newer one"));
        }
        return Ok(Some(Listing { known, ..signed.clone() }));
    }
    if signed.is_pending() {
        // The writer died before it had written its line: nothing was appended.
        return Ok(None);
    }
    Err(JournalError::untrusted(format!(
        "the list of journals, `{}`, ends with line {}, but had {} (put it back)",
        list::FILE,
        known.seq,
        signed.known.seq
    )))
}

/// Whether a journal from before the list has this very record. All of it is read only where a crash left its head behind,
/// and only once: the next head has a place in the list.
fn holds(folder: &Path, tail: &Tail, record: Position) -> Result<bool, JournalError> {
    let last = tail.chain.last;
    if record.seq == 0 || record.seq >= last.seq {
        return Ok(record.seq == 0 || record == last);
    }
    Ok(read(folder, Span::default())?.any(|found| found.is_ok_and(|found| found.position == record)))
}

/// Writes the journal down. The head that names the line comes first: a line without its folder is a removed journal.
fn enter(
    folder: &Path,
    beside: &Path,
    name: &str,
    key: &Key,
    tail: &Tail,
    now: Stamp,
) -> Result<Listing, JournalError> {
    let _lock = folder::lock_list(beside)?;
    let mut list = List::load(beside, key.public())?;
    let on_disk = list.last();
    if list.items().is_empty() {
        for (name, reached) in older_journals(beside, key.public())? {
            list.push(Kind::Found, &name, reached, now, key);
        }
    }
    let begun = if tail.has_head && tail.listing.is_none() {
        // Nobody had this line a moment ago: it was made of the head that we hold the lock of.
        let own = list.last_of(name).filter(|item| item.kind == Kind::Found);
        own.ok_or_else(|| JournalError::Unlisted { name: name.to_owned() })?.position()
    } else {
        let begun = list.push(Kind::Begun, name, Position::START, now, key);
        let listing = Listing { begun, known: on_disk, name: name.to_owned() };
        Head::sign(tail.chain.last, tail.chain.stamp, End::Open, Some(listing), key).save(folder)?;
        begun
    };
    list.save(beside)?;
    Ok(Listing { begun, known: list.last(), name: name.to_owned() })
}

/// The journals of this key that were begun before there was a list, by name.
fn older_journals(beside: &Path, key: PublicKey) -> Result<Vec<(String, Position)>, JournalError> {
    let mut found = Vec::new();
    for name in folder::names(beside)?.into_iter().filter(|name| is_plain(name)) {
        // One that cannot be read stays unlisted, which a check reports beside what is wrong with it.
        let Ok(Some(head)) = Head::load(&beside.join(&name)) else { continue };
        match &head.listing {
            _ if head.key != key => {}
            None => found.push((name, head.position())),
            Some(listing) if listing.is_pending() => {}
            Some(_) => {
                return Err(JournalError::untrusted(format!(
                    "the list of journals, `{}`, is missing, but `{name}` was in it (put it back)",
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
    use crate::{Digest, Journal, Options, verify, verify_list};

    fn open(beside: &Path) -> Result<Journal, JournalError> {
        let key = Key::open_or_create(&beside.join("key"))?;
        Journal::open(&beside.join("journal"), key, Options::default(), Arc::new(|| UNIX_EPOCH))
    }

    /// Leaves what one leaves who dies before the line is written: a head that names a line which is not there.
    fn die_before_the_line(beside: &Path) {
        let key = Key::open_or_create(&beside.join("key")).unwrap();
        let folder = beside.join("journal");
        folder::prepare(&folder).unwrap();
        let begun = Position { seq: 1, hash: Digest::of(b"never written") };
        let listing = Listing { begun, known: Position::START, name: "journal".to_owned() };
        Head::sign(Position::START, Stamp::EPOCH, End::Open, Some(listing), &key).save(&folder).unwrap();
    }

    /// A journal as it was written before there was a list: neither head nor records know of one. The head names record
    /// `reached`.
    fn put_old(beside: &Path, word: &str, records: usize, reached: usize) {
        let elsewhere = tempfile::tempdir_in(beside).unwrap();
        let key = || Key::open_or_create(&beside.join("key")).unwrap();
        let folder = elsewhere.path().join("journal");
        let journal = Journal::open(&folder, key(), Options::default(), Arc::new(|| UNIX_EPOCH)).unwrap();
        let append = |_| journal.append(&serde_json::json!({"kind": word})).unwrap();
        let written: Vec<Position> = (0..records).map(append).collect();
        drop(journal);
        Head::sign(written[reached - 1], Stamp::EPOCH, End::Open, None, &key()).save(&folder).unwrap();
        fs::rename(&folder, beside.join("journal")).unwrap();
    }

    /// Another journal, so that the list is made.
    fn begin_another(beside: &Path) {
        let key = Key::open_or_create(&beside.join("key")).unwrap();
        let another =
            Journal::open(&beside.join("another"), key, Options::default(), Arc::new(|| UNIX_EPOCH));
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
    fn another_old_journal_of_the_same_key_does_not_pass_for_the_one_that_was_found() {
        // As long, longer, and with a head that names the same number; found at its end, and left by a crash.
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
    fn the_old_journal_that_was_found_goes_on_wherever_its_head_was() {
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
    fn who_died_before_the_line_was_written_is_written_down_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        die_before_the_line(dir.path());
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
    fn a_head_from_before_the_first_record_does_not_hide_the_records() {
        let dir = tempfile::tempdir().unwrap();
        die_before_the_line(dir.path());
        let folder = dir.path().join("journal");
        let first = fs::read(folder.join("head.json")).unwrap();
        let journal = open(dir.path()).unwrap();
        journal.append(&serde_json::json!({"kind": "test"})).unwrap();
        journal.close().unwrap();
        fs::write(folder.join("head.json"), first).unwrap();
        assert!(verify(&folder, None, None).findings.iter().any(|finding| finding.kind.code() == "head"));
        // For the writer it counts what the checkpoint says, which stands in the chain.
        open(dir.path()).unwrap().close().unwrap();
        let report = verify(&folder, None, None);
        assert!(report.is_clean(), "{:?}", report.findings);
    }
}
