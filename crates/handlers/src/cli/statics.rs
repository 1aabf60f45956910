//! What do static variables stand for? Literal text always; placeholders the values that the secret source has at the call.

use serde_json::{Map, Value};
use toolgate_gate::Reason;
use toolgate_policy::{Mask, SecretConsumer, SecretSource};
use toolgate_spec::model::{StaticVariable, ToolSpec};

use super::report::Problem;
use crate::js::secrets;

/// The variables of one call, and what of them nobody else may see.
pub struct Statics {
    pub values: Map<String, Value>,
    pub mask: Mask,
    /// The secrets among them, which the tool was given to send.
    pub sent: Vec<String>,
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
    let mut sent = Vec::new();
    let consumer = SecretConsumer::Tool(&spec.name);
    for variable in spec.effective_statics() {
        let text = secrets::resolve(variable, consumer, source, &mut sent)
            .map_err(|message| Problem { reason: Reason::MissingSecret, message })?;
        values.insert(variable.name.clone(), Value::String(text));
    }
    Ok(Statics { values, mask: Mask::new(&sent), sent })
}

fn has_placeholder(variable: &StaticVariable) -> bool {
    variable.value.names().next().is_some()
}
