//! What do static variables stand for? Literal text always; placeholders what the gateway's environment says at the call.

use serde_json::{Map, Value};
use toolgate_gate::Reason;
use toolgate_policy::Mask;
use toolgate_spec::{
    Part,
    model::{StaticVariable, ToolSpec},
};

use super::report::Problem;
use crate::js::SecretSource;

/// The variables of one call, and what of them nobody else may see.
pub struct Statics {
    pub values: Map<String, Value>,
    pub mask: Mask,
}

/// Those without placeholders, which are known before any call.
pub fn literals(spec: &ToolSpec) -> Map<String, Value> {
    let plain = spec.effective_statics().into_iter().filter(|variable| !has_placeholder(variable));
    plain.map(|variable| (variable.name.clone(), Value::from(variable.value.text()))).collect()
}

/// The names of those with placeholders.
pub fn secret_names(spec: &ToolSpec) -> Vec<&str> {
    let secret = spec.effective_statics().into_iter().filter(|variable| has_placeholder(variable));
    secret.map(|variable| variable.name.as_str()).collect()
}

pub fn resolve(spec: &ToolSpec, source: &dyn SecretSource) -> Result<Statics, Problem> {
    let mut values = Map::new();
    let mut secrets = Vec::new();
    for variable in spec.effective_statics() {
        let mut text = String::new();
        for part in variable.value.parts() {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Variable(name) => {
                    let value = source.lookup(name).filter(|value| !value.trim().is_empty());
                    let value = value.ok_or_else(|| is_missing(&variable.name, name))?;
                    text.push_str(&value);
                    secrets.push(value);
                }
            }
        }
        values.insert(variable.name.clone(), Value::String(text));
    }
    Ok(Statics { values, mask: Mask::new(&secrets) })
}

/// Everything secret that is set just now.
pub fn mask_of(spec: &ToolSpec, source: &dyn SecretSource) -> Mask {
    let set: Vec<String> =
        spec.required_environment().into_iter().filter_map(|name| source.lookup(name)).collect();
    Mask::new(&set)
}

fn has_placeholder(variable: &StaticVariable) -> bool {
    variable.value.names().next().is_some()
}

fn is_missing(variable: &str, name: &str) -> Problem {
    let message =
        format!("`{variable}` needs `{name}`, which is not set; set it in the gateway's environment");
    Problem { reason: Reason::MissingSecret, message }
}
