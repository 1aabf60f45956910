//! The files that a command sees: the paths in its arguments, its working directory, or else everything it is allowed.
//! Blocked paths are never visible.
//!
//! | path arguments | `cwd` | visible |
//! |---|---|---|
//! | yes | no | the named paths, each open since it was checked |
//! | yes | yes | the named paths and the working directory |
//! | no | yes | the working directory |
//! | no | no | everything below `allowedPaths` |

pub mod blocked_paths;
pub mod budget;
pub mod deferred_work;
pub mod environment;
pub mod hidden_paths;
pub mod quarantine;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolgate_gate::StopFlag;
use toolgate_policy::EffectivePolicy;
use toolgate_sandbox::{Access, Bind, Source, View};
use toolgate_spec::model::SandboxKind;

use self::{
    blocked_paths::{BlockedPaths, CHECK_STOPPED},
    environment::HOME,
    quarantine::BlockedPathWatch,
};
use crate::{
    files::{FileAccess, FileGrants, Files},
    grants,
    places::Places,
    survey::CallGrants,
};

/// The rules for a tool's view, computed once for all calls.
#[derive(Debug)]
pub struct ViewPlan {
    files: Option<Arc<FileGrants>>,
    cwd: Option<PathBuf>,
    names_paths: NamesPaths,
    access: Access,
    blocked: Arc<BlockedPaths>,
    sandbox: SandboxKind,
    /// A blocked pattern begins in a system directory, so it is searched at every call.
    searches_system: bool,
}

/// Whether arguments of the tool name paths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NamesPaths {
    Yes,
    No,
}

/// The view of one call.
#[derive(Debug)]
pub struct CommandView {
    pub files: View,
    pub cwd: PathBuf,
    /// A blocked path that does not exist cannot be hidden. The watch checks after the run whether the command
    /// created one.
    pub watch: BlockedPathWatch,
}

/// A path of the gateway that no rule can name. Without the rule, a tool could read it.
const UNBLOCKABLE: &str = "a file of the gateway cannot be blocked for tools: its path is not UTF-8, or leads through `..` behind a \
                           directory that does not exist; create the directory, or write the path without `..`";

impl ViewPlan {
    pub fn new(
        policy: &EffectivePolicy,
        places: &Places,
        cwd: Option<&str>,
        names_paths: NamesPaths,
    ) -> Result<Self, String> {
        let files = grants::files(policy, places);
        if policy.files.write.value && !policy.files.read.value {
            return Err("a command that writes files sees them as well; grant `fileRead` too".to_owned());
        }
        let access = if policy.files.write.value { Access::Write } else { Access::Read };
        let folder = cwd.map(|text| place(text, &places.workspace, &places.home));
        if files.is_none() && (policy.files.read.value || policy.files.write.value) {
            return Err(UNBLOCKABLE.to_owned());
        }
        if let (Some(text), None) = (cwd, &files) {
            return Err(format!(
                "the tool has no access to its working directory `{text}`; list it in `capability.execution.allowedPaths`, or leave `cwd` out"
            ));
        }
        let blocked = if let Some(files) = &files {
            BlockedPaths::new(Some(files), &places.guarded)?
        } else {
            // A tool without file grants still sees the system directories.
            let unread = grants::blocked_files(policy, places).ok_or(UNBLOCKABLE)?;
            BlockedPaths::new(Some(&unread), &places.guarded)?
        };
        Ok(Self {
            files: files.map(Arc::new),
            cwd: folder,
            names_paths,
            access,
            searches_system: blocked.searches_system(),
            blocked: Arc::new(blocked),
            sandbox: policy.execution.sandbox.value,
        })
    }

    /// Whether [`Self::view`] may search a directory or read a disk other than the system's. Otherwise it makes a few
    /// dozen system calls on names in the kernel's cache.
    pub fn waits_for_disk(&self, granted: &CallGrants) -> bool {
        self.granted_folders().is_some() || !granted.paths.is_empty() || self.searches_system
    }

    /// Directories that a command sees regardless of its arguments.
    fn granted_folders(&self) -> Option<&FileGrants> {
        let sees_all = |files: &&Arc<FileGrants>| {
            self.cwd.is_some() || self.names_paths == NamesPaths::No && !files.allowed.is_empty()
        };
        self.files.as_ref().filter(sees_all).map(Arc::as_ref)
    }

    pub fn blocked(&self) -> Arc<BlockedPaths> {
        Arc::clone(&self.blocked)
    }

    /// Checks the current tree. Blocks the thread, and stops when the caller stops waiting.
    pub fn view(&self, granted: &CallGrants, tmp_bytes: u64, stop: &StopFlag) -> Result<CommandView, String> {
        let mut binds = Vec::new();
        let mut cwd = PathBuf::from(HOME);
        if let Some(grants) = self.granted_folders() {
            let asked = stop.clone();
            let files = Files::open(grants, move || asked.is_set()).map_err(|error| error.message)?;
            if let Some(folder) = &self.cwd {
                let bind = self.folder(&files, folder)?.ok_or_else(|| {
                    format!("its working directory `{}` does not exist; create it", folder.display())
                })?;
                cwd.clone_from(&bind.at);
                binds.push(bind);
            } else {
                for pattern in &grants.allowed {
                    binds.extend(self.allowed(&files, grants, pattern.text())?);
                }
            }
        }
        for path in &granted.paths {
            let Some(held) = &path.held else { continue };
            let access = match path.wanted {
                FileAccess::Read => Access::Read,
                FileAccess::Write => Access::Write,
            };
            let handle = held
                .handle
                .try_clone()
                .map_err(|error| format!("`{}` cannot be kept open: {}", held.path, error.kind()))?;
            binds.push(Bind { source: Source::Opened(handle.into()), at: PathBuf::from(&held.path), access });
        }
        let binds = outside_in(binds);
        let places: Vec<PathBuf> = binds.iter().map(|bind| bind.at.clone()).collect();
        let mut found = self.blocked.look(&places, None, stop);
        if let Some(why) = &found.trouble {
            return Err(why.clone());
        }
        self.blocked.add_aliases(&places, stop, &mut found)?;
        self.blocked.add_mounted(&places, self.sandbox, stop, &mut found)?;
        // A stopped check must not look like an empty result.
        if stop.is_set() {
            return Err(CHECK_STOPPED.to_owned());
        }
        let in_system = match self.sandbox {
            // A container uses the system of its image.
            SandboxKind::Container => BTreeSet::new(),
            SandboxKind::Process | SandboxKind::None => self.blocked.in_system(stop)?,
        };
        // Aliases of these paths were already searched for, and the directories are large.
        let in_binds: BTreeSet<PathBuf> = found.blocked.iter().cloned().collect();
        let system_only: Vec<PathBuf> = in_system.difference(&in_binds).cloned().collect();
        let hidden = self.blocked.hidden(&places, &found, in_system)?;
        let mut hidden_large = self.blocked.large_of(&hidden);
        hidden_large.extend(system_only);
        let watch = BlockedPathWatch::begin(&self.blocked, &binds, found)?;
        Ok(CommandView { files: View { binds, hidden, hidden_large, tmp_bytes }, watch, cwd })
    }

    fn allowed(&self, files: &Files, grants: &FileGrants, pattern: &str) -> Result<Option<Bind>, String> {
        if pattern.contains('*') {
            return Err(format!(
                "`{pattern}` cannot be shown to a command as a whole; name paths by arguments with `format: path`, or allow a plain path"
            ));
        }
        let path = place(pattern, &grants.pattern_workspace, &grants.home);
        // A directory that does not exist grants nothing.
        if !path.exists() {
            return Ok(None);
        }
        self.folder(files, &path)
    }

    /// `None` if nothing exists there.
    fn folder(&self, files: &Files, path: &Path) -> Result<Option<Bind>, String> {
        let text = path.to_str().ok_or_else(|| format!("`{}` is not UTF-8; rename it", path.display()))?;
        let located = files.locate(text, FileAccess::Read).map_err(|error| error.message)?;
        Ok(located.held.map(|held| {
            // As for all tools, only the workspace is writable.
            let is_inside = files.locate(text, FileAccess::Write).is_ok();
            let access = if is_inside { self.access } else { Access::Read };
            Bind { source: Source::Opened(held.handle.into()), at: PathBuf::from(held.path), access }
        }))
    }
}

/// Sorts outer directories first, and keeps each path once with its widest access.
fn outside_in(mut binds: Vec<Bind>) -> Vec<Bind> {
    binds.sort_by(|one, other| one.at.cmp(&other.at).then(other.access.cmp(&one.access)));
    binds.dedup_by(|later, earlier| later.at == earlier.at);
    binds
}

/// An absolute path, or one below `$WORKSPACE` or `$HOME`.
pub(super) fn place(text: &str, workspace: &Path, home: &Path) -> PathBuf {
    let (base, rest) = match (text.strip_prefix("$WORKSPACE"), text.strip_prefix("$HOME")) {
        (Some(rest), _) => (workspace, rest),
        (None, Some(rest)) => (home, rest),
        (None, None) => (Path::new("/"), text),
    };
    let parts = rest.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.fold(base.to_owned(), |path, part| path.join(part))
}
