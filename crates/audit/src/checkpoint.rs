//! What does a checkpoint say, and is it true?
//!
//! A checkpoint is itself a record. It signs the Merkle root over all records before it, and carries the tree's
//! peaks, so that a writer can go on from it without reading what came before.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Digest, Key, PublicKey,
    entry::{CHECKPOINT, RECOVERED},
    listing::{Listing, signed_part},
    tree::Tree,
};

/// The entry of a checkpoint record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    kind: String,
    /// None in checkpoints that were written before there was a list of journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) listing: Option<Listing>,
    pub(crate) size: u64,
    pub(crate) root: Digest,
    pub(crate) key: PublicKey,
    signature: String,
    peaks: Vec<Digest>,
}

/// The signed part of a checkpoint, as receipts carry it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seal {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) listing: Option<Listing>,
    pub(crate) size: u64,
    pub(crate) root: Digest,
    pub(crate) key: PublicKey,
    signature: String,
}

/// What the journal says about itself: that it was not closed, and what it found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Recovered {
    kind: String,
    /// How many records before this one no checkpoint covers: until now only the chain held them.
    pub(crate) unsealed: u64,
    pub(crate) set_aside: Vec<SetAside>,
}

/// A line that a crash cut, in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetAside {
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) digest: Digest,
}

/// An entry as far as the journal understands it.
#[derive(Debug)]
pub(crate) enum Own {
    Checkpoint(Box<Checkpoint>),
    Recovered(Recovered),
    /// Claims to be one of the journal's own and is not shaped like it.
    Malformed,
    OfUser,
}

impl Own {
    pub(crate) fn of(entry: &str) -> Self {
        if !entry.contains(KIND) {
            return Self::OfUser;
        }
        let Ok(value) = serde_json::from_str::<Value>(entry) else { return Self::OfUser };
        match value.get("kind").and_then(Value::as_str) {
            Some(CHECKPOINT) => {
                serde_json::from_value(value).map_or(Self::Malformed, |own| Self::Checkpoint(Box::new(own)))
            }
            Some(RECOVERED) => serde_json::from_value(value).map_or(Self::Malformed, Self::Recovered),
            _ => Self::OfUser,
        }
    }
}

impl Checkpoint {
    pub(crate) fn sign(tree: &Tree, listing: Listing, key: &Key) -> Self {
        let (size, root, listing) = (tree.size(), tree.root(), Some(listing));
        let signature = key.sign(&signed_text(size, root, listing.as_ref()));
        let peaks = tree.peaks().to_vec();
        Self { kind: CHECKPOINT.to_owned(), listing, size, root, key: key.public(), signature, peaks }
    }

    /// The tree to go on from; none when the peaks are not those of the root.
    pub(crate) fn tree(&self) -> Option<Tree> {
        Tree::from_peaks(self.size, self.peaks.clone()).filter(|tree| tree.root() == self.root)
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.seal().is_signed()
    }

    pub(crate) fn seal(&self) -> Seal {
        let (listing, signature) = (self.listing.clone(), self.signature.clone());
        Seal { listing, size: self.size, root: self.root, key: self.key, signature }
    }
}

impl Seal {
    /// Whether the key that the seal names has made it.
    pub(crate) fn is_signed(&self) -> bool {
        let text = signed_text(self.size, self.root, self.listing.as_ref());
        self.key.has_signed(&text, &self.signature)
    }
}

impl Recovered {
    pub(crate) fn new(unsealed: u64, set_aside: Vec<SetAside>) -> Self {
        Self { kind: RECOVERED.to_owned(), unsealed, set_aside }
    }
}

fn signed_text(size: u64, root: Digest, listing: Option<&Listing>) -> String {
    let (version, listing) = signed_part(listing);
    format!("toolgate journal checkpoint {version}\n{size}\n{root}\n{listing}")
}

const KIND: &str = r#""kind":""#;
