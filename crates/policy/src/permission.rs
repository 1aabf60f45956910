//! Computes which permissions a caller lacks for a call.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use toolgate_spec::{
    CompiledSchema,
    model::{Classification, Permissions},
};

/// The permissions of one tool, with compiled conditions. Created when the tool is loaded.
#[derive(Clone, Debug)]
pub struct PermissionRules {
    always: Vec<String>,
    elevated: Vec<Elevated>,
}

#[derive(Clone, Debug)]
struct Elevated {
    /// `None` if the condition cannot be compiled; it then counts as met.
    when: Option<CompiledSchema>,
    require: Vec<String>,
}

impl PermissionRules {
    pub fn new(permissions: &Permissions, classification: Classification) -> Self {
        let mut always = permissions.required.clone();
        if classification == Classification::Destructive {
            always.push(ALLOW_DESTRUCTIVE.to_owned());
        }
        let elevated = permissions
            .elevated
            .iter()
            .map(|elevation| Elevated {
                when: CompiledSchema::new(&elevation.when).ok(),
                require: elevation.require.clone(),
            })
            .collect();
        Self { always, elevated }
    }

    /// Permissions that the caller lacks for any arguments. If one is missing, no call can succeed.
    pub fn missing_always(&self, held: &BTreeSet<String>) -> Vec<String> {
        self.always.iter().filter(|permission| !held.contains(*permission)).cloned().collect()
    }

    /// Each missing permission once, in the order of the document. Copies the arguments only for a tool that has conditions.
    pub fn missing(&self, held: &BTreeSet<String>, args: &Map<String, Value>) -> Vec<String> {
        let args = if self.elevated.is_empty() { Value::Null } else { Value::Object(args.clone()) };
        let is_met = |elevated: &&Elevated| elevated.when.as_ref().is_none_or(|when| when.accepts(&args));
        let elevated = self.elevated.iter().filter(is_met).flat_map(|elevated| &elevated.require);
        let mut missing: Vec<String> = Vec::new();
        for permission in self.always.iter().chain(elevated) {
            if !held.contains(permission) && !missing.contains(permission) {
                missing.push(permission.clone());
            }
        }
        missing
    }
}

/// As `PermissionRules`, for a single check.
pub fn missing_permissions(
    held: &BTreeSet<String>,
    permissions: &Permissions,
    args: &Map<String, Value>,
    classification: Classification,
) -> Vec<String> {
    PermissionRules::new(permissions, classification).missing(held, args)
}

/// The additional permission that a destructive tool requires.
pub const ALLOW_DESTRUCTIVE: &str = "allow_destructive";

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_spec::model::Elevation;

    use super::*;

    #[track_caller]
    fn check(held: &[&str], when: Value, args: &Value, class: Classification, expect: &[&str]) {
        let permissions = Permissions {
            required: vec!["read".into(), "list".into()],
            elevated: vec![Elevation { when, require: vec!["admin".into(), "read".into()] }],
        };
        let held: BTreeSet<String> = held.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(missing_permissions(&held, &permissions, args.as_object().unwrap(), class), expect);
    }

    #[test]
    fn required_elevated_and_destructive() {
        let force = || json!({"required": ["force"], "properties": {"force": {"const": true}}});
        check(&["read", "list"], force(), &json!({"force": false}), Classification::Read, &[]);
        check(&["read", "list"], force(), &json!({"force": true}), Classification::Read, &["admin"]);
        check(&[], force(), &json!({"force": true}), Classification::Write, &["read", "list", "admin"]);
        check(&["read", "list"], force(), &json!({}), Classification::Destructive, &["allow_destructive"]);
        check(&["read", "list", "allow_destructive"], force(), &json!({}), Classification::Destructive, &[]);
    }

    #[test]
    fn condition_that_cannot_be_evaluated_is_met() {
        for broken in
            [json!({"type": "nonsense"}), json!({"pattern": "("}), json!({"$ref": "https://example.com/x"})]
        {
            check(&["read", "list"], broken, &json!({}), Classification::Read, &["admin"]);
        }
    }
}
