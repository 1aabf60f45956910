//! May the tool read, may it write, and where?

use std::sync::Arc;

use toolgate_spec::{
    Finding, PathPattern, Pointer,
    model::{Body, Classification, ToolSpec},
};

use super::{block, layers::Layers, reject};
use crate::{
    effective::FilePolicy,
    ground::Ground,
    setting::{Listing, Origin, Setting},
};

pub(super) fn resolve(
    spec: &ToolSpec,
    ground: &Ground,
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
        stated.map_or(inherited, |value| Setting::new(value, Origin::Tool))
    };
    let read = explicit(spec.overrides.file_read, read);
    let write = explicit(spec.overrides.file_write, write);
    // Nowhere to read is no reading, whoever emptied the list.
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
        Listing::empty(read.origin.clone())
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

/// A manifest speaks by its paths: with some it reads, and writes if it says that it is one who writes.
fn by_paths(
    spec: &ToolSpec,
    ground: &Ground,
    paths: Option<&Listing<PathPattern>>,
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

/// The paths that a layer lists, if one does; an empty list is a statement.
fn declared_paths(layers: &Layers<'_>) -> Option<Listing<PathPattern>> {
    match layers.stated(|patch| patch.execution.allowed_paths.as_ref()) {
        Some(paths) => Some(Listing::of(paths.value.iter().cloned(), paths.origin)),
        None => layers.defaults.allowed_paths.clone(),
    }
}

fn base(
    spec: &ToolSpec,
    ground: &Ground,
    findings: &mut Vec<Finding>,
) -> (Setting<Arc<str>>, Listing<PathPattern>) {
    let inherited = || (ground.base_path.clone(), ground.base_paths.clone());
    let Some(text) = &spec.overrides.fs_base_path else { return inherited() };
    match PathPattern::parse(text) {
        Ok(path) if !text.contains('*') => {
            (Setting::new(Arc::from(text.as_str()), Origin::Tool), Listing::of([path], Origin::Tool))
        }
        _ => {
            findings.push(reject(
                Pointer::new("/sandboxOverrides/fsBasePath"),
                format!("`{text}` is not one folder"),
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
            "list paths only where `fileRead` or `fileWrite` is true, and at least one there",
        ));
    }
}
