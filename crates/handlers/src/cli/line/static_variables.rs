//! Values of static variables: literal text, and placeholders that are resolved from the secret source at
//! each call.

use serde_json::{Map, Value};
use toolgate_gate::Reason;
use toolgate_policy::{Mask, SecretConsumer, SecretSource};
use toolgate_spec::model::{StaticVariable, ToolSpec};

use crate::{cli::report::RunProblem, js::secrets};

/// The variables of one call, and the mask for their secrets.
pub struct Statics {
    pub values: Map<String, Value>,
    pub mask: Mask,
    /// The secrets among them, which the tool may send.
    pub sent: Vec<String>,
}

/// Variables without placeholders, which are known before any call.
pub fn literals(spec: &ToolSpec) -> Map<String, Value> {
    let plain = spec.effective_statics().into_iter().filter(|variable| !has_placeholder(variable));
    plain.map(|variable| (variable.name.clone(), Value::from(variable.value.text()))).collect()
}

/// The names of variables with placeholders.
pub fn secret_names(spec: &ToolSpec) -> Vec<&str> {
    let secret = spec.effective_statics().into_iter().filter(|variable| has_placeholder(variable));
    secret.map(|variable| variable.name.as_str()).collect()
}

pub fn resolve(
    spec: &ToolSpec,
    consumer: SecretConsumer<'_>,
    source: &dyn SecretSource,
) -> Result<Statics, RunProblem> {
    let mut values = Map::new();
    let mut sent = Vec::new();
    for variable in spec.effective_statics() {
        let text = secrets::resolve(variable, consumer, source, &mut sent)
            .map_err(|message| RunProblem { reason: Reason::MissingSecret, message })?;
        values.insert(variable.name.clone(), Value::String(text));
    }
    Ok(Statics { values, mask: Mask::new(&sent), sent })
}

fn has_placeholder(variable: &StaticVariable) -> bool {
    variable.value.names().next().is_some()
}
