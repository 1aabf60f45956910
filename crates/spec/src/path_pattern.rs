//! Path patterns in documents: absolute, or below `$WORKSPACE` or `$HOME`. Nothing else is expanded.
//!
//! `*` matches any characters except `/`; `**` as a whole segment matches any number of segments. A pattern covers
//! the path it names and everything below. Case matters. Wildcards of other languages (`?`, `[a]`, `{a,b}`) are
//! rejected: as plain text they would never match.

use std::fmt;

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PathPattern {
    text: String,
    root: PathRoot,
    segments: Vec<PathSegment>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PathRoot {
    Filesystem,
    Workspace,
    Home,
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum PathSegment {
    Literal(String),
    Glob(String),
    AnyDepth,
}

/// The values of `$WORKSPACE` and `$HOME` in this gateway. Both are absolute, without `.` and `..`.
#[derive(Clone, Copy, Debug)]
pub struct PathRoots<'a> {
    pub workspace: &'a str,
    pub home: &'a str,
}

impl PathPattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("a path must not contain control characters".into());
        }
        if text != text.trim() {
            return Err("remove the spaces around the path".into());
        }
        if text.contains("${") {
            return Err("`${…}` is not expanded; write `$WORKSPACE` or `$HOME`".into());
        }
        if text.contains(['?', '[', ']', '{', '}', '\\']) {
            return Err("only `*` and `**` are wildcards, and `\\` is not a separator".into());
        }
        let (root, rest) = split_root(text)?;
        let mut segments = Vec::new();
        for segment in rest.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
            segments.push(match segment {
                ".." => return Err("`..` would leave the named directory".into()),
                "**" => PathSegment::AnyDepth,
                variable if variable.contains('$') => return Err(unknown_variable(variable)),
                glob if glob.contains("**") => return Err("`**` must be a whole path segment".into()),
                glob if glob.contains('*') => PathSegment::Glob(glob.to_owned()),
                literal => PathSegment::Literal(literal.to_owned()),
            });
        }
        Ok(Self { text: text.to_owned(), root, segments })
    }

    /// A file system path and everything below it, without wildcards. `None` for a path that is relative or contains
    /// `..`.
    pub fn literal(path: &str) -> Option<Self> {
        let rest = path.strip_prefix('/')?;
        let parts = rest.split('/').filter(|part| !part.is_empty() && *part != ".");
        let segments: Vec<PathSegment> = parts.map(|part| PathSegment::Literal(part.to_owned())).collect();
        let climbs = segments.iter().any(|part| matches!(part, PathSegment::Literal(name) if name == ".."));
        (!climbs && !segments.is_empty()).then(|| Self {
            text: path.to_owned(),
            root: PathRoot::Filesystem,
            segments,
        })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub const fn root(&self) -> PathRoot {
        self.root
    }

    /// The number of literal segments below the root before the first wildcard.
    pub fn literal_depth(&self) -> usize {
        self.segments.iter().take_while(|segment| matches!(segment, PathSegment::Literal(_))).count()
    }

    /// Whether this pattern covers a canonical absolute path. Relative paths and paths with `..` are never covered.
    pub fn covers(&self, path: &str, roots: PathRoots<'_>) -> bool {
        let Some(below) = self.strip_root(path, roots) else { return false };
        let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| matches!(*part, "." | "..")) {
            return false;
        }
        covers(&self.segments, &parts)
    }

    fn strip_root<'p>(&self, path: &'p str, roots: PathRoots<'_>) -> Option<&'p str> {
        let base = match self.root {
            PathRoot::Filesystem => "",
            PathRoot::Workspace => absolute(roots.workspace)?,
            PathRoot::Home => absolute(roots.home)?,
        };
        let below = path.strip_prefix(base)?;
        below.starts_with('/').then_some(below).or((below.is_empty() && !base.is_empty()).then_some(below))
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An empty or relative root, or one with `..`, covers nothing, because it could cover too much.
fn absolute(root: &str) -> Option<&str> {
    let is_sound = root.starts_with('/') && !root.split('/').any(|part| matches!(part, "." | ".."));
    is_sound.then(|| root.trim_end_matches('/'))
}

fn split_root(text: &str) -> Result<(PathRoot, &str), String> {
    for (name, root) in [("$WORKSPACE", PathRoot::Workspace), ("$HOME", PathRoot::Home)] {
        if let Some(rest) = text.strip_prefix(name)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return Ok((root, rest));
        }
    }
    match text.as_bytes().first() {
        Some(b'/') => Ok((PathRoot::Filesystem, text)),
        Some(b'$') => Err(unknown_variable(text)),
        Some(b'~') => Err("`~` is not expanded; write `$HOME`".into()),
        None => Err("a path must not be empty".into()),
        Some(_) => Err("a path must be absolute or begin with `$WORKSPACE` or `$HOME`".into()),
    }
}

fn unknown_variable(text: &str) -> String {
    format!("`{text}`: only `$WORKSPACE` and `$HOME` are expanded, at the beginning of a path")
}

/// Linear in the path for each `**`: on a mismatch only the latest `**` is extended, as in the classic glob matcher.
fn covers(pattern: &[PathSegment], path: &[&str]) -> bool {
    let (mut at_pattern, mut at_path) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match pattern.get(at_pattern) {
            None => return true,
            Some(PathSegment::AnyDepth) => {
                retry = Some((at_pattern + 1, at_path));
                at_pattern += 1;
            }
            Some(segment) if path.get(at_path).is_some_and(|part| matches_segment(segment, part)) => {
                at_pattern += 1;
                at_path += 1;
            }
            Some(_) => {
                let Some((after, from)) = retry else { return false };
                if from >= path.len() {
                    return false;
                }
                retry = Some((after, from + 1));
                (at_pattern, at_path) = (after, from + 1);
            }
        }
    }
}

fn matches_segment(segment: &PathSegment, part: &str) -> bool {
    match segment {
        PathSegment::Literal(name) => name == part,
        PathSegment::Glob(glob) => crate::glob::matches(glob, part),
        PathSegment::AnyDepth => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOTS: PathRoots<'_> = PathRoots { workspace: "/ws", home: "/home/ann" };

    #[track_caller]
    fn check(pattern: &str, covers: &[&str], misses: &[&str]) {
        let parsed = PathPattern::parse(pattern).unwrap();
        for path in covers {
            assert!(parsed.covers(path, ROOTS), "{pattern} should cover {path}");
        }
        for path in misses {
            assert!(!parsed.covers(path, ROOTS), "{pattern} should not cover {path}");
        }
    }

    #[test]
    fn pattern_covers_its_path_and_everything_below() {
        check("$WORKSPACE", &["/ws", "/ws/", "/ws/a/b"], &["/wsx", "/", "ws", "/home/ann"]);
        check("/etc/", &["/etc", "/etc/shadow"], &["/etcetera", "/ETC/shadow"]);
        check(
            "$HOME/.ssh/id_*",
            &["/home/ann/.ssh/id_rsa", "/home/ann/.ssh/id_/x"],
            &["/home/ann/.ssh/known"],
        );
        check(
            "$HOME/.gnupg/private-keys*",
            &["/home/ann/.gnupg/private-keys-v1.d/k"],
            &["/home/ann/.gnupg/p"],
        );
        check("/a/**/z", &["/a/z", "/a/b/c/z/below"], &["/a", "/a/b", "/b/z"]);
        check("/**", &["/", "/x"], &["", "x"]);
        check("/a//./b/", &["/a/b", "/a//b"], &["/a"]);
    }

    #[test]
    fn path_with_dot_dot_is_never_covered() {
        check("/", &["/a"], &["/a/../b", "/..", "/a/./b", "a/b", "../a"]);
    }

    #[test]
    fn relative_root_covers_nothing() {
        let pattern = PathPattern::parse("$WORKSPACE").unwrap();
        for workspace in ["", "ws", "/ws/..", "."] {
            assert!(!pattern.covers("/ws/a", PathRoots { workspace, home: "/ws" }), "{workspace}");
        }
        assert!(!PathPattern::parse("$HOME").unwrap().covers("/x", PathRoots { workspace: "/", home: "" }));
    }

    #[test]
    fn invalid_path_is_rejected() {
        for bad in [
            "",
            "a",
            "./a",
            "~",
            "~/a",
            "$WORKSPACEx",
            "$FOO/a",
            "/a/$HOME",
            "/a/$X*",
            "/a/../b",
            "$HOME/..",
            "/a/x**",
            "/a\0",
            "/a\n",
            " /a",
            "/a ",
            "/a?",
            "/[a]",
            "/{a,b}",
            "C:\\x",
            "${HOME}/a",
            "file:///a",
        ] {
            assert!(PathPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
