//! Which variables does a command see? A few fixed ones, or some of the gateway's, and the manifest's own.

use std::{collections::BTreeMap, ffi::OsString, os::unix::ffi::OsStrExt as _};

use toolgate_policy::ExecutionPolicy;
use toolgate_secrets::{Detector, Tier};
use toolgate_spec::{loads_code, model::EnvironmentMode};

use crate::{cli::program::FOLDERS, own::OwnVariables};

/// The environment that the gateway was started in, taken once; and what of it is its own.
#[derive(Clone, Debug)]
pub struct GatewayEnvironment {
    variables: Vec<(String, OsString)>,
    own: OwnVariables,
}

impl GatewayEnvironment {
    pub fn current(own: OwnVariables) -> Self {
        // A name that is no text is nothing that a manifest could ask for.
        let known = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self::of(known, own)
    }

    pub fn of(variables: impl IntoIterator<Item = (String, OsString)>, own: OwnVariables) -> Self {
        Self { variables: variables.into_iter().collect(), own }
    }

    /// Says anew what is the gateway's own.
    pub(crate) fn withhold(&mut self, own: OwnVariables) {
        self.own = own;
    }
}

/// What a command starts with, before the variables of its manifest.
pub fn base(
    policy: &ExecutionPolicy,
    gateway: &GatewayEnvironment,
) -> Result<BTreeMap<String, OsString>, String> {
    let of_gateway = |is_wanted: &dyn Fn(&str) -> bool| -> BTreeMap<String, OsString> {
        gateway.variables.iter().filter(|(name, _)| is_wanted(name)).cloned().collect()
    };
    match policy.env.value {
        EnvironmentMode::Clean => Ok(clean()),
        EnvironmentMode::Explicit => {
            let wanted: Vec<&str> = policy.allowed_env_vars.values().map(|name| &**name).collect();
            if let Some(own) = wanted.iter().find(|name| gateway.own.contains(name)) {
                return Err(format!("`allowedEnvVars` lists `{own}`: {}", gateway.own.refusal(own)));
            }
            if let Some(secret) = wanted.iter().find(|name| is_secret(name)) {
                return Err(format!(
                    "`allowedEnvVars` lists `{secret}`, which sounds like a secret; take it in as a static variable, `${{{secret}}}`, which is masked"
                ));
            }
            if let Some(deciding) = wanted.iter().find(|name| loads_code(name)) {
                return Err(format!(
                    "`allowedEnvVars` lists `{deciding}`, which decides what code runs; write its value into `env` instead"
                ));
            }
            Ok(of_gateway(&|name| wanted.contains(&name)))
        }
        EnvironmentMode::Inherit => {
            let mut inherited =
                of_gateway(&|name| !gateway.own.contains(name) && !is_secret(name) && !loads_code(name));
            inherited.retain(|_, value| !holds_password(value));
            Ok(inherited)
        }
    }
}

/// Those of the gateway's variables that are secrets by their value, whatever they are called.
pub fn secret_ones(variables: &BTreeMap<String, OsString>, detector: &Detector) -> Vec<String> {
    let is_one = |(name, value): &(&String, &OsString)| {
        // With its name, which may be what tells.
        let assigned = [name.as_bytes(), b"=", value.as_bytes()].concat();
        detector.contains(&assigned, Tier::Probable).is_some()
    };
    variables.iter().filter(is_one).map(|(name, _)| name.clone()).collect()
}

/// For a tool that lists them by name, which is refused rather than run without.
pub fn check_values(
    policy: &ExecutionPolicy,
    variables: &BTreeMap<String, OsString>,
    detector: &Detector,
) -> Result<(), String> {
    if policy.env.value != EnvironmentMode::Explicit {
        return Ok(());
    }
    secret_ones(variables, detector).first().map_or(Ok(()), |secret| {
        Err(format!(
            "`allowedEnvVars` lists `{secret}`, whose value looks like a secret; take it in as a static variable, `${{{secret}}}`, which is masked"
        ))
    })
}

fn clean() -> BTreeMap<String, OsString> {
    let path = FOLDERS.join(":");
    let fixed = [("HOME", HOME), ("LANG", "C.UTF-8"), ("PATH", &path), ("TERM", "dumb"), ("TMPDIR", HOME)];
    fixed.into_iter().map(|(name, value)| (name.to_owned(), OsString::from(value))).collect()
}

/// By the words of the name. `MONKEY` is no key, `SSH_KEY` is one.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // The one word of the list that is, alone, something else: the working folder.
    name != "PWD"
        && name
            .split('_')
            .any(|word| SECRET_WORDS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit())))
        || SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// `postgres://user:password@host`
fn holds_password(value: &OsString) -> bool {
    let value = value.to_string_lossy();
    let authority = value.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    authority.and_then(|authority| authority.rsplit_once('@')).is_some_and(|(user, _)| user.contains(':'))
}

/// The one folder that every command can write to; it ends with the command.
pub const HOME: &str = "/tmp";

const SECRET_WORDS: [&str; 24] = [
    "APIKEY",
    "AUTH",
    "BEARER",
    "COOKIE",
    "CRED",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "DSN",
    "JWT",
    "KEY",
    "KEYS",
    "PASS",
    "PASSPHRASE",
    "PASSWD",
    "PAT",
    "PIN",
    "PRIVATE",
    "PW",
    "PWD",
    "SALT",
    "SESSION",
    "SIGNATURE",
    "WEBHOOK",
];
const SECRET_PARTS: [&str; 6] =
    ["TOKEN", "SECRET", "PASSWORD", "CONNECTION_STRING", "DATABASE_URL", "ACCESS_KEY"];
