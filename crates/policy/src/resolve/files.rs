//! Resolves file access: read, write, and paths.

use std::sync::Arc;

use toolgate_spec::{
    Finding, PathPattern, Pointer,
    model::{Body, Classification, ToolSpec},
};

use super::{block, layers::Layers, reject};
use crate::{
    base_policy::BasePolicy,
    effective::FilePolicy,
    setting::{Setting, SettingList, SettingOrigin},
};

pub(super) fn resolve(
    spec: &ToolSpec,
    ground: &BasePolicy,
    layers: &Layers<'_>,
    findings: &mut Vec<Finding>,
) -> FilePolicy {
    refuse_contradiction(spec, findings);
    let paths = declared_paths(layers);
    let (read, write) = match spec.body {
        Body::JavaScript { .. } => (ground.file_read.clone(), ground.file_write.clone()),
        Body::Handler(_) => by_paths(spec, ground, paths.as_ref()),
    };
    let explicit = |stated: Option<bool>, inherited: Setting<bool>| {
        stated.map_or(inherited, |value| Setting::new(value, SettingOrigin::Tool))
    };
    let read = explicit(spec.overrides.file_read, read);
    let write = explicit(spec.overrides.file_write, write);
    // An empty path list means no reading, regardless of the layer that emptied it.
    let nowhere = paths.as_ref().filter(|paths| paths.is_empty()).map(|paths| paths.origin.clone());
    let unless_nowhere = |setting: Setting<bool>| match &nowhere {
        Some(origin) if setting.value => Setting::new(false, origin.clone()),
        _ => setting,
    };
    let (read, write) = (unless_nowhere(read), unless_nowhere(write));
    let (base_path, base_paths) = base(spec, ground, findings);
    let allowed_paths = if read.value || write.value {
        paths.unwrap_or(base_paths)
    } else {
        SettingList::empty(read.origin.clone())
    };
    FilePolicy {
        read,
        write,
        base_path,
        allowed_paths,
        blocked_paths: layers
            .extended(&layers.defaults.blocked_paths, |patch| patch.execution.blocked_paths.as_ref()),
    }
}

/// A manifest grants by paths: with paths it reads, and it writes if its class says so.
fn by_paths(
    spec: &ToolSpec,
    ground: &BasePolicy,
    paths: Option<&SettingList<PathPattern>>,
) -> (Setting<bool>, Setting<bool>) {
    let writes = spec.overrides.destructive
        || spec.governance.classification.is_some_and(|class| class >= Classification::Write);
    if let Some(paths) = paths {
        let has_paths = !paths.is_empty();
        return (
            Setting::new(has_paths, paths.origin.clone()),
            Setting::new(has_paths && writes, paths.origin.clone()),
        );
    }
    let write = Setting::new(ground.file_write.value && writes, ground.file_write.origin.clone());
    (ground.file_read.clone(), write)
}

/// The paths of the last layer that lists any. An empty list counts.
fn declared_paths(layers: &Layers<'_>) -> Option<SettingList<PathPattern>> {
    match layers.stated(|patch| patch.execution.allowed_paths.as_ref()) {
        Some(paths) => Some(SettingList::of(paths.value.iter().cloned(), paths.origin)),
        None => layers.defaults.allowed_paths.clone(),
    }
}

fn base(
    spec: &ToolSpec,
    ground: &BasePolicy,
    findings: &mut Vec<Finding>,
) -> (Setting<Arc<str>>, SettingList<PathPattern>) {
    let inherited = || (ground.base_path.clone(), ground.base_paths.clone());
    let Some(text) = &spec.overrides.fs_base_path else { return inherited() };
    match PathPattern::parse(text) {
        Ok(path) if !text.contains('*') => (
            Setting::new(Arc::from(text.as_str()), SettingOrigin::Tool),
            SettingList::of([path], SettingOrigin::Tool),
        ),
        _ => {
            findings.push(reject(
                Pointer::new("/sandboxOverrides/fsBasePath"),
                format!("`{text}` is not a single directory"),
                "write an absolute path, or one below `$WORKSPACE` or `$HOME`, without `*`",
            ));
            inherited()
        }
    }
}

fn refuse_contradiction(spec: &ToolSpec, findings: &mut Vec<Finding>) {
    let Some(paths) = &spec.governance.capability.execution.allowed_paths else { return };
    let denies = spec.overrides.file_read == Some(false) && spec.overrides.file_write != Some(true);
    let grants = spec.overrides.file_read == Some(true) || spec.overrides.file_write == Some(true);
    if (denies && !paths.is_empty()) || (grants && paths.is_empty()) {
        findings.push(reject(
            block(spec, "capability").key("execution").key("allowedPaths"),
            "`sandboxOverrides` and `allowedPaths` disagree about files",
            "list paths only if `fileRead` or `fileWrite` is true, and then at least one",
        ));
    }
}
