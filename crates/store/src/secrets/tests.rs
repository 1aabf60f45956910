use std::{os::unix::fs::PermissionsExt as _, thread};

use tempfile::TempDir;

use super::*;

const TOOL: SecretConsumer<'static> = SecretConsumer::Tool("a");

struct NoPassphrase;

impl PassphraseSource for NoPassphrase {
    fn current(&self) -> Result<Zeroizing<String>, String> {
        Err("no passphrase here".to_owned())
    }

    fn new_one(&self) -> Result<Zeroizing<String>, String> {
        self.current()
    }
}

struct FixedPassphrase(&'static str, &'static str);

impl PassphraseSource for FixedPassphrase {
    fn current(&self) -> Result<Zeroizing<String>, String> {
        Ok(Zeroizing::new(self.0.to_owned()))
    }

    fn new_one(&self) -> Result<Zeroizing<String>, String> {
        Ok(Zeroizing::new(self.1.to_owned()))
    }
}

/// A state directory, and a home directory for the key.
struct Ground {
    state: TempDir,
    home: TempDir,
}

impl Ground {
    fn new() -> Self {
        Self { state: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() }
    }

    fn keys(&self, place: KeyPlace) -> VaultKeySettings {
        VaultKeySettings {
            place,
            key_file: Some(self.key_file()),
            credentials: Some(self.home.path().join("credentials")),
            apart_from: vec![self.state.path().to_owned()],
            passphrase: Arc::new(NoPassphrase),
        }
    }

    fn key_file(&self) -> PathBuf {
        self.home.path().join("config/secrets.key")
    }

    fn vault(&self) -> SecretVault {
        SecretVault::new(self.state.path(), self.keys(KeyPlace::File))
    }

    fn file(&self) -> PathBuf {
        self.state.path().join("secrets/store")
    }

    fn add_credential(&self, lines: &str) {
        let dir = self.home.path().join("credentials");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("toolgate.key"), lines).unwrap();
        fs::set_permissions(dir.join("toolgate.key"), fs::Permissions::from_mode(0o440)).unwrap();
    }
}

fn set(vault: &SecretVault, name: &str, value: &str) -> KeyOrigin {
    set_for(vault, name, value, &[]).unwrap()
}

fn set_for(vault: &SecretVault, name: &str, value: &str, tools: &[&str]) -> Result<KeyOrigin, VaultError> {
    let scope =
        SecretScope { tools: tools.iter().map(|&tool| tool.to_owned()).collect(), upstreams: Vec::new() };
    vault.set(name, Zeroizing::new(value.to_owned()), scope, SystemTime::now())
}

fn value(vault: &SecretVault, name: &str) -> Option<String> {
    match vault.get(name, TOOL).unwrap() {
        StoredSecret::Value(value) => Some(value.to_string()),
        StoredSecret::NotForConsumer | StoredSecret::Absent => None,
    }
}

#[test]
fn secret_is_set_replaced_listed_and_removed() {
    let ground = Ground::new();
    let vault = ground.vault();
    assert_eq!(vault.get("A", TOOL).unwrap(), StoredSecret::Absent);
    assert!(vault.list().unwrap().is_empty() && vault.key_origin().unwrap().is_none());
    assert_eq!(set(&vault, "A", "one"), KeyOrigin::File(ground.key_file().canonicalize().unwrap()));
    set(&vault, "B", "two");
    set(&vault, "A", "three");
    assert_eq!(value(&vault, "A").as_deref(), Some("three"));
    let names: Vec<String> = vault.list().unwrap().into_iter().map(|secret| secret.name).collect();
    assert_eq!(names, ["A", "B"]);
    assert!(vault.remove("A").unwrap() && !vault.remove("A").unwrap());
    assert_eq!((value(&vault, "A"), value(&vault, "B").as_deref()), (None, Some("two")));
    for path in [ground.file(), ground.key_file()] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
}

#[test]
fn names_and_values_are_checked() {
    let vault = Ground::new().vault();
    for (name, value) in [("a", "x"), ("A-B", "x"), ("", "x"), ("A", ""), ("A", " \n"), ("A", "x\0y")] {
        assert!(set_for(&vault, name, value, &[]).is_err(), "{name:?} {value:?}");
    }
    assert!(set_for(&vault, &"A".repeat(129), "x", &[]).is_err());
    assert!(set_for(&vault, "A", &"x".repeat((32 << 10) + 1), &[]).is_err());
    assert!(!vault.exists());
}

#[test]
fn scoped_secret_is_for_its_consumers_only() {
    let ground = Ground::new();
    let vault = ground.vault();
    set_for(&vault, "A", "one", &["a", "b"]).unwrap();
    let upstream = SecretScope { tools: Vec::new(), upstreams: vec!["a".to_owned()] };
    vault.set("U", Zeroizing::new("up".to_owned()), upstream, SystemTime::now()).unwrap();
    assert_eq!(value(&vault, "A").as_deref(), Some("one"));
    assert_eq!(vault.get("A", SecretConsumer::Tool("c")).unwrap(), StoredSecret::NotForConsumer);
    assert_eq!(vault.get("A", SecretConsumer::Upstream("a")).unwrap(), StoredSecret::NotForConsumer);
    assert_eq!(vault.get("U", TOOL).unwrap(), StoredSecret::NotForConsumer);
    assert!(matches!(vault.get("U", SecretConsumer::Upstream("a")).unwrap(), StoredSecret::Value(_)));
    // A new value without a scope is for the same consumers as before.
    set(&vault, "A", "two");
    assert_eq!(vault.get("A", SecretConsumer::Tool("c")).unwrap(), StoredSecret::NotForConsumer);
}

#[test]
fn every_changed_or_missing_byte_is_noticed() {
    let ground = Ground::new();
    set(&ground.vault(), "A", "one");
    let sound = fs::read(ground.file()).unwrap();
    for at in 0..sound.len() {
        let mut changed = sound.clone();
        changed[at] ^= 1;
        fs::write(ground.file(), &changed).unwrap();
        assert!(ground.vault().get("A", TOOL).is_err(), "byte {at}");
    }
    for length in (0..sound.len()).step_by(37).chain([sound.len() - 1]) {
        fs::write(ground.file(), &sound[..length]).unwrap();
        assert!(ground.vault().get("A", TOOL).is_err(), "length {length}");
    }
    fs::write(ground.file(), [sound.as_slice(), b"x"].concat()).unwrap();
    assert!(ground.vault().list().is_err());
    // A damaged store is not replaced by an empty one.
    assert!(set_for(&ground.vault(), "B", "two", &[]).is_err());
    fs::write(ground.file(), &sound).unwrap();
    assert_eq!(value(&ground.vault(), "A").as_deref(), Some("one"));
}

#[test]
fn another_key_does_not_open_the_store() {
    let (ground, other) = (Ground::new(), Ground::new());
    set(&ground.vault(), "A", "one");
    set(&other.vault(), "A", "two");
    fs::copy(other.key_file(), ground.key_file()).unwrap();
    let error = ground.vault().get("A", TOOL).unwrap_err().to_string();
    assert!(error.contains("was not found"), "{error}");
    // A file of another store is not accepted either: its key is not here.
    let third = Ground::new();
    set(&third.vault(), "A", "three");
    fs::copy(other.file(), third.file()).unwrap();
    assert!(third.vault().get("A", TOOL).is_err());
}

#[test]
fn state_directory_alone_reveals_nothing() {
    let ground = Ground::new();
    let canary = "canary-Zq4T9xKe2LmV7cRw";
    set(&ground.vault(), "CANARY_NAME", canary);
    ground.vault().rotate().unwrap();
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, canary);
    let mut files = 0;
    for entry in walkdir::WalkDir::new(ground.state.path()).into_iter().map(Result::unwrap) {
        if entry.file_type().is_file() {
            files += 1;
            let bytes = fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for needle in [canary, &encoded[..encoded.len() - 4], "CANARY_NAME"] {
                assert!(!text.contains(needle), "{}", entry.path().display());
            }
            let key = fs::read_to_string(ground.key_file()).unwrap();
            assert!(!text.contains(key.trim()));
        }
    }
    assert_eq!(files, 1);
}

#[test]
fn writers_in_parallel_lose_nothing() {
    let ground = Ground::new();
    thread::scope(|scope| {
        for writer in 0..4 {
            let ground = &ground;
            scope.spawn(move || {
                // Each has its own cache, as separate processes do.
                let vault = ground.vault();
                for number in 0..8 {
                    set(&vault, &format!("S_{writer}_{number}"), "value");
                }
            });
        }
    });
    assert_eq!(ground.vault().list().unwrap().len(), 32);
    assert_eq!(fs::read_to_string(ground.key_file()).unwrap().lines().count(), 1, "one key for one store");
}

#[test]
fn change_of_another_process_counts_at_once() {
    let ground = Ground::new();
    let (reader, writer) = (ground.vault(), ground.vault());
    let empty = reader.mark();
    set(&writer, "A", "one");
    assert_eq!(value(&reader, "A").as_deref(), Some("one"));
    let first = reader.mark();
    assert_ne!(empty, first);
    assert_eq!(first, reader.mark());
    writer.rotate().unwrap();
    assert_eq!(value(&reader, "A").as_deref(), Some("one"));
    assert_ne!(first, reader.mark());
    writer.remove("A").unwrap();
    assert_eq!(value(&reader, "A"), None);
}

#[test]
fn rotation_replaces_the_key_and_keeps_those_of_other_stores() {
    let ground = Ground::new();
    set(&ground.vault(), "A", "one");
    let other_state = tempfile::tempdir().unwrap();
    let other = || SecretVault::new(other_state.path(), ground.keys(KeyPlace::File));
    set(&other(), "B", "two");
    let (key_before, file_before) =
        (fs::read_to_string(ground.key_file()).unwrap(), fs::read(ground.file()).unwrap());
    ground.vault().rotate().unwrap();
    let key_after = fs::read_to_string(ground.key_file()).unwrap();
    assert_eq!(key_after.lines().count(), 2);
    let kept = key_before.lines().filter(|line| key_after.lines().any(|after| after == *line)).count();
    assert_eq!(kept, 1, "only the key of the other store is kept");
    assert_eq!(value(&ground.vault(), "A").as_deref(), Some("one"));
    assert_eq!(value(&other(), "B").as_deref(), Some("two"));
    // An old copy of the file has no key any more.
    fs::write(ground.file(), file_before).unwrap();
    assert!(ground.vault().get("A", TOOL).is_err());
}

#[test]
fn key_file_must_be_private_and_elsewhere() {
    let ground = Ground::new();
    set(&ground.vault(), "A", "one");
    fs::set_permissions(ground.key_file(), fs::Permissions::from_mode(0o640)).unwrap();
    let error = ground.vault().get("A", TOOL).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    fs::set_permissions(ground.key_file(), fs::Permissions::from_mode(0o600)).unwrap();
    let link = ground.home.path().join("link");
    std::os::unix::fs::symlink(ground.state.path(), &link).unwrap();
    for inside in [ground.state.path().join("k"), ground.state.path().join("new/k"), link.join("k")] {
        let keys = VaultKeySettings { key_file: Some(inside), ..ground.keys(KeyPlace::File) };
        let other = tempfile::tempdir().unwrap();
        let error = set_for(&SecretVault::new(other.path(), keys), "A", "x", &[]).unwrap_err().to_string();
        assert!(error.contains("is inside"), "{error}");
    }
}

#[test]
fn credential_is_preferred_to_weaker_places() {
    let ground = Ground::new();
    let line = |byte: u8| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [byte; 32]);
    ground.add_credential(&format!("# made by hand\n{}\n", line(1)));
    let vault = || SecretVault::new(ground.state.path(), ground.keys(KeyPlace::Auto));
    assert!(matches!(set(&vault(), "A", "one"), KeyOrigin::Credential(_)));
    assert!(!ground.key_file().exists());
    // A rotation does not move the key to a weaker place.
    assert!(vault().rotate().unwrap_err().to_string().contains("first line"));
    assert_eq!(value(&vault(), "A").as_deref(), Some("one"));
    assert!(!ground.key_file().exists());
}

#[test]
fn named_credential_rotates_to_its_first_line() {
    let ground = Ground::new();
    let line = |byte: u8| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [byte; 32]);
    let vault = || SecretVault::new(ground.state.path(), ground.keys(KeyPlace::Credential));
    ground.add_credential(&line(1));
    set(&vault(), "A", "one");
    let error = vault().rotate().unwrap_err().to_string();
    assert!(error.contains("first line"), "{error}");
    fs::remove_file(ground.home.path().join("credentials/toolgate.key")).unwrap();
    ground.add_credential(&format!("{}\n{}\n", line(2), line(1)));
    vault().rotate().unwrap();
    fs::remove_file(ground.home.path().join("credentials/toolgate.key")).unwrap();
    ground.add_credential(&line(2));
    assert_eq!(value(&vault(), "A").as_deref(), Some("one"));
}

#[test]
fn passphrase_opens_the_store_and_rotation_changes_it() {
    let ground = Ground::new();
    let with = |current, new| {
        let passphrase = Arc::new(FixedPassphrase(current, new));
        let keys = VaultKeySettings { passphrase, ..ground.keys(KeyPlace::Passphrase) };
        SecretVault::new(ground.state.path(), keys)
    };
    assert_eq!(set(&with("", "old"), "A", "one"), KeyOrigin::Passphrase);
    assert_eq!(value(&with("old", ""), "A").as_deref(), Some("one"));
    let error = with("wrong", "").get("A", TOOL).unwrap_err().to_string();
    assert!(error.contains("wrong passphrase"), "{error}");
    with("old", "new").rotate().unwrap();
    assert!(with("old", "").get("A", TOOL).is_err());
    assert_eq!(value(&with("new", ""), "A").as_deref(), Some("one"));
    // Another place must be chosen on purpose.
    assert!(ground.vault().get("A", TOOL).unwrap_err().to_string().contains("secret rotate"));
    assert!(!ground.key_file().exists());
}
