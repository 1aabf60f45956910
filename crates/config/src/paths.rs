//! Resolves the paths of a configuration, and lists those that tools must not touch.

use std::path::{Component, Path, PathBuf};

use crate::{
    model::{Config, JwtKey, SecretSettings},
    overlay::{FILE_NAME, Overrides, config_path},
};

/// Relative paths start at the directory of the file. Removes `.` but keeps `..`, because its meaning depends on symlinks.
pub(crate) fn resolved(base: &Path, path: &Path) -> PathBuf {
    base.join(path).components().collect()
}

pub(crate) fn resolve_all(config: &mut Config, base: &Path) {
    let Config { workspace, state, tools, policy, auth, secrets, upstreams, .. } = config;
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
    let granted = upstreams.iter_mut().flat_map(|server| server.read.iter_mut().chain(&mut server.write));
    let SecretSettings { rules, key_file, providers, .. } = secrets;
    let providers = providers.iter_mut().filter_map(|provider| provider.path.as_mut());
    let of_secrets = rules.iter_mut().chain(key_file).chain(providers);
    let paths = [workspace, state].into_iter().chain(tools).chain(policy).chain(keys).chain(of_secrets);
    for path in paths.chain(granted) {
        *path = resolved(base, path);
    }
}

impl Config {
    /// Files that decide about tools or record what they did, and client files in which `toolgate connect` stores tokens.
    /// Tools must not write them, nor read the state directory, although most are inside the workspace. Otherwise a tool
    /// could publish itself, forge the journal or steal keys.
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
            .chain(&self.secrets.key_file)
            .chain(self.secrets.providers.iter().filter_map(|provider| provider.path.as_ref()))
            .chain(&self.also_guarded)
            .cloned()
            .chain(client_files(&self.workspace))
            .chain(self.file.as_deref().and_then(Path::parent).into_iter().flat_map(client_files))
            .map(without_parents)
            .collect()
    }
}

/// Removes `..`, which policy rules cannot match. If the path does not exist, resolves its longest existing prefix.
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
            // The path ends in `..` below a directory that does not exist.
            _ => return path,
        }
    }
}

/// Paths that a draft under test must not touch: the files of the gateway that serves this workspace. Includes the default
/// names, and the paths of each readable configuration in the workspace or named by `env`.
pub fn guarded_in(workspace: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut guarded = vec![workspace.join(STATE_DIR)];
    guarded.extend(client_files(workspace));
    for (file, config) in configurations_of(workspace, env) {
        guarded.extend(config.iter().flat_map(Config::guarded_paths));
        guarded.push(file);
    }
    guarded.sort_unstable();
    guarded.dedup();
    guarded
}

/// The state directory of the gateway that serves this workspace; the default if its configuration cannot be read.
pub fn state_in(workspace: &Path, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let configured = configurations_of(workspace, env).into_iter().find_map(|(_, config)| config);
    configured.map_or_else(|| workspace.join(STATE_DIR), |config| config.state)
}

/// The secret settings of the gateway that serves this workspace. `None`: it has no readable configuration.
pub fn secrets_in(workspace: &Path, env: &dyn Fn(&str) -> Option<String>) -> Option<SecretSettings> {
    let configured = configurations_of(workspace, env).into_iter().find_map(|(_, config)| config);
    configured.map(|config| config.secrets)
}

/// Configuration files that may apply to this workspace: the one in it, and the one that `env` names. `None` if unreadable.
pub(crate) fn configurations_of(
    workspace: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<(PathBuf, Option<Config>)> {
    let named = std::path::absolute(config_path(None, env)).ok();
    let files = std::iter::once(workspace.join(FILE_NAME)).chain(named);
    files.map(|file| (file.clone(), Config::load(&file, env, &Overrides::default()).ok())).collect()
}

fn client_files(dir: &Path) -> Vec<PathBuf> {
    // Tools are checked by canonical path. A file that does not exist yet has none, but its directory does.
    let real = dir.canonicalize().ok().filter(|real| real != dir);
    let dirs = std::iter::once(dir.to_owned()).chain(real);
    dirs.flat_map(|dir| CLIENT_FILES.map(|file| dir.join(file))).collect()
}

/// Files in which MCP clients look for the gateways of a project.
const CLIENT_FILES: [&str; 6] = [
    ".mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".zed/settings.json",
];

/// The default of `state`.
const STATE_DIR: &str = ".toolgate";
