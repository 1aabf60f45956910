//! Compares the attacks with their rows in `tests/attacks/ledger/jail.yaml`.

use std::{collections::BTreeSet, fs, path::Path};

use super::{Attack, all};

#[track_caller]
pub fn is_complete() {
    let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/attacks/ledger/jail.yaml");
    let ledger = fs::read_to_string(ledger).unwrap_or_default();
    // Tests of this directory are named without a path.
    let named: BTreeSet<&str> = ledger
        .lines()
        .map(str::trim)
        .filter_map(|line| line.strip_prefix("- ").or_else(|| line.strip_prefix("test: ")))
        .filter(|name| !name.contains(['/', ':', ' ']))
        .collect();
    let attacks = all();
    let missing: Vec<String> =
        attacks.iter().filter(|attack| !named.contains(attack.name)).map(describe).collect();
    assert!(missing.is_empty(), "the ledger lacks\n{}", missing.join("\n"));
    let known: BTreeSet<&str> = attacks.iter().map(|attack| attack.name).collect();
    assert_eq!(known.len(), attacks.len(), "two attacks have the same name");
    let stray: Vec<&&str> =
        named.iter().filter(|name| !known.contains(**name) && **name != "planted_working_folder").collect();
    assert!(stray.is_empty(), "the ledger has rows without an attack: {stray:?}");
    assert!(attacks.len() >= 60, "{} attacks", attacks.len());
}

fn describe(attack: &Attack) -> String {
    format!("{} ({}; stopped by {})", attack.name, attack.what, attack.stopped_by)
}
