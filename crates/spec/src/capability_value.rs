//! Reads capability blocks outside a tool document: shipped defaults and operator overrides.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::{
    Code, Finding, Format, Pointer, Schema, decode::capability::capability, invariant,
    model::CapabilityPatch, read, schema,
};

/// Validates a capability block with the same schema as in a document and reports every violation.
pub fn capability_from_value(value: &Value) -> Result<CapabilityPatch, Vec<Finding>> {
    static VALIDATOR: LazyLock<Option<Validator>> =
        LazyLock::new(|| schema::compile(&capability_schema()).ok());
    let Some(validator) = VALIDATOR.as_ref() else {
        return Err(vec![refuse("internal error: the schema does not compile", "report this bug")]);
    };
    let mut findings: Vec<Finding> = validator
        .iter_errors(value)
        .flat_map(|error| schema::explain_violation(Schema::ToolManifest, &error))
        .collect();
    let Value::Object(declared) = value else {
        findings.push(refuse("a capability must be an object", "write `capability: {approval: …}`"));
        return Err(findings);
    };
    let patch = capability(declared, &Pointer::root(), &mut findings);
    invariant::check_capability(declared, &mut findings);
    if findings.is_empty() { Ok(patch) } else { Err(findings) }
}

/// Parses a file in either format, with the size limits of a tool document and no duplicate keys.
pub fn value_from_text(text: &str, format: Format) -> Result<Value, Finding> {
    read::read(text, format).map(|tree| tree.value)
}

/// The manifest schema reduced to its capability block, with all definitions for its references.
fn capability_schema() -> Value {
    let definitions = Schema::ToolManifest.document().get("$defs").cloned().unwrap_or_default();
    let mut schema = Map::new();
    schema.insert("$ref".into(), "#/$defs/capability".into());
    schema.insert("$defs".into(), definitions);
    Value::Object(schema)
}

fn refuse(message: &str, remedy: &str) -> Finding {
    Finding::new(Code::SpecParse, Pointer::root(), message, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let value = value_from_text(text, Format::Json).unwrap();
        let shown = match capability_from_value(&value) {
            Ok(patch) => format!("{:?}", patch.approval.level),
            Err(findings) => findings
                .iter()
                .map(|finding| format!("{} {} ({})", finding.at, finding.message, finding.remedy))
                .collect::<Vec<_>>()
                .join("; "),
        };
        assert_eq!(shown, expect);
    }

    #[test]
    fn standalone_block_is_validated() {
        check(r#"{"approval": {"level": "always"}}"#, "Some(Always)");
        check(
            r#"{"approval": {"levle": "always"}}"#,
            "/approval/levle unknown key `levle` (did you mean `level`?)",
        );
        check(
            r#"{"execution": {"allowedPaths": ["~"]}}"#,
            "/execution/allowedPaths/0 not a path pattern: `~` is not expanded; write `$HOME` (write an absolute path, or one below `$WORKSPACE` or `$HOME`)",
        );
        check("null", "(document) a capability must be an object (write `capability: {approval: …}`)");
    }
}
