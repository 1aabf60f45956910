//! Which folder would a run have been content with?

use std::{fs, iter, path::Path};

use serde_json::{Value, json};
use toolgate_spec::PathPattern;

use super::observed::{Observed, Wider, is_callers_choice};
use crate::{
    live::LiveTool,
    ports::{EffectEntry, EffectKind},
};

/// The narrowest folder that holds every path of these effects, as they were asked for: all absolute, or all relative to
/// the base. Nothing where that cannot be known.
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

struct Folder<'a> {
    is_absolute: bool,
    parts: Vec<&'a str>,
}

/// Of what a copy or a move takes, and of where it leads.
fn folders_of(effect: &EffectEntry) -> impl Iterator<Item = Option<Folder<'_>>> {
    let to = effect.to.as_deref().map(|to| folder_of(effect, to));
    iter::once(folder_of(effect, &effect.target)).chain(to)
}

fn folder_of<'a>(effect: &EffectEntry, path: &'a str) -> Option<Folder<'a>> {
    let function = effect.what.strip_prefix("safety.fs.")?;
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    // Masked, cut or climbing names are not the ones that were used.
    if parts.iter().any(|part| *part == ".." || part.contains('*')) || path.len() >= LONGEST {
        return None;
    }
    match function {
        // The tool was told the base, and may have made paths of it.
        "workspace" | "readRoots" => return None,
        "copy" | "move" if effect.to.is_none() => return None,
        // What they find is named relative to the base: another base would change it.
        "list" | "find" | "searchInFiles" if is_absolute => return None,
        "list" | "find" | "searchInFiles" => {}
        _ => {
            parts.pop();
        }
    }
    Some(Folder { is_absolute, parts })
}

/// Is the base wider than the folder that was used?
pub fn wider_base(tool: &LiveTool, observed: &Observed) -> Option<Wider> {
    let files = &tool.policy.files;
    let base = files.base_path.value.trim_end_matches('/');
    // Where other paths are listed, they are the bound, and the base is none.
    let is_bound = files.allowed_paths.values().all(|path| path.text().trim_end_matches('/') == base);
    let folder = observed.folder.as_deref()?;
    if !is_bound || folder == "." || PathPattern::parse(&used(base, folder)).is_err() {
        return None;
    }
    // A path that the caller chose says nothing about the next caller's.
    if is_callers_choice(tool, observed.read.iter().chain(&observed.written)) {
        return None;
    }
    let used = used(base, folder);
    let inside = used.strip_prefix(base)?.strip_prefix('/')?;
    // Links in a base are followed at every call, wherever they lead by then; below a base they cannot lead out of it.
    if inside.is_empty() || (folder.starts_with('/') && !is_its_own_name(&used)) {
        return None;
    }
    // Where paths are listed, even this one, another base takes none of them away.
    let says_it_twice = tool.spec.governance.capability.execution.allowed_paths.is_some()
        || files.allowed_paths.origin != files.base_path.origin;
    // Relative paths are taken from the base, so that they would lead elsewhere from another one.
    let can_be_narrowed = folder.starts_with('/') && !says_it_twice;
    Some(Wider {
        setting: "fsBasePath",
        declared: files.base_path.value.to_string(),
        enough: if can_be_narrowed { json!(used) } else { Value::Null },
        used,
    })
}

fn used(base: &str, folder: &str) -> String {
    if folder.starts_with('/') { folder.to_owned() } else { format!("{base}/{folder}") }
}

/// Whether no part of the path is a link. What is not there, or cannot be looked at, may become one.
fn is_its_own_name(path: &str) -> bool {
    fs::canonicalize(path).is_ok_and(|real| real == Path::new(path))
}

/// Names of effects are cut at this many signs.
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
    fn folders_have_a_common_one() {
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
    fn what_is_not_known_has_none() {
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
