//! What does a command see of the host's files? Paths that its arguments name, its working folder, or else all it is
//! allowed; never what is blocked.
//!
//! | path arguments | `cwd` | seen |
//! |---|---|---|
//! | yes | no | the paths named, each held since it was judged |
//! | yes | yes | the paths named, and the working folder |
//! | no | yes | the working folder |
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

use toolgate_policy::EffectivePolicy;
use toolgate_spec::model::SandboxKind;

use self::{
    blocked_paths::{Blocked, NOBODY_WAITS},
    budget::Stop,
    environment::HOME,
    quarantine::Watch,
};
use crate::{
    cli::run::launch::{Access, Bind},
    files::{FileGrants, Files, Wanted},
    grants,
    places::Places,
    survey::CallGrants,
};

/// The rules by which a tool's view is made, once for all calls.
#[derive(Debug)]
pub struct ViewPlan {
    files: Option<Arc<FileGrants>>,
    cwd: Option<PathBuf>,
    names_paths: NamesPaths,
    access: Access,
    blocked: Arc<Blocked>,
    sandbox: SandboxKind,
    /// A blocked pattern begins in the system's folders, so they are searched at every call.
    searches_system: bool,
}

/// Do arguments of the tool name paths?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NamesPaths {
    Yes,
    No,
}

/// One call's view.
#[derive(Debug)]
pub struct View {
    pub binds: Vec<Bind>,
    pub hidden: Vec<PathBuf>,
    /// Those of them that may be large folders.
    pub hidden_large: Vec<PathBuf>,
    pub cwd: PathBuf,
    /// What is blocked and not there cannot be hidden; whether the command makes it is looked for when it has ended.
    pub watch: Watch,
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
            Blocked::new(Some(files), &places.guarded)?
        } else {
            // Whoever is granted no file sees the system's all the same.
            let unread = grants::blocked_files(policy, places).ok_or(UNBLOCKABLE)?;
            Blocked::new(Some(&unread), &places.guarded)?
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

    /// Does a view of this call search a directory, or read another disk than the system's own? If not, [`Self::view`] makes a few
    /// dozen system calls about names that the kernel has in its cache.
    pub fn waits_for_disk(&self, granted: &CallGrants) -> bool {
        self.granted_folders().is_some() || !granted.paths.is_empty() || self.searches_system
    }

    /// Folders that a command sees whatever its arguments name.
    fn granted_folders(&self) -> Option<&FileGrants> {
        let sees_all = |files: &&Arc<FileGrants>| {
            self.cwd.is_some() || self.names_paths == NamesPaths::No && !files.allowed.is_empty()
        };
        self.files.as_ref().filter(sees_all).map(Arc::as_ref)
    }

    pub fn blocked(&self) -> Arc<Blocked> {
        Arc::clone(&self.blocked)
    }

    /// Looks at the tree as it is now; blocks, but no longer than somebody waits.
    pub fn view(&self, granted: &CallGrants, stop: &Stop) -> Result<View, String> {
        let mut binds = Vec::new();
        let mut cwd = PathBuf::from(HOME);
        if let Some(grants) = self.granted_folders() {
            let asked = stop.clone();
            let files = Files::open(grants, move || asked.is_asked()).map_err(|error| error.message)?;
            if let Some(folder) = &self.cwd {
                let bind = self.folder(&files, folder)?.ok_or_else(|| {
                    format!("its working folder `{}` does not exist; create it", folder.display())
                })?;
                cwd.clone_from(&bind.path);
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
                Wanted::Read => Access::Read,
                Wanted::Write => Access::Write,
            };
            let handle = held
                .handle
                .try_clone()
                .map_err(|error| format!("`{}` cannot be held any longer: {}", held.path, error.kind()))?;
            binds.push(Bind { path: PathBuf::from(&held.path), access, held: handle });
        }
        let binds = outside_in(binds);
        let places: Vec<PathBuf> = binds.iter().map(|bind| bind.path.clone()).collect();
        let mut found = self.blocked.look(&places, None, stop);
        if let Some(why) = &found.trouble {
            return Err(why.clone());
        }
        self.blocked.add_other_names(&places, stop, &mut found)?;
        self.blocked.add_mounted(&places, self.sandbox, stop, &mut found)?;
        // What was left out must not pass for what is not there.
        if stop.is_asked() {
            return Err(NOBODY_WAITS.to_owned());
        }
        let in_system = match self.sandbox {
            // Its system is the image's.
            SandboxKind::Container => BTreeSet::new(),
            SandboxKind::Process | SandboxKind::None => self.blocked.in_system(stop)?,
        };
        // Which of it is in sight under other names has been looked for, and its folders are large.
        let in_binds: BTreeSet<PathBuf> = found.blocked.iter().cloned().collect();
        let system_only: Vec<PathBuf> = in_system.difference(&in_binds).cloned().collect();
        let hidden = self.blocked.hidden(&places, &found, in_system)?;
        let mut hidden_large = self.blocked.large_of(&hidden);
        hidden_large.extend(system_only);
        Ok(View { hidden, hidden_large, watch: Watch::begin(&self.blocked, &binds, found)?, binds, cwd })
    }

    fn allowed(&self, files: &Files, grants: &FileGrants, pattern: &str) -> Result<Option<Bind>, String> {
        if pattern.contains('*') {
            return Err(format!(
                "`{pattern}` cannot be shown to a command as a whole; name paths by arguments with `format: path`, or allow a plain path"
            ));
        }
        let path = place(pattern, &grants.pattern_workspace, &grants.home);
        // A folder that does not exist grants nothing.
        if !path.exists() {
            return Ok(None);
        }
        self.folder(files, &path)
    }

    /// `None` where nothing is there.
    fn folder(&self, files: &Files, path: &Path) -> Result<Option<Bind>, String> {
        let text = path.to_str().ok_or_else(|| format!("`{}` is not UTF-8; rename it", path.display()))?;
        let located = files.locate(text, Wanted::Read).map_err(|error| error.message)?;
        Ok(located.held.map(|held| {
            // Writing is for the workspace alone, as for every other tool.
            let is_inside = files.locate(text, Wanted::Write).is_ok();
            let access = if is_inside { self.access } else { Access::Read };
            Bind { path: PathBuf::from(held.path), access, held: held.handle }
        }))
    }
}

/// Outer folders first, each path once, with the widest access that any reason gives it.
fn outside_in(mut binds: Vec<Bind>) -> Vec<Bind> {
    binds.sort_by(|one, other| one.path.cmp(&other.path).then(other.access.cmp(&one.access)));
    binds.dedup_by(|later, earlier| later.path == earlier.path);
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
