use super::*;

fn entry(value: &str, tools: &[&str]) -> SecretEntry {
    let scope =
        SecretScope { tools: tools.iter().map(|&tool| tool.to_owned()).collect(), upstreams: Vec::new() };
    SecretEntry { value: Zeroizing::new(value.to_owned()), scope, set_ms: 7 }
}

fn content(entries: &[(&str, &str)]) -> VaultContent {
    let entries = entries.iter().map(|(name, value)| ((*name).to_owned(), entry(value, &["a"])));
    VaultContent { generation: 3, entries: entries.collect() }
}

fn stored(key: &VaultKey) -> VaultLock {
    VaultLock { id: key.id(), kind: LockKind::Stored }
}

#[test]
fn content_survives_a_round_trip() {
    let key = VaultKey::random().unwrap();
    for written in [content(&[]), content(&[("A", "one\n\"\\ü"), ("B", &"x".repeat(20_000))])] {
        let file = SealedVault::seal(&written, &stored(&key), &key).unwrap();
        let sealed = SealedVault::parse(&file).unwrap();
        assert_eq!(sealed.lock, stored(&key));
        assert!(sealed.open(&key).unwrap() == written);
        assert!(sealed.open(&VaultKey::random().unwrap()).is_none());
    }
}

#[test]
fn size_reveals_steps_only_and_each_write_differs() {
    let key = VaultKey::random().unwrap();
    let seal = |value: &str| SealedVault::seal(&content(&[("A", value)]), &stored(&key), &key).unwrap();
    assert_eq!(seal("x").len(), seal(&"x".repeat(1_000)).len());
    assert_ne!(seal("x"), seal("x"), "a nonce is never used twice");
}

/// A file made of parts of two files with the same key: entries, header and nonce belong together.
#[test]
fn parts_of_two_files_do_not_fit() {
    let key = VaultKey::random().unwrap();
    let seal = |value: &str| SealedVault::seal(&content(&[("A", value)]), &stored(&key), &key).unwrap();
    let (old, new) = (seal("old"), seal("new"));
    // Before their nonces the two files are equal.
    let nonce = MAGIC.len() + 1 + 16;
    for cut in (nonce + 1..old.len()).step_by(11) {
        let mixed = [&old[..cut], &new[cut..]].concat();
        assert!(SealedVault::parse(&mixed).is_none_or(|sealed| sealed.open(&key).is_none()), "cut at {cut}");
    }
}

#[test]
fn costs_of_a_changed_header_are_bounded() {
    let key = VaultKey::random().unwrap();
    let cost = PassphraseCost::default();
    let lock = VaultLock { id: key.id(), kind: LockKind::Passphrase { salt: [7; SALT_BYTES], cost } };
    let file = SealedVault::seal(&content(&[]), &lock, &key).unwrap();
    assert_eq!(SealedVault::parse(&file).unwrap().lock, lock);
    // The three numbers begin after magic, kind, id and salt.
    let costs = MAGIC.len() + 1 + 16 + SALT_BYTES;
    for number in 0..3 {
        let mut changed = file.clone();
        changed[costs + 4 * number..costs + 4 * number + 4].fill(0xff);
        assert!(SealedVault::parse(&changed).is_none());
    }
}
