//! Which file does a path in the configuration mean?

use std::path::{Component, Path, PathBuf};

use crate::{
    model::{Config, JwtKey},
    overlay::{FILE_NAME, Overrides, config_path},
};

/// Relative paths begin at the folder of the file. `.` vanishes; `..` stays, for what it means depends on links.
pub(crate) fn resolved(base: &Path, path: &Path) -> PathBuf {
    base.join(path).components().collect()
}

pub(crate) fn resolve_all(config: &mut Config, base: &Path) {
    let Config { workspace, state, tools, policy, auth, secrets, .. } = config;
    let policy = policy
        .baseline
        .iter_mut()
        .chain(&mut policy.profiles)
        .chain(&mut policy.overrides)
        .chain(&mut policy.cedar);
    let keys = auth.jwt.iter_mut().filter_map(|issuer| match &mut issuer.key {
        JwtKey::PemFile(path) | JwtKey::JwksFile(path) => Some(path),
        JwtKey::SecretEnv(_) | JwtKey::JwksUrl(_) => None,
    });
    for path in
        [workspace, state].into_iter().chain(tools).chain(policy).chain(keys).chain(&mut secrets.rules)
    {
        *path = resolved(base, path);
    }
}

impl Config {
    /// What decides over tools, and what is remembered of them. A tool that may write in the workspace must not write here,
    /// nor read the state folder, although all of it usually lies in the workspace: it would publish itself, forge the
    /// journal, or take the keys. Nor the files in which `toolgate connect` tells clients their tokens.
    pub fn guarded_paths(&self) -> Vec<PathBuf> {
        let policy = &self.policy;
        let keys = self.auth.jwt.iter().filter_map(|issuer| match &issuer.key {
            JwtKey::PemFile(path) | JwtKey::JwksFile(path) => Some(path),
            JwtKey::SecretEnv(_) | JwtKey::JwksUrl(_) => None,
        });
        std::iter::once(&self.state)
            .chain(&self.file)
            .chain(&self.tools)
            .chain(&policy.baseline)
            .chain(&policy.profiles)
            .chain(&policy.overrides)
            .chain(&policy.cedar)
            .chain(keys)
            .chain(&self.secrets.rules)
            .chain(&self.also_guarded)
            .cloned()
            .chain(client_files(&self.workspace))
            .chain(self.file.as_deref().and_then(Path::parent).into_iter().flat_map(client_files))
            .map(without_parents)
            .collect()
    }
}

/// The same path without `..`, which no rule can name. Of a path that does not exist, the part that does is resolved.
fn without_parents(path: PathBuf) -> PathBuf {
    if !path.components().any(|part| part == Component::ParentDir) {
        return path;
    }
    let mut missing = Vec::new();
    let mut known = path.as_path();
    loop {
        if let Ok(real) = known.canonicalize() {
            return missing.into_iter().rev().fold(real, |real: PathBuf, name| real.join(name));
        }
        match (known.parent(), known.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                known = parent;
            }
            // It ends in `..` behind a directory that does not exist.
            _ => return path,
        }
    }
}

/// What a draft that is tried out in a workspace must be kept from: the files of the gateway that serves there. Those
/// with the usual names always; others as far as a configuration can be read, in the workspace or named by `env`.
pub fn guarded_in(workspace: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut guarded = vec![workspace.join(STATE_FOLDER)];
    guarded.extend(client_files(workspace));
    for (file, config) in configurations_of(workspace, env) {
        guarded.extend(config.iter().flat_map(Config::guarded_paths));
        guarded.push(file);
    }
    guarded.sort_unstable();
    guarded.dedup();
    guarded
}

/// Where a gateway that serves this workspace keeps its state, as far as its configuration can be read.
pub fn state_in(workspace: &Path, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let configured = configurations_of(workspace, env).into_iter().find_map(|(_, config)| config);
    configured.map_or_else(|| workspace.join(STATE_FOLDER), |config| config.state)
}

/// The files that a gateway of this workspace may be configured by, as far as they can be read: the one in it, and the one that
/// `env` names.
pub(crate) fn configurations_of(
    workspace: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<(PathBuf, Option<Config>)> {
    let named = std::path::absolute(config_path(None, env)).ok();
    let files = std::iter::once(workspace.join(FILE_NAME)).chain(named);
    files.map(|file| (file.clone(), Config::load(&file, env, &Overrides::default()).ok())).collect()
}

fn client_files(folder: &Path) -> Vec<PathBuf> {
    // Tools are judged by real names. A file that is yet to be written has none, but its folder has.
    let real = folder.canonicalize().ok().filter(|real| real != folder);
    let folders = std::iter::once(folder.to_owned()).chain(real);
    folders.flat_map(|folder| CLIENT_FILES.map(|file| folder.join(file))).collect()
}

/// Where clients look for the gateways of a folder.
const CLIENT_FILES: [&str; 6] = [
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".zed/settings.json",
];

/// Where the state is unless the configuration says otherwise.
const STATE_FOLDER: &str = ".toolgate";
