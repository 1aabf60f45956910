//! Checkpoints: records that sign the journal up to them.
//!
//! A checkpoint signs the Merkle root of all records before it. It also has the peaks of the tree, from which a writer
//! can continue without reading older records.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Key, PublicKey, RecordDigest,
    entry::{CHECKPOINT, RECOVERED},
    listing::{JournalListing, signed_part},
    tree::MerkleTree,
};

/// The entry of a checkpoint record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    kind: String,
    /// `None` in checkpoints from before the list of journals existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) listing: Option<JournalListing>,
    pub(crate) size: u64,
    pub(crate) root: RecordDigest,
    pub(crate) key: PublicKey,
    signature: String,
    peaks: Vec<RecordDigest>,
}

/// The signed part of a checkpoint, as used in receipts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seal {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) listing: Option<JournalListing>,
    pub(crate) size: u64,
    pub(crate) root: RecordDigest,
    pub(crate) key: PublicKey,
    signature: String,
}

/// An entry of the journal itself: it was not closed properly, and what the recovery found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Recovered {
    kind: String,
    /// The number of records before this one that no checkpoint covers. Only the chain protected them.
    pub(crate) unsealed: u64,
    pub(crate) set_aside: Vec<SetAside>,
}

/// A line that a crash cut, moved to a separate file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetAside {
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) digest: RecordDigest,
}

/// An entry, classified by whether the journal itself wrote it.
#[derive(Debug)]
pub(crate) enum JournalOwnEntry {
    Checkpoint(Box<Checkpoint>),
    Recovered(Recovered),
    /// Claims to be an entry of the journal itself, but has another shape.
    Malformed,
    OfUser,
}

impl JournalOwnEntry {
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
    pub(crate) fn sign(tree: &MerkleTree, listing: JournalListing, key: &Key) -> Self {
        let (size, root, listing) = (tree.size(), tree.root(), Some(listing));
        let signature = key.sign(&signed_text(size, root, listing.as_ref()));
        let peaks = tree.peaks().to_vec();
        Self { kind: CHECKPOINT.to_owned(), listing, size, root, key: key.public(), signature, peaks }
    }

    /// The tree to continue from. `None` if the peaks do not match the root.
    pub(crate) fn tree(&self) -> Option<MerkleTree> {
        MerkleTree::from_peaks(self.size, self.peaks.clone()).filter(|tree| tree.root() == self.root)
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
    /// Whether the named key made the signature.
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

fn signed_text(size: u64, root: RecordDigest, listing: Option<&JournalListing>) -> String {
    let (version, listing) = signed_part(listing);
    format!("toolgate journal checkpoint {version}\n{size}\n{root}\n{listing}")
}

const KIND: &str = r#""kind":""#;
