//! Finds the narrowest directory that would have been enough for a run.

use std::{fs, iter, path::Path};

use serde_json::{Value, json};
use toolgate_spec::PathPattern;

use super::observed::{Observed, WiderGrant, is_callers_choice};
use crate::{
    live::LiveTool,
    ports::{EffectEntry, EffectKind},
};

/// The narrowest directory with every path of these effects, as the tool named them: all absolute, or all relative to
/// the base. `None` if it cannot be determined.
pub fn narrowest<'a>(effects: impl Iterator<Item = &'a EffectEntry>) -> Option<String> {
    let mut folders = effects.filter(|effect| effect.kind != EffectKind::Fetch).flat_map(folders_of);
    let mut common = folders.next()??;
    for folder in folders {
        let folder = folder?;
        if folder.is_absolute != common.is_absolute {
            return None;
        }
        let shared = common.parts.iter().zip(&folder.parts).take_while(|(one, other)| one == other).count();
        common.parts.truncate(shared);
    }
    let path = common.parts.join("/");
    Some(match (common.is_absolute, path.is_empty()) {
        (true, _) => format!("/{path}"),
        (false, true) => ".".to_owned(),
        (false, false) => path,
    })
}

struct ParsedDir<'a> {
    is_absolute: bool,
    parts: Vec<&'a str>,
}

/// The directories of an effect: of its target, and of the destination of a copy or move.
fn folders_of(effect: &EffectEntry) -> impl Iterator<Item = Option<ParsedDir<'_>>> {
    let to = effect.to.as_deref().map(|to| folder_of(effect, to));
    iter::once(folder_of(effect, &effect.target)).chain(to)
}

fn folder_of<'a>(effect: &EffectEntry, path: &'a str) -> Option<ParsedDir<'a>> {
    let function = effect.what.strip_prefix("safety.fs.")?;
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    // Masked, cut or climbing paths are not the ones that were used.
    if parts.iter().any(|part| *part == ".." || part.contains('*')) || path.len() >= LONGEST {
        return None;
    }
    match function {
        // The tool knows the base, and may have built paths from it.
        "workspace" | "readRoots" => return None,
        "copy" | "move" if effect.to.is_none() => return None,
        // Their results are relative to the base, so another base would change them.
        "list" | "find" | "searchInFiles" if is_absolute => return None,
        "list" | "find" | "searchInFiles" => {}
        _ => {
            parts.pop();
        }
    }
    Some(ParsedDir { is_absolute, parts })
}

/// Whether the base is wider than the directory that was used.
pub fn wider_base(tool: &LiveTool, observed: &Observed) -> Option<WiderGrant> {
    let files = &tool.policy.files;
    let base = files.base_path.value.trim_end_matches('/');
    // If other paths are listed, they limit the access, not the base.
    let is_bound = files.allowed_paths.values().all(|path| path.text().trim_end_matches('/') == base);
    let folder = observed.folder.as_deref()?;
    if !is_bound || folder == "." || PathPattern::parse(&used(base, folder)).is_err() {
        return None;
    }
    // A path that the caller chose says nothing about other callers.
    if is_callers_choice(tool, observed.read.iter().chain(&observed.written)) {
        return None;
    }
    let used = used(base, folder);
    let inside = used.strip_prefix(base)?.strip_prefix('/')?;
    // Symlinks in a base are followed at every call, wherever they then lead. Below a base they cannot lead out of it.
    if inside.is_empty() || (folder.starts_with('/') && !is_its_own_name(&used)) {
        return None;
    }
    // If paths are listed, even this one, another base does not remove access to them.
    let says_it_twice = tool.spec.governance.capability.execution.allowed_paths.is_some()
        || files.allowed_paths.origin != files.base_path.origin;
    // Relative paths start at the base, so they would lead elsewhere from another base.
    let can_be_narrowed = folder.starts_with('/') && !says_it_twice;
    Some(WiderGrant {
        setting: "fsBasePath",
        declared: files.base_path.value.to_string(),
        enough: if can_be_narrowed { json!(used) } else { Value::Null },
        used,
    })
}

fn used(base: &str, folder: &str) -> String {
    if folder.starts_with('/') { folder.to_owned() } else { format!("{base}/{folder}") }
}

/// Whether no part of the path is a symlink. A part that does not exist or cannot be read may become one.
fn is_its_own_name(path: &str) -> bool {
    fs::canonicalize(path).is_ok_and(|real| real == Path::new(path))
}

/// Names of effects are cut at this many characters.
const LONGEST: usize = 300;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(effects: &[(&str, &str)], expect: Option<&str>) {
        let effects: Vec<EffectEntry> = effects
            .iter()
            .map(|(function, target)| EffectEntry {
                kind: EffectKind::Read,
                what: format!("safety.fs.{function}"),
                target: target.split(" -> ").next().unwrap().to_owned(),
                to: target.split_once(" -> ").map(|(_, to)| to.to_owned()),
                outcome: "ok".to_owned(),
                bytes: 0,
                elapsed: Duration::ZERO,
            })
            .collect();
        assert_eq!(narrowest(effects.iter()).as_deref(), expect);
    }

    #[test]
    fn common_directory_of_the_paths_is_found() {
        check(&[], None);
        check(&[("readText", "/srv/data/notes/a.txt")], Some("/srv/data/notes"));
        check(&[("readText", "/srv/data/a/x"), ("stat", "/srv//data/./b/y")], Some("/srv/data"));
        check(&[("readText", "/srv/data/a"), ("readText", "/srv/database/a")], Some("/srv"));
        check(&[("readText", "/a"), ("readText", "/b")], Some("/"));
        check(&[("readText", "notes/a.txt"), ("list", "notes/old")], Some("notes"));
        check(&[("readText", "a.txt")], Some("."));
        check(&[("list", "")], Some("."));
        check(&[("copy", "/srv/data/notes/a -> /srv/data/notes/old/a")], Some("/srv/data/notes"));
        check(&[("move", "/srv/data/notes/a -> /srv/data/b")], Some("/srv/data"));
    }

    #[test]
    fn unknown_paths_have_no_common_directory() {
        check(&[("readText", "/srv/a"), ("readText", "b")], None);
        check(&[("readText", "/srv/data/../../etc/passwd")], None);
        check(&[("copy", "/srv/data/a")], None);
        check(&[("copy", "/srv/data/a -> b")], None);
        check(&[("move", "/srv/data/a -> /srv/data/../b")], None);
        check(&[("workspace", ""), ("readText", "/srv/data/a")], None);
        check(&[("list", "/srv/data")], None);
        check(&[("readText", "/srv/***/a")], None);
    }
}
