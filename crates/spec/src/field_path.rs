//! Paths into a tool's output: `.a.b`, `.a[].b`, `..b`, and the globs `a.*`, `*.b`, `*`.
//!
//! A pattern covers the field it names and everything below it, so that a rule can be wider than meant only by
//! what stands below a named field, never by a sibling. Array elements have no name of their own: `[]` may be
//! written, and is passed over when matching, so that `.items.id` and `.items[].id` name the same fields.
//!
//! Which of two patterns is more specific is a question about one field. `..ssn` names `.customer.ssn` itself and
//! `.customer` only what stands above it: the former decides, however many names the latter has.

use std::fmt;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct FieldPattern {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Step {
    Name(String),
    /// Exactly one field, whatever its name.
    AnyName,
    /// Any number of fields, also none.
    AnyDepth,
}

/// One step of a pattern's way down, for whoever walks many patterns at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FieldStep<'p> {
    Name(&'p str),
    /// Exactly one field, whatever its name.
    AnyName,
    /// Any number of fields, also none.
    AnyDepth,
}

/// How narrowly a pattern names one field; of two that match, the greater decides. The order of the members is the
/// order of the questions: how close to the field, by its name or by `*`, and how much of the way is spelled out.
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
            return Err("a field path is not empty; `*` names every field".into());
        }
        if text.len() > MAX_BYTES {
            return Err(format!("a field path has at most {MAX_BYTES} bytes"));
        }
        if matches!(text, "*" | ".") {
            return Ok(Self { text: text.to_owned(), steps: vec![Step::AnyDepth] });
        }
        let mut steps = Vec::new();
        // A leading `*.` means "at any depth", as in the globs of the source format.
        let deep = text.strip_prefix("*.").or_else(|| text.strip_prefix(".."));
        let mut rest = deep.unwrap_or_else(|| text.strip_prefix('.').unwrap_or(text));
        if deep.is_some() {
            steps.push(Step::AnyDepth);
        }
        if rest.is_empty() {
            return Err("a field name follows the dots".into());
        }
        while !rest.is_empty() {
            let end = rest.find('.').unwrap_or(rest.len());
            let (step, after) = rest.split_at(end);
            parse_step(step, &mut steps)?;
            rest = match after.strip_prefix("..") {
                Some(after) => {
                    steps.push(Step::AnyDepth);
                    after
                }
                None => after.strip_prefix('.').unwrap_or(after),
            };
            if rest.is_empty() && !after.is_empty() {
                return Err("a field name follows the last dot".into());
            }
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does the pattern name this field or one above it? The path lists field names from the top, without indices.
    pub fn matches<S: AsRef<str>>(&self, path: &[S]) -> bool {
        self.specificity_at(path).is_some()
    }

    /// How narrowly the pattern names this field; `None` where it does not cover it.
    pub fn specificity_at<S: AsRef<str>>(&self, path: &[S]) -> Option<Specificity> {
        let deepest = self.reaches(path).iter().rposition(|reached| *reached)?;
        Some(self.specificity_reaching(deepest))
    }

    /// The same for a field of which it is known how much of the way to it the pattern reaches.
    pub fn specificity_reaching(&self, deepest: usize) -> Specificity {
        let count = |wanted: fn(&Step) -> bool| self.steps.iter().filter(|step| wanted(step)).count();
        let names = count(|step| matches!(step, Step::Name(_)));
        let single_wildcards = count(|step| matches!(step, Step::AnyName));
        Specificity {
            depth: if self.is_catch_all() { 0 } else { deepest },
            ends_in_name: matches!(self.steps.last(), Some(Step::Name(_))),
            names,
            single_wildcards,
            is_bounded: !self.steps.contains(&Step::AnyDepth),
        }
    }

    /// The catch-all reaches every field and names none.
    pub fn is_catch_all(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::AnyDepth))
    }

    pub fn steps(&self) -> impl Iterator<Item = FieldStep<'_>> {
        self.steps.iter().map(|step| match step {
            Step::Name(name) => FieldStep::Name(name),
            Step::AnyName => FieldStep::AnyName,
            Step::AnyDepth => FieldStep::AnyDepth,
        })
    }

    /// Does the pattern name this very field, and none above it? `*` names the fields of the result, and the result itself
    /// only where that is no object.
    pub fn names<S: AsRef<str>>(&self, path: &[S]) -> bool {
        let least = usize::from(self.meaning() == [Step::AnyDepth]).min(path.len());
        let first = self.reaches(path).iter().skip(least).position(|reached| *reached);
        first.is_some_and(|first| least + first == path.len())
    }

    /// Which lengths of the path's beginning the pattern reaches.
    fn reaches<S: AsRef<str>>(&self, path: &[S]) -> Vec<bool> {
        let mut consumed = vec![false; path.len() + 1];
        if let Some(start) = consumed.first_mut() {
            *start = true;
        }
        self.steps.iter().fold(consumed, |consumed, step| advance(step, &consumed, path))
    }

    /// Two ways to write one thing, such as `.a[].b` and `a.b`.
    pub fn means_the_same_as(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }

    /// `[]` alone and `*` both name everything.
    fn meaning(&self) -> &[Step] {
        if self.steps.is_empty() { &[Step::AnyDepth] } else { &self.steps }
    }
}

impl fmt::Display for FieldPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn advance<S: AsRef<str>>(step: &Step, consumed: &[bool], path: &[S]) -> Vec<bool> {
    if matches!(step, Step::AnyDepth) {
        let shortest = consumed.iter().position(|here| *here).unwrap_or(consumed.len());
        return (0..consumed.len()).map(|length| length >= shortest).collect();
    }
    let takes = |field: &S| match step {
        Step::Name(name) => name == field.as_ref(),
        Step::AnyName | Step::AnyDepth => true,
    };
    let moved = consumed.iter().zip(path).map(|(here, field)| *here && takes(field));
    std::iter::once(false).chain(moved).collect()
}

fn parse_step(step: &str, steps: &mut Vec<Step>) -> Result<(), String> {
    let name = step.trim_end_matches("[]");
    match name {
        "*" => steps.push(Step::AnyName),
        "" if step.is_empty() => {
            return Err("two dots mean any depth and stand before a name; three mean nothing".into());
        }
        "" => {}
        // What other languages read as operators would be a name that no field has, and so a rule without effect.
        name if name.contains(OPERATORS) || name != name.trim() || name.chars().any(char::is_control) => {
            return Err(format!(
                "`{}` is not a field name; only `.name`, `[]`, `..name` and `*` are understood",
                name.escape_debug()
            ));
        }
        name => steps.push(Step::Name(name.to_owned())),
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
    fn a_pattern_names_the_first_field_that_it_covers() {
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
    fn patterns_cover_the_field_and_what_is_below() {
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
    fn the_rule_that_is_closest_to_the_field_decides() {
        check_winner("customer.ssn", ["..ssn", ".customer"], "..ssn");
        check_winner("a.b.ssn", ["..ssn", ".a.b"], "..ssn");
        check_winner("customer.email", ["*.email", "customer.*"], "*.email");
        check_winner("customer.email", ["*.email", ".customer.email"], ".customer.email");
        check_winner("customer.name", ["*", "customer.*"], "customer.*");
        check_winner("a.b", ["*", ".a"], ".a");
        check_winner("a", ["*.a", ".a"], ".a");
    }

    #[test]
    fn what_is_no_field_path_is_refused() {
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
    fn two_ways_to_write_one_thing() {
        let same = |a: &str, b: &str| {
            FieldPattern::parse(a).unwrap().means_the_same_as(&FieldPattern::parse(b).unwrap())
        };
        assert!(same(".a[].b", "a.b") && same("*.b", "..b") && same("*", ".") && same(".[]", "*"));
        assert!(!same(".a", "..a") && !same(".*", "*"));
    }
}
