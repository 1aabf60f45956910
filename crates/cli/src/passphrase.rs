//! The secret store for commands: its settings, and a prompt for the passphrase.

use std::{
    io::{self, IsTerminal as _},
    path::Path,
    sync::{Arc, OnceLock},
};

use console::Term;
use toolgate::{Config, PassphraseFile, SecretValues, open_vault};
use toolgate_handlers::OwnVariables;
use toolgate_store::{PassphraseSource, SecretVault};
use zeroize::Zeroizing;

/// The passphrase from a file or a prompt.
pub fn of(config: &Config) -> Arc<dyn PassphraseSource> {
    prompt_or_file(&config.state, &config.workspace)
}

pub fn vault(config: &Config) -> SecretVault {
    open_vault(&config.state, &config.workspace, &config.secrets, Some(of(config)))
}

/// The secrets of the gateway that serves this workspace, for a draft under test. Without a configuration, the environment.
pub fn secrets_of_drafts(
    workspace: &Path,
    state: &Path,
    own: OwnVariables,
    environment: &dyn Fn(&str) -> Option<String>,
) -> SecretValues {
    match toolgate_config::secrets_in(workspace, environment) {
        None => SecretValues::environment(own),
        Some(settings) => {
            let vault = open_vault(state, workspace, &settings, Some(prompt_or_file(state, workspace)));
            SecretValues::with_store(vault, &settings, own)
        }
    }
}

/// Reads one line from the terminal without showing it.
pub fn hidden_line(question: &str) -> io::Result<Zeroizing<String>> {
    let terminal = Term::stderr();
    terminal.write_str(question)?;
    terminal.read_secure_line().map(Zeroizing::new)
}

pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn prompt_or_file(state: &Path, workspace: &Path) -> Arc<dyn PassphraseSource> {
    let file = PassphraseFile::new(vec![state.to_owned(), workspace.to_owned()]);
    if PassphraseFile::is_named() || !can_ask() {
        Arc::new(file)
    } else {
        Arc::new(PassphrasePrompt::default())
    }
}

/// Asks once per process.
#[derive(Default)]
struct PassphrasePrompt {
    answer: OnceLock<Result<Zeroizing<String>, String>>,
}

impl PassphraseSource for PassphrasePrompt {
    fn current(&self) -> Result<Zeroizing<String>, String> {
        self.answer.get_or_init(|| asked("Passphrase of the secret store: ")).clone()
    }

    fn new_one(&self) -> Result<Zeroizing<String>, String> {
        let first = asked("New passphrase of the secret store: ")?;
        let second = asked("The same again: ")?;
        if *first == *second { Ok(first) } else { Err("the two passphrases differ".to_owned()) }
    }
}

fn asked(question: &str) -> Result<Zeroizing<String>, String> {
    let line = hidden_line(question).map_err(|error| format!("no passphrase: {error}"))?;
    if line.is_empty() { Err("the passphrase is empty".to_owned()) } else { Ok(line) }
}
