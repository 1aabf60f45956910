//! The values of `${NAME}`: from the secret store first, then from the configured providers.

use std::{
    collections::hash_map::DefaultHasher,
    fmt, fs,
    hash::{Hash as _, Hasher as _},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use tokio::runtime::{Handle, RuntimeFlavor};
use toolgate_config::model::{SecretKeyPlace, SecretProvider, SecretProviderKind, SecretSettings};
use toolgate_handlers::OwnVariables;
use toolgate_policy::{SecretConsumer, SecretSource};
use toolgate_store::{
    CommandSecrets, FileSecrets, KeyPlace, PassphraseSource, SecretVault, StoredSecret, VaultKeySettings,
};
use zeroize::Zeroizing;

/// Resolves secrets for one gateway. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SecretValues {
    own: OwnVariables,
    sources: Arc<ValueSources>,
}

#[derive(Debug)]
struct ValueSources {
    /// `None`: a draft outside of any configuration.
    vault: Option<SecretVault>,
    providers: Vec<ValueProvider>,
}

#[derive(Debug)]
enum ValueProvider {
    Environment,
    File(FileSecrets),
    Command(CommandSecrets),
}

impl SecretValues {
    /// Only the environment.
    pub fn environment(own: OwnVariables) -> Self {
        let sources = ValueSources { vault: None, providers: vec![ValueProvider::Environment] };
        Self { own, sources: Arc::new(sources) }
    }

    /// The store of a state directory, then the providers.
    pub fn with_store(vault: SecretVault, settings: &SecretSettings, own: OwnVariables) -> Self {
        let mut providers: Vec<ValueProvider> =
            settings.providers.iter().map(|settings| provider(settings, vault.apart_from())).collect();
        if providers.is_empty() {
            providers.push(ValueProvider::Environment);
        }
        Self { own, sources: Arc::new(ValueSources { vault: Some(vault), providers }) }
    }

    /// The same sources, after the gateway's own variables changed.
    #[must_use]
    pub fn withholding(&self, own: OwnVariables) -> Self {
        Self { own, sources: Arc::clone(&self.sources) }
    }

    /// Why the secret store cannot be used. Then no tool gets any secret, because the store may restrict who gets it.
    pub fn problem(&self) -> Option<String> {
        let vault = self.sources.vault.as_ref()?;
        off_the_runtime(|| vault.list()).err().map(|error| error.to_string())
    }

    /// Asks programs again at the next lookup.
    pub fn forget(&self) {
        for provider in &self.sources.providers {
            if let ValueProvider::Command(command) = provider {
                command.forget();
            }
        }
    }
}

impl SecretSource for SecretValues {
    fn secret(&self, name: &str, consumer: SecretConsumer<'_>) -> Option<Zeroizing<String>> {
        if self.own.contains(name) {
            return None;
        }
        if let Some(vault) = &self.sources.vault {
            match vault.get(name, consumer) {
                Ok(StoredSecret::Value(value)) => return Some(value),
                Ok(StoredSecret::Absent) => {}
                // Not from a provider either: the operator said who gets this secret, or cannot be asked.
                Ok(StoredSecret::NotForConsumer) | Err(_) => return None,
            }
        }
        self.sources.providers.iter().find_map(|provider| match provider {
            ValueProvider::Environment => std::env::var(name).ok().map(Zeroizing::new),
            ValueProvider::File(file) => file.get(name),
            ValueProvider::Command(command) => match command.cached(name) {
                Some(value) => value,
                None => off_the_runtime(|| command.get(name)),
            },
        })
    }

    fn refusal(&self, name: &str) -> Option<String> {
        self.own.contains(name).then(|| self.own.refusal(name))
    }

    fn version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        if let Some(vault) = &self.sources.vault {
            format!("{:?}", off_the_runtime(|| vault.mark())).hash(&mut hasher);
        }
        for provider in &self.sources.providers {
            if let ValueProvider::File(file) = provider {
                format!("{:?}", file.mark()).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// The store of a state directory, with the key that the settings name.
pub fn open_vault(
    state: &Path,
    workspace: &Path,
    settings: &SecretSettings,
    passphrase: Option<Arc<dyn PassphraseSource>>,
) -> SecretVault {
    let apart_from = vec![state.to_owned(), workspace.to_owned()];
    let passphrase = passphrase.unwrap_or_else(|| Arc::new(PassphraseFile::new(apart_from.clone())));
    let keys = VaultKeySettings {
        place: match settings.key {
            SecretKeyPlace::Auto => KeyPlace::Auto,
            SecretKeyPlace::Keyring => KeyPlace::Keyring,
            SecretKeyPlace::Credential => KeyPlace::Credential,
            SecretKeyPlace::File => KeyPlace::File,
            SecretKeyPlace::Passphrase => KeyPlace::Passphrase,
        },
        key_file: settings.key_file.clone(),
        credentials: std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
        apart_from,
        passphrase,
    };
    SecretVault::new(state, keys)
}

/// The file that `TOOLGATE_PASSPHRASE_FILE` names. `/dev/fd/N` reads an open descriptor.
pub struct PassphraseFile {
    apart_from: Vec<PathBuf>,
    /// Read once: a pipe has its content only once.
    read: OnceLock<Result<Zeroizing<String>, String>>,
}

impl PassphraseFile {
    /// Refuses a file in one of these directories, which are copied together with the store.
    pub const fn new(apart_from: Vec<PathBuf>) -> Self {
        Self { apart_from, read: OnceLock::new() }
    }

    pub fn is_named() -> bool {
        std::env::var_os(PASSPHRASE_FILE).is_some()
    }

    fn read_named(&self, variable: &str) -> Result<Zeroizing<String>, String> {
        let path = std::env::var_os(variable).map(PathBuf::from).ok_or_else(|| {
            format!("a passphrase is needed; run the command in a terminal, or set {PASSPHRASE_FILE}")
        })?;
        let failed = |problem: String| format!("{variable}: `{}`: {problem}", path.display());
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_copied = |dir: &PathBuf| real.starts_with(dir.canonicalize().unwrap_or_else(|_| dir.clone()));
        if self.apart_from.iter().any(is_copied) {
            return Err(failed("inside the workspace or the state directory; move it elsewhere".to_owned()));
        }
        let file = fs::File::open(&path).map_err(|error| failed(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
        if metadata.is_file() && metadata.permissions().mode() & OPEN_TO_OTHERS != 0 {
            return Err(failed(format!("other users can read it; run `chmod 600 {}`", path.display())));
        }
        let mut text = Zeroizing::new(String::with_capacity(MAX_PASSPHRASE));
        let most = u64::try_from(MAX_PASSPHRASE).unwrap_or(u64::MAX);
        file.take(most).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        let passphrase = text.strip_suffix('\n').unwrap_or(&text);
        if passphrase.is_empty() {
            return Err(failed("it is empty".to_owned()));
        }
        Ok(Zeroizing::new(passphrase.to_owned()))
    }
}

impl fmt::Debug for PassphraseFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassphraseFile").finish_non_exhaustive()
    }
}

impl PassphraseSource for PassphraseFile {
    fn current(&self) -> Result<Zeroizing<String>, String> {
        self.read.get_or_init(|| self.read_named(PASSPHRASE_FILE)).clone()
    }

    /// A rotation needs both passphrases, so the new one has its own variable.
    fn new_one(&self) -> Result<Zeroizing<String>, String> {
        if std::env::var_os(NEW_PASSPHRASE_FILE).is_some() {
            return self.read_named(NEW_PASSPHRASE_FILE);
        }
        self.current()
    }
}

fn provider(settings: &SecretProvider, apart_from: &[PathBuf]) -> ValueProvider {
    match settings.kind {
        SecretProviderKind::Env => ValueProvider::Environment,
        SecretProviderKind::File => {
            ValueProvider::File(FileSecrets { path: settings.path.clone().unwrap_or_default() })
        }
        SecretProviderKind::Command => ValueProvider::Command(CommandSecrets::new(
            settings.command.clone(),
            settings.pass_env.clone(),
            settings.cache,
            apart_from.to_vec(),
        )),
    }
}

/// Lets other tasks of a runtime with several threads continue while a program is asked.
fn off_the_runtime<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

const PASSPHRASE_FILE: &str = "TOOLGATE_PASSPHRASE_FILE";
const NEW_PASSPHRASE_FILE: &str = "TOOLGATE_NEW_PASSPHRASE_FILE";
const OPEN_TO_OTHERS: u32 = 0o077;
const MAX_PASSPHRASE: usize = 4 << 10;
