//! The Merkle tree of all records, and proofs that a record belongs to it.
//!
//! Hashing follows RFC 6962: a leaf is `SHA-256(0x00 ‖ digest of the record)`, a node `SHA-256(0x01 ‖ left ‖ right)`.
//! Only the peaks are kept: the roots of the complete subtrees from left to right, one for each bit of the size.

use sha2::{Digest as _, Sha256};

use crate::RecordDigest;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MerkleTree {
    size: u64,
    peaks: Vec<RecordDigest>,
}

impl MerkleTree {
    pub(crate) fn from_peaks(size: u64, peaks: Vec<RecordDigest>) -> Option<Self> {
        let wanted = usize::try_from(size.count_ones()).ok()?;
        (peaks.len() == wanted).then_some(Self { size, peaks })
    }

    pub(crate) fn push(&mut self, record: &RecordDigest) {
        let mut node = leaf(record);
        let mut whole = self.size;
        while whole & 1 == 1 {
            let Some(left) = self.peaks.pop() else { break };
            node = parent(&left, &node);
            whole >>= 1;
        }
        self.peaks.push(node);
        self.size += 1;
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn peaks(&self) -> &[RecordDigest] {
        &self.peaks
    }

    pub(crate) fn root(&self) -> RecordDigest {
        let mut peaks = self.peaks.iter().rev().copied();
        let Some(last) = peaks.next() else { return RecordDigest::of(b"") };
        peaks.fold(last, |right, left| parent(&left, &right))
    }
}

/// Collects the audit paths of chosen records in one pass over all records.
#[derive(Debug, Default)]
pub(crate) struct Prover {
    size: u64,
    peaks: Vec<Peak>,
    paths: Vec<Vec<RecordDigest>>,
}

#[derive(Debug)]
struct Peak {
    hash: RecordDigest,
    /// The paths that begin below this node.
    chosen: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Prove,
    Pass,
}

impl Prover {
    pub(crate) fn push(&mut self, record: &RecordDigest, choice: Choice) {
        let mut node = Peak { hash: leaf(record), chosen: Vec::new() };
        if choice == Choice::Prove {
            node.chosen.push(self.paths.len());
            self.paths.push(Vec::new());
        }
        let mut whole = self.size;
        while whole & 1 == 1 {
            let Some(left) = self.peaks.pop() else { break };
            node = self.join(left, node);
            whole >>= 1;
        }
        self.peaks.push(node);
        self.size += 1;
    }

    /// The root, and the path of each chosen record in push order.
    pub(crate) fn finish(mut self) -> (RecordDigest, Vec<Vec<RecordDigest>>) {
        let Some(mut right) = self.peaks.pop() else { return (RecordDigest::of(b""), self.paths) };
        while let Some(left) = self.peaks.pop() {
            right = self.join(left, right);
        }
        (right.hash, self.paths)
    }

    fn join(&mut self, left: Peak, right: Peak) -> Peak {
        self.extend(&left.chosen, right.hash);
        self.extend(&right.chosen, left.hash);
        let mut chosen = left.chosen;
        chosen.extend(right.chosen);
        Peak { hash: parent(&left.hash, &right.hash), chosen }
    }

    fn extend(&mut self, chosen: &[usize], sibling: RecordDigest) {
        for &index in chosen {
            if let Some(path) = self.paths.get_mut(index) {
                path.push(sibling);
            }
        }
    }
}

/// The root computed from a record, its index and its path (RFC 9162, 2.1.3.2). `None` if they do not fit together.
pub(crate) fn root_of(
    record: &RecordDigest,
    index: u64,
    size: u64,
    path: &[RecordDigest],
) -> Option<RecordDigest> {
    if index >= size {
        return None;
    }
    let (mut place, mut last, mut node) = (index, size - 1, leaf(record));
    for sibling in path {
        if last == 0 {
            return None;
        }
        if place & 1 == 1 || place == last {
            node = parent(sibling, &node);
            while place & 1 == 0 && place != 0 {
                place >>= 1;
                last >>= 1;
            }
        } else {
            node = parent(&node, sibling);
        }
        place >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(node)
}

fn leaf(record: &RecordDigest) -> RecordDigest {
    RecordDigest::finish(Sha256::new().chain_update([0]).chain_update(record.as_bytes()))
}

fn parent(left: &RecordDigest, right: &RecordDigest) -> RecordDigest {
    RecordDigest::finish(
        Sha256::new().chain_update([1]).chain_update(left.as_bytes()).chain_update(right.as_bytes()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: u64) -> Vec<RecordDigest> {
        (0..count).map(|number| RecordDigest::of(&number.to_be_bytes())).collect()
    }

    /// The definition in RFC 6962, 2.1.
    fn root_by_definition(records: &[RecordDigest]) -> RecordDigest {
        match records {
            [] => RecordDigest::of(b""),
            [one] => leaf(one),
            many => {
                let split = many.len().next_power_of_two() / 2;
                parent(&root_by_definition(&many[..split]), &root_by_definition(&many[split..]))
            }
        }
    }

    #[test]
    fn root_matches_the_definition() {
        for count in 0..70 {
            let mut tree = MerkleTree::default();
            let records = records(count);
            for record in &records {
                tree.push(record);
            }
            assert_eq!(tree.root(), root_by_definition(&records), "{count}");
            assert_eq!(MerkleTree::from_peaks(count, tree.peaks().to_vec()), Some(tree), "{count}");
        }
        assert_eq!(MerkleTree::from_peaks(3, records(1)), None);
    }

    #[test]
    fn path_proves_a_record_at_its_index_only() {
        for count in 1..40 {
            let records = records(count);
            let mut prover = Prover::default();
            for record in &records {
                prover.push(record, Choice::Prove);
            }
            let (root, paths) = prover.finish();
            assert_eq!(root, root_by_definition(&records));
            for (index, (record, path)) in (0..).zip(records.iter().zip(&paths)) {
                for place in 0..count + 2 {
                    let fits = root_of(record, place, count, path) == Some(root);
                    assert_eq!(fits, place == index, "record {index} at {place} of {count}");
                }
                let mut longer = path.clone();
                longer.push(root);
                assert_ne!(root_of(record, index, count, &longer), Some(root));
                if let Some((_, shorter)) = path.split_last() {
                    assert_ne!(root_of(record, index, count, shorter), Some(root));
                }
            }
        }
    }
}
