//! Paths that a document may name: absolute, or below `$WORKSPACE` or `$HOME`. Nothing else is expanded.
//!
//! In a path, `*` stands for any characters but `/`; `**` as a whole segment for any number of segments.
//! A pattern covers the path it names and everything below it.

use std::fmt;

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PathPattern {
    text: String,
    root: Root,
    segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Root {
    Filesystem,
    Workspace,
    Home,
}

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Segment {
    Literal(String),
    Glob(String),
    AnyDepth,
}

/// What `$WORKSPACE` and `$HOME` stand for in this gateway. Both are absolute and free of `.` and `..`.
#[derive(Clone, Copy, Debug)]
pub struct PathRoots<'a> {
    pub workspace: &'a str,
    pub home: Option<&'a str>,
}

impl PathPattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains('\0') || text.chars().any(char::is_control) {
            return Err("a path has no control characters".into());
        }
        let (root, rest) = split_root(text)?;
        let mut segments = Vec::new();
        for segment in rest.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
            segments.push(match segment {
                ".." => return Err("`..` would climb out of the named folder".into()),
                "**" => Segment::AnyDepth,
                glob if glob.contains("**") => return Err("`**` stands alone between slashes".into()),
                glob if glob.contains('*') => Segment::Glob(glob.to_owned()),
                variable if variable.contains('$') => return Err(unknown_variable(variable)),
                literal => Segment::Literal(literal.to_owned()),
            });
        }
        Ok(Self { text: text.to_owned(), root, segments })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub const fn root(&self) -> Root {
        self.root
    }

    /// How many folders deep the pattern is certain to reach below its root.
    pub fn literal_depth(&self) -> usize {
        self.segments.iter().take_while(|segment| matches!(segment, Segment::Literal(_))).count()
    }

    /// Does this pattern cover a canonical absolute path? A relative or climbing path is never covered.
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
            Root::Filesystem => "",
            Root::Workspace => roots.workspace.trim_end_matches('/'),
            Root::Home => roots.home?.trim_end_matches('/'),
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

fn split_root(text: &str) -> Result<(Root, &str), String> {
    for (name, root) in [("$WORKSPACE", Root::Workspace), ("$HOME", Root::Home)] {
        if let Some(rest) = text.strip_prefix(name)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return Ok((root, rest));
        }
    }
    match text.as_bytes().first() {
        Some(b'/') => Ok((Root::Filesystem, text)),
        Some(b'$') => Err(unknown_variable(text)),
        Some(b'~') => Err("`~` is not expanded; write `$HOME`".into()),
        None => Err("a path is not empty".into()),
        Some(_) => Err("a path is absolute, or begins with `$WORKSPACE` or `$HOME`".into()),
    }
}

fn unknown_variable(text: &str) -> String {
    format!("`{text}`: only `$WORKSPACE` and `$HOME` are expanded, at the beginning of a path")
}

/// Linear in the path for each `**`: on a mismatch only the latest `**` is widened, as in the classic glob matcher.
fn covers(pattern: &[Segment], path: &[&str]) -> bool {
    let (mut at_pattern, mut at_path) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match pattern.get(at_pattern) {
            None => return true,
            Some(Segment::AnyDepth) => {
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

fn matches_segment(segment: &Segment, part: &str) -> bool {
    match segment {
        Segment::Literal(name) => name == part,
        Segment::Glob(glob) => crate::glob::matches(glob, part),
        Segment::AnyDepth => true,
    }
}
