//! Patterns for fields of a tool's output: `.a.b`, `.a[].b`, `..b`, and the globs `a.*`, `*.b`, `*`.
//!
//! A pattern covers the field it names and everything below, but never a sibling. Array elements have no name: `[]`
//! is optional and ignored when matching, so `.items.id` and `.items[].id` name the same fields.
//!
//! Specificity is compared per field. For `.customer.ssn`, `..ssn` beats `.customer`, because it names the field
//! itself.

use std::fmt;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct FieldPattern {
    text: String,
    steps: Vec<PatternStep>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum PatternStep {
    Name(String),
    /// Exactly one field of any name.
    AnyName,
    /// Any number of fields, including none.
    AnyDepth,
}

/// One step of a pattern, for code that walks many patterns at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FieldStep<'p> {
    Name(&'p str),
    /// Exactly one field of any name.
    AnyName,
    /// Any number of fields, including none.
    AnyDepth,
}

/// How specifically a pattern names one field; the greater value wins. Compared in member order: distance to the
/// field, name or `*`, then the number of named steps.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Specificity {
    depth: usize,
    ends_in_name: bool,
    names: usize,
    single_wildcards: usize,
    is_bounded: bool,
}

impl FieldPattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a field path must not be empty; write `*` for every field".into());
        }
        if text.len() > MAX_BYTES {
            return Err(format!("a field path has at most {MAX_BYTES} bytes"));
        }
        if matches!(text, "*" | ".") {
            return Ok(Self { text: text.to_owned(), steps: vec![PatternStep::AnyDepth] });
        }
        let mut steps = Vec::new();
        // A leading `*.` means "at any depth", as in the globs of the source format.
        let deep = text.strip_prefix("*.").or_else(|| text.strip_prefix(".."));
        let mut rest = deep.unwrap_or_else(|| text.strip_prefix('.').unwrap_or(text));
        if deep.is_some() {
            steps.push(PatternStep::AnyDepth);
        }
        if rest.is_empty() {
            return Err("a field name must follow the dots".into());
        }
        while !rest.is_empty() {
            let end = rest.find('.').unwrap_or(rest.len());
            let (step, after) = rest.split_at(end);
            parse_step(step, &mut steps)?;
            rest = match after.strip_prefix("..") {
                Some(after) => {
                    steps.push(PatternStep::AnyDepth);
                    after
                }
                None => after.strip_prefix('.').unwrap_or(after),
            };
            if rest.is_empty() && !after.is_empty() {
                return Err("a field name must follow the last dot".into());
            }
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern names this field or one above it. The path lists field names from the top, without
    /// indices.
    pub fn matches<S: AsRef<str>>(&self, path: &[S]) -> bool {
        self.specificity_at(path).is_some()
    }

    /// How specifically the pattern names this field, or `None` if it does not cover the field.
    pub fn specificity_at<S: AsRef<str>>(&self, path: &[S]) -> Option<Specificity> {
        let deepest = self.reaches(path).iter().rposition(|reached| *reached)?;
        Some(self.specificity_reaching(deepest))
    }

    /// Like `specificity_at`, if the caller knows how far the pattern reaches.
    pub fn specificity_reaching(&self, deepest: usize) -> Specificity {
        let count = |wanted: fn(&PatternStep) -> bool| self.steps.iter().filter(|step| wanted(step)).count();
        let names = count(|step| matches!(step, PatternStep::Name(_)));
        let single_wildcards = count(|step| matches!(step, PatternStep::AnyName));
        Specificity {
            depth: if self.is_catch_all() { 0 } else { deepest },
            ends_in_name: matches!(self.steps.last(), Some(PatternStep::Name(_))),
            names,
            single_wildcards,
            is_bounded: !self.steps.contains(&PatternStep::AnyDepth),
        }
    }

    /// Whether the pattern covers every field and names none.
    pub fn is_catch_all(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, PatternStep::AnyDepth))
    }

    pub fn steps(&self) -> impl Iterator<Item = FieldStep<'_>> {
        self.steps.iter().map(|step| match step {
            PatternStep::Name(name) => FieldStep::Name(name),
            PatternStep::AnyName => FieldStep::AnyName,
            PatternStep::AnyDepth => FieldStep::AnyDepth,
        })
    }

    /// Whether the pattern names exactly this field, not one above it. `*` names the fields of the result, or the
    /// result itself if it is not an object.
    pub fn names<S: AsRef<str>>(&self, path: &[S]) -> bool {
        let least = usize::from(self.meaning() == [PatternStep::AnyDepth]).min(path.len());
        let first = self.reaches(path).iter().skip(least).position(|reached| *reached);
        first.is_some_and(|first| least + first == path.len())
    }

    /// For each prefix length of the path: whether the pattern reaches it.
    fn reaches<S: AsRef<str>>(&self, path: &[S]) -> Vec<bool> {
        let mut consumed = vec![false; path.len() + 1];
        if let Some(start) = consumed.first_mut() {
            *start = true;
        }
        self.steps.iter().fold(consumed, |consumed, step| advance(step, &consumed, path))
    }

    /// Whether two notations mean the same fields, such as `.a[].b` and `a.b`.
    pub fn means_the_same_as(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }

    /// `[]` alone and `*` both name every field.
    fn meaning(&self) -> &[PatternStep] {
        if self.steps.is_empty() { &[PatternStep::AnyDepth] } else { &self.steps }
    }
}

impl fmt::Display for FieldPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn advance<S: AsRef<str>>(step: &PatternStep, consumed: &[bool], path: &[S]) -> Vec<bool> {
    if matches!(step, PatternStep::AnyDepth) {
        let shortest = consumed.iter().position(|here| *here).unwrap_or(consumed.len());
        return (0..consumed.len()).map(|length| length >= shortest).collect();
    }
    let takes = |field: &S| match step {
        PatternStep::Name(name) => name == field.as_ref(),
        PatternStep::AnyName | PatternStep::AnyDepth => true,
    };
    let moved = consumed.iter().zip(path).map(|(here, field)| *here && takes(field));
    std::iter::once(false).chain(moved).collect()
}

fn parse_step(step: &str, steps: &mut Vec<PatternStep>) -> Result<(), String> {
    let name = step.trim_end_matches("[]");
    match name {
        "*" => steps.push(PatternStep::AnyName),
        "" if step.is_empty() => {
            return Err("write two dots before a name for any depth; three dots are not allowed".into());
        }
        "" => {}
        // Other path languages read these characters as operators. Taken as a name they would match no field, and the
        // rule would have no effect.
        name if name.contains(OPERATORS) || name != name.trim() || name.chars().any(char::is_control) => {
            return Err(format!(
                "`{}` is not a field name; only `.name`, `[]`, `..name` and `*` are understood",
                name.escape_debug()
            ));
        }
        name => steps.push(PatternStep::Name(name.to_owned())),
    }
    Ok(())
}

const MAX_BYTES: usize = 512;

const OPERATORS: [char; 13] = ['[', ']', '*', '"', '\'', '|', '(', ')', '?', ',', '{', '}', '\\'];

#[cfg(test)]
mod tests {
    use super::FieldPattern;

    #[track_caller]
    fn check(pattern: &str, covers: &[&str], misses: &[&str]) {
        let parsed = FieldPattern::parse(pattern).unwrap();
        let split = |path: &&str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
        for path in covers {
            assert!(parsed.matches(&split(path)), "{pattern} should cover {path}");
        }
        for path in misses {
            assert!(!parsed.matches(&split(path)), "{pattern} should not cover {path}");
        }
    }

    #[track_caller]
    fn check_winner(field: &str, patterns: [&str; 2], winner: &str) {
        let path: Vec<&str> = field.split('.').collect();
        let best = patterns
            .into_iter()
            .max_by_key(|pattern| FieldPattern::parse(pattern).unwrap().specificity_at(&path))
            .unwrap();
        assert_eq!(best, winner, "{field}");
    }

    #[test]
    fn pattern_names_the_first_field_it_covers() {
        let named = |pattern: &str, path: &[&str]| FieldPattern::parse(pattern).unwrap().names(path);
        for (pattern, path) in [
            (".a", &["a"][..]),
            (".a[].b", &["a", "b"]),
            ("..b", &["a", "b"]),
            ("a.*", &["a", "b"]),
            ("*", &["a"]),
            ("*", &[]),
            (".", &[]),
            ("[]", &[]),
        ] {
            assert!(named(pattern, path), "{pattern} should name {path:?}");
        }
        for (pattern, path) in [
            (".a", &["a", "b"][..]),
            (".a", &["b"]),
            (".a", &[]),
            ("..b", &["b", "b"]),
            ("..b", &["a", "b", "c"]),
            ("a.*", &["a", "b", "c"]),
            ("*", &["a", "b"]),
        ] {
            assert!(!named(pattern, path), "{pattern} should not name {path:?}");
        }
    }

    #[test]
    fn patterns_cover_the_field_and_everything_below() {
        check(".a.b", &["a.b", "a.b.c"], &["a", "b", "x.a.b", "a.bb"]);
        check(".a[].b", &["a.b"], &["a"]);
        check("..b", &["b", "a.b", "a.b.c", "x.y.b"], &["a", "bb"]);
        check("a.*", &["a.b", "a.b.c"], &["a", "b.a"]);
        check("*.b", &["b", "a.b", "x.y.b"], &["a"]);
        check("*", &["a", "a.b"], &[]);
        check(".", &["a"], &[]);
        check(".a..z", &["a.z", "a.b.c.z.y"], &["z", "b.z"]);
        check(".A", &["A"], &["a"]);
    }

    #[test]
    fn closest_pattern_wins() {
        check_winner("customer.ssn", ["..ssn", ".customer"], "..ssn");
        check_winner("a.b.ssn", ["..ssn", ".a.b"], "..ssn");
        check_winner("customer.email", ["*.email", "customer.*"], "*.email");
        check_winner("customer.email", ["*.email", ".customer.email"], ".customer.email");
        check_winner("customer.name", ["*", "customer.*"], "customer.*");
        check_winner("a.b", ["*", ".a"], ".a");
        check_winner("a", ["*.a", ".a"], ".a");
    }

    #[test]
    fn invalid_field_path_is_rejected() {
        for bad in [
            "",
            "..",
            "...",
            "a.",
            "a..",
            "a...b",
            "*.",
            ".a[0]",
            ".a[",
            "a*",
            "a b*",
            ".a?",
            ".a|.b",
            ".\"a\"",
            ". a",
            ".a ",
            "$.a[?(@.b)]",
            ".a\n",
        ] {
            assert!(FieldPattern::parse(bad).is_err(), "{bad}");
        }
        assert!(FieldPattern::parse(&"a".repeat(513)).is_err());
    }

    #[test]
    fn equivalent_patterns_are_equal() {
        let same = |a: &str, b: &str| {
            FieldPattern::parse(a).unwrap().means_the_same_as(&FieldPattern::parse(b).unwrap())
        };
        assert!(same(".a[].b", "a.b") && same("*.b", "..b") && same("*", ".") && same(".[]", "*"));
        assert!(!same(".a", "..a") && !same(".*", "*"));
    }
}
