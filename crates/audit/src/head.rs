//! The signed head of a journal: the minimum length, which reveals a truncated journal.

use std::{io::Read as _, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    JournalError, Key, PublicKey, RecordDigest, RecordPosition, folder,
    listing::{JournalListing, signed_part},
    stamp::Stamp,
};

/// The signed file `head.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    clean: bool,
    hash: RecordDigest,
    pub(crate) key: PublicKey,
    /// `None` in heads from before the list of journals existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) listing: Option<JournalListing>,
    seq: u64,
    signature: String,
    time: String,
}

/// Whether the writer has closed the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalHeadState {
    /// No record follows.
    Closed,
    /// A writer is running or crashed.
    Open,
}

impl Head {
    pub(crate) fn sign(
        position: RecordPosition,
        stamp: Stamp,
        end: JournalHeadState,
        listing: Option<JournalListing>,
        key: &Key,
    ) -> Self {
        let mut head = Self {
            clean: end == JournalHeadState::Closed,
            hash: position.hash,
            key: key.public(),
            listing,
            seq: position.seq,
            signature: String::new(),
            time: stamp.text(),
        };
        head.signature = key.sign(&head.signed_text());
        head
    }

    /// The head of a journal, if it has one.
    pub(crate) fn load(folder: &Path) -> Result<Option<Self>, JournalError> {
        let path = folder.join(FILE);
        let file = match folder::open_regular(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| JournalError::io("open", &path, error))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_LENGTH).read_to_end(&mut bytes).map_err(|e| JournalError::io("read", &path, e))?;
        let head = serde_json::from_slice::<Self>(&bytes).ok();
        let head = head.filter(|head| head.bytes().is_ok_and(|canonical| canonical == bytes));
        match head.filter(|head| head.key.has_signed(&head.signed_text(), &head.signature)) {
            Some(head) => Ok(Some(head)),
            None => Err(JournalError::untrusted(format!("`{FILE}` was changed"))),
        }
    }

    pub(crate) fn save(&self, folder: &Path) -> Result<(), JournalError> {
        let bytes = self.bytes()?;
        folder::replace(folder, FILE, &bytes)
            .map_err(|error| JournalError::io("write", &folder.join(FILE), error))
    }

    pub(crate) fn position(&self) -> RecordPosition {
        RecordPosition { seq: self.seq, hash: self.hash }
    }

    pub(crate) fn end(&self) -> JournalHeadState {
        if self.clean { JournalHeadState::Closed } else { JournalHeadState::Open }
    }

    fn bytes(&self) -> Result<Vec<u8>, JournalError> {
        let mut bytes = serde_json_canonicalizer::to_vec(self)
            .map_err(|error| JournalError::Entry(format!("the head: {error}")))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    fn signed_text(&self) -> String {
        let end = if self.clean { "closed" } else { "open" };
        let (version, listing) = signed_part(self.listing.as_ref());
        let Self { seq, hash, time, .. } = self;
        format!("toolgate journal head {version}\n{seq}\n{hash}\n{time}\n{end}\n{listing}")
    }
}

pub(crate) const FILE: &str = "head.json";
const MAX_LENGTH: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn head_round_trips_and_every_changed_byte_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let key = Key::open_or_create(&dir.path().join("key")).unwrap();
        let position = RecordPosition { seq: 42, hash: RecordDigest::of(b"record") };
        let listing = JournalListing { begun: position, known: position, name: "journal".to_owned() };
        for (end, listing) in [
            (JournalHeadState::Open, None),
            (JournalHeadState::Open, Some(listing.clone())),
            (JournalHeadState::Closed, Some(listing)),
        ] {
            let head = Head::sign(position, Stamp::EPOCH, end, listing.clone(), &key);
            head.save(dir.path()).unwrap();
            let found = Head::load(dir.path()).unwrap().unwrap();
            assert_eq!((found.position(), found.end(), found.key), (position, end, key.public()));
            assert_eq!(found.listing, listing);
        }
        let written = fs::read(dir.path().join(FILE)).unwrap();
        for place in 0..written.len() {
            // 0x2a turns the LF into a space: different bytes, same JSON.
            for change in [0x01, 0x02, 0x20, 0x2a, 0x80] {
                let mut other = written.clone();
                other[place] ^= change;
                fs::write(dir.path().join(FILE), other).unwrap();
                assert!(Head::load(dir.path()).is_err(), "byte {place} ^ {change:#x}");
            }
        }
        fs::write(dir.path().join(FILE), [written.as_slice(), b" "].concat()).unwrap();
        assert!(Head::load(dir.path()).is_err());
        fs::remove_file(dir.path().join(FILE)).unwrap();
        assert_eq!(Head::load(dir.path()).unwrap(), None);
    }
}
