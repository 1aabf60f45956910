//! Receipts: prove single records to a person who does not have the journal.
//!
//! A receipt has the records, a signed checkpoint that covers them, and for each record the hashes up to the
//! checkpoint's root. Verification needs only the public key.

use std::{collections::BTreeSet, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    JournalError, PublicKey, RecordDigest,
    checkpoint::{JournalOwnEntry, Seal},
    lines::{JournalLines, LineRead},
    read::Record,
    record::RecordLine,
    tree::{Choice, Prover, root_of},
};

/// Records, and the proof that they are part of a signed journal. Its JSON format is stable; see
/// `docs/journal-format.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    #[serde(rename = "toolgateReceipt")]
    version: u32,
    checkpoint: Seal,
    records: Vec<Proven>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proven {
    record: Value,
    path: Vec<RecordDigest>,
}

/// A receipt for one record.
pub fn receipt(folder: &Path, seq: u64) -> Result<Receipt, JournalError> {
    receipt_for(folder, |record| record.position.seq == seq)
}

/// A receipt for all wanted records, with the first checkpoint that covers them all.
pub fn receipt_for(folder: &Path, wanted: impl Fn(&Record) -> bool) -> Result<Receipt, JournalError> {
    let choice = choose(folder, wanted)?;
    let mut prover = Prover::default();
    let mut records = Vec::new();
    let mut lines = JournalLines::until_now(folder)?;
    let mut seq = 0;
    while seq < choice.seal.size && lines.next()? == LineRead::Line {
        seq += 1;
        let Some(line) = RecordLine::parse(lines.bytes()).filter(|line| line.position.seq == seq) else {
            return Err(damaged());
        };
        if choice.seqs.contains(&seq) {
            prover.push(&line.position.hash, Choice::Prove);
            records.push(serde_json::from_slice::<Value>(lines.bytes()).map_err(|_| damaged())?);
        } else {
            prover.push(&line.position.hash, Choice::Pass);
        }
    }
    let (root, paths) = prover.finish();
    if root != choice.seal.root || !choice.seal.is_signed() {
        return Err(damaged());
    }
    let records = records.into_iter().zip(paths).map(|(record, path)| Proven { record, path }).collect();
    Ok(Receipt { version: version_for(&choice.seal), checkpoint: choice.seal, records })
}

/// Verifies a receipt with the public key, and returns the records that it proves.
pub fn verify_receipt(receipt: &Receipt, trusted: PublicKey) -> Result<Vec<Record>, JournalError> {
    let refuse = |what: &str| Err(JournalError::Receipt(what.to_owned()));
    let seal = &receipt.checkpoint;
    if receipt.version != version_for(seal) {
        return refuse("it has another version; use a newer toolgate");
    }
    if seal.key != trusted {
        return refuse(&format!("it is signed by `{}`, which is not the trusted key", seal.key));
    }
    if !seal.is_signed() {
        return refuse("its checkpoint was changed after signing");
    }
    if receipt.records.is_empty() {
        return refuse("it has no records");
    }
    receipt.records.iter().map(|proven| proven.check(seal)).collect()
}

impl Proven {
    fn check(&self, seal: &Seal) -> Result<Record, JournalError> {
        let refuse = |what: &str| JournalError::Receipt(what.to_owned());
        let bytes = serde_json_canonicalizer::to_vec(&self.record)
            .map_err(|error| JournalError::Receipt(error.to_string()))?;
        let line =
            RecordLine::parse(&bytes).ok_or_else(|| refuse("it contains something that is not a record"))?;
        let seq = line.position.seq;
        if !line.is_intact() {
            return Err(refuse(&format!("record {seq} was changed")));
        }
        if root_of(&line.position.hash, seq - 1, seal.size, &self.path) != Some(seal.root) {
            return Err(refuse(&format!("the checkpoint does not cover record {seq}")));
        }
        Record::of(&line).ok_or_else(|| refuse("a record cannot be read"))
    }
}

struct Chosen {
    seqs: BTreeSet<u64>,
    seal: Seal,
}

/// Finds the wanted records and a checkpoint after the last of them.
fn choose(folder: &Path, wanted: impl Fn(&Record) -> bool) -> Result<Chosen, JournalError> {
    let mut lines = JournalLines::until_now(folder)?;
    let mut seqs = BTreeSet::new();
    let mut seal: Option<Seal> = None;
    loop {
        match lines.next()? {
            LineRead::Line => {}
            LineRead::End | LineRead::Torn => break,
            LineRead::TooLong => return Err(damaged()),
        }
        let line = RecordLine::parse(lines.bytes()).filter(RecordLine::is_intact).ok_or_else(damaged)?;
        let record = Record::of(&line).ok_or_else(damaged)?;
        if wanted(&record) {
            seqs.insert(record.position.seq);
            seal = None;
        }
        if seal.is_none()
            && let JournalOwnEntry::Checkpoint(checkpoint) = JournalOwnEntry::of(line.entry)
            && seqs.last().is_some_and(|last| *last <= checkpoint.size)
        {
            seal = Some(checkpoint.seal());
        }
    }
    if seqs.is_empty() {
        return Err(JournalError::NotFound("the journal has no such record".to_owned()));
    }
    let seal = seal.ok_or_else(|| {
        JournalError::NotCovered(
            "no checkpoint covers the record yet; try again after the next one, or stop the gateway"
                .to_owned(),
        )
    })?;
    Ok(Chosen { seqs, seal })
}

fn damaged() -> JournalError {
    JournalError::Receipt("the journal was changed; run `toolgate audit verify`".to_owned())
}

/// Version 2 has a checkpoint that names its journal.
fn version_for(seal: &Seal) -> u32 {
    if seal.listing.is_some() { 2 } else { 1 }
}
