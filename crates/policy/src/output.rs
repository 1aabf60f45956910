//! May this field of the output leave? Where a policy exists, what no rule names does not.

use toolgate_spec::model::{Governance, OutputAction, OutputRule};

/// The field rules of one tool.
#[derive(Clone, Copy, Debug)]
pub struct OutputPolicy<'s> {
    rules: Option<&'s [OutputRule]>,
}

impl<'s> OutputPolicy<'s> {
    pub fn of(governance: &'s Governance) -> Self {
        Self { rules: governance.output_policy.as_deref() }
    }

    /// Without a field policy there is nothing to walk the output for.
    pub const fn exists(&self) -> bool {
        self.rules.is_some()
    }

    /// What becomes of a leaf. The path lists field names from the top, without indices. The most specific rule
    /// decides; of two equally specific the stricter.
    pub fn action_for(&self, path: &[&str]) -> OutputAction {
        let Some(rules) = self.rules else { return OutputAction::Allow };
        rules
            .iter()
            .filter_map(|rule| Some((rule.pattern.specificity_at(path)?, rule.action)))
            .max()
            .map_or(OutputAction::Redact, |(_, action)| action)
    }
}

#[cfg(test)]
mod tests {
    use toolgate_spec::FieldPattern;

    use super::*;

    #[track_caller]
    fn check(rules: Option<&[(&str, OutputAction)]>, path: &[&str], expect: OutputAction) {
        let rule = |(pattern, action): &(&str, OutputAction)| OutputRule {
            pattern: FieldPattern::parse(pattern).unwrap(),
            action: *action,
        };
        let governance = Governance {
            output_policy: rules.map(|rules| rules.iter().map(rule).collect()),
            ..Governance::default()
        };
        assert_eq!(OutputPolicy::of(&governance).action_for(path), expect, "{path:?}");
    }

    #[test]
    fn no_policy_allows_and_an_empty_one_redacts() {
        check(None, &["a"], OutputAction::Allow);
        check(Some(&[]), &["a"], OutputAction::Redact);
    }

    #[test]
    fn the_most_specific_rule_decides_and_ties_are_strict() {
        use OutputAction::{Allow, Mask, Redact};
        let rules = [(".customer", Allow), ("..ssn", Redact), (".customer.email", Mask), ("*", Redact)];
        check(Some(&rules), &["customer", "name"], Allow);
        check(Some(&rules), &["customer", "email"], Mask);
        check(Some(&rules), &["other"], Redact);
        check(Some(&[(".a", Allow), ("a", Mask)]), &["a"], Mask);
        check(Some(&[("a", Mask), (".a", Allow)]), &["a"], Mask);
        check(Some(&[(".a.b", Allow)]), &["a", "c"], Redact);
    }
}
