//! Checks parameters and static variables: valid variable names, and test values that parse.

use super::broken;
use crate::{Finding, identifier::is_identifier, model::ToolSpec, test_value};

pub(super) fn check(spec: &ToolSpec, findings: &mut Vec<Finding>) {
    for (index, param) in spec.params.iter().enumerate() {
        let at = |field: &str| format!("/params/{index}/{field}");
        if !param.name.is_empty() && !is_identifier(&param.name) {
            findings.push(broken(
                &at("name"),
                "the name cannot be a variable in the tool's code",
                "use letters, digits, `_` and `$`, not beginning with a digit, and no reserved word",
            ));
        }
        if let Some(first) = spec.params.iter().take(index).position(|earlier| earlier.name == param.name) {
            findings.push(broken(
                &at("name"),
                format!("`{}` is declared twice, first at `/params/{first}`", param.name),
                "rename one of the two",
            ));
        }
        if let Some(written) = &param.test_value
            && let Err(why) = test_value::parse(param.kind, written)
        {
            findings.push(broken(
                &at("testValue"),
                format!("the test value is not {}: {why}", article(param.kind.spec_name())),
                "write text that parses into the declared type",
            ));
        }
    }
    for (index, variable) in spec.statics.iter().enumerate() {
        if !is_identifier(&variable.name) {
            findings.push(broken(
                &format!("/staticVariables/{index}"),
                format!("`{}` cannot be a variable in the tool's code", variable.name),
                "use letters, digits, `_` and `$`, not beginning with a digit, and no reserved word",
            ));
        }
    }
}

fn article(kind: &str) -> String {
    let vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}
