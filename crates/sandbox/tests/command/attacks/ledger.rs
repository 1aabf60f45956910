//! Has every attack its row in the ledger, and every row its attack?

use std::{collections::BTreeSet, fs, path::Path};

use super::{Attack, all};

#[track_caller]
pub fn is_complete() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let ledger = fs::read_to_string(docs.join("attacks.md")).unwrap_or_default();
    let lines: BTreeSet<&str> = ledger.lines().map(str::trim).collect();
    let attacks = all();
    let missing: Vec<String> =
        attacks.iter().map(line).filter(|line| !lines.contains(line.as_str())).collect();
    assert!(missing.is_empty(), "the ledger lacks\n{}", missing.join("\n"));
    let known: BTreeSet<&str> = attacks.iter().map(|attack| attack.name).collect();
    assert_eq!(known.len(), attacks.len(), "two attacks of one name");
    let stray: Vec<&str> = ledger
        .split(TEST)
        .skip(1)
        .filter_map(|rest| rest.split('`').next())
        .filter(|name| !known.contains(name) && *name != "planted_working_folder")
        .collect();
    assert!(stray.is_empty(), "the ledger has rows without an attack: {stray:?}");
    assert!(attacks.len() >= 60, "{} attacks", attacks.len());
}

/// The row of an attack.
fn line(attack: &Attack) -> String {
    format!("| {} | {} | {TEST}{}` |", attack.what, attack.stopped_by, attack.name)
}

const TEST: &str = "`sandbox/tests/command/attacks`: `";
