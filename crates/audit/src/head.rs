//! How far does the journal reach at least? The anchor against a cut tail.

use std::{io::Read as _, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    Digest, JournalError, Key, Position, PublicKey, folder,
    listing::{Listing, signed_part},
    stamp::Stamp,
};

/// The signed file `head.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    clean: bool,
    hash: Digest,
    pub(crate) key: PublicKey,
    /// None in heads that were written before there was a list of journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) listing: Option<Listing>,
    seq: u64,
    signature: String,
    time: String,
}

/// Whether the writer is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing follows.
    Closed,
    /// A writer is at work, or died.
    Open,
}

impl Head {
    pub(crate) fn sign(
        position: Position,
        stamp: Stamp,
        end: End,
        listing: Option<Listing>,
        key: &Key,
    ) -> Self {
        let mut head = Self {
            clean: end == End::Closed,
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
            None => Err(JournalError::untrusted(format!("`{FILE}` is not the one that was written"))),
        }
    }

    pub(crate) fn save(&self, folder: &Path) -> Result<(), JournalError> {
        let bytes = self.bytes()?;
        folder::replace(folder, FILE, &bytes)
            .map_err(|error| JournalError::io("write", &folder.join(FILE), error))
    }

    pub(crate) fn position(&self) -> Position {
        Position { seq: self.seq, hash: self.hash }
    }

    pub(crate) fn end(&self) -> End {
        if self.clean { End::Closed } else { End::Open }
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
    fn a_head_comes_back_as_it_was_and_every_changed_byte_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let key = Key::open_or_create(&dir.path().join("key")).unwrap();
        let position = Position { seq: 42, hash: Digest::of(b"record") };
        let listing = Listing { begun: position, known: position, name: "journal".to_owned() };
        for (end, listing) in
            [(End::Open, None), (End::Open, Some(listing.clone())), (End::Closed, Some(listing))]
        {
            let head = Head::sign(position, Stamp::EPOCH, end, listing.clone(), &key);
            head.save(dir.path()).unwrap();
            let found = Head::load(dir.path()).unwrap().unwrap();
            assert_eq!((found.position(), found.end(), found.key), (position, end, key.public()));
            assert_eq!(found.listing, listing);
        }
        let written = fs::read(dir.path().join(FILE)).unwrap();
        for place in 0..written.len() {
            // 0x2a makes a space of the LF: other bytes, the same JSON.
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
